//! The questions of `doctor`: what each reads, measures or tries, and its answer. What cannot be
//! read is unknown.
//!
//! Kernel facts of connections are those of Linux `net/ipv4/{inet_connection_sock,tcp_ipv4}.c` and
//! `Documentation/networking/ip-sysctl.rst`.

use model::{Cpus, Nanos};

use super::samples::{Activity, SENDS, WAITS, WaitLateness};
use super::{FoundPuma, MachineAnswer, MachineCheck, MachineEvidence, MachineGrade};
use crate::server_cpu::{cpu_groups, tightest_quota};

/// A question about the machine.
struct Question {
    group: &'static str,
    name: &'static str,
    /// `None` if it cannot be answered here.
    answer: fn(&MachineEvidence<'_>) -> Option<MachineAnswer>,
    /// Which results a bad answer spoils.
    spoils: &'static str,
}

const QUESTIONS: [Question; 15] = [
    Question {
        group: "processors",
        name: "processors",
        answer: allowed_processors,
        spoils: "rate and times: server and generator share a CPU",
    },
    Question {
        group: "processors",
        name: "cpu quota",
        answer: quota,
        spoils: "percentiles: a process out of quota stands still",
    },
    Question {
        group: "processors",
        name: "SMT siblings",
        answer: siblings,
        spoils: "rates and tails: two halves of a core slow each other",
    },
    Question {
        group: "processors",
        name: "frequency",
        answer: frequency,
        spoils: "comparisons: the processor's speed follows load and heat",
    },
    Question {
        group: "right now",
        name: "busy",
        answer: busy,
        spoils: "every number: server and generator wait while others run",
    },
    Question {
        group: "right now",
        name: "stolen time",
        answer: steal,
        spoils: "percentiles: the hypervisor runs others meanwhile",
    },
    Question {
        group: "right now",
        name: "memory",
        answer: memory,
        spoils: "tails: the kernel takes pages away while requests wait",
    },
    Question {
        group: "timers",
        name: "clocksource",
        answer: clocksource,
        spoils: "the generator's ceiling: a request reads it several times",
    },
    Question {
        group: "timers",
        name: "late waits",
        answer: late_waits,
        spoils: "open loop: requests are sent this much late",
    },
    Question {
        group: "timers",
        name: "sends",
        answer: sends,
        spoils: "open loop: requests that are due closer together are sent this far apart",
    },
    Question {
        group: "network",
        name: "file descriptors",
        answer: descriptors,
        spoils: "many connections: each is one, here and in the server",
    },
    Question {
        group: "network",
        name: "ephemeral ports",
        answer: ports,
        spoils: "-k: without a free port a connect fails",
    },
    Question {
        group: "network",
        name: "accept queue",
        answer: accept_queue,
        spoils: "many connections: a full queue drops connects for seconds",
    },
    Question {
        group: "kernel",
        name: "BPF",
        answer: tracepoints,
        spoils: "where the wait is: no times from inside the kernel",
    },
    Question {
        group: "programs",
        name: "Puma",
        answer: puma,
        spoils: "sweep: it measures the built-in server instead",
    },
];

/// The answer to every question.
pub(super) fn all(evidence: &MachineEvidence<'_>) -> Vec<MachineCheck> {
    QUESTIONS.iter().map(|question| question.ask(evidence)).collect()
}

impl Question {
    fn ask(&self, evidence: &MachineEvidence<'_>) -> MachineCheck {
        let unknown = || MachineAnswer {
            grade: MachineGrade::Unknown,
            ..MachineAnswer::fine("cannot be read here")
        };
        let MachineAnswer { grade, seen, hint } = (self.answer)(evidence).unwrap_or_else(unknown);
        MachineCheck { group: self.group, name: self.name, seen, grade, spoils: self.spoils, hint }
    }
}

/// The processors that this process, and a server that it starts, may run on.
fn allowed(evidence: &MachineEvidence<'_>) -> Option<Cpus> {
    let list = evidence.field("/proc/self/status", "Cpus_allowed_list")?;
    list.parse().ok().filter(|cpus: &Cpus| !cpus.is_empty())
}

fn allowed_processors(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let allowed = allowed(evidence)?;
    let online: Cpus = (evidence.read)("/sys/devices/system/cpu/online")?.trim().parse().ok()?;
    // The affinity may contain processors that are offline.
    let usable: Vec<u32> =
        allowed.iter().filter(|cpu| online.iter().any(|other| other == *cpu)).collect();
    let is_masked = usable.len() < online.len();
    let seen = match (is_masked, usable.len()) {
        (true, n) => format!(
            "{n} of {} processors ({})",
            online.len(),
            usable.iter().copied().collect::<Cpus>()
        ),
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
                "longtail sweep --server-cpus {first} keeps the generator on {second}; a server \
                 of your own: taskset -c {first} COMMAND"
            ),
        ),
        _ => MachineAnswer::fine(seen),
    })
}

fn quota(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let groups = cpu_groups(&(evidence.read)("/proc/self/cgroup")?);
    let is_mounted = |folder: &String| (evidence.read)(&format!("{folder}/cgroup.procs")).is_some();
    let Some((quota, _)) = tightest_quota(&groups, evidence.read) else {
        return groups.iter().any(is_mounted).then(|| MachineAnswer::fine("none"));
    };
    let allowed = allowed(evidence)?.len();
    let seen = format!("{quota:.2} of {allowed} processors");
    let hint = "run it outside of the limit: systemd-run --scope -p CPUQuota= longtail …, or \
         docker run without --cpus";
    Some(MachineAnswer::graded(-quota, -(allowed as f64), -1.0, seen, hint))
}

fn siblings(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let allowed = allowed(evidence)?;
    let core = |cpu: u32| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        (evidence.read)(&path)?.trim().parse::<Cpus>().ok()?.iter().next()
    };
    // A core is named by the first of its processors.
    let mut cores: Vec<u32> = allowed.iter().map(core).collect::<Option<_>>()?;
    let halves = cores.len();
    cores.sort_unstable();
    cores.dedup();
    Some(if cores.len() == halves {
        MachineAnswer::fine("none: each processor is a core of its own")
    } else {
        let first_of = |first: &u32| allowed.iter().find(|cpu| core(*cpu) == Some(*first));
        let one_each: Cpus = cores.iter().filter_map(first_of).collect();
        let hint = format!(
            "taskset -c {one_each} longtail …, or echo off | sudo tee \
             /sys/devices/system/cpu/smt/control"
        );
        MachineAnswer::warn(format!("{halves} processors are {} cores", cores.len()), hint)
    })
}

/// The governor of each processor, and whether the clock may rise above its nominal rate.
fn frequency(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    const FOLDER: &str = "/sys/devices/system/cpu";
    let governor = |cpu| {
        let path = format!("{FOLDER}/cpu{cpu}/cpufreq/scaling_governor");
        (evidence.read)(&path).map(|text| text.trim().to_owned())
    };
    let mut governors: Vec<String> =
        allowed(evidence)?.iter().map(governor).collect::<Option<_>>()?;
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
    Some(if hints.is_empty() {
        MachineAnswer::fine(seen)
    } else {
        MachineAnswer::warn(seen, hints.join("; "))
    })
}

fn busy(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let Activity { ticks, busiest } = evidence.activity.as_ref()?;
    let share = 1.0 - (ticks.idle + ticks.steal) as f64 / ticks.all as f64;
    let by = if busiest.is_empty() {
        String::new()
    } else {
        format!(", most by {}", busiest.join(", "))
    };
    let seen = format!("{:.0} % of all processors in 1 s{by}", share * 100.0);
    Some(MachineAnswer::graded(share, 0.05, 0.30, seen, "end what runs, or wait for it: top -d 1"))
}

fn steal(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let ticks = evidence.activity.as_ref()?.ticks;
    let share = ticks.steal as f64 / ticks.all as f64;
    let seen = format!("{:.1} % in 1 s", share * 100.0);
    let hint = "another host or another hour; in a cloud, an instance with processors of its own";
    Some(MachineAnswer::graded(share, 0.01, 0.05, seen, hint))
}

fn memory(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let kib =
        |name| evidence.field("/proc/meminfo", name)?.strip_suffix(" kB")?.parse::<u64>().ok();
    let total = kib("MemTotal")?;
    let available = kib("MemAvailable")?;
    let gib = |kib: u64| format!("{:.1} GiB", kib as f64 / f64::from(1 << 20));
    let seen = format!("{} of {} available", gib(available), gib(total));
    // 512 MiB are comfortable for a small server; with less than 128 MiB it may soon be killed (the
    // kernel's OOM killer).
    let available_mib = (available >> 10) as f64;
    let hint = "end what holds it: ps -e --sort=-rss -o rss,pid,comm | head";
    Some(MachineAnswer::graded(-available_mib, -512.0, -128.0, seen, hint))
}

fn clocksource(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let source = (evidence.read)(&format!("{FOLDER}/current_clocksource"))?.trim().to_owned();
    let available = (evidence.read)(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let cost = evidence.clock_reading.0;
    let has_better =
        source != "tsc" && available.split_ascii_whitespace().any(|other| other == "tsc");
    let hint = if has_better {
        format!("echo tsc | sudo tee {FOLDER}/current_clocksource")
    } else {
        "a machine whose clock is read without a system call (clocksource tsc)".to_owned()
    };
    let seen = format!("{source}, {cost} ns a reading");
    Some(MachineAnswer::graded(cost as f64, 150.0, 2000.0, seen, &hint))
}

fn late_waits(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let WaitLateness { median, worst } = evidence.waits?;
    let micros = |time: Nanos| format!("{:.0} µs", time.0 as f64 / 1e3);
    let seen =
        format!("1 ms waits end {} late, the worst of {WAITS} {}", micros(median), micros(worst));
    let hint = "end what runs beside it (top -d 1), or pin generator and server apart (taskset); \
         with --for 60s it hardly changes p99";
    Some(match (median.0, worst.0) {
        (..=100_000, ..=5_000_000) => MachineAnswer::fine(seen),
        (..=1_000_000, _) => MachineAnswer::warn(seen, hint),
        _ => MachineAnswer::bad(
            seen,
            "a kernel with high-resolution timers, or a host that is less busy",
        ),
    })
}

fn sends(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let time = evidence.send?.0 as f64;
    let seen = format!("a request leaves in {:.0} µs, the median of {SENDS}", time / 1e3);
    let hint = "more generator threads (--generator-threads) send side by side, where there are \
         CPUs for them";
    Some(MachineAnswer::graded(time, 50_000.0, 500_000.0, seen, hint))
}

/// Descriptors that longtail needs in addition to its connections.
const OTHER_DESCRIPTORS: u64 = 64;
/// How long a closed connection keeps its port (`TCP_TIMEWAIT_LEN`, include/net/tcp.h), in seconds.
const TIME_WAIT: u64 = 60;
/// The queue that Puma asks for.
const BACKLOG: u64 = 1024;

fn descriptors(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    // `Max open files            1024                 524288               files`
    let limits = (evidence.read)("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let limit = |word: &str| if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() };
    let mut words = line.split_ascii_whitespace();
    let soft = words.next()?;
    let hard = words.next()?;
    let room = limit(hard)?.saturating_sub(OTHER_DESCRIPTORS);
    let raised = if limit(soft)? < limit(hard)? { ", longtail raises its own" } else { "" };
    let seen = format!("{soft} soft, {hard} hard{raised}");
    let hint = "sudo prlimit --pid $$ --nofile=65536:65536";
    Some(MachineAnswer::graded(-(room as f64), -4000.0, -200.0, seen, hint))
}

/// How many connects a second the ports allow, and how many of them are held by connections that
/// were closed (`TIME_WAIT`).
fn ports(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let range = (evidence.read)("/proc/sys/net/ipv4/ip_local_port_range")?;
    let (first, last) = range.trim().split_once(char::is_whitespace)?;
    let ports = (last.trim().parse::<u64>().ok()? + 1).checked_sub(first.parse().ok()?)?;
    let reuse = evidence.number("/proc/sys/net/ipv4/tcp_tw_reuse")?;
    // Ports are reused after a second: 1 for all connections, 2 on loopback only.
    let per_second = |is_reused: bool| if is_reused { ports } else { ports / TIME_WAIT };
    let loopback = per_second(reuse == 1 || reuse == 2);
    let elsewhere = per_second(reuse == 1);
    // `TCP: inuse 19 orphan 0 tw 3453 alloc 19 mem 119`
    let sockets = evidence.field("/proc/net/sockstat", "TCP").unwrap_or_default();
    let held = sockets.split_ascii_whitespace().skip_while(|word| *word != "tw").nth(1);
    let held = held.and_then(|count| count.parse::<u64>().ok());
    let in_time_wait =
        held.map_or_else(String::new, |count| format!(", {count} of them in TIME_WAIT"));
    let seen = format!(
        "{ports}{in_time_wait}; {loopback} connects/s to a server here, {elsewhere}/s elsewhere \
         (tcp_tw_reuse {reuse})"
    );
    let held_share = held.map_or(0.0, |held| held as f64 / ports.max(1) as f64);
    // If ports are reused after a second, a full range still yields some.
    let (many, too_many) = if reuse == 0 { (0.25, 0.90) } else { (0.50, f64::INFINITY) };
    if held_share > many {
        return Some(MachineAnswer::graded(held_share, many, too_many, seen, "sleep 60"));
    }
    let hint = if reuse == 0 {
        "sudo sysctl -w net.ipv4.tcp_tw_reuse=2"
    } else {
        "sudo sysctl -w net.ipv4.ip_local_port_range='10240 65535'"
    };
    Some(MachineAnswer::graded(-(loopback as f64), -10_000.0, -100.0, seen, hint))
}

fn accept_queue(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let limit = evidence.number("/proc/sys/net/core/somaxconn")?;
    let seen = format!(
        "somaxconn {limit}: a listener of Puma holds {} connections",
        limit.min(BACKLOG) + 1
    );
    let hint = "sudo sysctl -w net.core.somaxconn=4096";
    Some(MachineAnswer::graded(-(limit as f64), -(BACKLOG as f64), -16.0, seen, hint))
}

/// By the result of a trial, because a kernel in lockdown may refuse what capabilities permit.
#[expect(clippy::unnecessary_wraps, reason = "a question may have no answer; this one always has")]
fn tracepoints(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let hint = "sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v longtail)\", or run it as root; the kernel must be 6.3 or later";
    Some(match &evidence.tracepoints {
        Ok(()) => MachineAnswer::fine("works (sweep --inspect kernel)"),
        Err(missing) => MachineAnswer::warn(missing.clone(), hint),
    })
}

fn puma(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let FoundPuma { command, printed } = match &evidence.installation.puma {
        Ok(found) => found,
        Err(why) => {
            let has_ruby = evidence.installation.has_ruby;
            let install = if has_ruby {
                "gem install puma"
            } else {
                "sudo apt-get install ruby, then gem install puma"
            };
            return Some(MachineAnswer::warn(why.clone(), install));
        }
    };
    let said = printed.as_deref()?;
    // Ruby may print warnings first.
    if let Some(version) = said.lines().find_map(|line| line.strip_prefix("puma version ")) {
        return Some(MachineAnswer::fine(format!("{} ({command})", version.trim())));
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
    let last: String = last.trim().chars().take(60).collect();
    Some(MachineAnswer::warn(
        format!("{command} --version says: {last}"),
        "bundle install, or gem install puma",
    ))
}
