//! A server that is no Puma: nobody tells how many requests it can serve at once, so what limits it is
//! told as far as the kernel shows it, and what would settle the rest.

use super::evidence::WatchEvidence;
use super::takes;
use crate::words::{brief, count_of};

/// From this share of the CPUs on, or of one CPU for a process, it is not said that they are not the limit.
const NOT_LOW: f64 = 0.5;

/// What is known of its limit, if several requests are in flight or connections wait.
pub(super) fn sentence(seen: &WatchEvidence) -> Option<String> {
    if !is_such(seen) {
        return None;
    }
    let out = seen.requests_out();
    let is_clear = uses_few_cpus(seen);
    let conclusion = if waits(seen) {
        let full = if is_clear { "probably full" } else { "probably full, or short of CPU" };
        match out.filter(|out| *out > 0) {
            Some(out) => {
                let are = if out == 1 { "is" } else { "are" };
                let out = count_of(out, "request");
                format!("It is {full}: while {out} {are} in flight, it accepts no more.")
            }
            None => format!("It is {full}: connections wait to be accepted."),
        }
    } else {
        let out = out.filter(|out| *out > 1)?;
        format!(
            "Not known: whether some of the {out} requests wait for others inside, as the server does \
             not say how many it serves at once."
        )
    };
    Some(if is_clear { format!("{conclusion} CPUs are not the limit.") } else { conclusion })
}

/// Whether connections wait to be accepted.
fn waits(seen: &WatchEvidence) -> bool {
    seen.in_kernel() > Some(0)
}

/// Whether it is clear that neither the CPUs are its limit, nor one CPU for any of its processes.
fn uses_few_cpus(seen: &WatchEvidence) -> bool {
    let busy = seen.busy_cpus.or(seen.cpu).zip(seen.cpus);
    let are_free = busy.is_some_and(|(busy, cpus)| busy < NOT_LOW * cpus);
    are_free && seen.workers.iter().all(|worker| worker.cpu.is_some_and(|cpu| cpu < NOT_LOW))
}

/// What settles whether requests wait for each other inside.
pub(super) fn attempt(seen: &WatchEvidence) -> Option<String> {
    sentence(seen)?;
    let url = match seen.place.strip_prefix(':') {
        Some(port) => format!("http://127.0.0.1:{port}/"),
        None => "URL".to_owned(),
    };
    let command = format!("`longtail load -c 1 -n 50 {url}`, if it speaks HTTP");
    if waits(seen) {
        return Some(format!(
            "let it serve more at once, or make each request shorter. How long one takes while there are \
             no others shows which of them helps ({command})."
        ));
    }
    let as_now = takes(seen).map_or_else(
        || "takes as long as now".to_owned(),
        |takes| format!("also takes about {}", brief(takes)),
    );
    Some(format!(
        "time one request while there are no others ({command}): if it {as_now}, the work itself is slow; \
         if far less, the server is full."
    ))
}

/// Whether it is such a server that runs on this machine.
pub(super) fn is_such(seen: &WatchEvidence) -> bool {
    !seen.is_puma && !seen.is_elsewhere && seen.slots().is_none() && seen.ended.is_none()
}
