//! What a server's processes have of the machine: time on a CPU and waits for one, memory, threads.
//!
//! `/proc/PID/schedstat` is of the main thread alone, so the threads' are summed up: `/proc/PID/task/TID/schedstat` has ns on
//! a CPU, ns on a run queue, and time slices (Documentation/scheduler/sched-stats.rst). Everybody may read it.

use std::collections::BTreeMap;
use std::fs;

use model::Nanos;
pub use proctree::tree;
use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread so far.
pub fn this_threads_cpu() -> Nanos {
    time_of(ClockId::ThreadCPUTime)
}

/// CPU time of this process so far, of threads that have ended too.
pub fn this_process_cpu() -> Nanos {
    time_of(ClockId::ProcessCPUTime)
}

/// What one of the kernel's clocks shows.
pub(crate) fn time_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos::from_secs(time.tv_sec.cast_unsigned()) + Nanos(time.tv_nsec.cast_unsigned())
}

/// Counters of a tree of processes at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeUse {
    /// Time on a CPU so far, in user and kernel mode, of all that live and of their children that were waited for. In
    /// steps of the kernel's tick, 10 ms.
    pub cpu: Option<Nanos>,
    /// Resident memory, what is shared counted once: the sum of the proportional set sizes (PSS).
    pub memory_bytes: Option<u64>,
}

/// What the process and its descendants have taken so far; absent where the kernel does not say it of all of them.
pub fn use_of_tree(root: u32) -> TreeUse {
    let Some(first) = proctree::ProcessStat::of(root) else { return TreeUse::default() };
    let all: Vec<_> = proctree::descendants(root).into_iter().chain([first]).collect();
    let ticks: u64 = all.iter().map(|process| process.cpu_ticks + process.waited_ticks).sum();
    let per_second = rustix::param::clock_ticks_per_second();
    TreeUse {
        cpu: Some(Nanos::from_secs_f64(ticks as f64 / per_second as f64)),
        memory_bytes: all.iter().map(|process| proportional_set_size(process.pid)).sum(),
    }
}

fn proportional_set_size(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// What a process's threads had of the CPU since the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuShare {
    /// On a CPU, in ns.
    pub cpu: u64,
    /// Ready to run, and waiting for a CPU, in ns.
    pub run_queue: u64,
    /// Threads that it has now.
    pub threads: u64,
}

/// Follows one process. Its sums never fall: a thread that ends leaves what it had at the last sample.
#[derive(Debug)]
pub struct ProcessFollower {
    pid: u32,
    counters: ThreadCounters<2>,
}

impl ProcessFollower {
    /// Follows the process `pid` from the first look on.
    pub fn of(pid: u32) -> ProcessFollower {
        ProcessFollower { pid, counters: ThreadCounters::default() }
    }

    /// Follows the process `pid`, which was born meanwhile: all that it has used counts.
    pub(crate) fn of_newborn(pid: u32) -> ProcessFollower {
        ProcessFollower { pid, counters: ThreadCounters { begun: true, ..ThreadCounters::default() } }
    }

    /// Whom it follows.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it used up to now; `None` where it is gone or the kernel does not count.
    pub fn sample(&mut self) -> Option<CpuShare> {
        let [cpu, run_queue] = self.counters.take(each_thread(self.pid, "schedstat", schedstat))?;
        Some(CpuShare { cpu, run_queue, threads: self.counters.threads.len() as u64 })
    }
}

/// Counters that each thread of a process has, summed up from the first look on. The sums never fall.
#[derive(Debug)]
pub(crate) struct ThreadCounters<const N: usize> {
    threads: BTreeMap<u32, [u64; N]>,
    sum: [u64; N],
    begun: bool,
}

impl<const N: usize> Default for ThreadCounters<N> {
    fn default() -> Self {
        ThreadCounters { threads: BTreeMap::new(), sum: [0; N], begun: false }
    }
}

impl<const N: usize> ThreadCounters<N> {
    /// The sums with what the threads have `now`; `None` where there are none.
    pub(crate) fn take(&mut self, now: BTreeMap<u32, [u64; N]>) -> Option<[u64; N]> {
        if now.is_empty() {
            return None;
        }
        if self.begun {
            for (thread, counts) in &now {
                // A thread that was not there, or a later one of the same number, began at 0.
                let before = match self.threads.get(thread) {
                    Some(before) if before.iter().zip(counts).all(|(before, now)| before <= now) => *before,
                    _ => [0; N],
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

/// What a file of each thread of a process says. One that ends meanwhile is left out.
pub(crate) fn each_thread<T>(pid: u32, file: &str, read: fn(&str) -> Option<T>) -> BTreeMap<u32, T> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread = |entry: fs::DirEntry| {
        let thread = entry.file_name().to_str()?.parse().ok()?;
        Some((thread, read(&fs::read_to_string(entry.path().join(file)).ok()?)?))
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
    use std::process::{Command, Stdio};

    #[test]
    fn threads_that_come_and_go_leave_what_they_used() {
        let threads = |figures: &[(u32, u64, u64)]| figures.iter().map(|(thread, a, b)| (*thread, [*a, *b])).collect();
        let mut counters = ThreadCounters::default();
        assert_eq!(counters.take(threads(&[(1, 100, 10), (2, 50, 5)])), Some([0, 0]), "before the first sample");
        assert_eq!(counters.take(threads(&[(1, 110, 10), (2, 70, 9)])), Some([30, 4]));
        // 2 has ended, 3 is new.
        assert_eq!(counters.take(threads(&[(1, 110, 10), (3, 5, 1)])), Some([35, 5]));
        // Another thread 3.
        assert_eq!(counters.take(threads(&[(1, 111, 10), (3, 2, 1)])), Some([38, 6]));
        assert_eq!(counters.take(threads(&[])), None, "it is gone: absent, not 0");
        let mut newborn = ProcessFollower::of_newborn(1).counters;
        assert_eq!(newborn.take(threads(&[(1, 100, 10)])), Some([100, 10]), "all counts");
        assert_eq!(newborn.take(threads(&[(1, 110, 10), (2, 5, 1)])), Some([115, 11]));
    }

    #[test]
    fn this_process_uses_cpu() {
        let mut follower = ProcessFollower::of(std::process::id());
        assert_eq!(follower.sample().unwrap().cpu, 0);
        // The kernel adds up at its ticks and whenever another thread gets the CPU.
        let used = (0..u64::MAX).find_map(|_| follower.sample().filter(|used| used.cpu > 0)).unwrap();
        assert!(used.threads >= 1, "{used:?}");
    }

    #[test]
    fn who_is_gone_says_nothing_and_not_0() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let used = use_of_tree(child.id());
        assert!(used.memory_bytes.is_some_and(|bytes| bytes > 0) && used.cpu.is_some(), "{used:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(use_of_tree(child.id()), TreeUse::default());
    }
}
