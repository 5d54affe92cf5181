//! The columns of longtail's own table of bodies: one list for text, markdown and CSV's order, with what each word means.

use model::{BodiesStudy, BodyRun};

use crate::doubts::is_doubtful;
use crate::number::{self, or_none};
use crate::shown::{self, Shown};
use crate::table::Band;
use crate::verdicts;
use crate::width::Width;

/// One column of this table.
pub(crate) type BodyColumn = Shown<BodyRun>;

const RESPONSE_TIME: Option<Band> = Some(Band { title: "response time, ms", short: "ms" });
const ANSWER: Option<Band> = Some(Band::of("bytes an answer"));
const SERVER: Option<Band> = Some(Band::of("server"));

/// The percentiles of the table, as in Puma's script; the maximum stands beside them.
pub(crate) const PERCENTILES: [f64; 4] = [0.50, 0.75, 0.90, 0.99];

fn percentile<const I: usize>(run: &BodyRun) -> String {
    or_none(run.response_time(PERCENTILES[I]).time(), number::milliseconds)
}

fn longest(run: &BodyRun) -> String {
    or_none(run.run.max_response_time().time(), number::milliseconds)
}

fn mark(run: &BodyRun) -> String {
    if is_doubtful(&run.run) { "!" } else { "" }.to_owned()
}

/// The columns of the study's table, in order. The first is the mark of a doubt.
pub(crate) fn of(study: &BodiesStudy) -> Vec<BodyColumn> {
    let mut columns = vec![BodyColumn::kept("", 1, mark).of_any_run()];
    if study.plan.repeat > 1 {
        columns.push(BodyColumn::kept("run", 3, |run| number::count(run.run.repeat)).of_any_run());
    }
    if study.plan.sockets.len() > 1 {
        columns.push(BodyColumn::kept("socket", 6, |run| run.socket.to_string()).of_any_run());
    }
    columns.extend([
        BodyColumn::kept("KB", 6, |run| number::count(run.body.kilobytes)).of_any_run(),
        BodyColumn::kept("type", 6, |run| run.body.kind.name().to_owned()).of_any_run(),
        BodyColumn::ranked(5, ("conns", 5), None, "conns", |run| number::count(run.run.connections)).of_any_run(),
        BodyColumn::kept("req/s", 6, |run| number::rate(run.run.completed_rate())),
        BodyColumn::ranked(1, ("MB/s", 5), None, "MB/s", |run| number::megabytes(run.content_rate())),
        BodyColumn::ranked(2, ("p50", 5), RESPONSE_TIME, "p50, ms", percentile::<0>),
        BodyColumn::ranked(9, ("p75", 5), RESPONSE_TIME, "p75", percentile::<1>),
        BodyColumn::ranked(8, ("p90", 5), RESPONSE_TIME, "p90", percentile::<2>),
        BodyColumn::ranked(0, ("p99", 5), RESPONSE_TIME, "p99", percentile::<3>),
        BodyColumn::ranked(3, ("max", 5), RESPONSE_TIME, "max, ms", longest),
        BodyColumn::ranked(7, ("content", 9), ANSWER, "content bytes", |run| {
            or_none(run.content_bytes(), number::exact)
        }),
        BodyColumn::ranked(7, ("whole", 10), ANSWER, "whole bytes", |run| or_none(run.whole_bytes(), number::exact)),
        BodyColumn::ranked(4, ("CPU, ms", 7), SERVER, "CPU, ms/answer", |run| {
            or_none(run.server_cpu(), number::milliseconds)
        }),
        BodyColumn::ranked(4, ("MB", 5), SERVER, "memory, MB", |run| {
            or_none(run.server.memory_bytes, |bytes| number::megabytes(bytes as f64))
        }),
        BodyColumn::kept("limit", 9, |run| verdicts::word(run.run.judgement.as_ref()).to_owned()).of_any_run(),
        BodyColumn::ranked(6, ("requests", 8), None, "requests", |run| number::count(run.run.tally.counts.total()))
            .of_any_run(),
        BodyColumn::kept("errors", 6, |run| number::count(run.run.tally.counts.failed())).of_any_run(),
    ]);
    columns
}

/// The columns that there is room for, and those that are left out.
pub(crate) fn fitting(study: &BodiesStudy, width: Width) -> (Vec<BodyColumn>, Vec<BodyColumn>) {
    shown::fitting(of(study), width)
}

/// The cells of a run's row, of these columns. An invalid run has no headline figure.
pub(crate) fn cells(columns: &[BodyColumn], run: &BodyRun) -> Vec<String> {
    shown::cells(columns, run, verdicts::hides(run.run.judgement.as_ref()))
}

/// What the words of the head mean, in the order of the columns; `left_out` of them are not explained.
pub(crate) fn words(study: &BodiesStudy, left_out: &[BodyColumn]) -> Vec<(&'static str, &'static str)> {
    let run = (study.plan.repeat > 1).then_some(("run", "which pass over all of it, each on fresh servers"));
    let has = |name: &str| left_out.iter().all(|shown| shown.column.name != name);
    let times = if has("p50") { "p50 to max" } else { "p99" };
    let requests = if has("requests") {
        ("requests", "planned in the measured window; errors: those without a good answer of the right length")
    } else {
        ("errors", "requests of the measured window without a good answer of the right length")
    };
    let words = [
        ("KB", "size of the content of every answer, 1 KB is 1024 bytes"),
        ("type", "array: strings of 1 KB; chunk: an enumerator of them, without a length; string: one; io: a file"),
        ("conns", "connections in total"),
        ("req/s", "good answers (2xx, 3xx, of the right length) per second of the measured window"),
        ("MB/s", "their content, in million bytes per second"),
        (times, "response time of good answers: from when a request was due to its last byte"),
        (
            "content",
            "bytes of content, counted, over whole answers; whole: heads and what chunks are wrapped in with it",
        ),
        (
            "CPU, ms",
            "time of all processes of the server on a CPU, an answer (the warm-up in both); from ticks of 10 ms",
        ),
        ("MB", "memory of the server after the run, in million bytes, what its processes share counted once"),
        ("limit", "what limited the run: the server, the generator, or none (it kept up); INVALID: see the verdicts"),
        requests,
        ("-", "not known, or too few answers to tell, or unanswered requests could change it"),
        ("!", "a number of this row may be spoiled: see the warnings"),
    ];
    let known = words.into_iter().filter(|(word, _)| has(word));
    run.into_iter().chain(known).collect()
}
