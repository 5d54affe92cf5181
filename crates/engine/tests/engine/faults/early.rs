//! Servers that answer before they have read the request, or all of it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::LoadSpec;
use model::{Outcome, Request};

use crate::kit::{
    ANSWER, Ending::InOneOf, GOOD, Server, all_end, driven, kinds, open, read_head, read_request, shape, shown,
    until_closed, wait_for,
};

const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";

/// Bytes of a body that is more than the buffers on both sides hold.
const LARGE: usize = 32 << 20;

/// The answer is there as soon as the connection is.
pub(crate) fn before_the_request(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(ANSWER)?;
    read_request(stream)
}

fn before_any_request(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")?;
    until_closed(stream)
}

/// Posts a [`LARGE`] body.
pub(crate) fn large(shape: LoadSpec) -> LoadSpec {
    let mut bytes = format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {LARGE}\r\n\r\n").into_bytes();
    bytes.resize(bytes.len() + LARGE, b'x');
    let request = Request { bytes: bytes.into(), is_head: false };
    LoadSpec { requests: [request].into(), ..shape }
}

#[test]
fn an_answer_before_the_request_is_its_answer_where_that_is_unknown() {
    // On loopback a connect is mostly done at once and the request goes with it. Where the lane had to wait, the answer is seen to be early.
    all_end(&[(before_any_request, InOneOf(&[GOOD, Outcome::BadResponse]))]);
}

#[test]
fn an_answer_to_half_a_request_is_counted_and_ends_the_connection() {
    // What is still on its way is not read until the load is over: the client must not need that.
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let server = Server::start(move |stream, _| {
        read_head(stream)?;
        stream.read_exact(&mut vec![0; 1 << 20])?;
        stream.write_all(TOO_LARGE)?;
        wait_for(&is_over);
        Ok(())
    });
    let closed = large(shape(server.address));
    let mut opened = 0;
    for shape in [open(&closed), closed] {
        let done = driven(&shape);
        assert_eq!(kinds(&done), [Outcome::Answered(413)], "{}", shown(&done));
        assert_eq!(done.tally.connections_opened, done.tally.counts.total(), "none of them can be used again");
        opened += done.tally.connections_opened;
    }
    over.store(true, Ordering::Relaxed);
    assert_eq!(server.stop(), opened);
}

#[test]
fn an_answer_to_half_a_request_counts_though_the_rest_is_refused_with_a_reset() {
    // As a server does that answers, closes, and does not linger.
    let server = Server::start(|stream, _| {
        read_head(stream)?;
        stream.read_exact(&mut vec![0; 1 << 20])?;
        stream.write_all(TOO_LARGE)
    });
    let done = driven(&large(shape(server.address)));
    assert_eq!(kinds(&done), [Outcome::Answered(413)], "{}", shown(&done));
    assert_eq!(server.stop(), done.tally.connections_opened);
}

/// The server answers each head at once and reads on. It may have read all of the request by the time the client sees the answer: then
/// the connection can be used again, and otherwise not, as the server would take the rest for the next request.
#[test]
fn after_an_early_answer_another_request_comes_only_behind_a_whole_one() {
    let heads = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&heads);
    let server = Server::start(move |stream, _| {
        loop {
            let head = read_head(stream)?;
            assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head:?}");
            counted.fetch_add(1, Ordering::Relaxed);
            stream.write_all(TOO_LARGE)?;
            io::copy(&mut stream.take(LARGE as u64), &mut io::sink())?;
        }
    });
    let done = driven(&large(shape(server.address)));
    assert_eq!(kinds(&done), [Outcome::Answered(413)], "{}", shown(&done));
    assert_eq!(server.stop(), done.tally.connections_opened);
    assert_eq!(heads.load(Ordering::Relaxed), done.tally.counts.total());
}
