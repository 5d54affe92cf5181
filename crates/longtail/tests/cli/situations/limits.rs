//! What limits a run, by its name.

use model::{Nanos, Verdict};
use sink::{Delay, Queue, Settings, Sink};

use super::{Caused, Cells, Row, Seen};
use crate::clock::SteadyClock;
use crate::lab::Lab;
use crate::load::{load, study, url};

pub(super) fn rows() -> Vec<Row> {
    vec![Row {
        name: "a server that keeps up",
        how: "20 requests a second to four slots of 20 ms",
        expected: Cells { exit: Some(0), verdict: Some(Verdict::Unloaded), ..Cells::default() },
        cause: || {
            let sink = four_slots(Nanos::from_millis(20));
            let lab = Lab::new();
            let ended = load(&lab, &format!("--rate 20/s --for 3s {}", url(&sink)));
            Caused::Seen(Seen::load(&ended, &study(&lab)))
        },
    }]
}

/// A sink of four slots in one line, each held for so long.
pub(super) fn four_slots(held: Nanos) -> Sink {
    let settings = Settings {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        queue: Queue::Shared,
        workers: 2,
        threads: 2,
        delay: Delay::from(held),
        ..Settings::default()
    };
    Sink::start(settings, SteadyClock).unwrap()
}
