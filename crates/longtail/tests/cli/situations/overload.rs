//! More is offered than the server can do.

use std::net::TcpStream;

use model::{Nanos, Verdict};

use super::{Caused, Cells, Row, Seen, four_slots_served};
use crate::clock::eventually;
use crate::lab::{Lab, PATIENCE, Running, free_port, has};
use crate::load::{load, study};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "an overload that time ends",
            how: "80 requests a second for 3 s to four slots of 100 ms",
            expected: OVERLOADED,
            cause: || loaded("--rate 80/s --for 3s"),
        },
        Row {
            name: "an overload that a count ends",
            how: "240 requests, 80 a second, to the same",
            expected: OVERLOADED,
            cause: || loaded("--rate 80/s -n 240"),
        },
        Row {
            name: "an overload that waits in the generator",
            how: "80 requests a second for 3 s to the same over 12 connections",
            expected: OVERLOADED,
            cause: || loaded("--rate 80/s --for 3s -c 12"),
        },
        Row {
            name: "an overload, and an objective that its times keep",
            how: "the same, --fail-if 'p99 > 100s'",
            expected: Cells { exit: Some(1), ..OVERLOADED },
            cause: || loaded("--rate 80/s --for 3s --fail-if p99>100s"),
        },
        Row {
            name: "an overload of independent arrivals",
            how: "80 requests a second for 3 s, --arrivals poisson",
            expected: OVERLOADED,
            cause: || loaded("--rate 80/s --for 3s --arrivals poisson"),
        },
        Row {
            name: "an overload with a connection for each request",
            how: "80 requests a second for 3 s, -k",
            expected: OVERLOADED,
            cause: || loaded("--rate 80/s --for 3s -k"),
        },
        Row {
            name: "an overload of which no more is sent than fits",
            how: "80 requests a second for 3 s over 4 connections, --late skip",
            expected: OVERLOADED,
            cause: || loaded("--rate 80/s --for 3s -c 4 --late skip"),
        },
        Row {
            name: "a rate that grows past what the server can do",
            how: "--ramp 20/s..120/s in 3 s",
            expected: OVERLOADED,
            cause: || loaded("--ramp 20/s..120/s --for 3s"),
        },
        Row {
            name: "a closed loop with more connections than slots",
            how: "8 connections to the same",
            expected: OVERLOADED,
            cause: || loaded("-c 8 --for 3s"),
        },
        Row {
            name: "a closed loop that thinks",
            how: "2 connections, --think 200ms",
            expected: UNLOADED,
            cause: || loaded("-c 2 --think 200ms --for 3s"),
        },
        Row {
            name: "a rate that is kept with a connection for each request",
            how: "20 requests a second for 3 s, -k",
            expected: UNLOADED,
            cause: || loaded("--rate 20/s --for 3s -k"),
        },
        Row {
            name: "a rate that is kept, and ended by a count",
            how: "60 requests, 20 a second",
            expected: UNLOADED,
            cause: || loaded("--rate 20/s -n 60"),
        },
        Row {
            name: "a rate that is kept, and an objective that is missed",
            how: "20 requests a second for 3 s, --fail-if 'p50 > 1ms'",
            expected: Cells { exit: Some(1), ..UNLOADED },
            cause: || loaded("--rate 20/s --for 3s --fail-if p50>1ms"),
        },
        Row {
            name: "a rate that is kept, and an objective that is kept",
            how: "20 requests a second for 3 s, --fail-if 'p50 > 100s'",
            expected: UNLOADED,
            cause: || loaded("--rate 20/s --for 3s --fail-if p50>100s"),
        },
        Row {
            name: "an overload of Puma that no median shows",
            how: "puma -t5:5, 100 ms a request, 60 requests a second for 4 s, keep-alive",
            expected: OVERLOADED,
            cause: of_puma,
        },
    ]
}

const OVERLOADED: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::ServerBound), limit: Some("not known"), discipline: None };

const UNLOADED: Cells = Cells { exit: Some(0), verdict: Some(Verdict::Unloaded), limit: None, discipline: None };

/// A load on four slots of 100 ms, in one line.
fn loaded(words: &str) -> Caused {
    let lab = Lab::new();
    let server = four_slots_served(&lab, Nanos::from_millis(100));
    let ended = load(&lab, &format!("{words} {}", server.url));
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}

/// Five threads of 100 ms are 50 requests a second, and on kept connections fewer.
fn of_puma() -> Caused {
    if !has("puma") {
        return Caused::Skipped("puma is not on PATH".to_owned());
    }
    let (lab, port) = (Lab::new(), free_port());
    let app = lab.write("app.ru", "run lambda { |_| sleep 0.1; [200, {}, ['ok']] }\n");
    let mut puma = lab.program("puma");
    puma.args(["-q", "-t5:5", "-b", &format!("tcp://127.0.0.1:{port}")]).arg(app);
    let _puma = Running::start(&mut puma);
    eventually(PATIENCE, || "no Puma".to_owned(), || TcpStream::connect(("127.0.0.1", port)).ok());
    let ended = load(&lab, &format!("--rate 60/s --for 4s http://127.0.0.1:{port}/"));
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}
