//! Where the time went, phase by phase, as far as the client can see, and what went over the wire.

use std::fmt::Write as _;

use model::{DurationSummary, LoadStudy};

use super::part::{Body, Part, Row, head};
use crate::number::{self, NONE, or_none};

/// The phases of the measured good answers; one that never occurred is a dash.
pub(crate) fn part(study: &LoadStudy) -> Option<Part> {
    let (run, phases) = (&study.run, &study.run.tally.phases);
    if run.tally.counts.good() == 0 {
        return None;
    }
    let mut name_resolution = DurationSummary::default();
    if let Some(time) = run.name_resolution {
        name_resolution.record(time);
    }
    let opened_before = if phases.connect.count == 0 && run.tally.connections_opened > 0 {
        "all before the measured requests"
    } else {
        ""
    };
    let rows = [
        row("name resolution", &name_resolution, if name_resolution.count > 0 { "once, before the start" } else { "" }),
        row("connect", &phases.connect, opened_before),
        row("TLS handshake", &phases.handshake, ""),
        row("request write", &phases.write, ""),
        row("time to first byte", &phases.first_byte, ""),
        row("response read", &phases.read, ""),
    ];
    let table = Body::Table(head(["", "count", "average", "fastest", "slowest"]), rows.into());
    Some(Part::new("details by phase of the good answers, ms", vec![table]))
}

fn row(name: &str, phase: &DurationSummary, note: &str) -> Row {
    let occurred = phase.count > 0;
    let [mean, min, max] = [phase.mean(), occurred.then_some(phase.min), occurred.then_some(phase.max)]
        .map(|time| or_none(time, number::milliseconds));
    let count = if occurred { number::count(phase.count) } else { NONE.to_owned() };
    Row::new([name.to_owned(), count, mean, min, max], note)
}

/// Connections and bytes of the whole run, unmeasured requests included.
pub(crate) fn traffic(study: &LoadStudy) -> Part {
    let (run, tally) = (&study.run, &study.run.tally);
    let seconds = run.elapsed.as_secs_f64();
    let bytes = |name: &str, bytes: u64| {
        let per_second = (seconds > 0.0).then(|| bytes as f64 / seconds);
        let per_second = or_none(per_second, |rate| format!("{}/s", number::bytes(rate)));
        Row::new([name.to_owned(), number::count(bytes), number::bytes(bytes as f64), per_second], "")
    };
    let mut connections = format!(
        "{} opened, {} closed by the server between two requests",
        number::count_of(tally.connections_opened, "connection"),
        number::count(tally.closed_by_server)
    );
    if tally.closed_for_unasked > 0 {
        let unasked = number::count(tally.closed_for_unasked);
        _ = write!(connections, ", {unasked} by us, because it sent then what nobody had asked for");
    }
    let table = vec![bytes("received", tally.received_bytes), bytes("sent", tally.sent_bytes)];
    let bodies = vec![Body::Lines(vec![connections]), Body::Table(head(["", "bytes", "", ""]), table)];
    Part::detail(format!("over the wire, in all {}", number::length(run.elapsed)), bodies)
}
