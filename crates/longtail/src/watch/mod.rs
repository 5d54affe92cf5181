//! `longtail watch`: looks at a server that was there before us, and sends it nothing but questions
//! to its control server; to one on another machine also a connect a second, which carries nothing.
//!
//! `target` finds it; `probe::sampler` looks at it from threads of its own and tells a
//! `WatchBoard`, which keeps `series` and sums them up as [`WatchEvidence`] (here): the figures of
//! now, of the last seconds or since the watch began, and the only thing that a conclusion rests
//! on. `diagnosis` is that conclusion, `answer` its text and JSON, `screen` the terminal. What
//! could not be seen is absent.

mod answer;
mod board;
mod diagnosis;
mod screen;
mod series;
mod target;

pub(crate) use self::answer::{AnswerLine, all_figures, answer, line, line_head, watch_json};
pub(crate) use self::board::WatchBoard;
pub(crate) use self::screen::{WatchScreen, is_a_terminal};
pub(crate) use self::target::{StatisticsSource, TargetName, WatchTarget, connect, short_path};

use model::Nanos;
use report::number;
use serde::Serialize;

use self::series::{LEAST_QUEUE, WaitingSpan};

/// Why a watch is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WatchEnd {
    /// Its time is up.
    Time,
    /// The user ended it.
    User,
    /// The server has ended.
    Server,
}

/// What was seen of a server.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default)]
#[cfg_attr(test, derive(serde::Deserialize), serde(default))]
pub(crate) struct WatchEvidence {
    /// How long it was watched.
    pub(crate) watched: Nanos,
    /// When it was found to have ended.
    pub(crate) ended: Option<Nanos>,
    /// Whether it is on another machine, whose clock is another too.
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
    /// Why there are no statistics; of a server that nobody asks, because it is not known where,
    /// empty.
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
    /// The longest that is allowed.
    pub(crate) queue_limit: Option<u32>,
    /// Connects that a full accept queue dropped since the watch began; of all servers in this
    /// network namespace.
    pub(crate) overflows: Option<f64>,
    /// Connections that are open, those in the accept queue too.
    pub(crate) connections: Option<f64>,
    /// Since when anything waits.
    pub(crate) span: Option<WaitingSpan>,
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
#[cfg_attr(test, derive(serde::Deserialize), serde(default))]
pub(crate) struct WatchedWorker {
    pub(crate) name: String,
    pub(crate) pid: Option<u32>,
    /// Its process has ended, though Puma's master still names it.
    pub(crate) is_gone: bool,
    /// It has not booted, or not reported since.
    pub(crate) is_booting: bool,
    /// As many requests as it can serve at once just now: in Puma 8 these may be more than it is
    /// configured to.
    pub(crate) threads: Option<u32>,
    /// Of those: threads whose request has said that it waits (Puma 8).
    pub(crate) io_threads: Option<u32>,
    pub(crate) busy_threads: Option<u32>,
    pub(crate) backlog: Option<u32>,
    pub(crate) connections: Option<f64>,
    pub(crate) cpu: Option<f64>,
    /// Threads that wait for a CPU.
    pub(crate) cpu_wait: Option<f64>,
    pub(crate) memory_bytes: Option<f64>,
    /// How old its statistics are.
    pub(crate) staleness_ns: Option<Nanos>,
    /// In so many of its last reports in a row all its threads are busy.
    #[serde(skip_serializing)]
    pub(crate) full_reports: usize,
}

/// Requests that were begun, by the last reports that agree with each other.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(test, derive(serde::Deserialize), serde(default))]
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
    fn in_words(self) -> String {
        let mark = if self.is_rough { "~" } else { "" };
        format!("{mark}{}", number::rate_in_words(self.per_second))
    }
}

impl WatchedWorker {
    /// Threads that are free.
    fn free(&self) -> Option<u32> {
        Some(self.threads?.saturating_sub(self.busy_threads?))
    }
}

impl WatchEvidence {
    /// Threads in all, where any worker says.
    fn slots(&self) -> Option<u32> {
        self.sum(|worker| worker.threads)
    }

    /// Threads that are busy.
    fn busy(&self) -> Option<u32> {
        self.sum(|worker| worker.busy_threads)
    }

    /// Requests that wait inside the server.
    fn inside(&self) -> Option<u32> {
        self.sum(|worker| worker.backlog)
    }

    /// Of the workers that have reported; `None` where none has.
    fn sum(&self, figure: fn(&WatchedWorker) -> Option<u32>) -> Option<u32> {
        self.workers.iter().filter_map(figure).reduce(|a, b| a + b)
    }

    /// Connections in the accept queue, where it is more than one now and then.
    fn in_kernel(&self) -> Option<u32> {
        self.queue.map(|queue| if queue < LEAST_QUEUE { 0 } else { queue.round() as u32 })
    }

    /// All that are seen to wait.
    fn waiting(&self) -> u32 {
        self.inside().unwrap_or(0) + self.in_kernel().unwrap_or(0)
    }

    /// Threads that run or wait for a CPU, on average.
    fn runnable(&self) -> Option<f64> {
        Some(self.cpu? + self.cpu_wait?)
    }

    /// Of the time in which its threads could run, the part in which they waited for a CPU.
    fn cpu_wait_share(&self) -> Option<f64> {
        let runnable = self.runnable().filter(|runnable| *runnable > 0.0)?;
        Some(self.cpu_wait? / runnable)
    }

    /// Puma's version before the first dot.
    fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }
}
