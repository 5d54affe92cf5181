//! Tells whether a request on a connection still waits for its response: it does if the last byte
//! came from the client.
//!
//! An open connection need not have a request: proxies, browsers and pools of clients keep idle
//! ones. The kernel says how long ago it received data and how long ago it sent some, in ticks of
//! its clock (1 to 10 ms). If a client sends its next request within the tick of the response, or a
//! server responds within the tick of the request, these two times are equal. Then a later
//! acknowledgement shows that the server responded. Without one, the numbers of segments decide, if
//! each request was one segment and all responses have the same number of them.

/// Offsets in `struct tcp_info` (`include/uapi/linux/tcp.h`); Linux has the counts from 4.6 on.
const LAST_DATA_SENT: usize = 44;
const LAST_DATA_RECEIVED: usize = 52;
const LAST_ACK_RECEIVED: usize = 56;
const DATA_SEGMENTS_IN: usize = 152;
const DATA_SEGMENTS_OUT: usize = 156;

/// A server that has sent nothing for this many milliseconds since the client's last byte may serve
/// a stream (a websocket, server-sent events), on which the client sends something now and then, or
/// may not serve that client at all.
const LONGEST_REQUEST: u32 = 60_000;

/// Who sent the last byte on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWord {
    /// Nobody has sent a byte.
    Nobody,
    /// The client: a request is out.
    Client,
    /// The server: it has responded, or has begun to.
    Server,
    /// Both within one tick, and nothing tells who was later.
    Unclear,
}

impl LastWord {
    /// Reads the server's `struct tcp_info` of the connection; `None` if the kernel's has no such
    /// fields.
    pub(crate) fn of(info: &[u8]) -> Option<LastWord> {
        let word = |at: usize| word(info, at);
        let received_ago = word(LAST_DATA_RECEIVED)?;
        let sent_ago = word(LAST_DATA_SENT)?;
        let received = word(DATA_SEGMENTS_IN)?;
        let sent = word(DATA_SEGMENTS_OUT)?;
        Some(match (received, received_ago.cmp(&sent_ago)) {
            (0, _) => LastWord::Nobody,
            (_, std::cmp::Ordering::Less) if received_ago > LONGEST_REQUEST => LastWord::Unclear,
            (_, std::cmp::Ordering::Less) => LastWord::Client,
            (_, std::cmp::Ordering::Greater) => LastWord::Server,
            // An acknowledgement without data, later than the client's last data, acknowledges a
            // response.
            _ if word(LAST_ACK_RECEIVED)? < received_ago => LastWord::Server,
            _ => by_segments(received, sent),
        })
    }
}

/// How many requests were answered on the connection, at most: each takes a segment with data in
/// either direction, or more. From the server's `struct tcp_info`.
pub(crate) fn most_answered(info: &[u8]) -> Option<u32> {
    Some(word(info, DATA_SEGMENTS_IN)?.min(word(info, DATA_SEGMENTS_OUT)?))
}

fn word(info: &[u8], at: usize) -> Option<u32> {
    let bytes: [u8; 4] = info.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

/// Decides by the numbers of segments with data, assuming that each request is one segment, and
/// that all responses have equally many. Then all requests are answered if `sent` is a multiple of
/// `received`, and all but the last if it is a multiple of `received - 1`.
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
            ("a response that took 100 ms", of(40, 140, 40, 7, 7), LastWord::Server),
            ("one that took no time, acknowledged later", of(80, 80, 40, 7, 7), LastWord::Server),
            ("acknowledged at once", of(80, 80, 80, 7, 7), LastWord::Server),
            ("the next request at once", of(80, 80, 80, 7, 6), LastWord::Client),
            ("the same, of responses of 20 segments", of(80, 80, 80, 7, 120), LastWord::Client),
            ("all of those answered", of(80, 80, 80, 7, 140), LastWord::Server),
            ("responses of any length", of(80, 80, 80, 16, 78), LastWord::Unclear),
            ("two requests, or one in two segments", of(80, 80, 80, 2, 1), LastWord::Unclear),
            ("a stream", of(240_000, 90_000, 90_000, 7, 40), LastWord::Unclear),
        ] {
            assert_eq!(last, Some(expected), "{case}");
        }
        assert_eq!(LastWord::of(&[0; 104]), None, "an old kernel");
    }
}
