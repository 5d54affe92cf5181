//! The columns of a run: each is declared once, with its name, its meaning, its figure and the
//! tables that have it, and is written the same wherever it stands.
//!
//! [`COLUMNS`] has their order in a full report and in CSV, [`IN_ANSWER`] in the answer's table of
//! runs, [`IN_ANSWER_OF_LOAD`] in that of a load, and [`IN_JSON`] in the JSON of a summary. HTML
//! and Markdown show the same two tables. Puma's own layouts name their columns in
//! `formats/puma.rs`, because they are fixed to the character.

use judge::Grade;
use model::comparison::Metric;
use model::{
    BodyRun, Diagnostic, Limit, Nanos, Run, ServerCpu, UnfinishedRequests, Verdict, counts,
};
use serde::Serialize;

use crate::classes::SummaryClass;
use crate::json_object::JsonObject;
use crate::labels::audit_word;
use crate::number::{self, NONE};
use crate::run_column::{
    ColumnPresence, FigureMark, FigureSource, PLAIN, RunColumn, RunFigure, RunTable,
};
use crate::run_summary::{SummaryGenerator, SummaryRun, by_percentile, millis};
use crate::steps::SummaryStep;
use crate::tree::ColumnBand;

use RunTable::{Bodies, Comparison, Load, OtherGenerator, Sweep};

/// What the marks of every table of runs mean.
pub(crate) const MARKS: [(&str, &str); 3] = [
    ("-", "not known, or too few responses to tell, or unanswered requests could change it"),
    (
        "?",
        "not known to ± 20 %: by its 95 % interval, by what may be the generator's, or because few responses tell",
    ),
    ("!", "a warning is about this row, and may be about one of its numbers"),
];

const EVERYWHERE: &[RunTable] = &[Sweep, OtherGenerator, Bodies, Comparison, Load];

/// All columns, in the order in which a full report and CSV have them.
pub(crate) static COLUMNS: &[&RunColumn] = &[
    &DOUBT,
    &PASS,
    &BLOCK,
    &ARM,
    &ATTEMPT,
    &MULTIPLE,
    &SOCKET,
    &KILOBYTES,
    &BODY_TYPE,
    &CONNECTIONS,
    &CLASS,
    &SHARE_OF_REQUESTS,
    &SHARE_OF_TIME,
    &SHARE_OF_SERVER_TIME,
    &ALONE,
    &SECONDS,
    &OFFERED,
    &SENT,
    &RATE,
    &OF_MAXIMUM,
    &CONTENT_RATE,
    &MEAN,
    &P10,
    &P25,
    &P50,
    &P75,
    &P90,
    &P95,
    &P99,
    &P999,
    &MAX,
    &COMPARED_MEAN,
    &COMPARED_P50,
    &COMPARED_P95,
    &COMPARED_P99,
    &TOO_FEW_FOR,
    &TAIL,
    &P50_OF_IDEAL,
    &P99_OF_IDEAL,
    &FAIRNESS,
    &WORKER_DEVIATION,
    &CONTENT_BYTES,
    &WHOLE_BYTES,
    &CPU_PER_REQUEST,
    &SERVER_CPU,
    &SERVER_MEMORY,
    &LIMIT,
    &CLAIM,
    &REQUESTS,
    &FAILED,
    &STATUSES,
    &UNFINISHED,
    &NOT_SENT,
    &MADE_BY,
    &CEILING,
    &GENERATOR_LAG,
    &CHECKS,
];

/// The columns of a line of CSV about a class that say which run the class is of.
pub(crate) static OF_RUN_OF_CLASS: &[&RunColumn] =
    &[&PASS, &BLOCK, &ARM, &ATTEMPT, &MULTIPLE, &CONNECTIONS, &SECONDS];

/// The columns of that line that are about the class; it has no others.
pub(crate) static OF_CLASS: &[&RunColumn] = &[
    &CLASS,
    &SHARE_OF_REQUESTS,
    &SHARE_OF_TIME,
    &SHARE_OF_SERVER_TIME,
    &ALONE,
    &MEAN,
    &P10,
    &P25,
    &P50,
    &P75,
    &P90,
    &P95,
    &P99,
    &P999,
    &MAX,
    &COMPARED_MEAN,
    &COMPARED_P50,
    &COMPARED_P95,
    &COMPARED_P99,
    &TOO_FEW_FOR,
    &REQUESTS,
    &FAILED,
    &STATUSES,
    &UNFINISHED,
    &NOT_SENT,
];

/// The table of classes in an answer: headings and columns, and when each leaves a narrow table.
pub(crate) static IN_ANSWER_OF_CLASS: &[(&str, &RunColumn, u8)] = &[
    ("class", &CLASS, 0),
    ("requests", &REQUESTS, 3),
    ("failed", &FAILED, 0),
    ("p50", &P50, 2),
    ("p95", &P95, 4),
    ("p99", &P99, 0),
    ("max", &MAX, 3),
    ("alone", &ALONE, 1),
    ("requests", &SHARE_OF_REQUESTS, 0),
    ("response time", &SHARE_OF_TIME, 0),
    ("server's time", &SHARE_OF_SERVER_TIME, 0),
];

/// The answer's table of runs: headings and columns, and when each leaves a narrow table
/// ([`TableColumn::leaves`](crate::tree::TableColumn::leaves)).
pub(crate) static IN_ANSWER: &[(&str, &RunColumn, u8)] = &[
    ("load", &LABEL, 0),
    ("connections", &CONNECTIONS, 1),
    ("req/s", &RATE, 0),
    ("failed", &FAILED, 0),
    ("p50", &P50, 2),
    ("p95", &P95, 4),
    ("p99", &P99, 0),
    ("max", &MAX, 3),
    ("FIFO", &IN_ORDER, 5),
    ("used", &CPUS_USED, 7),
    ("share", &SLOW_SHARE, 6),
    ("mean", &SLOW_MEAN, 6),
];

/// The response times in the answer of a load, and when each leaves a narrow table.
pub(crate) static IN_ANSWER_OF_LOAD: &[(&RunColumn, u8)] =
    &[(&MEAN, 3), (&P50, 0), (&P90, 5), (&P95, 2), (&P99, 0), (&P999, 4), (&MAX, 1)];

/// The JSON of a run: keys and columns. A dot leads into an object.
pub(crate) static IN_JSON: &[(&str, &RunColumn)] = &[
    ("label", &LABEL),
    ("multiple", &MULTIPLE),
    ("repeat", &PASS),
    ("connections", &CONNECTIONS),
    ("connections_limit", &CONNECTIONS_LIMIT),
    ("verdict", &VERDICT),
    ("limit", &LIMIT_NAME),
    ("seconds", &SECONDS),
    ("rate.offered", &OFFERED),
    ("rate.sent", &SENT),
    ("rate.completed", &RATE),
    ("requests.planned", &REQUESTS),
    ("requests.ok", &GOOD),
    ("requests.failed", &FAILED),
    ("requests.failures", &FAILURES),
    ("requests.statuses", &STATUSES),
    ("requests.unfinished", &UNFINISHED_COUNTS),
    ("response_ms.mean", &MEAN),
    ("response_ms.p50", &P50),
    ("response_ms.p90", &P90),
    ("response_ms.p95", &P95),
    ("response_ms.p99", &P99),
    ("response_ms.p99.9", &P999),
    ("response_ms.max", &MAX),
    ("interval_ms", &INTERVALS),
    ("generator_ms", &GENERATOR_PARTS),
    ("range_ms", &RANGES_OF_FEW),
    ("compared_ms", &COMPARED_OF_FEW),
    ("missing", &MISSING),
    ("in_order_ms", &IN_ORDER),
    ("slow", &SLOW),
    ("cpu_ms_per_request", &CPU_PER_REQUEST),
    ("cpus", &CPUS),
    ("worker_deviation", &WORKER_DEVIATION),
    ("generators", &GENERATORS),
    ("classes", &CLASSES),
    ("steps", &STEPS),
];

/// What the JSON of a class of requests and that of a step both have: keys and columns.
static IN_JSON_OF_PART: &[(&str, &RunColumn)] = &[
    ("requests.planned", &REQUESTS),
    ("requests.ok", &GOOD),
    ("requests.failed", &FAILED),
    ("requests.failures", &FAILURES),
    ("requests.statuses", &STATUSES),
    ("requests.unfinished", &UNFINISHED_COUNTS),
    ("response_ms.mean", &MEAN),
    ("response_ms.p50", &P50),
    ("response_ms.p90", &P90),
    ("response_ms.p95", &P95),
    ("response_ms.p99", &P99),
    ("response_ms.p99.9", &P999),
    ("response_ms.max", &MAX),
    ("interval_ms", &INTERVALS),
    ("range_ms", &RANGES_OF_FEW),
    ("missing", &MISSING),
];

/// The JSON of a class of requests: the keys before those of every part, and after them.
static IN_JSON_OF_CLASS: [&[(&str, &RunColumn)]; 3] = [
    &[("name", &CLASS)],
    IN_JSON_OF_PART,
    &[
        ("share.requests", &SHARE_OF_REQUESTS),
        ("share.response_time", &SHARE_OF_TIME),
        ("share.server_time", &SHARE_OF_SERVER_TIME),
        ("alone_ms", &ALONE),
    ],
];

/// The JSON of a step, likewise.
static IN_JSON_OF_STEP: [&[(&str, &RunColumn)]; 2] = [
    &[
        ("label", &LABEL),
        ("seconds", &SECONDS),
        ("rate.offered", &OFFERED),
        ("rate.completed", &RATE),
    ],
    IN_JSON_OF_PART,
];

// What a run is of.

static LABEL: RunColumn = RunColumn {
    name: "load",
    figure: FigureSource::Of(|run| run.label.as_str().into()),
    stays_when_invalid: true,
    ..PLAIN
};

static DOUBT: RunColumn = RunColumn {
    csv: "doubt",
    figure: FigureSource::Of(|run| if is_doubtful(run.run) { "!" } else { "" }.into()),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    ..PLAIN
};

static PASS: RunColumn = RunColumn {
    name: "run",
    meaning: |table| match table {
        Bodies => "which pass over all of it, each on fresh servers",
        Sweep | OtherGenerator | Comparison | Load => {
            "which pass over the multiples, each on a fresh server"
        }
    },
    figure: FigureSource::Of(|run| run.run.repeat.into()),
    stays_when_invalid: true,
    tables: &[Sweep, OtherGenerator, Bodies],
    presence: |runs| ColumnPresence::shown_if(runs.iter().any(|run| run.passes() > 1)),
    ..PLAIN
};

static BLOCK: RunColumn = RunColumn {
    name: "block",
    meaning: |_| "each has every arm once",
    figure: FigureSource::Of(|run| run.arm().map(|arm| arm.block).into()),
    stays_when_invalid: true,
    tables: &[Comparison],
    ..PLAIN
};

static ARM: RunColumn = RunColumn {
    name: "arm",
    meaning: |_| "A', where there is one, is the control: A once more",
    figure: FigureSource::Of(|run| run.letter().into()),
    stays_when_invalid: true,
    tables: &[Comparison],
    ..PLAIN
};

static ATTEMPT: RunColumn = RunColumn {
    name: "attempt",
    meaning: |_| "2: the first run failed its checks, and is not counted",
    figure: FigureSource::Of(|run| run.arm().map(|arm| arm.attempt).into()),
    stays_when_invalid: true,
    tables: &[Comparison],
    presence: |runs| {
        let mut arms = runs.iter().filter_map(SummaryRun::arm);
        ColumnPresence::shown_if(arms.any(|arm| arm.attempt > 1))
    },
    ..PLAIN
};

pub(crate) static MULTIPLE: RunColumn = RunColumn {
    name: "mult",
    csv: "multiple",
    meaning: |_| "connections / slots",
    figure: FigureSource::Of(|run| run.run.multiple.map_or(RunFigure::Unknown, RunFigure::Chosen)),
    shown: number::multiple,
    stays_when_invalid: true,
    tables: &[Sweep, OtherGenerator],
    ..PLAIN
};

static SOCKET: RunColumn = RunColumn {
    name: "socket",
    figure: FigureSource::Of(|run| run.body().map(|row| row.socket.to_string()).into()),
    stays_when_invalid: true,
    tables: &[Bodies],
    presence: |runs| ColumnPresence::shown_if(runs.iter().any(|run| run.sockets() > 1)),
    ..PLAIN
};

static KILOBYTES: RunColumn = RunColumn {
    name: "KB",
    csv: "kb",
    meaning: |_| "size of the content of every response, 1 KB is 1024 bytes",
    figure: FigureSource::Of(|run| run.body().map(|row| row.body.kilobytes).into()),
    stays_when_invalid: true,
    tables: &[Bodies],
    ..PLAIN
};

static BODY_TYPE: RunColumn = RunColumn {
    name: "type",
    meaning: |_| "array: strings of 1 KB; chunk: an enumerator of them, without a length; string: one; io: a file",
    figure: FigureSource::Of(|run| run.body().map(|row| row.body.kind.name()).into()),
    stays_when_invalid: true,
    tables: &[Bodies],
    ..PLAIN
};

// The load.

pub(crate) static CONNECTIONS: RunColumn = RunColumn {
    name: "conns",
    csv: "connections",
    meaning: |table| match table {
        Sweep | OtherGenerator | Bodies | Load => "connections in total",
        Comparison => "",
    },
    figure: FigureSource::Of(|run| run.connections().into()),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    ..PLAIN
};

static CONNECTIONS_LIMIT: RunColumn =
    RunColumn { figure: FigureSource::Of(|run| run.connections_limit().into()), ..PLAIN };

static SECONDS: RunColumn = RunColumn {
    name: "seconds",
    figure: FigureSource::Of(|run| run.run.measured.as_secs_f64().into()),
    shown: number::shortest,
    tables: &[Load],
    presence: |_| ColumnPresence::CsvOnly,
    ..PLAIN
};

pub(crate) static OFFERED: RunColumn = RunColumn {
    name: "offered/s",
    csv: "offered_per_s",
    meaning: |_| "requests that were due",
    figure: FigureSource::Of(|run| run.offered().into()),
    shown: number::rate,
    tables: &[Load],
    presence: if_open_loop,
    ..PLAIN
};

static SENT: RunColumn = RunColumn {
    name: "sent/s",
    csv: "sent_per_s",
    figure: FigureSource::Of(|run| run.sent().into()),
    shown: number::rate,
    tables: &[Load],
    presence: if_open_loop,
    ..PLAIN
};

fn if_open_loop(runs: &[SummaryRun<'_>]) -> ColumnPresence {
    ColumnPresence::shown_if(runs.iter().any(|run| run.offered().is_some()))
}

// Throughput.

pub(crate) static RATE: RunColumn = RunColumn {
    name: "req/s",
    csv: "rate_per_s",
    meaning: |table| match table {
        Sweep | Load => "good responses (2xx, 3xx) per second of the measured window",
        OtherGenerator => "requests per second, as it prints them",
        Bodies => {
            "good responses (2xx, 3xx, of the right length) per second of the measured window"
        }
        Comparison => "",
    },
    figure: FigureSource::Of(|run| run.completed().into()),
    shown: number::rate,
    mark: FigureMark::SharedCpus,
    tables: EVERYWHERE,
    ..PLAIN
};

static OF_MAXIMUM: RunColumn = RunColumn {
    name: "% max",
    csv: "of_maximum",
    meaning: |_| "req/s in % of the theoretical maximum, slots / service time",
    figure: FigureSource::Of(|run| run.run.of_maximum().into()),
    shown: number::percent,
    tables: &[Sweep, OtherGenerator],
    ..PLAIN
};

pub(crate) static CONTENT_RATE: RunColumn = RunColumn {
    name: "MB/s",
    csv: "content_bytes_per_s",
    meaning: |_| "their content, in million bytes per second",
    figure: FigureSource::Of(|run| run.body().map(BodyRun::content_rate).into()),
    shown: number::megabytes,
    tables: &[Bodies],
    ..PLAIN
};

// Response times.

static MEAN: RunColumn = RunColumn {
    name: "mean",
    csv: "mean_ms",
    band: Some(response_times),
    figure: FigureSource::Of(|run| run.mean().into()),
    shown: number::of_millis,
    tables: &[OtherGenerator, Load],
    ..PLAIN
};

pub(crate) static P10: RunColumn = percentile("p10", "p10_ms", 0.10, &[Sweep, OtherGenerator]);
pub(crate) static P25: RunColumn = percentile("p25", "p25_ms", 0.25, &[Sweep, OtherGenerator]);
pub(crate) static P50: RunColumn =
    percentile("p50", "p50_ms", 0.50, &[Sweep, OtherGenerator, Bodies, Load]);
pub(crate) static P75: RunColumn =
    percentile("p75", "p75_ms", 0.75, &[Sweep, OtherGenerator, Bodies]);
pub(crate) static P90: RunColumn =
    percentile("p90", "p90_ms", 0.90, &[Sweep, OtherGenerator, Bodies, Load]);
pub(crate) static P95: RunColumn =
    percentile("p95", "p95_ms", 0.95, &[Sweep, OtherGenerator, Load]);
pub(crate) static P99: RunColumn =
    percentile("p99", "p99_ms", 0.99, &[Sweep, OtherGenerator, Bodies, Load]);
static P999: RunColumn = percentile("p99.9", "p99.9_ms", 0.999, &[Sweep, OtherGenerator, Load]);

const fn percentile(
    name: &'static str,
    csv: &'static str,
    quantile: f64,
    tables: &'static [RunTable],
) -> RunColumn {
    RunColumn {
        name,
        csv,
        band: Some(response_times),
        figure: FigureSource::Percentile(quantile),
        shown: number::of_millis,
        mark: FigureMark::Uncertain,
        tables,
        ..PLAIN
    }
}

pub(crate) static MAX: RunColumn = RunColumn {
    name: "max",
    csv: "max_ms",
    band: Some(response_times),
    figure: FigureSource::Of(|run| run.max().into()),
    shown: number::of_millis,
    tables: &[Sweep, OtherGenerator, Bodies, Load],
    ..PLAIN
};

static COMPARED_MEAN: RunColumn = compared("mean", "mean_ms", |run| time_of_arm(run, Metric::Mean));
static COMPARED_P50: RunColumn = RunColumn {
    mark: FigureMark::Compared(Metric::P50),
    ..compared("p50", "p50_ms", |run| time_of_arm(run, Metric::P50))
};
static COMPARED_P95: RunColumn = RunColumn {
    mark: FigureMark::Compared(Metric::P95),
    ..compared("p95", "p95_ms", |run| time_of_arm(run, Metric::P95))
};
static COMPARED_P99: RunColumn = RunColumn {
    mark: FigureMark::Compared(Metric::P99),
    ..compared("p99", "p99_ms", |run| time_of_arm(run, Metric::P99))
};

/// A time that arms are compared by. It is shown even where a single run does not support it,
/// because all blocks together do.
const fn compared(
    name: &'static str,
    csv: &'static str,
    figure: fn(&SummaryRun<'_>) -> RunFigure,
) -> RunColumn {
    RunColumn {
        name,
        csv,
        band: Some(response_times),
        figure: FigureSource::Of(figure),
        tables: &[Comparison],
        ..PLAIN
    }
}

fn time_of_arm(run: &SummaryRun<'_>, metric: Metric) -> RunFigure {
    if run.class.is_some() {
        return time_of_class(run, metric);
    }
    run.arm().and_then(|arm| metric.of(arm).ok()).map(Nanos::from_secs_f64).into()
}

/// The same of a class. Classes are not compared, so the run alone must support the time.
fn time_of_class(run: &SummaryRun<'_>, metric: Metric) -> RunFigure {
    match metric {
        Metric::Mean => run.mean().into(),
        Metric::P50 => run.percentile(0.5).into(),
        Metric::P95 => run.percentile(0.95).into(),
        Metric::P99 => run.percentile(0.99).into(),
        Metric::Throughput
        | Metric::Failed
        | Metric::Cpu
        | Metric::GeneratorCpu
        | Metric::Memory
        | Metric::Slow
        | Metric::Workers => RunFigure::Unknown,
    }
}

fn response_times(table: RunTable) -> ColumnBand {
    match table {
        OtherGenerator => ColumnBand {
            meaning: "as it prints them; - where it does not print that percentile",
            ..ColumnBand::new("times by the other generator, ms", "its ms")
        },
        Sweep | Bodies | Comparison | Load => ColumnBand {
            meaning: "of good responses: from when a request was due to its last byte",
            ..ColumnBand::new("response time, ms", "ms")
        },
    }
}

pub(crate) static TAIL: RunColumn = RunColumn {
    name: "tail",
    meaning: |_| "max / p10",
    figure: FigureSource::Of(|run| run.run.long_tail().into()),
    shown: number::times,
    tables: &[Sweep, OtherGenerator],
    ..PLAIN
};

pub(crate) static IN_ORDER: RunColumn = RunColumn {
    name: "FIFO",
    band: Some(response_times),
    figure: FigureSource::Of(|run| run.in_order_ms().into()),
    shown: number::of_millis,
    ..PLAIN
};

static P50_OF_IDEAL: RunColumn =
    of_ideal("p50", "p50_of_ideal", |run| run.run.of_ideal(0.5).into());
static P99_OF_IDEAL: RunColumn =
    of_ideal("p99", "p99_of_ideal", |run| run.run.of_ideal(0.99).into());

const fn of_ideal(
    name: &'static str,
    csv: &'static str,
    figure: fn(&SummaryRun<'_>) -> RunFigure,
) -> RunColumn {
    RunColumn {
        name,
        csv,
        band: Some(|_| ColumnBand {
            meaning: "response time / ideal; ideal: all wait in one line, service time x max(1, mult)",
            ..ColumnBand::new("x ideal", "x ideal")
        }),
        figure: FigureSource::Of(figure),
        shown: number::times,
        tables: &[Sweep, OtherGenerator],
        ..PLAIN
    }
}

static INTERVALS: RunColumn = json_only(|run| {
    let in_millis = |ends: [Option<Nanos>; 2]| ends.map(|end| end.map(millis));
    RunFigure::json(&by_percentile(|quantile| run.interval(quantile).map(in_millis)))
});

static GENERATOR_PARTS: RunColumn = json_only(|run| {
    let parts = by_percentile(|quantile| run.generator_part(quantile).map(millis));
    RunFigure::json_unless_empty(&parts)
});

static RANGES_OF_FEW: RunColumn = json_only(|run| {
    let in_millis = |ends: [Nanos; 2]| ends.map(millis);
    let ranges = by_percentile(|quantile| run.range_of_few(quantile).map(in_millis));
    RunFigure::json_unless_empty(&ranges)
});

/// Of a comparison: the percentiles that too few responses of the run support, as they were in it,
/// because the arms are compared by them.
static COMPARED_OF_FEW: RunColumn = json_only(|run| {
    let of_few = |quantile: f64| {
        let seconds = Metric::of_quantile(quantile)?.of_few(run.arm()?)?;
        Some(millis(Nanos::from_secs_f64(seconds)))
    };
    let class_or_whole = |quantile| if run.class.is_some() { None } else { of_few(quantile) };
    RunFigure::json_unless_empty(&by_percentile(class_or_whole))
});

/// The same for CSV, whose numbers have no marks: which percentiles these are.
static TOO_FEW_FOR: RunColumn = RunColumn {
    csv: "too_few_responses_for",
    figure: FigureSource::Of(|run| RunFigure::Word(percentiles_of_few(run))),
    tables: &[Comparison],
    presence: |runs| {
        if runs.iter().all(|run| percentiles_of_few(run).is_empty()) {
            ColumnPresence::Nowhere
        } else {
            ColumnPresence::CsvOnly
        }
    },
    ..PLAIN
};

fn percentiles_of_few(run: &SummaryRun<'_>) -> String {
    let is_of_few = |metric: &Metric| run.is_compared_of_few(*metric);
    let few = [Metric::P50, Metric::P95, Metric::P99].into_iter().filter(is_of_few);
    few.map(|metric| metric.to_string()).collect::<Vec<_>>().join(" ")
}

static MISSING: RunColumn =
    json_only(|run| RunFigure::json(&by_percentile(|quantile| run.why_missing(quantile))));

/// Several figures together, for JSON alone.
const fn json_only(figure: fn(&SummaryRun<'_>) -> RunFigure) -> RunColumn {
    RunColumn { figure: FigureSource::Of(figure), ..PLAIN }
}

static CLASSES: RunColumn = json_only(|run| {
    let in_json = |class: &SummaryClass<'_>| {
        let view = class.view();
        let mut object = JsonObject::default();
        for (path, column) in IN_JSON_OF_CLASS.into_iter().flatten() {
            object.insert(path, column.figure(&view));
        }
        object
    };
    let classes: Vec<JsonObject> = SummaryClass::all_of(run).iter().map(in_json).collect();
    if classes.is_empty() { RunFigure::LeftOut } else { RunFigure::json(&classes) }
});

static STEPS: RunColumn = json_only(|run| {
    let in_json = |step: &SummaryStep<'_>| {
        let view = step.view();
        let mut object = JsonObject::default();
        for (path, column) in IN_JSON_OF_STEP.into_iter().flatten() {
            object.insert(path, column.figure(&view));
        }
        object.insert("planned_per_s.from", RunFigure::Chosen(step.step.rate_from));
        object.insert("planned_per_s.to", RunFigure::Chosen(step.step.rate_to));
        object.insert("backlog_at_end", step.step.backlog_at_end.into());
        object
    };
    let steps: Vec<JsonObject> = SummaryStep::all_of(run).iter().map(in_json).collect();
    if steps.is_empty() { RunFigure::LeftOut } else { RunFigure::json(&steps) }
});

// Classes of requests.

pub(crate) static CLASS: RunColumn = RunColumn {
    name: "class",
    figure: FigureSource::Of(|run| run.class.map(|class| class.name).into()),
    stays_when_invalid: true,
    tables: &[Sweep, Comparison, Load],
    presence: if_classes,
    ..PLAIN
};

pub(crate) static SHARE_OF_REQUESTS: RunColumn =
    share_of_all("requests", "share_of_requests", |run| {
        run.class.and_then(|class| class.requests).into()
    });

pub(crate) static SHARE_OF_TIME: RunColumn =
    share_of_all("response time", "share_of_response_time", |run| {
        run.class.and_then(|class| class.response_time).into()
    });

/// Computed from what requests of each class take alone: under load they wait for each other.
pub(crate) static SHARE_OF_SERVER_TIME: RunColumn = RunColumn {
    presence: if_alone,
    ..share_of_all("server's time", "share_of_server_time", |run| {
        run.class.and_then(|class| class.server_time).map_or(RunFigure::LeftOut, RunFigure::Number)
    })
};

pub(crate) static ALONE: RunColumn = RunColumn {
    name: "alone",
    csv: "alone_ms",
    unit: "ms",
    figure: FigureSource::Of(|run| {
        run.class.and_then(|class| class.alone).map_or(RunFigure::LeftOut, RunFigure::Time)
    }),
    tables: &[Sweep, Load],
    presence: if_alone,
    ..PLAIN
};

fn if_alone(runs: &[SummaryRun<'_>]) -> ColumnPresence {
    let is_known = |run: &SummaryRun<'_>| !run.classes_alone().is_empty();
    if runs.iter().any(is_known) { ColumnPresence::CsvOnly } else { ColumnPresence::Nowhere }
}

/// A share that a class has of all requests, or of their response times.
const fn share_of_all(
    name: &'static str,
    csv: &'static str,
    figure: fn(&SummaryRun<'_>) -> RunFigure,
) -> RunColumn {
    RunColumn {
        name,
        csv,
        band: Some(|_| ColumnBand::new("share of all", "share")),
        figure: FigureSource::Of(figure),
        shown: judge::words::share,
        tables: &[Sweep, Comparison, Load],
        presence: if_classes,
        ..PLAIN
    }
}

/// CSV has it if there are classes, and no table has it.
fn if_classes(runs: &[SummaryRun<'_>]) -> ColumnPresence {
    let is_told_apart =
        |run: &SummaryRun<'_>| run.class.is_some() || !run.run.tally.classes.is_empty();
    if runs.iter().any(is_told_apart) { ColumnPresence::CsvOnly } else { ColumnPresence::Nowhere }
}

static SLOW: RunColumn = json_only(|run| RunFigure::json(&run.slow()));

static SLOW_SHARE: RunColumn = RunColumn {
    name: "share",
    band: Some(slow_requests),
    figure: FigureSource::Of(|run| run.slow().map(|slow| slow.share).into()),
    shown: judge::words::share,
    presence: if_two_groups,
    ..PLAIN
};

static SLOW_MEAN: RunColumn = RunColumn {
    name: "mean",
    // Its neighbours under other bands are in ms, too, but a share stands beside it.
    unit: "ms",
    band: Some(slow_requests),
    figure: FigureSource::Of(|run| run.slow().map(|slow| slow.mean_ms).into()),
    shown: number::of_millis,
    presence: if_two_groups,
    ..PLAIN
};

fn slow_requests(_: RunTable) -> ColumnBand {
    ColumnBand::new("slow requests", "of slow requests")
}

fn if_two_groups(runs: &[SummaryRun<'_>]) -> ColumnPresence {
    ColumnPresence::shown_if(runs.iter().any(|run| run.slow().is_some()))
}

// Fairness.

static FAIRNESS: RunColumn = RunColumn {
    name: "Jain",
    csv: "jain",
    meaning: |_| "fairness among connections: 1 when all get the same, 1/n when one of n gets all",
    band: Some(fairness),
    figure: FigureSource::Of(|run| run.run.fairness().into()),
    shown: |index| number::fixed(index, 3),
    tables: &[Sweep, OtherGenerator],
    // Another generator does not say what each connection got.
    presence: |runs| ColumnPresence::shown_if(runs.iter().all(|run| run.run.claim.is_none())),
    ..PLAIN
};

static WORKER_DEVIATION: RunColumn = RunColumn {
    name: "worker ±%",
    csv: "worker_deviation",
    meaning: |_| "the worker furthest from an even share, in % of that share",
    band: Some(fairness),
    figure: FigureSource::Of(|run| run.worker_deviation().into()),
    shown: number::percent_tenths,
    tables: &[Sweep, OtherGenerator],
    ..PLAIN
};

fn fairness(_: RunTable) -> ColumnBand {
    ColumnBand::new("fairness", "")
}

// Bytes.

pub(crate) static CONTENT_BYTES: RunColumn = RunColumn {
    name: "content",
    csv: "content_bytes",
    meaning: |_| "bytes of content, counted, over whole responses",
    band: Some(bytes_per_response),
    figure: FigureSource::Of(|run| run.body().and_then(BodyRun::content_bytes).into()),
    shown: number::exact,
    tables: &[Bodies],
    ..PLAIN
};

static WHOLE_BYTES: RunColumn = RunColumn {
    name: "whole",
    csv: "whole_bytes",
    meaning: |_| "the same with heads and what chunks are wrapped in",
    band: Some(bytes_per_response),
    figure: FigureSource::Of(|run| run.body().and_then(BodyRun::whole_bytes).into()),
    shown: number::exact,
    tables: &[Bodies],
    ..PLAIN
};

fn bytes_per_response(_: RunTable) -> ColumnBand {
    ColumnBand::new("bytes per response", "bytes")
}

// The server.

static SERVER_CPU: RunColumn = RunColumn {
    name: "CPU ms",
    csv: "server_cpu_ms",
    meaning: |_| "time of all processes of the server on a CPU, per response (the warm-up in both); from ticks of 10 ms",
    band: Some(server),
    figure: FigureSource::Of(|run| match run.body() {
        Some(row) => row.server_cpu().into(),
        None => time_of_arm(run, Metric::Cpu),
    }),
    tables: &[Bodies, Comparison],
    ..PLAIN
};

static SERVER_MEMORY: RunColumn = RunColumn {
    name: "MB",
    csv: "server_memory_bytes",
    meaning: |_| "memory of the server after the run, in million bytes, what its processes share counted once",
    band: Some(server),
    figure: FigureSource::Of(|run| {
        let used = run.body().map(|row| row.server).or_else(|| run.arm().map(|arm| arm.server));
        used.and_then(|used| used.memory_bytes).map(|bytes| bytes as f64).into()
    }),
    shown: number::megabytes,
    tables: &[Bodies, Comparison],
    ..PLAIN
};

fn server(_: RunTable) -> ColumnBand {
    ColumnBand::new("server", "")
}

static CPU_PER_REQUEST: RunColumn = RunColumn {
    name: "CPU ms",
    csv: "cpu_ms_per_request",
    meaning: |_| "CPU time of the server's processes, a request (the warm-up in both)",
    band: Some(server),
    figure: FigureSource::Of(|run| {
        run.run.generator.server.as_ref().and_then(ServerCpu::per_request).into()
    }),
    tables: &[Sweep, Load],
    presence: |runs| {
        let is_known = |run: &SummaryRun<'_>| run.run.generator.server.is_some();
        if runs.iter().any(is_known) { ColumnPresence::Shown } else { ColumnPresence::Nowhere }
    },
    ..PLAIN
};

static CPUS: RunColumn = json_only(|run| RunFigure::json(&run.cpus()));

static CPUS_USED: RunColumn = RunColumn {
    name: "used",
    band: Some(|_| ColumnBand::new("CPUs", "CPUs")),
    figure: FigureSource::Of(|run| run.cpus().map(|[used, _]| used).into()),
    shown: |cpus| number::fixed(cpus, 1),
    presence: |runs| ColumnPresence::shown_if(runs.iter().any(|run| run.cpus().is_some())),
    ..PLAIN
};

// How it went.

static VERDICT: RunColumn = json_only(|run| RunFigure::json(&run.verdict));

static LIMIT: RunColumn = RunColumn {
    name: "limit",
    meaning: |_| "what limited the run: the server, the generator, or none (it kept up); INVALID: see the warnings",
    figure: FigureSource::Of(|run| limit(run.run).into()),
    stays_when_invalid: true,
    tables: &[Sweep, Bodies, Comparison, Load],
    ..PLAIN
};

static CLAIM: RunColumn = RunColumn {
    name: "claim",
    meaning: |_| "what longtail audit says of its figures: possible, doubtful, IMPOSSIBLE: see the claims",
    figure: FigureSource::Of(|run| limit(run.run).into()),
    stays_when_invalid: true,
    tables: &[OtherGenerator],
    ..PLAIN
};

static LIMIT_NAME: RunColumn = RunColumn {
    figure: FigureSource::Of(|run| run.run.limit().map(judge::limits::name).into()),
    ..PLAIN
};

pub(crate) static REQUESTS: RunColumn = RunColumn {
    name: "requests",
    meaning: |table| match table {
        OtherGenerator => "those that it says ended",
        Sweep | Bodies | Comparison | Load => "planned in the measured window",
    },
    figure: FigureSource::Of(|run| run.run.requests().into()),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    ..PLAIN
};

static GOOD: RunColumn =
    RunColumn { figure: FigureSource::Of(|run| run.run.good().into()), ..PLAIN };

pub(crate) static FAILED: RunColumn = RunColumn {
    name: "errors",
    meaning: |table| match table {
        Sweep | Load => "requests of the measured window without a good response",
        OtherGenerator => "bad statuses, errors and timeouts, as it counts them",
        Bodies | Comparison => {
            "requests of the measured window without a good response of the right length"
        }
    },
    figure: FigureSource::Of(|run| run.run.failed().into()),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    ..PLAIN
};

static FAILURES: RunColumn = RunColumn {
    figure: FigureSource::Of(|run| {
        let bad = run.run.tally.counts.iter().filter(|(outcome, _)| !outcome.is_good());
        RunFigure::Counts(bad.map(|(outcome, count)| (counts::name(outcome), count)).collect())
    }),
    ..PLAIN
};

/// Tables leave it out, because a full report has a section for it.
static STATUSES: RunColumn = RunColumn {
    name: "statuses",
    meaning: |_| "responses by status",
    figure: FigureSource::Of(|run| RunFigure::Counts(run.run.statuses())),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    presence: |_| ColumnPresence::CsvOnly,
    ..PLAIN
};

static UNFINISHED: RunColumn = RunColumn {
    name: "unfinished",
    meaning: |_| "in flight when the user stopped the run; not counted",
    figure: FigureSource::Of(|run| run.run.tally.unfinished.in_flight.into()),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    presence: if_stopped,
    ..PLAIN
};

static NOT_SENT: RunColumn = RunColumn {
    name: "not sent",
    csv: "not_sent",
    meaning: |_| "due when the user stopped the run, and without a connection; not counted",
    figure: FigureSource::Of(|run| run.run.tally.unfinished.not_sent.into()),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    presence: if_stopped,
    ..PLAIN
};

fn if_stopped(runs: &[SummaryRun<'_>]) -> ColumnPresence {
    let is_stopped = |run: &SummaryRun<'_>| !run.run.tally.unfinished.is_empty();
    if runs.iter().any(is_stopped) { ColumnPresence::Shown } else { ColumnPresence::Nowhere }
}

/// Requests that had not ended when the user stopped the run.
#[derive(Serialize)]
struct UnfinishedCounts {
    /// Sent, and without a response yet.
    in_flight: u64,
    /// Open loop: due, and without a free connection.
    not_sent: u64,
    /// Those of either kind that had waited longer than any response took: percentiles count them.
    above_all: u64,
}

static UNFINISHED_COUNTS: RunColumn = json_only(|run| {
    let UnfinishedRequests { in_flight, not_sent, .. } = run.run.tally.unfinished;
    if in_flight + not_sent == 0 {
        return RunFigure::LeftOut;
    }
    let above_all = run.run.tally.unfinished_above_all();
    RunFigure::json(&UnfinishedCounts { in_flight, not_sent, above_all })
});

static MADE_BY: RunColumn = RunColumn {
    name: "by",
    meaning: |_| "who made the load and says all that stands in this row: nothing of it was measured by longtail",
    figure: FigureSource::Of(|run| run.run.claim.as_ref().map(|claim| claim.name()).into()),
    tables: &[OtherGenerator],
    ..PLAIN
};

// The generator.

static CEILING: RunColumn = RunColumn {
    name: "ceiling",
    csv: "ceiling_per_s",
    meaning: |_| "the generator's own limit without a server to wait for, req/s",
    band: Some(generator),
    figure: FigureSource::Of(|run| {
        found_by_check(run.run, |check| match check {
            Diagnostic::Headroom { ceiling_per_s, .. } => Some(*ceiling_per_s),
            _ => None,
        })
    }),
    shown: |rate| number::fixed(rate, 0),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    presence: if_judged,
    ..PLAIN
};

static GENERATOR_LAG: RunColumn = RunColumn {
    name: "own lag",
    csv: "generator_lag_p99_ms",
    meaning: |_| "99 % of its requests left within so many ms",
    band: Some(generator),
    figure: FigureSource::Of(|run| {
        found_by_check(run.run, |check| match check {
            Diagnostic::GeneratorLag { p99, .. } => Some(p99.as_millis_f64()),
            _ => None,
        })
    }),
    shown: |ms| number::fixed(ms, 3),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    presence: if_judged,
    ..PLAIN
};

static CHECKS: RunColumn = RunColumn {
    name: "checks",
    meaning: |_| "passed, of those asked",
    band: Some(generator),
    figure: FigureSource::Of(|run| {
        let Some(judgement) = &run.run.judgement else { return RunFigure::Unknown };
        let asked = judgement.checks.len();
        let failed = judge::verdict::troubles(judgement).len();
        format!("{} of {asked}", asked - failed).into()
    }),
    stays_when_invalid: true,
    tables: EVERYWHERE,
    presence: if_judged,
    ..PLAIN
};

static GENERATORS: RunColumn = json_only(|run| {
    let far: Vec<SummaryGenerator> =
        run.run.generator.far.iter().map(SummaryGenerator::of).collect();
    RunFigure::json(&far)
});

fn generator(_: RunTable) -> ColumnBand {
    ColumnBand::new("generator", "")
}

fn if_judged(runs: &[SummaryRun<'_>]) -> ColumnPresence {
    ColumnPresence::shown_if(runs.iter().any(|run| run.run.judgement.is_some()))
}

/// What a check of the run measured.
fn found_by_check(run: &Run, figure: fn(&Diagnostic) -> Option<f64>) -> RunFigure {
    let judgement = run.judgement.as_ref();
    judgement.and_then(|judgement| judgement.checks.iter().find_map(figure)).into()
}

/// Whether something was seen that may have spoiled a number of the run's row. A number that is
/// left out, or that nothing confirms, has a note and no mark: a mark would then stand on every row
/// and mean nothing.
fn is_doubtful(run: &Run) -> bool {
    let fails = run.claim.as_ref().is_some_and(|claim| claim.failed > Some(0));
    fails || run.warnings.iter().any(|warning| judge::grade(warning) != Grade::Note)
}

/// What limited a run, in a word; for another generator's run what the audit says of its claim.
fn limit(run: &Run) -> &'static str {
    if let Some(claim) = &run.claim {
        return audit_word(claim.audit);
    }
    let Some(judgement) = &run.judgement else { return NONE };
    match (judgement.verdict, &judgement.limit) {
        (Verdict::ServerBound, Some(Limit::Threads { .. })) => "threads",
        (Verdict::ServerBound, Some(Limit::Cpu(_))) => "CPU",
        (Verdict::ServerBound, Some(Limit::RubyLock { .. })) => "lock",
        (Verdict::ServerBound, Some(Limit::OneCpuEach { .. })) => "one CPU",
        (Verdict::ServerBound, Some(Limit::InsideApp { .. })) => "app",
        (Verdict::ServerBound, Some(Limit::MoreThanStated { .. })) => "more",
        (Verdict::ServerBound, Some(Limit::Refusals { .. })) => "refuses",
        (Verdict::ServerBound, Some(Limit::AcceptQueue { .. })) => "accept",
        // The other limits belong to other verdicts.
        (
            Verdict::ServerBound,
            Some(
                Limit::NotKnown { .. }
                | Limit::Network { .. }
                | Limit::Generator { .. }
                | Limit::SharedCpus(_),
            )
            | None,
        ) => "server",
        (Verdict::GeneratorBound, _) => "GENERATOR",
        (Verdict::NetworkBound, _) => "network",
        (Verdict::SharedCpus, _) => "CPUs",
        (Verdict::Unloaded, _) => "none",
        (Verdict::Invalid, _) => "INVALID",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_table_has_two_columns_of_one_name_in_csv() {
        for table in EVERYWHERE {
            let of_table = COLUMNS.iter().filter(|column| column.tables.contains(table));
            let mut names: Vec<&str> = of_table
                .map(|column| if column.csv.is_empty() { column.name } else { column.csv })
                .collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{table:?}: {names:?}");
        }
    }

    #[test]
    fn json_has_each_key_once() {
        let mut paths: Vec<&str> = IN_JSON.iter().map(|(path, _)| *path).collect();
        let count = paths.len();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), count);
    }
}
