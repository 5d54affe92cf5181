//! Times of a load's requests: of the good answers, of the generator itself, of the failures (another population, never mixed
//! with the first), the slowest one by one, by phase, and over time.

use model::histogram::rank;
use model::series::Second;
use model::warnings::LOAD_PERCENTILES;
use model::{DurationSummary, Histogram, LoadStudy, Nanos, Pace, Profile, Quantile, Tally};

use crate::intervals;
use crate::load_facts::{good_answers, sent};
use crate::number::{self, NONE, count_of};
use crate::tree::{DataTable, ReportSection, TableCell, TableRow};

/// From this percentile on it matters how many answers stand above.
const HIGH: f64 = 0.95;

/// Response time and service time of the good answers, side by side.
pub(crate) fn answers(study: &LoadStudy) -> Option<ReportSection> {
    let tally = &study.run.tally;
    if tally.counts.good() == 0 {
        return None;
    }
    let row = |name: &str, [response, service]: [Option<Nanos>; 2], [interval, part]: [String; 2]| {
        let [response, service] = [response, service].map(TableCell::time);
        TableRow::new([name.into(), response, interval.into(), part.into(), service])
    };
    let both = |figure: fn(&Histogram) -> Option<Nanos>| [figure(&tally.response_time), figure(&tally.service_time)];
    let nothing = || [String::new(), String::new()];
    let failed = tally.counts.failed();
    let left_out = if failed == 0 { String::new() } else { format!("{} left out", count_of(failed, "request")) };
    let mut rows = vec![
        row("mean", both(Histogram::mean), nothing()).noted(left_out),
        row("std deviation", both(Histogram::standard_deviation), nothing()),
    ];
    let mut last_note = String::new();
    for q in LOAD_PERCENTILES {
        let times = [study.run.response_time(q), study.run.service_time(q)];
        // The same reason again says nothing.
        let note = beside(tally, q, times[0]);
        let is_new = times[0].time().is_some() || note != last_note;
        let known = intervals::cells(study.run.statistics.as_ref(), q, times[0]);
        let shown = row(&number::percentile(q), times.map(Quantile::time), known);
        rows.push(if is_new { shown.noted(note.as_str()) } else { shown });
        last_note = note;
    }
    let longest = [tally.longest_response_time(), longest_service_time(tally)].map(Quantile::time);
    let endless = format!("{} timed out or in flight", number::count(tally.counts.censored()));
    rows.push(row("max", longest, nothing()).noted(if longest[0].is_none() { endless } else { String::new() }));
    let table = DataTable::new(["", "response time", "95 % interval", "of it ours", "service time"], rows);
    Some(ReportSection::new(format!("times of {}, ms", good_answers(study))).table(table))
}

/// What supports a percentile, or why there is none.
fn beside(tally: &Tally, q: f64, time: Quantile) -> String {
    let counts = &tally.counts;
    match time {
        Quantile::Time(_) if q >= HIGH => {
            // The rank is among those that may still have come too; they stand above all answers.
            let above = counts.good().saturating_sub(rank(q, counts.good() + counts.censored()));
            format!("{} above", number::count(above))
        }
        Quantile::Time(_) | Quantile::NotPrinted => String::new(),
        Quantile::TooFew => "too few answers".to_owned(),
        Quantile::Growing => "no steady state".to_owned(),
        Quantile::Unanswered => unanswered(counts.failed()),
    }
}

fn unanswered(n: u64) -> String {
    format!("{} had no good answer", number::count(n))
}

/// As [`Tally::longest_response_time`].
fn longest_service_time(tally: &Tally) -> Quantile {
    match tally.service_time.max() {
        Some(max) if tally.counts.censored() == 0 => Quantile::Time(max),
        _ => Quantile::Unanswered,
    }
}

/// The head of times of one kind.
const DISTRIBUTION: [&str; 6] = ["", "requests", "mean", "p50", "p99", "max"];

/// What the generator itself added: send lag, and the wait for a connection.
pub(crate) fn generator(study: &LoadStudy) -> Option<ReportSection> {
    let tally = &study.run.tally;
    let lag = &tally.send_lag;
    if lag.count() == 0 {
        return None;
    }
    let queued = tally.queued;
    let includes = if queued.count > 0 { "includes the wait for a connection" } else { "" };
    let mut rows = vec![distribution("send lag", lag).noted(includes)];
    if tally.read_lag.count() > 0 {
        rows.push(distribution("read lag", &tally.read_lag).noted("by the kernel's stamps; in none of the times"));
    }
    if queued.count > 0 {
        let [mean, max] = [queued.mean(), Some(queued.max)].map(TableCell::time);
        let name = "queued in the generator".into();
        let cells = [name, TableCell::count(queued.count), mean, NONE.into(), NONE.into(), max];
        rows.push(TableRow::new(cells).noted("due while every connection was busy"));
    }
    let title = format!("the generator's own part, ms, of {} sent", count_of(sent(study), "request"));
    Some(ReportSection::new(title).table(DataTable::new(DISTRIBUTION, rows)))
}

/// The times of what failed and had an end.
pub(crate) fn failures(study: &LoadStudy) -> Option<ReportSection> {
    let times = &study.run.tally.failed_response_time;
    let rows = (times.count() > 0).then(|| distribution("response time", times));
    let title = "failures that ended: another population, in none of the figures above (timeouts not among them), ms";
    ReportSection::new(title).table(DataTable::new(DISTRIBUTION, rows)).filled()
}

/// Count, mean, p50, p99 and longest; a percentile needs a time above it.
fn distribution(name: &str, times: &Histogram) -> TableRow {
    let at = |q: f64| {
        let is_supported = times.count() as f64 * (1.0 - q) > 1.0 - 1e-9;
        times.quantile(q).filter(|_| is_supported)
    };
    let [mean, p50, p99, max] = [times.mean(), at(0.5), at(0.99), times.max()].map(TableCell::time);
    TableRow::new([name.into(), TableCell::count(times.count()), mean, p50, p99, max])
}

/// The slowest good answers, each with the time at which it was due: what else happened then?
pub(crate) fn slowest(study: &LoadStudy) -> Option<ReportSection> {
    let rows = study.run.tally.slowest.requests.iter().map(|request| {
        let due = TableCell::number(Some(request.due.as_secs_f64()), |due| number::fixed(due, 3));
        let [response, service] = [request.response_time, request.service_time].map(|time| TableCell::time(Some(time)));
        TableRow::new([due, response, service])
    });
    let table = DataTable::new(["due at, s", "response time", "service time"], rows);
    ReportSection::detail("slowest good answers, ms").table(table).filled()
}

/// The phases of the measured good answers; one that never occurred is a dash.
pub(crate) fn phases(study: &LoadStudy) -> Option<ReportSection> {
    let (run, phases) = (&study.run, &study.run.tally.phases);
    if run.tally.counts.good() == 0 {
        return None;
    }
    let mut name_resolution = DurationSummary::default();
    if let Some(time) = study.name_resolution {
        name_resolution.record(time);
    }
    let is_open = phases.connect.count == 0 && run.tally.connections_opened > 0;
    let row = |name: &str, phase: &DurationSummary| {
        let occurred = phase.count > 0;
        let times = [phase.mean(), occurred.then_some(phase.min), occurred.then_some(phase.max)].map(TableCell::time);
        let count = if occurred { TableCell::count(phase.count) } else { NONE.into() };
        TableRow::new([name.into(), count].into_iter().chain(times))
    };
    let rows = [
        row("name resolution", &name_resolution).noted(if name_resolution.count > 0 {
            "once, before the start"
        } else {
            ""
        }),
        row("connect", &phases.connect).noted(if is_open { "all before the measured requests" } else { "" }),
        row("TLS handshake", &phases.handshake),
        row("request write", &phases.write),
        row("time to first byte", &phases.first_byte),
        row("response read", &phases.read),
    ];
    let table = DataTable::new(["", "count", "average", "fastest", "slowest"], rows);
    Some(ReportSection::new("details by phase of the good answers, ms").table(table))
}

/// Slices at the most.
const SLICES: usize = 12;

/// The run in a few slices of time: whether it was the same all along, or fell behind. A request is counted in the second in which
/// it ended: those that ended after the window have a slice of their own. Nothing where the run is too short to have two slices.
pub(crate) fn over_time(study: &LoadStudy) -> Option<ReportSection> {
    let seconds = &study.run.tally.series.seconds;
    let measured = study.run.measured.as_secs_f64();
    // The second in which the window ends belongs to it, if only in part.
    let (window, drain) = seconds.split_at(seconds.len().min(measured.ceil() as usize));
    if window.len() < 2 {
        return None;
    }
    let length = slice_length(study, window.len());
    let in_window = window.chunks(length).enumerate().map(|(at, slice)| {
        let from = at * length;
        let covered = (measured - from as f64).min(slice.len() as f64);
        slice_row(TableCell::count(from as u64), Some(covered), slice)
    });
    let has_drained = drain.iter().any(|second| second.completed + second.failed > 0);
    let after = has_drained.then(|| slice_row("after".into(), None, drain));
    let columns = ["from second", "answers", "per second", "mean", "longest", "failed"];
    let table = DataTable { lead: 0, ..DataTable::new(columns, in_window.chain(after)) };
    let title = "over time, by the second in which a request ended; response times of good answers in ms";
    Some(ReportSection::detail(title).table(table))
}

/// Seconds a slice: a step each, where steps fit.
fn slice_length(study: &LoadStudy, seconds: usize) -> usize {
    if let Pace::Open { profile: Profile::Steps { each, .. }, .. } = &study.plan.pace {
        let step = (each.0 / 1_000_000_000) as usize;
        let is_whole = Nanos::from_secs(step as u64) == *each;
        if step > 0 && is_whole && seconds.div_ceil(step) <= SLICES {
            // Halves say more about a step than its mean, where there is room for them.
            let has_room = step.is_multiple_of(2) && seconds.div_ceil(step / 2) <= SLICES;
            return if has_room { step / 2 } else { step };
        }
    }
    seconds.div_ceil(SLICES)
}

fn slice_row(from: TableCell, covered: Option<f64>, slice: &[Second]) -> TableRow {
    let sum = |part: fn(&Second) -> u64| slice.iter().map(part).sum::<u64>();
    let completed = sum(|second| second.completed);
    let longest = slice.iter().map(|second| second.response_time_max_ns).max().filter(|_| completed > 0).map(Nanos);
    let mean = sum(|second| second.response_time_sum_ns).checked_div(completed).map(Nanos);
    let per_second = covered.filter(|covered| *covered > 0.0).map(|covered| completed as f64 / covered);
    TableRow::new([
        from,
        TableCell::count(completed),
        TableCell::number(per_second, |rate| number::or_zero(rate, number::rate)),
        TableCell::time(mean),
        TableCell::time(longest),
        TableCell::count(sum(|second| second.failed)),
    ])
}
