//! Nothing of what was seen is the limit.

use model::CpuUsage;

use crate::words::tenths;

pub(super) fn evidence(cpu: Option<&CpuUsage>) -> String {
    cpu.map_or("nothing was read of the server".to_owned(), ToString::to_string)
}

pub(super) fn sentence(cpu: Option<&CpuUsage>) -> String {
    let Some(cpu) = cpu else {
        return "What limits the server is not known: nothing could be read of its processes."
            .to_owned();
    };
    format!(
        "What limits the server is not known: it uses {} of {} CPUs.",
        tenths(cpu.server),
        cpu.of
    )
}
