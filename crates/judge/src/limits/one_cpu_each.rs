//! Each process uses a whole CPU and no more, and CPUs are left: Node's event loop, Python's lock,
//! or a single-threaded server.

use model::CpuUsage;

use crate::words::tenths;

fn who(processes: u32) -> String {
    match processes {
        1 => "its process uses a whole CPU".to_owned(),
        _ => format!("each of its {processes} processes uses a whole CPU"),
    }
}

pub(super) fn evidence(processes: u32, cpu: &CpuUsage) -> String {
    format!("{}; {cpu}", who(processes))
}

pub(super) fn sentence(processes: u32, cpu: &CpuUsage) -> String {
    format!(
        "One CPU a process is the limit: {} ({} of {} CPUs used). More processes would do more, as \
         far as CPUs are idle.",
        who(processes),
        tenths(cpu.server),
        cpu.of
    )
}
