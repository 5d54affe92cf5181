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
    threads: BTreeMap<u32, (u64, u64)>,
    sum: Used,
    begun: bool,
}

impl Follower {
    /// Follows the process `pid` from the first look on.
    pub fn of(pid: u32) -> Follower {
        Follower { pid, threads: BTreeMap::new(), sum: Used::default(), begun: false }
    }

    /// Follows the process `pid`, which was born meanwhile: all that it has used counts.
    pub fn of_newborn(pid: u32) -> Follower {
        Follower { begun: true, ..Follower::of(pid) }
    }

    /// Whom it follows.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it used up to now; `None` where it is gone or the kernel does not count.
    pub fn look(&mut self) -> Option<Used> {
        let folder = format!("/proc/{}/task", self.pid);
        self.take(read(Path::new(&folder)))
    }

    fn take(&mut self, now: BTreeMap<u32, (u64, u64)>) -> Option<Used> {
        if now.is_empty() {
            return None;
        }
        if self.begun {
            for (thread, (cpu, run_queue)) in &now {
                // A thread that was not there, or a later one of the same number, began at 0.
                let (cpu_before, queue_before) = match self.threads.get(thread) {
                    Some(before) if before.0 <= *cpu && before.1 <= *run_queue => *before,
                    _ => (0, 0),
                };
                self.sum.cpu += cpu - cpu_before;
                self.sum.run_queue += run_queue - queue_before;
            }
        }
        self.begun = true;
        self.sum.threads = now.len() as u64;
        self.threads = now;
        Some(self.sum)
    }
}

/// Each thread's two figures. One that ends meanwhile is left out.
fn read(folder: &Path) -> BTreeMap<u32, (u64, u64)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let figures = entries.filter_map(|entry| {
        let thread = entry.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        Some((thread, schedstat(&text)?))
    });
    figures.collect()
}

fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut figures = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some((figures.next()??, figures.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(figures: &[(u32, u64, u64)]) -> BTreeMap<u32, (u64, u64)> {
        figures.iter().map(|(thread, cpu, queue)| (*thread, (*cpu, *queue))).collect()
    }

    #[test]
    fn threads_that_come_and_go_leave_what_they_used() {
        let mut follower = Follower::of(1);
        let used = |cpu, run_queue, threads| Some(Used { cpu, run_queue, threads });
        assert_eq!(follower.take(threads(&[(1, 100, 10), (2, 50, 5)])), used(0, 0, 2), "before the first look");
        assert_eq!(follower.take(threads(&[(1, 110, 10), (2, 70, 9)])), used(30, 4, 2));
        // 2 has ended, 3 is new.
        assert_eq!(follower.take(threads(&[(1, 110, 10), (3, 5, 1)])), used(35, 5, 2));
        // Another thread 3.
        assert_eq!(follower.take(threads(&[(1, 111, 10), (3, 2, 1)])), used(38, 6, 2));
        assert_eq!(follower.take(threads(&[])), None, "it is gone: absent, not 0");
    }

    #[test]
    fn of_one_that_was_born_meanwhile_all_counts() {
        let mut follower = Follower::of_newborn(1);
        let used = |cpu, run_queue, threads| Some(Used { cpu, run_queue, threads });
        assert_eq!(follower.take(threads(&[(1, 100, 10)])), used(100, 10, 1));
        assert_eq!(follower.take(threads(&[(1, 110, 10), (2, 5, 1)])), used(115, 11, 2));
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
        let mut sum = 0u64;
        for n in 0..3_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n));
        }
        let then = follower.look().unwrap();
        assert!(first.cpu == 0 && then.cpu > 0 && then.threads >= 1, "{sum} {then:?}");
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
