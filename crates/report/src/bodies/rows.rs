//! The columns of longtail's own table of bodies: one list for text, markdown and CSV's order, with what each word means.

use model::{BodiesStudy, BodyRun};

use crate::doubts::is_doubtful;
use crate::number::{self, NONE, or_none};
use crate::table::{self, Band, Column};
use crate::verdicts;
use crate::width::Width;

/// One column: how it stands in a text table and in markdown, and what it shows of a run.
pub(crate) struct Shown {
    pub(crate) column: Column,
    /// The name where there is no band above.
    pub(crate) markdown: &'static str,
    /// Whether it is shown of an invalid run too.
    always: bool,
    cell: fn(&BodyRun) -> String,
}

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
pub(crate) fn of(study: &BodiesStudy) -> Vec<Shown> {
    let asked = |rank, name, width, markdown, cell| Shown {
        column: Column { name, width, band: None, rank },
        markdown,
        always: true,
        cell,
    };
    let found = |rank, (name, width), band, markdown, cell| Shown {
        column: Column { name, width, band, rank },
        markdown,
        always: false,
        cell,
    };
    let mut columns = vec![asked(0, "", 1, "", mark as fn(&BodyRun) -> String)];
    if study.plan.repeat > 1 {
        columns.push(asked(0, "run", 3, "run", |run| number::count(run.run.repeat)));
    }
    if study.plan.sockets.len() > 1 {
        columns.push(asked(0, "socket", 6, "socket", |run| run.socket.to_string()));
    }
    columns.extend([
        asked(0, "KB", 6, "KB", |run| number::count(run.body.kilobytes)),
        asked(0, "type", 6, "type", |run| run.body.kind.name().to_owned()),
        asked(5, "conns", 5, "conns", |run| number::count(run.run.connections)),
        found(0, ("req/s", 6), None, "req/s", |run| number::rate(run.run.completed_rate())),
        found(1, ("MB/s", 5), None, "MB/s", |run| number::megabytes(run.content_rate())),
        found(2, ("p50", 5), RESPONSE_TIME, "p50, ms", percentile::<0>),
        found(9, ("p75", 5), RESPONSE_TIME, "p75", percentile::<1>),
        found(8, ("p90", 5), RESPONSE_TIME, "p90", percentile::<2>),
        found(0, ("p99", 5), RESPONSE_TIME, "p99", percentile::<3>),
        found(3, ("max", 5), RESPONSE_TIME, "max, ms", longest),
        found(7, ("content", 9), ANSWER, "content bytes", |run| or_none(run.content_bytes(), number::exact)),
        found(7, ("whole", 10), ANSWER, "whole bytes", |run| or_none(run.whole_bytes(), number::exact)),
        found(4, ("CPU, ms", 7), SERVER, "CPU, ms/answer", |run| or_none(run.server_cpu(), number::milliseconds)),
        found(4, ("MB", 5), SERVER, "memory, MB", |run| {
            or_none(run.server.memory_bytes, |bytes| number::megabytes(bytes as f64))
        }),
        asked(0, "limit", 9, "limit", |run| verdicts::word(run.run.judgement.as_ref()).to_owned()),
        asked(6, "requests", 8, "requests", |run| number::count(run.run.tally.counts.total())),
        asked(0, "errors", 6, "errors", |run| number::count(run.run.tally.counts.failed())),
    ]);
    columns
}

/// The columns that there is room for, and those that are left out.
pub(crate) fn fitting(study: &BodiesStudy, width: Width) -> (Vec<Shown>, Vec<Shown>) {
    table::fitting(of(study), |shown| &shown.column, width)
}

/// The cells of a run's row, of these columns. An invalid run has no headline figure.
pub(crate) fn cells(columns: &[Shown], run: &BodyRun) -> Vec<String> {
    let hidden = verdicts::hides(run.run.judgement.as_ref());
    columns.iter().map(|shown| if hidden && !shown.always { NONE.to_owned() } else { (shown.cell)(run) }).collect()
}

/// What the words of the head mean, in the order of the columns; `left_out` of them are not explained.
pub(crate) fn words(study: &BodiesStudy, left_out: &[Shown]) -> Vec<(&'static str, &'static str)> {
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
        ("!", "a number of this row may be spoiled: see the caveats"),
    ];
    let known = words.into_iter().filter(|(word, _)| has(word));
    run.into_iter().chain(known).collect()
}
