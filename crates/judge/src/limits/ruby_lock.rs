//! Ruby's lock: it lets one thread of a process run at a time, and each process always had one
//! running.

use model::CpuUsage;

use crate::words::{count_of, share, tenths};

pub(super) fn evidence(processes: u32, cpu: &CpuUsage) -> String {
    let who = match processes {
        1 => "the process runs at a time, and one did".to_owned(),
        _ => format!("a process runs at a time, and in each of the {processes} one did"),
    };
    format!("one thread of {who}; {cpu}")
}

/// The gain from a CPU of its own is mentioned if it is larger than this.
const LITTLE_MORE: f64 = 0.03;

/// `each`: how much of a CPU the least busy process used.
pub(super) fn sentence(processes: u32, each: f64, cpu: &CpuUsage, slots: Option<u32>) -> String {
    let processes = count_of(processes, "process").replace("processs", "processes");
    let more = slots.map_or("More threads", |_| "More threads a worker");
    let of_its_own = 1.0 / each.max(0.01) - 1.0;
    let of_its_own = if (LITTLE_MORE..=1.0).contains(&of_its_own) {
        format!("; CPUs of its own at most {} more", share(of_its_own))
    } else {
        String::new()
    };
    format!(
        "Ruby's lock is the limit: it runs one thread of a process at a time, and {processes} did \
         ({} of {} CPUs used). {more} add waiting, not throughput{of_its_own}; more workers do more, \
         as far as CPUs are idle.",
        tenths(cpu.server),
        cpu.of
    )
}
