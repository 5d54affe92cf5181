//! The limit: what kept a run from doing more, with its evidence.
//!
//! A verdict says whether the server was measured; the limit says what would have to give for more.
//! With the verdict and the checks that it rests on it is a run's [`Judgement`]. When a limit
//! holds, and what it is called, is the crate `judge`'s.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::{Diagnostic, GeneratorFacts, LaneFacts, Nanos};

/// What limited a run. A run that was offered less than the server can do, or whose figures are
/// void, has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    /// The server's threads: all are taken, by requests that wait.
    Threads {
        /// Requests that it can process at a time.
        slots: u32,
        /// Connections that wanted one.
        connections: u32,
        /// Requests' worth at once; `None` where nothing was measured of one request alone.
        #[serde(default)]
        at_once: Option<AtOnce>,
        /// Threads that the server itself said are busy, on average; `None` where it did not say.
        #[serde(default)]
        busy: Option<f64>,
        /// What a usual request takes with one out for each thread: as long as alone; `None` where
        /// that is not known.
        #[serde(default)]
        unhindered: Option<UsualTimes>,
        /// How well that is known.
        #[serde(default)]
        strength: Strength,
    },
    /// Something inside the app that lets fewer requests pass than there are threads: a pool, a
    /// lock, a backend.
    InsideApp {
        /// Requests that it can process at a time.
        slots: u32,
        /// Processes that serve.
        workers: u32,
        /// Requests' worth at once: clearly fewer; `None` where nothing is known of one request
        /// alone.
        at_once: Option<AtOnce>,
        /// As long as each request would hold what all share, if one could have it at a time: one
        /// over the throughput; `None` where that is not known.
        #[serde(rename = "held_ns")]
        held: Option<Nanos>,
        /// Busy threads that wait for a lock; `None` where nobody looked.
        #[serde(default)]
        locked: Option<LockWaiters>,
        /// What a usual request takes with no more out than there are threads: longer than alone;
        /// `None` where that is not known.
        #[serde(default)]
        hindered: Option<UsualTimes>,
        /// Threads that the server itself said are busy, where those are not as many as was stated.
        #[serde(default)]
        busy: Option<f64>,
    },
    /// The server takes more requests at once than was stated.
    MoreThanStated {
        /// Requests at a time, as stated.
        stated: u32,
        /// Requests' worth at once: clearly more.
        at_once: AtOnce,
        /// Connections of that run.
        connections: u32,
        /// Whether requests wait there.
        waits: bool,
        /// Whether they wait, and fewer connections brought as much: then this is its limit.
        is_full: bool,
        /// Threads that the server itself said are busy, where those are more than was stated.
        #[serde(default)]
        busy: Option<f64>,
    },
    /// The server refuses what is more than it takes at once, so that good responses do not grow.
    Refusals {
        /// Requests' worth of good responses at once, where it is known.
        at_once: Option<AtOnce>,
        /// Refused requests per second.
        refused_per_s: f64,
        /// The most frequent status of those.
        status: u16,
    },
    /// The CPUs that the server may use.
    Cpu(CpuUsage),
    /// Ruby runs one thread of a process at a time, and each process did.
    RubyLock {
        /// Processes that serve.
        processes: u32,
        /// What the least busy of them had, in CPUs.
        each: f64,
        /// The server beside its CPUs.
        cpu: CpuUsage,
    },
    /// Each process uses a whole CPU and no more, and CPUs are left: it computes in one thread at a
    /// time.
    OneCpuEach {
        /// Processes that serve.
        processes: u32,
        /// What the least busy of them had, in CPUs.
        each: f64,
        /// The server beside its CPUs.
        cpu: CpuUsage,
    },
    /// Connections that the kernel dropped for a full accept queue, and tried again a second later
    /// or more.
    AcceptQueue {
        /// Dropped by full accept queues, on this machine.
        dropped: u64,
        /// Connects that the kernel tried again, on this machine.
        retried: u64,
        /// The longest connect of a good response.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// The way between generator and server: its length, or what was lost on it.
    Network {
        /// A round trip on average, where the server is not on this machine.
        #[serde(rename = "round_trip_ns")]
        round_trip: Option<Nanos>,
        /// Requests that were slow.
        slow: u64,
        /// Of those: with a segment that was sent again meanwhile.
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
    /// Not known.
    NotKnown {
        /// The server beside its CPUs, where that could be read.
        cpu: Option<CpuUsage>,
        /// Requests' worth of work at once, where one request alone was measured.
        #[serde(default)]
        at_once: Option<AtOnce>,
        /// Threads that the server itself said are busy, on average.
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
    /// The true value is hardly less.
    pub low: f64,
    /// Nor is it more; `None` where nothing bounds it.
    pub high: Option<f64>,
}

/// Busy threads of which some wait for a lock, by the kernel's account.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockWaiters {
    /// Threads that are busy.
    pub busy: u32,
    /// Those of them that wait for a lock, on average.
    pub waiting: f64,
    /// Whether it is a lock on a file, which several processes may share.
    pub is_on_file: bool,
}

/// How well a conclusion is known, by what it rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// A guess that another run would settle.
    MayBe,
    /// One source says so: the client's times, or the server's counts.
    #[default]
    Probably,
    /// Two sources say so.
    Is,
}

/// What a usual request takes where each has a thread, beside what it takes alone or with fewer
/// others. Whoever waits for something inside takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsualTimes {
    /// Connections: as many as threads.
    pub connections: u32,
    /// What a usual request takes there.
    #[serde(rename = "here_ns")]
    pub here: Nanos,
    /// Connections of the load beside it: 1 where requests were made alone.
    pub fewer: u32,
    /// What a usual request takes there.
    #[serde(rename = "with_fewer_ns")]
    pub with_fewer: Nanos,
}

impl UsualTimes {
    /// Whether a request takes so many times as long here, chance left aside.
    pub fn is_longer_by(&self, times: f64) -> bool {
        self.here.as_secs_f64() > times * self.with_fewer.as_secs_f64()
    }
}

impl Limit {
    /// Whether it is CPUs that requests wait for, and not threads: they share them, and do not hold
    /// one each for a time of their own.
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

/// Who had the CPUs during a run, in CPUs on average: 1.5 is one and a half.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuUsage {
    /// The server.
    pub server: f64,
    /// The generator, without busy polling.
    pub generator: f64,
    /// Everybody else; `None` where the kernel does not tell.
    pub others: Option<f64>,
    /// As many as the server may use at once, by its affinity and the quota of its control groups.
    pub of: f64,
    /// Whether a quota leaves it no more, and not the machine or an affinity.
    #[serde(default)]
    pub by_quota: bool,
}

impl CpuUsage {
    /// Of a run; `None` where the server's processes are not known.
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
        let (own, beside) =
            (server.cpus(), if server.is_shared { lanes(|lane| lane.cpu) } else { 0.0 });
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
    /// the times hold but for the generator's stated part.
    SharedCpus,
    /// The network between them: round trips, or segments that were sent again, took the time.
    NetworkBound,
    /// Nothing: the server was offered less than it can do, and kept up.
    Unloaded,
    /// The figures contradict each other or the machine spoiled them: no headline figure is given.
    Invalid,
}

/// The verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The check that decided it; `None` where all checks hold, and of older files.
    #[serde(default)]
    pub decided_by: Option<Diagnostic>,
    /// Every question that could be asked, with its response.
    pub checks: Vec<Diagnostic>,
    /// What kept it from doing more; `None` of a run that is unloaded or void, and of older files.
    pub limit: Option<Limit>,
    /// Whether the user wants an invalid run's figures all the same.
    pub forced: bool,
}
