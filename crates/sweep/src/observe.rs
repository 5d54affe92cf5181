//! Drives one run and observes it meanwhile: which threads run beside the lanes, and who ends them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::{
    DriveResult, EngineError, LaneOutcome, LoadSpec, RaiseOnDrop, RecordBatch, RunProgress, drive,
    spawn_scoped,
};
use model::{
    Clock, ControlServer, GeneratorFacts, Nanos, Placement, Run, Statistics, SystemClock,
    common_silences,
};
use probe::host::HostCounters;
use probe::processes::this_process_cpu;
use probe::sampler::Sampler;
use probe::server_cpu;

use crate::far::conductor::FarGenerators;
use crate::kernel;
use crate::samples::{self, LiveReadings, watch};
use crate::statsd::StatsdListener;

/// Batches of requests that may wait to be joined with what the kernel saw.
const BATCHES: usize = 64;
/// How soon an interruption, or a server's death, is passed on to the lanes.
const GLANCE: Duration = Duration::from_millis(20);

/// Who observes a run.
pub(crate) struct RunObservers<'a, E> {
    /// Asked again and again whether the run is to end early, and why.
    pub(crate) ends: &'a mut (dyn FnMut() -> Option<E> + Send),
    /// Whether requests that are out at such an end have failed. They have where the server went,
    /// and not where the user stopped the run.
    pub(crate) loses_requests: fn(&E) -> bool,
    /// The first processes of the server; none where they are not known.
    pub(crate) serving: &'a [u32],
    /// Where these may run.
    pub(crate) placement: Option<&'a Placement>,
    /// Listens to statsd.
    pub(crate) statsd: Option<&'a Mutex<StatsdListener>>,
    /// Takes single requests.
    pub(crate) journal: Option<SyncSender<RecordBatch>>,
    /// Reads server and kernel.
    pub(crate) sampling: Option<Sampling<'a>>,
    /// Those of the response times that its statistics have.
    pub(crate) percentiles: &'static [f64],
}

/// What is read of server and kernel while a run goes on.
pub(crate) struct Sampling<'a> {
    pub(crate) sampler: Sampler,
    /// Where the server's statistics are.
    pub(crate) control: Option<&'a ControlServer>,
    /// The name of the one worker of single mode.
    pub(crate) single: &'a str,
    /// The port and the first process of a server whose tracepoints are listened to.
    pub(crate) traced: Option<(u16, u32)>,
    /// Where the last readings are shown.
    pub(crate) live: &'a LiveReadings,
}

/// A run that is over and not judged, and what was observed of it.
pub(crate) struct ObservedRun<E> {
    /// What the lanes recorded, and what server, kernel and machine did meanwhile.
    pub(crate) run: Run,
    /// Why it was asked to end before its time.
    pub(crate) ended_by: Option<E>,
    /// Whether it was ended early.
    pub(crate) interrupted: bool,
    /// Records that the journal's reader was too slow for.
    pub(crate) dropped_records: u64,
    /// CPU time of this process: lanes, and whoever observes; but for the listener to statsd, which
    /// stands for another process.
    pub(crate) own_cpu: Nanos,
}

/// A run that is not judged, with its statistics: what lanes recorded, and what is known of the
/// `generator` beside.
pub(crate) fn recorded(
    done: DriveResult,
    shape: &LoadSpec,
    percentiles: &[f64],
    generator: GeneratorFacts,
) -> Run {
    let DriveResult { outcome, far, measured, elapsed, .. } = done;
    let LaneOutcome { tally, batches, app_times, backlog, lanes, clock_steps, silences, .. } =
        outcome;
    let is_counted = shape.requests_total.is_some() && shape.measured.is_none();
    let length = (!is_counted).then_some(measured);
    let backlog = backlog.and_then(|samples| samples.backlog(tally.due(), length));
    // As long as two quick requests: what is shorter may be a round of requests that end together.
    let shortest = tally.service_time.min().unwrap_or_default() * 2;
    let mut silences = common_silences(&silences);
    silences.retain(|silence| silence.length() >= shortest);
    Run {
        silences,
        app_times: app_times.and_then(|accumulator| accumulator.app_times()),
        statistics: Some(Statistics::of(&tally, &batches, percentiles).with_backlog(backlog)),
        generator: GeneratorFacts { lanes, clock_steps, ..generator }.from_far(far),
        ..Run::recorded(shape.connections, tally, measured, elapsed)
    }
}

/// Drives one run, by lanes of this process or the generators that there are elsewhere.
///
/// # Errors
/// Where the engine cannot start, or a thread.
///
/// # Panics
/// Where one of its threads did.
pub(crate) fn drive_observed<E: Send>(
    shape: &LoadSpec,
    clock: &SystemClock,
    far: Option<&FarGenerators>,
    progress: &RunProgress,
    observation: RunObservers<'_, E>,
) -> Result<ObservedRun<E>, EngineError> {
    let RunObservers {
        ends, serving, placement, statsd, mut journal, sampling, percentiles, ..
    } = observation;
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let traced = sampling.as_ref().and_then(|sampling| sampling.traced);
    // Of a generator elsewhere ports and the app's stamps are not known.
    let traces_requests =
        traced.is_some() && far.is_none() && shape.reads_app_times && shape.transport.tls.is_none();
    let shape = &LoadSpec { traces_requests, ..shape.clone() };
    // To attach tracepoints costs once, and not for each request.
    let tracing = traced.map(|(port, root)| kernel::attach(port, root, shape));
    let records = traces_requests.then(|| sync_channel(BATCHES)).map(|(sender, records)| {
        journal = Some(sender);
        records
    });
    let single = sampling.as_ref().map_or("", |sampling| sampling.single);
    if let Some(statsd) = statsd {
        statsd.lock().unwrap_or_else(PoisonError::into_inner).catch_up();
    }
    let (host, own_cpu) = (HostCounters::now(), this_process_cpu());
    let over = &over;
    let observed = std::thread::scope(|scope| -> Result<_, EngineError> {
        let _ending = RaiseOnDrop(over);
        // Whoever holds the other end has gone when the run is over: then nobody sleeps on.
        let (running, runs) = channel::<()>();
        let stop = &stop;
        let ending = spawn_scoped(scope, "ending", move || {
            let mut ended_by = None;
            loop {
                ended_by = ended_by.or_else(&mut *ends);
                if ended_by.is_some() {
                    stop.store(true, Ordering::Relaxed);
                }
                if runs.recv_timeout(GLANCE) == Err(RecvTimeoutError::Disconnected) {
                    return ended_by;
                }
            }
        })?;
        let (sampling, polling) = match sampling {
            None => (None, None),
            Some(Sampling { sampler, control, live, .. }) => (
                Some(spawn_scoped(scope, "sampler", move || {
                    samples::sample(sampler, clock, over, live)
                })?),
                control
                    .map(|control| {
                        spawn_scoped(scope, "statistics", move || {
                            samples::poll(control, clock, over, live, single)
                        })
                    })
                    .transpose()?,
            ),
        };
        let listen = |statsd: &Mutex<StatsdListener>| {
            let mut statsd = statsd.lock().unwrap_or_else(PoisonError::into_inner);
            statsd.listen_until(clock, progress, shape.warm_up, over)
        };
        let listening = statsd
            .map(|statsd| spawn_scoped(scope, "statsd", move || listen(statsd)))
            .transpose()?;
        let trace =
            move |path| kernel::listen(path, shape, clock, progress, over, records.as_ref());
        let tracing = tracing
            .map(|begun| spawn_scoped(scope, "tracing", move || begun.and_then(trace)))
            .transpose()?;
        let before = placement.map(|placement| server_cpu::before(serving, placement, clock.now()));
        let done = match far {
            None => drive(shape, clock, stop, progress, journal.as_ref()),
            Some(far) => far.drive(shape, stop, progress, journal.as_ref()),
        };
        let ended = done.as_ref().map_or(0, |done| done.outcome.tally.all_requests());
        let server_cpu = before.and_then(|before| before.after(clock.now(), ended));
        over.store(true, Ordering::Relaxed);
        drop((journal, running));
        let seen = sampling.map(|sampling| sampling.join().expect("sampling never panics"));
        let polled = polling.map(|polling| polling.join().expect("polling never panics"));
        let statsd = listening.map(|thread| thread.join().expect("listening never panics"));
        let traced = tracing.map(|tracing| tracing.join().expect("tracing never panics"));
        let ended_by = ending.join().expect("waiting never panics");
        Ok((done?, server_cpu, seen.map(|seen| (seen, polled)), statsd, traced, ended_by))
    });
    let (mut done, server, seen, statsd, traced, ended_by) = observed?;
    let after = HostCounters::now();
    let listening = statsd.as_ref().map_or(Nanos::ZERO, |statsd| statsd.cpu);
    let own_cpu = this_process_cpu().saturating_sub(own_cpu + listening);
    let mut watch = seen
        .map(|(seen, polled)| watch(&seen, polled.as_ref(), done.start + shape.warm_up, single));
    let kernel =
        traced.and_then(|traced| kernel::view(traced, &done.outcome.tally, watch.as_mut()));
    let generator = GeneratorFacts {
        steal: after.steal_since(&host),
        listen_overflows: after.listen_overflows_since(&host),
        syn_retransmits: after.syn_retransmits_since(&host),
        server,
        ..GeneratorFacts::default()
    };
    let (interrupted, dropped_records) =
        (done.outcome.interrupted_at.is_some(), done.outcome.dropped_records);
    if ended_by.as_ref().is_some_and(observation.loses_requests) {
        done.outcome.tally.fail_unfinished();
    }
    let run = Run { watch, statsd, kernel, ..recorded(done, shape, percentiles, generator) };
    Ok(ObservedRun { run, ended_by, interrupted, dropped_records, own_cpu })
}
