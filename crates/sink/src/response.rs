//! The sink's responses. They are rendered before the first request arrives, and sent from memory
//! as they are, except for the counter's four bytes. Only the ledger, refusals, and responses with
//! stamps are rendered when they are needed.

use std::ops::Range;

use http::StatusCode;
use model::Nanos;
use model::app_time::STAMPS;

use crate::laws::Fault;
use crate::request::{ConnectionFate, Refusal};
use crate::settings::SAYS_KEEP_ALIVE;
use crate::{SinkBody, SinkLedger, SinkSettings};

/// The status of a response without a fault.
pub(crate) const OK: u16 = 200;
/// The interim response that lets a client send its body.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The counter's body before its four bytes, in CBOR as `serde_cbor` writes it: a map of two, text
/// "status" and "replied", text "reply" and a map of one, text "arg" and a byte string of four (RFC
/// 8949 section 3).
const COUNTER: &[u8] = b"\xa2\x66status\x67replied\x65reply\xa1\x63arg\x44";

/// The fates of a connection, in the order of the type's variants.
const ENDINGS: [ConnectionFate; 3] =
    [ConnectionFate::KeepAlive, ConnectionFate::KeepAliveSaid, ConnectionFate::Close];

/// One rendered response.
#[derive(Debug)]
struct RenderedResponse {
    bytes: Box<[u8]>,
    /// Where its body begins.
    body: usize,
    /// Where the counter is, or the end of the response.
    counter: usize,
}

/// How much of a response is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseExtent {
    /// All.
    Whole,
    /// The head, for HEAD.
    Head,
    /// Less than promised: half of the body if there is one, or half of the head.
    Cut {
        /// Whether no body was asked for.
        bodiless: bool,
    },
}

/// The responses of all workers, with every status.
#[derive(Debug)]
pub(crate) struct ResponseTable {
    /// By status, worker and ending.
    all: Vec<RenderedResponse>,
    statuses: Vec<u16>,
    workers: usize,
    first_worker: usize,
}

impl ResponseTable {
    /// Renders them for these workers: [`OK`], and the statuses of the faults.
    pub(crate) fn render(settings: &SinkSettings, workers: Range<u32>) -> ResponseTable {
        let faulty = settings.faults.iter().filter_map(|law| match law.fault {
            Fault::Status(code) => Some(code),
            _ => None,
        });
        let statuses: Vec<u16> = [OK].into_iter().chain(faulty).collect();
        let (kind, body) = match settings.body {
            SinkBody::Counter => ("application/cbor", [COUNTER, &[0; 4]].concat()),
            SinkBody::Ok => ("text/plain", b"ok\n".to_vec()),
            SinkBody::Bytes(bytes) => ("application/octet-stream", vec![b'x'; bytes as usize]),
        };
        let (keeping, others): (Vec<&str>, Vec<&str>) = settings
            .headers
            .iter()
            .map(String::as_str)
            .partition(|line| line.eq_ignore_ascii_case(SAYS_KEEP_ALIVE));
        // A configured `connection: keep-alive` is only sent where the connection is kept.
        let kept = if keeping.is_empty() {
            ConnectionFate::KeepAlive
        } else {
            ConnectionFate::KeepAliveSaid
        };
        let mut all = Vec::new();
        for code in &statuses {
            for worker in workers.clone() {
                let named =
                    settings.worker_header.as_ref().map(|name| format!("{name}: {worker}\r\n"));
                let others = others.iter().flat_map(|line| [line, "\r\n"]).collect::<String>();
                let fields =
                    format!("content-type: {kind}\r\n{others}{}", named.unwrap_or_default());
                // The usual reason phrase; a client must not depend on it (RFC 9112, section 4).
                let reason =
                    StatusCode::from_u16(*code).ok().and_then(|status| status.canonical_reason());
                let status = format!("{code} {}", reason.unwrap_or_default());
                for ending in ENDINGS
                    .map(|ending| if ending == ConnectionFate::KeepAlive { kept } else { ending })
                {
                    let bytes = response(&status, &fields, ending, &body);
                    let counter = if settings.body == SinkBody::Counter {
                        bytes.len() - 4
                    } else {
                        bytes.len()
                    };
                    all.push(RenderedResponse { body: bytes.len() - body.len(), bytes, counter });
                }
            }
        }
        ResponseTable {
            all,
            statuses,
            workers: workers.len(),
            first_worker: workers.start as usize,
        }
    }

    /// A worker's response to the request with this number.
    #[inline]
    pub(crate) fn of(
        &mut self,
        status: u16,
        worker: u32,
        ending: ConnectionFate,
        extent: ResponseExtent,
        number: u64,
    ) -> &[u8] {
        let row = if status == OK {
            0
        } else {
            self.statuses.iter().position(|other| *other == status).unwrap_or(0)
        };
        let place = (row * self.workers + worker as usize - self.first_worker) * ENDINGS.len()
            + ending as usize;
        let RenderedResponse { bytes, body, counter } = &mut self.all[place];
        // The counter is a u32, and starts again after 2^32 - 1.
        if let Some(hole) = bytes.get_mut(*counter..*counter + 4) {
            hole.copy_from_slice(&(number as u32).to_le_bytes());
        }
        let length = match extent {
            ResponseExtent::Whole => bytes.len(),
            ResponseExtent::Head => *body,
            ResponseExtent::Cut { bodiless: false } if *body < bytes.len() => {
                usize::midpoint(*body, bytes.len())
            }
            ResponseExtent::Cut { .. } => *body / 2,
        };
        &bytes[..length]
    }
}

/// A response that says when its slot was taken and given back, for clients that ask. It is
/// rendered each time.
pub(crate) fn stamped(response: &[u8], [started, ended]: [Nanos; 2]) -> Vec<u8> {
    let head = response
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map_or(response.len(), |at| at + 2);
    let field = format!("{STAMPS}: {} {}\r\n", started.0, ended.0);
    [&response[..head], field.as_bytes(), &response[head..]].concat()
}

/// The ledger as JSON; without its body for HEAD.
pub(crate) fn of_ledger(ledger: &SinkLedger, ending: ConnectionFate, bodiless: bool) -> Box<[u8]> {
    let body = serde_json::to_string(ledger).unwrap_or_default() + "\n";
    let whole = response("200 OK", "content-type: application/json\r\n", ending, body.as_bytes());
    whole[..whole.len() - if bodiless { body.len() } else { 0 }].into()
}

/// The response to a refused request.
pub(crate) fn of_refusal(refusal: Refusal) -> Box<[u8]> {
    let (status, body) = match refusal {
        Refusal::Malformed => ("400 Bad Request", "this is not an HTTP/1.1 request\n"),
        Refusal::TooLarge => {
            ("431 Request Header Fields Too Large", "the head may have 64 KiB and 128 fields\n")
        }
    };
    response(status, "content-type: text/plain\r\n", ConnectionFate::Close, body.as_bytes())
}

fn response(status: &str, fields: &str, ending: ConnectionFate, body: &[u8]) -> Box<[u8]> {
    let connection = match ending {
        ConnectionFate::KeepAlive => "",
        ConnectionFate::KeepAliveSaid => "connection: keep-alive\r\n",
        ConnectionFate::Close => "connection: close\r\n",
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{fields}{connection}content-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::request::ConnectionFate::{Close, KeepAlive};
    use ResponseExtent::{Cut, Head, Whole};

    /// What a sink sends with this body, worker header and other headers.
    fn sent(
        body: SinkBody,
        worker_header: Option<&str>,
        headers: &[&str],
        response: impl FnOnce(&mut ResponseTable) -> &[u8],
    ) -> String {
        let mut settings = SinkSettings {
            body,
            worker_header: worker_header.map(str::to_owned),
            ..SinkSettings::default()
        };
        settings.headers = headers.iter().map(|line| (*line).to_owned()).collect();
        settings.faults = vec!["503:1%".parse().unwrap()];
        String::from_utf8_lossy(response(&mut ResponseTable::render(&settings, 3..5))).into_owned()
    }

    #[test]
    fn a_response_has_its_worker_its_number_and_the_configured_headers() {
        let settings = SinkSettings { body: SinkBody::Counter, ..SinkSettings::default() };
        let mut counting = ResponseTable::render(&settings, 3..5);
        let counter = counting.of(OK, 4, KeepAlive, Whole, 0x99_0102_0304);
        assert!(
            counter.ends_with(b"\x63arg\x44\x04\x03\x02\x01"),
            "in CBOR, and it starts again after 2^32 - 1"
        );
        assert_eq!(
            sent(SinkBody::Ok, Some("w"), &["server: nginx", "x: "], |table| table
                .of(OK, 4, KeepAlive, Whole, 0)),
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nserver: nginx\r\nx: \r\nw: 4\r\ncontent-length: 3\r\n\r\nok\n"
        );
        let other = sent(SinkBody::Ok, Some("w"), &[], |table| table.of(503, 3, Close, Whole, 0));
        assert!(other.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{other}");
        assert!(other.contains("w: 3\r\nconnection: close\r\n"), "{other}");
        for (fate, word) in [(KeepAlive, "keep-alive"), (Close, "close")] {
            let text = sent(SinkBody::Ok, None, &["Connection: Keep-Alive"], |table| {
                table.of(OK, 3, fate, Head, 0)
            });
            assert!(
                text.matches("onnection").count() == 1
                    && text.contains(&format!("connection: {word}\r\n")),
                "{text}"
            );
        }
    }

    #[test]
    fn stamps_are_the_last_header_and_leave_the_body_unchanged() {
        let mut responses = ResponseTable::render(
            &SinkSettings { body: SinkBody::Ok, ..SinkSettings::default() },
            3..5,
        );
        let mut text = |extent| {
            let response = responses.of(OK, 3, KeepAlive, extent, 0);
            String::from_utf8(stamped(response, [Nanos(5), Nanos(70)])).unwrap()
        };
        let whole = text(Whole);
        let head = text(Head);
        assert!(
            whole.ends_with("\r\ncontent-length: 3\r\nx-app-stamps: 5 70\r\n\r\nok\n"),
            "{whole}"
        );
        assert_eq!(head + "ok\n", whole);
    }

    #[test]
    fn a_response_to_head_has_the_length_of_the_body() {
        for (body, length) in [
            (SinkBody::Bytes(0), 0),
            (SinkBody::Ok, 3),
            (SinkBody::Counter, 32),
            (SinkBody::Bytes(70_000), 70_000),
        ] {
            let mut responses =
                ResponseTable::render(&SinkSettings { body, ..SinkSettings::default() }, 3..5);
            let mut of = |extent| responses.of(OK, 3, Close, extent, 7).to_vec();
            let head = of(Head);
            let whole = of(Whole);
            let tail = format!("connection: close\r\ncontent-length: {length}\r\n\r\n");
            assert!(
                head.ends_with(tail.as_bytes()) && whole.len() - head.len() == length,
                "{tail}"
            );
            for bodiless in [false, true] {
                let cut = of(Cut { bodiless }).len();
                assert!(
                    0 < cut && cut < whole.len() && (cut < head.len()) == (bodiless || length == 0),
                    "{tail}"
                );
            }
        }
    }
}
