//! The limit: what kept a run from doing more, with its evidence.
//!
//! A verdict says whether the server was measured; the limit says what has to change for it to do
//! more. Verdict, checks and limit together are a run's [`Judgement`]. The crate `judge` decides
//! when a limit holds, and names it.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::{Diagnostic, GeneratorFacts, LaneFacts, Nanos};

/// What limited a run. A run with less load than the server can handle, or with invalid figures,
/// has no limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    /// The server's threads: all of them are busy, and requests wait for one.
    Threads {
        /// Requests that it can process at a time.
        slots: u32,
        /// Connections that wanted one.
        connections: u32,
        /// Requests' worth of work at once; `None` if no request was measured alone.
        #[serde(default)]
        at_once: Option<AtOnce>,
        /// Busy threads by the server's own count, on average; `None` if it has no count.
        #[serde(default)]
        busy: Option<f64>,
        /// How long a typical request takes with one in flight for each thread, if it is as long as
        /// alone; `None` if unknown.
        #[serde(default)]
        unhindered: Option<UsualTimes>,
        /// How certain it is.
        #[serde(default)]
        strength: Strength,
        /// How much of a CPU the least busy of Ruby's processes used, if the threads do less than
        /// they could, or are seen to wait for a lock, and compete for Ruby's lock.
        #[serde(default)]
        computes: Option<f64>,
    },
    /// Something inside the app that lets through fewer requests than there are threads: a pool, a
    /// lock, a backend.
    InsideApp {
        /// Requests that it can process at a time.
        slots: u32,
        /// Processes that serve.
        workers: u32,
        /// Requests' worth of work at once, clearly fewer; `None` if no request was measured alone.
        at_once: Option<AtOnce>,
        /// How long each request would hold the shared resource if only one could have it at a
        /// time: 1 / throughput; `None` if unknown.
        #[serde(rename = "held_ns")]
        held: Option<Nanos>,
        /// Busy threads that wait for a lock; `None` if that was not observed.
        #[serde(default)]
        locked: Option<LockWaiters>,
        /// How long a typical request takes with no more in flight than there are threads, if it is
        /// longer than alone; `None` if unknown.
        #[serde(default)]
        hindered: Option<UsualTimes>,
        /// Busy threads by the server's own count, if they are fewer than was stated.
        #[serde(default)]
        busy: Option<f64>,
        /// How much of a CPU the least busy of Ruby's processes used, if it is enough for Ruby's
        /// lock to be what holds requests up.
        #[serde(default)]
        computes: Option<f64>,
    },
    /// The server takes more requests at once than was stated.
    MoreThanStated {
        /// Requests at a time, as stated.
        stated: u32,
        /// Requests' worth of work at once, clearly more.
        at_once: AtOnce,
        /// Connections of that run.
        connections: u32,
        /// Whether requests wait with that many connections.
        waits: bool,
        /// Whether requests wait, and fewer connections brought as much throughput: then this is
        /// its limit.
        is_full: bool,
        /// Busy threads by the server's own count, if they are more than was stated.
        #[serde(default)]
        busy: Option<f64>,
    },
    /// The server refuses requests beyond the number that it takes at once, so more load brings no
    /// more good responses.
    Refusals {
        /// Requests' worth of work at once by the good responses, if known.
        at_once: Option<AtOnce>,
        /// Refused requests per second.
        refused_per_s: f64,
        /// The most frequent status of those.
        status: u16,
    },
    /// The CPUs that the server may use.
    Cpu(CpuUsage),
    /// Ruby's lock lets one thread of a process run at a time, and each process always, or nearly
    /// always, had one running.
    RubyLock {
        /// Processes that serve.
        processes: u32,
        /// What the least busy of them used, in CPUs.
        each: f64,
        /// The server's use of its CPUs.
        cpu: CpuUsage,
        /// How certain it is. `Probably`, if the processes were not always running or ready to run,
        /// but requests wait inside the app.
        #[serde(default = "Strength::certain")]
        strength: Strength,
    },
    /// Each process uses a whole CPU and no more, and CPUs are left: it computes in one thread at a
    /// time.
    OneCpuEach {
        /// Processes that serve.
        processes: u32,
        /// What the least busy of them used, in CPUs.
        each: f64,
        /// The server's use of its CPUs.
        cpu: CpuUsage,
    },
    /// Connections that the kernel dropped because the accept queue was full, and that were retried
    /// a second later or more.
    AcceptQueue {
        /// Dropped by full accept queues, on this machine.
        dropped: u64,
        /// Connects that the kernel retried, on this machine.
        retried: u64,
        /// The longest connect of a good response.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// The network between generator and server: its round trips, or its losses.
    Network {
        /// The mean round trip, if the server is on another machine.
        #[serde(rename = "round_trip_ns")]
        round_trip: Option<Nanos>,
        /// Requests that were slow.
        slow: u64,
        /// How many of them had a retransmission.
        retransmitted: u64,
        /// The share of all service time that went into round trips, or into requests with a
        /// retransmission: the larger.
        share: f64,
    },
    /// The generator, by this check.
    Generator {
        /// The check that failed.
        check: Diagnostic,
    },
    /// The CPUs that server and generator share.
    SharedCpus(CpuUsage),
    /// The limit is not known.
    NotKnown {
        /// The server's use of its CPUs, if it could be read.
        cpu: Option<CpuUsage>,
        /// Requests' worth of work at once, if a request was measured alone.
        #[serde(default)]
        at_once: Option<AtOnce>,
        /// Busy threads by the server's own count, on average.
        #[serde(default)]
        busy: Option<f64>,
    },
}

/// How many requests' worth of work a server did at once: throughput x the mean time of one request
/// alone, with the 95 % interval of both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtOnce {
    /// The product.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end; `None` if nothing bounds it.
    pub high: Option<f64>,
}

/// Busy threads, some of which wait for a lock, according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockWaiters {
    /// Threads that are busy.
    pub busy: u32,
    /// How many of them wait for a lock, on average.
    pub waiting: f64,
    /// Whether it is a lock on a file, which several processes may share.
    pub is_on_file: bool,
}

/// How certain a conclusion is, by its evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// A guess that another run could confirm.
    MayBe,
    /// One source shows it: the client's times, or the server's counts.
    #[default]
    Probably,
    /// Two sources show it.
    Is,
}

impl Strength {
    /// The default of a limit that older studies recorded only if it was certain.
    fn certain() -> Strength {
        Strength::Is
    }
}

/// How long a typical request takes when each has a thread, compared with alone or with fewer
/// others. Requests that wait for something inside take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsualTimes {
    /// Connections: as many as threads.
    pub connections: u32,
    /// How long a typical request takes there.
    #[serde(rename = "here_ns")]
    pub here: Nanos,
    /// Connections of the load that it is compared with; 1 if requests ran alone.
    pub fewer: u32,
    /// How long a typical request takes there.
    #[serde(rename = "with_fewer_ns")]
    pub with_fewer: Nanos,
}

impl UsualTimes {
    /// Whether a request takes this many times as long here, ignoring chance.
    pub fn is_longer_by(&self, times: f64) -> bool {
        self.here.as_secs_f64() > times * self.with_fewer.as_secs_f64()
    }
}

impl Limit {
    /// Whether requests wait for CPUs rather than threads: they share the CPUs instead of each
    /// holding one.
    pub fn is_computing(&self) -> bool {
        match self {
            Limit::Cpu(_)
            | Limit::RubyLock { .. }
            | Limit::OneCpuEach { .. }
            | Limit::SharedCpus(_) => true,
            Limit::Threads { .. }
            | Limit::InsideApp { .. }
            | Limit::MoreThanStated { .. }
            | Limit::Refusals { .. }
            | Limit::AcceptQueue { .. }
            | Limit::Network { .. }
            | Limit::Generator { .. }
            | Limit::NotKnown { .. } => false,
        }
    }
}

/// How the CPUs were used during a run, in CPUs on average: 1.5 is one and a half.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuUsage {
    /// The server.
    pub server: f64,
    /// The generator, without busy polling.
    pub generator: f64,
    /// Other processes; `None` if the kernel doesn't say.
    pub others: Option<f64>,
    /// How many the server may use at once, by its affinity and the quota of its control groups.
    pub of: f64,
    /// Whether a quota sets this number, rather than the machine or an affinity.
    #[serde(default)]
    pub by_quota: bool,
}

impl CpuUsage {
    /// The CPU use of a run; `None` if the server's processes are unknown.
    pub fn of(facts: &GeneratorFacts) -> Option<CpuUsage> {
        let server = facts.server.as_ref()?;
        let elapsed = facts
            .lanes
            .iter()
            .map(|lane| lane.elapsed)
            .max()
            .unwrap_or_default()
            .as_secs_f64()
            .max(1e-9);
        let lanes = |part: fn(&LaneFacts) -> Nanos| {
            facts.lanes.iter().map(part).sum::<Nanos>().as_secs_f64() / elapsed
        };
        let own = server.cpus();
        let beside = if server.is_shared { lanes(|lane| lane.cpu) } else { 0.0 };
        let others = server.busy.map(|busy| (busy - own - beside).max(0.0));
        Some(CpuUsage {
            server: own,
            generator: lanes(LaneFacts::work),
            others,
            of: server.of,
            by_quota: server.by_quota,
        })
    }
}

impl fmt::Display for CpuUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CpuUsage { server, generator, others, of, .. } = self;
        write!(f, "the server used {server:.2} of {of} CPUs, the generator {generator:.2}")?;
        others.map_or(Ok(()), |others| write!(f, ", others {others:.2}"))
    }
}

/// What limited a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub enum Verdict {
    /// The server: it was driven to its limit and the generator had room to spare.
    ServerBound,
    /// The generator: the figures say more about it than about the server.
    GeneratorBound,
    /// The CPUs, which server and generator share: the server would do more on CPUs of its own, and
    /// the times are valid except for the generator's stated part.
    SharedCpus,
    /// The network between them: round trips or retransmissions took the time.
    NetworkBound,
    /// Nothing: the server was offered less than it can do, and kept up.
    Unloaded,
    /// The figures contradict each other or the machine spoiled them: no headline figure is given.
    Invalid,
}

/// The verdict and its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The check that decided it; `None` if all checks passed, and in older files.
    #[serde(default)]
    pub decided_by: Option<Diagnostic>,
    /// Every check that applied, with its evidence.
    pub checks: Vec<Diagnostic>,
    /// The limit; `None` if the run is unloaded or invalid, and in older files.
    pub limit: Option<Limit>,
    /// Whether the user wants to see an invalid run's figures anyway.
    pub forced: bool,
}
