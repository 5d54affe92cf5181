//! Nothing that was seen is the limit. The sentence says what was seen, because a reader who knows
//! the app may recognize more in it.

use model::{AtOnce, CpuUsage};

use crate::words::{brief_count, count_of, tenths, worth_in_words};

/// Other processes that use at least this share of the CPUs are named.
const OTHERS_USE: f64 = 0.25;

pub(super) fn evidence(
    cpu: Option<&CpuUsage>,
    at_once: Option<&AtOnce>,
    busy: Option<f64>,
) -> String {
    let at_once = at_once.map(|at_once| format!("{} at a time", worth_in_words(at_once)));
    let busy = busy.map(|busy| format!("{} threads seen busy", brief_count(busy)));
    let parts: Vec<String> =
        at_once.into_iter().chain(busy).chain(cpu.map(ToString::to_string)).collect();
    if parts.is_empty() { "nothing was read about the server".to_owned() } else { parts.join("; ") }
}

pub(super) fn sentence(
    cpu: Option<&CpuUsage>,
    at_once: Option<&AtOnce>,
    busy: Option<f64>,
    slots: Option<u32>,
) -> String {
    let mut seen = Vec::new();
    if let Some(at_once) = at_once {
        let stated =
            slots.map(|slots| format!(", with {}", count_of(slots, "slot"))).unwrap_or_default();
        let worth = worth_in_words(at_once);
        seen.push(format!("it does {worth} of work at a time{stated}"));
    }
    if let Some(busy) = busy {
        seen.push(format!("by its own count {} threads are busy", brief_count(busy)));
    }
    if let Some(cpu) = cpu {
        let others = cpu.others.filter(|others| *others >= OTHERS_USE * cpu.of);
        let others = others.map(|others| format!(", other processes {}", tenths(others)));
        let others = others.unwrap_or_default();
        seen.push(format!("it uses {} of {} CPUs{others}", tenths(cpu.server), cpu.of));
    }
    let last = seen.pop();
    let seen = match last {
        Some(last) if seen.is_empty() => last,
        Some(last) => format!("{}, and {last}", seen.join(", ")),
        None => "nothing could be read of its processes".to_owned(),
    };
    format!("What limits the server is not known: {seen}.")
}
