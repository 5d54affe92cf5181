//! The limit: what kept a run from doing more, with its evidence.
//!
//! A verdict says whether the server was measured; the limit says what would have to give for more.
//! What the evidence does not show is not known, and then it is said what was seen. With the
//! verdict and the checks that it rests on it is a run's [`Judgement`].

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use thiserror::Error;

use crate::{Diagnostic, GeneratorFacts, Grade, LaneFacts, Nanos, NetworkPath, Tally};

/// What limited a run. A run that was offered less than the server can do, or whose figures are
/// void, has none. Printed, it is its name and the evidence.
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    /// The server's threads: all are taken, by requests that wait.
    #[error("threads: {connections} connections want {slots} threads, and these do {:.0} % of what they can", .of_maximum * 100.0)]
    Threads {
        /// Requests that it can process at a time.
        slots: u32,
        /// Connections that wanted one.
        connections: u32,
        /// The rate over slots / service time.
        of_maximum: f64,
    },
    /// The CPUs that the server may use.
    #[error("CPU: {0}")]
    Cpu(CpuUsage),
    /// Ruby runs one thread of a process at a time, and each process did.
    #[error("Ruby's lock: one thread of {}; {cpu}", ruby_lock(*.processes))]
    RubyLock {
        /// Processes that serve.
        processes: u32,
        /// What the least busy of them had or waited for, in CPUs.
        each: f64,
        /// The server beside its CPUs.
        cpu: CpuUsage,
    },
    /// Connections that the kernel dropped for a full accept queue, and tried again a second later
    /// or more.
    #[error("accept queue: {dropped} connects dropped, {retried} tried again, the longest {:.2} s", .longest.as_secs_f64())]
    AcceptQueue {
        /// Dropped by full accept queues, on this machine.
        dropped: u64,
        /// Connects that the kernel tried again, on this machine.
        retried: u64,
        /// The longest connect of a good answer.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// The way between generator and server: its length, or what was lost on it.
    #[error("network: {}{:.0} % of the service time is the network's", on_the_way(*.round_trip, *.slow, *.retransmitted), .share * 100.0)]
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
    #[error("generator: {check}")]
    Generator {
        /// The check that failed.
        check: Diagnostic,
    },
    /// The CPUs that server and generator share.
    #[error("shared CPUs: {0}")]
    SharedCpus(CpuUsage),
    /// Not known.
    #[error("not known: {}", .cpu.map_or("nothing was read of the server".to_owned(), |cpu| cpu.to_string()))]
    NotKnown {
        /// The server beside its CPUs, where that could be read.
        cpu: Option<CpuUsage>,
    },
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
}

/// CPUs are all used where no more than this share of them is left.
const USED: f64 = 0.90;
/// A server that has less of its CPUs than this is not limited by them, whoever else uses them.
const SERVER_USES: f64 = 0.25;
/// Generator and others are seen in the server's rate from this share of its CPUs on.
const OTHERS_USE: f64 = 0.05;
/// A process that ran or wanted to for this share of the time had its lock taken all the time.
const LOCK_TAKEN: f64 = 0.90;

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
        Some(CpuUsage { server: own, generator: lanes(LaneFacts::work), others, of: server.of })
    }
}

/// Which limit of the CPUs a run has reached, if any: theirs, or that of Ruby's lock.
pub(crate) fn of_cpus(facts: &GeneratorFacts) -> Option<Limit> {
    let (server, cpu) = (facts.server.as_ref()?, CpuUsage::of(facts)?);
    let beside = if server.is_shared { cpu.generator } else { 0.0 } + cpu.others.unwrap_or(0.0);
    // What is not idle is not to be had, whoever has it: a host takes processors from a virtual
    // machine unseen.
    let used = server.idle.map_or(cpu.server + beside, |idle| cpu.of - idle);
    let is_alone = beside < OTHERS_USE * cpu.of || !server.is_shared;
    let on_cpus = |cpu| if is_alone { Limit::Cpu(cpu) } else { Limit::SharedCpus(cpu) };
    if cpu.server >= SERVER_USES * cpu.of && used >= USED * cpu.of {
        return Some(on_cpus(cpu));
    }
    let serving = server.serving();
    let each = serving.iter().map(|(_, wanted)| *wanted).fold(f64::INFINITY, f64::min);
    let is_taken = server.is_ruby && !serving.is_empty() && each >= LOCK_TAKEN;
    let is_used_up = used >= USED * cpu.of;
    is_taken.then(|| {
        if is_used_up {
            on_cpus(cpu)
        } else {
            Limit::RubyLock { processes: serving.len() as u32, each, cpu }
        }
    })
}

/// From this share of the service time on the network is what limits: of round trips, which every
/// request has, and of requests with a retransmission, which few have and which are slow because of
/// it.
const ROUND_TRIPS: f64 = 0.5;
const RETRANSMISSIONS: f64 = 0.1;

/// Whether the network is what took the time.
pub(crate) fn of_network(tally: &Tally) -> Option<Limit> {
    let NetworkPath { round_trip, slow, slow_with_retransmission, .. } = tally.network;
    let on_the_way = tally.network.share_of_round_trip(&tally.service_time).unwrap_or(0.0);
    let sent_again = tally.network.share_of_retransmissions(&tally.service_time);
    (on_the_way >= ROUND_TRIPS || sent_again >= RETRANSMISSIONS).then(|| Limit::Network {
        round_trip: round_trip.mean(),
        slow,
        retransmitted: slow_with_retransmission.count,
        share: on_the_way.max(sent_again),
    })
}

impl Limit {
    /// Whether it is CPUs that requests wait for, and not threads: they share them, and do not hold
    /// one each for a time of their own.
    pub fn is_computing(&self) -> bool {
        matches!(self, Limit::Cpu(_) | Limit::RubyLock { .. } | Limit::SharedCpus(_))
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Limit::Threads { .. } => "threads",
            Limit::Cpu(_) => "CPU",
            Limit::RubyLock { .. } => "Ruby's lock",
            Limit::AcceptQueue { .. } => "accept queue",
            Limit::Network { .. } => "network",
            Limit::Generator { .. } => "generator",
            Limit::SharedCpus(_) => "shared CPUs",
            Limit::NotKnown { .. } => "not known",
        }
    }
}

fn ruby_lock(processes: u32) -> String {
    match processes {
        1 => "the process runs at a time, and one did".to_owned(),
        _ => format!("a process runs at a time, and in each of the {processes} one did"),
    }
}

fn on_the_way(round_trip: Option<Nanos>, slow: u64, retransmitted: u64) -> String {
    let round_trip =
        round_trip.map(|time| format!("a round trip takes {:.1} ms; ", time.as_millis_f64()));
    let sent_again = (slow > 0).then(|| {
        format!("{retransmitted} of {slow} slow requests had a segment that was sent again; ")
    });
    round_trip.unwrap_or_default() + &sent_again.unwrap_or_default()
}

impl fmt::Display for CpuUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CpuUsage { server, generator, others, of } = self;
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
    /// Every question that could be asked, with its answer.
    pub checks: Vec<Diagnostic>,
    /// What kept it from doing more; `None` of a run that is unloaded or void, and of older files.
    pub limit: Option<Limit>,
    /// Whether the user wants an invalid run's figures all the same.
    pub forced: bool,
}

impl Judgement {
    /// The same with one more check, of those that void the figures.
    #[must_use]
    pub fn with(mut self, check: Diagnostic) -> Judgement {
        if check.grade() == Grade::Failed {
            (self.verdict, self.limit) = (Verdict::Invalid, None);
        }
        self.checks.push(check);
        self
    }

    /// How a check came out here: one that fails, and did not decide, is a doubt.
    pub fn grade(&self, check: &Diagnostic) -> Grade {
        let decides = matches!(self.verdict, Verdict::GeneratorBound | Verdict::Invalid);
        if decides { check.grade() } else { check.grade().min(Grade::Doubtful) }
    }

    /// The checks that were not passed, the worst first.
    pub fn troubles(&self) -> Vec<&Diagnostic> {
        let mut troubles: Vec<&Diagnostic> =
            self.checks.iter().filter(|check| check.grade() > Grade::Passed).collect();
        troubles.sort_by_key(|check| std::cmp::Reverse(self.grade(check)));
        troubles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of ten seconds on two CPUs, in tenths of a second of CPU time.
    fn facts(
        processes: &[u64],
        lane: u64,
        busy: u64,
        (is_ruby, is_shared): (bool, bool),
    ) -> GeneratorFacts {
        use crate::{ProcessCpu, ServerCpu};
        let tenths = |n: u64| Nanos::from_millis(100 * n);
        let elapsed = Nanos::from_secs(10);
        let process = |n: &u64| ProcessCpu { cpu: tenths(*n), ..ProcessCpu::default() };
        let server = ServerCpu {
            processes: processes.iter().map(process).collect(),
            elapsed,
            requests: 1000,
            of: 2.0,
            is_shared,
            busy: Some(busy as f64 / 100.0),
            idle: Some(2.0 - busy as f64 / 100.0),
            is_ruby,
        };
        let lane = LaneFacts { cpu: tenths(lane), elapsed, ..LaneFacts::default() };
        GeneratorFacts { lanes: vec![lane], server: Some(server), ..GeneratorFacts::default() }
    }

    #[test]
    fn cpus_that_are_used_up_are_distinguished_from_threads_that_wait() {
        let of = |processes: &[u64], lane, busy, how| {
            of_cpus(&facts(processes, lane, busy, how)).map(|it| it.name())
        };
        let (ruby, native) = ((true, true), (false, true));
        for (named, limit) in [
            (
                "two workers that compute have both CPUs",
                (of(&[1, 97, 96], 2, 197, ruby), Some("CPU")),
            ),
            (
                "and beside a generator that has its part",
                (of(&[1, 70, 72], 50, 198, ruby), Some("shared CPUs")),
            ),
            ("and beside others", (of(&[1, 70, 72], 2, 199, ruby), Some("shared CPUs"))),
            (
                "one worker that computes leaves a CPU",
                (of(&[98], 3, 104, ruby), Some("Ruby's lock")),
            ),
            (
                "so does one of two that has all to do",
                (of(&[97, 2], 3, 104, ruby), Some("Ruby's lock")),
            ),
            ("a process that is no Ruby has no such lock", (of(&[98], 3, 104, native), None)),
            ("an app that waits", (of(&[5, 6], 2, 14, ruby), None)),
            ("an app that waits beside others that compute", (of(&[5, 6], 2, 200, ruby), None)),
            (
                "a generator on other CPUs takes none",
                (of(&[180], 90, 182, (false, false)), Some("CPU")),
            ),
        ] {
            assert_eq!(limit.0, limit.1, "{named}");
        }
        assert_eq!(of_cpus(&GeneratorFacts::default()), None);
        // The host had an eighth of both CPUs, and nobody says so: but none was idle.
        let mut by_host = facts(&[64, 64], 35, 175, ruby);
        assert_eq!(of_cpus(&by_host), None);
        by_host.server.iter_mut().for_each(|server| server.idle = Some(0.0));
        assert_eq!(of_cpus(&by_host).map(|it| it.name()), Some("shared CPUs"));
        // Two workers that hand their locks on: 80 % of each CPU, and some of the time they wait
        // for one. Two more workers did 21 % more.
        let mut waiting = facts(&[80, 80], 2, 166, ruby);
        waiting
            .server
            .iter_mut()
            .flat_map(|server| &mut server.processes)
            .for_each(|one| one.run_queue = one.cpu / 4);
        assert_eq!(of_cpus(&waiting).map(|it| it.name()), Some("Ruby's lock"));
    }

    #[test]
    fn the_network_is_the_limit_where_it_took_the_time() {
        let millis = Nanos::from_millis;
        // 100 requests of 20 ms, then `lost` of 220 ms while which something was sent again.
        let of = |round_trip: u64, lost: u64, slow_otherwise: u64| {
            let mut tally =
                Tally::new(crate::Window { from: Nanos::ZERO, until: Nanos::from_secs(10) }, 1);
            (0..100).for_each(|_| tally.service_time.record(millis(20)));
            for at in 0..lost + slow_otherwise {
                tally.service_time.record(millis(220));
                tally.network.record_slow(millis(220), at < lost);
            }
            tally.network.record_connection(millis(round_trip), 0);
            of_network(&tally)
        };
        assert_eq!(of(0, 0, 0), None, "nothing is known of it");
        assert_eq!(of(9, 0, 0), None, "a round trip of 9 of 20 ms");
        assert_eq!(of(0, 0, 50), None, "slow, and nothing was sent again");
        assert_eq!(of(0, 1, 9), None, "one of ten slow ones");
        let Some(Limit::Network { share, slow: 0, .. }) = of(15, 0, 0) else {
            panic!("a round trip of 15 of 20 ms")
        };
        assert!((share - 0.75).abs() < 0.01, "{share}");
        let Some(Limit::Network { share, slow: 3, retransmitted: 2, .. }) = of(0, 2, 1) else {
            panic!("two of three")
        };
        assert!((share - 440.0 / 2660.0).abs() < 0.01, "{share}");
    }
}
