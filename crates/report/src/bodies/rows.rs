//! The columns of longtail's own table of bodies: one list for text, markdown and CSV's order, with what each word means.

use model::{BodiesStudy, BodyRun};

use crate::doubts::is_doubtful;
use crate::number::{self, NONE, or_none};
use crate::table::Column;
use crate::verdicts;

/// One column: how it stands in a text table and in markdown, and what it shows of a run.
pub(crate) struct Shown {
    pub(crate) column: Column,
    /// The name where there is no band above.
    pub(crate) markdown: &'static str,
    /// Whether it is shown of an invalid run too.
    always: bool,
    cell: fn(&BodyRun) -> String,
}

const RESPONSE_TIME: Option<&str> = Some("response time, ms");
const ANSWER: Option<&str> = Some("bytes an answer");
const SERVER: Option<&str> = Some("server");

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
    let asked = |name, width, markdown, cell| Shown {
        column: Column { name, width, band: None },
        markdown,
        always: true,
        cell,
    };
    let found = |name, width, band, markdown, cell| Shown {
        column: Column { name, width, band },
        markdown,
        always: false,
        cell,
    };
    let mut columns = vec![asked("", 1, "", mark as fn(&BodyRun) -> String)];
    if study.plan.repeat > 1 {
        columns.push(asked("run", 3, "run", |run| number::count(run.run.repeat)));
    }
    if study.plan.sockets.len() > 1 {
        columns.push(asked("socket", 6, "socket", |run| run.socket.to_string()));
    }
    columns.extend([
        asked("KB", 6, "KB", |run| number::count(run.body.kilobytes)),
        asked("type", 6, "type", |run| run.body.kind.name().to_owned()),
        asked("conns", 5, "conns", |run| number::count(run.run.connections)),
        found("req/s", 6, None, "req/s", |run| number::rate(run.run.completed_rate())),
        found("MB/s", 5, None, "MB/s", |run| number::megabytes(run.content_rate())),
        found("p50", 5, RESPONSE_TIME, "p50, ms", percentile::<0>),
        found("p75", 5, RESPONSE_TIME, "p75", percentile::<1>),
        found("p90", 5, RESPONSE_TIME, "p90", percentile::<2>),
        found("p99", 5, RESPONSE_TIME, "p99", percentile::<3>),
        found("max", 5, RESPONSE_TIME, "max, ms", longest),
        found("content", 9, ANSWER, "content bytes", |run| or_none(run.content_bytes(), number::exact)),
        found("whole", 10, ANSWER, "whole bytes", |run| or_none(run.whole_bytes(), number::exact)),
        found("CPU, ms", 7, SERVER, "CPU, ms/answer", |run| or_none(run.server_cpu(), number::milliseconds)),
        found("MB", 5, SERVER, "memory, MB", |run| {
            or_none(run.server.memory_bytes, |bytes| number::megabytes(bytes as f64))
        }),
        asked("limit", 9, "limit", |run| verdicts::word(run.run.judgement.as_ref()).to_owned()),
        asked("requests", 8, "requests", |run| number::count(run.run.tally.counts.total())),
        asked("errors", 6, "errors", |run| number::count(run.run.tally.counts.failed())),
    ]);
    columns
}

/// The cells of a run's row. An invalid run has no headline figure.
pub(crate) fn cells(study: &BodiesStudy, run: &BodyRun) -> Vec<String> {
    let hidden = verdicts::hides(run.run.judgement.as_ref());
    of(study).iter().map(|shown| if hidden && !shown.always { NONE.to_owned() } else { (shown.cell)(run) }).collect()
}

/// What the words of the head mean, in the order of the columns.
pub(crate) fn words(study: &BodiesStudy) -> Vec<(&'static str, &'static str)> {
    let run = (study.plan.repeat > 1).then_some(("run", "which pass over all of it, each on fresh servers"));
    let words = [
        ("KB", "size of the content of every answer, 1 KB is 1024 bytes"),
        ("type", "array: strings of 1 KB; chunk: an enumerator of them, without a length; string: one; io: a file"),
        ("conns", "connections in total"),
        ("req/s", "good answers (2xx, 3xx, of the right length) per second of the measured window"),
        ("MB/s", "their content, in million bytes per second"),
        ("p50 to max", "response time of good answers: from when a request was due to its last byte"),
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
        ("requests", "planned in the measured window; errors: those without a good answer of the right length"),
        ("-", "not known, or too few answers to tell, or unanswered requests could change it"),
        ("!", "a number of this row may be spoiled: see the caveats"),
    ];
    run.into_iter().chain(words).collect()
}
