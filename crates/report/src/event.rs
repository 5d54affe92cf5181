//! An event in the middle of a run (`--during`): its requests before, during and after, the
//! server's processes, and what the server wrote.

use model::event_requests::RequestsOfPart;
use model::{EventRecord, Histogram, Nanos, ProcessRole, Run, SeenProcess};

use crate::number::{self, or_none};
use crate::text::{self, Width};
use crate::tree::{DataTable, ReportSection, TableRow};

/// The figures before, during and after the event, side by side; empty if the event was not done.
pub(crate) fn table(run: &Run) -> DataTable {
    let Some(requests) = run.event.as_ref().and_then(|event| event.requests.as_ref()) else {
        return DataTable::default();
    };
    let parts = [&requests.before, &requests.during, &requests.after];
    let row = |name: &str, cell: &dyn Fn(&RequestsOfPart) -> String| {
        TableRow::new(std::iter::once(name.to_owned()).chain(parts.map(cell)))
    };
    let time = |time: Option<Nanos>| or_none(time, number::milliseconds);
    let seconds = |time: Nanos| number::fixed(time.as_secs_f64(), 1);
    let quantile = |q: f64| move |part: &RequestsOfPart| time(part.response_time.quantile(q));
    let rows = [
        row("length, s", &|part| seconds(part.length)),
        row("requests", &|part| part.requests.to_string()),
        row("failed", &|part| part.failed.to_string()),
        row("p50, ms", &quantile(0.5)),
        row("p99, ms", &quantile(0.99)),
        row("longest, ms", &|part| time(Histogram::max(&part.response_time))),
        row("no response for, ms", &|part| time(Some(part.longest_gap.length))),
    ];
    DataTable::new(["", "before", "during", "after"], rows)
}

/// The same table as text; nothing if it is empty.
pub(crate) fn as_text(run: &Run, width: Width) -> String {
    let table = table(run);
    if table.rows.is_empty() { String::new() } else { text::table(&table, 2, width) }
}

/// What else was seen of the event.
pub(crate) fn section(run: &Run) -> Option<ReportSection> {
    let event = run.event.as_ref()?;
    let at = or_none(event.at, |at| format!("{} s", number::fixed(at.as_secs_f64(), 2)));
    let mut lines = vec![format!("{} at {at}: {}", event.planned.kind, event.done)];
    lines.extend(memory(event));
    lines.extend(
        event
            .phases
            .map(|[before, after]| format!("Puma's phase: {before} before, {after} at the end")),
    );
    lines.extend(event.others.map(|others| {
        format!(
            "CPUs that other programs used, of {}: {} before, {} in the busiest second since",
            others.of,
            number::fixed(others.before, 1),
            number::fixed(others.most_since, 1)
        )
    }));
    if let Some(line) = event.command.as_ref().and_then(|command| command.last_line.as_ref()) {
        lines.push(format!("the command's last line: {line}"));
    }
    let section = ReportSection::new("the event").lines(lines).table(processes(event));
    Some(section.lines(event.log.iter().map(|line| format!("log: {line}"))))
}

fn memory(event: &EventRecord) -> Option<String> {
    let mib = |bytes: u64| number::bytes(bytes as f64);
    let before = mib(event.memory_before?);
    let after = mib(event.memory_after?);
    Some(format!(
        "the server's memory, shared pages counted once: {before} before, {after} at the end"
    ))
}

/// The processes that changed, or served.
fn processes(event: &EventRecord) -> DataTable {
    let seconds = |time: Option<Nanos>| or_none(time, |time| number::fixed(time.as_secs_f64(), 2));
    let row = |process: &SeenProcess| {
        let role = match process.role {
            ProcessRole::First => "first process",
            ProcessRole::Worker => "worker",
            ProcessRole::Other => "other",
        };
        let boot = process.started.zip(process.serving).map(|(from, to)| to.saturating_sub(from));
        let started = match process.started {
            None => "before".to_owned(),
            started => seconds(started),
        };
        TableRow::new([
            process.pid.to_string(),
            role.to_owned(),
            started,
            seconds(boot),
            seconds(process.ended),
        ])
    };
    let rows = event.processes.iter().filter(|process| process.role != ProcessRole::Other);
    DataTable::new(
        ["process", "is", "started at, s", "served after, s", "ended at, s"],
        rows.map(row),
    )
}
