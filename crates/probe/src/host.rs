//! The machine that a study is made on: what it is, and what happened to it between two moments
//! (CPU time used and stolen, waits for a CPU, connects dropped by full accept queues or sent
//! again).
//!
//! All of it is counted for the whole machine (connects: for its network namespace). If the machine
//! does other things, it is an upper bound of what happened to the server.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use model::{Endpoint, Environment, Nanos};

/// With this many ticks (10 ms each, of all processors) a share is known to the percent.
const LEAST_TICKS: u64 = 100;

/// Counters at one moment; those that cannot be read are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Time of all processors.
    cpu: Option<CpuTicks>,
    /// `TcpExt: ListenOverflows`.
    listen_overflows: Option<u64>,
    /// `TcpExt: TCPSynRetrans`.
    syn_retransmits: Option<u64>,
    /// See [`cpu_pressure`].
    cpu_pressure: Option<Nanos>,
}

impl HostCounters {
    /// The counters now.
    pub fn now() -> HostCounters {
        let tcp = fs::read_to_string("/proc/net/netstat").unwrap_or_default();
        HostCounters {
            cpu: CpuTicks::now(),
            listen_overflows: counter(&tcp, "TcpExt:", "ListenOverflows"),
            syn_retransmits: counter(&tcp, "TcpExt:", "TCPSynRetrans"),
            cpu_pressure: cpu_pressure(),
        }
    }

    /// The share of all processors' time since `before` that the hypervisor gave to others, 0 to 1.
    /// `None` if so little time has passed that a single tick would look like a notable share.
    pub fn steal_since(&self, before: &HostCounters) -> Option<f64> {
        let passed = self.cpu?.since(&before.cpu?).filter(|passed| passed.all >= LEAST_TICKS)?;
        Some(passed.steal as f64 / passed.all as f64)
    }

    /// CPU time since `before` of all programs together.
    pub fn busy_since(&self, before: &HostCounters) -> Option<Nanos> {
        let passed = self.cpu?.since(&before.cpu?)?;
        let busy = passed.all - passed.idle.min(passed.all);
        // A tick is 10 ms.
        Some(Nanos::from_millis(10 * busy.saturating_sub(passed.steal)))
    }

    /// For how long since `before` some task waited for a CPU.
    pub fn cpu_pressure_since(&self, before: &HostCounters) -> Option<Nanos> {
        self.cpu_pressure?.0.checked_sub(before.cpu_pressure?.0).map(Nanos)
    }

    /// Connects since `before` that a full accept queue dropped.
    pub fn listen_overflows_since(&self, before: &HostCounters) -> Option<u64> {
        self.listen_overflows?.checked_sub(before.listen_overflows?)
    }

    /// Connects since `before` that the kernel sent again because nobody responded.
    pub fn syn_retransmits_since(&self, before: &HostCounters) -> Option<u64> {
        self.syn_retransmits?.checked_sub(before.syn_retransmits?)
    }
}

/// For how long since boot some task waited for a CPU: the pressure of the whole machine (PSI).
pub fn cpu_pressure() -> Option<Nanos> {
    some_total(&fs::read_to_string("/proc/pressure/cpu").ok()?).map(Nanos::from_micros)
}

/// The last word of `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, in microseconds.
fn some_total(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Whether an address belongs to this machine and network namespace: loopback, or the address from
/// which the kernel itself would reach it. Connecting a UDP socket sends nothing; it only makes the
/// kernel choose a route.
pub fn is_of_this_machine(endpoint: &Endpoint) -> bool {
    let Endpoint::Tcp(address) = endpoint else { return true };
    let ip = address.ip().to_canonical();
    ip.is_loopback() || ip.is_unspecified() || source_address(*address) == Some(ip)
}

/// The address from which the kernel would speak to `address`.
fn source_address(address: SocketAddr) -> Option<IpAddr> {
    let unspecified: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((unspecified, 0)).ok()?;
    socket.connect(address).ok()?;
    Some(socket.local_addr().ok()?.ip().to_canonical())
}

/// What processors did since boot, in ticks: a line of `/proc/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    pub(crate) all: u64,
    pub(crate) idle: u64,
    pub(crate) steal: u64,
}

impl CpuTicks {
    /// All processors together, up to now.
    pub(crate) fn now() -> Option<CpuTicks> {
        CpuTicks::named(&fs::read_to_string("/proc/stat").ok()?, "cpu")
    }

    /// Reads the line of this name: user nice system idle iowait irq softirq steal … (proc(5)).
    /// Guest time is part of user's.
    pub(crate) fn named(stat: &str, name: &str) -> Option<CpuTicks> {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [_, _, _, idle, iowait, _, _, steal] = ticks[..] else { return None };
        Some(CpuTicks { all: ticks.iter().sum(), idle: idle + iowait, steal })
    }

    /// What passed since `before`, if anything did. The kernel's iowait may fall (proc(5)).
    pub(crate) fn since(&self, before: &CpuTicks) -> Option<CpuTicks> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let idle = self.idle.saturating_sub(before.idle);
        let steal = self.steal.saturating_sub(before.steal);
        Some(CpuTicks { all, idle: idle.min(all), steal })
    }
}

/// A counter of `/proc/net/netstat`: a line of names, then a line of values, each behind the same
/// prefix.
fn counter(table: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(prefix));
    let names = lines.next()?;
    let values = lines.next()?;
    let at = names.split_ascii_whitespace().position(|other| other == name)?;
    values.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// What is known of this machine; the rest stays empty or 0.
pub fn environment(longtail_version: &str) -> Environment {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    Environment {
        longtail_version: longtail_version.to_owned(),
        os: field(&os_release, "PRETTY_NAME", '=').trim_matches('"').to_owned(),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        cpu: field(&cpu_info, "model name", ':').to_owned(),
        cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: field(&memory, "MemTotal", ':')
            .trim_end_matches(" kB")
            .parse::<u64>()
            .map_or(0, |kb| kb * 1024),
    }
}

/// The value of the first line `name<separator>value`, trimmed; empty if there is none.
fn field<'a>(text: &'a str, name: &str, separator: char) -> &'a str {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)
        .map_or("", |(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pressure_of_a_machine_is_read_as_the_kernel_writes_it() {
        let text = "some avg10=1.53 avg60=0.30 avg300=0.08 total=7123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(some_total(text), Some(7_123_456));
        assert_eq!(some_total(""), None);
    }

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let at =
            |stat| HostCounters { cpu: CpuTicks::named(stat, "cpu"), ..HostCounters::default() };
        let before = at("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1");
        let after = at("cpu  140 0 120 820 0 0 0 20 0 0\n");
        assert_eq!(after.steal_since(&before), Some(0.2));
        assert_eq!(before.steal_since(&before), None, "no time has passed");
        let soon = at("cpu  101 0 100 800 0 0 0 1 0 0");
        assert_eq!(soon.steal_since(&before), None, "one of two ticks");
        assert_eq!(at("intr 5").cpu, None);
        let stat = "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 10 1 5 900 50 2 3 4 0 0\ncpu1 1 0 0 9 0 0 0 \
             0\ncpu10 7 0 0 1 0 0 0 0\n";
        let busy = |name| CpuTicks::named(stat, name).map(|ticks| ticks.all - ticks.idle);
        assert_eq!(["cpu0", "cpu1", "cpu10", "cpu2"].map(busy), [Some(25), Some(1), Some(7), None]);
        // The kernel's iowait falls.
        let [before, after] = ["cpu 9 0 0 50 9 0 0 0", "cpu 99 0 0 51 5 0 0 0"]
            .map(|stat| CpuTicks::named(stat, "cpu").unwrap());
        assert_eq!(after.since(&before), Some(CpuTicks { all: 87, idle: 0, steal: 0 }));
    }

    #[test]
    fn counters_are_found_by_name() {
        let table = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 21 23\nIpExt: \
             InOctets\nIpExt: 5\n";
        assert_eq!(counter(table, "TcpExt:", "ListenOverflows"), Some(21));
        assert_eq!(counter(table, "TcpExt:", "Nothing"), None);
        assert_eq!(counter(table, "IpExt:", "InOctets"), Some(5));
    }

    #[test]
    fn the_counters_of_this_machine_can_be_read() {
        let now = HostCounters::now();
        assert!(now.cpu.is_some() && HostCounters::now().listen_overflows_since(&now).is_some());
    }

    #[test]
    fn fields_are_found_whatever_surrounds_them() {
        assert_eq!(field("a: 1\nmodel name\t: AMD EPYC\n", "model name", ':'), "AMD EPYC");
        assert_eq!(field("", "model name", ':'), "");
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let here = environment("1.2.3");
        assert!(!here.kernel.is_empty() && here.cores > 0);
    }
}
