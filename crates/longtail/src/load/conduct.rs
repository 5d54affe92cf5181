//! One load, from the first connect to the study.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use engine::{DriveError, DriveResult, LoadSpec, RaiseOnDrop, RunProgress, drive, spawn_scoped};
use launch::CpuRestriction;
use model::study::SCHEMA;
use model::{
    Ceiling, Clock, Diagnostic, EndedBy, GeneratorFacts, LoadPlan, LoadRun, LoadStudy, Nanos, Objective, Outcome,
    Placement, Statistics, Tally, doubts, verdict,
};

use sweep::HostCounters;

use crate::clock::SystemClock;
use crate::load::Check;
use crate::load::overload::overload;
use crate::load::prepare::Prepared;
use crate::load::recorder::{Log, Recorded, Recorder, WAITING};
use crate::mistake::Mistake;
use crate::outlets::{Outlets, StatsdInput};
use crate::ui::{self, Ui};

/// How soon Ctrl-C is passed on to the lanes.
const GLANCE: Nanos = Nanos::from_millis(20);
/// How often the conditions that end a run early are looked at.
const LOOK: Nanos = Nanos::from_secs(1);

/// What came of it, beside the study.
pub(crate) struct Conducted {
    pub(crate) study: LoadStudy,
    /// Whether the user ended it.
    pub(crate) interrupted_by_user: bool,
    /// Whether all checks of the answers hold.
    pub(crate) checks_hold: bool,
    /// Where the log could not be written to its end.
    pub(crate) failed: Option<Mistake>,
}

/// Runs the load and makes its study.
///
/// # Errors
/// Where the log cannot be written, or the engine cannot start.
pub(crate) fn conduct(
    prepared: Prepared,
    (logs, checks): (&[Log<'_>], &[Check]),
    (ears, outlets): (&StatsdInput, &mut Outlets),
    (started_at, command_line): (String, String),
    ceiling: impl FnOnce(u64, Option<&Placement>) -> Result<Option<Ceiling>, Mistake>,
    clock: SystemClock,
    interrupt: &AtomicBool,
) -> Result<Conducted, Mistake> {
    let Prepared { shape, plan, name_resolution, placement, serving, lanes_by, server } = prepared;
    // Before this thread is kept to some of its processors.
    let environment = sweep::environment(env!("CARGO_PKG_VERSION"));
    let kept = CpuRestriction::off_the_server(placement.as_ref());
    let host = HostCounters::now();
    let recorder = Recorder::open(logs, checks)?;
    let progress = Arc::new(RunProgress::new(shape.lanes));
    let ui = Ui::new();
    ui.loading(shape.measured.map(|measured| measured + shape.warm_up), shape.requests_total, &progress);
    outlets.begun(1, shape.connections, &progress, &Arc::default());
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    if let Some(hearing) = &ears.hearing {
        hearing.lock().unwrap_or_else(PoisonError::into_inner).catch_up();
    }
    let ((done, server_cpu), recorded, stopped_by, heard) = std::thread::scope(|scope| -> Result<_, DriveError> {
        let _ending = RaiseOnDrop(&over);
        let (sender, batches) = sync_channel(WAITING);
        let reader = recorder.map(|recorder| {
            let (lanes, progress) = (shape.lanes, &progress);
            spawn_scoped(scope, "recorder", move || recorder.record(&batches, lanes, progress))
                .map(|thread| (sender, thread))
        });
        let reader = reader.transpose()?;
        let watch = spawn_scoped(scope, "watch", || {
            let stop_if = &plan.stop_if;
            let seen = || progress.tally().map(|tally| so_far(tally, clock.now()));
            watch(&stop, &over, (interrupt, stop_if), clock, seen)
        })?;
        let hearing = ears.hearing.as_ref().map(|hearing| {
            spawn_scoped(scope, "statsd", || {
                let mut hearing = hearing.lock().unwrap_or_else(PoisonError::into_inner);
                hearing.hear_on(&clock, &progress, shape.warm_up, &over)
            })
        });
        let hearing = hearing.transpose()?;
        let before = placement.as_ref().map(|placement| probe::server_cpu::before(&serving, placement, clock.now()));
        let done = drive(&shape, &clock, &stop, &progress, reader.as_ref().map(|(sender, _)| sender));
        let ended = done.as_ref().map_or(0, |done| done.tally.all_requests());
        let server_cpu = before.and_then(|before| before.after(clock.now(), ended));
        over.store(true, Ordering::Relaxed);
        let recorded = reader.map(|(sender, thread)| {
            drop(sender);
            thread.join().expect("the recorder never panics")
        });
        let heard = hearing.map(|hearing| hearing.join().expect("hearing never panics"));
        Ok(((done?, server_cpu), recorded, watch.join().expect("the watch never panics"), heard))
    })
    .map_err(|error| Mistake::Sweep(error.into()))?;
    drop(ui);
    if let Some(reason) = tls_trouble(&shape, &done) {
        ui::note(&reason);
    }
    if let Some(reason) = &stopped_by {
        ui::note(&format!("ended early: {reason}"));
    }
    let Recorded { checks, checks_hold, failed } =
        recorded.unwrap_or(Recorded { checks: Vec::new(), checks_hold: true, failed: None });
    let after = HostCounters::now();
    let DriveResult {
        tally,
        batches,
        backlog,
        measured,
        elapsed,
        interrupted,
        dropped_records,
        lanes,
        clock_steps,
        ..
    } = done;
    let answers = tally.all_answers();
    let ceiling = if interrupted || answers == 0 {
        None
    } else {
        ceiling(tally.received_bytes / answers, kept.as_ref().and(placement.as_ref()))?
    };
    let length = plan.requests_total.is_none().then_some(measured);
    let backlog = backlog.and_then(|samples| samples.backlog(tally.counts.total(), length));
    let statistics = Statistics::of(&tally, &batches, &doubts::LOAD_PERCENTILES).with_backlog(backlog);
    let mut run = LoadRun {
        name_resolution,
        checks,
        log_dropped: dropped_records,
        statistics: Some(statistics),
        heard,
        generator: GeneratorFacts {
            lanes,
            clock_steps,
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
        started_at,
        command_line,
        environment,
        plan,
        server,
        placement,
        lanes_by,
        run,
        interrupted,
    };
    Ok(Conducted { study, interrupted_by_user: interrupt.load(Ordering::Relaxed), checks_hold, failed })
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
    run.missed = run.misses(&plan.fail_if);
    // Where no condition did, it was a signal: nobody else stops the lanes.
    let ended_by = (interrupted && stopped_by.is_none()).then_some(EndedBy::User);
    run.warnings = doubts::of_load(run, &plan.pace, plan.keep_alive, placement, ended_by);
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

/// Passes Ctrl-C on, and ends the run where one of the conditions holds; which, and with what figure.
fn watch(
    stop: &AtomicBool,
    over: &AtomicBool,
    (interrupt, stop_if): (&AtomicBool, &[Objective]),
    clock: SystemClock,
    seen: impl Fn() -> Option<LoadRun>,
) -> Option<String> {
    let mut next_look = clock.now() + LOOK;
    // The first question has no answer yet: the lanes begin to answer with it.
    if !stop_if.is_empty() {
        seen();
    }
    while !over.load(Ordering::Relaxed) {
        if interrupt.load(Ordering::Relaxed) {
            stop.store(true, Ordering::Relaxed);
            return None;
        }
        if !stop_if.is_empty() && clock.now() >= next_look {
            next_look = clock.now() + LOOK;
            if let Some(reason) = seen().and_then(|run| run.misses(stop_if).into_iter().next()) {
                stop.store(true, Ordering::Relaxed);
                return Some(reason);
            }
        }
        clock.sleep(GLANCE);
    }
    None
}

/// The run as it is now, as far as objectives need it.
fn so_far(tally: Tally, now: Nanos) -> LoadRun {
    let measured = now.min(tally.window.until).saturating_sub(tally.window.from);
    LoadRun::recorded(tally, measured, measured)
}
