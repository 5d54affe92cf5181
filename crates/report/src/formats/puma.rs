//! The tables of Puma's own scripts, with their characters and widths, so that a new table compares
//! with an old one. Where a script would print a number that the requests do not support, there is
//! a `-`.
//!
//! `long_tail_hey` is the table of a sweep, as Puma 6.6 printed it but for one word: the script's
//! band says "Latency" for what is a response time. Times are seconds. `Std Dev` is the
//! population's standard deviation of the workers' shares in percentage points of all requests
//! (Puma 7's script prints that of the relative deviations, which is larger by the number of
//! workers). Deviations are relative to an even share, and `Total Reqs` are good responses. As in
//! the script, a server with at most one worker has no worker columns.
//!
//! `response_time_wrk` is the table of a study of bodies. `Resp Size` is the counted content of a
//! response; the script derived it from wrk's rounded output, which includes the framing of chunks.
//! Times are ours: nothing is added to them afterwards.

use std::fmt::Write as _;

use model::{BodiesStudy, Body, Run, Socket, Stop, SweepStudy, Threads};

use crate::details::{PivotPlace, median_of_body};
use crate::labels;
use crate::number::{self, NONE, or_none};
use crate::run_column::RunColumn;
use crate::run_columns::{
    CONNECTIONS, CONTENT_BYTES, MAX, MULTIPLE, P10, P25, P50, P75, P90, P95, P99, RATE,
};
use crate::run_summary::{RunContext, SummaryRun};
use crate::text::{band, right};

/// The times that hey prints; the longest is its 100 %.
const TIMES: [&RunColumn; 8] = [&P10, &P25, &P50, &P75, &P90, &P95, &P99, &MAX];

/// The column where the band over the workers begins.
const WORKERS_FROM: usize = 91;

/// How many workers have columns; `None` if there is nothing to compare.
fn worker_columns(study: &SweepStudy) -> Option<usize> {
    (study.server.workers > 1).then_some(study.server.workers as usize)
}

/// The table: a row for each run.
pub(crate) fn table(study: &SweepStudy) -> String {
    let rows = study.runs.iter().map(|run| row(study, run) + "\n");
    table_head(study) + &rows.collect::<String>()
}

/// Title, bands and headings.
fn table_head(study: &SweepStudy) -> String {
    let mut title = title(study);
    let closes = if study.plan.stream.keep_alive { "" } else { "-disable-keepalive" };
    let mut bands = format!("{closes:<25}{}", band("Response time", 63));
    let mut names =
        "Mult/Conn     req/sec      10%     25%     50%     75%     90%     95%     99%    100%"
            .to_owned();
    if let Some(workers) = worker_columns(study) {
        let bars = "─".repeat((5 * workers - 6).div_ceil(2));
        title = format!("{title:<WORKERS_FROM$}{bars} Worker Request Info {bars}");
        let between = 5 * (workers - 1);
        let before = " ".repeat(between.div_ceil(2));
        let after = " ".repeat(between / 2);
        let even = right(&number::fixed(100.0 / workers as f64, 2), 5);
        _ = write!(bands, "    Std{before}% deviation{after}Total");
        _ = write!(names, "      Dev{before}from {even}%{after} Reqs");
    }
    format!("{title}\n{bands}\n{names}\n")
}

/// `Branch: 00-long-tail-hey Puma: -w4  -t5:5  dly 0.2`.
fn title(study: &SweepStudy) -> String {
    let server = &study.server;
    let branch = server.git.as_deref().and_then(|git| git.split(' ').next()).unwrap_or(NONE);
    let delay = or_none(study.plan.stream.delay, |delay| number::shortest(delay.as_secs_f64()));
    format!("Branch: {branch:<16} {}: {}  dly {delay}", server.name, size(study))
}

/// `-w4  -t5:5`; a server whose slots the user gave has neither flag.
fn size(study: &SweepStudy) -> String {
    let server = &study.server;
    if study.plan.server.kind.stated_slots().is_some() {
        return format!("slots {}", server.slots());
    }
    let workers = if server.cluster { format!("-w{}", server.workers) } else { String::new() };
    let most = Threads { min: server.threads, max: server.threads };
    format!("{workers:<4} -t{}", study.plan.server.threads.unwrap_or(most))
}

/// The row of a run. If another generator made it, the figures are that generator's: hey's are
/// what Puma's script prints.
fn row(study: &SweepStudy, run: &Run) -> String {
    let run = &SummaryRun::of(String::new(), run, RunContext::Sweep(study));
    let multiple = or_none(MULTIPLE.value(run), number::multiple);
    let connections = right(&CONNECTIONS.cell(run).text, 3);
    let rate = right(&or_none(RATE.value(run), |rate| number::fixed(rate, 4)), 12);
    let mut row = format!("{multiple} {connections} {rate}  ");
    for column in TIMES {
        let time = column.shown_figure(run).time();
        row.push_str(&right(&or_none(time, number::seconds), 8));
    }
    if let Some(workers) = worker_columns(study) {
        let good = or_none(run.run.good(), |n| n.to_string());
        row.push_str(&worker_cells(&run.run.worker_deviations(), &good, workers));
    }
    row
}

fn worker_cells(deviations: &[f64], good: &str, workers: usize) -> String {
    // With a worker missing, or a new one, the shares cannot be compared with an even share of
    // `workers`.
    let known = Some(deviations).filter(|deviations| deviations.len() == workers);
    let spread = or_none(known, |deviations| {
        number::fixed(standard_deviation(deviations) * 100.0 / workers as f64, 3)
    });
    let mut cells = format!("  {}  ", right(&spread, 7));
    let shown: Vec<Option<f64>> = match known {
        Some(deviations) => deviations.iter().copied().map(Some).collect(),
        None => vec![None; workers],
    };
    for deviation in shown {
        let percent = deviation.map(|deviation: f64| deviation * 100.0);
        let shown =
            or_none(percent, |percent| number::fixed(percent, usize::from(percent.abs() < 9.95)));
        _ = write!(cells, " {}", right(&shown, 4));
    }
    _ = write!(cells, "   {}", right(good, 5));
    cells
}

/// The standard deviation of a population.
fn standard_deviation(population: &[f64]) -> f64 {
    let n = population.len() as f64;
    let mean = population.iter().sum::<f64>() / n;
    (population.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// What the headings mean.
pub(crate) fn words(study: &SweepStudy) -> Vec<(&'static str, &'static str)> {
    let mut words = vec![("Mult", "connections / slots")];
    words.extend(if study.plan.with.is_some() {
        [
            ("req/sec", "requests per second, as the other generator prints them"),
            ("10% to 100%", "its times in seconds, as it prints them"),
        ]
    } else {
        [
            ("req/sec", "good responses (2xx, 3xx) per second of the measured window"),
            ("10% to 100%", "response time of good responses in seconds: from when a request was due to its last byte"),
        ]
    });
    if worker_columns(study).is_some() {
        words.extend([
            ("Std Dev", "of the workers' shares, in percentage points of all (as Puma 6.6's script, not as 7's)"),
            ("% deviation", "of each worker from an even share, in % of that share, rising"),
            ("Total Reqs", "good responses"),
        ]);
    }
    words.push((
        "-",
        "not known, or too few responses to tell, or unanswered requests could change it",
    ));
    words
}

/// Length of the bar above the rows of each size.
const RULE: usize = 65;

/// A column of a table of bodies: its figure, and how the script prints that.
struct BodyColumn {
    column: &'static RunColumn,
    width: usize,
    shown: fn(f64) -> String,
}

impl BodyColumn {
    const fn time(column: &'static RunColumn) -> BodyColumn {
        BodyColumn { column, width: 8, shown: |millis| number::fixed(millis, 2) }
    }

    fn cell(&self, study: &BodiesStudy, place: PivotPlace) -> String {
        right(&or_none(median_of_body(study, place, self.column), self.shown), self.width)
    }
}

/// The columns of the first table.
const BY_SIZE: [BodyColumn; 7] = [
    BodyColumn { column: &RATE, width: 7, shown: |rate| number::fixed(rate, 0) },
    BodyColumn::time(&P50),
    BodyColumn::time(&P75),
    BodyColumn::time(&P90),
    BodyColumn::time(&P99),
    BodyColumn::time(&MAX),
    BodyColumn { column: &CONTENT_BYTES, width: 10, shown: number::exact },
];

/// The figures of the second table, under their titles.
const PIVOTED: [(&str, BodyColumn); 2] = [
    ("req/sec", BodyColumn { column: &RATE, width: 8, shown: |rate| number::fixed(rate, 0) }),
    (
        "req 50% times",
        BodyColumn { column: &P50, width: 8, shown: |millis| number::fixed(millis, 3) },
    ),
];

/// Both tables for each kind of socket, and what the script prints below them.
pub(crate) fn of_bodies(study: &BodiesStudy) -> String {
    let mut text = String::new();
    for socket in &study.plan.sockets {
        if study.plan.sockets.len() > 1 {
            _ = writeln!(text, "{socket}");
        }
        text.push_str(&by_size(study, *socket));
        text.push('\n');
        text.push_str(&pivot(study, *socket));
        text.push('\n');
    }
    // What follows belongs to the last table, without a blank line between them.
    text.pop();
    text + &footer(study)
}

fn by_size(study: &BodiesStudy, socket: Socket) -> String {
    let mut text = "Type   req/sec    50%     75%     90%     99%    100%  Resp Size\n".to_owned();
    for kilobytes in &study.plan.bodies.kilobytes {
        _ = writeln!(text, "{}{}", "─".repeat(RULE), right(&format!("{kilobytes}kB"), 7));
        for kind in &study.plan.bodies.kinds {
            let place = PivotPlace { socket, body: Body { kilobytes: *kilobytes, kind: *kind } };
            let cells: String = BY_SIZE.iter().map(|column| column.cell(study, place)).collect();
            _ = writeln!(text, "{:<6}{cells}", kind.name());
        }
    }
    text
}

fn pivot(study: &BodiesStudy, socket: Socket) -> String {
    let kinds = &study.plan.bodies.kinds;
    let inner = 8 * kinds.len() - 3;
    let bands: Vec<String> = PIVOTED.iter().map(|(title, _)| band(title, inner)).collect();
    let mut text = format!("Body    {}\n", bands.join("   "));
    let names: String = kinds.iter().map(|kind| right(kind.name(), 8)).collect();
    _ = writeln!(text, " KB  {names}{names}");
    for kilobytes in &study.plan.bodies.kilobytes {
        _ = write!(text, "{kilobytes:<5}");
        for (_, column) in &PIVOTED {
            for kind in kinds {
                let body = Body { kilobytes: *kilobytes, kind: *kind };
                text.push_str(&column.cell(study, PivotPlace { socket, body }));
            }
        }
        text.push('\n');
    }
    _ = writeln!(text, "{}", "─".repeat(5 + 16 * kinds.len()));
    text
}

/// The load, the command and the server. The script's first line is `wrk -t8 -c16 -d10s`.
fn footer(study: &BodiesStudy) -> String {
    let plan = &study.plan;
    let total = format!("\n{:>5} Total Time\n", number::minutes(study.total_time));
    let Some(server) = study.server() else { return format!("{}\n{total}", study.command_line) };
    let length = match plan.stream.stop {
        Stop::After(time) => format!(" -D{time}"),
        Stop::RequestsPerConnection(n) => format!(" -R{n}"),
    };
    let streams = plan.streams_on(server.slots());
    let each = plan.connections_per_stream;
    let connections = number::count_of(plan.connections_on(server.slots()), "connection");
    let mode = if server.cluster {
        format!("cluster mode -w{}", server.workers)
    } else {
        "single mode".to_owned()
    };
    let threads = server.threads;
    let size = plan
        .server
        .threads
        .map_or_else(|| format!("{threads}:{threads}"), |threads| threads.to_string());
    let binds: Vec<String> = plan.sockets.iter().map(Socket::to_string).collect();
    let mut lines = vec![
        format!("longtail -T{streams} -c{each}{length}: {connections}"),
        study.command_line.to_string(),
        format!("Server {mode} -t{size}, bind: {}", binds.join(" ")),
    ];
    let branch = server.git.as_ref().map(|git| git.split(' ').next().unwrap_or(git));
    lines.extend(branch.map(|branch| format!("Puma repo branch {branch}")));
    lines.extend([labels::server(server), total]);
    lines.join("\n")
}
