//! Listens to the kernel's tracepoints while a run goes on, and decides whether that is to be done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use engine::{LoadSpec, RecordBatch, RunProgress};
use model::forecast::ServiceTime;
use model::{Clock, KernelView, Nanos, Probe, ProbeUsed, SystemClock, Tally, Watch};
use probe::bpf::{self, MissingRight, TracedPath, TracingPlan};
use probe::processes;

use crate::join::StampJoin;

/// Between two readings of what the kernel has reported.
const PERIOD: Nanos = Nanos::from_millis(10);
/// Requests a second up to which the tracepoints' cost, 2 to 4 µs a request, is left out of account: 2 % of a CPU.
const CHEAP: f64 = 5000.0;

/// What is read in the end where `asked` says so, of a server of so many slots.
pub(crate) fn choose(asked: Probe, is_tcp: bool, slots: u32, service_time: Option<ServiceTime>) -> Option<ProbeUsed> {
    let proc_because = |why: String| Some(ProbeUsed { probe: Probe::Proc, why_no_bpf: Some(why) });
    match asked {
        Probe::None => None,
        Probe::Proc | Probe::Bpf => Some(ProbeUsed { probe: asked, why_no_bpf: None }),
        Probe::Auto if !is_tcp => proc_because("it sees no Unix sockets".to_owned()),
        Probe::Auto => {
            if let Err(missing) = bpf::possible() {
                return proc_because(missing.to_string());
            }
            let most = service_time.map(|known| f64::from(slots) / known.time.as_secs_f64());
            if most.is_some_and(|rate| rate <= CHEAP) {
                return Some(ProbeUsed { probe: Probe::Bpf, why_no_bpf: None });
            }
            let known = most.filter(|rate| rate.is_finite());
            let rate = known.map_or("as many requests as come".to_owned(), |rate| format!("{rate:.0} requests/s"));
            proc_because(format!(
                "what it costs a request would show at {rate} (--inspect kernel does it all the same)"
            ))
        }
    }
}

/// Attaches the tracepoints of the server at `port` whose first process is `root`, for a run of `shape`. Where that is traced, each answer
/// is reported.
///
/// # Errors
/// With what is missing.
pub(crate) fn attach(port: u16, root: u32, shape: &LoadSpec) -> Result<TracedPath, MissingRight> {
    let family = processes::tree(root);
    let requests = shape.transport.tls.is_none();
    let mut path = TracedPath::follow(&TracingPlan { port, processes: &family, requests, events: shape.traces })?;
    if shape.warm_up == Nanos::ZERO {
        path.count_from(Nanos::ZERO)?;
    }
    Ok(path)
}

/// Listens until `over`, and joins what is reported with the journal's records where there is one.
///
/// # Errors
/// Where the kernel does not tell.
pub(crate) fn listen(
    mut path: TracedPath,
    shape: &LoadSpec,
    clock: &SystemClock,
    progress: &RunProgress,
    over: &AtomicBool,
    journal: Option<&Receiver<RecordBatch>>,
) -> Result<TraceResult, MissingRight> {
    let begun_with = processes::this_threads_cpu();
    let lead = clock.shared_ahead();
    let mut join = None;
    loop {
        let is_over = over.load(Ordering::Relaxed);
        if join.is_none() && progress.start() > Nanos::ZERO {
            let window = shape.window(progress.start());
            path.count_until(Nanos(window.until.0.saturating_add(lead.0)))?;
            if shape.warm_up > Nanos::ZERO {
                path.count_from(window.from + lead)?;
            }
            join = Some(StampJoin::new(lead, window));
        }
        if let Some(join) = &mut join {
            // First what the client says: see `join.rs`.
            let batches: Vec<RecordBatch> = journal.iter().flat_map(|journal| journal.try_iter()).collect();
            while let Some(event) = path.next_event() {
                join.record_answer(&event);
            }
            batches.iter().flatten().for_each(|record| join.record(record));
        }
        if is_over {
            break;
        }
        clock.sleep(PERIOD);
    }
    let view = path.view()?;
    let cpu = processes::this_threads_cpu().saturating_sub(begun_with);
    Ok(TraceResult { view, join: join.filter(|_| journal.is_some()), cpu })
}

/// What was reported in a run.
pub(crate) struct TraceResult {
    view: KernelView,
    join: Option<StampJoin>,
    /// CPU time of the thread that listened.
    cpu: Nanos,
}

/// All of it, of a run with this tally; where it failed, `watch` has the reason.
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
            Some(KernelView { ways: join.map(|join| join.ways(tally.counts.good())), ..view })
        }
        Err(why) => {
            if let Some(watch) = watch {
                watch.missing.push(format!("the kernel's tracepoints: {why}"));
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::forecast::ServiceTimeSource;

    fn why(asked: Probe, is_tcp: bool, time: Option<Nanos>) -> Option<(Probe, Option<String>)> {
        let service_time = time.map(|time| ServiceTime { time, source: ServiceTimeSource::Given, cpu: None });
        choose(asked, is_tcp, 10, service_time).map(|used| (used.probe, used.why_no_bpf))
    }

    #[test]
    fn what_is_asked_for_is_taken_and_auto_says_why_not() {
        let slow = Some(Nanos::from_millis(2));
        assert_eq!(why(Probe::None, true, slow), None);
        assert_eq!(why(Probe::Proc, true, slow), Some((Probe::Proc, None)));
        assert_eq!(why(Probe::Bpf, true, None), Some((Probe::Bpf, None)));
        let unix = Some("it sees no Unix sockets".to_owned());
        assert_eq!(why(Probe::Auto, false, slow), Some((Probe::Proc, unix)));
        if bpf::possible().is_ok() {
            assert_eq!(why(Probe::Auto, true, slow), Some((Probe::Bpf, None)), "5000 requests/s");
            let fast = Some(Nanos::from_millis(1));
            for (time, rate) in [(fast, "10000 requests/s"), (Some(Nanos::ZERO), "as many"), (None, "as many")] {
                let (probe, why) = why(Probe::Auto, true, time).unwrap();
                assert!(probe == Probe::Proc && why.as_ref().unwrap().contains(rate), "{why:?}");
            }
        }
    }
}
