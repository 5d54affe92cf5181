//! The table of a sweep that another generator drove, and what stands below it.

use std::fmt::Write as _;

use model::run::PERCENTILES;
use model::{ClaimedRow, SweepStudy};

use super::{count, findings, is_doubtful, machine, made_by, word};
use crate::load::text::wrap;
use crate::number::{self, or_none};
use crate::table::{self, Column};

/// One column, as in the table of our own runs.
pub(crate) struct Shown {
    pub(crate) column: Column,
    /// The name where there is no band above.
    pub(crate) markdown: &'static str,
    pub(crate) cell: fn(&ClaimedRow) -> String,
}

const TIMES: Option<&str> = Some("times by the other generator, ms");
const IDEAL: Option<&str> = Some("x ideal");

const fn shown(
    name: &'static str,
    width: usize,
    band: Option<&'static str>,
    markdown: &'static str,
    cell: fn(&ClaimedRow) -> String,
) -> Shown {
    Shown { column: Column { name, width, band }, markdown, cell }
}

/// The `I`-th percentile of the table, where it was printed.
fn percentile<const I: usize>(row: &ClaimedRow) -> String {
    or_none(row.run.claim.percentile(PERCENTILES[I]), number::milliseconds)
}

/// The widest relative deviation of a worker from an even share; a single worker has none.
fn widest_deviation(row: &ClaimedRow) -> Option<f64> {
    let deviations = row.worker_deviations();
    (deviations.len() > 1).then(|| deviations.iter().fold(0.0, |widest: f64, d| widest.max(d.abs())))
}

/// The columns, in order. The first is the mark of a doubt.
pub(crate) fn columns(study: &SweepStudy) -> Vec<Shown> {
    let mut columns = vec![shown("", 1, None, "", |row| if is_doubtful(&row.run) { "!" } else { "" }.to_owned())];
    if study.plan.repeat > 1 {
        columns.push(shown("run", 3, None, "run", |row| number::count(row.repeat)));
    }
    columns.extend([
        shown("mult", 5, None, "mult", |row| number::multiple(row.multiple)),
        shown("conns", 5, None, "conns", |row| number::count(row.run.connections)),
        shown("req/s", 6, None, "req/s", |row| or_none(row.run.claim.rate_per_s, number::rate)),
        shown("% max", 5, None, "% max", |row| or_none(row.of_maximum(), number::percent)),
        shown("mean", 5, TIMES, "mean, ms", |row| or_none(row.run.claim.mean, number::milliseconds)),
        shown("p10", 5, TIMES, "p10, ms", percentile::<0>),
        shown("p25", 5, TIMES, "p25", percentile::<1>),
        shown("p50", 5, TIMES, "p50", percentile::<2>),
        shown("p75", 5, TIMES, "p75", percentile::<3>),
        shown("p90", 5, TIMES, "p90", percentile::<4>),
        shown("p95", 5, TIMES, "p95", percentile::<5>),
        shown("p99", 5, TIMES, "p99", percentile::<6>),
        shown("p99.9", 5, TIMES, "p99.9", percentile::<7>),
        shown("max", 5, TIMES, "max, ms", |row| or_none(row.run.claim.max, number::milliseconds)),
        shown("tail", 5, None, "tail", |row| or_none(row.long_tail(), number::times)),
        shown("p50", 5, IDEAL, "p50 x ideal", |row| or_none(row.of_ideal(0.5), number::times)),
        shown("p99", 5, IDEAL, "p99 x ideal", |row| or_none(row.of_ideal(0.99), number::times)),
        shown("worker ±%", 9, None, "worker ±%", |row| or_none(widest_deviation(row), number::percent_tenths)),
        shown("claim", 10, None, "claim", |row| word(row.run.audit).to_owned()),
        shown("requests", 8, None, "requests", |row| count(row.run.claim.requests)),
        shown("errors", 7, None, "errors", |row| count(row.run.claim.failed)),
        shown("by", 13, None, "by", |row| row.run.name()),
    ]);
    columns
}

/// What the words of the head mean.
pub(crate) fn words(study: &SweepStudy) -> Vec<(&'static str, &'static str)> {
    let run = (study.plan.repeat > 1).then_some(("run", "which pass over the multiples, each on a fresh server"));
    let words = [
        ("by", "who made the load and says all that stands in this row: nothing of it was measured by longtail"),
        ("mult", "connections / slots; conns: connections in total"),
        ("req/s", "requests per second, as it prints them; % max: in % of slots / service time"),
        ("mean to max", "its times, as it prints them; - where it does not print that percentile"),
        ("tail", "max / p10"),
        ("x ideal", "its time / ideal; ideal: all wait in one line, service time x max(1, mult)"),
        ("worker ±%", "the worker furthest from an even share, in % of that share, by the server's own statistics"),
        ("claim", "what longtail audit says of its figures: possible, doubtful, IMPOSSIBLE: see the claims"),
        ("requests", "those that it says ended; errors: bad statuses, errors and timeouts, as it counts them"),
        ("!", "a number of this row may be spoiled: see the claims and caveats"),
    ];
    words.into_iter().chain(run).collect()
}

fn laid_out(study: &SweepStudy) -> Vec<Column> {
    columns(study).into_iter().map(|shown| shown.column).collect()
}

pub(crate) fn cells(study: &SweepStudy, row: &ClaimedRow) -> Vec<String> {
    columns(study).iter().map(|shown| (shown.cell)(row)).collect()
}

/// The table's head.
pub(crate) fn head(study: &SweepStudy) -> String {
    table::head(&laid_out(study))
}

/// One run's line of the table.
pub fn row(study: &SweepStudy, row: &ClaimedRow) -> String {
    table::row(&laid_out(study), &cells(study, row)) + "\n"
}

/// What a row is called elsewhere.
pub(crate) fn label(study: &SweepStudy, row: &ClaimedRow) -> String {
    let multiple = number::multiple(row.multiple);
    let pass = if study.plan.repeat > 1 { format!(" run {}", number::count(row.repeat)) } else { String::new() };
    format!("{multiple}x{pass}")
}

/// Of each row: the audit's word, both accounts, and what there is to say of the claim; each with the lines that belong
/// to it.
pub(crate) fn claims(study: &SweepStudy) -> Vec<(String, Vec<String>)> {
    let of_row = |row: &ClaimedRow| {
        let run = &row.run;
        let warm_up = run.warm_up_requests.map(|n| format!(" and {} in its warm-up", number::count(n)));
        let told = or_none(run.claim.requests, |n| number::count_of(n, "request"));
        let server = match row.server_requests {
            Some(n) => format!("the server counted {}", number::count(n)),
            None => "the server's count is not known".to_owned(),
        };
        let first = format!(
            "{} {}: {} tells of {told}{}, {server}",
            label(study, row),
            word(run.audit),
            run.name(),
            warm_up.unwrap_or_default()
        );
        let mut lines = vec![made_by(run)];
        lines.extend(findings(run));
        lines.extend(machine(run).into_iter().map(|(seen, remedy)| format!("{seen} → {remedy}")));
        (first, lines)
    };
    study.claimed_runs.iter().map(of_row).collect()
}

/// [`claims`] as text.
pub(crate) fn claims_text(study: &SweepStudy) -> String {
    let mut text = String::new();
    for (first, lines) in claims(study) {
        _ = writeln!(text, "  {first}");
        for line in lines {
            wrap(&mut text, "        ", &line);
        }
    }
    if text.is_empty() { text } else { "claims\n".to_owned() + &text }
}
