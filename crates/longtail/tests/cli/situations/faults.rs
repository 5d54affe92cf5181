//! Servers, kernels and users that do what nobody expects.

use model::Verdict;

use super::{Caused, Cells, Row, Seen};
use crate::lab::{Lab, free_port};
use crate::load::receiver::Receiver;
use crate::load::{load, study};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "nobody listens",
            how: "a port without a listener",
            expected: Cells { exit: Some(2), ..Cells::default() },
            cause: || Caused::Seen(Seen::exit(&Lab::new().run(&format!("load http://127.0.0.1:{}/", free_port())))),
        },
        Row {
            name: "a server that answers with errors only",
            how: "503 to every request",
            expected: INVALID,
            cause: || of_answer("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"),
        },
        Row {
            name: "a server that speaks no HTTP",
            how: "another protocol's greeting to every request",
            expected: INVALID,
            cause: || of_answer("SSH-2.0-server\r\n\r\n"),
        },
    ]
}

const INVALID: Cells = Cells { exit: Some(3), verdict: Some(Verdict::Invalid), limit: None, discipline: None };

/// A load on a server that has this one answer.
fn of_answer(answer: &'static str) -> Caused {
    let (lab, server) = (Lab::new(), Receiver::answering(answer));
    let ended = load(&lab, &format!("-n 20 -c 2 {}", server.url()));
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}
