//! The sink's responses, rendered before the first request comes. Only the ledger's is rendered when it is asked for.

use crate::Ledger;
use crate::head::{Ending, Refusal};

/// The interim response that lets a client send its body.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

const BODY: &str = "ok\n";

/// The answers of every worker.
#[derive(Debug)]
pub(crate) struct Answers {
    by_worker: Vec<[Box<[u8]>; 3]>,
}

impl Answers {
    /// Renders them: `workers` names under the header `worker_header`.
    pub(crate) fn render(workers: u32, worker_header: &str) -> Answers {
        let of = |worker: u32, ending: Ending| {
            let fields = format!("content-type: text/plain\r\n{worker_header}: {worker}\r\n");
            response("200 OK", &fields, ending, BODY)
        };
        let all = [Ending::KeepAlive, Ending::KeepAliveSaid, Ending::Close];
        Answers { by_worker: (0..workers).map(|worker| all.map(|ending| of(worker, ending))).collect() }
    }

    /// A worker's answer; without its body for HEAD.
    pub(crate) fn of(&self, worker: u32, ending: Ending, bodiless: bool) -> &[u8] {
        let place = match ending {
            Ending::KeepAlive => 0,
            Ending::KeepAliveSaid => 1,
            Ending::Close => 2,
        };
        let whole = &self.by_worker[worker as usize][place];
        &whole[..whole.len() - if bodiless { BODY.len() } else { 0 }]
    }
}

/// The ledger as JSON; without its body for HEAD.
pub(crate) fn of_ledger(ledger: &Ledger, ending: Ending, bodiless: bool) -> Box<[u8]> {
    let body = serde_json::to_string(ledger).unwrap_or_default() + "\n";
    let whole = response("200 OK", "content-type: application/json\r\n", ending, &body);
    whole[..whole.len() - if bodiless { body.len() } else { 0 }].into()
}

/// The response to what is not served.
pub(crate) fn of_refusal(refusal: Refusal) -> Box<[u8]> {
    let (status, body) = match refusal {
        Refusal::Malformed => ("400 Bad Request", "this is not a HTTP/1.1 request\n"),
        Refusal::TooLarge => ("431 Request Header Fields Too Large", "the head may have 64 KiB and 128 fields\n"),
    };
    response(status, "content-type: text/plain\r\n", Ending::Close, body)
}

fn response(status: &str, fields: &str, ending: Ending, body: &str) -> Box<[u8]> {
    let connection = match ending {
        Ending::KeepAlive => "",
        Ending::KeepAliveSaid => "connection: keep-alive\r\n",
        Ending::Close => "connection: close\r\n",
    };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{fields}{connection}content-length: {length}\r\n\r\n{body}").into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_its_worker() {
        let answers = Answers::render(2, "x-worker");
        let text = std::str::from_utf8(answers.of(1, Ending::KeepAlive, false)).unwrap();
        assert_eq!(text, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-worker: 1\r\ncontent-length: 3\r\n\r\nok\n");
    }

    #[test]
    fn an_answer_without_body_says_how_long_it_would_be() {
        let answers = Answers::render(1, "x-worker");
        let text = std::str::from_utf8(answers.of(0, Ending::Close, true)).unwrap();
        assert!(text.ends_with("connection: close\r\ncontent-length: 3\r\n\r\n"), "{text}");
    }
}
