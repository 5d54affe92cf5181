//! The tables of Puma's own scripts, so that a new one can stand next to an old one: characters and
//! widths are those of the scripts. Where a script would print a number that the requests do not
//! support, there is a `-`.
//!
//! `long_tail_hey`, of a sweep, as Puma 6.6 printed it, with one word changed: its band says
//! "Latency", ours says what it is. Times are seconds; `Std Dev` is the population's, of the
//! workers' shares in percentage points of the whole (Puma 7's script prints that of the relative
//! deviations instead: larger by the number of workers); the deviations are relative to an even
//! share. `Total Reqs` are good answers. As in the script, a server with one worker or none has no
//! worker columns.
//!
//! `response_time_wrk`, of bodies: `Resp Size` is the content of an answer as it was counted; the
//! script's was derived from wrk's rounded output and held what chunks are wrapped in too. Times
//! are ours: nothing is added to them afterwards.

use std::fmt::Write as _;

use judge::named_runs::is_hidden;
use model::{
    BodiesStudy, Body, BodyRun, Nanos, Quantile, Run, ServerKind, Socket, Stop, SweepStudy, Threads,
};

use crate::details::{PivotPlace, RunFigure};
use crate::labels;
use crate::number::{self, NONE, or_none};
use crate::text::{band, right};

/// hey's percentiles; the 100 % beside them is the longest.
const PERCENTILES: [f64; 7] = [0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99];

/// Where the band over the workers begins.
const WORKERS_FROM: usize = 91;

/// The workers that have columns: none where there is nothing to compare.
fn compared(study: &SweepStudy) -> Option<usize> {
    (study.server.workers > 1).then_some(study.server.workers as usize)
}

/// The table: a row a run.
pub(crate) fn table(study: &SweepStudy) -> String {
    let rows = study.runs.iter().map(|run| row(study, run) + "\n");
    table_head(study) + &rows.collect::<String>()
}

/// Title, bands and names.
fn table_head(study: &SweepStudy) -> String {
    let mut title = title(study);
    let closes = if study.plan.stream.keep_alive { "" } else { "-disable-keepalive" };
    let mut bands = format!("{closes:<25}{}", band("Response time", 63));
    let mut names =
        "Mult/Conn     req/sec      10%     25%     50%     75%     90%     95%     99%    100%"
            .to_owned();
    if let Some(workers) = compared(study) {
        let bars = "─".repeat((5 * workers - 6).div_ceil(2));
        title = format!("{title:<WORKERS_FROM$}{bars} Worker Request Info {bars}");
        let (before, after) = ((5 * (workers - 1)).div_ceil(2), 5 * (workers - 1) / 2);
        let (before, after) = (" ".repeat(before), " ".repeat(after));
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

/// `-w4  -t5:5`; a server whose slots were given has neither flag.
fn size(study: &SweepStudy) -> String {
    let server = &study.server;
    if matches!(study.plan.server.kind, ServerKind::Command { .. }) {
        return format!("slots {}", server.slots());
    }
    let workers = if server.cluster { format!("-w{}", server.workers) } else { String::new() };
    let most = Threads { min: server.threads, max: server.threads };
    format!("{workers:<4} -t{}", study.plan.server.threads.unwrap_or(most))
}

/// One run; another generator's by its own figures: those of hey are what Puma's script prints.
fn row(study: &SweepStudy, run: &Run) -> String {
    let connections = right(&run.connections.to_string(), 3);
    // An invalid run has no headline figure.
    let hidden = is_hidden(run);
    let rate = right(&or_none(run.rate().filter(|_| !hidden), |rate| number::fixed(rate, 4)), 12);
    let mut row = format!("{} {connections} {rate}  ", or_none(run.multiple, number::multiple));
    let percentiles = PERCENTILES.iter().map(|q| run.response_time(*q));
    for time in
        percentiles.chain([run.max_response_time()]).map(|time| time.time().filter(|_| !hidden))
    {
        row.push_str(&right(&or_none(time, number::seconds), 8));
    }
    if let Some(workers) = compared(study) {
        row.push_str(&worker_cells(
            &run.worker_deviations(),
            &or_none(run.good(), |n| n.to_string()),
            workers,
        ));
    }
    row
}

fn worker_cells(deviations: &[f64], good: &str, workers: usize) -> String {
    // A worker that is missing, or a new one, leaves nothing to compare with an even share of
    // `workers`.
    let known = Some(deviations).filter(|deviations| deviations.len() == workers);
    let spread = or_none(known, |deviations| {
        number::fixed(standard_deviation(deviations) * 100.0 / workers as f64, 3)
    });
    let mut cells = format!("  {}  ", right(&spread, 7));
    for deviation in
        known.map_or(vec![None; workers], |known| known.iter().copied().map(Some).collect())
    {
        let percent = deviation.map(|deviation: f64| deviation * 100.0);
        let shown =
            or_none(percent, |percent| number::fixed(percent, usize::from(percent.abs() < 9.95)));
        _ = write!(cells, " {}", right(&shown, 4));
    }
    _ = write!(cells, "   {}", right(good, 5));
    cells
}

/// The standard deviation of a whole population.
fn standard_deviation(population: &[f64]) -> f64 {
    let n = population.len() as f64;
    let mean = population.iter().sum::<f64>() / n;
    (population.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// What the words of the head mean.
pub(crate) fn words(study: &SweepStudy) -> Vec<(&'static str, &'static str)> {
    let mut words = vec![("Mult", "connections / slots")];
    words.extend(if study.plan.with.is_some() {
        [
            ("req/sec", "requests per second, as the other generator prints them"),
            ("10% to 100%", "its times in seconds, as it prints them"),
        ]
    } else {
        [
            ("req/sec", "good answers (2xx, 3xx) per second of the measured window"),
            ("10% to 100%", "response time of good answers in seconds: from when a request was due to its last byte"),
        ]
    });
    if compared(study).is_some() {
        words.extend([
            ("Std Dev", "of the workers' shares, in percentage points of all (as Puma 6.6's script, not as 7's)"),
            ("% deviation", "of each worker from an even share, in % of that share, rising"),
            ("Total Reqs", "good answers"),
        ]);
    }
    words.push((
        "-",
        "not known, or too few answers to tell, or unanswered requests could change it",
    ));
    words
}

/// Bars over the rows of a size.
const RULE: usize = 65;

const RATE: RunFigure<BodyRun> = RunFigure {
    title: "req/sec",
    of: |run| Some(run.run.completed_rate()),
    shown: |rate| number::fixed(rate, 0),
};

const MEDIAN: RunFigure<BodyRun> = RunFigure {
    title: "req 50% times",
    of: |run| milliseconds(run.response_time(0.50)),
    shown: |millis| number::fixed(millis, 3),
};

const fn time(title: &'static str, of: fn(&BodyRun) -> Option<f64>) -> RunFigure<BodyRun> {
    RunFigure { title, of, shown: |millis| number::fixed(millis, 2) }
}

/// What the first table has of a body, and the width of each.
const FIGURES: [(RunFigure<BodyRun>, usize); 7] = [
    (RATE, 7),
    (time("50%", |run| milliseconds(run.response_time(0.50))), 8),
    (time("75%", |run| milliseconds(run.response_time(0.75))), 8),
    (time("90%", |run| milliseconds(run.response_time(0.90))), 8),
    (time("99%", |run| milliseconds(run.response_time(0.99))), 8),
    (time("100%", |run| milliseconds(run.run.max_response_time())), 8),
    (RunFigure { title: "Resp Size", of: BodyRun::content_bytes, shown: number::exact }, 10),
];

fn milliseconds(time: Quantile) -> Option<f64> {
    time.time().map(Nanos::as_millis_f64)
}

/// Both tables of each kind of socket, and what the script says below them.
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
    // One blank line too many: what follows belongs to the last table.
    text.pop();
    text + &footer(study)
}

fn cell(study: &BodiesStudy, socket: Socket, body: Body, figure: &RunFigure<BodyRun>) -> String {
    or_none(figure.of_body(study, PivotPlace { socket, body }), figure.shown)
}

fn by_size(study: &BodiesStudy, socket: Socket) -> String {
    let mut text = "Type   req/sec    50%     75%     90%     99%    100%  Resp Size\n".to_owned();
    for kilobytes in &study.plan.bodies.kilobytes {
        _ = writeln!(text, "{}{}", "─".repeat(RULE), right(&format!("{kilobytes}kB"), 7));
        for kind in &study.plan.bodies.kinds {
            let body = Body { kilobytes: *kilobytes, kind: *kind };
            let cells = FIGURES
                .iter()
                .map(|(figure, width)| right(&cell(study, socket, body, figure), *width));
            _ = writeln!(text, "{:<6}{}", kind.name(), cells.collect::<String>());
        }
    }
    text
}

fn pivot(study: &BodiesStudy, socket: Socket) -> String {
    let kinds = &study.plan.bodies.kinds;
    let inner = 8 * kinds.len() - 3;
    let mut text = format!("Body    {}   {}\n", band(RATE.title, inner), band(MEDIAN.title, inner));
    let names: String = kinds.iter().map(|kind| right(kind.name(), 8)).collect();
    _ = writeln!(text, " KB  {names}{names}");
    for kilobytes in &study.plan.bodies.kilobytes {
        let cells = [RATE, MEDIAN].into_iter().flat_map(|figure| {
            kinds.iter().map(move |kind| {
                let body = Body { kilobytes: *kilobytes, kind: *kind };
                right(&cell(study, socket, body, &figure), 8)
            })
        });
        _ = writeln!(text, "{kilobytes:<5}{}", cells.collect::<String>());
    }
    _ = writeln!(text, "{}", "─".repeat(5 + 16 * kinds.len()));
    text
}

/// `wrk -t8 -c16 -d10s` in the script: ours, and what it was started with.
fn footer(study: &BodiesStudy) -> String {
    let plan = &study.plan;
    let total = format!("\n{:>5} Total Time\n", number::minutes(study.total_time));
    let Some(server) = study.server() else { return format!("{}\n{total}", study.command_line) };
    let length = match plan.stream.stop {
        Stop::After(time) => format!(" -D{time}"),
        Stop::RequestsPerConnection(n) => format!(" -R{n}"),
    };
    let (streams, each) = (plan.streams_on(server.slots()), plan.connections_per_stream);
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
