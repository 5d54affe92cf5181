//! Reads the kernel's tracepoints during a run (`--inspect kernel`), and joins the kernel's record
//! of each request with the client's: by the client's port, the request's number on its connection,
//! and the time when the connection was made.
//!
//! The kernel reports a response before the client can have read it. So if the client's records are
//! taken first, and then all of the kernel's, both records of each request are there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use engine::{LoadSpec, RecordBatch, RequestRecord, RequestTrace, RunProgress};
use model::kernel::{KernelStamps, PathAccumulator, RequestPaths};
use model::theory::ServiceTime;
use model::{
    Clock, Exchange, KernelView, Nanos, Probe, ProbeUsed, SystemClock, Tally, Watch, Window,
};
use probe::bpf::{self, MissingRight, TracedResponse, Tracepoints, TracingPlan};
use probe::processes;

/// How often the kernel's reports are read.
const PERIOD: Nanos = Nanos::from_millis(10);
/// Up to this many requests per second the tracepoints' cost, 2 to 4 µs a request, is negligible:
/// at most 2 % of a CPU.
const CHEAP: f64 = 5000.0;

/// What to read of the server, if the user `asked` for this, and why not more. `None`: nothing is
/// read.
pub(crate) fn choose(
    asked: Probe,
    is_tcp: bool,
    slots: u32,
    service_time: Option<ServiceTime>,
) -> Option<ProbeUsed> {
    let proc_because = |why: String| Some(ProbeUsed { probe: Probe::Proc, why_no_bpf: Some(why) });
    match asked {
        Probe::None => None,
        Probe::Proc | Probe::Bpf => Some(ProbeUsed { probe: asked, why_no_bpf: None }),
        Probe::Auto if !is_tcp => proc_because("it sees no Unix sockets".to_owned()),
        Probe::Auto => {
            if let Err(missing) = bpf::possible() {
                return proc_because(missing.to_string());
            }
            let most = service_time.map(|known| f64::from(slots) / known.mean.as_secs_f64());
            if most.is_some_and(|rate| rate <= CHEAP) {
                return Some(ProbeUsed { probe: Probe::Bpf, why_no_bpf: None });
            }
            let known = most.filter(|rate| rate.is_finite());
            let rate = known.map_or("as many requests as come".to_owned(), |rate| {
                format!("{rate:.0} requests/s")
            });
            proc_because(format!(
                "its cost would show at {rate} (--inspect kernel does it all the same)"
            ))
        }
    }
}

/// Attaches the tracepoints for a run of `shape` to the server at `port` with this root process. If
/// `shape` traces requests, the kernel reports each response.
///
/// # Errors
/// If a right or a part of the kernel is missing.
pub(crate) fn attach(port: u16, root: u32, shape: &LoadSpec) -> Result<Tracepoints, MissingRight> {
    let processes = processes::tree(root);
    let requests = shape.transport.tls.is_none();
    let mut tracepoints = Tracepoints::attach(&TracingPlan {
        port,
        processes: &processes,
        requests,
        events: shape.traces_requests,
    })?;
    if shape.load.warm_up == Nanos::ZERO {
        tracepoints.count_from(Nanos::ZERO)?;
    }
    Ok(tracepoints)
}

/// Reads the tracepoints until `over` is raised, and joins them with the `journal`, if there is
/// one.
///
/// # Errors
/// If the tracepoints cannot be read.
pub(crate) fn listen(
    mut tracepoints: Tracepoints,
    shape: &LoadSpec,
    clock: &SystemClock,
    progress: &RunProgress,
    over: &AtomicBool,
    journal: Option<&Receiver<RecordBatch>>,
) -> Result<TraceResult, MissingRight> {
    let cpu_before = processes::this_threads_cpu();
    let lead = clock.shared_ahead();
    let mut join = None;
    loop {
        let is_over = over.load(Ordering::Relaxed);
        if join.is_none() && progress.start() > Nanos::ZERO {
            let window = shape.window(progress.start());
            tracepoints.count_until(Nanos(window.until.0.saturating_add(lead.0)))?;
            if shape.load.warm_up > Nanos::ZERO {
                tracepoints.count_from(window.from + lead)?;
            }
            join = Some(StampJoin::new(lead, window));
        }
        if let Some(join) = &mut join {
            // The client's records first: see the top of this file.
            let batches: Vec<RecordBatch> =
                journal.iter().flat_map(|journal| journal.try_iter()).collect();
            while let Some(event) = tracepoints.next_event() {
                join.record_response(&event);
            }
            batches.iter().flatten().for_each(|record| join.record(record));
        }
        if is_over {
            break;
        }
        clock.sleep(PERIOD);
    }
    let view = tracepoints.view()?;
    let cpu = processes::this_threads_cpu().saturating_sub(cpu_before);
    Ok(TraceResult { view, join: join.filter(|_| journal.is_some()), cpu })
}

/// What the tracepoints reported during a run.
pub(crate) struct TraceResult {
    view: KernelView,
    join: Option<StampJoin>,
    /// CPU time of the thread that read them.
    cpu: Nanos,
}

/// The kernel's view of a run with this tally. If there is none, the reason goes to `watch`.
pub(crate) fn view(
    traced: Result<TraceResult, MissingRight>,
    tally: &Tally,
    watch: Option<&mut Watch>,
) -> Option<KernelView> {
    match traced {
        Ok(TraceResult { view, join, cpu }) => {
            if let Some(watch) = watch {
                watch.cpu += cpu;
            }
            Some(KernelView { paths: join.map(|join| join.paths(tally.counts.good())), ..view })
        }
        Err(why) => {
            if let Some(watch) = watch {
                watch.missing.push(format!("the kernel's tracepoints: {why}"));
            }
            None
        }
    }
}

/// The kernel also reports responses to other clients, which no request of ours picks up. All
/// pending reports are dropped when there are this many.
const MOST_REPORTED: usize = 1 << 20;

/// Joins the kernel's records of a run's requests with the client's.
pub(crate) struct StampJoin {
    /// By how much the kernel's clock is ahead of the client's.
    lead: Nanos,
    window: Window,
    pending: HashMap<(u16, u64), Vec<KernelStamps>>,
    paths: PathAccumulator,
    seen: u64,
}

impl StampJoin {
    /// For the requests that are due in `window`, by the client's clock.
    pub(crate) fn new(lead: Nanos, window: Window) -> StampJoin {
        StampJoin {
            lead,
            window,
            pending: HashMap::new(),
            paths: PathAccumulator::default(),
            seen: 0,
        }
    }

    /// Takes the kernel's record of a response.
    pub(crate) fn record_response(&mut self, event: &TracedResponse) {
        if self.pending.len() >= MOST_REPORTED {
            self.pending.clear();
        }
        self.pending.entry((event.port, event.number)).or_default().push(event.stamps);
    }

    /// Takes the client's record of a request. The kernel's must have come before, by
    /// [`StampJoin::record_response`].
    pub(crate) fn record(&mut self, record: &RequestRecord) {
        let exchange = self.on_kernel_clock(&record.exchange);
        let kernel = record.trace.and_then(|trace| self.take(&trace, exchange.ended));
        if self.window.contains(record.exchange.due) && exchange.outcome.is_good() {
            self.seen += 1;
            self.paths.record(&exchange, kernel.as_ref(), record.trace.and_then(|trace| trace.app));
        }
    }

    /// The kernel's record of a request, if exactly one connection of its port was made between
    /// `opened` and `ended`.
    fn take(&mut self, trace: &RequestTrace, ended: Nanos) -> Option<KernelStamps> {
        let pending = self.pending.get_mut(&(trace.port, trace.number))?;
        let opened = trace.opened + self.lead;
        let fits = |stamps: &KernelStamps| (opened..=ended).contains(&stamps.established);
        if pending.iter().filter(|stamps| fits(stamps)).count() != 1 {
            return None;
        }
        let place = pending.iter().position(fits)?;
        let stamps = pending.swap_remove(place);
        // Earlier connections of the port are not needed any more.
        pending.retain(|other| other.established > ended);
        if pending.is_empty() {
            self.pending.remove(&(trace.port, trace.number));
        }
        Some(stamps)
    }

    /// The exchange on the kernel's clock.
    fn on_kernel_clock(&self, exchange: &Exchange) -> Exchange {
        let there = |time: Nanos| time + self.lead;
        Exchange {
            due: there(exchange.due),
            sent: there(exchange.sent),
            ended: there(exchange.ended),
            ..*exchange
        }
    }

    /// The paths of all joined requests, of `good` measured good responses in all.
    pub(crate) fn paths(mut self, good: u64) -> RequestPaths {
        self.paths.lose(good.saturating_sub(self.seen));
        self.paths.paths()
    }
}

#[cfg(test)]
mod tests {
    use model::Outcome;

    use super::*;

    fn why(asked: Probe, is_tcp: bool, time: Option<Nanos>) -> Option<(Probe, Option<String>)> {
        let service_time = time.map(ServiceTime::given);
        choose(asked, is_tcp, 10, service_time).map(|used| (used.probe, used.why_no_bpf))
    }

    #[test]
    fn a_stated_probe_is_taken_and_auto_explains_its_choice() {
        let slow = Some(Nanos::from_millis(2));
        assert_eq!(why(Probe::None, true, slow), None);
        assert_eq!(why(Probe::Proc, true, slow), Some((Probe::Proc, None)));
        assert_eq!(why(Probe::Bpf, true, None), Some((Probe::Bpf, None)));
        let unix = Some("it sees no Unix sockets".to_owned());
        assert_eq!(why(Probe::Auto, false, slow), Some((Probe::Proc, unix)));
        if bpf::possible().is_ok() {
            assert_eq!(why(Probe::Auto, true, slow), Some((Probe::Bpf, None)), "5000 requests/s");
            let fast = Some(Nanos::from_millis(1));
            for (time, rate) in
                [(fast, "10000 requests/s"), (Some(Nanos::ZERO), "as many"), (None, "as many")]
            {
                let (probe, why) = why(Probe::Auto, true, time).unwrap();
                assert!(probe == Probe::Proc && why.as_ref().unwrap().contains(rate), "{why:?}");
            }
        }
    }

    const LEAD: Nanos = Nanos::from_secs(1000);

    fn join() -> StampJoin {
        StampJoin::new(
            LEAD,
            Window { from: Nanos::from_millis(10), until: Nanos::from_millis(500) },
        )
    }

    /// The kernel's record of a response; times in ms of the client's clock.
    fn response(port: u16, number: u64, established: u64, answered: u64) -> TracedResponse {
        let at = |ms| Nanos::from_millis(ms) + LEAD;
        let stamps = KernelStamps {
            established: at(established),
            accepted: Some(at(established + 1)),
            arrived: Some(at(answered - 3)),
            read: at(answered - 2),
            answered: at(answered),
        };
        TracedResponse { port, number, pid: 1, stamps }
    }

    fn record(port: u16, number: u64, opened: u64, due: u64, ended: u64) -> RequestRecord {
        let ms = Nanos::from_millis;
        let exchange = Exchange {
            due: ms(due),
            sent: ms(due),
            ended: ms(ended),
            received_bytes: 0,
            outcome: Outcome::Answered(200),
        };
        let trace = RequestTrace { port, number, opened: ms(opened), app: None };
        RequestRecord { number: 0, exchange, reason: None, response: None, trace: Some(trace) }
    }

    #[test]
    fn a_reused_port_is_another_connection() {
        let mut join = join();
        for (established, answered) in [(5, 15), (50, 60), (90, 99)] {
            join.record_response(&response(4000, 0, established, answered));
        }
        join.record_response(&response(4000, 1, 50, 70));
        join.record_response(&response(4001, 0, 50, 60));
        join.record(&record(4000, 0, 49, 49, 61));
        join.record(&record(4000, 1, 49, 61, 71));
        join.record(&record(4000, 0, 89, 89, 100));
        // The kernel reported no such connection; the next one is not measured.
        join.record(&record(4002, 0, 89, 89, 100));
        join.record(&record(4001, 0, 49, 9, 61));
        let paths = join.paths(5);
        assert_eq!((paths.all.requests, paths.unmatched, paths.impossible), (3, 2, 0));
        assert_eq!(paths.all.response_time, Nanos::from_millis(12 + 10 + 11));
        assert_eq!(
            (paths.all.in_server, paths.all.reading),
            (Nanos::from_millis(6), Nanos::from_millis(3))
        );
    }

    #[test]
    fn requests_that_cannot_be_told_apart_are_not_joined() {
        let mut join = join();
        join.record_response(&response(4000, 0, 50, 60));
        join.record_response(&response(4000, 0, 52, 60));
        join.record(&record(4000, 0, 49, 49, 61));
        let paths = join.paths(1);
        assert_eq!((paths.all.requests, paths.unmatched), (0, 1));
    }
}
