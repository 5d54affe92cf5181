//! What a server's processes have of the CPU from one moment to another, and how many CPUs they may use: looked at twice, before a
//! run and after it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::{Cpus, Nanos, Placement, ProcessCpu, ServerCpu};

use proctree::tree;

use crate::cgroup::{cpu_groups, tightest_quota};
use crate::host::CpuTicks;
use crate::processes::{CpuShare, ProcessFollower};

/// The first sample of a server, before a run.
#[derive(Debug)]
pub struct ServerCpuBefore {
    roots: Vec<u32>,
    followers: Vec<ProcessFollower>,
    placement: Placement,
    shares: Option<CpuShares>,
    at: Nanos,
}

/// The first sample, at the instant `at`: of these processes and all their descendants, without this process and its own.
pub fn before(roots: &[u32], placement: &Placement, at: Nanos) -> ServerCpuBefore {
    let mut followers: Vec<ProcessFollower> = family(roots).into_iter().map(ProcessFollower::of).collect();
    for follower in &mut followers {
        follower.sample();
    }
    let shares = shares(&placement.server);
    ServerCpuBefore { roots: roots.to_vec(), followers, placement: placement.clone(), shares, at }
}

fn family(roots: &[u32]) -> BTreeSet<u32> {
    let own = std::process::id();
    let ours: BTreeSet<u32> = if roots.contains(&own) { BTreeSet::new() } else { tree(own).into_iter().collect() };
    let all: BTreeSet<u32> = roots.iter().flat_map(|root| tree(*root)).collect();
    // Of a server that is our own child all is the server's; of a shell that started both, what is ours is not.
    let is_below_us = roots.iter().all(|root| ours.contains(root));
    if is_below_us { all } else { all.difference(&ours).copied().collect() }
}

impl ServerCpuBefore {
    /// The second sample, at the instant `at`, after so many requests. `None` where none of the processes can be read any more.
    pub fn after(mut self, at: Nanos, requests: u64) -> Option<ServerCpu> {
        let newborn = family(&self.roots);
        let is_new = |pid: &u32| self.followers.iter().all(|follower| follower.pid() != *pid);
        let newborn: Vec<ProcessFollower> =
            newborn.into_iter().filter(is_new).map(ProcessFollower::of_newborn).collect();
        self.followers.extend(newborn);
        let process = |follower: &mut ProcessFollower| {
            let CpuShare { cpu, run_queue, .. } = follower.sample()?;
            Some(ProcessCpu { pid: follower.pid(), cpu: Nanos(cpu), run_queue: Nanos(run_queue) })
        };
        let processes: Vec<ProcessCpu> = self.followers.iter_mut().filter_map(process).collect();
        let elapsed = at.saturating_sub(self.at);
        let busiest = processes.iter().max_by_key(|process| process.cpu)?.pid;
        let cpus = self.placement.server.len() as f64;
        let read = |path: &str| fs::read_to_string(path).ok();
        let quota = tightest_quota(&cgroups(busiest), &read).filter(|(quota, _)| *quota < cpus);
        let shares = shares(&self.placement.server).zip(self.shares).filter(|_| quota.is_none());
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let since = |part: fn(&CpuShares) -> f64| shares.map(|(now, before)| (part(&now) - part(&before)) / seconds);
        Some(ServerCpu {
            processes,
            elapsed,
            requests,
            of: quota.as_ref().map_or(cpus, |(quota, _)| *quota),
            // Under a quota only who is in the same group takes of it.
            is_shared: match &quota {
                Some((_, group)) => cgroups(std::process::id()).iter().any(|own| Path::new(own).starts_with(group)),
                None => self.placement.is_shared(),
            },
            busy: since(|shares| shares.busy),
            idle: since(|shares| shares.idle),
            is_ruby: is_ruby(busiest),
        })
    }
}

/// The CPUs that a server may use, and how busy they are.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuRoom {
    /// How many, by its affinity and the quota of its control group.
    pub cpus: f64,
    /// How long these CPUs were busy since the start of the machine, with anybody's work, in seconds of one CPU. Absent under a
    /// quota, which others do not take from.
    pub busy: Option<f64>,
    /// Whether the server runs the Ruby that lets one thread of a process compute at a time.
    pub is_ruby: bool,
}

impl CpuRoom {
    /// Of the processes `pids`, now; `None` where the kernel tells of none of them.
    pub fn of(pids: &[u32]) -> Option<CpuRoom> {
        let allowed = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().parse::<Cpus>().ok()
        };
        let cpus = pids.iter().filter_map(allowed).reduce(|all, one| all.with(&one))?;
        // The affinity names CPUs that are not plugged in too.
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let cpus: Cpus = cpus.iter().filter(|cpu| CpuTicks::named(&stat, &format!("cpu{cpu}")).is_some()).collect();
        let read = |path: &str| fs::read_to_string(path).ok();
        let last = *pids.last()?;
        let quota = tightest_quota(&cgroups(last), &read).map(|(quota, _)| quota);
        let quota = quota.filter(|quota| *quota < cpus.len() as f64);
        let busy = if quota.is_some() { None } else { shares(&cpus).map(|shares| shares.busy) };
        Some(CpuRoom { cpus: quota.unwrap_or(cpus.len() as f64), busy, is_ruby: is_ruby(last) })
    }
}

/// How long some CPUs were busy and idle since the start of the machine, in seconds of one CPU.
#[derive(Clone, Copy, Debug)]
struct CpuShares {
    busy: f64,
    idle: f64,
}

fn shares(cpus: &Cpus) -> Option<CpuShares> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    cpus.iter().try_fold(CpuShares { busy: 0.0, idle: 0.0 }, |sum, cpu| {
        let ticks = CpuTicks::named(&stat, &format!("cpu{cpu}"))?;
        let idle = ticks.idle as f64 / per_second;
        Some(CpuShares { busy: sum.busy + ticks.all as f64 / per_second - idle, idle: sum.idle + idle })
    })
}

/// Whether the process runs the Ruby that has a lock: `JRuby` and `TruffleRuby` have other names.
fn is_ruby(pid: u32) -> bool {
    let name = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = name.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let name = name.or_else(|| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
    name.is_some_and(|name| name.starts_with("ruby"))
}

fn cgroups(pid: u32) -> Vec<String> {
    cpu_groups(&fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_this_process_is_some_cpus_that_have_worked() {
        let room = CpuRoom::of(&[std::process::id()]).unwrap();
        assert!(room.cpus > 0.0 && !room.is_ruby, "{room:?}");
        assert!(room.busy.is_none_or(|busy| busy > 0.0), "{room:?}");
        assert_eq!((CpuRoom::of(&[]), CpuRoom::of(&[u32::MAX])), (None, None));
    }

    #[test]
    fn a_child_that_computes_is_seen() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let cpus: Cpus = (0..2).collect();
        let placement = Placement { server: cpus.clone(), lanes: cpus };
        let before = before(&[child.id()], &placement, Nanos::ZERO);
        let mut follower = ProcessFollower::of(child.id());
        while follower.sample().is_some_and(|used| used.cpu == 0) {}
        let seen = before.after(Nanos::from_secs(1), 4).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((seen.processes.len(), seen.processes[0].pid), (1, child.id()));
        assert!(seen.per_request() > Some(Nanos::ZERO) && !seen.is_ruby && seen.of > 0.0, "{seen:?}");
    }
}
