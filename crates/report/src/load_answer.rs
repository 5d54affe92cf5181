//! The figures of a load's answer: rates, percentiles with their intervals, and a picture: bars of the distribution of a closed loop,
//! seconds of an open one.

use std::fmt::Write as _;

use model::series::Second;
use model::{Histogram, LoadStudy, Nanos};

use crate::load::TimeSlice;
use crate::number::{self, or_none};
use crate::summary::SummaryRun;
use crate::tree::{DataTable, TableRow};
use crate::trust::is_uncertain;
use crate::width::{Width, wrap};

/// Bars and seconds at the most.
const BARS: usize = 6;
const PARTS: usize = 10;
/// Characters of what a row of parts is called, and of a part.
const NAME: usize = 13;
const CELL: usize = 8;
/// Characters of the longest bar.
const BAR: usize = 30;

/// The rates on a line, parted from the percentiles where there are any.
pub(crate) fn rates_and_gap(run: &SummaryRun, width: Width) -> String {
    let mut text = String::new();
    wrap(&mut text, width, "  ", &rates(run));
    if run.response_ms.mean.is_some() {
        text.push('\n');
    }
    text
}

/// How the times are spread, or how they went; in a full report both.
pub(crate) fn pictures(study: &LoadStudy, run: &SummaryRun, width: Width, is_full: bool) -> String {
    if run.response_ms.mean.is_none() {
        return String::new();
    }
    let is_open = run.rate.offered.is_some();
    let spread = if is_full || !is_open { bars(&study.run.tally.response_time) } else { String::new() };
    let over_time = if is_open { seconds(&study.run.tally.series.seconds, width) } else { String::new() };
    let mut text = String::new();
    for picture in [spread, over_time].iter().filter(|picture| !picture.is_empty()) {
        _ = write!(text, "\n{picture}");
    }
    text
}

/// `offered 500/s · sent 500/s · completed 499/s · 2500 requests, 0 failed`.
pub(crate) fn rates(run: &SummaryRun) -> String {
    let counts = &run.requests;
    let requests = number::or_none(counts.planned, |n| number::count_of(n, "request"));
    let requests = format!("{requests}, {} failed", number::or_none(counts.failed, number::count));
    let completed = number::or_none(run.rate.completed, number::rate_in_words);
    match (run.rate.offered, run.rate.sent) {
        (Some(offered), Some(sent)) => format!(
            "offered {}/s · sent {}/s · completed {completed}/s · {requests}",
            number::rate_in_words(offered),
            number::rate_in_words(sent)
        ),
        _ => format!("{completed} requests/s · {requests}"),
    }
}

/// The percentiles and their intervals; nothing of a run without a figure.
pub(crate) fn percentiles(run: &SummaryRun) -> DataTable {
    let times = &run.response_ms;
    if times.mean.is_none() {
        return DataTable::default();
    }
    let all = times.percentiles();
    let names = ["response time", "mean"].into_iter().chain(all.map(|(name, _)| name)).chain(["max"]);
    let alone = |time: Option<f64>| or_none(time, number::of_millis);
    let marked = |(name, time): (&'static str, Option<f64>)| {
        let is_uncertain = time.is_some_and(|time| is_uncertain(time, run.interval_ms.get(name)));
        format!("{}{}", alone(time), if is_uncertain { "?" } else { "" })
    };
    let values = ["ms".to_owned(), alone(times.mean)].into_iter().chain(all.map(marked)).chain([alone(times.max)]);
    let ranges = all.map(|(name, time)| run.interval_ms.get(name).filter(|_| time.is_some()).map(range));
    let intervals = ranges.iter().any(Option::is_some).then(|| {
        let named = ["95 % interval".to_owned(), String::new()];
        TableRow::new(named.into_iter().chain(ranges.map(Option::unwrap_or_default)))
    });
    DataTable::new(names, std::iter::once(TableRow::new(values)).chain(intervals))
}

/// `21.3–27.3`, `>29.1`.
pub(crate) fn range(ends: &[Option<f64>; 2]) -> String {
    let short = |end: f64| {
        let text = number::of_millis(end);
        if text.contains('.') && text.len() > 4 { text[..4].trim_end_matches('.').to_owned() } else { text }
    };
    match ends {
        [Some(low), Some(high)] => format!("{}–{}", short(*low), short(*high)),
        [Some(low), None] => format!(">{}", short(*low)),
        [None, Some(high)] => format!("<{}", short(*high)),
        [None, None] => String::new(),
    }
}

/// How many requests took how long: bars between round times.
fn bars(times: &Histogram) -> String {
    let (Some(from), Some(to), Some(median)) = (times.quantile(0.01), times.max(), times.quantile(0.5)) else {
        return String::new();
    };
    // Round times, 1 2 5 10 …, from below the median on to above the longest.
    let round = (0..).map(|n| [1.0, 2.0, 5.0][n % 3] * 10f64.powf((n / 3) as f64) * 1e3);
    let mut edges: Vec<u64> = round.map(|edge| edge as u64).take_while(|edge| *edge < to.0).collect();
    edges.retain(|edge| *edge > from.0.min(median.0));
    if edges.is_empty() {
        return String::new();
    }
    let keep = edges.len().saturating_sub(BARS - 1);
    edges.drain(..keep);
    let mut bins: Vec<(u64, u64, u64)> = Vec::new();
    let mut low = 0;
    for edge in edges.into_iter().chain([u64::MAX]) {
        let in_bin = |time: &Nanos| time.0 > low && time.0 <= edge || low == 0 && time.0 == 0;
        bins.push((low, edge, times.buckets().filter(|(time, _)| in_bin(time)).map(|(_, n)| n).sum()));
        low = edge;
    }
    let most = bins.iter().map(|(_, _, n)| *n).max().unwrap_or(0).max(1);
    let unit = |nanos: u64| number::rate_in_words(Nanos(nanos).as_millis_f64());
    let mut text = String::new();
    for (low, high, n) in bins {
        let high = if high == u64::MAX { unit(to.0) } else { unit(high) };
        let share = crate::sentences::percent(n as f64 / times.count().max(1) as f64);
        let bar = "█".repeat((n as f64 / most as f64 * BAR as f64).round() as usize);
        let line = format!("  {:>7} to {high:>7} ms  {share:>6}  {bar}", unit(low));
        _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// A part of an open loop's run: its seconds' mean and longest response times.
fn seconds(seconds: &[Second], width: Width) -> String {
    if seconds.len() < 2 {
        return String::new();
    }
    let room = width.columns().map_or(PARTS, |columns| columns.saturating_sub(NAME + 2) / CELL).clamp(1, PARTS);
    let each = seconds.len().div_ceil(room);
    let parts: Vec<TimeSlice> = seconds.chunks(each).map(TimeSlice::of).collect();
    let line = |name: &str, cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>CELL$}")).collect();
        format!("  {name:<NAME$}{}\n", cells.concat())
    };
    let row = |name: &str, of: fn(&TimeSlice) -> Option<Nanos>| {
        line(name, &parts.iter().map(|part| or_none(of(part), number::milliseconds)).collect::<Vec<_>>())
    };
    let ends: Vec<String> = (1..=parts.len()).map(|at| (at * each).min(seconds.len()).to_string()).collect();
    let [mean, slowest] = [row("mean, ms", |part| part.mean), row("slowest, ms", |part| part.longest)];
    format!("{}{mean}{slowest}", line("until second", &ends))
}
