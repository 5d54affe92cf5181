//! A load: one run against a server that is there already, from the first connect to the study.
//!
//! It goes the way of every run: a job that is made before ([`PreparedLoad`]), the generator, who observes it meanwhile, what the machine
//! did, the generator's own limit, and one judgement when all of that is known. Files and the terminal are the caller's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};

use engine::{EngineError, LoadSpec, RecordBatch, RunProgress, spawn_scoped};
use launch::CpuRestriction;
use model::study::SCHEMA;
use model::{
    Clock, Diagnostic, EndedBy, Environment, LaneCountReason, LoadPlan, LoadStudy, Nanos, Objective, Placement, Run,
    ServerLocation, SystemClock, verdict, warnings,
};
use probe::host;

use crate::calibrate::ceilings;
use crate::context::Context;
use crate::error::SweepError;
use crate::far::FarGenerators;
use crate::observe::{ObservedRun, RunObservers, drive_observed};
use crate::observer::Phase;
use crate::overload::overload;
use crate::statsd::StatsdListener;

/// How often the conditions that end a run early are checked.
const CHECK_EVERY: Nanos = Nanos::from_secs(1);
/// Batches that may wait for the journal: with 1024 requests each, some megabytes.
const WAITING: usize = 64;

/// A load that can start, with nothing left to decide.
pub struct PreparedLoad {
    /// What the engine does.
    pub shape: LoadSpec,
    /// What was asked, for the report.
    pub plan: LoadPlan,
    /// Time of the name resolution; `None` where the host is an address.
    pub name_resolution: Option<Nanos>,
    /// Where the server runs and where the lanes will; `None` where it is not known who serves.
    pub placement: Option<Placement>,
    /// The server's first processes; none where it is not known who serves.
    pub serving: Vec<u32>,
    /// Why there are so many lanes.
    pub lanes_by: LaneCountReason,
    /// Where the server is.
    pub server: ServerLocation,
}

impl PreparedLoad {
    /// The study of its run, which nothing was logged or checked of.
    pub fn study(self, run: Run, environment: Environment, context: &Context<'_>) -> LoadStudy {
        LoadStudy {
            schema: SCHEMA,
            started_at: context.started_at.clone(),
            command_line: context.command_line.clone(),
            environment,
            plan: self.plan,
            server: self.server,
            placement: self.placement,
            lanes_by: self.lanes_by,
            name_resolution: self.name_resolution,
            run,
            checks: Vec::new(),
            log_dropped: 0,
            interrupted: false,
        }
    }
}

/// Takes single requests while a run goes on, on a thread of its own. Lanes never wait for it: what it is too slow for they drop and count.
pub trait RequestJournal: Send {
    /// Takes batches until the lanes are done.
    fn record(&mut self, batches: &Receiver<RecordBatch>, lanes: u32, progress: &RunProgress);

    /// What the checks of the answers found, a line each.
    fn checks(&self) -> Vec<String>;
}

/// Who else takes part in a load.
pub struct LoadCompany<'a> {
    /// Takes single requests.
    pub journal: Option<&'a mut dyn RequestJournal>,
    /// Listens to statsd.
    pub statsd: Option<&'a Mutex<StatsdListener>>,
    /// Whether the generator's own limit is measured.
    pub calibrates: bool,
}

/// Runs the load, and judges it once, when all is known. `phase` learns what is going on.
///
/// # Errors
/// Where the engine cannot start, or the sink that its limit is measured with.
///
/// # Panics
/// Where the journal does.
pub fn conduct_load(
    prepared: PreparedLoad,
    company: LoadCompany<'_>,
    context: &Context<'_>,
    phase: &mut dyn FnMut(&Phase),
) -> Result<LoadStudy, SweepError> {
    let PreparedLoad { shape, plan, placement, serving, server, .. } = &prepared;
    let LoadCompany { mut journal, statsd, calibrates } = company;
    // Before this thread is kept to some of its processors.
    let environment = host::environment(context.version);
    let kept = CpuRestriction::off_the_server(placement.as_ref());
    let progress = Arc::new(context.progress(shape));
    phase(&Phase::Running {
        number: 1,
        of: 1,
        what: String::new(),
        connections: shape.connections,
        length: shape.measured.map(|measured| measured + shape.warm_up),
        left: None,
        may_end_early: false,
        progress: Some(Arc::clone(&progress)),
        live: Arc::default(),
    });
    let observed = std::thread::scope(|scope| -> Result<_, EngineError> {
        // Of several generators each has so many.
        let lanes = shape.lanes * context.far.map_or(1, FarGenerators::count);
        let progress = &*progress;
        let mut sender = None;
        if let Some(journal) = &mut journal {
            let (batches_to, batches) = sync_channel(WAITING);
            // It ends when the lanes have: then nobody holds the other end any more.
            spawn_scoped(scope, "journal", move || journal.record(&batches, lanes, progress))?;
            sender = Some(batches_to);
        }
        let mut ends = early_end(context.interrupt, &plan.stop_if, progress, &context.clock);
        let observers = RunObservers {
            ends: &mut ends,
            serving,
            placement: placement.as_ref(),
            statsd,
            journal: sender,
            sampling: None,
            percentiles: &warnings::LOAD_PERCENTILES,
        };
        drive_observed(shape, &context.clock, context.far, progress, observers)
    });
    let ObservedRun { mut run, ended_by, interrupted, dropped_records: log_dropped, .. } = observed?;
    let (answers, received_bytes) = (run.tally.all_answers(), run.tally.received_bytes);
    // This machine's counter is not another's.
    run.generator.listen_overflows = run.generator.listen_overflows.filter(|_| server.is_here());
    // After the run, when the size of the answers is known.
    if !interrupted && answers > 0 && calibrates {
        phase(&Phase::Calibrating);
        let placement = kept.as_ref().and(placement.as_ref());
        run.generator.ceiling = ceilings(std::slice::from_ref(shape), received_bytes / answers, placement, context)?[0];
    }
    judge(&mut run, plan, placement.as_ref(), interrupted, ended_by.flatten());
    run.warnings.extend((log_dropped > 0).then_some(Diagnostic::LogIncomplete { dropped: log_dropped }));
    Ok(LoadStudy {
        checks: journal.map_or_else(Vec::new, |journal| journal.checks()),
        log_dropped,
        interrupted,
        ..prepared.study(run, environment, context)
    })
}

/// What the run's own figures say of it; it may have ended before its time, by a condition.
pub(crate) fn judge(
    run: &mut Run,
    plan: &LoadPlan,
    placement: Option<&Placement>,
    interrupted: bool,
    stopped_by: Option<String>,
) {
    run.judgement = Some(verdict::of_load(run, plan));
    run.overload = if interrupted { None } else { overload(run, plan) };
    // Where no condition did, it was a signal: nobody else stops the lanes.
    let ended_by = (interrupted && stopped_by.is_none()).then_some(EndedBy::User);
    run.warnings = warnings::of_load(run, &plan.pace, plan.keep_alive, placement, ended_by);
    run.warnings.extend(stopped_by.map(|condition| Diagnostic::StoppedEarly { condition }));
}

/// When a load ends early: by Ctrl-C, for no reason of its own, or because one of the user's conditions holds, which is given with its
/// figure.
fn early_end<'a>(
    interrupt: &'a AtomicBool,
    stop_if: &'a [Objective],
    progress: &'a RunProgress,
    clock: &'a SystemClock,
) -> impl FnMut() -> Option<Option<String>> + Send + 'a {
    let mut next_check = None;
    move || {
        if interrupt.load(Ordering::Relaxed) {
            return Some(None);
        }
        let now = clock.now();
        if stop_if.is_empty() || next_check.is_some_and(|next| now < next) {
            return None;
        }
        // The first question has no answer yet: the lanes begin to answer with it.
        let is_first = next_check.replace(now + CHECK_EVERY).is_none();
        let tally = progress.tally().filter(|_| !is_first)?;
        let measured = now.min(tally.window.until).saturating_sub(tally.window.from);
        // The run as it is now, as far as objectives need it.
        Run::recorded(1, tally, measured, measured).first_that_holds(stop_if).map(Some)
    }
}
