//! What app and server said over statsd while the runs went on: a line a metric.

use model::{MetricKind, Nanos, Run, StatsdMetric, StatsdReport, SweepStudy};

use crate::facts;
use crate::number::{self, NONE};

/// What stands above the lines.
pub(crate) const TITLE: &str = "heard over statsd in the window; total: what a counter counted, by its sample rate";

/// What the columns are.
pub(crate) const HEAD: [&str; 8] = ["", "type", "values", "total", "mean", "last", "min", "max"];

/// Metrics of a run that have a line; all are in the saved study.
const MOST_LINES: usize = 20;
/// Listening that takes more of one CPU is said.
const MUCH: f64 = 0.05;
/// So much of a metric and its tags is shown.
const WIDEST: usize = 60;

/// A line for each metric of each run that was listened to.
pub(crate) fn lines(study: &SweepStudy) -> Vec<Vec<String>> {
    let heard = study.runs.iter().filter_map(|run| Some((facts::label(study, run), run.heard.as_ref()?)));
    heard.flat_map(|(label, heard)| of_run(&label, heard)).collect()
}

/// A line for each metric, its name behind the run's.
pub(crate) fn of_run(label: &str, heard: &StatsdReport) -> Vec<Vec<String>> {
    let mut lines: Vec<_> = heard.series.iter().take(MOST_LINES).map(line).collect();
    if !label.is_empty() {
        for line in &mut lines {
            line[0].insert_str(0, &format!("{label} "));
        }
    }
    lines
}

fn line(series: &StatsdMetric) -> Vec<String> {
    let figure = |of: fn(&model::StatsdFigures) -> f64| {
        series.figures.as_ref().map_or_else(|| NONE.to_owned(), |figures| number::anything(of(figures)))
    };
    let total = if series.kind == MetricKind::Counter { figure(|figures| figures.sum) } else { NONE.to_owned() };
    vec![
        shown(series),
        series.kind.name().to_owned(),
        number::count(series.values),
        total,
        figure(|figures| figures.mean),
        figure(|figures| figures.last),
        figure(|figures| figures.min),
        figure(|figures| figures.max),
    ]
}

/// Metric and tags, cut where they are too long.
fn shown(series: &StatsdMetric) -> String {
    let tags = if series.tags.is_empty() { String::new() } else { format!(" {}", series.tags.join(",")) };
    let text = format!("{}{tags}", series.metric);
    if text.chars().count() <= WIDEST { text } else { text.chars().take(WIDEST - 1).chain(['…']).collect() }
}

/// What is to be said beside the lines, one a run.
pub(crate) fn missing(study: &SweepStudy) -> Vec<String> {
    let heard = study.runs.iter().filter_map(|run| Some((facts::label(study, run), run, run.heard.as_ref()?)));
    let line =
        |(label, run, heard): (String, &Run, &StatsdReport)| Some(format!("{label}: {}", beside(heard, run.elapsed)?));
    heard.filter_map(line).collect()
}

/// What of it is not in the lines, and what it cost where that is much; of a run of that length.
pub(crate) fn beside(heard: &StatsdReport, elapsed: Nanos) -> Option<String> {
    let share = heard.cpu.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    let cost = (share > MUCH).then(|| format!("listening took {} % of one CPU", number::percent(share)));
    let parts: Vec<String> = not_shown(heard).into_iter().chain(cost).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn not_shown(heard: &StatsdReport) -> Option<String> {
    let mut parts = Vec::new();
    if heard.packets == 0 {
        let before = match heard.before {
            0 => String::new(),
            n => format!(" ({} before it)", number::count_of(n, "line")),
        };
        return Some(format!("nothing came{before}"));
    }
    let more = heard.series.len().saturating_sub(MOST_LINES) as u64;
    let mut counted = |n: u64, what: &str| {
        if n > 0 {
            parts.push(format!("{} {what}", number::count(n)));
        }
    };
    counted(more, "further metrics, in the saved study");
    counted(heard.left_out, "lines of still further metrics were left out");
    counted(heard.dropped_by_kernel.unwrap_or(0), "packets were dropped by the kernel");
    counted(heard.no_metrics, "events and service checks");
    if heard.malformed > 0 {
        let first = heard.first_malformed.as_deref().unwrap_or_default();
        parts.push(format!("{} without statsd, the first '{first}'", number::count_of(heard.malformed, "line")));
    }
    if heard.packets > 0 && heard.dropped_by_kernel.is_none() {
        parts.push("whether the kernel dropped packets is not known".to_owned());
    }
    (!parts.is_empty()).then(|| format!("not in the table: {}", parts.join("; ")))
}
