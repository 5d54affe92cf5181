//! The figures of a load's answer: rates, percentiles with their intervals, and a picture: bars of the distribution of a closed loop,
//! seconds of an open one.

use std::fmt::Write as _;

use model::series::Second;
use model::{Histogram, LoadStudy, Nanos};

use crate::number;
use crate::summary::{SUMMARY_PERCENTILES, SummaryRun};
use crate::trust::is_uncertain;
use crate::width::Width;

/// Bars and seconds at the most.
const BARS: usize = 6;
const PARTS: usize = 10;
/// Characters of the longest bar.
const BAR: usize = 30;
/// A column of the percentiles.
const CELL: usize = 11;

/// All figures, on lines.
pub(crate) fn figures(study: &LoadStudy, run: &SummaryRun, width: Width) -> String {
    let mut text = String::new();
    crate::width::wrap(&mut text, width, "  ", &rates(run));
    if run.response_ms.mean.is_none() {
        return text;
    }
    text.push('\n');
    text.push_str(&percentiles(run));
    let picture = if run.rate.offered.is_some() {
        seconds(&study.run.tally.series.seconds)
    } else {
        bars(&study.run.tally.response_time)
    };
    if !picture.is_empty() {
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

fn percentiles(run: &SummaryRun) -> String {
    let times = &run.response_ms;
    let cells = [times.p50, times.p90, times.p95, times.p99, times.p999];
    let mut names = "  response time".to_owned();
    let mut values = format!("  {:<13}", "ms");
    let mut intervals = format!("  {:<13}", "95 % interval");
    let mut has_interval = false;
    for ((name, _), time) in SUMMARY_PERCENTILES.iter().zip(cells) {
        let interval = run.interval_ms.get(name);
        let mark = time.filter(|time| is_uncertain(*time, interval)).map_or("", |_| "?");
        let shown = time.map_or_else(|| "-".to_owned(), number::of_millis);
        let range = interval.filter(|_| time.is_some()).map_or(String::new(), range);
        has_interval |= !range.is_empty();
        _ = write!(names, "{name:>CELL$}");
        _ = write!(values, "{:>CELL$}", format!("{shown}{mark}"));
        _ = write!(intervals, "{range:>CELL$}");
    }
    let max = times.max.map_or_else(|| "-".to_owned(), number::of_millis);
    let mut text = format!("{names}{:>CELL$}\n{values}{max:>CELL$}\n", "max");
    if has_interval {
        _ = writeln!(text, "{}", intervals.trim_end());
    }
    text
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
fn seconds(seconds: &[Second]) -> String {
    if seconds.len() < 2 {
        return String::new();
    }
    let each = seconds.len().div_ceil(PARTS);
    let parts: Vec<&[Second]> = seconds.chunks(each).collect();
    let mean = |part: &&[Second]| {
        let completed: u64 = part.iter().map(|second| second.completed).sum();
        let sum: u64 = part.iter().map(|second| second.response_time_sum_ns).sum();
        (completed > 0).then(|| sum as f64 / completed as f64)
    };
    let longest = |part: &&[Second]| {
        part.iter().map(|second| second.response_time_max_ns).max().filter(|most| *most > 0).map(|most| most as f64)
    };
    let line = |name: &str, cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>8}")).collect();
        format!("  {name:<13}{}\n", cells.concat())
    };
    let row = |name: &str, values: &[Option<f64>]| {
        let shown = |value: &Option<f64>| number::or_none(*value, |nanos| number::milliseconds(Nanos(nanos as u64)));
        line(name, &values.iter().map(shown).collect::<Vec<_>>())
    };
    let ends: Vec<String> = (1..=parts.len()).map(|at| (at * each).min(seconds.len()).to_string()).collect();
    let means: Vec<Option<f64>> = parts.iter().map(mean).collect();
    let most: Vec<Option<f64>> = parts.iter().map(longest).collect();
    format!("{}{}{}", line("until second", &ends), row("mean, ms", &means), row("slowest, ms", &most))
}
