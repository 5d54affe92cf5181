//! Follows the processes of a server while workers come and go; and reads the CPU time of this
//! process.
//!
//! Of each process it reads the time on a CPU, the time waiting for one, and the threads; if
//! details are wanted also the title (`/proc/PID/cmdline`) and resident memory (`/proc/PID/statm`).
//! `/proc/PID/schedstat` covers the main thread alone, so those of all threads are added:
//! `/proc/PID/task/TID/schedstat` has ns on a CPU, ns on a run queue, and time slices
//! (Documentation/scheduler/sched-stats.rst). Threads that ended between two samples are missing
//! there (some servers start a thread for each connection). `/proc/PID/stat` includes their CPU
//! time, in ticks (mostly 10 ms), and is used where it shows more. It also has the CPU time of
//! children that have ended: an app may run a command for each request, too short to be found.
//! Which of the server's connections it holds is in `/proc/PID/fd`, which root and its own user may
//! read; any user may read the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use model::Nanos;
use proctree::ProcessStat;
pub use proctree::tree;
use rustix::time::{ClockId, clock_gettime};

use crate::owners;
use crate::sockets::KernelSocket;

/// The most bytes of a title that are kept.
const LONGEST_TITLE: usize = 200;

/// CPU time of the calling thread so far.
pub fn this_threads_cpu() -> Nanos {
    time_of(ClockId::ThreadCPUTime)
}

/// CPU time of this process so far, with threads that have ended.
pub fn this_process_cpu() -> Nanos {
    time_of(ClockId::ProcessCPUTime)
}

/// How long ago a process started. `started`: in ticks since the machine's boot.
pub(crate) fn time_since_start(started: u64) -> Nanos {
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    let started = Nanos::from_secs_f64(started as f64 / ticks_per_second);
    time_of(ClockId::Boottime).saturating_sub(started)
}

/// The reading of one of the kernel's clocks.
fn time_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos::from_secs(time.tv_sec.cast_unsigned()) + Nanos(time.tv_nsec.cast_unsigned())
}

/// Resident memory of a process and its descendants, with shared pages counted once: the sum of the
/// proportional set sizes (PSS). Absent if the kernel does not give it for all of them.
pub fn memory_of_tree(root: u32) -> Option<u64> {
    let all = proctree::descendants(root);
    all.iter().map(|process| process.pid).chain([root]).map(proportional_set_size).sum()
}

fn proportional_set_size(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The CPU time of a process's threads since the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuShare {
    /// On a CPU, in ns.
    pub cpu: u64,
    /// The same of child processes that have ended (a shell command, for instance), without what
    /// was counted while they were followed.
    pub children: u64,
    /// Ready to run but waiting for a CPU, in ns.
    pub run_queue: u64,
    /// The threads that it has now.
    pub threads: u64,
}

/// One sample of a process. What could not be read, or was not asked for, is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSample {
    /// Its id.
    pub pid: u32,
    /// What it calls itself: its command line, or its name.
    pub title: String,
    /// CPU time and run-queue wait since it was first sampled, or started, and its threads.
    pub used: Option<CpuShare>,
    /// Resident memory; shared pages count in each process.
    pub memory_bytes: Option<u64>,
    /// How many of the server's accepted connections it holds; one that several processes hold
    /// counts for the first.
    pub connections: Option<u32>,
    /// How many of those have a request without a response; `None` if the kernel does not tell.
    pub requests_out: Option<u32>,
}

/// The connections that a server has accepted, by their inodes.
#[derive(Clone, Debug, Default)]
pub struct AcceptedConnections {
    /// All of them.
    pub all: BTreeSet<u64>,
    /// Those with a request without a response; `None` if the kernel does not tell.
    pub out: Option<BTreeSet<u64>>,
}

impl AcceptedConnections {
    /// The accepted connections among a server's sockets.
    pub fn of(sockets: &[KernelSocket]) -> AcceptedConnections {
        let accepted = || sockets.iter().filter(|socket| socket.is_accepted());
        let is_told = accepted().all(|socket| socket.last_word.is_some());
        let out = accepted().filter(|socket| socket.has_request_out());
        AcceptedConnections {
            all: accepted().map(|socket| socket.inode).collect(),
            out: is_told.then(|| out.map(|socket| socket.inode).collect()),
        }
    }

    /// Takes out those that a process holds, so that no other process counts them; `None` if this
    /// user may not see that.
    fn claim(&mut self, pid: u32) -> Option<HeldConnections> {
        let held = owners::sockets_of(pid).ok()?;
        let take = |of: &mut BTreeSet<u64>| {
            let before = of.len();
            of.retain(|inode| !held.contains(inode));
            (before - of.len()) as u32
        };
        Some(HeldConnections { all: take(&mut self.all), out: self.out.as_mut().map(take) })
    }
}

/// How many of a server's connections a process holds.
#[derive(Clone, Copy, Debug)]
struct HeldConnections {
    all: u32,
    out: Option<u32>,
}

/// A server's processes.
#[derive(Debug)]
pub struct ServerProcesses {
    roots: Vec<ProcessStat>,
    /// Whether longtail started them: then all their descendants are the server's.
    are_ours: bool,
    followed: BTreeMap<u32, FollowedProcess>,
    left_out: usize,
    has_searched: bool,
}

#[derive(Debug, Default)]
struct FollowedProcess {
    /// When it started. A process id is used again; with the start it is unique. Unknown until the
    /// first sample.
    started: Option<u64>,
    cpu: ThreadCounters,
    /// The CPU time of the process at the first sample, in ticks; 0 if it started later.
    ticks_before: Option<u64>,
    children: EndedChildren,
    /// As of the last sample.
    last: Option<ProcessUse>,
}

/// All CPU time that a process used.
#[derive(Clone, Copy, Debug)]
struct ProcessUse {
    /// Whose child it is.
    parent: u32,
    /// Its own ticks, and those of its ended children.
    ticks: u64,
}

/// The CPU time of a process's ended children (`cutime` and `cstime` of `/proc/PID/stat`), in ticks,
/// since the first sample. A child that was followed has been counted already up to its last sample.
#[derive(Debug, Default)]
struct EndedChildren {
    /// At the last sample; unknown before the first.
    before: Option<u64>,
    /// CPU time of followed children that have ended: it was counted while they were followed, and
    /// has yet to appear in the counter.
    counted_already: u64,
    sum: u64,
}

impl EndedChildren {
    /// The sum, with the counter `now`.
    fn take(&mut self, now: u64) -> u64 {
        let grown = now.saturating_sub(self.before.replace(now).unwrap_or(now));
        let known = grown.min(self.counted_already);
        self.counted_already -= known;
        self.sum += grown - known;
        self.sum
    }
}

impl FollowedProcess {
    /// A process that started after the first sample: all that it used counts.
    fn newborn() -> FollowedProcess {
        FollowedProcess {
            started: None,
            cpu: ThreadCounters { begun: true, ..ThreadCounters::default() },
            ticks_before: Some(0),
            children: EndedChildren { before: Some(0), ..EndedChildren::default() },
            last: None,
        }
    }

    /// Whether it still lives, and no other process has its id.
    fn still_lives(&self, pid: u32) -> bool {
        let is_same = |stat: ProcessStat| self.started.is_none_or(|it| it == stat.started);
        living(pid).is_some_and(is_same)
    }

    /// A sample of it, which has these figures now.
    fn sample(
        &mut self,
        pid: u32,
        stat: &ProcessStat,
        held: Option<HeldConnections>,
        has_details: bool,
    ) -> ProcessSample {
        self.started = Some(stat.started);
        let before = *self.ticks_before.get_or_insert(stat.cpu_ticks);
        let ticks = stat.cpu_ticks.saturating_sub(before);
        let children = ticks_in_ns(self.children.take(stat.children_ticks));
        self.last =
            Some(ProcessUse { parent: stat.parent, ticks: stat.cpu_ticks + stat.children_ticks });
        let used = self.cpu.take(each_thread(pid));
        let threads = self.cpu.threads.len() as u64;
        let used = used.map(|[of_threads, run_queue]| {
            let cpu = of_threads.max(certain_time(ticks));
            CpuShare { cpu, children, run_queue, threads }
        });
        let plain = ProcessSample {
            pid,
            used,
            connections: held.map(|held| held.all),
            requests_out: held.and_then(|held| held.out),
            ..ProcessSample::default()
        };
        if !has_details {
            return plain;
        }
        ProcessSample {
            title: title(pid, &stat.name),
            memory_bytes: resident_pages(pid)
                .map(|pages| pages * rustix::param::page_size() as u64),
            ..plain
        }
    }
}

impl ServerProcesses {
    /// Follows the trees of these processes, without longtail and its children: if one shell
    /// started both, what is ours is not the server's.
    pub fn of(roots: &[u32]) -> ServerProcesses {
        let mut all = ServerProcesses {
            roots: Vec::new(),
            are_ours: false,
            followed: BTreeMap::new(),
            left_out: 0,
            has_searched: false,
        };
        all.re_root(roots);
        all
    }

    /// Follows the trees of these processes from now on. A process that was followed already keeps
    /// its counts.
    pub(crate) fn re_root(&mut self, roots: &[u32]) {
        let own = std::process::id();
        let ours = tree(own);
        self.are_ours = roots.contains(&own) || roots.iter().all(|root| ours.contains(root));
        self.roots = roots.iter().filter_map(|pid| living(*pid)).collect();
    }

    /// Whether any process was found.
    pub(crate) fn is_known(&self) -> bool {
        !self.roots.is_empty()
    }

    /// Whether one of its first processes still lives. A later process with the same id does not
    /// count.
    pub(crate) fn is_alive(&self) -> bool {
        self.roots.iter().any(still_lives)
    }

    /// The age of the oldest of its first processes.
    pub(crate) fn age(&self) -> Option<Nanos> {
        self.roots.iter().map(|root| root.started).min().map(time_since_start)
    }

    /// How many of its processes are not followed because there are too many.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Searches for all processes that live now, at most `most`. One that started since the last
    /// search is followed from its start.
    pub fn search(&mut self, most: usize) {
        let roots = self.roots.iter().filter(|root| still_lives(root));
        let mut pids: BTreeSet<u32> = roots.flat_map(|root| tree(root.pid)).collect();
        if !self.are_ours {
            let ours = tree(std::process::id());
            pids.retain(|pid| !ours.contains(pid));
        }
        self.left_out = pids.len().saturating_sub(most);
        let (followed, ended): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.followed).into_iter().partition(|(pid, _)| pids.contains(pid));
        self.followed = followed;
        self.credit_to_parents(ended.into_values().filter_map(|process| process.last).collect());
        let new = || {
            if self.has_searched { FollowedProcess::newborn() } else { FollowedProcess::default() }
        };
        for pid in pids.into_iter().take(most) {
            self.followed.entry(pid).or_insert_with(new);
        }
        self.has_searched = true;
    }

    /// Tells parents what children of theirs used that were followed and have ended. A parent's own
    /// count of its ended children will hold it too, or does already.
    fn credit_to_parents(&mut self, ended: Vec<ProcessUse>) {
        for ended in ended {
            if let Some(parent) = self.followed.get_mut(&ended.parent) {
                parent.children.counted_already += ended.ticks;
            }
        }
    }

    /// Samples all that live now, by id. `accepted` are the server's connections.
    pub fn sample(
        &mut self,
        accepted: Option<&AcceptedConnections>,
        has_details: bool,
    ) -> Vec<ProcessSample> {
        // This comes first because connections come and go.
        let mut unclaimed = accepted.cloned();
        let held: Vec<Option<HeldConnections>> = self
            .followed
            .keys()
            .map(|pid| unclaimed.as_mut().and_then(|unclaimed| unclaimed.claim(*pid)))
            .collect();
        let stats: Vec<Option<ProcessStat>> =
            self.followed.keys().map(|pid| living(*pid)).collect();
        // One that has ended may be in its parent's figures that were just read, so it is looked for
        // afterwards, and its parent is told first.
        let mut ended = Vec::new();
        let mut live = BTreeSet::new();
        for (pid, followed) in &mut self.followed {
            if followed.still_lives(*pid) {
                live.insert(*pid);
            } else {
                ended.extend(followed.last.take());
                *followed = FollowedProcess::newborn();
            }
        }
        self.credit_to_parents(ended);
        let samples = self.followed.iter_mut().zip(stats).zip(held);
        samples
            .filter(|(((pid, _), _), _)| live.contains(pid))
            .filter_map(|(((pid, followed), stat), held)| {
                Some(followed.sample(*pid, &stat?, held, has_details))
            })
            .collect()
    }
}

/// The CPU time, in ns, that was certainly used between two readings which differ by this many ticks:
/// both are rounded down.
fn certain_time(ticks: u64) -> u64 {
    ticks_in_ns(ticks.saturating_sub(1))
}

fn ticks_in_ns(ticks: u64) -> u64 {
    ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// `None` if there is no such process, or only a zombie.
fn living(pid: u32) -> Option<ProcessStat> {
    ProcessStat::of(pid).filter(|process| !process.is_dead)
}

fn still_lives(known: &ProcessStat) -> bool {
    living(known.pid).is_some_and(|now| now.started == known.started)
}

/// Its command line in one line, or its name if it has none.
pub(crate) fn title(pid: u32, name: &str) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let line = if line.trim_matches('\0').is_empty() { name } else { &line };
    // Control characters would move the cursor of a terminal.
    let plain: String =
        line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_TITLE).collect();
    plain.trim_end().to_owned()
}

/// The second word of `/proc/PID/statm`.
fn resident_pages(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Two counters of each thread of a process, summed up since the first sample, or since its start
/// if it started later (`begun`). The sums never fall: of a thread that ends, the counts of the
/// last sample stay.
#[derive(Debug, Default)]
struct ThreadCounters {
    threads: BTreeMap<u32, [u64; 2]>,
    sum: [u64; 2],
    begun: bool,
}

impl ThreadCounters {
    /// The sums, with the threads' counters `now`; `None` if there are no threads.
    fn take(&mut self, now: BTreeMap<u32, [u64; 2]>) -> Option<[u64; 2]> {
        if now.is_empty() {
            return None;
        }
        if self.begun {
            for (thread, counts) in &now {
                // A thread that is new, or has the id of an ended one, began at 0.
                let before = match self.threads.get(thread) {
                    Some(before)
                        if before.iter().zip(counts).all(|(before, now)| before <= now) =>
                    {
                        *before
                    }
                    _ => [0; 2],
                };
                for ((sum, now), before) in self.sum.iter_mut().zip(counts).zip(before) {
                    *sum += now - before;
                }
            }
        }
        self.begun = true;
        self.threads = now;
        Some(self.sum)
    }
}

/// The `schedstat` of each thread of a process. A thread that is just ending is left out.
fn each_thread(pid: u32) -> BTreeMap<u32, [u64; 2]> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread = |entry: fs::DirEntry| {
        let thread = entry.file_name().to_str()?.parse().ok()?;
        Some((thread, schedstat(&fs::read_to_string(entry.path().join("schedstat")).ok()?)?))
    };
    entries.filter_map(of_thread).collect()
}

fn schedstat(text: &str) -> Option<[u64; 2]> {
    let mut figures = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some([figures.next()??, figures.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    #[test]
    fn threads_that_come_and_go_leave_what_they_used() {
        let threads = |figures: &[(u32, u64, u64)]| {
            figures.iter().map(|(thread, a, b)| (*thread, [*a, *b])).collect()
        };
        let mut counters = ThreadCounters::default();
        assert_eq!(
            counters.take(threads(&[(1, 100, 10), (2, 50, 5)])),
            Some([0, 0]),
            "before the first sample"
        );
        assert_eq!(counters.take(threads(&[(1, 110, 10), (2, 70, 9)])), Some([30, 4]));
        // 2 has ended, 3 is new.
        assert_eq!(counters.take(threads(&[(1, 110, 10), (3, 5, 1)])), Some([35, 5]));
        // Another thread 3.
        assert_eq!(counters.take(threads(&[(1, 111, 10), (3, 2, 1)])), Some([38, 6]));
        assert_eq!(counters.take(threads(&[])), None, "it is gone: absent, not 0");
        let mut newborn = FollowedProcess::newborn().cpu;
        assert_eq!(newborn.take(threads(&[(1, 100, 10)])), Some([100, 10]), "all counts");
        assert_eq!(newborn.take(threads(&[(1, 110, 10), (2, 5, 1)])), Some([115, 11]));
    }

    #[test]
    fn what_a_thread_used_that_ended_between_two_samples_is_counted() {
        let this = std::process::id();
        let mut processes = ServerProcesses::of(&[this]);
        processes.search(usize::MAX);
        let mut cpu = || {
            let samples = processes.sample(None, false);
            Nanos(samples.iter().find(|process| process.pid == this).unwrap().used.unwrap().cpu)
        };
        let before = cpu();
        let used = Nanos::from_millis(200);
        std::thread::spawn(move || while this_threads_cpu() < used {}).join().unwrap();
        // Two readings in ticks of 10 ms.
        assert!(cpu() >= before + used - Nanos::from_millis(30), "{before:?}");
    }

    #[test]
    fn a_child_that_ended_is_counted_once() {
        let mut children = EndedChildren::default();
        assert_eq!(children.take(100), 0, "before the first sample");
        assert_eq!(children.take(130), 30);
        // One that was followed, and of which 50 were counted, ends with 70; its parent waits late.
        children.counted_already += 50;
        assert_eq!(children.take(130), 30);
        assert_eq!(children.take(200), 50);
        assert_eq!(children.take(210), 60);

        // A real one that nobody followed.
        let this = std::process::id();
        let mut processes = ServerProcesses::of(&[this]);
        let mut children = |is_search: bool| {
            if is_search {
                processes.search(usize::MAX);
            }
            let samples = processes.sample(None, false);
            samples.iter().find(|process| process.pid == this).unwrap().used.unwrap().children
        };
        assert_eq!(children(true), 0);
        let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        Command::new("sh").args(["-c", script]).status().unwrap();
        assert!(children(false) > 0);
    }

    #[test]
    fn a_new_process_is_followed_and_an_ended_one_is_absent() {
        let mut all = ServerProcesses::of(&[std::process::id()]);
        let mut pids = || {
            all.search(usize::MAX);
            all.sample(None, false).iter().map(|process| process.pid).collect::<Vec<_>>()
        };
        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let server = ServerProcesses::of(&[child.id()]);
        assert!(
            pids().contains(&child.id())
                && server.is_alive()
                && memory_of_tree(child.id()) > Some(0)
        );
        child.kill().unwrap();
        // A zombie until it is waited for; then nothing.
        while server.is_alive() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(
            !server.is_alive()
                && !pids().contains(&child.id())
                && !ServerProcesses::of(&[]).is_alive()
        );
        assert_eq!(memory_of_tree(child.id()), None);
    }

    #[test]
    fn connections_are_found_with_their_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _clients = [(); 3].map(|()| TcpStream::connect(address).unwrap());
        let _accepted = [(); 2].map(|()| listener.accept().unwrap());
        let all = crate::sockets::ServerListener::of_port(address.port()).all().unwrap();
        let accepted = AcceptedConnections::of(&all);
        let mut processes = ServerProcesses::of(&[std::process::id()]);
        processes.search(usize::MAX);
        let samples = processes.sample(Some(&accepted), true);
        let this = samples.iter().find(|process| process.pid == std::process::id()).unwrap();
        assert_eq!((accepted.all.len(), this.connections, processes.left_out()), (2, Some(2), 0));
        assert!(this.memory_bytes.is_some_and(|bytes| bytes > 0) && !this.title.is_empty());
    }
}
