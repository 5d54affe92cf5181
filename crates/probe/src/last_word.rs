//! Whose turn it is on a connection: a request is out where the last byte came from the client.
//!
//! An open connection is not a waiting one: a proxy, a browser or a pool of clients keeps idle
//! ones. The kernel tells how long ago it got data and how long ago it sent some, in ticks of its
//! clock (1 to 10 ms). A client that sends its next request at once does so within the tick of the
//! response, and a server that answers at once within the tick of the request: then the two are
//! equal, and what decides is whether the response has been acknowledged since, or the count of
//! segments, where all requests and all responses of the connection are of the same number of them.

/// Offsets in `struct tcp_info` (`include/uapi/linux/tcp.h`); the counts are there from Linux 4.6
/// on.
const LAST_DATA_SENT: usize = 44;
const LAST_DATA_RECEIVED: usize = 52;
const LAST_ACK_RECEIVED: usize = 56;
const DATA_SEGMENTS_IN: usize = 152;
const DATA_SEGMENTS_OUT: usize = 156;

/// Who has said nothing since the client's last byte for so many milliseconds may serve a stream (a
/// websocket, server-sent events), to which the client says something now and then, or nobody.
const LONGEST_REQUEST: u32 = 60_000;

/// Who has sent the last byte of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWord {
    /// Nobody has sent any.
    Nobody,
    /// The client: a request is out.
    Client,
    /// The server: it has answered, or has begun to.
    Server,
    /// Both within a tick, and nothing tells who was later.
    Unclear,
}

impl LastWord {
    /// By the server's `struct tcp_info` of the connection; `None` where the kernel's has no such
    /// fields.
    pub(crate) fn of(info: &[u8]) -> Option<LastWord> {
        let word = |at: usize| {
            let bytes: [u8; 4] = info.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes))
        };
        let received_ago = word(LAST_DATA_RECEIVED)?;
        let sent_ago = word(LAST_DATA_SENT)?;
        let received = word(DATA_SEGMENTS_IN)?;
        let sent = word(DATA_SEGMENTS_OUT)?;
        Some(match (received, received_ago.cmp(&sent_ago)) {
            (0, _) => LastWord::Nobody,
            (_, std::cmp::Ordering::Less) if received_ago > LONGEST_REQUEST => LastWord::Unclear,
            (_, std::cmp::Ordering::Less) => LastWord::Client,
            (_, std::cmp::Ordering::Greater) => LastWord::Server,
            // An acknowledgement alone, later than the client's last data: that of a response.
            _ if word(LAST_ACK_RECEIVED)? < received_ago => LastWord::Server,
            _ => by_segments(received, sent),
        })
    }
}

/// By the segments with data of a connection whose requests are one each: `n` of them, and as many
/// for each response. All are answered where the rest is 0, all but one where that of `n - 1` is.
fn by_segments(received: u32, sent: u32) -> LastWord {
    let are_all_answered = sent > 0 && sent.is_multiple_of(received);
    let is_one_out = match received {
        1 => sent == 0,
        // One request in two segments, and its response, look like two requests and one response.
        2 => false,
        _ => sent > 0 && sent.is_multiple_of(received - 1),
    };
    match (are_all_answered, is_one_out) {
        (true, false) => LastWord::Server,
        (false, true) => LastWord::Client,
        (true, true) | (false, false) => LastWord::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_out_where_the_last_byte_came_from_the_client() {
        let of = |sent_ago: u32, received_ago: u32, ack_ago: u32, received: u32, sent: u32| {
            let mut info = [0; 200];
            for (at, value) in [
                (LAST_DATA_SENT, sent_ago),
                (LAST_DATA_RECEIVED, received_ago),
                (LAST_ACK_RECEIVED, ack_ago),
                (DATA_SEGMENTS_IN, received),
                (DATA_SEGMENTS_OUT, sent),
            ] {
                info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
            }
            LastWord::of(&info)
        };
        for (case, last, expected) in [
            ("it was connected, and nothing came", of(40, 40, 40, 0, 0), LastWord::Nobody),
            ("its first request, at once", of(40, 40, 40, 1, 0), LastWord::Client),
            ("a request after a pause", of(240, 40, 40, 7, 6), LastWord::Client),
            ("an answer that took 100 ms", of(40, 140, 40, 7, 7), LastWord::Server),
            ("one that took no time, acknowledged later", of(80, 80, 40, 7, 7), LastWord::Server),
            ("acknowledged at once", of(80, 80, 80, 7, 7), LastWord::Server),
            ("the next request at once", of(80, 80, 80, 7, 6), LastWord::Client),
            ("the same, of answers of 20 segments", of(80, 80, 80, 7, 120), LastWord::Client),
            ("all of those answered", of(80, 80, 80, 7, 140), LastWord::Server),
            ("answers of any length", of(80, 80, 80, 16, 78), LastWord::Unclear),
            ("two requests, or one in two segments", of(80, 80, 80, 2, 1), LastWord::Unclear),
            ("a stream", of(240_000, 90_000, 90_000, 7, 40), LastWord::Unclear),
        ] {
            assert_eq!(last, Some(expected), "{case}");
        }
        assert_eq!(LastWord::of(&[0; 104]), None, "an old kernel");
    }
}
