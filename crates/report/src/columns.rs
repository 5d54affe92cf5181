//! The columns of longtail's own table: one list for text and markdown, with what each word means.

use model::run::PERCENTILES;
use model::{Run, SweepStudy};

use crate::doubts;
use crate::number::{self, or_none};
use crate::table::Column;
use crate::verdicts;

/// One column: how it stands in a text table and in markdown, and what it shows of a run.
pub(crate) struct Shown {
    pub(crate) column: Column,
    /// The name where there is no band above.
    pub(crate) markdown: &'static str,
    pub(crate) cell: fn(&Run) -> String,
}

/// Band over the response times.
const RESPONSE_TIME: Option<&str> = Some("response time, ms");
const IDEAL: Option<&str> = Some("x ideal");
const FAIRNESS: Option<&str> = Some("fairness");

const fn shown(
    name: &'static str,
    width: usize,
    band: Option<&'static str>,
    markdown: &'static str,
    cell: fn(&Run) -> String,
) -> Shown {
    Shown { column: Column { name, width, band }, markdown, cell }
}

/// The `I`-th percentile of the table.
fn percentile<const I: usize>(run: &Run) -> String {
    or_none(run.response_time(PERCENTILES[I]).time(), number::milliseconds)
}

/// The widest relative deviation of a worker from an even share; a single worker has none.
fn widest_deviation(run: &Run) -> Option<f64> {
    let deviations = run.worker_deviations();
    (deviations.len() > 1).then(|| deviations.iter().fold(0.0, |widest: f64, d| widest.max(d.abs())))
}

/// Columns that are shown of an invalid run too: what was asked, and that it failed.
const OF_ANY_RUN: [&str; 7] = ["", "run", "mult", "conns", "limit", "requests", "errors"];

/// The cells of a run's row. An invalid run has no headline figure.
pub(crate) fn cells(study: &SweepStudy, run: &Run) -> Vec<String> {
    let hidden = verdicts::hides(run.judgement.as_ref());
    let cell = |shown: &Shown| {
        if hidden && !OF_ANY_RUN.contains(&shown.column.name) { number::NONE.to_owned() } else { (shown.cell)(run) }
    };
    of(study).iter().map(cell).collect()
}

/// The columns of the study's table, in order. The first is the mark of a doubt.
pub(crate) fn of(study: &SweepStudy) -> Vec<Shown> {
    let mut columns = vec![shown("", 1, None, "", |run| if doubts::is_doubtful(run) { "!" } else { "" }.to_owned())];
    if study.plan.repeat > 1 {
        columns.push(shown("run", 3, None, "run", |run| number::count(run.repeat)));
    }
    columns.extend([
        shown("mult", 5, None, "mult", |run| number::multiple(run.multiple)),
        shown("conns", 5, None, "conns", |run| number::count(run.connections)),
        shown("req/s", 6, None, "req/s", |run| number::rate(run.completed_rate())),
        shown("% max", 5, None, "% max", |run| or_none(run.of_maximum(), number::percent)),
        shown("p10", 5, RESPONSE_TIME, "p10, ms", percentile::<0>),
        shown("p25", 5, RESPONSE_TIME, "p25", percentile::<1>),
        shown("p50", 5, RESPONSE_TIME, "p50", percentile::<2>),
        shown("p75", 5, RESPONSE_TIME, "p75", percentile::<3>),
        shown("p90", 5, RESPONSE_TIME, "p90", percentile::<4>),
        shown("p95", 5, RESPONSE_TIME, "p95", percentile::<5>),
        shown("p99", 5, RESPONSE_TIME, "p99", percentile::<6>),
        shown("p99.9", 5, RESPONSE_TIME, "p99.9", percentile::<7>),
        shown("max", 5, RESPONSE_TIME, "max, ms", |run| or_none(run.max_response_time().time(), number::milliseconds)),
        shown("tail", 5, None, "tail", |run| or_none(run.long_tail(), number::times)),
        shown("p50", 5, IDEAL, "p50 x ideal", |run| or_none(run.of_ideal(0.5), number::times)),
        shown("p99", 5, IDEAL, "p99 x ideal", |run| or_none(run.of_ideal(0.99), number::times)),
        shown("Jain", 5, FAIRNESS, "Jain", |run| or_none(run.fairness(), number::index)),
        shown("worker ±%", 9, FAIRNESS, "worker ±%", |run| or_none(widest_deviation(run), number::percent_tenths)),
        shown("limit", 9, None, "limit", |run| verdicts::word(run.judgement.as_ref()).to_owned()),
        shown("requests", 8, None, "requests", |run| number::count(run.tally.counts.total())),
        shown("errors", 7, None, "errors", |run| number::count(run.tally.counts.failed())),
    ]);
    columns
}

/// What the words of the head mean, in the order of the columns.
pub(crate) fn words(study: &SweepStudy) -> Vec<(&'static str, &'static str)> {
    let run = (study.plan.repeat > 1).then_some(("run", "which pass over the multiples, each on a fresh server"));
    let words = [
        ("mult", "connections / slots; conns: connections in total"),
        ("req/s", "good answers (2xx, 3xx) per second of the measured window"),
        ("% max", "req/s in % of the theoretical maximum, slots / service time"),
        ("p10 to max", "response time of good answers: from when a request was due to its last byte"),
        ("tail", "max / p10"),
        ("x ideal", "response time / ideal; ideal: all wait in one line, service time x max(1, mult)"),
        ("Jain", "fairness among connections: 1 when all get the same, 1/n when one of n gets all"),
        ("worker ±%", "the worker furthest from an even share, in % of that share"),
        ("limit", "what limited the run: the server, the generator, or none (it kept up); INVALID: see the verdicts"),
        ("requests", "planned in the measured window; errors: those without a good answer"),
        ("-", "not known, or too few answers to tell, or unanswered requests could change it"),
        ("!", "a number of this row may be spoiled: see the caveats"),
    ];
    run.into_iter().chain(words).collect()
}
