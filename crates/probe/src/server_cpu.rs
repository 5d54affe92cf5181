//! What a server's processes have of the CPU from one moment to another, and how many CPUs they may use: looked at twice, before a
//! run and after it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::{Cpus, Nanos, Placement, ProcessCpu, ServerCpu};

use crate::processes::{Follower, Used, tree};

/// A look at a server before a run.
#[derive(Debug)]
pub struct Before {
    roots: Vec<u32>,
    followers: Vec<Follower>,
    placement: Placement,
    busy: Option<f64>,
    at: Nanos,
}

/// The first look, at the instant `at`: at these processes and all that descend from them, but for this one and its own.
pub fn before(roots: &[u32], placement: &Placement, at: Nanos) -> Before {
    let mut followers: Vec<Follower> = family(roots).into_iter().map(Follower::of).collect();
    for follower in &mut followers {
        follower.look();
    }
    let busy = busy(&placement.server);
    Before { roots: roots.to_vec(), followers, placement: placement.clone(), busy, at }
}

fn family(roots: &[u32]) -> BTreeSet<u32> {
    let own = std::process::id();
    let ours: BTreeSet<u32> = if roots.contains(&own) { BTreeSet::new() } else { tree(own).into_iter().collect() };
    let all: BTreeSet<u32> = roots.iter().flat_map(|root| tree(*root)).collect();
    // Of a server that is our own child all is the server's; of a shell that started both, what is ours is not.
    let is_below_us = roots.iter().all(|root| ours.contains(root));
    if is_below_us { all } else { all.difference(&ours).copied().collect() }
}

impl Before {
    /// The second look, at the instant `at`, after so many requests. `None` where none of the processes can be looked at any more.
    pub fn after(mut self, at: Nanos, requests: u64) -> Option<ServerCpu> {
        let newborn = family(&self.roots);
        let is_new = |pid: &u32| self.followers.iter().all(|follower| follower.pid() != *pid);
        let newborn: Vec<Follower> = newborn.into_iter().filter(is_new).map(Follower::of_newborn).collect();
        self.followers.extend(newborn);
        let process = |follower: &mut Follower| {
            let Used { cpu, run_queue, .. } = follower.look()?;
            Some(ProcessCpu { pid: follower.pid(), cpu: Nanos(cpu), run_queue: Nanos(run_queue) })
        };
        let processes: Vec<ProcessCpu> = self.followers.iter_mut().filter_map(process).collect();
        let elapsed = at.saturating_sub(self.at);
        let busiest = processes.iter().max_by_key(|process| process.cpu)?.pid;
        let cpus = self.placement.server.len() as f64;
        let quota = quota(busiest).filter(|(quota, _)| *quota < cpus);
        let used = busy(&self.placement.server).zip(self.busy).map(|(now, before)| now - before);
        Some(ServerCpu {
            processes,
            elapsed,
            requests,
            of: quota.as_ref().map_or(cpus, |(quota, _)| *quota),
            // Under a quota only who is in the same group takes of it.
            is_shared: match &quota {
                Some((_, group)) => groups(std::process::id()).iter().any(|own| Path::new(own).starts_with(group)),
                None => self.placement.is_shared(),
            },
            busy: used.filter(|_| quota.is_none()).map(|used| used / elapsed.as_secs_f64().max(1e-9)),
            is_ruby: is_ruby(busiest),
        })
    }
}

/// How long these CPUs were busy so far, in seconds of one CPU: `/proc/stat`, whose fourth and fifth figures are idle time.
fn busy(cpus: &Cpus) -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Option<u64> = cpus.iter().map(|cpu| busy_ticks(&stat, cpu)).sum();
    Some(ticks? as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn busy_ticks(stat: &str, cpu: u32) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(ticks.iter().sum::<u64>() - idle)
}

/// Whether the process runs the Ruby that has a lock: `JRuby` and `TruffleRuby` have other names.
fn is_ruby(pid: u32) -> bool {
    let name = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = name.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let name = name.or_else(|| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
    name.is_some_and(|name| name.starts_with("ruby"))
}

/// The folders of the control groups that may give this process a quota, as far as they can be seen here.
fn groups(pid: u32) -> Vec<String> {
    let list = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let folder = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_v2 = controllers.is_empty();
        let root = if is_v2 { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/cpu" };
        (is_v2 || controllers.split(',').any(|one| one == "cpu")).then(|| format!("{root}{path}"))
    };
    list.lines().filter_map(folder).collect()
}

/// The tightest quota of a process, in CPUs, and the folder of the control group that has it; `None` where it has none.
fn quota(pid: u32) -> Option<(f64, String)> {
    let read = |folder: &Path, file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let of = |folder: &Path| {
        parse_quota(&read(folder, "cpu.max")).or_else(|| {
            let (quota, period) = (read(folder, "cpu.cfs_quota_us"), read(folder, "cpu.cfs_period_us"));
            parse_quota(&format!("{} {}", quota.trim(), period.trim()))
        })
    };
    let all = groups(pid);
    let folders = all.iter().flat_map(|folder| Path::new(folder).ancestors());
    let quotas = folders.filter_map(|folder| Some((of(folder)?, folder.to_string_lossy().into_owned())));
    quotas.min_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// `50000 100000` is half a CPU; `max` and `-1` are no quota.
fn parse_quota(text: &str) -> Option<f64> {
    let mut words = text.split_ascii_whitespace();
    let (quota, period) = (words.next()?.parse::<f64>().ok()?, words.next()?.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_read_as_the_kernel_writes_it() {
        let read = ["50000 100000\n", "max 100000", "-1 100000", "", "150000 100000"].map(parse_quota);
        assert_eq!(read, [Some(0.5), None, None, None, Some(1.5)]);
    }

    #[test]
    fn what_is_not_idle_is_busy() {
        let stat =
            "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 10 1 5 900 50 2 3 4 0 0\ncpu1 1 0 0 9 0 0 0 0\ncpu10 7 0 0 1 0 0 0 0\n";
        assert_eq!([0, 1, 10, 2].map(|cpu| busy_ticks(stat, cpu)), [Some(25), Some(1), Some(7), None]);
    }

    #[test]
    fn a_child_that_computes_is_seen() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let cpus: Cpus = (0..2).collect();
        let placement = Placement { server: cpus.clone(), lanes: cpus };
        let before = before(&[child.id()], &placement, Nanos::ZERO);
        let mut follower = Follower::of(child.id());
        while follower.look().is_some_and(|used| used.cpu == 0) {}
        let seen = before.after(Nanos::from_secs(1), 4).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((seen.processes.len(), seen.processes[0].pid), (1, child.id()));
        assert!(seen.per_request() > Some(Nanos::ZERO) && !seen.is_ruby && seen.of > 0.0, "{seen:?}");
    }
}
