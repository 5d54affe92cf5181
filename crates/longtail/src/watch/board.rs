//! All that was seen so far, as series, and the last of what is no series. Plain arithmetic; nothing is read here.

use std::collections::{BTreeMap, VecDeque};

use model::Nanos;
use probe::host::HostCounters;
use probe::processes::ProcessSample;
use probe::puma_stats::{PumaStats, WorkerStats};
use probe::sampler::{Observation, ServerSample};
use probe::server_cpu::CpuRoom;

use super::quantity::Quantity;
use super::series::QuantitySeries;
use super::waiting::WaitingHistory;

/// Of each worker's reports, so many of the last are kept.
const MOST_REPORTS: usize = 8;
/// Of processes that have ended, so many are kept: the last ones.
pub(super) const MOST_GONE: usize = 64;
/// Why statistics are not taken.
pub(super) const ANOTHER: &str = "the control server is another server's: none of its workers is among the processes";

/// Whose a series is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    /// The whole server's; of overflows and drops the whole network namespace's.
    Server,
    /// A process's.
    Process(u32),
}

/// A process that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchedProcess {
    pub(crate) title: String,
    pub(crate) parent: u32,
    pub(crate) first_seen: Nanos,
    pub(crate) last_seen: Nanos,
    /// Whether the last sample found it.
    pub(crate) is_there: bool,
}

/// All that was seen so far.
#[derive(Debug, Default)]
pub(crate) struct WatchBoard {
    pub(super) series: BTreeMap<(Whose, Quantity), QuantitySeries>,
    /// Every process that was seen, by its id.
    pub(super) processes: BTreeMap<u32, WatchedProcess>,
    /// The counters of each process at the last sample.
    counters: BTreeMap<(u32, Quantity), u64>,
    /// When the last whole sample was taken, and the machine's counters then.
    last_sample: Option<(Nanos, HostCounters)>,
    /// The longest accept queue that is allowed.
    pub(super) queue_limit: Option<u32>,
    /// What the server can process at once, as it says.
    pub(super) slots: Option<u32>,
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
    missing: Vec<String>,
    /// Looks at the queue, and at all the rest.
    pub(super) samples: (u64, u64),
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
    /// With what is known to be missing from the start.
    pub(crate) fn new(missing: Vec<String>, is_elsewhere: bool, is_asked: bool) -> WatchBoard {
        WatchBoard { missing, is_elsewhere, is_asked, ..WatchBoard::default() }
    }

    /// Whether a quantity is looked for: of a server here all but the time of a connect, of one elsewhere what is seen from here.
    pub(crate) fn looks_for(&self, quantity: Quantity) -> bool {
        match quantity {
            Quantity::Connect => self.is_elsewhere,
            Quantity::Busy | Quantity::Backlog => true,
            _ => !self.is_elsewhere,
        }
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

    /// The processes that are there.
    pub(crate) fn living(&self) -> impl Iterator<Item = u32> {
        self.processes.iter().filter(|(_, process)| process.is_there).map(|(pid, _)| *pid)
    }

    /// A process's part of the whole, by the means or by the last sample.
    pub(crate) fn share(&self, pid: u32, quantity: Quantity, by: fn(&QuantitySeries) -> Option<f64>) -> Option<f64> {
        let of = |pid: &u32| self.of(Whose::Process(*pid), quantity).and_then(by);
        let whole: f64 = self.processes.keys().filter_map(of).sum();
        of(&pid).filter(|_| whole > 0.0).map(|part| part / whole)
    }

    /// What could not be read, a line each.
    pub(crate) fn missing(&self) -> Vec<String> {
        let failure = self.statistics.iter().filter_map(|said| Some(format!("busy threads: {}", said.as_ref().err()?)));
        self.missing.iter().cloned().chain(failure).collect()
    }

    /// CPU time that our own sampling took.
    pub(crate) fn cpu(&self) -> Nanos {
        self.cpu + self.polling_cpu
    }

    /// That as a part of one CPU.
    pub(crate) fn cpu_part(&self) -> f64 {
        self.cpu().as_secs_f64() / self.now.as_secs_f64().max(1e-9)
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
                self.samples.0 += 1;
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
                self.samples.1 += 1;
                let took = took.map_err(|why| self.miss(format!("connect time, at some samples: the server {why}")));
                self.gauge(Whose::Server, Quantity::Connect, at, took.ok().map(Nanos::as_millis_f64));
                self.note_waiting(at);
            }
            Observation::Ended { at } => {
                self.now = at;
                self.ended = Some(at);
            }
        }
    }

    fn series(&mut self, whose: Whose, quantity: Quantity) -> &mut QuantitySeries {
        self.series.entry((whose, quantity)).or_default()
    }

    fn gauge(&mut self, whose: Whose, quantity: Quantity, at: Nanos, value: Option<f64>) {
        self.series(whose, quantity).take(at, value);
    }

    /// Notes how many wait now, once it is known whether the server says so itself.
    fn note_waiting(&mut self, at: Nanos) {
        if !self.is_asked || self.statistics.is_some() {
            let kernel = self.recent(Whose::Server, Quantity::AcceptQueue);
            self.waiting.take(at, kernel, self.last(Whose::Server, Quantity::Backlog));
        }
    }

    /// Adds to what is missing, once.
    fn miss(&mut self, line: String) {
        if !self.missing.contains(&line) {
            self.missing.push(line);
        }
    }

    fn take_sample(&mut self, sample: ServerSample) {
        let at = sample.at;
        self.now = at;
        self.samples.1 += 1;
        self.cpu = sample.cpu;
        for line in sample.missing {
            self.miss(line);
        }
        let before = self.last_sample.map(|(at, _)| at);
        let sockets = sample.sockets;
        let held: u32 = sample.processes.iter().filter_map(|process| process.connections).sum();
        let is_known = sample.processes.iter().any(|process| process.connections.is_some());
        let elsewhere = sockets.filter(|_| is_known).map(|sockets| sockets.accepted.saturating_sub(held));
        let gauges = [
            (Quantity::Open, sockets.map(|sockets| sockets.open)),
            (Quantity::Accepted, sockets.map(|sockets| sockets.accepted)),
            (Quantity::Unread, sockets.and_then(|sockets| sockets.unread)),
            (Quantity::Elsewhere, elsewhere),
        ];
        for (quantity, value) in gauges {
            self.gauge(Whose::Server, quantity, at, value.map(f64::from));
        }
        self.take_processes(at, &sample.processes);
        self.take_machine(at, sample.host);
        self.last_sample = Some((at, sample.host));
        if let (Some(earlier), Some(now), Some(from)) = (&self.room, &sample.room, before)
            && let Some(busy) = now.busy.zip(earlier.busy).map(|(now, earlier)| (now - earlier).max(0.0))
        {
            self.series(Whose::Server, Quantity::BusyCpus).count(from, at, busy);
        }
        (self.room, self.age) = (sample.room, sample.age);
        self.note_waiting(at);
    }

    fn take_processes(&mut self, at: Nanos, processes: &[ProcessSample]) {
        let is_gone = |pid: &u32| processes.iter().all(|process| process.pid != *pid);
        for pid in self.living().filter(is_gone).collect::<Vec<_>>() {
            self.gone(pid, at);
        }
        for quantity in [Quantity::Cpu, Quantity::RunQueueWait, Quantity::Voluntary, Quantity::Involuntary] {
            self.rate(at, quantity, processes);
        }
        for process in processes {
            let whose = Whose::Process(process.pid);
            self.gauge(whose, Quantity::Accepted, at, process.connections.map(f64::from));
            self.gauge(whose, Quantity::Memory, at, process.memory_bytes.map(|bytes| bytes as f64));
            self.gauge(whose, Quantity::Threads, at, process.used.map(|used| used.threads as f64));
            let ProcessSample { title, parent, .. } = process.clone();
            let first_seen = self.processes.get(&process.pid).map_or(at, |known| known.first_seen);
            let watched = WatchedProcess { title, parent, first_seen, last_seen: at, is_there: true };
            self.processes.insert(process.pid, watched);
        }
        self.forget();
        let threads: Option<u64> = processes.iter().map(|process| process.used.map(|used| used.threads)).sum();
        let threads = threads.filter(|_| !processes.is_empty());
        self.gauge(Whose::Server, Quantity::Threads, at, threads.map(|n| n as f64));
    }

    /// What the processes have used, whose sum is the server's. A process has a rate from its second sample on.
    fn rate(&mut self, at: Nanos, quantity: Quantity, processes: &[ProcessSample]) {
        let before = self.last_sample.map(|(at, _)| at);
        let (mut all, mut any) = (Some(0.0), false);
        for process in processes {
            let key = (process.pid, quantity);
            let Some((count, scale)) = counter(process, quantity) else {
                all = None;
                self.gauge(Whose::Process(process.pid), quantity, at, None);
                self.counters.remove(&key);
                continue;
            };
            // A later process of the same number begins anew.
            let counted = self.counters.insert(key, count).and_then(|earlier| count.checked_sub(earlier));
            if let (Some(from), Some(counted)) = (before, counted.map(|n| n as f64 * scale)) {
                self.series(Whose::Process(process.pid), quantity).count(from, at, counted);
                all = all.map(|all| all + counted);
                any = true;
            }
        }
        match (before, all) {
            (Some(from), Some(all)) if any => self.series(Whose::Server, quantity).count(from, at, all),
            (Some(_), _) => self.gauge(Whose::Server, quantity, at, None),
            (None, _) => {}
        }
    }

    /// A process that has ended: what it had stays, and nothing of it is there now.
    fn gone(&mut self, pid: u32, at: Nanos) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.is_there = false;
        }
        for quantity in Quantity::OF_PROCESS {
            self.counters.remove(&(pid, quantity));
            if let Some(series) = self.series.get_mut(&(Whose::Process(pid), quantity)) {
                series.take(at, None);
            }
        }
    }

    /// Those that ended first go, where there are many.
    fn forget(&mut self) {
        let ended = self.processes.iter().filter(|(_, process)| !process.is_there);
        let mut gone: Vec<(Nanos, u32)> = ended.map(|(pid, process)| (process.last_seen, *pid)).collect();
        gone.sort_unstable();
        for (_, pid) in &gone[..gone.len().saturating_sub(MOST_GONE)] {
            self.processes.remove(pid);
            self.series.retain(|(whose, _), _| *whose != Whose::Process(*pid));
            self.miss(format!("processes that ended, but for the last {MOST_GONE}"));
        }
    }

    fn take_machine(&mut self, at: Nanos, host: HostCounters) {
        let Some((from, before)) = self.last_sample else { return };
        let counted = [
            (Quantity::Overflows, host.listen_overflows_since(&before)),
            (Quantity::Drops, host.listen_drops_since(&before)),
            (Quantity::SynRetransmits, host.syn_retransmits_since(&before)),
        ];
        for (quantity, counted) in counted {
            match counted {
                Some(n) => self.series(Whose::Server, quantity).count(from, at, n as f64),
                None => self.gauge(Whose::Server, quantity, at, None),
            }
        }
    }

    /// Busy slots and backlogs, if they are of the server that is watched.
    fn take_statistics(&mut self, at: Nanos, wall: Nanos, stats: Result<PumaStats, String>) {
        let ours = stats.and_then(|stats| if self.are_ours(&stats) { Ok(stats) } else { Err(ANOTHER.to_owned()) });
        self.statistics = Some(ours.clone());
        let Ok(PumaStats { workers, .. }) = ours else {
            let is_said = |quantity: Quantity| matches!(quantity, Quantity::Busy | Quantity::Backlog);
            for (_, series) in self.series.iter_mut().filter(|((_, quantity), _)| is_said(*quantity)) {
                series.take(at, None);
            }
            return;
        };
        // Another machine's clock does not tell how old its words are by ours.
        self.asked_at = wall;
        self.first_asked_at.get_or_insert(wall);
        let ages: Vec<Option<Nanos>> = workers.iter().map(|worker| self.age_of_report(worker)).collect();
        let oldest = ages.iter().max().copied().flatten();
        let sum = |value: WorkerFigure| workers.iter().map(value).sum::<Option<u32>>().filter(|_| !workers.is_empty());
        self.slots = sum(|worker| worker.max_threads);
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
            [(Quantity::Busy, WorkerStats::busy_threads), (Quantity::Backlog, |worker| worker.backlog)];
        for (quantity, value) in figures {
            self.gauge(Whose::Server, quantity, at, sum(value).map(f64::from));
            self.series(Whose::Server, quantity).aged(oldest);
            for (worker, age) in workers.iter().zip(&ages) {
                // In single mode no process is named, and there is but one.
                let Some(pid) = worker.pid.or_else(|| self.only_process()) else { continue };
                self.gauge(Whose::Process(pid), quantity, at, value(worker).map(f64::from));
                self.series(Whose::Process(pid), quantity).aged(*age);
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
        there.next().filter(|_| there.next().is_none())
    }

    /// Whether one of these workers is among the processes; unknown ones are taken for ours.
    fn are_ours(&self, stats: &PumaStats) -> bool {
        let is_there = |worker: &WorkerStats| worker.pid.is_none_or(|pid| self.processes.contains_key(&pid));
        self.processes.is_empty() || stats.workers.is_empty() || stats.workers.iter().any(is_there)
    }
}

/// A process's counter and how much one of it is.
fn counter(process: &ProcessSample, quantity: Quantity) -> Option<(u64, f64)> {
    match quantity {
        Quantity::Cpu => process.used.map(|used| (used.cpu, 1e-9)),
        Quantity::RunQueueWait => process.used.map(|used| (used.run_queue, 1e-9)),
        Quantity::Voluntary => process.switches.map(|switches| (switches.voluntary, 1.0)),
        Quantity::Involuntary => process.switches.map(|switches| (switches.involuntary, 1.0)),
        _ => None,
    }
}
