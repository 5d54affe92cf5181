//! Ruby's lock: it runs one thread of a process at a time, and each process did.

use model::CpuUsage;

use crate::words::{count_of, tenths};

pub(super) fn evidence(processes: u32, cpu: &CpuUsage) -> String {
    let who = match processes {
        1 => "the process runs at a time, and one did".to_owned(),
        _ => format!("a process runs at a time, and in each of the {processes} one did"),
    };
    format!("one thread of {who}; {cpu}")
}

pub(super) fn sentence(processes: u32, cpu: &CpuUsage, slots: Option<u32>) -> String {
    let processes = count_of(processes, "process").replace("processs", "processes");
    let more = slots.map_or("More threads", |_| "More threads a worker");
    format!(
        "Ruby's lock is the limit: it runs one thread of a process at a time, and {processes} did \
         ({} of {} CPUs used). {more} add waiting, not throughput.",
        tenths(cpu.server),
        cpu.of
    )
}
