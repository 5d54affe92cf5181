//! Ruby's lock: it lets one thread of a process run at a time, and each process always, or nearly
//! always, had one running.

use model::{CpuUsage, Strength};

use crate::words::{count_of, share, tenths};

pub(super) fn evidence(processes: u32, each: f64, cpu: &CpuUsage, strength: Strength) -> String {
    let did = match strength {
        Strength::Is => "one did".to_owned(),
        Strength::Probably | Strength::MayBe => {
            format!("one did {} of the time", share(each.min(1.0)))
        }
    };
    let who = match processes {
        1 => format!("the process runs at a time, and {did}"),
        _ => format!("a process runs at a time, and in each of the {processes} {did}"),
    };
    format!("one thread of {who}; {cpu}")
}

/// A smaller gain is none.
const LITTLE_MORE: f64 = 0.03;

/// `each`: how much of a CPU the least busy process used.
pub(super) fn sentence(
    processes: u32,
    each: f64,
    cpu: &CpuUsage,
    strength: Strength,
    slots: Option<u32>,
) -> String {
    let who = count_of(processes, "process");
    let used = format!("({} of {} CPUs used)", tenths(cpu.server), cpu.of);
    let threads = slots.map_or("More threads", |_| "More threads a worker");
    let advice = "more workers do more, as far as CPUs are idle";
    match strength {
        Strength::Is => format!(
            "Ruby's lock is the limit: it runs one thread of a process at a time, and {who} did \
             {used}. {}; {advice}.",
            with_more_threads(threads, each, true)
        ),
        // The process was not always ready to run, so a CPU of its own need not gain anything.
        Strength::Probably | Strength::MayBe => format!(
            "Ruby's lock is probably the limit: it runs one thread of a process at a time, {} for {} \
             of the time {used}, and requests wait inside. {}; {advice}.",
            if processes == 1 { "the process computed" } else { "each process computed" },
            share(each.min(1.0)),
            with_more_threads(threads, each, false)
        ),
    }
}

/// What more threads bring: no more than the time in which a process did not compute. `is_ready`: whether
/// it would have computed then if it had had a CPU.
fn with_more_threads(threads: &str, each: f64, is_ready: bool) -> String {
    let more = 1.0 / each.max(0.01) - 1.0;
    if (LITTLE_MORE..=1.0).contains(&more) {
        let cpus = if is_ready { ", or a CPU for each process," } else { "" };
        format!("{threads}{cpus} bring at most {} more", share(more))
    } else {
        format!("{threads} add waiting, not throughput")
    }
}
