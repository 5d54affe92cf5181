//! Processors: which we may use, how much of them, and what makes them uneven.

use model::Cpus;

use super::check::{Check, Group, Question};
use super::files::{Files, field};

const fn question(name: &'static str, spoils: &'static str) -> Question {
    Question { group: Group::Processors, name, spoils }
}

const STATUS: &str = "/proc/self/status";
const ONLINE: &str = "/sys/devices/system/cpu/online";

pub(super) fn checks(files: &Files) -> Vec<Check> {
    vec![
        affinity(files),
        quota(files),
        shared(files),
        siblings(files),
        governor(files),
        boost(files),
        virtual_machine(files),
    ]
}

/// The processors that this process may run on, and a server that it starts.
pub(super) fn allowed(files: &Files) -> Option<Vec<u32>> {
    numbers(&files.field(STATUS, "Cpus_allowed_list")?).filter(|allowed| !allowed.is_empty())
}

fn affinity(files: &Files) -> Check {
    const ASKED: Question =
        question("affinity", "the rate: lanes and a server that is started from here run on these processors only");
    let Some(allowed) = allowed(files) else { return ASKED.unread(STATUS) };
    let Some(list) = files.line(ONLINE) else { return ASKED.unread(ONLINE) };
    let Some(online) = numbers(&list) else { return ASKED.unread(ONLINE) };
    let usable = online.iter().filter(|cpu| allowed.contains(cpu)).count();
    let check = if usable == online.len() {
        ASKED.fine(format!("all {usable} processors ({list})"))
    } else {
        let seen = format!("{usable} of {} processors ({})", online.len(), shown(&allowed));
        ASKED.warn(seen, format!("taskset -p -c {list} $$"))
    };
    check.with("usable", usable as f64).with("online", online.len() as f64)
}

/// The tightest of all groups that the process is in; v2 (`cpu.max`) and v1 (`cpu.cfs_quota_us`) alike.
fn quota(files: &Files) -> Check {
    const ASKED: Question =
        question("cpu quota", "every percentile: who has used up the quota stands still until the period ends");
    const GROUPS: &str = "/proc/self/cgroup";
    let Some(groups) = files.text(GROUPS) else { return ASKED.unread(GROUPS) };
    let Some(quotas) = quotas(files, &groups) else { return ASKED.unknown("/sys/fs/cgroup does not tell") };
    let Some((quota, period)) = quotas.into_iter().min_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1))) else {
        return ASKED.fine("none");
    };
    let (Some(allowed), processors) = (allowed(files), quota / period) else { return ASKED.unread(STATUS) };
    let seen = format!(
        "{processors:.2} of {} processors, {:.0} ms in each {:.0} ms",
        allowed.len(),
        quota / 1e3,
        period / 1e3
    );
    let mend = "run it outside of the limit: systemd-run --scope -p CPUQuota= longtail …, or docker run without --cpus";
    let check = if processors >= allowed.len() as f64 {
        ASKED.fine(seen)
    } else if processors >= 1.0 {
        ASKED.warn(seen, mend)
    } else {
        ASKED.bad(seen, mend)
    };
    check.with("processors", processors)
}

/// The quotas, each as µs in a period of µs, of the groups from ours to the root; `None` where no hierarchy can be seen.
fn quotas(files: &Files, groups: &str) -> Option<Vec<(f64, f64)>> {
    let mut found = Vec::new();
    let mut seen = false;
    for line in groups.lines() {
        // hierarchy:controllers:path (cgroups(7)); the one of v2 is 0 and names no controllers.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        if controllers.is_empty() {
            seen |= files.text("/sys/fs/cgroup/cgroup.controllers").is_some();
            for folder in ancestors(path) {
                let text = files.text(&format!("/sys/fs/cgroup{folder}/cpu.max"));
                seen |= text.is_some();
                found.extend(text.as_deref().and_then(cpu_max));
            }
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            for root in [controllers, "cpu"] {
                for folder in ancestors(path) {
                    let read = |name| files.text(&format!("/sys/fs/cgroup/{root}{folder}/{name}"));
                    // The root has no quota, and no file that says so.
                    seen |= read("cpu.shares").is_some() || read("cgroup.procs").is_some();
                    let (Some(quota), Some(period)) = (read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")) else {
                        continue;
                    };
                    found.extend(cpu_max(&format!("{} {}", quota.trim(), period.trim())));
                }
            }
        }
    }
    seen.then_some(found)
}

/// `/a/b` as `/a/b`, `/a` and nothing, which is the root.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path.trim_end_matches('/')), |path| path.rfind('/').map(|at| &path[..at]))
}

/// `150000 100000`, or `max 100000` (v1: `-1 100000`), which is none.
fn cpu_max(text: &str) -> Option<(f64, f64)> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some((quota, period))
}

fn shared(files: &Files) -> Check {
    const ASKED: Question = question(
        "server beside us",
        "times of a server that computes: it and the lanes wait for each other; one that sleeps hardly suffers",
    );
    let Some(allowed) = allowed(files) else { return ASKED.unread(STATUS) };
    let check = match allowed[..] {
        [_] => ASKED.bad(
            "1 processor for the server and the lanes",
            "give the machine a second processor",
        ),
        [first, second] => ASKED.warn(
            "2 processors for the server, the lanes and all else",
            format!(
                "longtail sweep --server-cpus {first} keeps the lanes on {second}; a server of your own: taskset -c {first} \
                 COMMAND, then longtail load URL"
            ),
        ),
        _ => ASKED.fine(format!("{} processors for the server and the lanes", allowed.len())),
    };
    check.with("processors", allowed.len() as f64)
}

fn siblings(files: &Files) -> Check {
    const ASKED: Question = question(
        "SMT siblings",
        "rates and tails: server and lanes on two halves of one core slow each other by a third or so",
    );
    let Some(allowed) = allowed(files) else { return ASKED.unread(STATUS) };
    let mut cores: Vec<Vec<u32>> = Vec::new();
    for cpu in &allowed {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let Some(core) = files.text(&path).as_deref().and_then(numbers) else { return ASKED.unread(&path) };
        if !cores.contains(&core) {
            cores.push(core);
        }
    }
    let usable = |core: &Vec<u32>| core.iter().filter(|cpu| allowed.contains(cpu)).count();
    let check = if cores.iter().all(|core| usable(core) < 2) {
        let told = if is_virtual(files) == Some(true) { ", as the hypervisor tells" } else { "" };
        ASKED.fine(format!("none: each processor is a core of its own{told}"))
    } else {
        let one_each: Vec<u32> =
            cores.iter().filter_map(|core| core.iter().copied().find(|cpu| allowed.contains(cpu))).collect();
        let mend = format!(
            "taskset -c {} longtail …, or echo off | sudo tee /sys/devices/system/cpu/smt/control",
            shown(&one_each)
        );
        ASKED.warn(format!("{} processors are {} cores", allowed.len(), cores.len()), mend)
    };
    check.with("cores", cores.len() as f64)
}

fn governor(files: &Files) -> Check {
    const ASKED: Question = question(
        "frequency governor",
        "comparisons: the processor is slower at low load than at high load, and after pauses",
    );
    let Some(allowed) = allowed(files) else { return ASKED.unread(STATUS) };
    let mut governors: Vec<String> = Vec::new();
    for cpu in allowed {
        let Some(governor) = files.line(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")) else {
            return ASKED.unknown("the kernel here does not set the frequency (no cpufreq)");
        };
        if !governors.contains(&governor) {
            governors.push(governor);
        }
    }
    if governors == ["performance"] {
        return ASKED.fine("performance");
    }
    let mend = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    ASKED.warn(governors.join(", "), mend)
}

fn boost(files: &Files) -> Check {
    const ASKED: Question =
        question("frequency boost", "comparisons: the clock follows temperature and the number of busy cores");
    const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
    const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    let (on, mend) = match (files.number(BOOST), files.number(NO_TURBO)) {
        (Some(boost), _) => (boost != 0, format!("echo 0 | sudo tee {BOOST}")),
        (None, Some(no_turbo)) => (no_turbo == 0, format!("echo 1 | sudo tee {NO_TURBO}")),
        (None, None) => return ASKED.unknown("the kernel here does not set the frequency (no cpufreq)"),
    };
    if on { ASKED.warn("on", mend) } else { ASKED.fine("off") }
}

fn virtual_machine(files: &Files) -> Check {
    const ASKED: Question = question(
        "virtual machine",
        "tails and repeats: its neighbours take processors, caches and network, partly unseen",
    );
    match is_virtual(files) {
        None => ASKED.unread("/proc/cpuinfo"),
        Some(false) => ASKED.fine("no hypervisor"),
        Some(true) => ASKED.warn(
            "yes (the processor has the flag hypervisor)",
            "longtail sweep --repeat 5, and believe differences that are wider than its range; or a machine of your own",
        ),
    }
}

/// x86 has a flag for it; other processors do not tell.
fn is_virtual(files: &Files) -> Option<bool> {
    let cpuinfo = files.text("/proc/cpuinfo")?;
    let flags = field(&cpuinfo, "flags")?;
    Some(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

/// `0-2,5` as 0, 1, 2, 5.
fn numbers(list: &str) -> Option<Vec<u32>> {
    list.parse::<Cpus>().ok().map(|cpus| cpus.iter().collect())
}

/// 0, 1, 2, 5 as `0-2,5`.
fn shown(numbers: &[u32]) -> String {
    numbers.iter().copied().collect::<Cpus>().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::check::Grade;
    use super::super::files::given;
    use super::*;

    fn status(list: &str) -> (&'static str, String) {
        (STATUS, format!("Name:\tlongtail\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\n"))
    }

    fn with(list: &str, others: &[(&str, &str)]) -> Files {
        let (path, text) = status(list);
        given(&[&[(path, text.as_str())], others].concat())
    }

    #[test]
    fn a_mask_is_seen_and_the_mend_undoes_it() {
        let check = affinity(&with("1", &[(ONLINE, "0-3\n")]));
        assert_eq!((check.grade, check.seen.as_str()), (Grade::Warn, "1 of 4 processors (1)"));
        assert_eq!(check.mend.as_deref(), Some("taskset -p -c 0-3 $$"));
        // What is allowed may be more than there is.
        assert_eq!(affinity(&with("0-127", &[(ONLINE, "0-3")])).grade, Grade::Fine);
    }

    #[test]
    fn the_tightest_quota_above_us_counts() {
        let v2 = |ours: &str, above: &str| {
            let files = [
                ("/proc/self/cgroup", "0::/a.slice/b.scope\n"),
                ("/sys/fs/cgroup/cgroup.controllers", "cpu io\n"),
                ("/sys/fs/cgroup/a.slice/b.scope/cpu.max", ours),
                ("/sys/fs/cgroup/a.slice/cpu.max", above),
            ];
            quota(&with("0-3", &files))
        };
        assert_eq!(v2("max 100000\n", "max 100000\n").seen, "none");
        assert_eq!(v2("400000 100000\n", "max 100000\n").grade, Grade::Fine);
        let check = v2("300000 100000\n", "150000 100000\n");
        assert_eq!((check.grade, check.seen.as_str()), (Grade::Warn, "1.50 of 4 processors, 150 ms in each 100 ms"));
        assert_eq!(v2("max 100000", "50000 100000").grade, Grade::Bad);
    }

    #[test]
    fn quotas_of_the_older_hierarchy_are_seen_too() {
        let v1 = |quota_us: &str| {
            let files = [
                ("/proc/self/cgroup", "4:memory:/x\n1:cpu,cpuacct:/x\n0::/\n"),
                ("/sys/fs/cgroup/cpu,cpuacct/x/cpu.shares", "1024\n"),
                ("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", quota_us),
                ("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"),
            ];
            quota(&with("0-1", &files)).grade
        };
        assert_eq!([v1("-1\n"), v1("100000\n")], [Grade::Fine, Grade::Warn]);
    }

    #[test]
    fn a_hierarchy_that_is_not_mounted_says_nothing() {
        assert_eq!(quota(&with("0-1", &[("/proc/self/cgroup", "0::/\n")])).grade, Grade::Unknown);
    }

    #[test]
    fn few_processors_are_shared() {
        let grade = |list| shared(&with(list, &[])).grade;
        assert_eq!([grade("3"), grade("0-1"), grade("0-2")], [Grade::Bad, Grade::Warn, Grade::Fine]);
    }

    #[test]
    fn siblings_are_those_that_we_may_both_use() {
        let topology = |cpu, list| (format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), list);
        let (zero, one) = (topology(0, "0,2\n"), topology(1, "1,3\n"));
        let (two, three) = (topology(2, "0,2\n"), topology(3, "1,3\n"));
        let all = [&zero, &one, &two, &three].map(|(path, list)| (path.as_str(), *list));
        let check = siblings(&with("0-3", &all));
        assert_eq!((check.grade, check.seen.as_str()), (Grade::Warn, "4 processors are 2 cores"));
        assert!(check.mend.unwrap().starts_with("taskset -c 0-1 longtail"));
        assert_eq!(siblings(&with("0-1", &all)).grade, Grade::Fine);
    }

    #[test]
    fn a_frequency_that_moves_is_a_doubt() {
        let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        assert_eq!(governor(&with("0", &[(path, "schedutil\n")])).grade, Grade::Warn);
        assert_eq!(governor(&with("0", &[(path, "performance\n")])).grade, Grade::Fine);
        assert_eq!(boost(&given(&[("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n")])).grade, Grade::Fine);
        assert_eq!(boost(&given(&[("/sys/devices/system/cpu/cpufreq/boost", "1\n")])).grade, Grade::Warn);
    }

    #[test]
    fn a_hypervisor_shows_itself_in_the_flags() {
        let of = |text| virtual_machine(&given(&[("/proc/cpuinfo", text)])).grade;
        assert_eq!(of("processor\t: 0\nflags\t\t: fpu hypervisor tsc\n"), Grade::Warn);
        assert_eq!(of("flags\t\t: fpu tsc\n"), Grade::Fine);
        assert_eq!(of("Features\t: fp asimd\n"), Grade::Unknown, "an ARM processor does not tell");
    }
}
