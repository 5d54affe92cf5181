//! Sends one run's load and observes server, kernel and machine meanwhile, each from a thread of
//! its own. All of these threads have ended when [`drive_observed`] returns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use engine::{
    DriveResult, EngineError, LaneOutcome, LoadSpec, RaiseOnDrop, RecordBatch, RunProgress, drive,
    spawn_scoped,
};
use launch::Server;
use model::{
    Clock, ControlServer, GeneratorFacts, Nanos, Pace, Placement, Run, ServerCpu, Statistics,
    StatsdReport, StepTallies, SystemClock, Watch, common_silences,
};
use probe::bpf::{MissingRight, Tracepoints};
use probe::host::HostCounters;
use probe::processes::this_process_cpu;
use probe::sampler::Sampler;
use probe::server_cpu;

use crate::event::{EventExchanges, EventOfRun, SeenEvent, conduct_event, with_requests};
use crate::far::conductor::FarGenerators;
use crate::kernel::{self, TraceResult};
use crate::samples::{self, LiveReadings, PolledStatistics, SampledServer};
use crate::statsd::StatsdListener;

/// Batches of the client's records that may wait to be joined with the kernel's.
const BATCHES: usize = 64;
/// How soon an interruption, or a server's death, is passed on to the lanes.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Who observes a run.
pub(crate) struct RunObservers<'a, E> {
    /// Polled for a reason to end the run early.
    pub(crate) ends: &'a mut (dyn FnMut() -> Option<E> + Send),
    /// Whether requests that are in flight at such an end have failed: they have if the server is
    /// gone, but not if the user stopped the run.
    pub(crate) loses_requests: fn(&E) -> bool,
    /// The server's root processes; empty if they are not known.
    pub(crate) serving: &'a [u32],
    /// Which CPUs server and generator may use.
    pub(crate) placement: Option<&'a Placement>,
    /// Receives the app's statsd metrics.
    pub(crate) statsd: Option<&'a Mutex<StatsdListener>>,
    /// Gets a record of each request.
    pub(crate) journal: Option<SyncSender<RecordBatch>>,
    /// What is read of server and kernel.
    pub(crate) sampling: Option<Sampling<'a>>,
    /// What is done to the server meanwhile.
    pub(crate) event: Option<EventOfRun<'a>>,
    /// Whether each step of a rate that changes by plan gets figures of its own.
    pub(crate) tells_steps: bool,
    /// The percentiles of the response time to compute.
    pub(crate) percentiles: &'static [f64],
}

/// What is read of server and kernel during a run.
pub(crate) struct Sampling<'a> {
    pub(crate) sampler: Sampler,
    /// Puma's control server.
    pub(crate) control: Option<&'a ControlServer>,
    /// The name of the only worker in single mode.
    pub(crate) single: &'a str,
    /// Port and root process of the server, if the kernel's tracepoints are read.
    pub(crate) traced: Option<(u16, u32)>,
    /// Holds the latest readings for the live display.
    pub(crate) live: &'a LiveReadings,
}

/// A run that is over but not judged yet, and what was observed of it.
pub(crate) struct ObservedRun<E> {
    /// What the lanes recorded, and what server, kernel and machine did meanwhile.
    pub(crate) run: Run,
    /// Why it was asked to end early.
    pub(crate) ended_by: Option<E>,
    /// Whether it was ended early.
    pub(crate) interrupted: bool,
    /// Records that were dropped because the journal's reader was too slow.
    pub(crate) dropped_records: u64,
    /// CPU time of this process: lanes and observers, but not the statsd listener, which stands in
    /// for an agent that would be another process.
    pub(crate) own_cpu: Nanos,
    /// The server that an event started in place of the one that it stopped.
    pub(crate) started_again: Option<Server>,
}

/// Makes a run, not judged yet, of what the lanes recorded and of what is known of the generator.
pub(crate) fn recorded(
    done: DriveResult,
    shape: &LoadSpec,
    percentiles: &[f64],
    generator: GeneratorFacts,
) -> Run {
    let DriveResult { outcome, far, measured, elapsed, .. } = done;
    let LaneOutcome { tally, batches, app_times, backlog, lanes, clock_steps, silences, .. } =
        outcome;
    let is_counted = shape.load.requests_total.is_some() && shape.measured.is_none();
    let length = (!is_counted).then_some(measured);
    let backlog = backlog.and_then(|samples| samples.backlog(tally.due(), length));
    // A shorter silence may just lie between two rounds of requests that end together.
    let shortest = tally.service_time.min().unwrap_or_default() * 2;
    let mut silences = common_silences(&silences);
    silences.retain(|silence| silence.length() >= shortest);
    Run {
        silences,
        app_times: app_times.and_then(|accumulator| accumulator.app_times()),
        statistics: Some(Statistics::of(&tally, &batches, percentiles).with_backlog(backlog)),
        generator: GeneratorFacts { lanes, clock_steps, ..generator }.from_far(far),
        ..Run::recorded(shape.load.connections, tally, measured, elapsed)
    }
}

/// What all threads of a run share.
#[derive(Clone, Copy)]
struct RunInProgress<'a> {
    shape: &'a LoadSpec,
    clock: &'a SystemClock,
    progress: &'a RunProgress,
    /// Raised to end the run early.
    stop: &'a AtomicBool,
    /// Raised when the run is over.
    over: &'a AtomicBool,
}

/// What the threads of a run bring back.
struct Observations<E> {
    driven: DriveResult,
    server_cpu: Option<ServerCpu>,
    samples: Option<SampledRun>,
    statsd: Option<StatsdReport>,
    trace: Option<Result<TraceResult, MissingRight>>,
    event: Option<ObservedEvent>,
    steps: Option<StepTallies>,
    ended_by: Option<E>,
}

/// What was seen of an event: of the server, and of the requests.
struct ObservedEvent {
    seen: SeenEvent,
    requests: EventExchanges,
}

/// Sends one run's load, from lanes of this process or from generators on other machines.
///
/// # Errors
/// If the engine or a thread cannot start.
///
/// # Panics
/// If one of the threads does.
pub(crate) fn drive_observed<E: Send>(
    shape: &LoadSpec,
    clock: &SystemClock,
    far: Option<&FarGenerators>,
    progress: &RunProgress,
    mut observers: RunObservers<'_, E>,
) -> Result<ObservedRun<E>, EngineError> {
    let percentiles = observers.percentiles;
    let loses_requests = observers.loses_requests;
    let single = observers.sampling.as_ref().map_or("", |sampling| sampling.single);
    let traced = observers.sampling.as_ref().and_then(|sampling| sampling.traced);
    // Generators on other machines report neither ports nor the app's stamps.
    let joins_requests =
        traced.is_some() && far.is_none() && shape.reads_app_times && shape.transport.tls.is_none();
    let traces_requests = shape.traces_requests || joins_requests;
    let shape = &LoadSpec { traces_requests, ..shape.clone() };
    // Attached before the first request, because attaching takes time.
    let tracer =
        traced.map(|(port, root)| Tracer::attach(port, root, shape, &mut observers.journal));
    if let Some(statsd) = observers.statsd {
        statsd.lock().unwrap_or_else(PoisonError::into_inner).catch_up();
    }
    let host_before = HostCounters::now();
    let cpu_before = this_process_cpu();
    let stop = AtomicBool::new(false);
    let over = AtomicBool::new(false);
    let run = RunInProgress { shape, clock, progress, stop: &stop, over: &over };
    let Observations { mut driven, server_cpu, samples, statsd, trace, event, steps, ended_by } =
        observe(run, far, observers, tracer)?;
    let host_after = HostCounters::now();
    let statsd_cpu = statsd.as_ref().map_or(Nanos::ZERO, |statsd| statsd.cpu);
    let own_cpu = this_process_cpu().saturating_sub(cpu_before + statsd_cpu);
    let mut watch = samples.map(|samples| samples.watch(driven.start + shape.load.warm_up, single));
    let kernel = trace.and_then(|trace| kernel::view(trace, &driven.outcome.tally, watch.as_mut()));
    let generator = GeneratorFacts {
        steal: host_after.steal_since(&host_before),
        listen_overflows: host_after.listen_overflows_since(&host_before),
        syn_retransmits: host_after.syn_retransmits_since(&host_before),
        server: server_cpu,
        ..GeneratorFacts::default()
    };
    let interrupted = driven.outcome.interrupted_at.is_some();
    let dropped_records = driven.outcome.dropped_records;
    if ended_by.as_ref().is_some_and(loses_requests) {
        driven.outcome.tally.fail_unfinished();
    }
    let run = recorded(driven, shape, percentiles, generator);
    let mut started_again = None;
    let event = event.map(|ObservedEvent { mut seen, requests }| {
        started_again = seen.restarted.take();
        Box::new(with_requests(seen, &requests, &run.tally, run.measured, dropped_records))
    });
    // Steps that lack requests would have wrong figures.
    let steps = steps.filter(|_| dropped_records == 0);
    let steps = steps.map(|steps| steps.finish(run.measured, interrupted, percentiles));
    let steps = steps.unwrap_or_default();
    let run = Run { watch, statsd, kernel, event, steps, ..run };
    Ok(ObservedRun { run, ended_by, interrupted, dropped_records, own_cpu, started_again })
}

/// Starts the observers, sends the load, and ends the observers.
fn observe<E: Send>(
    run: RunInProgress<'_>,
    far: Option<&FarGenerators>,
    observers: RunObservers<'_, E>,
    tracer: Option<Tracer>,
) -> Result<Observations<E>, EngineError> {
    let RunInProgress { shape, clock, progress, stop, over } = run;
    let RunObservers { ends, serving, placement, statsd, journal, sampling, event, .. } = observers;
    let has_steps = observers.tells_steps && has_steps(shape);
    std::thread::scope(|scope| {
        // Ends the observers, also if one of the threads cannot be started.
        let _ends_observers = RaiseOnDrop(over);
        // `running` is dropped when the run is over, which wakes whoever waits for `run_end`.
        let (running, run_end) = channel::<()>();
        let ending = spawn_scoped(scope, "ending", move || wait_for_reason(ends, stop, &run_end))?;
        let sampling =
            sampling.map(|sampling| SamplingThreads::spawn(scope, run, sampling)).transpose()?;
        let statsd = statsd.map(|statsd| spawn_statsd(scope, run, statsd)).transpose()?;
        let tracer = tracer.map(|tracer| tracer.spawn(scope, run)).transpose()?;
        let mut journal = journal;
        let event = match event {
            Some(event) => Some(EventThreads::spawn(scope, run, event, &mut journal)?),
            None => None,
        };
        let steps = if has_steps { Some(spawn_steps(scope, run, &mut journal)?) } else { None };
        let before = placement.map(|placement| server_cpu::before(serving, placement, clock.now()));
        let driven = match far {
            None => drive(shape, clock, stop, progress, journal.as_ref()),
            Some(far) => far.drive(shape, stop, progress, journal.as_ref()),
        };
        let requests = driven.as_ref().map_or(0, |driven| driven.outcome.tally.all_sent());
        let server_cpu = before.and_then(|before| before.after(clock.now(), requests));
        over.store(true, Ordering::Relaxed);
        drop(journal);
        drop(running);
        Ok(Observations {
            samples: sampling.map(SamplingThreads::join),
            statsd: statsd.map(|thread| thread.join().expect("the statsd listener never panics")),
            trace: tracer.map(|thread| thread.join().expect("the tracer never panics")),
            event: event.map(EventThreads::join),
            steps: steps.and_then(|thread| thread.join().expect("counting never panics")),
            ended_by: ending.join().expect("waiting never panics"),
            driven: driven?,
            server_cpu,
        })
    })
}

/// Polls `ends` until the run is over, and raises `stop` as soon as there is a reason.
fn wait_for_reason<E>(
    ends: &mut (dyn FnMut() -> Option<E> + Send),
    stop: &AtomicBool,
    run_end: &Receiver<()>,
) -> Option<E> {
    let mut reason = None;
    loop {
        reason = reason.or_else(&mut *ends);
        if reason.is_some() {
            stop.store(true, Ordering::Relaxed);
        }
        if run_end.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
            return reason;
        }
    }
}

/// The threads that sample server and kernel.
struct SamplingThreads<'scope> {
    sampler: ScopedJoinHandle<'scope, SampledServer>,
    /// Polls Puma's statistics.
    poller: Option<ScopedJoinHandle<'scope, PolledStatistics>>,
}

impl<'scope> SamplingThreads<'scope> {
    fn spawn(
        scope: &'scope Scope<'scope, '_>,
        run: RunInProgress<'scope>,
        sampling: Sampling<'scope>,
    ) -> Result<Self, EngineError> {
        let RunInProgress { clock, over, .. } = run;
        let Sampling { sampler, control, single, live, .. } = sampling;
        let sampler =
            spawn_scoped(scope, "sampler", move || samples::sample(sampler, clock, over, live))?;
        let mut poller = None;
        if let Some(control) = control {
            poller = Some(spawn_scoped(scope, "statistics", move || {
                samples::poll(control, clock, over, live, single)
            })?);
        }
        Ok(SamplingThreads { sampler, poller })
    }

    fn join(self) -> SampledRun {
        SampledRun {
            server: self.sampler.join().expect("sampling never panics"),
            statistics: self.poller.map(|poller| poller.join().expect("polling never panics")),
        }
    }
}

/// The threads of an event: one does it and watches the server, one keeps the requests.
struct EventThreads<'scope> {
    conductor: ScopedJoinHandle<'scope, SeenEvent>,
    collector: ScopedJoinHandle<'scope, EventExchanges>,
}

impl<'scope> EventThreads<'scope> {
    /// Starts them. The collector gets the records of the lanes first, and passes them on to the
    /// `journal`.
    fn spawn(
        scope: &'scope Scope<'scope, '_>,
        run: RunInProgress<'scope>,
        event: EventOfRun<'scope>,
        journal: &mut Option<SyncSender<RecordBatch>>,
    ) -> Result<Self, EngineError> {
        let RunInProgress { shape, clock, progress, stop, over } = run;
        let (sender, batches) = sync_channel(BATCHES);
        let next = journal.replace(sender);
        let collector = spawn_scoped(scope, "event-requests", move || {
            EventExchanges::of(&batches, next.as_ref())
        })?;
        let conductor = spawn_scoped(scope, "event", move || {
            conduct_event(event, shape.load.warm_up, clock, progress, stop, over)
        })?;
        Ok(EventThreads { conductor, collector })
    }

    fn join(self) -> ObservedEvent {
        ObservedEvent {
            requests: self.collector.join().expect("collecting never panics"),
            seen: self.conductor.join().expect("watching an event never panics"),
        }
    }
}

/// Whether the rate changes by plan.
pub(crate) fn has_steps(shape: &LoadSpec) -> bool {
    match &shape.load.pace {
        Pace::Open { profile, .. } => !profile.parts().is_empty(),
        Pace::Closed => false,
    }
}

/// Records each request by its step, and passes it on to the `journal`.
fn spawn_steps<'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: RunInProgress<'scope>,
    journal: &mut Option<SyncSender<RecordBatch>>,
) -> Result<ScopedJoinHandle<'scope, Option<StepTallies>>, EngineError> {
    let RunInProgress { shape, progress, .. } = run;
    let (sender, batches) = sync_channel::<RecordBatch>(BATCHES);
    let next = journal.replace(sender);
    spawn_scoped(scope, "steps", move || {
        let mut steps = None;
        for batch in batches {
            // The lanes have begun, or there would be no batch.
            let start = progress.start();
            let new = || StepTallies::new(&shape.load.pace, start, shape.window(start));
            if let Some(steps) = steps.get_or_insert_with(new) {
                for record in &batch {
                    steps.record(&record.exchange);
                }
            }
            if let Some(next) = &next {
                let _ = next.send(batch);
            }
        }
        steps.flatten()
    })
}

/// What was sampled of server and kernel during a run.
struct SampledRun {
    server: SampledServer,
    statistics: Option<PolledStatistics>,
}

impl SampledRun {
    fn watch(&self, from: Nanos, single: &str) -> Watch {
        samples::watch(&self.server, self.statistics.as_ref(), from, single)
    }
}

fn spawn_statsd<'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: RunInProgress<'scope>,
    listener: &'scope Mutex<StatsdListener>,
) -> Result<ScopedJoinHandle<'scope, StatsdReport>, EngineError> {
    spawn_scoped(scope, "statsd", move || {
        let mut listener = listener.lock().unwrap_or_else(PoisonError::into_inner);
        listener.listen_until(run.clock, run.progress, run.shape.load.warm_up, run.over)
    })
}

/// The kernel's tracepoints, and the client's records that are joined with their reports.
struct Tracer {
    tracepoints: Result<Tracepoints, MissingRight>,
    /// `None` if individual requests are not traced.
    records: Option<Receiver<RecordBatch>>,
}

impl Tracer {
    /// Attaches the tracepoints and, if `shape` traces requests, makes itself the `journal`.
    fn attach(
        port: u16,
        root: u32,
        shape: &LoadSpec,
        journal: &mut Option<SyncSender<RecordBatch>>,
    ) -> Tracer {
        let tracepoints = kernel::attach(port, root, shape);
        let mut records = None;
        if shape.traces_requests {
            let (sender, receiver) = sync_channel(BATCHES);
            *journal = Some(sender);
            records = Some(receiver);
        }
        Tracer { tracepoints, records }
    }

    fn spawn<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        run: RunInProgress<'scope>,
    ) -> Result<ScopedJoinHandle<'scope, Result<TraceResult, MissingRight>>, EngineError> {
        let RunInProgress { shape, clock, progress, over, .. } = run;
        spawn_scoped(scope, "tracing", move || {
            kernel::listen(self.tracepoints?, shape, clock, progress, over, self.records.as_ref())
        })
    }
}
