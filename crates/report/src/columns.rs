//! The columns of longtail's own table: one list for text and markdown, with what each word means.

use model::run::PERCENTILES;
use model::{Run, SweepStudy};

use crate::doubts;
use crate::number::{self, or_none};
use crate::shown::{self, Shown};
use crate::table::Band;
use crate::verdicts;
use crate::width::Width;

/// One column of this table.
pub(crate) type RunColumn = Shown<Run>;

/// Band over the response times.
const RESPONSE_TIME: Option<Band> = Some(Band { title: "response time, ms", short: "ms" });
const IDEAL: Option<Band> = Some(Band::of("x ideal"));
const FAIRNESS: Option<Band> = Some(Band::of("fairness"));

/// The `I`-th percentile of the table.
fn percentile<const I: usize>(run: &Run) -> String {
    or_none(run.response_time(PERCENTILES[I]).time(), number::milliseconds)
}

/// The widest relative deviation of a worker from an even share; a single worker has none.
pub(crate) fn widest(deviations: &[f64]) -> Option<f64> {
    (deviations.len() > 1).then(|| deviations.iter().fold(0.0, |widest: f64, d| widest.max(d.abs())))
}

/// The cells of a run's row, of these columns. An invalid run has no headline figure.
pub(crate) fn cells(columns: &[RunColumn], run: &Run) -> Vec<String> {
    shown::cells(columns, run, verdicts::hides(run.judgement.as_ref()))
}

/// The columns of the study's table, in order. The first is the mark of a doubt.
pub(crate) fn of(study: &SweepStudy) -> Vec<RunColumn> {
    let mut columns =
        vec![RunColumn::kept("", 1, |run| if doubts::is_doubtful(run) { "!" } else { "" }.to_owned()).of_any_run()];
    if study.plan.repeat > 1 {
        columns.push(RunColumn::kept("run", 3, |run| number::count(run.repeat)).of_any_run());
    }
    let longest = |run: &Run| or_none(run.max_response_time().time(), number::milliseconds);
    columns.extend([
        RunColumn::kept("mult", 5, |run| number::multiple(run.multiple)).of_any_run(),
        RunColumn::kept("conns", 5, |run| number::count(run.connections)).of_any_run(),
        RunColumn::kept("req/s", 6, |run| number::rate(run.completed_rate())),
        RunColumn::ranked(1, ("% max", 5), None, "% max", |run| or_none(run.of_maximum(), number::percent)),
        RunColumn::ranked(11, ("p10", 5), RESPONSE_TIME, "p10, ms", percentile::<0>),
        RunColumn::ranked(12, ("p25", 5), RESPONSE_TIME, "p25", percentile::<1>),
        RunColumn::ranked(2, ("p50", 5), RESPONSE_TIME, "p50", percentile::<2>),
        RunColumn::ranked(10, ("p75", 5), RESPONSE_TIME, "p75", percentile::<3>),
        RunColumn::ranked(8, ("p90", 5), RESPONSE_TIME, "p90", percentile::<4>),
        RunColumn::ranked(4, ("p95", 5), RESPONSE_TIME, "p95", percentile::<5>),
        RunColumn::ranked(0, ("p99", 5), RESPONSE_TIME, "p99", percentile::<6>),
        RunColumn::ranked(9, ("p99.9", 5), RESPONSE_TIME, "p99.9", percentile::<7>),
        RunColumn::ranked(3, ("max", 5), RESPONSE_TIME, "max, ms", longest),
        RunColumn::ranked(5, ("tail", 5), None, "tail", |run| or_none(run.long_tail(), number::times)),
        RunColumn::ranked(7, ("p50", 5), IDEAL, "p50 x ideal", |run| or_none(run.of_ideal(0.5), number::times)),
        RunColumn::ranked(7, ("p99", 5), IDEAL, "p99 x ideal", |run| or_none(run.of_ideal(0.99), number::times)),
        RunColumn::ranked(13, ("Jain", 5), FAIRNESS, "Jain", |run| or_none(run.fairness(), number::index)),
        RunColumn::ranked(13, ("worker ±%", 9), FAIRNESS, "worker ±%", |run| {
            or_none(widest(&run.worker_deviations()), number::percent_tenths)
        }),
        RunColumn::kept("limit", 9, |run| verdicts::word(run.judgement.as_ref()).to_owned()).of_any_run(),
        RunColumn::ranked(6, ("requests", 8), None, "requests", |run| number::count(run.tally.counts.total()))
            .of_any_run(),
        RunColumn::kept("errors", 7, |run| number::count(run.tally.counts.failed())).of_any_run(),
    ]);
    columns
}

/// The columns that there is room for, and those that are left out.
pub(crate) fn fitting(study: &SweepStudy, width: Width) -> (Vec<RunColumn>, Vec<RunColumn>) {
    shown::fitting(of(study), width)
}

/// What the words of the head mean, in the order of the columns; `left_out` of them are not explained.
pub(crate) fn words(study: &SweepStudy, left_out: &[RunColumn]) -> Vec<(&'static str, &'static str)> {
    let has = |name: &str| left_out.iter().all(|shown| shown.markdown != name);
    let run = (study.plan.repeat > 1).then_some(("run", "which pass over the multiples, each on a fresh server"));
    let requests = if has("requests") {
        ("requests", "planned in the measured window; errors: those without a good answer")
    } else {
        ("errors", "requests of the measured window without a good answer")
    };
    let times = match (has("p10, ms"), has("p50")) {
        (true, _) => "p10 to max",
        (false, true) => "p50 to max",
        (false, false) => "p99",
    };
    let words = [
        (true, ("mult", "connections / slots; conns: connections in total")),
        (true, ("req/s", "good answers (2xx, 3xx) per second of the measured window")),
        (has("% max"), ("% max", "req/s in % of the theoretical maximum, slots / service time")),
        (true, (times, "response time of good answers: from when a request was due to its last byte")),
        (has("tail"), ("tail", "max / p10")),
        (
            has("p99 x ideal"),
            ("x ideal", "response time / ideal; ideal: all wait in one line, service time x max(1, mult)"),
        ),
        (has("Jain"), ("Jain", "fairness among connections: 1 when all get the same, 1/n when one of n gets all")),
        (has("worker ±%"), ("worker ±%", "the worker furthest from an even share, in % of that share")),
        (
            true,
            (
                "limit",
                "what limited the run: the server, the generator, or none (it kept up); INVALID: see the verdicts",
            ),
        ),
        (true, requests),
        (true, ("-", "not known, or too few answers to tell, or unanswered requests could change it")),
        (true, ("!", "a number of this row may be spoiled: see the warnings")),
    ];
    let known = words.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, word)| word);
    run.into_iter().chain(known).collect()
}
