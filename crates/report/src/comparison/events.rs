//! What the event of each arm of a comparison cost (`--during`).

use judge::event_repeats::{RepeatedEvent, RepeatedTime};
use model::{ComparisonStudy, Run};

use super::summary::{SummaryEvent, shortened};
use crate::number;
use crate::run_summary::millis;
use crate::tree::{DataTable, TableColumn, TableRow};

/// The events of all arms that have one.
pub(crate) fn of(study: &ComparisonStudy) -> Vec<SummaryEvent> {
    let arms = 0..study.plan.arms.len();
    let mut events: Vec<SummaryEvent> = arms.filter_map(|arm| of_arm(study, arm)).collect();
    // Where several arms have the same event, each sentence says whose it is.
    let same = |event: &str| events.iter().filter(|other| other.event == event).count();
    let is_shared: Vec<bool> = events.iter().map(|event| same(&event.event) > 1).collect();
    for (event, is_shared) in events.iter_mut().zip(is_shared) {
        if is_shared {
            event.sentence = format!("{}: {}", event.called, event.sentence);
        }
    }
    events
}

fn of_arm(study: &ComparisonStudy, arm: usize) -> Option<SummaryEvent> {
    let of_this = study.runs.iter().filter(|run| run.arm == arm && run.is_sound());
    let runs: Vec<&Run> = of_this.map(|run| &run.run).collect();
    let stream = &study.plan.arm(arm).stream;
    let event = RepeatedEvent::of(&runs, stream.timeout)?;
    let median = |time: Option<RepeatedTime>| time.map(|time| millis(time.median));
    let interval = event.took.and_then(|took| took.interval);
    Some(SummaryEvent {
        arm: study.plan.letter(arm),
        called: study.plan.called(arm),
        event: event.event.clone(),
        runs: event.runs,
        took_ms: median(event.took),
        took_interval_ms: interval.map(|ends| ends.map(millis)),
        unserved_ms: median(event.unserved),
        longest_gap_ms: median(event.gap),
        requests: event.requests,
        failed: event.failed,
        failed_later: event.failed_later,
        p99_before_ms: event.p99_before.map(millis),
        p99_during_ms: event.p99_during.map(millis),
        sentence: event.sentence(),
    })
}

/// A row for each event; `None` if there is none.
pub(crate) fn table(events: &[SummaryEvent]) -> Option<DataTable> {
    if events.is_empty() {
        return None;
    }
    let seconds = |ms: f64| number::significant(ms / 1000.0);
    let time = |ms: Option<f64>| number::or_none(ms, |ms| number::or_zero(ms, number::significant));
    let columns = [
        ("", 0),
        ("the event", 0),
        ("took, s", 0),
        ("95 % interval", 3),
        ("none served, s", 2),
        ("requests", 2),
        ("failed", 0),
        ("p99 before, ms", 1),
        ("during", 1),
    ];
    let columns = columns.map(|(name, leaves)| TableColumn::new(name).leaving(leaves));
    let rows = events.iter().map(|event| {
        let interval =
            event.took_interval_ms.map(|[low, high]| format!("{}–{}", seconds(low), seconds(high)));
        TableRow::new([
            event.arm.clone(),
            shortened(&event.called),
            number::or_none(event.took_ms, seconds),
            number::or_none(interval, |text| text),
            number::or_none(event.unserved_ms, seconds),
            event.requests.to_string(),
            event.failed.to_string(),
            time(event.p99_before_ms),
            time(event.p99_during_ms),
        ])
    });
    Some(DataTable { lead: 2, ..DataTable::of_columns(columns, rows) })
}
