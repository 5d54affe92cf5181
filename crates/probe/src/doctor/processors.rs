//! Processors: which we may use, how much of them, and what makes them uneven.

use model::Cpus;

use super::{MachineAnswer, MachineEvidence};
use crate::cgroup;

/// The processors that this process may run on, and a server that it starts.
fn allowed(evidence: &MachineEvidence<'_>) -> Option<Cpus> {
    let list = evidence.field("/proc/self/status", "Cpus_allowed_list")?;
    list.parse().ok().filter(|cpus: &Cpus| !cpus.is_empty())
}

pub(super) fn allowed_processors(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let allowed = allowed(evidence)?;
    let online: Cpus = (evidence.read)("/sys/devices/system/cpu/online")?.trim().parse().ok()?;
    // What is allowed may be more than there is.
    let usable: Vec<u32> = allowed.iter().filter(|cpu| online.iter().any(|other| other == *cpu)).collect();
    let is_masked = usable.len() < online.len();
    let seen = match (is_masked, usable.len()) {
        (true, n) => format!("{n} of {} processors ({})", online.len(), usable.iter().copied().collect::<Cpus>()),
        (false, 1) => "1 processor for the server and the generator".to_owned(),
        (false, n) => format!("{n} processors for the server and the generator"),
    };
    let unmask = format!("taskset -p -c {online} $$");
    Some(match usable[..] {
        [] | [_] if is_masked => MachineAnswer::bad(seen, unmask),
        [] | [_] => MachineAnswer::bad(seen, "give the machine a second processor"),
        _ if is_masked => MachineAnswer::warn(seen, unmask),
        [first, second] => MachineAnswer::warn(
            seen,
            format!(
                "longtail sweep --server-cpus {first} keeps the generator on {second}; a server of your own: taskset -c {first} COMMAND"
            ),
        ),
        _ => MachineAnswer::fine(seen),
    })
}

pub(super) fn quota(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let groups = cgroup::cpu_groups(&(evidence.read)("/proc/self/cgroup")?);
    let is_mounted = |folder: &String| (evidence.read)(&format!("{folder}/cgroup.procs")).is_some();
    let Some((quota, _)) = cgroup::tightest_quota(&groups, evidence.read) else {
        return groups.iter().any(is_mounted).then(|| MachineAnswer::fine("none"));
    };
    let allowed = allowed(evidence)?.len();
    let seen = format!("{quota:.2} of {allowed} processors");
    let hint = "run it outside of the limit: systemd-run --scope -p CPUQuota= longtail …, or docker run without --cpus";
    Some(MachineAnswer::graded(-quota, -(allowed as f64), -1.0, seen, hint))
}

pub(super) fn siblings(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let allowed = allowed(evidence)?;
    let core = |cpu: u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        (evidence.read)(&path)?.trim().parse::<Cpus>().ok()?.iter().next()
    };
    // A core by its first half.
    let mut cores: Vec<u32> = allowed.iter().map(core).collect::<Option<_>>()?;
    let halves = cores.len();
    cores.sort_unstable();
    cores.dedup();
    Some(if cores.len() == halves {
        MachineAnswer::fine("none: each processor is a core of its own")
    } else {
        let first_of = |first: &u32| allowed.iter().find(|cpu| core(*cpu) == Some(*first));
        let one_each: Cpus = cores.iter().filter_map(first_of).collect();
        let hint =
            format!("taskset -c {one_each} longtail …, or echo off | sudo tee /sys/devices/system/cpu/smt/control");
        MachineAnswer::warn(format!("{halves} processors are {} cores", cores.len()), hint)
    })
}

/// The governor of each processor, and whether the clock may rise above its nominal rate.
pub(super) fn frequency(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    const FOLDER: &str = "/sys/devices/system/cpu";
    let governor = |cpu| {
        let path = format!("{FOLDER}/cpu{cpu}/cpufreq/scaling_governor");
        (evidence.read)(&path).map(|text| text.trim().to_owned())
    };
    let mut governors: Vec<String> = allowed(evidence)?.iter().map(governor).collect::<Option<_>>()?;
    governors.sort_unstable();
    governors.dedup();
    let number = |path: &str| evidence.number(&format!("{FOLDER}/{path}"));
    let boost = match (number("cpufreq/boost"), number("intel_pstate/no_turbo")) {
        (Some(boost), _) => Some((boost != 0, "echo 0", "cpufreq/boost")),
        (None, Some(no_turbo)) => Some((no_turbo == 0, "echo 1", "intel_pstate/no_turbo")),
        (None, None) => None,
    };
    let mut hints = Vec::new();
    if governors != ["performance"] {
        hints.push(format!("echo performance | sudo tee {FOLDER}/cpu*/cpufreq/scaling_governor"));
    }
    let boosted = match boost {
        Some((true, echo, file)) => {
            hints.push(format!("{echo} | sudo tee {FOLDER}/{file}"));
            ", boost on"
        }
        Some((false, ..)) => ", boost off",
        None => "",
    };
    let seen = format!("governor {}{boosted}", governors.join(", "));
    Some(if hints.is_empty() { MachineAnswer::fine(seen) } else { MachineAnswer::warn(seen, hints.join("; ")) })
}
