//! What a conclusion about a watched server may rest on: the figures of now, of the last seconds or since the watch began. What
//! could not be seen is absent.

use std::collections::VecDeque;

use model::Nanos;
use probe::puma_stats::WorkerStats;
use report::number;
use serde::Serialize;

use super::board::{WatchBoard, Whose, WorkerReport};
use super::series::{Quantity, QuantitySeries};
use super::waiting::{LEAST_QUEUE, WaitingSpan, WaitingTrend};

/// A rate over less than this is none: a worker reports every five seconds, and says when in whole seconds.
const LEAST_RATE_SPAN: f64 = 3.0;
/// A rate whose instants may be wrong by more than this part of its span is rough.
const ROUGH: f64 = 0.1;

/// What was seen of a server.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WatchEvidence {
    /// How long it was watched.
    pub(crate) watched: Nanos,
    /// When it was found to have ended.
    pub(crate) ended: Option<Nanos>,
    /// Whether it is on another machine.
    pub(crate) is_elsewhere: bool,
    /// What it is, where it is no Puma: its program's name.
    pub(crate) program: Option<String>,
    pub(crate) is_puma: bool,
    /// Puma's version.
    pub(crate) version: Option<String>,
    /// Whether Puma runs worker processes.
    pub(crate) is_cluster: bool,
    /// Whether it runs the Ruby that lets one thread of a process compute at a time.
    pub(crate) is_ruby: bool,
    /// How long it has lived.
    pub(crate) age: Option<Nanos>,
    /// Why there are no statistics; of a server that nobody asks, because it is not known where, empty.
    pub(crate) no_statistics: Option<String>,
    pub(crate) workers: Vec<WatchedWorker>,
    /// Requests that the workers began, a second.
    pub(crate) rate: Option<StartRate>,
    /// For how many seconds, at the least, no worker has begun one.
    pub(crate) still: Option<f64>,
    /// Connections in the accept queue, on average over the last seconds.
    pub(crate) queue: Option<f64>,
    /// The longest accept queue that was seen.
    pub(crate) queue_most: Option<f64>,
    pub(crate) queue_limit: Option<u32>,
    /// Connects that a full accept queue dropped since the watch began; of all servers in this network namespace.
    pub(crate) overflows: Option<f64>,
    /// Connections that are open, those in the accept queue too.
    pub(crate) connections: Option<f64>,
    /// Since when anything waits.
    pub(crate) span: Option<WaitingSpan>,
    pub(crate) trend: Option<WaitingTrend>,
    /// CPUs that the server uses.
    pub(crate) cpu: Option<f64>,
    /// CPUs that it may use.
    pub(crate) cpus: Option<f64>,
    /// Of those the ones that are busy, with anybody's work.
    pub(crate) busy_cpus: Option<f64>,
    /// Threads of the server that wait for a CPU, on average over the last seconds.
    pub(crate) cpu_wait: Option<f64>,
    /// How long a connect to another machine takes.
    pub(crate) connect: Option<Nanos>,
    /// What else could not be read, a line each.
    pub(crate) not_visible: Vec<String>,
}

/// One worker; in single mode, and of a server that is no Puma, a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct WatchedWorker {
    pub(crate) name: String,
    pub(crate) pid: Option<u32>,
    /// Its process has ended, though Puma's master still names it.
    pub(crate) is_gone: bool,
    /// It has not booted, or not reported since.
    pub(crate) is_booting: bool,
    pub(crate) threads: Option<u32>,
    #[serde(rename = "busy_threads")]
    pub(crate) busy: Option<u32>,
    pub(crate) backlog: Option<u32>,
    pub(crate) connections: Option<f64>,
    pub(crate) cpu: Option<f64>,
    /// Threads that wait for a CPU.
    pub(crate) cpu_wait: Option<f64>,
    #[serde(rename = "memory_bytes")]
    pub(crate) memory: Option<f64>,
    /// How old its statistics are.
    #[serde(rename = "staleness_ns")]
    pub(crate) age: Option<Nanos>,
    /// In so many of its last reports in a row all its threads are busy.
    #[serde(skip)]
    pub(crate) full_reports: usize,
}

/// Requests that were begun, by the last reports that agree with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StartRate {
    pub(crate) per_second: f64,
    /// Over how many seconds, at the least.
    pub(crate) seconds: f64,
    /// How old the oldest of the last reports is; `None` where that cannot be known.
    pub(crate) age: Option<Nanos>,
    /// It needs a report from before the watch began: the load may be younger.
    pub(crate) reaches_back: bool,
    /// That, or so short that the whole seconds of Puma's reports make it uncertain.
    pub(crate) is_rough: bool,
}

impl StartRate {
    /// `99.0`, or `~33.0` where it is rough.
    pub(crate) fn in_words(self) -> String {
        let mark = if self.is_rough { "~" } else { "" };
        format!("{mark}{}", number::rate_in_words(self.per_second))
    }
}

impl WatchedWorker {
    /// Threads that run or wait for a CPU, on average.
    pub(crate) fn runnable(&self) -> Option<f64> {
        Some(self.cpu? + self.cpu_wait?)
    }

    /// Threads that are free.
    pub(crate) fn free(&self) -> Option<u32> {
        Some(self.threads?.saturating_sub(self.busy?))
    }
}

impl WatchEvidence {
    /// Threads in all, where any worker says.
    pub(crate) fn slots(&self) -> Option<u32> {
        self.sum(|worker| worker.threads)
    }

    /// Threads that are busy.
    pub(crate) fn busy(&self) -> Option<u32> {
        self.sum(|worker| worker.busy)
    }

    /// Requests that wait inside the server.
    pub(crate) fn inside(&self) -> Option<u32> {
        self.sum(|worker| worker.backlog)
    }

    /// Of the workers that have reported; `None` where none has.
    fn sum(&self, figure: impl Fn(&WatchedWorker) -> Option<u32>) -> Option<u32> {
        let known: Vec<u32> = self.workers.iter().filter_map(figure).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// Connections in the accept queue, where it is more than one now and then.
    pub(crate) fn in_kernel(&self) -> Option<u32> {
        self.queue.map(|queue| if queue < LEAST_QUEUE { 0 } else { queue.round() as u32 })
    }

    /// All that are seen to wait.
    pub(crate) fn waiting(&self) -> u32 {
        self.inside().unwrap_or(0) + self.in_kernel().unwrap_or(0)
    }

    /// Threads that run or wait for a CPU, on average.
    pub(crate) fn runnable(&self) -> Option<f64> {
        Some(self.cpu? + self.cpu_wait?)
    }

    /// Of the time in which its threads could run, the part in which they waited for a CPU.
    pub(crate) fn cpu_wait_share(&self) -> Option<f64> {
        let runnable = self.runnable().filter(|runnable| *runnable > 0.0)?;
        Some(self.cpu_wait? / runnable)
    }

    /// Puma's version before the first dot.
    pub(crate) fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }

    /// Whether it is a Puma up to 6, as far as is known.
    pub(crate) fn is_old(&self) -> bool {
        self.major().is_some_and(|major| major <= 6)
    }

    /// What the board has.
    pub(crate) fn of(board: &WatchBoard) -> WatchEvidence {
        let server = |quantity| board.recent(Whose::Server, quantity);
        let series = |quantity| board.of(Whose::Server, quantity);
        let titles = || board.living().map(|(_, title)| title);
        let said = board.statistics.as_ref().and_then(|said| said.as_ref().ok());
        let titled = titles().find_map(version_in_title);
        let is_puma = said.is_some() || titled.is_some() || titles().any(|title| title.starts_with("puma: "));
        WatchEvidence {
            watched: board.now,
            ended: board.ended,
            is_elsewhere: board.is_elsewhere,
            program: titles().next().map(program_in_title),
            is_puma,
            version: said.and_then(|said| said.version.clone()).or_else(|| titled.map(str::to_owned)),
            is_cluster: said
                .map_or_else(|| titles().any(|title| worker_in_title(title).is_some()), |said| said.cluster),
            is_ruby: board.room.as_ref().is_some_and(|room| room.is_ruby),
            age: board.age,
            no_statistics: match &board.statistics {
                Some(Ok(_)) => None,
                Some(Err(why)) => Some(why.clone()),
                None if board.is_asked => Some("no answer yet".to_owned()),
                None => Some(String::new()),
            },
            workers: workers(board),
            rate: said.filter(|said| said.workers.iter().all(|worker| worker.ready)).and_then(|_| rate(board)),
            still: board.reports.values().map(still).reduce(|a, b| a.zip(b).map(|(a, b)| a.min(b))).flatten(),
            queue: server(Quantity::AcceptQueue),
            queue_most: series(Quantity::AcceptQueue).and_then(|series| series.most),
            queue_limit: board.queue_limit,
            overflows: series(Quantity::ListenOverflows).and_then(QuantitySeries::counted),
            connections: board.last(Whose::Server, Quantity::Connections),
            span: board.waiting.span(),
            trend: board.waiting.trend(),
            cpu: server(Quantity::Cpu),
            cpus: board.room.as_ref().map(|room| room.cpus),
            busy_cpus: server(Quantity::BusyCpus),
            cpu_wait: server(Quantity::RunQueueWait),
            connect: server(Quantity::ConnectTime).map(|ms| Nanos::from_secs_f64(ms / 1e3)),
            not_visible: board.not_visible.clone(),
        }
    }
}

/// The workers that Puma names; of a server without statistics those processes that call themselves so, else all.
fn workers(board: &WatchBoard) -> Vec<WatchedWorker> {
    if let Some(Ok(said)) = &board.statistics {
        // A worker that took the place of another comes last there.
        let mut all: Vec<&WorkerStats> = said.workers.iter().collect();
        all.sort_by_key(|worker| worker.index);
        return all.into_iter().map(|worker| of_statistics(board, worker)).collect();
    }
    let is_cluster = board.living().any(|(_, title)| worker_in_title(title).is_some());
    let all = board.living().filter_map(|(pid, title)| match worker_in_title(title) {
        Some(index) => Some(of_process(board, pid, format!("worker {index}"))),
        None if is_cluster => None,
        None => Some(of_process(board, pid, format!("process {pid}"))),
    });
    let mut all: Vec<WatchedWorker> = all.collect();
    all.sort_by_key(|worker| (worker.name.len(), worker.name.clone()));
    all
}

fn of_process(board: &WatchBoard, pid: u32, name: String) -> WatchedWorker {
    let recent = |quantity| board.recent(Whose::Process(pid), quantity);
    WatchedWorker {
        name,
        pid: Some(pid),
        is_gone: board.processes.get(&pid).is_some_and(|process| !process.is_there),
        connections: board.last(Whose::Process(pid), Quantity::Connections),
        cpu: recent(Quantity::Cpu),
        cpu_wait: recent(Quantity::RunQueueWait),
        memory: board.last(Whose::Process(pid), Quantity::ResidentMemory),
        ..WatchedWorker::default()
    }
}

fn of_statistics(board: &WatchBoard, worker: &WorkerStats) -> WatchedWorker {
    let pid = worker.pid.or_else(|| board.only_process());
    let name = worker.index.map(|index| format!("worker {index}"));
    let name = name.or_else(|| pid.map(|pid| format!("process {pid}"))).unwrap_or_else(|| "Puma".to_owned());
    let known = pid.map(|pid| of_process(board, pid, name.clone())).unwrap_or_default();
    let none = VecDeque::new();
    let reports = board.reports.get(&worker.pid.unwrap_or(0)).unwrap_or(&none);
    let is_full = |report: &&WorkerReport| {
        report.worker.busy_threads().is_some_and(|busy| Some(busy) >= report.worker.max_threads)
    };
    WatchedWorker {
        name,
        pid,
        is_booting: !worker.ready,
        threads: worker.max_threads,
        busy: worker.busy_threads(),
        backlog: worker.backlog,
        age: board.age_of_report(worker),
        full_reports: reports.iter().rev().take_while(is_full).count(),
        ..known
    }
}

/// What all workers began, up to the last report of each; `None` where one has said it but once.
fn rate(board: &WatchBoard) -> Option<StartRate> {
    let age = board.reports.values().filter_map(|reports| board.age_of_report(&reports.back()?.worker)).max();
    let mut all = StartRate { seconds: f64::MAX, age, ..StartRate::default() };
    for reports in board.reports.values() {
        let last = reports.back()?;
        let shortest =
            reports.iter().rposition(|report| last.at.saturating_sub(report.at).as_secs_f64() >= LEAST_RATE_SPAN)?;
        let (begun, seconds) = begun(&reports[same_rate_from(reports, shortest)?], last)?;
        all.per_second += begun / seconds;
        all.seconds = all.seconds.min(seconds);
        all.reaches_back |= board.first_asked_at.is_some_and(|began| reports[shortest].at < began);
        all.is_rough |= all.reaches_back || rounding(last) > ROUGH * seconds;
    }
    Some(all).filter(|_| !board.reports.is_empty())
}

/// Requests begun between two reports of a worker, and the seconds between them.
fn begun(first: &WorkerReport, last: &WorkerReport) -> Option<(f64, f64)> {
    let begun = last.worker.requests_count?.checked_sub(first.worker.requests_count?)?;
    Some((begun as f64, last.at.saturating_sub(first.at).as_secs_f64()))
}

/// By how many seconds the time between two reports may be wrong.
fn rounding(report: &WorkerReport) -> f64 {
    if report.worker.last_checkin.is_some() { 1.0 } else { 0.0 }
}

/// The first report since when the rate is that since `from`, but for chance (three standard deviations of the count) and the
/// rounding of Puma's instants. So a load that has just begun, or changed, is not mixed with what was before.
fn same_rate_from(reports: &VecDeque<WorkerReport>, mut from: usize) -> Option<usize> {
    let last = reports.back()?;
    while from > 0 {
        let (counted, seconds) = begun(&reports[from], last)?;
        let (earlier, span) = begun(&reports[from - 1], &reports[from])?;
        let expected = counted / seconds * span;
        if (earlier - expected).abs() > expected * rounding(last) / span + 3.0 * expected.max(1.0).sqrt() {
            break;
        }
        from -= 1;
    }
    Some(from)
}

/// For how long a worker has begun no request, by its reports.
fn still(reports: &VecDeque<WorkerReport>) -> Option<f64> {
    let last = reports.back()?;
    let count = last.worker.requests_count?;
    let first = reports.iter().find(|report| report.worker.requests_count == Some(count))?;
    Some(last.at.saturating_sub(first.at).as_secs_f64())
}

/// `puma 5.6.5 (tcp://127.0.0.1:9292) [app]` is what its first process calls itself.
fn version_in_title(title: &str) -> Option<&str> {
    let version = title.strip_prefix("puma ")?.split(' ').next()?;
    version.starts_with(|first: char| first.is_ascii_digit()).then_some(version)
}

/// `puma: cluster worker 1: 4242 [app]`
fn worker_in_title(title: &str) -> Option<u32> {
    title.strip_prefix("puma: cluster worker ")?.split(':').next()?.parse().ok()
}

/// The name of the program without its folder: `nginx` of `nginx: master process /usr/sbin/nginx`.
fn program_in_title(title: &str) -> String {
    let first = title.split([' ', ':']).next().unwrap_or_default();
    first.rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_puma_is_known_by_what_it_calls_itself() {
        assert_eq!(version_in_title("puma 6.4.2 (tcp://0.0.0.0:3000) [shop]"), Some("6.4.2"));
        assert_eq!(version_in_title("puma: cluster worker 1: 4242 [shop]"), None);
        assert_eq!(version_in_title("puma master"), None);
        assert_eq!(worker_in_title("puma: cluster worker 12: 4242 [shop]"), Some(12));
        assert_eq!(worker_in_title("puma 6.4.2 (tcp://0.0.0.0:3000) [shop]"), None);
        let programs = ["/usr/bin/ruby app.rb", "nginx: worker process", "gunicorn", ""].map(program_in_title);
        assert_eq!(programs, ["ruby", "nginx", "gunicorn", ""]);
    }

    /// A worker's reports, each 5 s after the one before, with these counts.
    fn reported(counts: &[u64]) -> WatchBoard {
        let reports = counts.iter().enumerate().map(|(n, count)| WorkerReport {
            at: Nanos::from_secs(100 + 5 * n as u64),
            worker: WorkerStats {
                pid: Some(11),
                requests_count: Some(*count),
                last_checkin: Some("2026-01-01T00:00:00Z".to_owned()),
                ..WorkerStats::default()
            },
        });
        let mut board = WatchBoard::default();
        board.reports.insert(11, reports.collect());
        board.first_asked_at = Some(Nanos::from_secs(103));
        board
    }

    #[test]
    fn a_load_that_began_between_two_reports_is_not_mixed_with_what_was_before() {
        let rate =
            |counts: &[u64]| rate(&reported(counts)).map(|rate| (rate.per_second, rate.in_words(), rate.reaches_back));
        assert_eq!(rate(&[0]), None, "one report");
        assert_eq!(rate(&[0, 165]), Some((33.0, "~33".to_owned(), true)), "the first report is from before the watch");
        assert_eq!(rate(&[0, 165, 525]), Some((72.0, "~72".to_owned(), false)), "5 s, with instants in whole seconds");
        assert_eq!(rate(&[0, 165, 525, 885]), Some((72.0, "72".to_owned(), false)));
        assert_eq!(rate(&[0, 350, 700]), Some((70.0, "70".to_owned(), false)), "it was so before, too");
        assert_eq!(rate(&[0, 500, 1000, 1000]), Some((0.0, "~0".to_owned(), false)), "the load has ended");
    }
}
