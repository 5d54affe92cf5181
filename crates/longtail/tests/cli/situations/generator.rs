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
    vec![Row {
        name: "a generator that stands still, open loop",
        how: "SIGSTOP for a second of 8 s at 100 requests a second",
        expected: Cells {
            exit: Some(0),
            verdict: Some(Verdict::GeneratorBound),
            limit: Some("generator"),
            discipline: None,
        },
        cause: || {
            let (lab, sink) = (Lab::new(), four_slots(Nanos::from_millis(20)));
            let words = format!("load --no-calibrate --rate 100/s -c 300 --for 8s {}", url(&sink));
            let running = Running::start(&mut lab.longtail(&words));
            eventually(PATIENCE, || "no load".to_owned(), || (sink.ledger().requests > 10).then_some(()));
            running.send(Signal::STOP);
            SteadyClock.sleep(Nanos::from_secs(1));
            running.send(Signal::CONT);
            let ended = running.end();
            Caused::Seen(Seen::load(&ended, &study(&lab)))
        },
    }]
}
