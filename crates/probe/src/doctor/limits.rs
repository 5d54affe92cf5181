//! What limits connections: descriptors, ports, and the queue of a listener.
//!
//! Kernel facts are those of Linux `net/ipv4/{inet_connection_sock,tcp_ipv4}.c` and `Documentation/networking/ip-sysctl.rst`.

use super::{MachineAnswer, MachineEvidence};

/// Descriptors that longtail needs beside its connections.
const OTHER_DESCRIPTORS: u64 = 64;
/// How long a closed connection keeps its port (`TCP_TIMEWAIT_LEN`, include/net/tcp.h), in seconds.
const TIME_WAIT: u64 = 60;
/// The queue that Puma asks for.
const BACKLOG: u64 = 1024;

pub(super) fn descriptors(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    // `Max open files            1024                 524288               files`
    let limits = (evidence.read)("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let limit = |word: &str| if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() };
    let mut words = line.split_ascii_whitespace();
    let (soft, hard) = (words.next()?, words.next()?);
    let room = limit(hard)?.saturating_sub(OTHER_DESCRIPTORS);
    let raised = if limit(soft)? < limit(hard)? { ", longtail raises its own" } else { "" };
    // Lacking is the negative of having.
    let seen = format!("{soft} soft, {hard} hard{raised}");
    let hint = "sudo prlimit --pid $$ --nofile=65536:65536";
    Some(MachineAnswer::graded(-(room as f64), -4000.0, -200.0, seen, hint))
}

/// How many connects a second the ports allow, and how many of them are held by connections that were closed (`TIME_WAIT`).
pub(super) fn ports(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let range = (evidence.read)("/proc/sys/net/ipv4/ip_local_port_range")?;
    let (first, last) = range.trim().split_once(char::is_whitespace)?;
    let ports = (last.trim().parse::<u64>().ok()? + 1).checked_sub(first.parse().ok()?)?;
    let reuse = evidence.number("/proc/sys/net/ipv4/tcp_tw_reuse")?;
    // Reused after a second: 1 everywhere, 2 on loopback only.
    let per_second = |is_reused: bool| if is_reused { ports } else { ports / TIME_WAIT };
    let (loopback, elsewhere) = (per_second(reuse == 1 || reuse == 2), per_second(reuse == 1));
    // `TCP: inuse 19 orphan 0 tw 3453 alloc 19 mem 119`
    let sockets = evidence.field("/proc/net/sockstat", "TCP").unwrap_or_default();
    let held = sockets.split_ascii_whitespace().skip_while(|word| *word != "tw").nth(1);
    let held = held.and_then(|count| count.parse::<u64>().ok());
    let in_time_wait = held.map_or_else(String::new, |count| format!(", {count} of them in TIME_WAIT"));
    let seen = format!(
        "{ports}{in_time_wait}; {loopback} connects/s to a server here, {elsewhere}/s elsewhere (tcp_tw_reuse {reuse})"
    );
    let held_share = held.map_or(0.0, |held| held as f64 / ports.max(1) as f64);
    // Where ports are reused after a second, full is not empty-handed.
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

pub(super) fn accept_queue(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let limit = evidence.number("/proc/sys/net/core/somaxconn")?;
    let seen = format!("somaxconn {limit}: a listener of Puma holds {} connections", limit.min(BACKLOG) + 1);
    let hint = "sudo sysctl -w net.core.somaxconn=4096";
    Some(MachineAnswer::graded(-(limit as f64), -(BACKLOG as f64), -16.0, seen, hint))
}
