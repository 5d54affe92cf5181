//! Traces one TCP server in the kernel, by BPF: when its connections were accepted, when requests
//! arrived, were read and answered, and how long its threads waited for a CPU.
//!
//! The program that runs in the kernel is `bpf/path.bpf.c`; it is kept compiled beside its source,
//! so that no compiler is needed here. It only reads. It stays as long as its [`Tracepoints`]
//! exists: only descriptors of this process hold it. No child inherits them, and the kernel closes
//! them however the process ends. Its maps (20 MB) are charged to the cgroup; `RLIMIT_MEMLOCK`,
//! which not everybody may raise, has not limited them since Linux 5.11.
//!
//! Not seen: Unix sockets; clients on other hosts (a response is stamped when it reaches the
//! client's socket); accepts by `io_uring`. With TLS, requests cannot be told from handshake
//! messages, so only connections and processes are traced.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader, VerifierLogLevel, include_bytes_aligned};
use model::kernel::KernelStamps;
use model::{KernelView, Nanos, ProcessWaits, Waits};
use thiserror::Error;

use crate::rights;

/// Tests whether tracing is possible here, by attaching to a port that nobody uses.
///
/// # Errors
/// Says what is missing.
pub fn possible() -> Result<(), MissingRight> {
    Tracepoints::attach(&TracingPlan { port: 0, processes: &[], requests: true, events: false })
        .map(drop)
}

/// Programs and their tracepoints: those for connections and processes, then two for requests.
const PROGRAMS: [(&str, &str); 6] = [
    ("lt_state", "inet_sock_set_state"),
    ("lt_accept", "sys_exit"),
    ("lt_wakeup", "sched_wakeup"),
    ("lt_switch", "sched_switch"),
    ("lt_data", "sk_data_ready"),
    ("lt_receive", "sock_recv_length"),
];
const CONNECTION_PROGRAMS: usize = 4;

/// What to trace, and in how much detail.
#[derive(Clone, Copy, Debug)]
pub struct TracingPlan<'a> {
    /// The port that the server listens on, at any address.
    pub port: u16,
    /// Its processes. One that is started later is traced once it accepts or reads.
    pub processes: &'a [u32],
    /// Whether requests are traced; with TLS, only connections and processes can be.
    pub requests: bool,
    /// Whether each response is reported by a [`TracedResponse`].
    pub events: bool,
}

/// One response, as the kernel saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedResponse {
    /// The client's port.
    pub port: u16,
    /// Which response on its connection, from 0.
    pub number: u64,
    /// The process that read the request.
    pub pid: u32,
    /// When each step happened.
    pub stamps: KernelStamps,
}

/// The programs in the kernel. Dropping this removes them.
pub struct Tracepoints {
    // Holds programs and links.
    _programs: Ebpf,
    cells: HashMap<MapData, [u32; 2], u64>,
    window: Array<MapData, u64>,
    losses: Array<MapData, u64>,
    events: RingBuf<MapData>,
}

impl Tracepoints {
    /// Attaches the programs. Responses are reported from now on, but nothing is counted before
    /// [`Tracepoints::count_from`].
    ///
    /// # Errors
    /// Says what is missing; then nothing is attached.
    pub fn attach(wanted: &TracingPlan<'_>) -> Result<Tracepoints, MissingRight> {
        let TracingPlan { port, processes, requests, events } = *wanted;
        let processes = processes.to_vec();
        rights::with_rights_to_trace(move || {
            Tracepoints::attach_here(&TracingPlan { port, processes: &processes, requests, events })
        })
    }

    /// Attaches the programs on the current thread: the one that may trace, if there is one.
    fn attach_here(wanted: &TracingPlan<'_>) -> Result<Tracepoints, MissingRight> {
        if let Some(missing) = MissingRight::beforehand() {
            return Err(missing);
        }
        let (accept, accept4) = ACCEPTS.unwrap_or_default();
        let types =
            Btf::from_sys_fs().map_err(|error| MissingRight::at("the kernel's types", &error))?;
        let mut loader = EbpfLoader::new();
        let wants_events = u32::from(wanted.events);
        loader.btf(Some(&types)).verifier_log_level(VerifierLogLevel::DISABLE);
        loader.override_global("port", &wanted.port, true).override_global(
            "wants_events",
            &wants_events,
            true,
        );
        loader.override_global("nr_accept", &accept, true).override_global(
            "nr_accept4",
            &accept4,
            true,
        );
        let object = include_bytes_aligned!("bpf/path.bpf.o");
        let mut programs =
            loader.load(object).map_err(|error| MissingRight::at("the BPF maps", &error))?;
        let mut family: HashMap<MapData, u32, u32> =
            take(&mut programs, "family", HashMap::try_from)?;
        for pid in wanted.processes {
            family.insert(pid, 1, 0).map_err(|error| MissingRight::at("the BPF maps", &error))?;
        }
        let used = if wanted.requests { PROGRAMS.len() } else { CONNECTION_PROGRAMS };
        for (name, tracepoint) in &PROGRAMS[..used] {
            let failed = |error: &dyn Error| {
                MissingRight::at(&format!("the tracepoint {tracepoint}"), error)
            };
            let program = programs.program_mut(name).ok_or_else(|| MissingRight::part(name))?;
            let program: &mut BtfTracePoint = program.try_into().map_err(|error| failed(&error))?;
            program.load(tracepoint, &types).map_err(|error| failed(&error))?;
            program.attach().map_err(|error| failed(&error))?;
        }
        let mut tracepoints = Tracepoints {
            cells: take(&mut programs, "cells", HashMap::try_from)?,
            window: take(&mut programs, "window", Array::try_from)?,
            losses: take(&mut programs, "losses", Array::try_from)?,
            events: take(&mut programs, "events", RingBuf::try_from)?,
            _programs: programs,
        };
        tracepoints.count_until(Nanos::MAX)?;
        tracepoints.count_from(Nanos::MAX)?;
        Ok(tracepoints)
    }

    /// Counts the waits of connections and requests that arrive from this time of
    /// `CLOCK_MONOTONIC` on.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn count_from(&mut self, from: Nanos) -> Result<(), MissingRight> {
        self.window.set(0, from.0, 0).map_err(|error| MissingRight::at("the BPF maps", &error))
    }

    /// Stops counting at this time.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn count_until(&mut self, until: Nanos) -> Result<(), MissingRight> {
        self.window.set(1, until.0, 0).map_err(|error| MissingRight::at("the BPF maps", &error))
    }

    /// The next reported response, if there is one.
    pub fn next_event(&mut self) -> Option<TracedResponse> {
        event(&self.events.next()?)
    }

    /// What was counted up to now, without the paths of single requests.
    ///
    /// # Errors
    /// If the kernel cannot be asked.
    pub fn view(&self) -> Result<KernelView, MissingRight> {
        let failed = |error| MissingRight::at("the BPF maps", &error);
        let cells: Result<Vec<_>, _> = self.cells.iter().collect();
        // Numbered as in `path.bpf.c`; the fourth: requests whose accept or arrival was not seen.
        let loss = |what| self.losses.get(&what, 0).map_err(failed);
        Ok(KernelView {
            processes: processes(cells.map_err(failed)?),
            unfollowed: loss(3)?,
            lost: loss(0)? + loss(1)? + loss(2)?,
            paths: None,
        })
    }
}

/// A BPF map, which exists as long as its programs do.
fn take<M, E: Error + 'static>(
    programs: &mut Ebpf,
    name: &str,
    of: fn(aya::maps::Map) -> Result<M, E>,
) -> Result<M, MissingRight> {
    let map = programs.take_map(name).ok_or_else(|| MissingRight::part(name))?;
    of(map).map_err(|error| MissingRight::at("the BPF maps", &error))
}

/// `struct event` of `path.bpf.c`.
fn event(record: &[u8]) -> Option<TracedResponse> {
    let mut words = record
        .chunks_exact(8)
        .map(|word| word.try_into().map(u64::from_ne_bytes).unwrap_or_default());
    let mut next = || words.next();
    let known = |time: u64| (time > 0).then_some(Nanos(time));
    let [established, accepted, arrived, read, answered] =
        [next()?, next()?, next()?, next()?, next()?];
    let stamps = KernelStamps {
        established: Nanos(established),
        accepted: known(accepted),
        arrived: known(arrived),
        read: Nanos(read),
        answered: Nanos(answered),
    };
    Some(TracedResponse { port: next()? as u16, pid: next()? as u32, number: next()?, stamps })
}

/// The bucket number under which the sum is stored.
const SUM: u32 = 0xffff;

/// Waits of one kind: their sum, and how many are in each bucket.
type WaitCells = (Nanos, BTreeMap<u32, u64>);

/// An amount by process, and by kind and bucket: an entry of the map `cells`.
type Cell = ([u32; 2], u64);

fn processes(cells: Vec<Cell>) -> Vec<ProcessWaits> {
    let mut kinds: BTreeMap<u32, [WaitCells; 5]> = BTreeMap::new();
    for ([pid, place], amount) in cells {
        let Some(kind) = kinds.entry(pid).or_default().get_mut((place >> 16) as usize) else {
            continue;
        };
        match place & 0xffff {
            SUM => kind.0 = Nanos(amount),
            bucket => *kind.1.entry(bucket).or_default() += amount,
        }
    }
    let process = |(pid, [accept, receive, server, run, answers]): (u32, [WaitCells; 5])| {
        let [accept_queue, receive_queue, in_server, run_queue] =
            [accept, receive, server, run].map(|(sum, buckets)| Waits::of_buckets(sum, &buckets));
        let answers = answers.1.values().sum();
        ProcessWaits { pid, answers, accept_queue, receive_queue, in_server, run_queue }
    };
    kinds.into_iter().map(process).collect()
}

/// Why tracing is not possible here: what is missing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct MissingRight(String);

/// The numbers of the system calls accept and accept4.
const ACCEPTS: Option<(u32, u32)> = if cfg!(target_arch = "x86_64") {
    Some((43, 288))
} else if cfg!(target_arch = "aarch64") {
    Some((202, 242))
} else {
    None
};

/// The kernel's own types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

impl MissingRight {
    /// What is missing, as far as that can be known before anything is tried.
    fn beforehand() -> Option<MissingRight> {
        if ACCEPTS.is_none() {
            return Some(MissingRight(format!(
                "not for this kind of processor ({})",
                std::env::consts::ARCH
            )));
        }
        let missing = rights::missing_to_trace();
        if !missing.is_empty() {
            let verb = if missing.len() > 1 { "are" } else { "is" };
            return Some(MissingRight(format!(
                "{} {verb} not held (sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v longtail)\", \
                 or run as root)",
                missing.join(" and ")
            )));
        }
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        if !is_first(&namespace) {
            let why = "in this PID namespace processes have other numbers than in the kernel (in \
                 a container: --pid=host)";
            return Some(MissingRight(why.to_owned()));
        }
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        if is_clock_shifted(&offsets) {
            let why = "in this time namespace the clock differs from the kernel's (unshare \
                 --time, a container that was moved): run longtail outside of it";
            return Some(MissingRight(why.to_owned()));
        }
        (!Path::new(TYPES).exists()).then(|| {
            MissingRight(format!("{TYPES} is not there (a kernel with CONFIG_DEBUG_INFO_BTF)"))
        })
    }

    /// A missing part of the compiled program, which is our mistake and which the tests would find.
    fn part(name: &str) -> MissingRight {
        MissingRight(format!("'{name}' of path.bpf.o"))
    }

    /// What failed, and why.
    fn at(what: &str, error: &dyn Error) -> MissingRight {
        // The kernel's own message comes last, after what may be pages of the verifier's log.
        let mut last = error;
        while let Some(source) = last.source() {
            last = source;
        }
        let text = last.to_string();
        let line = text.lines().next().unwrap_or_default();
        MissingRight(format!("{what}: {line}"))
    }
}

/// Whether this is the kernel's first PID namespace (`PROC_PID_INIT_INO`,
/// `include/linux/proc_ns.h`).
fn is_first(namespace: &Path) -> bool {
    namespace == Path::new("pid:[4026531836]")
}

/// Whether `/proc/self/timens_offsets` shifts the monotonic clock against the kernel's.
fn is_clock_shifted(offsets: &str) -> bool {
    let monotonic = offsets.lines().find_map(|line| line.strip_prefix("monotonic"));
    monotonic.is_some_and(|offset| offset.split_whitespace().any(|part| part != "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_namespace_is_known_by_its_clock_offset() {
        assert!(!is_clock_shifted(""));
        assert!(!is_clock_shifted(
            "monotonic           0         0\nboottime            5         0\n"
        ));
        assert!(is_clock_shifted(
            "monotonic        1000         0\nboottime            0         0\n"
        ));
        assert!(is_clock_shifted("monotonic           0 -300000000\n"));
    }

    #[test]
    fn cells_are_grouped_by_process_and_kind() {
        let cell = |kind: u32, bucket: u32| kind << 16 | bucket;
        let cells = vec![
            ([7, cell(3, 10)], 2),
            ([7, cell(3, SUM)], 20),
            ([7, cell(4, 0)], 5),
            ([6, SUM], 64),
            ([6, 100], 1),
            ([6, cell(9, 0)], 1),
        ];
        let seen = processes(cells);
        assert_eq!(
            seen.iter().map(|process| (process.pid, process.answers)).collect::<Vec<_>>(),
            [(6, 0), (7, 5)]
        );
        assert_eq!(
            seen[0].accept_queue,
            Waits { count: 1, sum: Nanos(64), buckets: vec![(100, 1)] }
        );
        assert_eq!(seen[1].run_queue, Waits { count: 2, sum: Nanos(20), buckets: vec![(10, 2)] });
    }

    #[test]
    fn a_stamp_of_zero_is_absent_and_half_a_record_is_dropped() {
        let words: Vec<u8> =
            [1u64, 0, 0, 4, 5, 40_000, 77, 2].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let answer = event(&words).unwrap();
        assert_eq!((answer.port, answer.pid, answer.number), (40_000, 77, 2));
        assert_eq!(
            (answer.stamps.accepted, answer.stamps.arrived, answer.stamps.answered),
            (None, None, Nanos(5))
        );
        assert_eq!(event(&words[..56]), None);
    }

    #[test]
    fn a_containers_pid_namespace_is_not_the_first() {
        assert!(is_first(Path::new("pid:[4026531836]")));
        assert!(!is_first(Path::new("pid:[4026532178]")) && !is_first(Path::new("")));
    }

    #[test]
    fn the_kernels_message_is_one_line() {
        let error = std::io::Error::from_raw_os_error(1);
        assert_eq!(
            MissingRight::at("loading lt_state", &error).to_string(),
            "loading lt_state: Operation not permitted (os error 1)"
        );
    }
}
