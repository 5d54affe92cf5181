//! All that was seen so far, as series, and the last of what is no series. Plain arithmetic; nothing is read here.

use std::collections::{BTreeMap, VecDeque};

use model::Nanos;
use probe::host::HostCounters;
use probe::processes::{CpuShare, ProcessSample};
use probe::puma_stats::{PumaStats, WorkerStats};
use probe::sampler::{Observation, ServerSample};
use probe::server_cpu::CpuRoom;
use serde::Serialize;

use super::series::{Quantity, QuantitySeries};
use super::waiting::WaitingHistory;

/// Of each worker's reports, so many of the last are kept.
const MOST_REPORTS: usize = 8;
/// Why statistics are not taken.
pub(super) const ANOTHER: &str = "the control server is another server's: none of its workers is among the processes";

/// Whose a series is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub(crate) enum Whose {
    /// The whole server's; of overflows the whole network namespace's.
    Server,
    /// A process's.
    Process(u32),
}

/// A process of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedProcess {
    pub(crate) title: String,
    /// What it had used at the last sample.
    used: Option<CpuShare>,
    /// Whether the last sample found it. One that has ended is known as long as Puma names it.
    pub(crate) is_there: bool,
}

/// All that was seen so far.
#[derive(Debug, Default)]
pub(crate) struct WatchBoard {
    pub(super) series: BTreeMap<(Whose, Quantity), QuantitySeries>,
    pub(super) processes: BTreeMap<u32, WatchedProcess>,
    /// When the last whole sample was taken, and the machine's counters then.
    last_sample: Option<(Nanos, HostCounters)>,
    /// The longest accept queue that is allowed.
    pub(super) queue_limit: Option<u32>,
    /// What the server said of itself when it was asked last, and why nothing where that failed.
    pub(super) statistics: Option<Result<PumaStats, String>>,
    /// When it was asked last, by the wall clock.
    asked_at: Nanos,
    /// When it answered first.
    pub(super) first_asked_at: Option<Nanos>,
    /// The last reports of each worker, which come less often than the server is asked; in single mode of process 0.
    pub(super) reports: BTreeMap<u32, VecDeque<WorkerReport>>,
    /// How many wait, over time.
    pub(super) waiting: WaitingHistory,
    /// The CPUs that the server may use.
    pub(super) room: Option<CpuRoom>,
    /// How long the server has lived.
    pub(super) age: Option<Nanos>,
    /// What could not be read, a line each.
    pub(super) not_visible: Vec<String>,
    cpu: Nanos,
    polling_cpu: Nanos,
    /// When the last observation was made.
    pub(crate) now: Nanos,
    /// When the server was found to have ended.
    pub(crate) ended: Option<Nanos>,
    /// Whether the server is on another machine, whose clock is another too.
    pub(super) is_elsewhere: bool,
    /// Whether it is asked for its statistics.
    pub(super) is_asked: bool,
}

/// What a worker reported, and when by the wall clock of its machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkerReport {
    pub(crate) at: Nanos,
    pub(crate) worker: WorkerStats,
}

/// What a worker says of itself.
type WorkerFigure = fn(&WorkerStats) -> Option<u32>;

impl WatchBoard {
    /// With what is known from the start not to be visible.
    pub(crate) fn new(not_visible: Vec<String>, is_elsewhere: bool, is_asked: bool) -> WatchBoard {
        WatchBoard { not_visible, is_elsewhere, is_asked, ..WatchBoard::default() }
    }

    /// A series, where anything was ever looked for.
    pub(crate) fn of(&self, whose: Whose, quantity: Quantity) -> Option<&QuantitySeries> {
        self.series.get(&(whose, quantity))
    }

    /// What the last sample found.
    pub(crate) fn last(&self, whose: Whose, quantity: Quantity) -> Option<f64> {
        self.of(whose, quantity)?.last
    }

    /// The mean of the last seconds.
    pub(crate) fn recent(&self, whose: Whose, quantity: Quantity) -> Option<f64> {
        self.of(whose, quantity)?.recent()
    }

    /// The processes that are there, with what they call themselves.
    pub(crate) fn living(&self) -> impl Iterator<Item = (u32, &str)> {
        let there = self.processes.iter().filter(|(_, process)| process.is_there);
        there.map(|(pid, process)| (*pid, process.title.as_str()))
    }

    /// CPU time that our own sampling took.
    pub(crate) fn sampling_cpu(&self) -> Nanos {
        self.cpu + self.polling_cpu
    }

    /// It is over now.
    pub(crate) fn close(&mut self, at: Nanos) {
        self.now = self.now.max(at);
    }

    /// Takes in one observation.
    pub(crate) fn take(&mut self, observation: Observation) {
        match observation {
            Observation::Queue { at, queue } => {
                self.now = at;
                let length = queue.map(|queue| f64::from(queue.accept_queue));
                self.queue_limit = queue.and_then(|queue| queue.limit).or(self.queue_limit);
                self.gauge(Whose::Server, Quantity::AcceptQueue, at, length);
            }
            Observation::Server(sample) => self.take_sample(*sample),
            Observation::Statistics { at, wall, cpu, stats } => {
                self.polling_cpu = cpu;
                self.take_statistics(at, wall, stats);
            }
            Observation::Connected { at, took } => {
                self.now = at;
                let took = took.map_err(|why| self.miss(format!("connect time, at some samples: the server {why}")));
                self.gauge(Whose::Server, Quantity::ConnectTime, at, took.ok().map(Nanos::as_millis_f64));
                self.note_waiting(at);
            }
            Observation::Ended { at } => {
                self.now = at;
                self.ended = Some(at);
            }
        }
    }

    fn gauge(&mut self, whose: Whose, quantity: Quantity, at: Nanos, value: Option<f64>) {
        self.series.entry((whose, quantity)).or_default().take(at, value);
    }

    /// What was counted since the last sample, if there was one.
    fn rate(&mut self, whose: Whose, quantity: Quantity, at: Nanos, counted: Option<f64>) {
        if let Some((from, _)) = self.last_sample {
            self.series.entry((whose, quantity)).or_default().count(from, at, counted);
        }
    }

    /// Notes how many wait now, once it is known whether the server says so itself.
    fn note_waiting(&mut self, at: Nanos) {
        if !self.is_asked || self.statistics.is_some() {
            let kernel = self.recent(Whose::Server, Quantity::AcceptQueue);
            self.waiting.take(at, kernel, self.last(Whose::Server, Quantity::Backlog));
        }
    }

    /// Adds to what is not visible, once.
    fn miss(&mut self, line: String) {
        if !self.not_visible.contains(&line) {
            self.not_visible.push(line);
        }
    }

    fn take_sample(&mut self, sample: ServerSample) {
        let ServerSample { at, sockets, processes, host, room, age, missing, cpu } = sample;
        (self.now, self.cpu, self.age) = (at, cpu, age);
        for line in missing {
            self.miss(line);
        }
        self.gauge(Whose::Server, Quantity::Connections, at, sockets.map(|sockets| f64::from(sockets.open)));
        let unread = sockets.and_then(|sockets| sockets.unread);
        self.gauge(Whose::Server, Quantity::UnreadConnections, at, unread.map(f64::from));
        self.take_processes(at, processes);
        let overflows = self.last_sample.and_then(|(_, before)| host.listen_overflows_since(&before));
        self.rate(Whose::Server, Quantity::ListenOverflows, at, overflows.map(|n| n as f64));
        let busy = |room: &Option<CpuRoom>| room.as_ref().and_then(|room| room.busy);
        if let Some((now, before)) = busy(&room).zip(busy(&self.room)) {
            self.rate(Whose::Server, Quantity::BusyCpus, at, Some((now - before).max(0.0)));
        }
        self.room = room;
        self.last_sample = Some((at, host));
        self.note_waiting(at);
    }

    /// What each has, and what they have used, whose sum is the server's. A process has a rate from its second sample on.
    fn take_processes(&mut self, at: Nanos, samples: Vec<ProcessSample>) {
        let known = std::mem::take(&mut self.processes);
        let mut whole: Option<[f64; 2]> = None;
        let is_read = samples.iter().all(|sample| sample.used.is_some());
        for ProcessSample { pid, title, used, memory_bytes, connections, .. } in samples {
            let whose = Whose::Process(pid);
            self.gauge(whose, Quantity::Connections, at, connections.map(f64::from));
            self.gauge(whose, Quantity::ResidentMemory, at, memory_bytes.map(|bytes| bytes as f64));
            let before = known.get(&pid).and_then(|process| process.used);
            // A later process of the same number begins anew.
            let ran = used.zip(before).and_then(|(now, before)| {
                let ran = [now.cpu.checked_sub(before.cpu)?, now.run_queue.checked_sub(before.run_queue)?];
                Some(ran.map(|ns| ns as f64 / 1e9))
            });
            if ran.is_some() || used.is_none() {
                self.rate(whose, Quantity::Cpu, at, ran.map(|[cpu, _]| cpu));
                self.rate(whose, Quantity::RunQueueWait, at, ran.map(|[_, wait]| wait));
            }
            if let Some([cpu, wait]) = ran {
                let [all_cpu, all_wait] = whole.unwrap_or_default();
                whole = Some([all_cpu + cpu, all_wait + wait]);
            }
            self.processes.insert(pid, WatchedProcess { title, used, is_there: true });
        }
        let whole = whole.filter(|_| is_read);
        self.rate(Whose::Server, Quantity::Cpu, at, whole.map(|[cpu, _]| cpu));
        self.rate(Whose::Server, Quantity::RunQueueWait, at, whole.map(|[_, wait]| wait));
        for (pid, process) in known {
            if !self.processes.contains_key(&pid) {
                self.series.retain(|(whose, _), _| *whose != Whose::Process(pid));
                if self.reports.contains_key(&pid) {
                    self.processes.insert(pid, WatchedProcess { used: None, is_there: false, ..process });
                }
            }
        }
    }

    /// Busy slots and backlogs, if they are of the server that is watched.
    fn take_statistics(&mut self, at: Nanos, wall: Nanos, stats: Result<PumaStats, String>) {
        let ours = stats.and_then(|stats| if self.are_ours(&stats) { Ok(stats) } else { Err(ANOTHER.to_owned()) });
        self.statistics = Some(ours.clone());
        let Ok(PumaStats { workers, .. }) = ours else {
            let is_said = |quantity: Quantity| matches!(quantity, Quantity::BusyThreads | Quantity::Backlog);
            for (_, series) in self.series.iter_mut().filter(|((_, quantity), _)| is_said(*quantity)) {
                series.take(at, None);
            }
            return;
        };
        // Another machine's clock does not tell how old its words are by ours.
        self.asked_at = wall;
        self.first_asked_at.get_or_insert(wall);
        let sum = |value: WorkerFigure| workers.iter().map(value).sum::<Option<u32>>().filter(|_| !workers.is_empty());
        self.reports.retain(|pid, _| workers.iter().any(|worker| worker.pid.unwrap_or(0) == *pid));
        for worker in &workers {
            let all = self.reports.entry(worker.pid.unwrap_or(0)).or_default();
            let at = worker.reported_at().unwrap_or(wall);
            if worker.ready && all.back().is_none_or(|last: &WorkerReport| last.at != at) {
                all.push_back(WorkerReport { at, worker: worker.clone() });
                all.drain(..all.len().saturating_sub(MOST_REPORTS));
            }
        }
        let figures: [(Quantity, WorkerFigure); 2] =
            [(Quantity::BusyThreads, WorkerStats::busy_threads), (Quantity::Backlog, |worker| worker.backlog)];
        for (quantity, value) in figures {
            self.gauge(Whose::Server, quantity, at, sum(value).map(f64::from));
            for worker in &workers {
                // In single mode no process is named, and there is but one.
                let Some(pid) = worker.pid.or_else(|| self.only_process()) else { continue };
                if self.processes.get(&pid).is_none_or(|process| process.is_there) {
                    self.gauge(Whose::Process(pid), quantity, at, value(worker).map(f64::from));
                }
            }
        }
    }

    /// How old a worker's figures were when the server was asked last. Another machine's clock does not tell by ours.
    pub(super) fn age_of_report(&self, worker: &WorkerStats) -> Option<Nanos> {
        worker.age(self.asked_at).filter(|_| !self.is_elsewhere)
    }

    /// The process that is there, where it is the only one.
    pub(super) fn only_process(&self) -> Option<u32> {
        let mut there = self.living();
        there.next().filter(|_| there.next().is_none()).map(|(pid, _)| pid)
    }

    /// Whether one of these workers is among the processes; unknown ones are taken for ours.
    fn are_ours(&self, stats: &PumaStats) -> bool {
        let is_there = |worker: &WorkerStats| worker.pid.is_none_or(|pid| self.processes.contains_key(&pid));
        self.processes.is_empty() || stats.workers.is_empty() || stats.workers.iter().any(is_there)
    }
}
