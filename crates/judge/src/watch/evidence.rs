//! What was seen of a server that was already running: the only evidence for its diagnosis.

use std::iter::Sum;

use model::{Nanos, number};
use serde::{Deserialize, Serialize};

/// Connections count as waiting in the kernel if there are at least this many, on average over the
/// last seconds.
pub const LEAST_QUEUE: f64 = 0.5;

/// One report may be a momentary peak; this many in a row are not.
pub(super) const ENOUGH_REPORTS: usize = 2;

/// What was seen of a server. What could not be seen is absent.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WatchEvidence {
    /// How long it was watched.
    pub watched: Nanos,
    /// CPUs that watching it takes.
    pub sampling: Option<f64>,
    /// Whether something else was concluded at the look before, or nothing: a watch that goes on says
    /// it once two looks agree.
    pub is_unsettled: bool,
    /// When it was found to have ended.
    pub ended: Option<Nanos>,
    /// Whether longtail may see what other users' processes do: it is root, or has the
    /// capabilities.
    pub may_see_all: bool,
    /// Whether the server is on another machine, with a clock of its own.
    pub is_elsewhere: bool,
    /// longtail, as root types it; empty if it has no other name.
    pub command: String,
    /// Where it listens, as a user types it: `:9292`.
    pub place: String,
    /// The name of its program, if it is not a Puma.
    pub program: Option<String>,
    /// Whether it is known to be a Puma.
    pub is_puma: bool,
    /// Puma's version.
    pub version: Option<String>,
    /// Whether Puma runs worker processes.
    pub is_cluster: bool,
    /// Whether it runs on a Ruby whose lock lets one thread of a process compute at a time.
    pub is_ruby: bool,
    /// Whether what it prints goes to `/dev/null`.
    pub output_is_lost: bool,
    /// How long it has been running.
    pub age: Option<Nanos>,
    /// Why there are no statistics; empty if the address of its control server is unknown.
    pub no_statistics: Option<String>,
    /// Its workers.
    pub workers: Vec<WatchedWorker>,
    /// How many requests per second the workers began.
    pub rate: Option<StartRate>,
    /// Responses a second over the last seconds by the kernel's counts, at most.
    pub answered: Option<f64>,
    /// Connections a second that closed after they had answered a request, over the last seconds.
    pub closed: Option<f64>,
    /// For at least this many seconds no worker has begun a request.
    pub still: Option<f64>,
    /// Connections in the accept queue, on average over the last seconds.
    pub queue: Option<f64>,
    /// The longest accept queue that was seen.
    pub queue_most: Option<f64>,
    /// The longest accept queue that the kernel allows.
    pub queue_limit: Option<u32>,
    /// Connects that full accept queues dropped since the watch began, for all servers in this
    /// network namespace.
    pub overflows: Option<f64>,
    /// Open connections, including those in the accept queue.
    pub connections: Option<f64>,
    /// Accepted connections with an unanswered request, at least, on average over the last seconds.
    pub out: Option<f64>,
    /// The same, including connections for which that is unclear.
    pub out_most: Option<f64>,
    /// Since when requests have been waiting.
    pub span: Option<WaitingSpan>,
    /// The waits that were over before the last look.
    pub earlier: Option<EarlierWaits>,
    /// Why requests waited, when that was last known.
    pub earlier_why: Option<EarlierWhy>,
    /// CPUs that the server uses, with processes that it starts.
    pub cpu: Option<f64>,
    /// How many of these are used by processes that it starts and that end, such as shell commands.
    pub children_cpu: Option<f64>,
    /// CPUs that the server may use.
    pub cpus: Option<f64>,
    /// How many of those CPUs are busy, with work of any process.
    pub busy_cpus: Option<f64>,
    /// Threads of the server that wait for a CPU, on average over the last seconds.
    pub cpu_wait: Option<f64>,
    /// Where the sockets lead that its threads wait for, and the commands that they wait for; the one
    /// for which most wait first.
    pub backends: Vec<Backend>,
    /// The files for whose lock they wait.
    pub locked_files: Vec<String>,
    /// Connections that several workers use at once.
    pub shared: Vec<SharedConnections>,
    /// How long a connect to another machine takes.
    pub connect: Option<Nanos>,
    /// What else could not be read, one line each.
    pub not_visible: Vec<String>,
}

/// One worker process; the server's process in single mode, or any process of a server that is not
/// a Puma.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchedWorker {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: Option<u32>,
    /// Its process has ended, though Puma's master still names it.
    pub is_gone: bool,
    /// It has not booted yet, or not reported since it did.
    pub is_booting: bool,
    /// How many requests it can serve at once at the moment; in Puma 8 that may be more than
    /// configured. Without statistics, the number of its threads.
    pub threads: Option<u32>,
    /// Threads among them whose request has marked itself as waiting (Puma 8).
    pub io_threads: Option<u32>,
    /// Busy threads, by Puma's statistics.
    pub busy_threads: Option<u32>,
    /// Requests that wait inside the worker, by Puma's statistics.
    pub backlog: Option<u32>,
    /// Connections that it holds.
    pub connections: Option<f64>,
    /// Connections among them with an unanswered request, at least.
    pub requests_out: Option<f64>,
    /// CPUs that it uses.
    pub cpu: Option<f64>,
    /// Threads that wait for a CPU.
    pub cpu_wait: Option<f64>,
    /// Resident memory.
    pub memory_bytes: Option<f64>,
    /// How old its statistics are.
    pub staleness_ns: Option<Nanos>,
    /// What its threads are doing; `None` if this user may not see it.
    pub waits: Option<WaitsSeen>,
    /// In how many of its latest reports in a row all its threads were busy.
    #[serde(skip_serializing)]
    pub full_reports: usize,
}

/// What a worker's request threads are doing according to the kernel: how many in each state,
/// averaged over the samples of the last seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitsSeen {
    /// Waiting for another thread without a time limit: for a lock or a pool. Free threads, which
    /// wait for a request, are not included.
    pub lock: f64,
    /// Waiting for a lock on a file.
    pub file_lock: f64,
    /// Sleeping, or waiting for another thread with a time limit.
    pub timed: f64,
    /// Waiting for a socket or a pipe, or for a command that they have started.
    pub socket: f64,
    /// Running, or ready to run.
    pub runnable: f64,
    /// In another system call.
    pub other: f64,
    /// The share of the samples in which at least one waited for a lock.
    pub locked_share: f64,
    /// The number of samples.
    pub looks: usize,
    /// The share of the samples in which the number of those without a time limit was its usual one.
    #[serde(skip_serializing)]
    pub untimed_alike: f64,
    /// How the waits with a time limit ended.
    #[serde(skip_serializing)]
    pub ended: EndedWaits,
}

/// How waits with a time limit ended, as far as looks at the threads tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct EndedWaits {
    /// How many another thread ended before the time was up.
    pub early: u32,
    /// How many ended when the time was up, as a sleep does.
    pub in_time: u32,
    /// At how many looks those that were ended early were seen: a measure of their time.
    pub early_looks: u32,
    /// The same of the others.
    pub in_time_looks: u32,
    /// The threads that were in no wait that another one ended: they slept, asked a backend, computed.
    pub others: NumberAtLooks,
    /// The fewest of these that a look found.
    pub fewest_others: NumberAtLooks,
    /// How often threads of the app ran meanwhile that serve no requests, and may end such a wait with a
    /// result; `None` if that is not known.
    pub runs_beside: Option<u64>,
}

/// A number that some looks found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NumberAtLooks {
    /// The number itself.
    pub number: u32,
    /// The share of the looks that found it.
    pub share: f64,
    /// The looks of which it is known.
    pub looks: u32,
}

/// A place elsewhere whose answer threads wait for, or a command that they have started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backend {
    /// Its address and port, the path of its Unix socket, or the command's name.
    pub place: String,
    /// Whether it is a command.
    #[serde(default)]
    pub is_command: bool,
    /// How many threads wait for it, averaged over the samples of the last seconds.
    pub threads: f64,
    /// How many do in each worker at most looks, if that is the same number in all, and none more.
    #[serde(default, skip_serializing)]
    pub in_each_worker: Option<NumberAtLooks>,
}

/// Connections to one place for which threads of several workers wait: the same sockets, as a process
/// has them from the one that forked it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SharedConnections {
    /// Where they lead.
    pub place: String,
    /// How many there are.
    pub connections: u32,
    /// How many workers use them.
    pub workers: u32,
}

/// The rate at which requests were begun, by the latest reports that agree with each other.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StartRate {
    /// The rate.
    pub per_second: f64,
    /// Over at least how many seconds.
    pub seconds: f64,
    /// How many of these seconds, the last ones, suffice for a rate: they certainly had this rate.
    pub shortest_seconds: f64,
    /// The age of the oldest of these reports; `None` if unknown.
    pub age: Option<Nanos>,
    /// Whether it uses a report from before the watch began, when there may have been another load.
    pub reaches_back: bool,
    /// Whether it is imprecise: it reaches back, or covers so little time that the whole seconds of
    /// Puma's reports matter.
    pub is_rough: bool,
}

/// Since when requests have been waiting, and whether their number grows.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitingSpan {
    /// How long.
    pub length: Nanos,
    /// Whether requests were already waiting when the watch began, so the wait may be longer.
    pub is_from_start: bool,
    /// How many more requests wait each second; negative if fewer, 0 if steady, `None` if not known
    /// yet.
    pub trend: Option<f64>,
}

/// A diagnosis of some time ago.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierWhy {
    /// How long ago.
    pub ago: Nanos,
    /// Why requests waited.
    pub why: String,
    /// What to try, one line each.
    pub tries: Vec<String>,
}

/// Waits that the watch saw end.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierWaits {
    /// The most requests that waited at a time.
    pub most: f64,
    /// How long somebody waited, in all.
    pub length: Nanos,
    /// How long ago the last of them ended.
    pub ago: Nanos,
}

impl StartRate {
    /// `99.0`, or `~33.0` if it is rough.
    pub fn in_words(self) -> String {
        let mark = if self.is_rough { "~" } else { "" };
        format!("{mark}{}", number::rate_in_words(self.per_second))
    }
}

impl WaitsSeen {
    /// Threads that certainly have a request: a free one waits for another thread without a time
    /// limit.
    fn at_work(&self) -> f64 {
        self.file_lock + self.timed + self.socket + self.runnable + self.other
    }

    /// The same, and those that wait for a lock.
    pub(super) fn with_request(&self) -> f64 {
        self.at_work() + self.lock
    }
}

impl WatchedWorker {
    /// Busy threads: by the worker's own count if there is one; otherwise as many as its unanswered
    /// requests need, or as do anything but wait for another thread.
    pub(super) fn busy(&self) -> Option<u32> {
        let taken = || Some((self.requests_out?.round() as u32).min(self.threads?));
        let at_work = || self.waits.map(|waits| waits.at_work().round() as u32);
        self.busy_threads.or_else(|| taken().max(at_work()))
    }

    /// Threads that are free.
    pub(super) fn free(&self) -> Option<u32> {
        Some(self.threads?.saturating_sub(self.busy()?))
    }

    /// Requests that wait inside the worker: by its own count if there is one; otherwise its
    /// unanswered requests beyond its threads.
    pub(super) fn inside(&self) -> Option<u32> {
        let by_kernel = || Some((self.requests_out?.round() as u32).saturating_sub(self.threads?));
        self.backlog.or_else(by_kernel)
    }

    /// Its unanswered requests as far as it has threads for them, by the kernel.
    fn on_threads(&self) -> Option<f64> {
        Some(self.requests_out?.min(f64::from(self.threads?)))
    }

    /// CPUs that its threads use or wait for.
    pub(super) fn runnable(&self) -> Option<f64> {
        Some(self.cpu? + self.cpu_wait?)
    }
}

impl WatchEvidence {
    /// The threads of all workers, if any worker's are known.
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

    /// The sum over the workers that have reported; `None` if none has.
    fn sum(&self, figure: fn(&WatchedWorker) -> Option<u32>) -> Option<u32> {
        self.workers.iter().filter_map(figure).reduce(|a, b| a + b)
    }

    /// Unanswered requests on accepted connections, at least.
    pub fn requests_out(&self) -> Option<u32> {
        self.out.map(|out| out.round() as u32)
    }

    /// The same, at most.
    pub fn requests_out_at_most(&self) -> Option<u32> {
        self.out_most.map(|out| out.round() as u32)
    }

    /// Requests that wait inside a server without statistics: its unanswered requests beyond its
    /// threads, for each worker if its connections are known.
    pub fn inside_by_kernel(&self) -> Option<u32> {
        if self.inside().is_some() {
            return None;
        }
        let out = self.requests_out()?;
        // Rounded only here, so that with those on a thread they add up to all that are in flight.
        let on_threads = match self.of_all(WatchedWorker::on_threads) {
            Some(_) if self.of_all(WatchedWorker::inside) == Some(0) => return Some(0),
            Some(on_threads) => on_threads.round() as u32,
            None => self.slots()?,
        };
        Some(out.saturating_sub(on_threads))
    }

    /// Whether what the kernel tells of requests and connections changed between the samples, so
    /// that their means are no whole numbers.
    pub(super) fn is_on_average(&self) -> bool {
        /// So near to a whole number, it was the same at nearly every look.
        const NEARLY_WHOLE: f64 = 0.1;
        let means = [self.queue, self.connections, self.out, self.out_most];
        means.iter().flatten().any(|mean| (mean - mean.round()).abs() > NEARLY_WHOLE)
    }

    /// Busy threads: by the server's own count if there is one; otherwise as many as the unanswered
    /// requests need.
    pub(super) fn busy_or_taken(&self) -> Option<u32> {
        let at_most = || Some(self.requests_out()?.min(self.slots()?));
        self.busy().or_else(|| self.of_all(WatchedWorker::busy)).or_else(at_most)
    }

    /// Whether it is known which threads are busy, by the server's own count or by the kernel's
    /// account.
    pub fn knows_busy_threads(&self) -> bool {
        self.slots().is_some() && self.busy_or_taken().is_some()
    }

    /// The sum over all workers; `None` if it is unknown for one of them.
    fn of_all<T: Sum>(&self, figure: fn(&WatchedWorker) -> Option<T>) -> Option<T> {
        let all = self.workers.iter().map(figure).sum::<Option<T>>();
        all.filter(|_| !self.workers.is_empty())
    }

    /// Connections in the accept queue; 0 if there is one only now and then.
    pub fn in_kernel(&self) -> Option<u32> {
        self.queue.map(|queue| if queue < LEAST_QUEUE { 0 } else { queue.round() as u32 })
    }

    /// All requests and connections that are seen to wait.
    pub fn waiting(&self) -> u32 {
        let inside = self.inside().or(self.inside_by_kernel());
        inside.unwrap_or(0) + self.in_kernel().unwrap_or(0)
    }

    /// Threads that run or wait for a CPU, on average.
    pub(super) fn runnable(&self) -> Option<f64> {
        Some(self.cpu? + self.cpu_wait?)
    }

    /// How much of the time in which its threads could have run they waited for a CPU.
    pub fn cpu_wait_share(&self) -> Option<f64> {
        let runnable = self.runnable().filter(|runnable| *runnable > 0.0)?;
        Some(self.cpu_wait? / runnable)
    }

    /// Puma's version before the first dot.
    pub fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }

    /// Responses a second by the kernel's counts, where the server does not count its requests.
    pub fn answered_rate(&self) -> Option<f64> {
        self.answered.filter(|rate| *rate > 0.0 && self.rate.is_none())
    }

    /// How many requests are answered a second now, by whoever counts them.
    pub(super) fn rate_now(&self) -> Option<f64> {
        self.settled_rate().or(self.answered_rate())
    }

    /// How long a request has a thread, by the server's own counts (Little's law).
    pub(super) fn held_by_count(&self) -> Option<Nanos> {
        Some(Nanos::from_secs_f64(f64::from(self.busy()?) / self.settled_rate()?))
    }

    /// The rate of requests, if it describes the same seconds as the other figures: not if it
    /// reaches back before the watch, or may be that of another load, before requests waited.
    pub(super) fn settled_rate(&self) -> Option<f64> {
        let rate = self.rate.filter(|rate| rate.per_second > 0.0 && !rate.reaches_back)?;
        let begins = rate.age.map(|age| age + Nanos::from_secs_f64(rate.shortest_seconds));
        let is_before = begins.zip(self.span).is_some_and(|(begins, span)| begins > span.length);
        (!is_before).then_some(rate.per_second)
    }
}
