//! All that was seen so far, as series: what the screen, the table and the JSON show. Plain arithmetic; nothing is read here.

use std::collections::{BTreeMap, VecDeque};

use model::Nanos;
use probe::family::Member;
use probe::host::Host;
use probe::puma_stats::{PumaStats, WorkerStats};

use super::quantity::Quantity;
use super::sampler::{Look, Seen};
use super::series::Series;

/// Of plots, so many of the last looks are kept.
const MOST_PLOTTED: usize = 400;

/// Of processes that have ended, so many are kept: the last ones.
const MOST_GONE: usize = 64;

/// Whose a series is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    /// The whole server's; of overflows and drops the whole network namespace's.
    All,
    /// A process's.
    Process(u32),
}

/// A process that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) title: String,
    pub(crate) parent: Option<u32>,
    pub(crate) first_seen: Nanos,
    pub(crate) last_seen: Nanos,
    /// Whether the last look found it.
    pub(crate) is_there: bool,
}

/// All that was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Board {
    series: BTreeMap<(Of, Quantity), Series>,
    plots: BTreeMap<Quantity, VecDeque<Option<f64>>>,
    processes: BTreeMap<u32, Process>,
    /// The counters of each process at the last look.
    counters: BTreeMap<(u32, Quantity), u64>,
    /// When the last whole look was taken, and the machine's counters then.
    last_look: Option<(Nanos, Host)>,
    /// The longest accept queue since the last whole look.
    longest: Option<f64>,
    queue_limit: Option<u32>,
    slots: Option<u32>,
    stats_failure: Option<String>,
    missing: Vec<String>,
    looks: (u64, u64),
    cpu: Nanos,
    polling_cpu: Nanos,
    now: Nanos,
    ended: Option<Nanos>,
}

impl Board {
    /// With what is known to be missing from the start.
    pub(crate) fn new(missing: Vec<String>) -> Board {
        Board { missing, ..Board::default() }
    }

    /// Takes in one observation.
    pub(crate) fn take(&mut self, seen: Seen) {
        match seen {
            Seen::Queue { at, queue } => {
                self.now = at;
                self.looks.0 += 1;
                let length = queue.map(|queue| f64::from(queue.length));
                self.queue_limit = queue.and_then(|queue| queue.limit).or(self.queue_limit);
                self.longest =
                    length.map_or(self.longest, |length| Some(self.longest.map_or(length, |most| most.max(length))));
                self.gauge(Of::All, Quantity::AcceptQueue, at, length);
            }
            Seen::All(look) => self.look(*look),
            Seen::Stats { at, wall, cpu, stats } => self.stats(at, wall, cpu, stats),
            Seen::Ended { at } => {
                self.now = at;
                self.ended = Some(at);
            }
        }
    }

    fn look(&mut self, look: Look) {
        let at = look.at;
        self.now = at;
        self.looks.1 += 1;
        self.cpu = look.cpu;
        for line in look.missing {
            self.miss(line);
        }
        let connections = look.connections;
        let number = |n: Option<u32>| n.map(f64::from);
        let accepted = connections.map(|seen| seen.accepted);
        self.gauge(Of::All, Quantity::Open, at, number(connections.map(|seen| seen.open)));
        self.gauge(Of::All, Quantity::Accepted, at, number(accepted));
        self.gauge(Of::All, Quantity::Unread, at, number(connections.and_then(|seen| seen.unread)));
        let held: u32 = look.members.iter().filter_map(|member| member.connections).sum();
        let is_told = look.members.iter().any(|member| member.connections.is_some());
        let elsewhere = accepted.filter(|_| is_told).map(|accepted| accepted.saturating_sub(held));
        self.gauge(Of::All, Quantity::Elsewhere, at, number(elsewhere));
        self.members(at, &look.members);
        self.machine(at, look.host);
        self.last_look = Some((at, look.host));
        let longest = self.longest.take();
        self.plot(Quantity::AcceptQueue, longest);
        for quantity in Quantity::OF_ALL.into_iter().filter(|quantity| *quantity != Quantity::AcceptQueue) {
            let last = self.last(Of::All, quantity);
            self.plot(quantity, last);
        }
    }

    /// Processes of a look, whose sums are the server's. A process has a rate from its second look on.
    fn members(&mut self, at: Nanos, members: &[Member]) {
        let gone: Vec<u32> = self.processes.iter().filter(|(_, one)| one.is_there).map(|(pid, _)| *pid).collect();
        for pid in gone {
            if !members.iter().any(|member| member.pid == pid) {
                self.gone(pid, at);
            }
        }
        let rates = [Quantity::Cpu, Quantity::RunQueueWait, Quantity::Voluntary, Quantity::Involuntary];
        let before = self.last_look.map(|(at, _)| at);
        for quantity in rates {
            let (mut all, mut any) = (Some(0.0), false);
            for member in members {
                let Some((count, scale)) = counter(member, quantity) else {
                    all = None;
                    self.series((Of::Process(member.pid), quantity)).take(at, None);
                    self.counters.remove(&(member.pid, quantity));
                    continue;
                };
                let earlier = self.counters.insert((member.pid, quantity), count);
                // A later process of the same number begins anew.
                let counted = earlier.and_then(|earlier| count.checked_sub(earlier)).map(|n| n as f64 * scale);
                if let (Some(from), Some(counted)) = (before, counted) {
                    self.series((Of::Process(member.pid), quantity)).count(from, at, counted);
                    all = all.map(|all| all + counted);
                    any = true;
                }
            }
            match (before, all) {
                (Some(from), Some(all)) if any => self.series((Of::All, quantity)).count(from, at, all),
                (Some(_), _) => self.gauge(Of::All, quantity, at, None),
                (None, _) => {}
            }
        }
        for member in members {
            let of = Of::Process(member.pid);
            self.gauge(of, Quantity::Accepted, at, member.connections.map(f64::from));
            self.gauge(of, Quantity::Memory, at, member.memory_bytes.map(|bytes| bytes as f64));
            self.gauge(of, Quantity::Threads, at, member.used.map(|used| used.threads as f64));
            let entry = self.processes.entry(member.pid).or_insert_with(|| Process {
                title: String::new(),
                parent: None,
                first_seen: at,
                last_seen: at,
                is_there: true,
            });
            entry.title.clone_from(&member.title);
            (entry.parent, entry.last_seen, entry.is_there) = (member.parent, at, true);
        }
        self.forget();
        let threads: Option<u64> = members.iter().map(|member| member.used.map(|used| used.threads)).sum();
        let threads = threads.filter(|_| !members.is_empty());
        self.gauge(Of::All, Quantity::Threads, at, threads.map(|n| n as f64));
    }

    /// A process that has ended: what it had stays, and nothing of it is there now.
    fn gone(&mut self, pid: u32, at: Nanos) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.is_there = false;
        }
        for quantity in Quantity::OF_PROCESS {
            self.counters.remove(&(pid, quantity));
            if let Some(series) = self.series.get_mut(&(Of::Process(pid), quantity)) {
                series.take(at, None);
            }
        }
    }

    /// Those that ended first go, where there are many.
    fn forget(&mut self) {
        let mut gone: Vec<(Nanos, u32)> =
            self.processes.iter().filter(|(_, one)| !one.is_there).map(|(pid, one)| (one.last_seen, *pid)).collect();
        gone.sort_unstable();
        for (_, pid) in &gone[..gone.len().saturating_sub(MOST_GONE)] {
            self.processes.remove(pid);
            self.series.retain(|(of, _), _| *of != Of::Process(*pid));
            self.miss(format!("processes that ended, but for the last {MOST_GONE}"));
        }
    }

    fn machine(&mut self, at: Nanos, host: Host) {
        let Some((from, before)) = self.last_look else { return };
        let counted = [
            (Quantity::Overflows, host.listen_overflows_since(&before)),
            (Quantity::Drops, host.listen_drops_since(&before)),
            (Quantity::SynRetransmits, host.syn_retransmits_since(&before)),
        ];
        for (quantity, counted) in counted {
            match counted {
                Some(n) => self.series((Of::All, quantity)).count(from, at, n as f64),
                None => self.gauge(Of::All, quantity, at, None),
            }
        }
    }

    fn stats(&mut self, at: Nanos, wall: Nanos, cpu: Nanos, stats: Result<PumaStats, String>) {
        self.polling_cpu = cpu;
        let stats = match stats
            .and_then(|stats| self.are_ours(&stats).then_some(stats).ok_or_else(|| ANOTHER.to_owned()))
        {
            Ok(stats) => stats,
            Err(why) => {
                self.stats_failure = Some(why);
                for (_, series) in
                    self.series.iter_mut().filter(|((_, name), _)| matches!(name, Quantity::Busy | Quantity::Backlog))
                {
                    series.take(at, None);
                }
                return;
            }
        };
        self.stats_failure = None;
        let age = stats.workers.iter().map(|worker| worker.age(wall)).max().flatten();
        let sum = |value: Said| {
            let all: Option<u32> = stats.workers.iter().map(value).sum();
            all.filter(|_| !stats.workers.is_empty())
        };
        self.slots = sum(|worker| worker.max_threads);
        let figures: [(Quantity, Said); 2] =
            [(Quantity::Busy, WorkerStats::busy_threads), (Quantity::Backlog, |worker| worker.backlog)];
        for (quantity, value) in figures {
            self.gauge(Of::All, quantity, at, sum(value).map(f64::from));
            self.series((Of::All, quantity)).aged(age);
            for worker in &stats.workers {
                // In single mode no process is named, and there is but one.
                let Some(pid) = worker.pid.or_else(|| self.only_process()) else { continue };
                self.gauge(Of::Process(pid), quantity, at, value(worker).map(f64::from));
                self.series((Of::Process(pid), quantity)).aged(worker.age(wall));
            }
        }
    }

    /// The process that is there, where it is the only one.
    fn only_process(&self) -> Option<u32> {
        let mut there = self.processes.iter().filter(|(_, one)| one.is_there).map(|(pid, _)| *pid);
        there.next().filter(|_| there.next().is_none())
    }

    /// Whether one of these workers is among the processes; unknown ones are taken for ours.
    fn are_ours(&self, stats: &PumaStats) -> bool {
        let is_there = |worker: &WorkerStats| worker.pid.is_none_or(|pid| self.processes.contains_key(&pid));
        self.processes.is_empty() || stats.workers.is_empty() || stats.workers.iter().any(is_there)
    }

    fn series(&mut self, key: (Of, Quantity)) -> &mut Series {
        self.series.entry(key).or_default()
    }

    fn gauge(&mut self, of: Of, quantity: Quantity, at: Nanos, value: Option<f64>) {
        self.series((of, quantity)).take(at, value);
    }

    fn plot(&mut self, quantity: Quantity, value: Option<f64>) {
        let plot = self.plots.entry(quantity).or_default();
        plot.push_back(value);
        if plot.len() > MOST_PLOTTED {
            plot.pop_front();
        }
    }

    /// It is over now.
    pub(crate) fn close(&mut self, at: Nanos) {
        self.now = self.now.max(at);
    }

    /// Adds to what is missing, once.
    fn miss(&mut self, line: String) {
        if !self.missing.contains(&line) {
            self.missing.push(line);
        }
    }

    /// A series, where anything was ever looked for.
    pub(crate) fn of(&self, of: Of, quantity: Quantity) -> Option<&Series> {
        self.series.get(&(of, quantity))
    }

    /// All series.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Of, Quantity, &Series)> {
        self.series.iter().map(|((of, quantity), series)| (*of, *quantity, series))
    }

    /// What the last look found.
    pub(crate) fn last(&self, of: Of, quantity: Quantity) -> Option<f64> {
        self.of(of, quantity)?.last()
    }

    /// The last values of a quantity, a look each; of the accept queue the longest of each.
    pub(crate) fn plotted(&self, quantity: Quantity) -> Vec<Option<f64>> {
        self.plots.get(&quantity).map(|plot| plot.iter().copied().collect()).unwrap_or_default()
    }

    /// Every process that was seen, by its id.
    pub(crate) fn processes(&self) -> &BTreeMap<u32, Process> {
        &self.processes
    }

    /// A process's part of the whole, by the means or by the last look.
    pub(crate) fn share(&self, pid: u32, quantity: Quantity, by: fn(&Series) -> Option<f64>) -> Option<f64> {
        let of = |of| self.of(of, quantity).and_then(by);
        let whole: f64 = self.processes.keys().filter_map(|pid| of(Of::Process(*pid))).sum();
        of(Of::Process(pid)).filter(|_| whole > 0.0).map(|part| part / whole)
    }

    /// The longest accept queue that is allowed.
    pub(crate) fn queue_limit(&self) -> Option<u32> {
        self.queue_limit
    }

    /// What the server can process at once, as it says.
    pub(crate) fn slots(&self) -> Option<u32> {
        self.slots
    }

    /// What could not be read, a line each.
    pub(crate) fn missing(&self) -> Vec<String> {
        let failure = self.stats_failure.iter().map(|why| format!("busy slots: {why}"));
        self.missing.iter().cloned().chain(failure).collect()
    }

    /// Looks at the queue, and at all the rest.
    pub(crate) fn looks(&self) -> (u64, u64) {
        self.looks
    }

    /// CPU time that our own looks took.
    pub(crate) fn cpu(&self) -> Nanos {
        self.cpu + self.polling_cpu
    }

    /// When the last observation was made.
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// When the server was found to have ended.
    pub(crate) fn ended(&self) -> Option<Nanos> {
        self.ended
    }
}

/// Why statistics are not taken.
const ANOTHER: &str = "the control server is another server's: none of its workers is among the processes";

/// What a worker says of itself.
type Said = fn(&WorkerStats) -> Option<u32>;

/// A process's counter and how much one of it is.
fn counter(member: &Member, quantity: Quantity) -> Option<(u64, f64)> {
    match quantity {
        Quantity::Cpu => member.used.map(|used| (used.cpu, 1e-9)),
        Quantity::RunQueueWait => member.used.map(|used| (used.run_queue, 1e-9)),
        Quantity::Voluntary => member.switches.map(|switches| (switches.voluntary, 1.0)),
        Quantity::Involuntary => member.switches.map(|switches| (switches.involuntary, 1.0)),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::watch::sampler::Connections;
    use probe::family::Switches;
    use probe::processes::Used;
    use probe::sockets::AcceptQueue;

    /// A worker that has used so many tenths of a second of CPU.
    pub(crate) fn member(pid: u32, tenths: u64, connections: Option<u32>) -> Member {
        let nanos = tenths * 100_000_000;
        Member {
            pid,
            parent: Some(10),
            title: format!("puma: cluster worker {}: 10 [app]", pid - 11),
            used: Some(Used { cpu: nanos, run_queue: nanos / 10, threads: 8 }),
            switches: Some(Switches { voluntary: tenths * 100, involuntary: tenths }),
            memory_bytes: Some(40 << 20),
            connections,
        }
    }

    pub(crate) fn look(seconds: u64, members: Vec<Member>) -> Seen {
        let open = 12 + seconds as u32;
        Seen::All(Box::new(Look {
            at: Nanos::from_secs(seconds),
            connections: Some(Connections { open, accepted: 10, unread: Some(2) }),
            members,
            host: Host::default(),
            missing: Vec::new(),
            cpu: Nanos::from_millis(2),
        }))
    }

    pub(crate) fn queue(millis: u64, length: u32) -> Seen {
        Seen::Queue { at: Nanos::from_millis(millis), queue: Some(AcceptQueue { length, limit: Some(1024) }) }
    }

    pub(crate) fn stats(seconds: u64) -> Seen {
        let text = r#"{"workers":2,"worker_status":[
            {"pid":11,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
             "last_status":{"backlog":0,"running":5,"pool_capacity":0,"max_threads":5}},
            {"pid":12,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
             "last_status":{"backlog":1,"running":5,"pool_capacity":2,"max_threads":5}}]}"#;
        let stats = probe::puma_stats::parse(text).map_err(|error| error.to_string());
        let at = Nanos::from_secs(seconds);
        Seen::Stats { at, wall: Nanos::from_secs(60) + at, cpu: Nanos(0), stats }
    }

    fn mean(board: &Board, of: Of, quantity: Quantity) -> Option<f64> {
        board.of(of, quantity).and_then(Series::mean)
    }

    #[test]
    fn workers_are_the_whole() {
        let mut board = Board::default();
        board.take(look(0, vec![member(11, 3, Some(6)), member(12, 0, Some(4))]));
        assert_eq!(board.last(Of::All, Quantity::Cpu), None, "one look tells no rate");
        board.take(look(1, vec![member(11, 8, Some(6)), member(12, 1, Some(4))]));
        board.take(look(3, vec![member(11, 9, Some(7)), member(12, 1, Some(2))]));
        for quantity in [Quantity::Cpu, Quantity::RunQueueWait, Quantity::Voluntary, Quantity::Involuntary] {
            let parts: Vec<Option<f64>> = [11, 12].map(|pid| mean(&board, Of::Process(pid), quantity)).to_vec();
            let sum: f64 = parts.iter().flatten().sum();
            assert!((sum - mean(&board, Of::All, quantity).unwrap()).abs() < 1e-12, "{quantity}: {parts:?}");
        }
        // 0.7 s of CPU in 3 s.
        assert!((mean(&board, Of::All, Quantity::Cpu).unwrap() - 0.7 / 3.0).abs() < 1e-12);
        assert_eq!(board.last(Of::All, Quantity::Elsewhere), Some(1.0), "10 accepted, 7 and 2 of them seen");
        assert_eq!(board.last(Of::All, Quantity::Threads), Some(16.0));
        let share = board.share(11, Quantity::Cpu, Series::mean).unwrap();
        assert!((share - 6.0 / 7.0).abs() < 1e-12, "{share}");
    }

    #[test]
    fn a_worker_that_goes_leaves_its_figures_and_nothing_of_now() {
        let mut board = Board::default();
        board.take(look(0, vec![member(11, 0, Some(6)), member(12, 0, Some(4))]));
        board.take(look(1, vec![member(11, 5, Some(6)), member(12, 2, Some(4))]));
        board.take(look(2, vec![member(11, 9, Some(6)), member(13, 0, Some(4))]));
        assert_eq!(board.last(Of::Process(12), Quantity::Cpu), None);
        assert_eq!(mean(&board, Of::Process(12), Quantity::Cpu), Some(0.2));
        assert!(!board.processes()[&12].is_there && board.processes()[&13].is_there);
        assert_eq!(board.processes()[&13].first_seen, Nanos::from_secs(2));
        assert_eq!(board.of(Of::Process(13), Quantity::Cpu).and_then(Series::last), None, "from its second look on");
        assert!((board.last(Of::All, Quantity::Cpu).unwrap() - 0.4).abs() < 1e-12, "of whom both looks saw");
    }

    #[test]
    fn what_is_absent_is_no_zero() {
        let mut board = Board::default();
        let blind = Member { used: None, switches: None, connections: None, ..member(11, 0, None) };
        board.take(look(0, vec![blind.clone()]));
        board.take(look(1, vec![blind]));
        for quantity in
            [Quantity::Cpu, Quantity::Voluntary, Quantity::Threads, Quantity::Elsewhere, Quantity::Overflows]
        {
            assert_eq!(board.last(Of::All, quantity), None, "{quantity}");
            assert_eq!(mean(&board, Of::All, quantity), None, "{quantity}");
        }
        assert_eq!(board.share(11, Quantity::Cpu, Series::mean), None);
        board.take(look(2, Vec::new()));
        assert_eq!(board.last(Of::All, Quantity::Threads), None, "no process is seen, which is not no thread");
    }

    #[test]
    fn busy_slots_are_as_old_as_the_server_says() {
        let mut board = Board::default();
        board.take(stats(2));
        assert_eq!(board.last(Of::All, Quantity::Busy), Some(8.0));
        assert_eq!((board.last(Of::Process(11), Quantity::Busy), board.slots()), (Some(5.0), Some(10)));
        let two = Nanos::from_secs(2);
        assert_eq!(board.of(Of::All, Quantity::Busy).and_then(Series::staleness), Some((two, two)));
        board.take(Seen::Stats {
            at: Nanos::from_secs(3),
            wall: Nanos::from_secs(63),
            cpu: Nanos(0),
            stats: Err("no answer".to_owned()),
        });
        assert_eq!((board.last(Of::All, Quantity::Busy), board.last(Of::Process(11), Quantity::Busy)), (None, None));
        assert_eq!(board.missing(), ["busy slots: no answer"]);
    }

    #[test]
    fn another_servers_statistics_are_not_taken() {
        let mut board = Board::default();
        board.take(look(0, vec![member(21, 0, None), member(22, 0, None)]));
        board.take(stats(2));
        assert_eq!((board.last(Of::All, Quantity::Busy), board.slots()), (None, None));
        assert_eq!(board.missing(), [format!("busy slots: {ANOTHER}")]);
        board.take(look(1, vec![member(11, 0, None)]));
        board.take(stats(3));
        assert_eq!(board.last(Of::All, Quantity::Busy), Some(8.0));
        assert!(board.missing().is_empty());
    }

    #[test]
    fn in_single_mode_the_slots_are_the_only_processs() {
        let text = r#"{"backlog":0,"running":5,"pool_capacity":2,"max_threads":5}"#;
        let poll = || Seen::Stats {
            at: Nanos::from_secs(1),
            wall: Nanos::from_secs(61),
            cpu: Nanos(0),
            stats: probe::puma_stats::parse(text).map_err(|error| error.to_string()),
        };
        let mut board = Board::default();
        board.take(poll());
        board.take(look(0, vec![member(11, 0, None)]));
        board.take(poll());
        assert_eq!(
            (board.last(Of::All, Quantity::Busy), board.last(Of::Process(11), Quantity::Busy)),
            (Some(3.0), Some(3.0))
        );
        board.take(look(1, vec![member(11, 0, None), member(12, 0, None)]));
        board.take(poll());
        assert_eq!(board.last(Of::Process(12), Quantity::Busy), None, "whose they are is not known");
    }

    #[test]
    fn of_many_that_ended_the_last_are_kept() {
        let mut board = Board::default();
        for n in 0..100 {
            board.take(look(n, vec![member(11 + n as u32, 0, None)]));
        }
        assert_eq!(board.processes().len(), MOST_GONE + 1);
        assert!(board.processes()[&110].is_there && board.processes().contains_key(&109));
        assert!(board.of(Of::Process(11), Quantity::Memory).is_none());
        assert_eq!(board.missing().len(), 1);
    }

    #[test]
    fn a_plot_has_the_longest_queue_of_each_look() {
        let mut board = Board::default();
        for (millis, length) in [(0, 1), (50, 7), (100, 2)] {
            board.take(queue(millis, length));
        }
        board.take(look(1, Vec::new()));
        board.take(look(2, Vec::new()));
        assert_eq!(board.plotted(Quantity::AcceptQueue), [Some(7.0), None]);
        assert_eq!((board.queue_limit(), board.looks()), (Some(1024), (3, 2)));
    }
}
