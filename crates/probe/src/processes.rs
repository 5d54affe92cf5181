//! A server's processes, and what their threads had of the CPU and waited for one.
//!
//! `/proc/PID/schedstat` is of the main thread alone, so the threads' are summed up: `/proc/PID/task/TID/schedstat` has ns on
//! a CPU, ns on a run queue, and time slices (Documentation/scheduler/sched-stats.rst). Everybody may read it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// A process and all that descend from it, by their ids, rising. Only itself where `/proc` does not tell.
pub fn tree(root: u32) -> Vec<u32> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if let Some(parent) = fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(parent) {
            parents.insert(pid, parent);
        }
    }
    let mut family = vec![root];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        family.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    family.sort_unstable();
    family
}

/// The fourth word of `/proc/PID/stat`; the second is a name in brackets that may hold blanks and brackets.
pub(crate) fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// CPU time of the calling thread so far.
pub fn this_threads_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos::from_secs(time.tv_sec.cast_unsigned()) + Nanos(time.tv_nsec.cast_unsigned())
}

/// CPU time of this process so far, of threads that have ended too.
pub fn this_process_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Nanos::from_secs(time.tv_sec.cast_unsigned()) + Nanos(time.tv_nsec.cast_unsigned())
}

/// What a process's threads had of the CPU since the first look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// On a CPU, in ns.
    pub cpu: u64,
    /// Ready to run, and waiting for a CPU, in ns.
    pub run_queue: u64,
    /// Threads that it has now.
    pub threads: u64,
}

/// Follows one process. Its sums never fall: a thread that ends leaves what it had at the last look.
#[derive(Debug)]
pub struct Follower {
    pid: u32,
    counters: Counters<2>,
}

impl Follower {
    /// Follows the process `pid` from the first look on.
    pub fn of(pid: u32) -> Follower {
        Follower { pid, counters: Counters::default() }
    }

    /// Follows the process `pid`, which was born meanwhile: all that it has used counts.
    pub fn of_newborn(pid: u32) -> Follower {
        Follower { pid, counters: Counters { begun: true, ..Counters::default() } }
    }

    /// Whom it follows.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it used up to now; `None` where it is gone or the kernel does not count.
    pub fn look(&mut self) -> Option<Used> {
        let folder = format!("/proc/{}/task", self.pid);
        let [cpu, run_queue] = self.counters.take(read(Path::new(&folder)))?;
        Some(Used { cpu, run_queue, threads: self.counters.threads() as u64 })
    }
}

/// Counters that each thread of a process has, summed up from the first look on. The sums never fall.
#[derive(Debug)]
pub(crate) struct Counters<const N: usize> {
    threads: BTreeMap<u32, [u64; N]>,
    sum: [u64; N],
    begun: bool,
}

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Counters { threads: BTreeMap::new(), sum: [0; N], begun: false }
    }
}

impl<const N: usize> Counters<N> {
    /// Threads at the last look.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

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

/// Each thread's two figures. One that ends meanwhile is left out.
fn read(folder: &Path) -> BTreeMap<u32, [u64; 2]> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let figures = entries.filter_map(|entry| {
        let thread = entry.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        Some((thread, schedstat(&text)?))
    });
    figures.collect()
}

fn schedstat(text: &str) -> Option<[u64; 2]> {
    let mut figures = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some([figures.next()??, figures.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(figures: &[(u32, u64, u64)]) -> BTreeMap<u32, [u64; 2]> {
        figures.iter().map(|(thread, cpu, queue)| (*thread, [*cpu, *queue])).collect()
    }

    #[test]
    fn threads_that_come_and_go_leave_what_they_used() {
        let mut counters = Counters::default();
        assert_eq!(counters.take(threads(&[(1, 100, 10), (2, 50, 5)])), Some([0, 0]), "before the first look");
        assert_eq!(counters.take(threads(&[(1, 110, 10), (2, 70, 9)])), Some([30, 4]));
        // 2 has ended, 3 is new.
        assert_eq!(counters.take(threads(&[(1, 110, 10), (3, 5, 1)])), Some([35, 5]));
        assert_eq!(counters.threads(), 2);
        // Another thread 3.
        assert_eq!(counters.take(threads(&[(1, 111, 10), (3, 2, 1)])), Some([38, 6]));
        assert_eq!(counters.take(threads(&[])), None, "it is gone: absent, not 0");
    }

    #[test]
    fn of_one_that_was_born_meanwhile_all_counts() {
        let mut counters = Follower::of_newborn(1).counters;
        assert_eq!(counters.take(BTreeMap::from([(1, [100, 10])])), Some([100, 10]));
        assert_eq!(counters.take(BTreeMap::from([(1, [110, 10]), (2, [5, 1])])), Some([115, 11]));
    }

    #[test]
    fn a_name_may_hold_anything() {
        assert_eq!(parent("12 (a) R 3 (x) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (puma: cluster worker 0: 11 [app]) S 11 1 1"), Some(11));
        assert_eq!(parent(""), None);
    }

    #[test]
    fn this_process_uses_cpu() {
        let mut follower = Follower::of(std::process::id());
        let first = follower.look().unwrap();
        assert_eq!(first.cpu, 0);
        // The kernel adds up at its ticks and whenever another thread gets the CPU.
        let used = (0..u64::MAX).find_map(|_| follower.look().filter(|used| used.cpu > 0)).unwrap();
        assert!(used.threads >= 1, "{used:?}");
    }

    #[test]
    fn a_child_is_of_the_family() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let family = tree(std::process::id());
        assert!(family.contains(&child.id()) && family.contains(&std::process::id()));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
