//! What was seen of a server that was running before: the only thing that a conclusion rests on.

use model::{Nanos, number};
use serde::{Deserialize, Serialize};

/// So many connections wait at the least, on average over the last seconds, where anything is said
/// to wait in the kernel.
pub const LEAST_QUEUE: f64 = 0.5;

/// One report may be a moment's; so many in a row are not.
pub(super) const ENOUGH_REPORTS: usize = 2;

/// What was seen of a server. What could not be seen is absent.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WatchEvidence {
    /// How long it was watched.
    pub watched: Nanos,
    /// When it was found to have ended.
    pub ended: Option<Nanos>,
    /// Whether root looks, who may see all that the kernel knows.
    pub is_root: bool,
    /// Whether it is on another machine, whose clock is another too.
    pub is_elsewhere: bool,
    /// Where it listens, as one types it: `:9292`.
    pub place: String,
    /// What it is, where it is no Puma: its program's name.
    pub program: Option<String>,
    /// Whether it is known to be a Puma.
    pub is_puma: bool,
    /// Puma's version.
    pub version: Option<String>,
    /// Whether Puma runs worker processes.
    pub is_cluster: bool,
    /// Whether it runs the Ruby that lets one thread of a process compute at a time.
    pub is_ruby: bool,
    /// How long it has lived.
    pub age: Option<Nanos>,
    /// Why there are no statistics; of a server that nobody asks, because it is not known where,
    /// empty.
    pub no_statistics: Option<String>,
    /// Its workers.
    pub workers: Vec<WatchedWorker>,
    /// Requests that the workers began, a second.
    pub rate: Option<StartRate>,
    /// For how many seconds, at the least, no worker has begun one.
    pub still: Option<f64>,
    /// Connections in the accept queue, on average over the last seconds.
    pub queue: Option<f64>,
    /// The longest accept queue that was seen.
    pub queue_most: Option<f64>,
    /// The longest that is allowed.
    pub queue_limit: Option<u32>,
    /// Connects that a full accept queue dropped since the watch began; of all servers in this
    /// network namespace.
    pub overflows: Option<f64>,
    /// Connections that are open, those in the accept queue too.
    pub connections: Option<f64>,
    /// Of the accepted ones those with a request that is not answered, on average over the last
    /// seconds.
    pub out: Option<f64>,
    /// The same, with those of which it is not clear.
    pub out_most: Option<f64>,
    /// Since when anything waits.
    pub span: Option<WaitingSpan>,
    /// CPUs that the server uses.
    pub cpu: Option<f64>,
    /// CPUs that it may use.
    pub cpus: Option<f64>,
    /// Of those the ones that are busy, with anybody's work.
    pub busy_cpus: Option<f64>,
    /// Threads of the server that wait for a CPU, on average over the last seconds.
    pub cpu_wait: Option<f64>,
    /// How long a connect to another machine takes.
    pub connect: Option<Nanos>,
    /// What else could not be read, a line each.
    pub not_visible: Vec<String>,
}

/// One worker; in single mode, and of a server that is no Puma, a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchedWorker {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: Option<u32>,
    /// Its process has ended, though Puma's master still names it.
    pub is_gone: bool,
    /// It has not booted, or not reported since.
    pub is_booting: bool,
    /// As many requests as it can serve at once just now: in Puma 8 these may be more than it is
    /// configured to. Without statistics the threads that there are.
    pub threads: Option<u32>,
    /// Of those: threads whose request has said that it waits (Puma 8).
    pub io_threads: Option<u32>,
    /// Those that are busy, as Puma says.
    pub busy_threads: Option<u32>,
    /// Requests that wait inside it, as Puma says.
    pub backlog: Option<u32>,
    /// Connections that it holds.
    pub connections: Option<f64>,
    /// Of those the ones with a request that is not answered, at least.
    pub requests_out: Option<f64>,
    /// CPUs that it uses.
    pub cpu: Option<f64>,
    /// Threads that wait for a CPU.
    pub cpu_wait: Option<f64>,
    /// Resident memory.
    pub memory_bytes: Option<f64>,
    /// How old its statistics are.
    pub staleness_ns: Option<Nanos>,
    /// What its threads do; `None` where this user may not see that.
    pub waits: Option<WaitsSeen>,
    /// In so many of its last reports in a row all its threads are busy.
    #[serde(skip_serializing)]
    pub full_reports: usize,
}

/// What the threads of a worker that serve requests do, by the kernel: how many, on average over the
/// looks of the last seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitsSeen {
    /// They wait for another thread, without a time limit: for a lock or a pool. Without those that
    /// are free, which wait for a request.
    pub lock: f64,
    /// They wait for a lock on a file.
    pub file_lock: f64,
    /// They sleep, or wait for another thread with a time limit.
    pub timed: f64,
    /// They wait for a socket or a pipe.
    pub socket: f64,
    /// They run, or could.
    pub runnable: f64,
    /// They are in another system call.
    pub other: f64,
    /// The share of the looks in which at least one waited for a lock.
    pub locked_share: f64,
    /// How many looks there were.
    pub looks: usize,
}

/// Requests that were begun, by the last reports that agree with each other.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StartRate {
    /// The rate.
    pub per_second: f64,
    /// Over how many seconds, at the least.
    pub seconds: f64,
    /// How old the oldest of the last reports is; `None` where that cannot be known.
    pub age: Option<Nanos>,
    /// It needs a report from before the watch began: the load may be younger.
    pub reaches_back: bool,
    /// That, or so short that the whole seconds of Puma's reports make it uncertain.
    pub is_rough: bool,
}

/// Since when somebody waits, and whether they become more.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingSpan {
    /// How long.
    pub length: Nanos,
    /// Whether somebody waited already when the watch began, so that it may be longer.
    pub is_from_start: bool,
    /// So many more wait each second, fewer where it is below 0; 0 where it is steady, `None` where
    /// that is not known yet.
    pub trend: Option<f64>,
}

impl StartRate {
    /// `99.0`, or `~33.0` where it is rough.
    pub fn in_words(self) -> String {
        let mark = if self.is_rough { "~" } else { "" };
        format!("{mark}{}", number::rate_in_words(self.per_second))
    }
}

impl WaitsSeen {
    /// Threads that surely have a request: one without waits for another thread, without a time
    /// limit.
    fn at_work(&self) -> f64 {
        self.file_lock + self.timed + self.socket + self.runnable + self.other
    }
}

impl WatchedWorker {
    /// Threads that are busy: by its own count, else as many as its requests that are out take, or
    /// as do anything but wait for another thread.
    pub(super) fn busy(&self) -> Option<u32> {
        let taken = || Some((self.requests_out?.round() as u32).min(self.threads?));
        let at_work = || self.waits.map(|waits| waits.at_work().round() as u32);
        self.busy_threads.or_else(|| taken().max(at_work()))
    }

    /// Threads that are free.
    pub(super) fn free(&self) -> Option<u32> {
        Some(self.threads?.saturating_sub(self.busy()?))
    }

    /// Requests that wait inside it: by its own count, else those that are out beyond its threads.
    pub(super) fn inside(&self) -> Option<u32> {
        let by_kernel = || Some((self.requests_out?.round() as u32).saturating_sub(self.threads?));
        self.backlog.or_else(by_kernel)
    }

    /// CPUs that its threads use or wait for.
    pub(super) fn runnable(&self) -> Option<f64> {
        Some(self.cpu? + self.cpu_wait?)
    }
}

impl WatchEvidence {
    /// Threads in all, where any worker says or shows them.
    pub fn slots(&self) -> Option<u32> {
        self.sum(|worker| worker.threads)
    }

    /// Threads that are busy, by the server's own count.
    pub fn busy(&self) -> Option<u32> {
        self.sum(|worker| worker.busy_threads)
    }

    /// Requests that wait inside the server, by its own count.
    pub fn inside(&self) -> Option<u32> {
        self.sum(|worker| worker.backlog)
    }

    /// Of the workers that have reported; `None` where none has.
    fn sum(&self, figure: fn(&WatchedWorker) -> Option<u32>) -> Option<u32> {
        self.workers.iter().filter_map(figure).reduce(|a, b| a + b)
    }

    /// Requests that are out on accepted connections, at least.
    pub fn requests_out(&self) -> Option<u32> {
        self.out.map(|out| out.round() as u32)
    }

    /// The same, at most.
    pub fn requests_out_at_most(&self) -> Option<u32> {
        self.out_most.map(|out| out.round() as u32)
    }

    /// Requests that wait inside a server that does not say so itself: those that are out beyond
    /// its threads, of each worker where it is known which connections it holds.
    pub fn inside_by_kernel(&self) -> Option<u32> {
        if self.inside().is_some() {
            return None;
        }
        let at_least = || Some(self.requests_out()?.saturating_sub(self.slots()?));
        self.of_all(WatchedWorker::inside).or_else(at_least)
    }

    /// Threads that are busy: by the server's own count, else as many as requests that are out take.
    pub(super) fn busy_or_taken(&self) -> Option<u32> {
        let at_most = || Some(self.requests_out()?.min(self.slots()?));
        self.busy().or_else(|| self.of_all(WatchedWorker::busy)).or_else(at_most)
    }

    /// The sum over all workers; `None` where it is not known of one.
    fn of_all(&self, figure: fn(&WatchedWorker) -> Option<u32>) -> Option<u32> {
        let all = self.workers.iter().map(figure).sum::<Option<u32>>();
        all.filter(|_| !self.workers.is_empty())
    }

    /// Connections in the accept queue, where it is more than one now and then.
    pub fn in_kernel(&self) -> Option<u32> {
        self.queue.map(|queue| if queue < LEAST_QUEUE { 0 } else { queue.round() as u32 })
    }

    /// All that are seen to wait.
    pub fn waiting(&self) -> u32 {
        let inside = self.inside().or(self.inside_by_kernel());
        inside.unwrap_or(0) + self.in_kernel().unwrap_or(0)
    }

    /// Threads that run or wait for a CPU, on average.
    pub(super) fn runnable(&self) -> Option<f64> {
        Some(self.cpu? + self.cpu_wait?)
    }

    /// Of the time in which its threads could run, the part in which they waited for a CPU.
    pub fn cpu_wait_share(&self) -> Option<f64> {
        let runnable = self.runnable().filter(|runnable| *runnable > 0.0)?;
        Some(self.cpu_wait? / runnable)
    }

    /// Puma's version before the first dot.
    pub fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }

    /// Requests a second that another figure of the last seconds may be divided by: not where they
    /// reach back before the watch.
    pub(super) fn settled_rate(&self) -> Option<f64> {
        Some(self.rate.filter(|rate| rate.per_second > 0.0 && !rate.reaches_back)?.per_second)
    }
}
