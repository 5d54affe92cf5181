//! Collects what a watch has seen, as series and last readings, and makes its evidence. Plain
//! arithmetic; nothing is read here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use judge::signals::{CPU_PRESSURE, SignalKind};
use judge::watch::{
    Backend, Diagnosis, EarlierWhy, NumberAtLooks, SharedConnections, StartRate, WaitsSeen,
    WatchEvidence, WatchedWorker,
};
use model::Nanos;
use probe::host::HostCounters;
use probe::processes::{CpuShare, ProcessSample};
use probe::puma_stats::{PumaStats, WorkerStats};
use probe::rights;
use probe::sampler::{Observation, ServerSample};
use probe::server_cpu::CpuRoom;
use probe::threads::{PoolLook, ThreadWaits};

use crate::WatchTarget;
use crate::series::{Quantity, QuantitySeries, WaitingHistory};
use crate::timed_looks::{TimedLooks, usual};

/// How many of each worker's last reports are kept.
const MOST_REPORTS: usize = 8;
/// How many of the last looks at each worker's threads are kept: those of five seconds.
const MOST_LOOKS: usize = 25;
/// A load is over if at this many samples in a row no request was in flight and none waited. One
/// alone may fall between two requests.
const ENOUGH_IDLE: u32 = 2;
/// The fewest seconds over which a rate is computed: a worker reports every five seconds, with a
/// time stamp in whole seconds.
const LEAST_RATE_SPAN: f64 = 3.0;
/// A rate is rough if its time stamps may be wrong by more than this part of its span.
const ROUGH: f64 = 0.1;
/// The time after which what sampling takes is told.
const SETTLED: Nanos = Nanos::from_secs(2);
/// Why there are no statistics: before the first answer, and where the answer is not taken.
const NOT_YET: &str = "no answer yet";
const ANOTHER: &str =
    "the control server is another server's: none of its workers is among the processes";

/// What a series belongs to: a process, or the whole server (`None`). Overflows are those of the
/// whole network namespace.
type Whose = Option<u32>;
const SERVER: Whose = None;

/// A process of the server.
#[derive(Debug)]
struct WatchedProcess {
    title: String,
    /// What it had used at the last sample.
    used: Option<CpuShare>,
    /// Whether the last sample found it. One that has ended is known as long as Puma names it.
    is_there: bool,
}

/// What a worker reported, and when by the wall clock of its machine.
#[derive(Debug)]
struct WorkerReport {
    at: Nanos,
    worker: WorkerStats,
}

/// In which state the threads of a process that serve requests were seen, at all looks together.
#[derive(Debug, Default)]
pub(crate) struct ThreadStates {
    pub(crate) looks: u32,
    /// Threads times looks, in the order of `THREAD_STATES`.
    pub(crate) seen: [u32; THREAD_STATES.len()],
}

/// The states, as columns.
pub(crate) const THREAD_STATES: [&str; 6] =
    ["lock or no request", "file lock", "time limit", "socket, pipe, command", "CPU", "other"];

impl ThreadStates {
    fn take(&mut self, waits: ThreadWaits) {
        let ThreadWaits { lock, file_lock, timed, socket, runnable, other } = waits;
        self.looks += 1;
        for (sum, now) in
            self.seen.iter_mut().zip([lock, file_lock, timed, socket, runnable, other])
        {
            *sum += now;
        }
    }
}

/// What a worker says of itself.
type WorkerFigure = fn(&WorkerStats) -> Option<u32>;

/// All that was seen so far.
#[derive(Debug, Default)]
pub struct WatchBoard {
    /// The part of the evidence that is not computed from the other fields.
    pub(crate) seen: WatchEvidence,
    pub(crate) series: BTreeMap<(Whose, Quantity), QuantitySeries>,
    processes: BTreeMap<u32, WatchedProcess>,
    /// When the last whole sample was taken, and the machine's counters then.
    last_sample: Option<(Nanos, HostCounters)>,
    /// What the server said of itself when it was asked last; absent where that failed.
    said: Option<PumaStats>,
    /// What it said before, where it does not answer any more.
    said_before: Option<PumaStats>,
    /// When it was asked last, by the wall clock and by the clock of the watch, and when it answered
    /// first.
    asked_at: Nanos,
    asked_after: Nanos,
    first_asked_at: Option<Nanos>,
    /// The last reports of each worker, which come less often than the server is asked; in single
    /// mode of process 0.
    reports: BTreeMap<u32, VecDeque<WorkerReport>>,
    /// The last looks at each process's threads that serve requests.
    looks: BTreeMap<u32, VecDeque<PoolLook>>,
    /// What they did at all looks of the watch.
    pub(crate) thread_states: BTreeMap<u32, ThreadStates>,
    /// How their waits with a time limit ended, for more looks.
    timed_looks: BTreeMap<u32, TimedLooks>,
    /// At how many samples in a row no request was seen, and whether there is a load.
    idle_samples: u32,
    has_load: bool,
    /// When a load last began or ended while it was watched.
    load_changed_at: Option<Nanos>,
    /// How many wait, over time.
    waiting: WaitingHistory,
    /// What was concluded at the last sample, and what that and the one before agreed on: both without
    /// figures.
    concluded: Option<String>,
    agreed: Option<String>,
    /// When it was last known why they wait, and the diagnosis then.
    explained: Option<(Nanos, Diagnosis)>,
    /// The CPUs that the server may use.
    room: Option<CpuRoom>,
    /// CPU time of the thread that samples.
    sampler_cpu: Nanos,
    /// CPU time of the thread that asks for statistics.
    poller_cpu: Nanos,
}

impl WatchBoard {
    /// An empty board for this server. `is_asked`: whether its control server is asked for
    /// statistics.
    pub fn of(target: &WatchTarget, is_asked: bool) -> WatchBoard {
        let no_statistics = if is_asked { NOT_YET } else { "" };
        let seen = WatchEvidence {
            command: command_for_root(),
            place: target.typed(),
            is_elsewhere: target.elsewhere.is_some(),
            output_is_lost: target.output_is_lost(),
            may_see_all: rights::sees_other_users(),
            no_statistics: Some(no_statistics.to_owned()),
            not_visible: target.not_visible.clone(),
            ..WatchEvidence::default()
        };
        WatchBoard { seen, ..WatchBoard::default() }
    }

    /// Whether no control server is known that could be asked for statistics.
    pub(crate) fn is_unasked(&self) -> bool {
        self.seen.no_statistics.as_deref() == Some("")
    }

    /// Whether the server has ended.
    pub fn has_ended(&self) -> bool {
        self.seen.ended.is_some()
    }

    /// What the last sample found.
    pub(crate) fn last(&self, whose: Whose, quantity: Quantity) -> Option<f64> {
        self.series.get(&(whose, quantity))?.last
    }

    /// The mean of the last seconds.
    fn recent(&self, whose: Whose, quantity: Quantity) -> Option<f64> {
        self.series.get(&(whose, quantity))?.recent()
    }

    /// A signal of the whole server now: for a gauge what the last sample found, for a counter its
    /// rate per second over the last seconds.
    pub(crate) fn signal(&self, kind: &SignalKind) -> Option<f64> {
        match kind.curve {
            "busy_threads" => self.last(SERVER, Quantity::BusyThreads),
            "pool_capacity" => self.last(SERVER, Quantity::PoolCapacity),
            "backlog" => self.last(SERVER, Quantity::Backlog),
            "backlog_max" => self.last(SERVER, Quantity::BacklogMax),
            "accept_queue" => self.last(SERVER, Quantity::AcceptQueue),
            "cpu" => self.recent(SERVER, Quantity::Cpu),
            "run_queue_wait" => self.recent(SERVER, Quantity::RunQueueWait),
            CPU_PRESSURE => self.recent(SERVER, Quantity::CpuPressure),
            // The app's queue time cannot be seen from outside.
            _ => None,
        }
    }

    /// The processes that are there, with what they call themselves.
    pub(crate) fn living(&self) -> impl Iterator<Item = (u32, &str)> {
        let there = self.processes.iter().filter(|(_, process)| process.is_there);
        there.map(|(pid, process)| (*pid, process.title.as_str()))
    }

    /// CPU time that our own sampling took.
    pub(crate) fn sampling_cpu(&self) -> Nanos {
        self.sampler_cpu + self.poller_cpu
    }

    /// CPUs that our own sampling takes.
    pub(crate) fn sampling_cpus(&self) -> f64 {
        self.sampling_cpu().as_secs_f64() / self.seen.watched.as_secs_f64().max(1e-9)
    }

    /// Notes that the watch is over.
    pub fn close(&mut self, at: Nanos) {
        self.seen.watched = self.seen.watched.max(at);
    }

    /// Takes in one observation.
    pub fn take(&mut self, observation: Observation) {
        match observation {
            Observation::Queue { at, queue } => {
                self.seen.watched = at;
                self.seen.queue_limit =
                    queue.and_then(|queue| queue.limit).or(self.seen.queue_limit);
                self.gauge(
                    SERVER,
                    Quantity::AcceptQueue,
                    at,
                    queue.map(|queue| f64::from(queue.accept_queue)),
                );
            }
            Observation::Server(sample) => {
                self.take_sample(*sample);
                self.note_conclusion();
                self.note_why();
            }
            Observation::Threads { pools } => self.take_looks(&pools),
            Observation::Statistics { at, wall, cpu, stats } => {
                self.poller_cpu = cpu;
                self.take_statistics(at, wall, stats);
            }
            Observation::Connected { at, took } => {
                self.seen.watched = at;
                let took = took.map_err(|why| {
                    self.miss(format!("connect time, at some samples: the server {why}"));
                });
                self.gauge(SERVER, Quantity::ConnectTime, at, took.ok().map(Nanos::as_millis_f64));
                self.note_waiting(at);
                self.note_conclusion();
            }
            Observation::Ended { at } => {
                self.seen.watched = at;
                self.seen.ended = Some(at);
                // It was asked once more while it ended.
                if self.said.is_none() && self.said_before.is_some() {
                    self.said = self.said_before.take();
                    self.seen.no_statistics = None;
                }
            }
        }
    }

    /// Keeps what is concluded now, to see whether the next look agrees.
    fn note_conclusion(&mut self) {
        let now = Diagnosis::of(&self.figures()).why.as_deref().map(conclusion);
        self.agreed = now.clone().filter(|now| self.concluded.as_ref() == Some(now));
        self.concluded = now;
    }

    /// Keeps the diagnosis if it says why requests wait.
    fn note_why(&mut self) {
        let seen = self.evidence();
        if seen.waiting() == 0 {
            return;
        }
        let found = Diagnosis::of(&seen);
        if found.limit.is_some() || found.guess.is_some() {
            self.explained = Some((seen.watched, found));
        }
    }

    /// Why requests waited, if that was known before the last sample.
    fn earlier_why(&self) -> Option<EarlierWhy> {
        let (at, found) = self.explained.as_ref()?;
        let ago = self.seen.watched.saturating_sub(*at);
        if ago == Nanos::ZERO {
            return None;
        }
        Some(EarlierWhy { ago, why: found.why.clone()?, tries: found.tries.clone() })
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

    /// Seconds of CPU, and of waiting for one.
    fn run_rates(&mut self, whose: Whose, at: Nanos, ran: Option<[f64; 2]>) {
        self.rate(whose, Quantity::Cpu, at, ran.map(|[cpu, _]| cpu));
        self.rate(whose, Quantity::RunQueueWait, at, ran.map(|[_, wait]| wait));
    }

    fn take_looks(&mut self, pools: &[PoolLook]) {
        let is_there = |pid: &u32| pools.iter().any(|pool| pool.pid == *pid);
        self.looks.retain(|pid, _| is_there(pid));
        self.thread_states.retain(|pid, _| is_there(pid));
        self.timed_looks.retain(|pid, _| is_there(pid));
        for pool in pools {
            if let Some(waits) = pool.waits {
                self.thread_states.entry(pool.pid).or_default().take(waits);
            }
            let looks = self.looks.entry(pool.pid).or_default();
            looks.push_back(pool.clone());
            looks.drain(..looks.len().saturating_sub(MOST_LOOKS));
            self.timed_looks.entry(pool.pid).or_default().take(pool);
        }
    }

    /// Threads of a process that serve requests.
    fn pool_threads(&self, pid: u32) -> Option<u32> {
        Some(self.looks.get(&pid)?.back()?.threads)
    }

    /// Threads of a process that certainly have no request, by what the kernel tells of its
    /// connections.
    fn free_by_kernel(&self, pid: u32) -> u32 {
        let of_server = |quantity| self.recent(SERVER, quantity);
        let unclear = of_server(Quantity::RequestsOutAtMost)
            .zip(of_server(Quantity::RequestsOut))
            .map(|(most, least)| most - least);
        let out = self.recent(Some(pid), Quantity::RequestsOut).zip(unclear);
        let threads = self.pool_threads(pid).unwrap_or(0);
        out.map_or(0, |(out, unclear)| threads.saturating_sub((out + unclear).round() as u32))
    }

    /// What a process's threads that serve requests did at the last looks. A free thread waits for
    /// a request just as others wait for a lock, so `free` of them are not counted as waiting for a
    /// lock.
    fn waits_seen(&self, pid: u32, free: u32) -> Option<WaitsSeen> {
        let all = self.looks.get(&pid)?;
        let looks: Vec<ThreadWaits> = all.iter().map(|look| look.waits).collect::<Option<_>>()?;
        let ended = self.timed_looks.get(&pid).map(TimedLooks::ended).unwrap_or_default();
        let count = looks.len() as f64;
        let locked = |look: &ThreadWaits| look.lock.saturating_sub(free);
        let mean = |part: &dyn Fn(&ThreadWaits) -> u32| {
            f64::from(looks.iter().map(part).sum::<u32>()) / count
        };
        let is_locked = |look: &&ThreadWaits| locked(look) + look.file_lock > 0;
        (!looks.is_empty()).then(|| WaitsSeen {
            lock: mean(&locked),
            file_lock: mean(&|look| look.file_lock),
            timed: mean(&|look| look.timed),
            socket: mean(&|look| look.socket),
            runnable: mean(&|look| look.runnable),
            other: mean(&|look| look.other),
            locked_share: looks.iter().filter(is_locked).count() as f64 / count,
            looks: looks.len(),
            untimed_alike: usual(looks.iter().map(ThreadWaits::untimed)).share,
            ended,
        })
    }

    /// Connections for which threads of several processes wait, by the place to which they lead.
    fn shared(&self) -> Vec<SharedConnections> {
        let mut holders: BTreeMap<(&str, u64), BTreeSet<u32>> = BTreeMap::new();
        for (pid, looks) in &self.looks {
            for one in looks.iter().flat_map(|look| &look.backends) {
                holders.entry((&one.place, one.inode)).or_default().insert(*pid);
            }
        }
        let mut shared: BTreeMap<&str, (u32, BTreeSet<u32>)> = BTreeMap::new();
        for ((place, _), pids) in holders.into_iter().filter(|(_, pids)| pids.len() > 1) {
            let (connections, workers) = shared.entry(place).or_default();
            *connections += 1;
            workers.extend(pids);
        }
        let in_words =
            |(place, (connections, workers)): (&str, (u32, BTreeSet<u32>))| SharedConnections {
                place: place.to_owned(),
                connections,
                workers: workers.len() as u32,
            };
        shared.into_iter().map(in_words).collect()
    }

    /// The files for whose lock threads wait, by the last looks.
    fn locked_files(&self) -> Vec<String> {
        let looks = self.looks.values().flatten();
        let files: BTreeSet<&String> = looks.flat_map(|look| &look.locked_files).collect();
        files.into_iter().cloned().collect()
    }

    /// How many threads of each process wait for this place at most looks; `None` if the processes
    /// differ, or if it is more at some look.
    fn in_each_worker(&self, place: &str) -> Option<NumberAtLooks> {
        let count =
            |look: &PoolLook| look.backends.iter().filter(|one| one.place == place).count() as u32;
        let of_process = |looks: &VecDeque<PoolLook>| {
            let most = looks.iter().map(count).max();
            Some(usual(looks.iter().map(count))).filter(|usual| Some(usual.number) == most)
        };
        let all: Vec<NumberAtLooks> = self.looks.values().map(of_process).collect::<Option<_>>()?;
        let least = *all.iter().min_by(|a, b| a.share.total_cmp(&b.share))?;
        let looks = all.iter().map(|one| one.looks).min().unwrap_or(0);
        let is_same = all.iter().all(|one| one.number == least.number);
        is_same.then_some(NumberAtLooks { looks, ..least })
    }

    /// Where the sockets lead that threads wait for, and the commands that they wait for, by the last
    /// looks.
    fn backends(&self) -> Vec<Backend> {
        let mut threads: BTreeMap<(&str, bool), f64> = BTreeMap::new();
        for looks in self.looks.values() {
            let places =
                looks.iter().flat_map(|look| &look.backends).map(|one| (&one.place, false));
            let commands = looks.iter().flat_map(|look| &look.commands).map(|name| (name, true));
            for (place, is_command) in places.chain(commands) {
                *threads.entry((place, is_command)).or_default() += 1.0 / looks.len() as f64;
            }
        }
        let backend = |((place, is_command), threads): ((&str, bool), f64)| Backend {
            place: place.to_owned(),
            is_command,
            threads,
            in_each_worker: self.in_each_worker(place).filter(|_| !is_command),
        };
        let mut all: Vec<Backend> = threads.into_iter().map(backend).collect();
        all.sort_by(|a, b| b.threads.total_cmp(&a.threads));
        all
    }

    /// Requests that wait inside the server: by its own statistics, else as many as are out beyond
    /// its number of threads.
    pub(crate) fn inside(&self) -> Option<f64> {
        let beyond = |pid: u32| {
            let threads = f64::from(self.pool_threads(pid)?);
            Some((self.last(Some(pid), Quantity::RequestsOut)? - threads).max(0.0))
        };
        let pools: Vec<u32> =
            self.living().map(|(pid, _)| pid).filter(|pid| self.looks.contains_key(pid)).collect();
        // Which worker has which request is not everybody's to see.
        let beyond_all = || {
            let threads = pools.iter().map(|pid| self.pool_threads(*pid)).sum::<Option<u32>>()?;
            Some((self.last(SERVER, Quantity::RequestsOut)? - f64::from(threads)).max(0.0))
        };
        let by_kernel = || {
            let each = pools.iter().map(|pid| beyond(*pid)).sum::<Option<f64>>();
            each.or_else(beyond_all).filter(|_| !pools.is_empty())
        };
        self.last(SERVER, Quantity::Backlog).or_else(by_kernel)
    }

    /// Notes how many wait now, once it is known whether the server says so itself.
    fn note_waiting(&mut self, at: Nanos) {
        if self.seen.no_statistics.as_deref() != Some(NOT_YET) {
            // A mean over more time than passes between two of these would turn a jump into a slope.
            let queue = self.series.get(&(SERVER, Quantity::AcceptQueue));
            let kernel = queue.and_then(QuantitySeries::latest);
            self.waiting.is_reported = self.last(SERVER, Quantity::Backlog).is_some();
            self.waiting.take(at, kernel, self.inside());
        }
    }

    /// Begins the means of the last seconds anew where a load has begun or ended, so that nothing of
    /// the time before is mixed into what is so now.
    fn note_load(&mut self, at: Nanos) {
        let has_none = |quantity| self.last(SERVER, quantity) == Some(0.0);
        let is_idle = has_none(Quantity::RequestsOutAtMost) && has_none(Quantity::AcceptQueue);
        let is_unused = has_none(Quantity::Connections);
        self.idle_samples = if is_idle { self.idle_samples + 1 } else { 0 };
        let has_load = !is_unused && self.idle_samples < ENOUGH_IDLE;
        if has_load != self.has_load {
            // What the first sample finds may have begun long before.
            self.load_changed_at = self.last_sample.map(|_| at);
            self.series.values_mut().for_each(QuantitySeries::forget_recent);
            for looks in self.looks.values_mut() {
                looks.drain(..looks.len().saturating_sub(1));
            }
            self.timed_looks.clear();
        }
        self.has_load = has_load;
    }

    /// Adds to what is not visible, once for each thing; its name ends with a colon.
    fn miss(&mut self, line: String) {
        let is_same = |known: &String| known.split(':').next() == line.split(':').next();
        if !self.seen.not_visible.iter().any(is_same) {
            self.seen.not_visible.push(line);
        }
    }

    fn take_sample(&mut self, sample: ServerSample) {
        let ServerSample { at, sockets, answered, processes, host, room, age, missing, cpu } =
            sample;
        self.seen.watched = at;
        self.seen.age = age;
        self.sampler_cpu = cpu;
        for line in missing {
            self.miss(line);
        }
        self.gauge(
            SERVER,
            Quantity::Connections,
            at,
            sockets.map(|sockets| f64::from(sockets.open)),
        );
        let unread = sockets.and_then(|sockets| sockets.unread);
        self.gauge(SERVER, Quantity::UnreadConnections, at, unread.map(f64::from));
        // Without a connection there is no request.
        let out = sockets
            .and_then(|sockets| sockets.out.or_else(|| (sockets.accepted == 0).then_some(0)));
        let maybe = sockets.map_or(0, |sockets| sockets.maybe_out);
        self.gauge(SERVER, Quantity::RequestsOut, at, out.map(f64::from));
        self.gauge(SERVER, Quantity::RequestsOutAtMost, at, out.map(|out| f64::from(out + maybe)));
        let requests = answered.map(|answered| f64::from(answered.requests));
        self.rate(SERVER, Quantity::Answered, at, requests);
        let closed = answered.map(|answered| f64::from(answered.closed));
        self.rate(SERVER, Quantity::Closed, at, closed);
        self.take_processes(at, processes);
        self.note_load(at);
        let overflows =
            self.last_sample.and_then(|(_, before)| host.listen_overflows_since(&before));
        self.rate(SERVER, Quantity::ListenOverflows, at, overflows.map(|n| n as f64));
        let pressure = self.last_sample.and_then(|(_, before)| host.cpu_pressure_since(&before));
        self.rate(SERVER, Quantity::CpuPressure, at, pressure.map(Nanos::as_secs_f64));
        let busy = |room: &Option<CpuRoom>| room.as_ref().and_then(|room| room.busy);
        if let Some((now, before)) = busy(&room).zip(busy(&self.room)) {
            self.rate(SERVER, Quantity::BusyCpus, at, Some((now - before).max(0.0)));
        }
        self.room = room;
        self.last_sample = Some((at, host));
        self.note_waiting(at);
    }

    /// Takes in the figures of each process; the sum of their CPU rates is the server's. A process
    /// has a rate from its second sample on.
    fn take_processes(&mut self, at: Nanos, samples: Vec<ProcessSample>) {
        let known = std::mem::take(&mut self.processes);
        let mut whole: Option<[f64; 2]> = None;
        let mut children: Option<f64> = None;
        let is_read = samples.iter().all(|sample| sample.used.is_some());
        for ProcessSample { pid, title, used, memory_bytes, connections, requests_out } in samples {
            let whose = Some(pid);
            self.gauge(whose, Quantity::Connections, at, connections.map(f64::from));
            self.gauge(whose, Quantity::RequestsOut, at, requests_out.map(f64::from));
            self.gauge(whose, Quantity::ResidentMemory, at, memory_bytes.map(|bytes| bytes as f64));
            let before = known.get(&pid).and_then(|process| process.used);
            // A later process with the same pid begins anew.
            let ran = used.zip(before).and_then(|(now, before)| {
                let ran = [
                    now.cpu.checked_sub(before.cpu)?,
                    now.run_queue.checked_sub(before.run_queue)?,
                    now.children.checked_sub(before.children)?,
                ];
                Some(ran.map(|ns| ns as f64 / 1e9))
            });
            if ran.is_some() || used.is_none() {
                self.run_rates(whose, at, ran.map(|[cpu, wait, _]| [cpu, wait]));
            }
            if let Some([cpu, wait, of_children]) = ran {
                let [all_cpu, all_wait] = whole.unwrap_or_default();
                whole = Some([all_cpu + cpu + of_children, all_wait + wait]);
                children = Some(children.unwrap_or(0.0) + of_children);
            }
            self.processes.insert(pid, WatchedProcess { title, used, is_there: true });
        }
        self.run_rates(SERVER, at, whole.filter(|_| is_read));
        self.rate(SERVER, Quantity::ChildrenCpu, at, children.filter(|_| is_read));
        for (pid, process) in known {
            if !self.processes.contains_key(&pid) {
                self.series.retain(|(whose, _), _| *whose != Some(pid));
                if self.reports.contains_key(&pid) {
                    self.processes
                        .insert(pid, WatchedProcess { used: None, is_there: false, ..process });
                }
            }
        }
    }

    /// Takes in Puma's statistics, if they are those of the server that is watched.
    fn take_statistics(&mut self, at: Nanos, wall: Nanos, stats: Result<PumaStats, String>) {
        const FIGURES: [(Quantity, WorkerFigure); 4] = [
            (Quantity::BusyThreads, WorkerStats::busy_threads),
            (Quantity::PoolCapacity, |worker| worker.pool_capacity),
            (Quantity::Backlog, |worker| worker.backlog),
            (Quantity::BacklogMax, |worker| worker.backlog_max),
        ];
        let ours =
            stats.and_then(
                |stats| if self.are_ours(&stats) { Ok(stats) } else { Err(ANOTHER.to_owned()) },
            );
        let before = self.said.take();
        match ours {
            Ok(stats) => {
                self.said = Some(stats);
                self.seen.no_statistics = None;
            }
            Err(why) => {
                self.said_before = before.or(self.said_before.take());
                self.seen.no_statistics = Some(why);
            }
        }
        let Some(workers) = self.said.as_ref().map(|said| said.workers.clone()) else {
            let is_said = |quantity| FIGURES.iter().any(|(figure, _)| *figure == quantity);
            for (_, series) in
                self.series.iter_mut().filter(|((_, quantity), _)| is_said(*quantity))
            {
                series.take(at, None);
            }
            return;
        };
        self.asked_at = wall;
        self.asked_after = at;
        self.first_asked_at.get_or_insert(wall);
        self.reports.retain(|pid, _| workers.iter().any(|worker| worker.pid.unwrap_or(0) == *pid));
        for worker in &workers {
            let all = self.reports.entry(worker.pid.unwrap_or(0)).or_default();
            let at = worker.reported_at().unwrap_or(wall);
            if worker.ready && all.back().is_none_or(|last| last.at != at) {
                all.push_back(WorkerReport { at, worker: worker.clone() });
                all.drain(..all.len().saturating_sub(MOST_REPORTS));
            }
        }
        for (quantity, value) in FIGURES {
            let sum =
                workers.iter().map(value).sum::<Option<u32>>().filter(|_| !workers.is_empty());
            self.gauge(SERVER, quantity, at, sum.map(f64::from));
            for worker in &workers {
                // In single mode no process is named, and there is but one.
                let Some(pid) = worker.pid.or_else(|| self.only_process()) else { continue };
                if self.processes.get(&pid).is_none_or(|process| process.is_there) {
                    self.gauge(Some(pid), quantity, at, value(worker).map(f64::from));
                }
            }
        }
    }

    /// How old a worker's figures were when the server was asked last. Another machine's clock does
    /// not tell by ours.
    fn age_of_report(&self, worker: &WorkerStats) -> Option<Nanos> {
        worker.age(self.asked_at).filter(|_| !self.seen.is_elsewhere)
    }

    /// Whether a worker's figures are of another time than what the kernel tells: a load has begun or
    /// ended since, or at each of the last looks more of its threads had a request than it counted.
    fn is_out_of_date(&self, worker: &WorkerStats) -> bool {
        // In single mode Puma counts when it is asked.
        let Some(pid) = worker.pid.filter(|_| worker.last_checkin.is_some()) else { return false };
        let reported_at =
            self.age_of_report(worker).map(|age| self.asked_after.0.checked_sub(age.0));
        let is_before =
            |changed: Nanos| reported_at.is_some_and(|at| at.is_none_or(|at| at < changed.0));
        let looks = || self.looks.get(&pid).and_then(least_at_work);
        let is_busier = || looks().zip(worker.busy_threads()).is_some_and(|(now, then)| now > then);
        self.load_changed_at.is_some_and(is_before) || is_busier()
    }

    /// The process that is there, where it is the only one, or the only one with threads that serve:
    /// others are commands that it has started.
    fn only_process(&self) -> Option<u32> {
        let is_one = |pids: &[u32]| pids.first().copied().filter(|_| pids.len() == 1);
        let there: Vec<u32> = self.living().map(|(pid, _)| pid).collect();
        let serves = |pid: &u32| self.pool_threads(*pid).is_some();
        let serving: Vec<u32> = there.iter().copied().filter(serves).collect();
        is_one(&there).or_else(|| is_one(&serving))
    }

    /// Whether one of these workers is among the processes; unknown ones are taken for ours.
    fn are_ours(&self, stats: &PumaStats) -> bool {
        let is_there =
            |worker: &WorkerStats| worker.pid.is_none_or(|pid| self.processes.contains_key(&pid));
        self.processes.is_empty() || stats.workers.is_empty() || stats.workers.iter().any(is_there)
    }

    /// The workers that Puma names. For a server without statistics, the processes whose title says
    /// that they are workers; if there is no such title, the only one with threads that serve, or all
    /// processes.
    fn workers(&self) -> Vec<WatchedWorker> {
        if let Some(said) = &self.said {
            // A worker that took the place of another comes last there.
            let mut all: Vec<&WorkerStats> = said.workers.iter().collect();
            all.sort_by_key(|worker| worker.index);
            // Counts of some workers alone would be taken for those of all.
            let is_current = !all.iter().any(|worker| self.is_out_of_date(worker));
            let of_statistics = |worker| self.worker_of_statistics(worker, is_current);
            return all.into_iter().map(of_statistics).collect();
        }
        let is_cluster = self.living().any(|(_, title)| worker_in_title(title).is_some());
        let only = self.only_process().filter(|_| !is_cluster);
        let shown = self.living().filter(|(pid, _)| only.is_none_or(|only| only == *pid));
        let all = shown.filter_map(|(pid, title)| match worker_in_title(title) {
            Some(index) => Some(self.worker_of_process(pid, format!("worker {index}"))),
            None if is_cluster => None,
            None => Some(self.worker_of_process(pid, format!("process {pid}"))),
        });
        let mut all: Vec<WatchedWorker> = all.collect();
        all.sort_by_key(|worker| (worker.name.len(), worker.name.clone()));
        all
    }

    fn worker_of_process(&self, pid: u32, name: String) -> WatchedWorker {
        WatchedWorker {
            name,
            pid: Some(pid),
            is_gone: self.processes.get(&pid).is_some_and(|process| !process.is_there),
            threads: self.pool_threads(pid),
            requests_out: self.recent(Some(pid), Quantity::RequestsOut),
            waits: self.waits_seen(pid, self.free_by_kernel(pid)),
            connections: self.recent(Some(pid), Quantity::Connections),
            cpu: self.recent(Some(pid), Quantity::Cpu),
            cpu_wait: self.recent(Some(pid), Quantity::RunQueueWait),
            memory_bytes: self.last(Some(pid), Quantity::ResidentMemory),
            ..WatchedWorker::default()
        }
    }

    /// `is_current`: whether its count of busy threads and its backlog are of the same time as what the
    /// kernel tells; otherwise they are left out.
    fn worker_of_statistics(&self, worker: &WorkerStats, is_current: bool) -> WatchedWorker {
        let pid = worker.pid.or_else(|| self.only_process());
        let name = match (worker.index, pid) {
            (Some(index), _) => format!("worker {index}"),
            (None, Some(pid)) => format!("process {pid}"),
            (None, None) => "Puma".to_owned(),
        };
        let is_full = |report: &&WorkerReport| {
            report.worker.busy_threads().is_some_and(|busy| Some(busy) >= report.worker.slots())
        };
        let reports =
            self.reports.get(&worker.pid.unwrap_or(0)).into_iter().flat_map(|all| all.iter().rev());
        WatchedWorker {
            is_booting: !worker.ready,
            threads: worker.slots(),
            io_threads: worker.io_threads,
            busy_threads: worker.busy_threads().filter(|_| is_current),
            backlog: worker.backlog.filter(|_| is_current),
            waits: pid.and_then(|pid| {
                // A report may be older than the looks.
                let busy = worker.busy_threads()?;
                let by_report = self.pool_threads(pid)?.saturating_sub(busy);
                let by_report = if is_current { by_report } else { 0 };
                self.waits_seen(pid, by_report.max(self.free_by_kernel(pid)))
            }),
            staleness_ns: self.age_of_report(worker),
            full_reports: reports.take_while(is_full).count(),
            ..pid
                .map(|pid| self.worker_of_process(pid, name.clone()))
                .unwrap_or(WatchedWorker { name, ..WatchedWorker::default() })
        }
    }

    /// How many requests all workers began a second, up to the last report of each; `None` if one
    /// of them has reported only once.
    fn start_rate(&self) -> Option<StartRate> {
        let age = self
            .reports
            .values()
            .filter_map(|reports| self.age_of_report(&reports.back()?.worker))
            .max();
        let mut all = StartRate { seconds: f64::MAX, age, ..StartRate::default() };
        for reports in self.reports.values() {
            let last = reports.back()?;
            let shortest = reports.iter().rposition(|report| {
                last.at.saturating_sub(report.at).as_secs_f64() >= LEAST_RATE_SPAN
            })?;
            let (begun, seconds) = begun(&reports[same_rate_from(reports, shortest)?], last)?;
            all.per_second += begun / seconds;
            all.seconds = all.seconds.min(seconds);
            let shortest_seconds = last.at.saturating_sub(reports[shortest].at).as_secs_f64();
            all.shortest_seconds = all.shortest_seconds.max(shortest_seconds);
            all.reaches_back |=
                self.first_asked_at.is_some_and(|began| reports[shortest].at < began);
            all.is_rough |= all.reaches_back || rounding(last) > ROUGH * seconds;
        }
        Some(all).filter(|_| !self.reports.is_empty())
    }

    /// For how many seconds no worker has begun a request; `None` if one does not say.
    fn still(&self) -> Option<f64> {
        let mut shortest: Option<f64> = None;
        for reports in self.reports.values() {
            let of_worker = still(reports)?;
            shortest = Some(shortest.map_or(of_worker, |known| known.min(of_worker)));
        }
        shortest
    }
}

impl WatchBoard {
    /// What a conclusion rests on.
    pub fn evidence(&self) -> WatchEvidence {
        let seen = self.figures();
        let why = Diagnosis::of(&seen).why;
        let is_unsettled = why.is_some_and(|why| Some(conclusion(&why)) != self.agreed);
        WatchEvidence { is_unsettled, ..seen }
    }

    /// The same, but for whether two looks agree on the reason.
    fn figures(&self) -> WatchEvidence {
        let board = self;
        let recent = |quantity| board.recent(SERVER, quantity);
        let series = |quantity| board.series.get(&(SERVER, quantity));
        let titles = || board.living().map(|(_, title)| title);
        let said = board.said.as_ref();
        let titled = titles().find_map(version_in_title);
        WatchEvidence {
            program: titles().next().map(program_in_title),
            // What it takes at first, to find out all about the processes, it does not take later.
            sampling: Some(board.sampling_cpus()).filter(|_| board.seen.watched >= SETTLED),
            is_puma: said.is_some()
                || titled.is_some()
                || titles().any(|title| title.starts_with("puma: ")),
            version: said
                .and_then(|said| said.version.clone())
                .or_else(|| titled.map(str::to_owned)),
            is_cluster: said.map_or_else(
                || titles().any(|title| worker_in_title(title).is_some()),
                |said| said.cluster,
            ),
            is_ruby: board.room.as_ref().is_some_and(|room| room.is_ruby),
            workers: board.workers(),
            rate: said
                .filter(|said| said.workers.iter().all(|worker| worker.ready))
                .and_then(|_| board.start_rate()),
            answered: series(Quantity::Answered).and_then(QuantitySeries::recent_rate),
            closed: series(Quantity::Closed).and_then(QuantitySeries::recent_rate),
            still: board.still(),
            queue: recent(Quantity::AcceptQueue),
            queue_most: series(Quantity::AcceptQueue).and_then(|series| series.most),
            overflows: series(Quantity::ListenOverflows).and_then(QuantitySeries::counted),
            connections: recent(Quantity::Connections),
            out: recent(Quantity::RequestsOut),
            out_most: recent(Quantity::RequestsOutAtMost),
            span: board.waiting.span(),
            earlier: board.waiting.earlier(),
            earlier_why: board.earlier_why(),
            cpu: recent(Quantity::Cpu),
            children_cpu: recent(Quantity::ChildrenCpu),
            cpus: board.room.as_ref().map(|room| room.cpus),
            busy_cpus: recent(Quantity::BusyCpus),
            cpu_wait: recent(Quantity::RunQueueWait),
            backends: board.backends(),
            locked_files: board.locked_files(),
            shared: board.shared(),
            connect: recent(Quantity::ConnectTime).map(|ms| Nanos::from_secs_f64(ms / 1e3)),
            ..board.seen.clone()
        }
    }
}

/// longtail as root types it: as it was typed here if that was a path; its name if `sudo`, which has a
/// search path of its own, finds it; else its whole path.
fn command_for_root() -> String {
    /// `secure_path` of sudoers(5), as distributions have it.
    const SEARCHED: [&str; 6] =
        ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let typed = std::env::args().next().filter(|typed| typed.contains('/'));
    let found = || {
        let path = std::env::current_exe().ok()?;
        let is_searched = SEARCHED.iter().any(|folder| path.parent() == Some(Path::new(folder)));
        (!is_searched).then(|| path.display().to_string())
    };
    typed.or_else(found).unwrap_or_default()
}

/// How many threads had a request at the look with the fewest of them, as far as is certain: one that
/// waits for another thread without a time limit may be free. `None` if the looks are too few.
fn least_at_work(looks: &VecDeque<PoolLook>) -> Option<u32> {
    /// Those of one second.
    const ENOUGH: usize = 5;
    let at_work =
        looks.iter().map(|look| look.waits.map(|waits| waits.untimed() + waits.timed - waits.lock));
    at_work.min().flatten().filter(|_| looks.len() >= ENOUGH)
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

/// The earliest report from which on the rate has been the same as since `from`, apart from chance
/// (three standard deviations of the count) and the rounding of Puma's time stamps. So a load that
/// has just begun, or changed, is not mixed with the one before.
fn same_rate_from(reports: &VecDeque<WorkerReport>, mut from: usize) -> Option<usize> {
    let last = reports.back()?;
    while from > 0 {
        let (counted, seconds) = begun(&reports[from], last)?;
        let (earlier, span) = begun(&reports[from - 1], &reports[from])?;
        let expected = counted / seconds * span;
        if (earlier - expected).abs()
            > expected * rounding(last) / span + 3.0 * expected.max(1.0).sqrt()
        {
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

/// What a reason concludes, without its evidence and the figures that are others at each look.
fn conclusion(why: &str) -> String {
    let conclusion = why.split_once(": ").map_or(why, |(conclusion, _)| conclusion);
    let is_figure =
        |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    let words: Vec<&str> = conclusion.split(' ').filter(|word| !is_figure(word)).collect();
    words.join(" ")
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
    use probe::sockets::ServerSockets;

    use super::*;
    use probe::peers::BackendConnection;

    #[test]
    fn a_puma_is_known_by_what_it_calls_itself() {
        assert_eq!(version_in_title("puma 6.4.2 (tcp://0.0.0.0:3000) [shop]"), Some("6.4.2"));
        assert_eq!(version_in_title("puma: cluster worker 1: 4242 [shop]"), None);
        assert_eq!(version_in_title("puma master"), None);
        assert_eq!(worker_in_title("puma: cluster worker 12: 4242 [shop]"), Some(12));
        assert_eq!(worker_in_title("puma 6.4.2 (tcp://0.0.0.0:3000) [shop]"), None);
        let programs =
            ["/usr/bin/ruby app.rb", "nginx: worker process", "gunicorn", ""].map(program_in_title);
        assert_eq!(programs, ["ruby", "nginx", "gunicorn", ""]);
    }

    #[test]
    fn what_is_not_visible_is_said_once() {
        let hidden = |why| format!("{}: {why}", rights::HIDDEN_OF_OTHER_USERS);
        let mut board = WatchBoard::default();
        for line in [hidden("known by its title"), hidden("run as root"), "3 more".to_owned()] {
            board.miss(line);
        }
        assert_eq!(board.seen.not_visible, [&hidden("known by its title"), "3 more"]);
    }

    #[test]
    fn what_is_so_now_is_not_mixed_with_a_load_that_has_ended() {
        // Of a load of 20 connections on five threads, a sample each second: what is said of the
        // queue, the requests in flight and the connections.
        let mut board = WatchBoard::default();
        let mut seen = |second: u64, waiting: u32, out: u32, open: u32| {
            for queue in 0..20 {
                board.take(Observation::Queue {
                    at: Nanos::from_millis(second * 1000 + queue * 50),
                    queue: Some(ServerSockets {
                        accept_queue: waiting,
                        ..ServerSockets::default()
                    }),
                });
            }
            let sockets =
                ServerSockets { open, accepted: out, out: Some(out), ..ServerSockets::default() };
            board.take(Observation::Server(Box::new(ServerSample {
                at: Nanos::from_millis(second * 1000 + 975),
                sockets: Some(sockets),
                ..ServerSample::default()
            })));
            let seen = board.evidence();
            [seen.queue, seen.out, seen.connections].map(|value| value.unwrap().round() as u32)
        };
        assert_eq!(seen(0, 0, 0, 0), [0, 0, 0]);
        assert_eq!(seen(1, 15, 5, 20), [15, 5, 20], "it has begun");
        for second in 2..8 {
            assert_eq!(seen(second, 15, 5, 20), [15, 5, 20]);
        }
        assert_eq!(seen(8, 0, 0, 0), [0, 0, 0], "it has ended: no connection is open");
        for second in 9..20 {
            seen(second, 15, 5, 20);
        }
        assert_ne!(seen(20, 0, 0, 20), [0, 0, 20], "a moment without a request");
        assert_eq!(seen(21, 0, 0, 20), [0, 0, 20], "the connections of a proxy stay open");
    }

    #[test]
    fn commands_of_a_puma_in_single_mode_are_none_of_its_workers() {
        let process = |pid| ProcessSample { pid, ..ProcessSample::default() };
        let mut board = WatchBoard::default();
        board.take(Observation::Server(Box::new(ServerSample {
            processes: vec![process(7), process(8)],
            ..ServerSample::default()
        })));
        let pids = |board: &WatchBoard| -> Vec<Option<u32>> {
            board.evidence().workers.iter().map(|worker| worker.pid).collect()
        };
        assert_eq!(pids(&board), [Some(7), Some(8)]);
        let look = PoolLook { pid: 7, threads: 5, ..PoolLook::default() };
        board.take(Observation::Threads { pools: vec![look] });
        assert_eq!(pids(&board), [Some(7)]);
    }

    #[test]
    fn without_the_right_to_see_who_has_which_request_those_beyond_all_threads_wait() {
        let process = |pid| ProcessSample { pid, ..ProcessSample::default() };
        let mut board = WatchBoard::default();
        for seconds in 1..4 {
            board.take(Observation::Server(Box::new(ServerSample {
                at: Nanos::from_secs(seconds),
                sockets: Some(ServerSockets { out: Some(20), ..ServerSockets::default() }),
                processes: vec![process(11), process(12)],
                ..ServerSample::default()
            })));
            let look = |pid| PoolLook { pid, threads: 5, ..PoolLook::default() };
            board.take(Observation::Threads { pools: vec![look(11), look(12)] });
        }
        assert_eq!(board.inside(), Some(10.0));
        assert!(board.evidence().span.is_some());
    }

    /// What a worker of five threads says at this second of the watch, that it reported at that one,
    /// when so many were busy.
    fn report(second: u64, reported: u64, busy: u32) -> Observation {
        let text = format!(
            r#"{{"workers":1,"worker_status":[{{"pid":11,"booted":true,
            "last_checkin":"1970-01-01T00:01:{reported:02}Z","last_status":{{"backlog":0,
            "running":5,"pool_capacity":{},"max_threads":5}}}}]}}"#,
            5 - busy
        );
        let at = Nanos::from_secs(second);
        let stats = probe::puma_stats::parse(text.as_bytes());
        Observation::Statistics { at, wall: Nanos::from_secs(60) + at, cpu: Nanos::ZERO, stats }
    }

    fn with_requests(second: u64, out: u32) -> Observation {
        let sockets =
            ServerSockets { open: out, accepted: out, out: Some(out), ..ServerSockets::default() };
        Observation::Server(Box::new(ServerSample {
            at: Nanos::from_secs(second),
            sockets: Some(sockets),
            processes: vec![ProcessSample { pid: 11, ..ProcessSample::default() }],
            ..ServerSample::default()
        }))
    }

    #[test]
    fn counts_from_before_a_load_began_or_ended_are_not_of_now() {
        let mut board = WatchBoard::default();
        let mut busy = |observations: [Observation; 2]| {
            for seen in observations {
                board.take(seen);
            }
            let seen = board.evidence();
            (seen.busy(), seen.inside())
        };
        assert_eq!(busy([with_requests(10, 0), report(10, 8, 0)]), (Some(0), Some(0)));
        assert_eq!(busy([with_requests(11, 9), report(11, 8, 0)]), (None, None), "it has begun");
        assert_eq!(busy([with_requests(13, 9), report(13, 13, 5)]), (Some(5), Some(0)));
        assert_eq!(busy([with_requests(14, 9), report(14, 13, 5)]), (Some(5), Some(0)));
        assert_eq!(busy([with_requests(15, 0), report(15, 13, 5)]), (None, None), "it has ended");
    }

    #[test]
    fn a_count_that_the_threads_contradict_at_every_look_is_none() {
        let mut board = WatchBoard::default();
        let busy = |board: &WatchBoard| board.evidence().busy();
        board.take(with_requests(10, 5));
        board.take(report(10, 6, 1));
        let mut look = |timed| {
            let waits = Some(ThreadWaits { timed, lock: 5 - timed, ..ThreadWaits::default() });
            let look = PoolLook { pid: 11, threads: 5, waits, ..PoolLook::default() };
            board.take(Observation::Threads { pools: vec![look] });
            busy(&board)
        };
        for _ in 0..4 {
            assert_eq!(look(5), Some(1), "too few looks");
        }
        assert_eq!(look(5), None);
        assert_eq!(look(1), Some(1), "once there were as few");
    }

    fn connection(inode: u64, place: &str) -> BackendConnection {
        BackendConnection { inode, place: place.to_owned() }
    }

    #[test]
    fn a_socket_that_threads_of_several_workers_wait_for_is_shared() {
        let mut board = WatchBoard::default();
        let look = |pid, inodes: &[u64]| PoolLook {
            pid,
            threads: 5,
            backends: inodes.iter().map(|inode| connection(*inode, "db")).collect(),
            ..PoolLook::default()
        };
        board.take(Observation::Threads { pools: vec![look(11, &[1, 2]), look(12, &[3])] });
        assert_eq!(board.evidence().shared, []);
        board.take(Observation::Threads { pools: vec![look(11, &[1, 3]), look(12, &[2])] });
        let shared = SharedConnections { place: "db".to_owned(), connections: 2, workers: 2 };
        assert_eq!(board.evidence().shared, [shared]);
    }

    #[test]
    fn places_that_threads_wait_for_are_counted_over_the_looks_of_all_workers() {
        let mut board = WatchBoard::default();
        let look = |pid, places: &[&str]| PoolLook {
            pid,
            threads: 5,
            waits: None,
            backends: places.iter().map(|place| connection(u64::from(pid), place)).collect(),
            commands: vec!["convert".to_owned()],
            ..PoolLook::default()
        };
        for places in [&["db", "db", "/redis"][..], &["db"]] {
            board.take(Observation::Threads { pools: vec![look(11, places), look(12, &["db"])] });
        }
        let seen = board.evidence().backends;
        let seen: Vec<(&str, bool, f64)> =
            seen.iter().map(|one| (one.place.as_str(), one.is_command, one.threads)).collect();
        assert_eq!(seen, [("db", false, 2.5), ("convert", true, 2.0), ("/redis", false, 0.5)]);
    }

    #[test]
    fn a_load_that_began_between_two_reports_is_not_mixed_with_what_was_before() {
        // Of reports, each 5 s after the one before, with these counts.
        let rate = |counts: &[u64]| {
            let reports = counts.iter().enumerate().map(|(n, count)| WorkerReport {
                at: Nanos::from_secs(100 + 5 * n as u64),
                worker: WorkerStats {
                    pid: Some(11),
                    requests_count: Some(*count),
                    last_checkin: Some("2026-01-01T00:00:00Z".to_owned()),
                    ..WorkerStats::default()
                },
            });
            let first_asked_at = Some(Nanos::from_secs(103));
            let reports = BTreeMap::from([(11, reports.collect())]);
            let board = WatchBoard { first_asked_at, reports, ..WatchBoard::default() };
            board.start_rate().map(|rate| (rate.per_second, rate.in_words(), rate.reaches_back))
        };
        let expected =
            |rate, words: &str, reaches_back| Some((rate, words.to_owned(), reaches_back));
        assert_eq!(rate(&[0]), None, "one report");
        assert_eq!(
            rate(&[0, 165]),
            expected(33.0, "~33", true),
            "the first report is from before the watch"
        );
        assert_eq!(
            rate(&[0, 165, 525]),
            expected(72.0, "~72", false),
            "5 s, with instants in whole seconds"
        );
        assert_eq!(rate(&[0, 165, 525, 885]), expected(72.0, "72", false));
        assert_eq!(rate(&[0, 350, 700]), expected(70.0, "70", false), "it was so before, too");
        assert_eq!(rate(&[0, 500, 1000, 1000]), expected(0.0, "~0", false), "the load has ended");
    }

    #[test]
    fn a_conclusion_is_the_same_at_another_look_with_other_figures() {
        let cpus =
            |used| format!("The 2 CPUs are used up, {used} by other processes: they are shared.");
        assert_eq!(conclusion(&cpus("1.4")), conclusion(&cpus("1.3")));
        let pool =
            |size, waits| format!("Probably a pool of {size}: of 10 threads, about {waits} wait.");
        assert_eq!(conclusion(&pool(3, 6)), conclusion(&pool(3, 7)));
        assert_ne!(conclusion(&pool(3, 6)), conclusion(&pool(4, 6)));
    }
}
