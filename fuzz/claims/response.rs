//! What is true of any stream of bytes that a server may send.

use std::collections::HashMap;

use engine::{HeadCache, ReceivedResponse, ResponseReader};
use model::BadResponse;

/// The responses that a connection's bytes hold, and how it ended.
#[derive(Debug, PartialEq)]
struct Read {
    responses: Vec<ReceivedResponse>,
    workers: HashMap<String, u16>,
    /// Bytes of a response that the connection's end cut off; `None` if the bytes were refused.
    unfinished: Option<u64>,
}

/// Panics if reading `bytes` in pieces of `size` differs from reading them whole, or if bytes are
/// lost or invented.
pub(crate) fn reads_the_same_in_pieces(bytes: &[u8], size: usize, to_head: bool) {
    let whole = read(bytes, bytes.len().max(1), to_head);
    assert_eq!(read(bytes, size, to_head), whole, "in pieces of {size} bytes");
    if let Some(unfinished) = whole.unfinished {
        let counted: u64 = whole.responses.iter().map(|response| response.bytes).sum();
        assert_eq!(counted + unfinished, bytes.len() as u64, "bytes are conserved");
    }
    assert!(whole.responses.iter().all(|response| (200..=999).contains(&response.head.status)));
}

fn read(bytes: &[u8], size: usize, to_head: bool) -> Read {
    let mut reader = ResponseReader::default();
    let mut heads = HeadCache::new("x-worker-pid");
    let mut responses = Vec::new();
    let fed = feed(bytes, size, to_head, &mut reader, &mut heads, &mut responses);
    let unfinished = fed.is_ok().then(|| {
        responses.extend(reader.end());
        reader.received()
    });
    Read { responses, workers: heads.workers().clone(), unfinished }
}

fn feed(
    bytes: &[u8],
    size: usize,
    to_head: bool,
    reader: &mut ResponseReader,
    heads: &mut HeadCache,
    responses: &mut Vec<ReceivedResponse>,
) -> Result<(), BadResponse> {
    reader.expect(to_head);
    for mut piece in bytes.chunks(size) {
        while !piece.is_empty() {
            let Some((response, used)) = reader.feed(piece, heads)? else { break };
            assert!(used <= piece.len() && response.bytes > 0);
            responses.push(response);
            piece = &piece[used..];
            reader.expect(to_head);
        }
    }
    Ok(())
}
