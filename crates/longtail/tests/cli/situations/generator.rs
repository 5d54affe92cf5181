//! The generator is the limit, or was kept from its work.

use model::Clock as _;
use model::{Nanos, Verdict};
use rustix::process::Signal;

use super::limits::four_slots;
use super::{Caused, Cells, Row, Seen};
use crate::clock::{SteadyClock, eventually};
use crate::lab::{Lab, PATIENCE, Running};
use crate::load::{study, url};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row {
            name: "a generator that stands still, open loop",
            how: "SIGSTOP for a second of 8 s at 100 requests a second",
            expected: STOOD_STILL,
            cause: || stopped("--rate 100/s -c 300 --for 8s", Nanos::from_secs(1)),
        },
        Row {
            name: "a generator that stands still, closed loop",
            how: "SIGSTOP for 1.5 s of 5 s with four connections",
            expected: STOOD_STILL,
            cause: || stopped("-c 4 --for 5s", Nanos::from_millis(1_500)),
        },
        Row {
            name: "a generator that stands still, and an objective",
            how: "the same, --fail-if 'p50 > 100s'",
            expected: Cells { exit: Some(1), ..STOOD_STILL },
            cause: || stopped("-c 4 --for 5s --fail-if p50>100s", Nanos::from_millis(1_500)),
        },
    ]
}

const STOOD_STILL: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::GeneratorBound), limit: Some("generator"), discipline: None };

/// A load on four slots of 20 ms whose generator is stopped for so long.
fn stopped(words: &str, time: Nanos) -> Caused {
    let (lab, sink) = (Lab::new(), four_slots(Nanos::from_millis(20)));
    let running = Running::start(&mut lab.longtail(&format!("load --no-calibrate {words} {}", url(&sink))));
    eventually(PATIENCE, || "no load".to_owned(), || (sink.ledger().requests > 10).then_some(()));
    running.send(Signal::STOP);
    SteadyClock.sleep(time);
    running.send(Signal::CONT);
    let ended = running.end();
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}
