//! What limits connections: descriptors, ports, and the queues of a listener.
//!
//! Kernel facts are those of Linux `net/ipv4/{inet_connection_sock,tcp_minisocks,tcp_ipv4}.c` and
//! `Documentation/networking/ip-sysctl.rst`.

use super::check::{Check, Group, Question};
use super::files::{Files, field};

const fn question(name: &'static str, spoils: &'static str) -> Question {
    Question { group: Group::Network, name, spoils }
}

/// Descriptors that longtail needs beside its connections.
const OTHER_DESCRIPTORS: u64 = 64;
/// How long a closed connection keeps its port (`TCP_TIMEWAIT_LEN`, include/net/tcp.h), in seconds.
const TIME_WAIT: u64 = 60;
/// The queue that Puma asks for.
const BACKLOG: u64 = 1024;

pub(super) fn checks(files: &Files) -> Vec<Check> {
    vec![descriptors(files), ports(files), time_wait(files), accept_queue(files), handshakes(files), cookies(files)]
}

fn descriptors(files: &Files) -> Check {
    const ASKED: Question =
        question("file descriptors", "high multiples: a connection is a descriptor, here and in the server");
    const LIMITS: &str = "/proc/self/limits";
    let Some((soft, hard)) = files.text(LIMITS).as_deref().and_then(open_files) else { return ASKED.unread(LIMITS) };
    let room = hard.saturating_sub(OTHER_DESCRIPTORS);
    let own = if soft < hard { ", longtail raises its own" } else { "" };
    let limit = |limit: u64| if limit == u64::MAX { "unlimited".to_owned() } else { limit.to_string() };
    let seen = format!("{} soft, {} hard{own}", limit(soft), limit(hard));
    // Lacking is the negative of having.
    ASKED
        .graded(-(room as f64), -4000.0, -200.0, seen, "sudo prlimit --pid $$ --nofile=65536:65536")
        .with("soft", soft as f64)
        .with("hard", hard as f64)
}

/// `Max open files            1024                 524288               files`.
fn open_files(limits: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_ascii_whitespace();
    let mut limit =
        || words.next().and_then(|word| if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() });
    Some((limit()?, limit()?))
}

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";

/// How many ports there are to connect from.
fn range(files: &Files) -> Option<u64> {
    let text = files.text(RANGE)?;
    let (first, last) = text.trim().split_once(char::is_whitespace)?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.trim().parse().ok()?);
    (last + 1).checked_sub(first)
}

fn ports(files: &Files) -> Check {
    const ASKED: Question = question(
        "ephemeral ports",
        "-k, and servers that close: without a port a connect fails, and it was not the server",
    );
    let Some(ports) = range(files) else { return ASKED.unread(RANGE) };
    let Some(reuse) = files.number(REUSE) else { return ASKED.unread(REUSE) };
    // Reused after a second: 1 everywhere, 2 on loopback only.
    let per_second = |reused: bool| if reused { ports } else { ports / TIME_WAIT };
    let (loopback, elsewhere) = (per_second(reuse == 1 || reuse == 2), per_second(reuse == 1));
    let seen =
        format!("{ports}, tcp_tw_reuse {reuse}: {loopback} connects/s to a server here, {elsewhere}/s elsewhere");
    let mend = if reuse == 0 {
        "sudo sysctl -w net.ipv4.tcp_tw_reuse=2"
    } else {
        "sudo sysctl -w net.ipv4.ip_local_port_range='10240 65535'"
    };
    ASKED
        .graded(-(loopback as f64), -10_000.0, -100.0, seen, mend)
        .with("ports", ports as f64)
        .with("loopback_per_s", loopback as f64)
        .with("elsewhere_per_s", elsewhere as f64)
}

fn time_wait(files: &Files) -> Check {
    const ASKED: Question = question("TIME_WAIT", "the first run with -k: earlier connections still hold their ports");
    const SOCKSTAT: &str = "/proc/net/sockstat";
    let Some(waiting) = files.text(SOCKSTAT).as_deref().and_then(waiting) else { return ASKED.unread(SOCKSTAT) };
    let Some(ports) = range(files) else { return ASKED.unread(RANGE) };
    let Some(reuse) = files.number(REUSE) else { return ASKED.unread(REUSE) };
    let share = waiting as f64 / ports.max(1) as f64;
    // Where ports are reused after a second, full is not empty-handed.
    let (fine, bad) = if reuse == 0 { (0.25, 0.90) } else { (0.50, f64::INFINITY) };
    let seen = format!("{waiting} connections, {:.0} % of the ports", share * 100.0);
    ASKED.graded(share, fine, bad, seen, "sleep 60").with("connections", waiting as f64)
}

/// `TCP: inuse 19 orphan 0 tw 3453 alloc 19 mem 119`.
fn waiting(sockstat: &str) -> Option<u64> {
    let mut words = field(sockstat, "TCP")?.split_ascii_whitespace().skip_while(|word| *word != "tw");
    words.nth(1)?.parse().ok()
}

fn accept_queue(files: &Files) -> Check {
    const ASKED: Question = question(
        "somaxconn",
        "high multiples: a full accept queue drops connects, and they come back 1, 2, 3 … s later",
    );
    const PATH: &str = "/proc/sys/net/core/somaxconn";
    let Some(limit) = files.number(PATH) else { return ASKED.unread(PATH) };
    let seen = format!("{limit}: a listener of Puma holds {} connections", limit.min(BACKLOG) + 1);
    let mend = "sudo sysctl -w net.core.somaxconn=4096";
    ASKED.graded(-(limit as f64), -(BACKLOG as f64), -16.0, seen, mend).with("connections", limit as f64)
}

const COOKIES: &str = "/proc/sys/net/ipv4/tcp_syncookies";

fn handshakes(files: &Files) -> Check {
    const ASKED: Question = question("tcp_max_syn_backlog", "many connects at once: handshakes beyond it are dropped");
    const PATH: &str = "/proc/sys/net/ipv4/tcp_max_syn_backlog";
    let Some(limit) = files.number(PATH) else { return ASKED.unread(PATH) };
    let Some(cookies) = files.number(COOKIES) else { return ASKED.unread(COOKIES) };
    // It is looked at only where there are no cookies (tcp_conn_request, net/ipv4/tcp_input.c).
    let check = if cookies != 0 {
        ASKED.fine(format!("{limit}, without effect: cookies stand in"))
    } else if limit >= BACKLOG {
        ASKED.fine(limit.to_string())
    } else {
        ASKED.warn(limit.to_string(), "sudo sysctl -w net.ipv4.tcp_max_syn_backlog=4096")
    };
    check.with("handshakes", limit as f64)
}

fn cookies(files: &Files) -> Check {
    const ASKED: Question =
        question("tcp_syncookies", "many connects at once: which are dropped, and what options the others have");
    let mend = "sudo sysctl -w net.ipv4.tcp_syncookies=1";
    match files.number(COOKIES) {
        None => ASKED.unread(COOKIES),
        Some(1) => ASKED.fine("1: when the queue of handshakes is full"),
        Some(0) => ASKED.warn("0: a full queue of handshakes drops connects", mend),
        Some(other) => ASKED.warn(format!("{other}: always, so connections lack options"), mend),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Grade;
    use super::super::files::given;
    use super::*;

    #[test]
    fn descriptors_are_judged_by_the_limit_that_can_be_reached() {
        let of = |soft: &str, hard: &str| {
            let text = format!("Limit  Soft Limit  Hard Limit  Units\nMax open files   {soft}   {hard}   files\n");
            descriptors(&given(&[("/proc/self/limits", &text)]))
        };
        let check = of("1024", "524288");
        assert_eq!(
            (check.grade, check.seen.as_str()),
            (Grade::Fine, "1024 soft, 524288 hard, longtail raises its own")
        );
        assert_eq!(of("1024", "1024").grade, Grade::Warn);
        assert_eq!(of("256", "256").grade, Grade::Bad);
        assert_eq!(of("unlimited", "unlimited").seen, "unlimited soft, unlimited hard");
    }

    fn with_ports(range: &str, reuse: &str) -> Check {
        ports(&given(&[(RANGE, range), (REUSE, reuse)]))
    }

    #[test]
    fn ports_over_the_time_that_they_are_kept_is_a_rate() {
        let check = with_ports("32768\t60999\n", "2\n");
        assert_eq!(check.grade, Grade::Fine);
        assert_eq!(check.seen, "28232, tcp_tw_reuse 2: 28232 connects/s to a server here, 470/s elsewhere");
        let check = with_ports("32768\t60999\n", "0\n");
        assert_eq!(check.grade, Grade::Warn);
        assert!(check.seen.ends_with("470 connects/s to a server here, 470/s elsewhere"), "{}", check.seen);
        assert!(check.mend.unwrap().ends_with("tcp_tw_reuse=2"));
        assert_eq!(with_ports("40000\t40099\n", "0\n").grade, Grade::Bad);
        assert_eq!(with_ports("60999\t32768\n", "2\n").grade, Grade::Unknown);
    }

    #[test]
    fn waiting_connections_are_compared_with_the_ports() {
        let of = |n: u32, reuse| {
            let sockstat =
                format!("sockets: used 53\nTCP: inuse 19 orphan 0 tw {n} alloc 19 mem 119\nUDP: inuse 0 mem 0\n");
            time_wait(&given(&[("/proc/net/sockstat", &sockstat), (RANGE, "32768\t60999\n"), (REUSE, reuse)])).grade
        };
        assert_eq!([0, 8000, 27_000].map(|n| of(n, "0\n")), [Grade::Fine, Grade::Warn, Grade::Bad]);
        assert_eq!([0, 8000, 27_000].map(|n| of(n, "2\n")), [Grade::Fine, Grade::Fine, Grade::Warn]);
    }

    #[test]
    fn a_listener_holds_one_more_than_its_queue() {
        let of = |n| accept_queue(&given(&[("/proc/sys/net/core/somaxconn", n)]));
        assert_eq!(of("128\n").seen, "128: a listener of Puma holds 129 connections");
        assert_eq!((of("128").grade, of("4096").grade), (Grade::Warn, Grade::Fine));
    }

    #[test]
    fn handshakes_are_limited_where_there_are_no_cookies() {
        let of = |limit, on| {
            let files = given(&[("/proc/sys/net/ipv4/tcp_max_syn_backlog", limit), (COOKIES, on)]);
            (handshakes(&files).grade, cookies(&files).grade)
        };
        assert_eq!(of("256", "1\n"), (Grade::Fine, Grade::Fine));
        assert_eq!(of("256", "0\n"), (Grade::Warn, Grade::Warn));
    }
}
