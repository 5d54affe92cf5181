//! One load, from the first connect to the study.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use engine::{DriveError, DriveResult, LoadSpec, RunProgress, spawn_scoped};
use launch::CpuRestriction;
use model::study::SCHEMA;
use model::{
    Clock, Diagnostic, EndedBy, GeneratorFacts, LoadPlan, LoadRun, LoadStudy, Nanos, Objective, Outcome, Placement,
    Statistics, verdict, warnings,
};
use sweep::{Context, HostCounters, ObservedRun, Phase, RunObservers, drive_observed};

use crate::clock::SystemClock;
use crate::load::Check;
use crate::load::overload::overload;
use crate::load::prepare::Prepared;
use crate::load::recorder::{Log, Recorded, Recorder, WAITING};
use crate::mistake::Mistake;
use crate::outlets::{Outlets, StatsdInput};
use crate::ui::{self, Ui};

/// How often the conditions that end a run early are looked at.
const LOOK: Nanos = Nanos::from_secs(1);

/// What came of it, beside the study.
pub(crate) struct ConductedLoad {
    pub(crate) study: LoadStudy,
    /// Whether the user ended it.
    pub(crate) interrupted_by_user: bool,
    /// Whether all checks of the answers hold.
    pub(crate) checks_hold: bool,
    /// Where the log could not be written to its end.
    pub(crate) failed: Option<Mistake>,
}

/// What a load needs of the world.
pub(crate) struct LoadContext<'a> {
    pub(crate) logs: &'a [Log<'a>],
    pub(crate) checks: &'a [Check],
    pub(crate) ears: &'a StatsdInput,
    /// Whether the generator's own limit is measured.
    pub(crate) calibrates: bool,
    pub(crate) conductor: Context<'a, SystemClock>,
}

/// Runs the load and makes its study.
///
/// # Errors
/// Where the log cannot be written, or the engine cannot start.
pub(crate) fn conduct(
    prepared: Prepared,
    context: LoadContext<'_>,
    outlets: &mut Outlets,
) -> Result<ConductedLoad, Mistake> {
    let Prepared { shape, plan, name_resolution, placement, serving, lanes_by, server } = prepared;
    let LoadContext { logs, checks, ears, calibrates, conductor } = context;
    let (clock, interrupt) = (conductor.clock, conductor.interrupt);
    // Before this thread is kept to some of its processors.
    let environment = sweep::environment(conductor.version);
    let kept = CpuRestriction::off_the_server(placement.as_ref());
    let host = HostCounters::now();
    let recorder = Recorder::open(logs, checks)?;
    let progress = Arc::new(RunProgress::new(shape.lanes));
    let ui = Ui::new();
    ui.loading(shape.measured.map(|measured| measured + shape.warm_up), shape.requests_total, &progress);
    outlets.begun(1, shape.connections, &progress, &Arc::default());
    let (observed, recorded) = std::thread::scope(|scope| -> Result<_, DriveError> {
        let (sender, batches) = sync_channel(WAITING);
        let (lanes, progress) = (shape.lanes, &progress);
        let record = |recorder: Recorder| {
            spawn_scoped(scope, "recorder", move || recorder.record(&batches, lanes, progress))
                .map(|thread| (sender, thread))
        };
        let (journal, recording) = recorder.map(record).transpose()?.unzip();
        let mut ends = early_end(interrupt, &plan.stop_if, progress, clock);
        let observation = RunObservers {
            serving: &serving,
            placement: placement.as_ref(),
            statsd: ears.listener.as_ref(),
            journal,
            ..RunObservers::ended_by(&mut ends)
        };
        let observed = drive_observed(&shape, &clock, progress, observation);
        let recorded = recording.map(|thread| thread.join().expect("the recorder never panics"));
        Ok((observed?, recorded))
    })
    .map_err(|error| Mistake::Sweep(error.into()))?;
    drop(ui);
    let ObservedRun { done, ended_by, statsd, server_cpu, .. } = observed;
    let stopped_by = ended_by.flatten();
    if let Some(reason) = tls_trouble(&shape, &done) {
        ui::note(&reason);
    }
    if let Some(reason) = &stopped_by {
        ui::note(&format!("ended early: {reason}"));
    }
    let Recorded { checks, checks_hold, failed } =
        recorded.unwrap_or(Recorded { checks: Vec::new(), checks_hold: true, failed: None });
    let after = HostCounters::now();
    let DriveResult { tally, batches, backlog, measured, elapsed, interrupted, .. } = done;
    let answers = tally.all_answers();
    // After the run, when the size of the answers is known.
    let ceiling = if interrupted || answers == 0 || !calibrates {
        None
    } else {
        let ui = Ui::new();
        ui.phase(&Phase::Calibrating);
        let placement = kept.as_ref().and(placement.as_ref());
        sweep::ceilings(std::slice::from_ref(&shape), tally.received_bytes / answers, placement, &conductor)?[0]
    };
    let length = plan.requests_total.is_none().then_some(measured);
    let backlog = backlog.and_then(|samples| samples.backlog(tally.counts.total(), length));
    let statistics = Statistics::of(&tally, &batches, &warnings::LOAD_PERCENTILES).with_backlog(backlog);
    let mut run = LoadRun {
        name_resolution,
        checks,
        log_dropped: done.dropped_records,
        statistics: Some(statistics),
        statsd,
        generator: GeneratorFacts {
            lanes: done.lanes,
            clock_steps: done.clock_steps,
            ceiling,
            steal: after.steal_since(&host),
            // This machine's counter is not another's.
            listen_overflows: after.listen_overflows_since(&host).filter(|_| server.is_here()),
            syn_retransmits: after.syn_retransmits_since(&host),
            server: server_cpu,
        },
        ..LoadRun::recorded(tally, measured, elapsed)
    };
    judge(&mut run, &plan, placement.as_ref(), (interrupted, stopped_by));
    let study = LoadStudy {
        schema: SCHEMA,
        started_at: conductor.started_at,
        command_line: conductor.command_line,
        environment,
        plan,
        server,
        placement,
        lanes_by,
        run,
        interrupted,
    };
    Ok(ConductedLoad { study, interrupted_by_user: interrupt.load(Ordering::Relaxed), checks_hold, failed })
}

/// What the run's own figures say of it; it may have ended before its time, by a condition.
fn judge(
    run: &mut LoadRun,
    plan: &LoadPlan,
    placement: Option<&Placement>,
    (interrupted, stopped_by): (bool, Option<String>),
) {
    run.judgement = Some(verdict::of_load(run, plan));
    run.overload = if interrupted { None } else { overload(run, plan) };
    // Where no condition did, it was a signal: nobody else stops the lanes.
    let ended_by = (interrupted && stopped_by.is_none()).then_some(EndedBy::User);
    run.warnings = warnings::of_load(run, &plan.pace, plan.keep_alive, placement, ended_by);
    run.warnings.extend(stopped_by.map(|condition| Diagnostic::StoppedEarly { condition }));
}

/// Why no connection came about, where TLS is the reason: the lanes only count that none did.
fn tls_trouble(shape: &LoadSpec, done: &DriveResult) -> Option<String> {
    let tls = shape.transport.tls.as_ref()?;
    let counts = &done.tally.counts;
    if counts.total() == 0 || counts.of(Outcome::ConnectFailed) < counts.total() {
        return None;
    }
    let failure = tls.failure(shape.transport.endpoints.first()?, Duration::from_secs(2))?;
    Some(format!("no connection came about: {failure}"))
}

/// When a load ends early: by Ctrl-C, for no reason of its own, or because one of the user's conditions holds, which then is told with
/// its figure.
fn early_end<'a>(
    interrupt: &'a AtomicBool,
    stop_if: &'a [Objective],
    progress: &'a RunProgress,
    clock: SystemClock,
) -> impl FnMut() -> Option<Option<String>> + Send + 'a {
    let mut next_look = None;
    move || {
        if interrupt.load(Ordering::Relaxed) {
            return Some(None);
        }
        let now = clock.now();
        if stop_if.is_empty() || next_look.is_some_and(|next| now < next) {
            return None;
        }
        // The first question has no answer yet: the lanes begin to answer with it.
        let is_first = next_look.replace(now + LOOK).is_none();
        let tally = progress.tally().filter(|_| !is_first)?;
        let measured = now.min(tally.window.until).saturating_sub(tally.window.from);
        // The run as it is now, as far as objectives need it.
        LoadRun::recorded(tally, measured, measured).first_that_holds(stop_if).map(Some)
    }
}
