//! The columns of the table of runs, each with what it shows and what its name means: for a full
//! report, HTML and CSV.

use judge::Grade;
use judge::named_runs::is_hidden;
use model::comparison::{ComparisonRun, Metric};
use model::run::PERCENTILES;
use model::{
    BodiesStudy, BodyRun, ComparisonStudy, Diagnostic, Limit, LoadStudy, Nanos, Run, Study,
    SweepStudy, Verdict,
};

use crate::labels::audit_word;
use crate::number::{self, NONE};
use crate::run_summary::{SummaryRun, load_run, millis, range_of_few};
use crate::tree::{ColumnBand, DataTable, TableCell, TableColumn, TableRow};

/// What words that every table of runs has mean.
pub(crate) const MARKS: [(&str, &str); 2] = [
    ("-", "not known, or too few answers to tell, or unanswered requests could change it"),
    ("!", "a number of this row may be spoiled: see the warnings"),
];
const LIMIT: &str = "what limited the run: the server, the generator, or none (it kept up); INVALID: see the warnings";
const CONNECTIONS: &str = "connections in total";
const COMPLETED: &str = "good answers (2xx, 3xx) per second of the measured window";
const PLANNED: &str = "planned in the measured window";
const NOT_GOOD: &str = "requests of the measured window without a good answer";
const WITHOUT_ITS_LENGTH: &str =
    "requests of the measured window without a good answer of the right length";
const SERVER_CPU: &str = "time of all processes of the server on a CPU, an answer (the warm-up in both); from ticks of 10 ms";
const SERVER_MEMORY: &str =
    "memory of the server after the run, in million bytes, what its processes share counted once";

/// The table of a study's runs.
pub(crate) fn table(study: &Study) -> DataTable {
    match study {
        Study::Sweep(study) => of_sweep(study),
        Study::Bodies(study) => of_bodies(study),
        Study::Compare(study) => of_comparison(study),
        Study::Load(study) => of_load(study),
    }
}

/// A table that grows by columns, with a row for each run, which is in an `R`.
struct RunTable<'a, R> {
    rows: Vec<&'a R>,
    run: fn(&R) -> &Run,
    table: DataTable,
}

/// A percentile; where too few answers support it, the range of these.
pub(crate) fn percentile(run: &Run, quantile: f64) -> TableCell {
    match run.percentile_range(quantile) {
        Some(range) => range_of_few([range.low, range.high].map(millis)).into(),
        None => TableCell::time(run.response_time(quantile).time()),
    }
}

impl<'a, R> RunTable<'a, R> {
    /// Of these runs: whether each is doubtful.
    fn of(rows: Vec<&'a R>, run: fn(&R) -> &Run) -> RunTable<'a, R> {
        let table = DataTable::of_columns([], rows.iter().map(|_| TableRow::default()));
        let mut table = RunTable { rows, run, table };
        table.asked(column("", "doubt", ""), |of| {
            if is_doubtful(run(of)) { "!" } else { "" }.into()
        });
        table
    }

    /// A column of every run: what was asked, and that it failed.
    fn asked(&mut self, column: TableColumn, cell: impl Fn(&R) -> TableCell) {
        self.table.columns.push(column);
        for (row, of) in self.table.rows.iter_mut().zip(&self.rows) {
            row.cells.push(cell(of));
        }
    }

    /// A column of figures, which an invalid run has not.
    fn figure(&mut self, column: TableColumn, cell: impl Fn(&R) -> TableCell) {
        let run = self.run;
        self.asked(column, |of| if is_hidden(run(of)) { NONE.into() } else { cell(of) });
    }

    /// The same of a number, and how it is shown.
    fn number(
        &mut self,
        column: TableColumn,
        of: impl Fn(&R) -> Option<f64>,
        shown: fn(f64) -> String,
    ) {
        self.figure(column, |row| TableCell::number(of(row), shown));
    }

    /// The same of a time.
    fn time(&mut self, column: TableColumn, of: impl Fn(&R) -> Option<Nanos>) {
        self.figure(column, |row| TableCell::time(of(row)));
    }

    /// Percentiles under a band, and the longest.
    fn times(&mut self, quantiles: &[f64], band: &ColumnBand) {
        let run = self.run;
        for quantile in quantiles {
            let name = number::percentile(*quantile);
            let own = column(&name, &format!("{name}_ms"), "").under(band);
            self.figure(own, |of| percentile(run(of), *quantile));
        }
        self.time(column("max", "max_ms", "").under(band), |of| run(of).max_response_time().time());
    }

    /// What limited a run, and how its requests ended, each with what its name means.
    fn endings(&mut self, limited: TableColumn, requests: &'static str, errors: &'static str) {
        let run = self.run;
        self.asked(limited, |of| limit(run(of)).into());
        self.asked(column("requests", "", requests), |of| TableCell::counted(run(of).requests()));
        self.asked(column("errors", "", errors), |of| TableCell::counted(run(of).failed()));
        // Texts have a section of it.
        let statuses = column("statuses", "", "answers by status").constant(true);
        self.asked(statuses, |of| {
            let each = |(status, requests)| format!("{status}: {requests}");
            run(of).statuses().into_iter().map(each).collect::<Vec<_>>().join(", ").into()
        });
        if self.rows.iter().all(|of| run(of).tally.unfinished.is_empty()) {
            return;
        }
        let meaning = "out when the user stopped the run; not counted";
        self.asked(column("unfinished", "", meaning), |of| {
            TableCell::counted(Some(run(of).tally.unfinished.in_flight))
        });
        let meaning = "due when the user stopped the run, and without a connection; not counted";
        self.asked(column("not sent", "not_sent", meaning), |of| {
            TableCell::counted(Some(run(of).tally.unfinished.not_sent))
        });
    }

    /// The table, of which so many columns say what a row is of, with how far the generator was
    /// from being noticed.
    fn finished(mut self, lead: usize) -> DataTable {
        let run = self.run;
        let band = ColumnBand::new("generator", "");
        let is_unjudged = self.rows.iter().all(|of| run(of).judgement.is_none());
        let own =
            |name, key, meaning| column(name, key, meaning).under(&band).constant(is_unjudged);
        let found = |of: &R, figure: fn(&Diagnostic) -> Option<f64>| {
            run(of)
                .judgement
                .as_ref()
                .and_then(|judgement| judgement.checks.iter().find_map(figure))
        };
        let ceiling = |check: &Diagnostic| match check {
            Diagnostic::Headroom { ceiling_per_s, .. } => Some(*ceiling_per_s),
            _ => None,
        };
        let lag = |check: &Diagnostic| match check {
            Diagnostic::GeneratorLag { p99, .. } => Some(p99.as_millis_f64()),
            _ => None,
        };
        self.asked(
            own(
                "ceiling",
                "ceiling_per_s",
                "the generator's own limit without a server to wait for, req/s",
            ),
            |of| TableCell::number(found(of, ceiling), |rate| number::fixed(rate, 0)),
        );
        self.asked(
            own("own lag", "generator_lag_p99_ms", "99 % of its requests left within so many ms"),
            |of| TableCell::number(found(of, lag), |ms| number::fixed(ms, 3)),
        );
        self.asked(own("checks", "checks", "passed, of those asked"), |of| {
            let passed = |all: usize, troubles: usize| format!("{} of {all}", all - troubles);
            let judgement = run(of).judgement.as_ref();
            number::or_none(judgement, |it| {
                passed(it.checks.len(), judge::verdict::troubles(it).len())
            })
            .into()
        });
        DataTable { lead, ..self.table }
    }
}

/// A column: its name, its name in CSV where that is another, and what it means where that is not
/// plain.
fn column(name: &str, key: &str, meaning: &'static str) -> TableColumn {
    TableColumn { key: key.to_owned(), meaning, ..TableColumn::new(name) }
}

/// Whether something was seen that may have spoiled a number of the run's row. A number that is
/// left out, or that nothing confirms, has a note and no mark: it would stand on every row and mean
/// nothing.
fn is_doubtful(run: &Run) -> bool {
    let fails = run.claim.as_ref().is_some_and(|claim| claim.failed > Some(0));
    fails || run.warnings.iter().any(|warning| judge::grade(warning) != Grade::Note)
}

/// Response times of a table of runs.
fn response_times() -> ColumnBand {
    ColumnBand {
        meaning: "of good answers: from when a request was due to its last byte",
        ..ColumnBand::new("response time, ms", "ms")
    }
}

/// What limited a run, in a word; of another generator's what the audit leaves of its claim.
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
        (Verdict::ServerBound, _) => "server",
        (Verdict::GeneratorBound, _) => "GENERATOR",
        (Verdict::NetworkBound, _) => "network",
        (Verdict::SharedCpus, _) => "CPUs",
        (Verdict::Unloaded, _) => "none",
        (Verdict::Invalid, _) => "INVALID",
    }
}

/// Of a sweep's runs. Where another generator made them, all but the workers is as it says.
fn of_sweep(study: &SweepStudy) -> DataTable {
    let is_claimed = study.plan.with.is_some();
    let either =
        |ours: &'static str, claimed: &'static str| if is_claimed { claimed } else { ours };
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
    let mut table = RunTable::of(study.runs.iter().collect(), |run| run);
    let pass = column("run", "", "which pass over the multiples, each on a fresh server");
    table.asked(pass.constant(study.plan.repeat < 2), |run| TableCell::count(run.repeat));
    table.asked(column("mult", "multiple", "connections / slots"), |run| {
        TableCell::number(run.multiple, number::multiple)
    });
    table.asked(column("conns", "connections", CONNECTIONS), |run| {
        TableCell::count(run.connections)
    });
    let rate = either(COMPLETED, "requests per second, as it prints them");
    table.number(column("req/s", "rate_per_s", rate), Run::rate, number::rate);
    let maximum = "req/s in % of the theoretical maximum, slots / service time";
    table.number(column("% max", "of_maximum", maximum), Run::of_maximum, number::percent);
    if is_claimed {
        table.time(column("mean", "mean_ms", "").under(&times), Run::mean_response_time);
    }
    table.times(&PERCENTILES, &times);
    table.number(column("tail", "", "max / p10"), Run::long_tail, number::times);
    for (name, key, quantile) in [("p50", "p50_of_ideal", 0.5), ("p99", "p99_of_ideal", 0.99)] {
        table.number(
            column(name, key, "").under(&ideal),
            |run| run.of_ideal(quantile),
            number::times,
        );
    }
    let jain = "fairness among connections: 1 when all get the same, 1/n when one of n gets all";
    let jain = column("Jain", "jain", jain).constant(is_claimed).under(&fairness);
    table.number(jain, Run::fairness, |index| number::fixed(index, 3));
    let furthest = "the worker furthest from an even share, in % of that share";
    let furthest = column("worker ±%", "worker_deviation", furthest).under(&fairness);
    table.number(furthest, |run| widest(&run.worker_deviations()), number::percent_tenths);
    let claim =
        "what longtail audit says of its figures: possible, doubtful, IMPOSSIBLE: see the claims";
    table.endings(
        column(either("limit", "claim"), "", either(LIMIT, claim)),
        either(PLANNED, "those that it says ended"),
        either(NOT_GOOD, "bad statuses, errors and timeouts, as it counts them"),
    );
    if is_claimed {
        let made = "who made the load and says all that stands in this row: nothing of it was measured by longtail";
        table.figure(column("by", "", made), |run| {
            number::or_none(run.claim.as_ref(), |it| it.name()).into()
        });
    }
    table.finished(4)
}

/// The widest relative deviation of a worker from an even share; a single worker has none.
fn widest(deviations: &[f64]) -> Option<f64> {
    (deviations.len() > 1)
        .then(|| deviations.iter().fold(0.0, |widest: f64, d| widest.max(d.abs())))
}

/// Of the runs of a study of bodies.
fn of_bodies(study: &BodiesStudy) -> DataTable {
    let answer = ColumnBand::new("bytes an answer", "bytes");
    let server = ColumnBand::new("server", "");
    let mut table: RunTable<'_, BodyRun> = RunTable::of(study.sorted(), |run| &run.run);
    let pass = column("run", "", "which pass over all of it, each on fresh servers");
    table.asked(pass.constant(study.plan.repeat < 2), |run| TableCell::count(run.run.repeat));
    let socket = column("socket", "", "").constant(study.plan.sockets.len() < 2);
    table.asked(socket, |run| run.socket.to_string().into());
    let size = "size of the content of every answer, 1 KB is 1024 bytes";
    table.asked(column("KB", "kb", size), |run| TableCell::count(run.body.kilobytes));
    let kinds = "array: strings of 1 KB; chunk: an enumerator of them, without a length; string: one; io: a file";
    table.asked(column("type", "", kinds), |run| run.body.kind.name().into());
    table.asked(column("conns", "connections", CONNECTIONS), |run| {
        TableCell::count(run.run.connections)
    });
    let rate = "good answers (2xx, 3xx, of the right length) per second of the measured window";
    table.number(column("req/s", "rate_per_s", rate), |run| run.run.rate(), number::rate);
    let content =
        column("MB/s", "content_bytes_per_s", "their content, in million bytes per second");
    table.number(content, |run| Some(run.content_rate()), number::megabytes);
    table.times(&[0.50, 0.75, 0.90, 0.99], &response_times());
    let content =
        column("content", "content_bytes", "bytes of content, counted, over whole answers");
    table.number(content.under(&answer), BodyRun::content_bytes, number::exact);
    let whole =
        column("whole", "whole_bytes", "the same with heads and what chunks are wrapped in");
    table.number(whole.under(&answer), BodyRun::whole_bytes, number::exact);
    table.time(column("CPU ms", "server_cpu_ms", SERVER_CPU).under(&server), BodyRun::server_cpu);
    let memory = column("MB", "server_memory_bytes", SERVER_MEMORY).under(&server);
    table.number(
        memory,
        |run| run.server.memory_bytes.map(|bytes| bytes as f64),
        number::megabytes,
    );
    table.endings(column("limit", "", LIMIT), PLANNED, WITHOUT_ITS_LENGTH);
    table.finished(5)
}

/// Of a comparison's runs, in the order in which they were made.
fn of_comparison(study: &ComparisonStudy) -> DataTable {
    let (times, server) = (response_times(), ColumnBand::new("server", ""));
    let time = |run: &ComparisonRun, metric: Metric| metric.of(run).ok().map(Nanos::from_secs_f64);
    let mut table: RunTable<'_, ComparisonRun> =
        RunTable::of(study.runs.iter().collect(), |run| &run.run);
    table.asked(column("block", "", "each has every arm once"), |run| TableCell::count(run.block));
    table.asked(column("arm", "", "A' is the control: A once more"), |run| {
        study.plan.letter(run.arm).into()
    });
    let again = column("attempt", "", "2: the first run failed its checks, and is not counted");
    let is_once = study.runs.iter().all(|run| run.attempt == 1);
    table.asked(again.constant(is_once), |run| TableCell::count(run.attempt));
    table.asked(column("conns", "connections", ""), |run| TableCell::count(run.run.connections));
    table.number(
        column("req/s", "rate_per_s", ""),
        |run| Metric::Throughput.of(run).ok(),
        number::rate,
    );
    for metric in [Metric::Mean, Metric::P50, Metric::P95, Metric::P99] {
        let name = metric.to_string();
        table.time(column(&name, &format!("{name}_ms"), "").under(&times), |run| time(run, metric));
    }
    table.time(column("CPU ms", "server_cpu_ms", SERVER_CPU).under(&server), |run| {
        time(run, Metric::Cpu)
    });
    let memory = column("MB", "server_memory_bytes", SERVER_MEMORY).under(&server);
    table.number(memory, |run| Metric::Memory.of(run).ok(), number::megabytes);
    table.endings(column("limit", "", LIMIT), PLANNED, WITHOUT_ITS_LENGTH);
    table.finished(4)
}

/// Of a load, by its summary: a backlog that is served after the window counts as completed under
/// this load.
fn of_load(study: &LoadStudy) -> DataTable {
    let times = response_times();
    let SummaryRun { connections, rate, .. } = load_run(study);
    let is_closed = rate.offered.is_none();
    let mut table = RunTable::of(vec![&study.run], |run| run);
    table.asked(column("conns", "connections", CONNECTIONS), |_| TableCell::count(connections));
    let seconds = column("seconds", "", "").constant(true);
    table.number(seconds, |run| Some(run.measured.as_secs_f64()), number::shortest);
    let offered =
        column("offered/s", "offered_per_s", "requests that were due").constant(is_closed);
    table.number(offered, |_| rate.offered, number::rate);
    table.number(
        column("sent/s", "sent_per_s", "").constant(is_closed),
        |_| rate.sent,
        number::rate,
    );
    table.number(column("req/s", "rate_per_s", COMPLETED), |_| rate.completed, number::rate);
    table.time(column("mean", "mean_ms", "").under(&times), Run::mean_response_time);
    table.times(&[0.5, 0.9, 0.95, 0.99, 0.999], &times);
    table.endings(column("limit", "", LIMIT), PLANNED, NOT_GOOD);
    table.finished(2)
}

/// The names of the columns and all rows.
pub fn csv(study: &Study) -> String {
    let table = table(study);
    let name = |column: &TableColumn| {
        if column.key.is_empty() { quoted(&column.full_name()) } else { column.key.clone() }
    };
    let cell = |cell: &TableCell| match cell.value {
        Some(value) => value.to_string(),
        None if cell.text == NONE => String::new(),
        None => quoted(&cell.text.to_lowercase()),
    };
    let head = table.columns.iter().map(name).collect::<Vec<_>>().join(",");
    let lines =
        table.rows.iter().map(|row| row.cells.iter().map(cell).collect::<Vec<_>>().join(","));
    std::iter::once(head).chain(lines).map(|line| line + "\n").collect()
}

/// As RFC 4180 has it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
