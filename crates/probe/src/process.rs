//! What a server's processes take: time on a CPU, memory. Of a process and all that descend from it.

use std::fs;

use model::Nanos;

use crate::processes::tree;

/// Counters of a tree of processes at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUse {
    /// Time on a CPU so far, in user and kernel mode, of all that live and of their children that were waited for. In
    /// steps of the kernel's tick, 10 ms.
    pub cpu: Option<Nanos>,
    /// Resident memory, what is shared counted once: the sum of the proportional set sizes (PSS).
    pub memory_bytes: Option<u64>,
}

/// What the process and its descendants have taken so far; absent where the kernel does not say it of all of them.
pub fn of_tree(root: u32) -> ProcessUse {
    let pids = tree(root);
    let ticks: Option<u64> = pids.iter().map(|pid| cpu_ticks(&read(*pid, "stat"))).sum();
    let per_second = rustix::param::clock_ticks_per_second();
    ProcessUse {
        cpu: ticks.map(|ticks| Nanos::from_secs_f64(ticks as f64 / per_second as f64)),
        memory_bytes: pids.iter().map(|pid| pss(&read(*pid, "smaps_rollup"))).sum(),
    }
}

fn read(pid: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// The fields of `/proc/PID/stat` from the third on (proc(5)): the second, the name, may hold anything.
fn fields(stat: &str) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    stat.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace())
}

/// utime, stime, cutime and cstime: fields 14 to 17.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let ticks: Vec<u64> = fields(stat)?.skip(11).take(4).map(str::parse).collect::<Result<_, _>>().ok()?;
    (ticks.len() == 4).then(|| ticks.iter().sum())
}

fn pss(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::parent;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_brackets_and_blanks_hides_nothing() {
        let stat = "77 (puma: x) y) S 5 77 77 0 -1 4194304 100 0 0 0 30 12 7 1 20 0 6 0 999 1 1";
        assert_eq!((parent(stat), cpu_ticks(stat)), (Some(5), Some(50)));
        assert_eq!((parent(""), cpu_ticks("1 (x) S 1")), (None, None));
    }

    #[test]
    fn shared_memory_is_counted_by_its_share() {
        let rollup = "55d8-7ffc ---p 00000000 00:00 0 [rollup]\nRss:   9000 kB\nPss:   1234 kB\nPss_Anon: 1 kB\n";
        assert_eq!(pss(rollup), Some(1234 * 1024));
        assert_eq!(pss(""), None);
    }

    #[test]
    fn a_child_is_in_the_tree_of_its_parent_and_takes_memory() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let all = tree(std::process::id());
        assert!(all.contains(&child.id()), "{all:?}");
        assert_eq!(tree(child.id()), [child.id()]);
        assert!(of_tree(child.id()).memory_bytes.is_some_and(|bytes| bytes > 0));
        assert!(of_tree(child.id()).cpu.is_some());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(of_tree(child.id()), ProcessUse::default(), "who is gone says nothing, and not 0");
    }
}
