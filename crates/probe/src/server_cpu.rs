//! CPU time of a server's processes between two moments, before and after a run, and how many CPUs
//! they may use.

use std::fs;
use std::path::Path;

use model::{Cpus, Nanos, Placement, ProcessCpu, ServerCpu};

use crate::host::CpuTicks;
use crate::processes::ServerProcesses;
use crate::threads;

/// The first sample of a server, before a run.
#[derive(Debug)]
pub struct ServerCpuBefore {
    processes: ServerProcesses,
    placement: Placement,
    ticks: Option<CpuTicks>,
    at: Nanos,
}

/// The first sample, at the instant `at`, of these processes and all their descendants. longtail
/// and its other children are left out, if they are among them.
pub fn before(roots: &[u32], placement: &Placement, at: Nanos) -> ServerCpuBefore {
    let mut processes = ServerProcesses::of(roots);
    processes.search(usize::MAX);
    processes.sample(None, false);
    ServerCpuBefore {
        processes,
        placement: placement.clone(),
        ticks: ticks_of(&placement.server),
        at,
    }
}

impl ServerCpuBefore {
    /// The second sample, at the instant `at`, after this many requests. `None` if none of the
    /// processes can be read any more.
    pub fn after(mut self, at: Nanos, requests: u64) -> Option<ServerCpu> {
        self.processes.search(usize::MAX);
        let samples = self.processes.sample(None, false);
        let used = samples.iter().filter_map(|process| Some((process.pid, process.used?)));
        let processes: Vec<ProcessCpu> = used
            .map(|(pid, used)| ProcessCpu {
                pid,
                cpu: Nanos(used.cpu),
                run_queue: Nanos(used.run_queue),
            })
            .collect();
        let children = samples.iter().filter_map(|process| Some(process.used?.children)).sum();
        let elapsed = at.saturating_sub(self.at);
        let busiest = processes.iter().max_by_key(|process| process.cpu)?.pid;
        let cpus = self.placement.server.len() as f64;
        let quota = quota_below(cpus, busiest);
        let ticks = ticks_of(&self.placement.server).zip(self.ticks).filter(|_| quota.is_none());
        let passed = ticks.and_then(|(now, before)| now.since(&before));
        let share = |ticks: u64| ticks_in_seconds(ticks) / elapsed.as_secs_f64().max(1e-9);
        Some(ServerCpu {
            processes,
            children: Nanos(children),
            elapsed,
            requests,
            of: quota.as_ref().map_or(cpus, |(quota, _)| *quota),
            by_quota: quota.is_some(),
            // Only processes of the same group use up its quota.
            is_shared: match &quota {
                Some((_, group)) => {
                    cgroups(std::process::id()).iter().any(|own| Path::new(own).starts_with(group))
                }
                None => self.placement.is_shared(),
            },
            busy: passed.map(|passed| share(passed.all - passed.idle)),
            idle: passed.map(|passed| share(passed.idle)),
            is_ruby: is_ruby(busiest),
            threads: threads::that_serve(samples.iter().map(|process| process.pid)),
        })
    }
}

/// The CPUs that a server may use, and how busy they are.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuRoom {
    /// How many, by its affinity and the quota of its control group.
    pub cpus: f64,
    /// How long these CPUs were busy since the machine's boot, with anybody's work, in seconds of
    /// one CPU. Absent under a quota, which others do not use up.
    pub busy: Option<f64>,
    /// Whether the server runs `CRuby`, which lets one thread of a process compute at a time.
    pub is_ruby: bool,
}

impl CpuRoom {
    /// The CPUs of these processes, now; `None` if the kernel says nothing about any of them.
    pub fn of(pids: &[u32]) -> Option<CpuRoom> {
        let allowed = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?
                .trim()
                .parse::<Cpus>()
                .ok()
        };
        let cpus = pids.iter().filter_map(allowed).reduce(|all, one| all.with(&one))?;
        // The affinity may name CPUs that are offline.
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let cpus: Cpus = cpus
            .iter()
            .filter(|cpu| CpuTicks::named(&stat, &format!("cpu{cpu}")).is_some())
            .collect();
        let last = *pids.last()?;
        let all = cpus.len() as f64;
        let is_ruby = is_ruby(last);
        if let Some((quota, _)) = quota_below(all, last) {
            return Some(CpuRoom { cpus: quota, busy: None, is_ruby });
        }
        let busy = ticks_of(&cpus).map(|ticks| ticks_in_seconds(ticks.all - ticks.idle));
        Some(CpuRoom { cpus: all, busy, is_ruby })
    }
}

/// What some CPUs did since the machine's boot, together.
fn ticks_of(cpus: &Cpus) -> Option<CpuTicks> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    cpus.iter().try_fold(CpuTicks::default(), |sum, cpu| {
        let one = CpuTicks::named(&stat, &format!("cpu{cpu}"))?;
        Some(CpuTicks {
            all: sum.all + one.all,
            idle: sum.idle + one.idle,
            steal: sum.steal + one.steal,
        })
    })
}

fn ticks_in_seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Whether the process runs `CRuby`, which has a global lock: the programs of `JRuby` and
/// `TruffleRuby` have other names.
fn is_ruby(pid: u32) -> bool {
    let name = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = name.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let name = name.or_else(|| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
    name.is_some_and(|name| name.starts_with("ruby"))
}

/// The quota of a process, if it leaves less than this many CPUs, and the folder of its group.
fn quota_below(cpus: f64, pid: u32) -> Option<(f64, String)> {
    let read = |path: &str| fs::read_to_string(path).ok();
    tightest_quota(&cgroups(pid), &read).filter(|(quota, _)| *quota < cpus)
}

fn cgroups(pid: u32) -> Vec<String> {
    cpu_groups(&fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default())
}

/// The folders of the control groups that may limit a process, from its `/proc/PID/cgroup`.
pub(crate) fn cpu_groups(list: &str) -> Vec<String> {
    let folder = |line: &str| {
        // hierarchy:controllers:path (cgroups(7)); the line of v2 names no controllers.
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let path = parts.next()?.trim_end_matches('/');
        let is_v2 = controllers.is_empty();
        let root = if is_v2 { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/cpu" };
        (is_v2 || controllers.split(',').any(|one| one == "cpu")).then(|| format!("{root}{path}"))
    };
    list.lines().filter_map(folder).collect()
}

/// The tightest quota of these groups and the groups above them, in CPUs, with its folder; `None`
/// if there is none.
pub(crate) fn tightest_quota(
    groups: &[String],
    read: &dyn Fn(&str) -> Option<String>,
) -> Option<(f64, String)> {
    let of = |folder: &Path| {
        let text = |file: &str| read(folder.join(file).to_str()?);
        let v1 = || {
            Some(format!(
                "{} {}",
                text("cpu.cfs_quota_us")?.trim(),
                text("cpu.cfs_period_us")?.trim()
            ))
        };
        let quota = quota(&text("cpu.max").or_else(v1)?)?;
        Some((quota, folder.to_string_lossy().into_owned()))
    };
    let folders = groups.iter().flat_map(|folder| Path::new(folder).ancestors());
    folders.filter_map(of).min_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// `50000 100000` is half a CPU; `max` and `-1` are no quota.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let quota = quota.parse::<f64>().ok()?;
    let period = period.parse::<f64>().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_may_use_some_cpus_and_they_have_worked() {
        let room = CpuRoom::of(&[std::process::id()]).unwrap();
        assert!(room.cpus > 0.0 && !room.is_ruby, "{room:?}");
        assert!(room.busy.is_none_or(|busy| busy > 0.0), "{room:?}");
        assert_eq!((CpuRoom::of(&[]), CpuRoom::of(&[u32::MAX])), (None, None));
    }

    #[test]
    fn a_child_that_computes_is_seen() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let cpus: Cpus = (0..2).collect();
        let placement = Placement { server: cpus.clone(), lanes: cpus };
        let before = before(&[child.id()], &placement, Nanos::ZERO);
        let mut follower = ServerProcesses::of(&[child.id()]);
        follower.search(1);
        while follower.sample(None, false)[0].used.is_some_and(|used| used.cpu == 0) {}
        let seen = before.after(Nanos::from_secs(1), 4).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((seen.processes.len(), seen.processes[0].pid), (1, child.id()));
        assert!(
            seen.per_request() > Some(Nanos::ZERO) && !seen.is_ruby && seen.of > 0.0,
            "{seen:?}"
        );
    }

    #[test]
    fn a_quota_is_read_as_the_kernel_writes_it() {
        let read = ["50000 100000\n", "max 100000", "-1 100000", "", "150000 100000"].map(quota);
        assert_eq!(read, [Some(0.5), None, None, None, Some(1.5)]);
    }
}
