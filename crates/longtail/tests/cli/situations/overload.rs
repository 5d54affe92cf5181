//! More is offered than the server can do.

use model::{Nanos, Verdict};

use super::limits::four_slots;
use super::{Caused, Cells, Row, Seen};
use crate::lab::Lab;
use crate::load::{load, study, url};

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
    ]
}

const OVERLOADED: Cells =
    Cells { exit: Some(0), verdict: Some(Verdict::ServerBound), limit: Some("not known"), discipline: None };

/// A load on four slots of 100 ms, in one line.
fn loaded(words: &str) -> Caused {
    let (lab, sink) = (Lab::new(), four_slots(Nanos::from_millis(100)));
    let ended = load(&lab, &format!("{words} {}", url(&sink)));
    Caused::Seen(Seen::load(&ended, &study(&lab)))
}
