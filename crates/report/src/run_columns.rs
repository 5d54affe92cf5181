//! The table of a study's runs, a row a run: its columns, each with what it shows of a run and what its name means. In a full report, in HTML
//! and in CSV.

use model::comparison::{ComparisonRun, Metric};
use model::run::PERCENTILES;
use model::{
    BodiesStudy, BodyRun, ComparisonStudy, Diagnostic, Grade, Judgement, Limit, LoadStudy, Nanos, Run, Study,
    SweepStudy, Verdict,
};

use crate::claimed::audit_word;
use crate::named_runs::hides;
use crate::number::{self, NONE};
use crate::summary::{self, SummaryRun};
use crate::tree::{ColumnBand, DataTable, TableCell, TableColumn, TableRow};

/// A column and what it shows of a run, which is an `R`.
struct RunColumn<R> {
    column: TableColumn,
    /// Whether it is shown of an invalid run too: what was asked, and that it failed.
    is_of_any_run: bool,
    cell: Box<dyn Fn(&R) -> TableCell>,
}

impl<R> RunColumn<R> {
    /// Its name, its name in CSV, and what it means, where that is not plain.
    fn new(name: &str, key: &str, meaning: &'static str, cell: impl Fn(&R) -> TableCell + 'static) -> RunColumn<R> {
        let column = TableColumn { name: name.to_owned(), key: key.to_owned(), meaning, ..TableColumn::default() };
        RunColumn { column, is_of_any_run: false, cell: Box::new(cell) }
    }

    fn of_any_run(self) -> RunColumn<R> {
        RunColumn { is_of_any_run: true, ..self }
    }

    fn under(mut self, band: &ColumnBand) -> RunColumn<R> {
        self.column.band = Some(band.clone());
        self
    }

    fn constant(mut self, is_constant: bool) -> RunColumn<R> {
        self.column.is_constant = is_constant;
        self
    }
}

/// What words that every table of runs has mean.
pub(crate) const MARKS: [(&str, &str); 2] = [
    ("-", "not known, or too few answers to tell, or unanswered requests could change it"),
    ("!", "a number of this row may be spoiled: see the warnings"),
];

/// The table of a study's runs.
pub(crate) fn table(study: &Study) -> DataTable {
    match study {
        Study::Sweep(study) => filled(of_sweep(study), 4, &study.runs.iter().collect::<Vec<_>>(), |run| run),
        Study::Bodies(study) => filled(of_bodies(study), 5, &study.sorted(), |run| &run.run),
        Study::Compare(study) => {
            filled(of_comparison(study), 4, &study.runs.iter().collect::<Vec<_>>(), |run| &run.run)
        }
        Study::Load(study) => filled(of_load(study), 2, &[&study.run], |run| run),
    }
}

/// These columns with a row a run, between what is asked of every run: whether it is doubtful, what limited it, how its requests ended, and how
/// far the generator was from being noticed. An invalid run has no headline figure.
fn filled<R: 'static>(own: Vec<RunColumn<R>>, lead: usize, runs: &[&R], run: fn(&R) -> &Run) -> DataTable {
    let doubt = move |of: &R| if is_doubtful(run(of)) { "!" } else { "" }.into();
    let columns: Vec<RunColumn<R>> = std::iter::once(RunColumn::new("", "doubt", "", doubt).of_any_run())
        .chain(own)
        .chain(of_generator(run, runs.iter().all(|of| run(of).judgement.is_none())))
        .collect();
    let rows: Vec<TableRow> = runs
        .iter()
        .map(|of| {
            let is_hidden = hides(run(of).judgement.as_ref());
            let shown = |column: &RunColumn<R>| !is_hidden || column.is_of_any_run;
            TableRow::new(columns.iter().map(|column| if shown(column) { (column.cell)(of) } else { NONE.into() }))
        })
        .collect();
    DataTable { lead, ..DataTable::of_columns(columns.into_iter().map(|column| column.column), rows) }
}

/// Whether something was seen that may have spoiled a number of the run's row. A number that is left out, or that
/// nothing confirms, has a note and no mark: it would stand on every row and mean nothing.
fn is_doubtful(run: &Run) -> bool {
    let fails = run.claim.as_ref().is_some_and(|claim| claim.failed > Some(0));
    fails || run.warnings.iter().any(|warning| warning.grade() != Grade::Note)
}

fn count(n: Option<u64>) -> TableCell {
    n.map_or_else(|| NONE.into(), TableCell::count)
}

/// Response times of a table of runs.
fn response_times() -> ColumnBand {
    ColumnBand {
        meaning: "of good answers: from when a request was due to its last byte",
        ..ColumnBand::new("response time, ms", "ms")
    }
}

/// Percentiles under a band, and the longest.
fn percentiles<R: 'static>(quantiles: &[f64], band: &ColumnBand, run: fn(&R) -> &Run) -> Vec<RunColumn<R>> {
    let column = |quantile: f64| {
        let name = number::percentile(quantile);
        let cell = move |of: &R| TableCell::time(run(of).response_time(quantile).time());
        RunColumn::new(&name, &format!("{name}_ms"), "", cell).under(band)
    };
    let max = move |of: &R| TableCell::time(run(of).max_response_time().time());
    let max = RunColumn::new("max", "max_ms", "", max).under(band);
    quantiles.iter().copied().map(column).chain([max]).collect()
}

/// What limited a run, in a word; of another generator's what the audit leaves of its claim.
fn limit(run: &Run) -> &'static str {
    let limit = run.judgement.as_ref().and_then(|judgement| judgement.limit.as_ref());
    match (run.claim.as_ref(), run.judgement.as_ref().map(|judgement| judgement.verdict)) {
        (Some(claim), _) => audit_word(claim.audit),
        (_, Some(Verdict::ServerBound)) => match limit {
            Some(Limit::Threads { .. }) => "threads",
            Some(Limit::Cpu(_)) => "CPU",
            Some(Limit::RubyLock { .. }) => "lock",
            Some(Limit::AcceptQueue { .. }) => "accept",
            _ => "server",
        },
        (_, Some(Verdict::GeneratorBound)) => "GENERATOR",
        (_, Some(Verdict::NetworkBound)) => "network",
        (_, Some(Verdict::SharedCpus)) => "CPUs",
        (_, Some(Verdict::Unloaded)) => "none",
        (_, Some(Verdict::Invalid)) => "INVALID",
        (_, None) => NONE,
    }
}

const LIMIT: &str = "what limited the run: the server, the generator, or none (it kept up); INVALID: see the warnings";

/// How the requests of a run that we made ended; `of_what` are good answers.
fn endings<R: 'static>(meaning: &'static str, run: fn(&R) -> &Run) -> [RunColumn<R>; 3] {
    type C<R> = RunColumn<R>;
    [
        C::new("limit", "", LIMIT, move |of| limit(run(of)).into()).of_any_run(),
        C::new("requests", "", "planned in the measured window", move |of| count(run(of).requests())).of_any_run(),
        C::new("errors", "", meaning, move |of| count(run(of).failed())).of_any_run(),
    ]
}

/// How far the generator was from being noticed.
fn of_generator<R: 'static>(run: fn(&R) -> &Run, is_unknown: bool) -> [RunColumn<R>; 3] {
    type C<R> = RunColumn<R>;
    let band = ColumnBand::new("generator", "");
    let found = |run: &Run, figure: fn(&Diagnostic) -> Option<f64>| -> Option<f64> {
        run.judgement.as_ref()?.checks.iter().find_map(figure)
    };
    let ceiling = |check: &Diagnostic| match check {
        Diagnostic::Headroom { ceiling_per_s, .. } => Some(*ceiling_per_s),
        _ => None,
    };
    let lag = |check: &Diagnostic| match check {
        Diagnostic::GeneratorLag { p99, .. } => Some(p99.as_millis_f64()),
        _ => None,
    };
    let passed = |judgement: &Judgement| {
        let all = judgement.checks.len();
        format!("{} of {all}", all - judgement.troubles().len())
    };
    [
        C::new(
            "ceiling",
            "ceiling_per_s",
            "the generator's own limit without a server to wait for, req/s",
            move |of| TableCell::number(found(run(of), ceiling), |rate| number::fixed(rate, 0)),
        )
        .under(&band)
        .constant(is_unknown)
        .of_any_run(),
        C::new("own lag", "generator_lag_p99_ms", "99 % of its requests left within so many ms", move |of| {
            TableCell::number(found(run(of), lag), |ms| number::fixed(ms, 3))
        })
        .under(&band)
        .constant(is_unknown)
        .of_any_run(),
        C::new("checks", "checks", "passed, of those asked", move |of| {
            number::or_none(run(of).judgement.as_ref(), passed).into()
        })
        .under(&band)
        .constant(is_unknown)
        .of_any_run(),
    ]
}

/// Of a sweep's runs. Where another generator made them, all but the workers is as it says.
fn of_sweep(study: &SweepStudy) -> Vec<RunColumn<Run>> {
    type C = RunColumn<Run>;
    let is_claimed = study.plan.with.is_some();
    let either = move |ours: &'static str, claimed: &'static str| if is_claimed { claimed } else { ours };
    let times = if is_claimed {
        let meaning = "as it prints them; - where it does not print that percentile";
        ColumnBand { meaning, ..ColumnBand::new("times by the other generator, ms", "its ms") }
    } else {
        response_times()
    };
    let ideal = ColumnBand {
        meaning: "response time / ideal; ideal: all wait in one line, service time x max(1, mult)",
        ..ColumnBand::new("x ideal", "x ideal")
    };
    let fairness = ColumnBand::new("fairness", "");
    let rate =
        either("good answers (2xx, 3xx) per second of the measured window", "requests per second, as it prints them");
    let requests = either("planned in the measured window", "those that it says ended");
    let errors = either(
        "requests of the measured window without a good answer",
        "bad statuses, errors and timeouts, as it counts them",
    );
    let claim = "what longtail audit says of its figures: possible, doubtful, IMPOSSIBLE: see the claims";
    let made = "who made the load and says all that stands in this row: nothing of it was measured by longtail";
    let jain = "fairness among connections: 1 when all get the same, 1/n when one of n gets all";
    let maker = |run: &Run| run.claim.as_ref().map_or_else(|| NONE.to_owned(), |claim| claim.name()).into();
    let mut columns = vec![
        C::new("run", "", "which pass over the multiples, each on a fresh server", |run| TableCell::count(run.repeat))
            .constant(study.plan.repeat < 2)
            .of_any_run(),
        C::new("mult", "multiple", "connections / slots", |run| TableCell::number(run.multiple, number::multiple))
            .of_any_run(),
        C::new("conns", "connections", "connections in total", |run| TableCell::count(run.connections)).of_any_run(),
        C::new("req/s", "rate_per_s", rate, |run| TableCell::number(run.rate(), number::rate)),
        C::new("% max", "of_maximum", "req/s in % of the theoretical maximum, slots / service time", |run| {
            TableCell::number(run.of_maximum(), number::percent)
        }),
    ];
    let mean = |run: &Run| TableCell::time(run.mean_response_time());
    columns.extend(is_claimed.then(|| C::new("mean", "mean_ms", "", mean).under(&times)));
    columns.extend(percentiles(&PERCENTILES, &times, |run: &Run| run));
    let of_ideal = |q: f64| move |run: &Run| TableCell::number(run.of_ideal(q), number::times);
    let deviation = |run: &Run| TableCell::number(widest(&run.worker_deviations()), number::percent_tenths);
    columns.extend([
        C::new("tail", "", "max / p10", |run| TableCell::number(run.long_tail(), number::times)),
        C::new("p50", "p50_of_ideal", "", of_ideal(0.5)).under(&ideal),
        C::new("p99", "p99_of_ideal", "", of_ideal(0.99)).under(&ideal),
        C::new("Jain", "jain", jain, |run| TableCell::number(run.fairness(), number::index))
            .constant(is_claimed)
            .under(&fairness),
        C::new(
            "worker ±%",
            "worker_deviation",
            "the worker furthest from an even share, in % of that share",
            deviation,
        )
        .under(&fairness),
        C::new(either("limit", "claim"), "", either(LIMIT, claim), |run| limit(run).into()).of_any_run(),
        C::new("requests", "", requests, |run| count(run.requests())).of_any_run(),
        C::new("errors", "", errors, |run| count(run.failed())).of_any_run(),
    ]);
    columns.extend(is_claimed.then(|| C::new("by", "", made, maker)));
    columns
}

/// The widest relative deviation of a worker from an even share; a single worker has none.
fn widest(deviations: &[f64]) -> Option<f64> {
    (deviations.len() > 1).then(|| deviations.iter().fold(0.0, |widest: f64, d| widest.max(d.abs())))
}

const WITHOUT_ITS_LENGTH: &str = "requests of the measured window without a good answer of the right length";
const SERVER_CPU: &str =
    "time of all processes of the server on a CPU, an answer (the warm-up in both); from ticks of 10 ms";
const SERVER_MEMORY: &str =
    "memory of the server after the run, in million bytes, what its processes share counted once";

/// Of the runs of a study of bodies.
fn of_bodies(study: &BodiesStudy) -> Vec<RunColumn<BodyRun>> {
    type C = RunColumn<BodyRun>;
    let answer = ColumnBand::new("bytes an answer", "bytes");
    let server = ColumnBand::new("server", "");
    let kinds = "array: strings of 1 KB; chunk: an enumerator of them, without a length; string: one; io: a file";
    let rate = "good answers (2xx, 3xx, of the right length) per second of the measured window";
    let memory =
        |run: &BodyRun| TableCell::number(run.server.memory_bytes.map(|bytes| bytes as f64), number::megabytes);
    let mut columns = vec![
        C::new("run", "", "which pass over all of it, each on fresh servers", |run| TableCell::count(run.run.repeat))
            .constant(study.plan.repeat < 2)
            .of_any_run(),
        C::new("socket", "", "", |run| run.socket.to_string().into())
            .constant(study.plan.sockets.len() < 2)
            .of_any_run(),
        C::new("KB", "kb", "size of the content of every answer, 1 KB is 1024 bytes", |run| {
            TableCell::count(run.body.kilobytes)
        })
        .of_any_run(),
        C::new("type", "", kinds, |run| run.body.kind.name().into()).of_any_run(),
        C::new("conns", "connections", "connections in total", |run| TableCell::count(run.run.connections))
            .of_any_run(),
        C::new("req/s", "rate_per_s", rate, |run| TableCell::number(run.run.rate(), number::rate)),
        C::new("MB/s", "content_bytes_per_s", "their content, in million bytes per second", |run| {
            TableCell::number(Some(run.content_rate()), number::megabytes)
        }),
    ];
    columns.extend(percentiles(&[0.50, 0.75, 0.90, 0.99], &response_times(), |run: &BodyRun| &run.run));
    columns.extend([
        C::new("content", "content_bytes", "bytes of content, counted, over whole answers", |run| {
            TableCell::number(run.content_bytes(), number::exact)
        })
        .under(&answer),
        C::new("whole", "whole_bytes", "the same with heads and what chunks are wrapped in", |run| {
            TableCell::number(run.whole_bytes(), number::exact)
        })
        .under(&answer),
        C::new("CPU ms", "server_cpu_ms", SERVER_CPU, |run| TableCell::time(run.server_cpu())).under(&server),
        C::new("MB", "server_memory_bytes", SERVER_MEMORY, memory).under(&server),
    ]);
    columns.extend(endings(WITHOUT_ITS_LENGTH, |run: &BodyRun| &run.run));
    columns
}

/// Of a comparison's runs, in the order in which they were made.
fn of_comparison(study: &ComparisonStudy) -> Vec<RunColumn<ComparisonRun>> {
    type C = RunColumn<ComparisonRun>;
    let (times, server) = (response_times(), ColumnBand::new("server", ""));
    let plan = study.plan.clone();
    let time =
        |metric: Metric| move |run: &ComparisonRun| TableCell::time(metric.of(run).ok().map(Nanos::from_secs_f64));
    let figure = |metric: Metric, shown: fn(f64) -> String| {
        move |run: &ComparisonRun| TableCell::number(metric.of(run).ok(), shown)
    };
    let again = "2: the first run failed its checks, and is not counted";
    let mut columns = vec![
        C::new("block", "", "each has every arm once", |run| TableCell::count(run.block)).of_any_run(),
        C::new("arm", "", "A' is the control: A once more", move |run| plan.letter(run.arm).into()).of_any_run(),
        C::new("attempt", "", again, |run| TableCell::count(run.attempt))
            .constant(study.runs.iter().all(|run| run.attempt == 1))
            .of_any_run(),
        C::new("conns", "connections", "", |run| TableCell::count(run.run.connections)).of_any_run(),
        C::new("req/s", "rate_per_s", "", figure(Metric::Throughput, number::rate)),
    ];
    let shown = [Metric::Mean, Metric::P50, Metric::P95, Metric::P99];
    columns.extend(
        shown.map(|metric| C::new(&metric.to_string(), &format!("{metric}_ms"), "", time(metric)).under(&times)),
    );
    columns.extend([
        C::new("CPU ms", "server_cpu_ms", SERVER_CPU, time(Metric::Cpu)).under(&server),
        C::new("MB", "server_memory_bytes", SERVER_MEMORY, figure(Metric::Memory, number::megabytes)).under(&server),
    ]);
    columns.extend(endings(WITHOUT_ITS_LENGTH, |run: &ComparisonRun| &run.run));
    columns
}

/// Of a load, by its summary: a backlog that is served after the window counts as completed under this load.
fn of_load(study: &LoadStudy) -> Vec<RunColumn<Run>> {
    type C = RunColumn<Run>;
    let times = response_times();
    let SummaryRun { connections, rate, .. } = summary::load_run(study);
    let known = |rate: Option<f64>| move |_: &Run| TableCell::number(rate, number::rate);
    let is_closed = rate.offered.is_none();
    let seconds = |run: &Run| TableCell::number(Some(run.measured.as_secs_f64()), number::shortest);
    let completed = "good answers (2xx, 3xx) per second of the measured window";
    let mut columns = vec![
        C::new("conns", "connections", "connections in total", move |_| TableCell::count(connections)).of_any_run(),
        C::new("seconds", "", "", seconds).constant(true),
        C::new("offered/s", "offered_per_s", "requests that were due", known(rate.offered)).constant(is_closed),
        C::new("sent/s", "sent_per_s", "", known(rate.sent)).constant(is_closed),
        C::new("req/s", "rate_per_s", completed, known(rate.completed)),
        C::new("mean", "mean_ms", "", |run| TableCell::time(run.mean_response_time())).under(&times),
    ];
    columns.extend(percentiles(&[0.5, 0.9, 0.95, 0.99, 0.999], &times, |run: &Run| run));
    columns.extend(endings("requests of the measured window without a good answer", |run: &Run| run));
    columns
}
