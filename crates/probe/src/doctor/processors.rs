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

#[cfg(test)]
mod tests {
    use super::super::MachineGrade::{Bad, Fine, Unknown, Warn};
    use super::super::tests::asked;

    const ONLINE: &str = "/sys/devices/system/cpu/online";

    #[test]
    fn processors_are_counted_and_the_hint_undoes_a_mask() {
        let cases = [
            ("1", "0-3\n", Bad, "1 of 4 processors (1)", Some("taskset -p -c 0-3 $$")),
            ("0-2", "0-3\n", Warn, "3 of 4 processors (0-2)", Some("taskset -p -c 0-3 $$")),
            ("0", "0\n", Bad, "1 processor for the server and the generator", Some("give the machine")),
            ("0-1", "0-1\n", Warn, "2 processors for the server and the generator", Some("longtail sweep")),
            // What is allowed may be more than there is.
            ("0-127", "0-3\n", Fine, "4 processors for the server and the generator", None),
        ];
        for (allowed, online, grade, seen, hint) in cases {
            let status = format!("Name:\tlongtail\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n");
            let check = asked("processors", &[("/proc/self/status", &status), (ONLINE, online)]);
            assert_eq!((check.grade, check.seen.as_str()), (grade, seen), "{allowed}");
            assert_eq!(check.hint.is_some(), hint.is_some(), "{allowed}");
            assert!(check.hint.is_none_or(|said| said.starts_with(hint.unwrap())), "{allowed}");
        }
    }

    #[test]
    fn the_tightest_quota_above_us_counts_in_either_hierarchy() {
        let cpus = ("/proc/self/status", "Cpus_allowed_list: 0-3\n");
        let v2 = ("/proc/self/cgroup", "0::/a.slice/b.scope\n");
        let v1 = ("/proc/self/cgroup", "4:memory:/x\n1:cpu,cpuacct:/x\n");
        let (ours, above) = ("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "/sys/fs/cgroup/a.slice/cpu.max");
        let root = ("/sys/fs/cgroup/a.slice/b.scope/cgroup.procs", "1\n");
        let (cfs, period) = ("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/x/cpu.cfs_period_us");
        let cases: [(&[(&str, &str)], _, _); 6] = [
            (&[v2, root, (ours, "max 100000\n"), (above, "max 100000\n")], Fine, "none"),
            (&[v2, root, (ours, "400000 100000\n")], Fine, "4.00 of 4 processors"),
            (&[v2, root, (ours, "300000 100000\n"), (above, "150000 100000\n")], Warn, "1.50 of 4 processors"),
            (&[v2, root, (above, "50000 100000")], Bad, "0.50 of 4 processors"),
            (&[v1, (cfs, "100000\n"), (period, "100000\n")], Warn, "1.00 of 4 processors"),
            (&[v2], Unknown, "cannot be read here"),
        ];
        for (files, grade, seen) in cases {
            let check = asked("cpu quota", &[&[cpus], files].concat());
            assert_eq!((check.grade, check.seen.as_str()), (grade, seen));
        }
    }

    #[test]
    fn siblings_are_those_that_we_may_both_use() {
        let topology = [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")]
            .map(|(cpu, list)| (format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), list));
        for (allowed, grade, seen) in
            [("0-3", Warn, "4 processors are 2 cores"), ("0-1", Fine, "none: each processor is a core of its own")]
        {
            let status = format!("Cpus_allowed_list: {allowed}\n");
            let mut files = vec![("/proc/self/status", status.as_str())];
            files.extend(topology.iter().map(|(path, list)| (path.as_str(), *list)));
            let check = asked("SMT siblings", &files);
            assert_eq!((check.grade, check.seen.as_str()), (grade, seen));
            assert!(check.hint.is_none_or(|hint| hint.starts_with("taskset -c 0-1 longtail")));
        }
    }

    #[test]
    fn a_frequency_that_moves_is_a_doubt() {
        let boost = "/sys/devices/system/cpu/cpufreq/boost";
        let no_turbo = "/sys/devices/system/cpu/intel_pstate/no_turbo";
        let cases = [
            ("schedutil\n", no_turbo, "1\n", Warn, "governor schedutil, boost off"),
            ("performance\n", no_turbo, "1\n", Fine, "governor performance, boost off"),
            ("performance\n", boost, "1\n", Warn, "governor performance, boost on"),
            ("performance\n", "", "", Fine, "governor performance"),
        ];
        for (governor, path, value, grade, seen) in cases {
            let files = [
                ("/proc/self/status", "Cpus_allowed_list: 0\n"),
                ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor),
                (path, value),
            ];
            let check = asked("frequency", &files);
            assert_eq!((check.grade, check.seen.as_str()), (grade, seen));
        }
    }
}
