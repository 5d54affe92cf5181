//! Samples a server and the kernel again and again, from threads of its own: for a sweep while a
//! run goes on, for `watch` until it ends.
//!
//! The accept queue is sampled 20 times a second. Connections and processes are sampled less often,
//! as a [`SamplingPlan`] says, because the kernel walks its hash of all sockets for the
//! connections, and finding new processes means reading all of `/proc`. After a sample that took
//! long the next one waits, so that sampling takes at most a twentieth of one CPU. Nothing is kept
//! here.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{Clock, ControlServer, Nanos};

use crate::answered::{AnsweredRequests, AnsweredSince};
use crate::host::HostCounters;
use crate::owners;
use crate::processes::{AcceptedConnections, ProcessSample, ServerProcesses, this_threads_cpu};
use crate::puma_stats::{self, PumaStats};
use crate::rights;
use crate::server_cpu::CpuRoom;
use crate::sock_diag::KernelSocket;
use crate::sockets::{ServerListener, ServerSockets};
use crate::threads::{PoolLook, ThreadPools};

/// The time between two samples of the accept queue.
const QUEUE_PERIOD: Nanos = Nanos::from_millis(50);
/// The time between two looks at the threads that serve requests. Each follows a sample of the queue.
const LOOK_PERIOD: Nanos = Nanos::from_millis(200);
/// The part of one CPU that sampling may take: a twentieth.
const CPU_PART: u64 = 20;
/// The shortest time between two requests for the server's statistics.
const STATISTICS_PERIOD: Nanos = Nanos::from_secs(1);
/// The most processes that are followed.
const MOST_PROCESSES: usize = 256;
/// With more connections than this, a sweep does not look up which process holds which: each is a
/// link to read.
const MOST_CONNECTIONS: usize = 2000;

/// How often a server is sampled, and how much of it.
#[derive(Clone, Copy, Debug)]
pub struct SamplingPlan {
    /// The time between two samples of connections and processes.
    pub period: Nanos,
    /// One in this many samples searches for new processes, and for which process holds which
    /// connection.
    pub search_every: usize,
    /// Whether titles, memory and the machine's counters are wanted too.
    pub has_details: bool,
}

/// One observation.
#[derive(Debug)]
pub enum Observation {
    /// The accept queue; `None` if the kernel did not tell.
    Queue {
        /// When.
        at: Nanos,
        /// What was seen of the listener.
        queue: Option<ServerSockets>,
    },
    /// Everything that is sampled once a period.
    Server(Box<ServerSample>),
    /// What the threads that serve requests do, if details are wanted.
    Threads {
        /// Each process that has such threads.
        pools: Vec<PoolLook>,
    },
    /// What the server says of itself.
    Statistics {
        /// When.
        at: Nanos,
        /// When, by the wall clock.
        wall: Nanos,
        /// CPU time that asking took so far.
        cpu: Nanos,
        /// What it said, or why it said nothing.
        stats: Result<PumaStats, String>,
    },
    /// A connection to a server on another machine was made.
    Connected {
        /// When.
        at: Nanos,
        /// How long that took, or why it failed.
        took: Result<Nanos, String>,
    },
    /// The server has ended.
    Ended {
        /// When that was seen.
        at: Nanos,
    },
}

/// Sockets, processes and machine at one instant.
#[derive(Debug, Default)]
pub struct ServerSample {
    /// When.
    pub at: Nanos,
    /// `None` if the kernel did not tell.
    pub sockets: Option<ServerSockets>,
    /// What the connections did since the sample before; `None` if that is not known.
    pub answered: Option<AnsweredSince>,
    /// The processes that live.
    pub processes: Vec<ProcessSample>,
    /// The machine's counters, if details are wanted.
    pub host: HostCounters,
    /// The CPUs that the server may use, if details are wanted.
    pub room: Option<CpuRoom>,
    /// The age of the server's first process.
    pub age: Option<Nanos>,
    /// What could not be read.
    pub missing: Vec<String>,
    /// CPU time that sampling took so far.
    pub cpu: Nanos,
}

/// Samples one server.
#[derive(Debug)]
pub struct Sampler {
    listener: ServerListener,
    processes: ServerProcesses,
    /// The listening sockets whose holders are followed; `None` if a process was named, which is
    /// then followed alone.
    listening: Option<BTreeSet<u64>>,
    plan: SamplingPlan,
    samples: usize,
    threads: ThreadPools,
    answered: Option<AnsweredRequests>,
    next_look: Nanos,
}

impl Sampler {
    /// A sampler of the server behind `listener` whose first processes are `roots`. If `listening`
    /// has the inodes of its sockets, every process that holds one is followed, too.
    pub fn new(
        listener: ServerListener,
        roots: &[u32],
        listening: Option<BTreeSet<u64>>,
        plan: SamplingPlan,
    ) -> Sampler {
        let port = listener.port().filter(|_| plan.has_details);
        Sampler {
            listener,
            processes: ServerProcesses::of(roots),
            listening,
            plan,
            samples: 0,
            threads: ThreadPools::default(),
            answered: port.and_then(AnsweredRequests::at),
            next_look: Nanos::ZERO,
        }
    }

    /// Where the sockets are read from: `sock_diag`, or a table in `/proc/net`.
    pub fn source(&self) -> &'static str {
        self.listener.source()
    }

    /// Samples until `over`, or until `tell` returns false. A server that does not listen any more
    /// has ended.
    pub fn run(
        mut self,
        clock: &impl Clock,
        over: &AtomicBool,
        mut tell: impl FnMut(Observation) -> bool,
    ) {
        let mut next_queue = clock.now();
        let mut next_sample = clock.now();
        while clock.sleep_until(next_queue.min(next_sample), over) {
            let before = this_threads_cpu();
            let at = clock.now();
            // The queue comes first because it is quick.
            let is_sample = next_queue > at;
            let seen = if is_sample {
                self.sample(at)
            } else {
                Observation::Queue { at, queue: self.listener.queue().ok() }
            };
            if !tell(seen) {
                return;
            }
            if let Some(requests) = self.answered.as_mut().filter(|_| !is_sample) {
                requests.note_closed();
            }
            if !is_sample && self.is_look_due(at) {
                let pools = self.threads.look();
                if !pools.is_empty() && !tell(Observation::Threads { pools }) {
                    return;
                }
            }
            let rest = this_threads_cpu().saturating_sub(before) * CPU_PART;
            let (next, period) = if is_sample {
                (&mut next_sample, self.plan.period)
            } else {
                (&mut next_queue, QUEUE_PERIOD)
            };
            // A late sample is not made up for, and after an expensive one the next waits.
            *next = (*next + period).max(clock.now()).max(at + rest);
        }
    }

    fn is_look_due(&mut self, at: Nanos) -> bool {
        let is_due = self.plan.has_details && at >= self.next_look;
        if is_due {
            self.next_look = at + LOOK_PERIOD;
        }
        is_due
    }

    fn sample(&mut self, at: Nanos) -> Observation {
        let mut missing = Vec::new();
        let sockets = if self.plan.has_details {
            self.listener.all_with_last_words()
        } else {
            self.listener.all()
        };
        let sockets = sockets
            .map_err(|error| missing.push(format!("the sockets, in some samples: {error}")))
            .ok();
        let listeners: Option<BTreeSet<u64>> = sockets.as_ref().map(|sockets| {
            let listeners = sockets.iter().filter(|socket| socket.is_listener);
            listeners.map(|socket| socket.inode).collect()
        });
        self.follow(listeners.as_ref());
        let is_listening = listeners.is_none_or(|listeners| !listeners.is_empty());
        let is_gone = !self.processes.is_alive() && (self.processes.is_known() || !is_listening);
        // The server ends with a process that the user named, else when nothing listens any more.
        if is_gone && (self.listening.is_none() || !is_listening) {
            return Observation::Ended { at };
        }
        let is_search = self.samples.is_multiple_of(self.plan.search_every);
        self.samples += 1;
        if is_search {
            self.processes.search(MOST_PROCESSES);
        }
        let processes = self.sample_processes(sockets.as_deref(), is_search, &mut missing);
        let has_details = self.plan.has_details;
        let answered = sockets
            .as_ref()
            .zip(self.answered.as_mut())
            .and_then(|(sockets, requests)| requests.since(sockets));
        let sockets = sockets.as_deref().map(ServerSockets::of);
        let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        if has_details {
            self.threads.search(&pids);
        }
        let (host, room) = if has_details {
            (HostCounters::now(), CpuRoom::of(&pids))
        } else {
            (HostCounters::default(), None)
        };
        let age = self.processes.age();
        let cpu = this_threads_cpu();
        Observation::Server(Box::new(ServerSample {
            at,
            sockets,
            answered,
            processes,
            host,
            room,
            age,
            missing,
            cpu,
        }))
    }

    /// Samples the processes; after a search also which of them holds which connection, unless
    /// there are too many.
    fn sample_processes(
        &mut self,
        sockets: Option<&[KernelSocket]>,
        is_search: bool,
        missing: &mut Vec<String>,
    ) -> Vec<ProcessSample> {
        let has_details = self.plan.has_details;
        let accepted = sockets
            .filter(|_| is_search)
            .map(AcceptedConnections::of)
            .filter(|accepted| has_details || accepted.all.len() <= MOST_CONNECTIONS);
        let processes = self.processes.sample(accepted.as_ref(), has_details);
        if self.processes.left_out() > 0 {
            missing.push(format!("{} more processes of the server", self.processes.left_out()));
        }
        if has_details
            && !processes.is_empty()
            && processes.iter().all(|process| process.connections.is_none())
        {
            missing.push(format!(
                "{}: run as the server's own user, as {}",
                rights::HIDDEN_OF_OTHER_USERS,
                rights::TO_SEE_OTHER_USERS
            ));
        }
        processes
    }

    /// Searches for the processes again if other sockets listen now, or those that did are gone.
    fn follow(&mut self, now: Option<&BTreeSet<u64>>) {
        let (Some(known), Some(now)) = (&mut self.listening, now) else { return };
        let is_lost = self.processes.is_known() && !self.processes.is_alive();
        if now.is_empty() || (now == known && !is_lost) {
            return;
        }
        known.clone_from(now);
        self.processes.re_root(&owners::holders(now).roots());
    }
}

/// Asks the server for its statistics once a period until `over`, or until `tell` returns false.
pub fn poll(
    control: &ControlServer,
    clock: &impl Clock,
    period: Nanos,
    over: &AtomicBool,
    mut tell: impl FnMut(Observation) -> bool,
) {
    let mut next = clock.now();
    while clock.sleep_until(next, over) {
        let stats = puma_stats::read_soon(control, over);
        // The end of the watch cut it off, so it says nothing about the server.
        if stats.is_err() && over.load(Ordering::Relaxed) {
            return;
        }
        let at = clock.now();
        let wall = clock.wall();
        if !tell(Observation::Statistics { at, wall, cpu: this_threads_cpu(), stats }) {
            return;
        }
        next = (next + period.max(STATISTICS_PERIOD)).max(clock.now());
    }
}

/// A bounded list: when it is full, every second item is dropped, and from then on every second new
/// one is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct ThinnedList<T, const MOST: usize> {
    items: Vec<T>,
    offered: usize,
    stride: usize,
}

impl<T, const MOST: usize> Default for ThinnedList<T, MOST> {
    fn default() -> Self {
        ThinnedList { items: Vec::new(), offered: 0, stride: 1 }
    }
}

impl<T, const MOST: usize> ThinnedList<T, MOST> {
    /// Adds an item, or leaves it out.
    pub fn push(&mut self, item: T) {
        if self.offered.is_multiple_of(self.stride) {
            self.items.push(item);
        }
        self.offered += 1;
        if self.items.len() >= MOST {
            let mut number = 0;
            self.items.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The items that were kept, evenly spaced.
    pub fn items(&self) -> &[T] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_bounded_and_still_spans_the_whole() {
        let mut list = ThinnedList::<usize, 24>::default();
        for n in 0..2000 {
            list.push(n);
            assert!(list.items().len() < 24 && list.items()[0] == 0);
        }
        let gaps: Vec<usize> = list.items().windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.len() >= 11 && gaps.iter().all(|gap| *gap == gaps[0]), "{gaps:?}");
    }
}
