//! The columns of Puma's `long_tail_hey`, as Puma 6.6 printed them, so that a new table can stand next to an old one.
//!
//! The characters and widths are those of that script, with one word changed: its band says "Latency", ours says what
//! it is. Times are seconds; `Std Dev` is the population's, of the workers' shares in percentage points of the whole
//! (Puma 7's script prints that of the relative deviations instead: larger by the number of workers); the deviations
//! are relative to an even share. `Total Reqs` are good answers. As in the script, a server with one worker or none
//! has no worker columns. Where the script would print a number that the requests do not support, there is a `-`.

use std::fmt::Write as _;

use model::{Run, ServerKind, SweepStudy, Threads};

use crate::named_runs::is_hidden;
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
    let mut names = "Mult/Conn     req/sec      10%     25%     50%     75%     90%     95%     99%    100%".to_owned();
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
    for time in percentiles.chain([run.max_response_time()]).map(|time| time.time().filter(|_| !hidden)) {
        row.push_str(&right(&or_none(time, number::seconds), 8));
    }
    if let Some(workers) = compared(study) {
        row.push_str(&worker_cells(&run.worker_deviations(), &or_none(run.good(), |n| n.to_string()), workers));
    }
    row
}

fn worker_cells(deviations: &[f64], good: &str, workers: usize) -> String {
    // A worker that is missing, or a new one, leaves nothing to compare with an even share of `workers`.
    let known = Some(deviations).filter(|deviations| deviations.len() == workers);
    let spread = or_none(known, |deviations| number::fixed(standard_deviation(deviations) * 100.0 / workers as f64, 3));
    let mut cells = format!("  {}  ", right(&spread, 7));
    for deviation in known.map_or(vec![None; workers], |known| known.iter().copied().map(Some).collect()) {
        let percent = deviation.map(|deviation: f64| deviation * 100.0);
        let shown = or_none(percent, |percent| number::fixed(percent, usize::from(percent.abs() < 9.95)));
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
    words.push(("-", "not known, or too few answers to tell, or unanswered requests could change it"));
    words
}
