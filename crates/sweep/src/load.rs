//! Conducts a load: one run against a server that is already running, from the first connect to the
//! study.
//!
//! Like every run: the job is prepared ([`PreparedLoad`]); the lanes send it, and are observed
//! meanwhile; the generator's own limit is measured; then the run is judged once, with all that is
//! known. If more was offered than the server can do, the run tells its capacity. Files and the
//! terminal are the caller's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::sync::{Arc, Mutex};

use engine::{
    EngineError, LoadSpec, RaiseOnDrop, RecordBatch, RunProgress, SlowLoad, Transport, drive,
    spawn_scoped,
};
use judge::checks::RunSetting;
use judge::{checks, verdict};
use launch::CpuRestriction;
use model::study::SCHEMA;
use model::theory::{ClassAlone, Estimate, Overload, OverloadDoubt};
use model::{
    Ceiling, Clock, Diagnostic, EndedBy, Environment, LaneCountReason, LoadPlan, LoadSettings,
    LoadStudy, Nanos, Objective, Pace, Placement, Profile, RequestMix, Run, ServerLocation,
    SlowClientCounts, SystemClock, Timing,
};
use probe::host;
use probe::other_clients::OtherClients;

use crate::ceiling::ceilings;
use crate::class_alone;
use crate::context::{Context, Phase, SweepError};
use crate::event::{EventOfRun, EventOrder};
use crate::far::FarGenerators;
use crate::observe::{ObservedRun, RunObservers, drive_observed, has_steps};
use crate::statsd::StatsdListener;

/// How long unmeasured requests are waited for at the end. They only kept the load up: nobody needs
/// their responses.
const DRAIN: Nanos = Nanos::from_secs(2);
/// How often the conditions that end a run early are checked.
const CHECK_EVERY: Nanos = Nanos::from_secs(1);
/// When other clients of the server are first looked for; from then on at each doubled time.
const FIRST_LOOK: Nanos = Nanos::from_millis(500);
/// Batches that may wait for the journal: with 1024 requests each, some megabytes.
const WAITING: usize = 64;

/// A load that can start, with nothing left to decide.
pub struct PreparedLoad {
    /// What the engine runs.
    pub spec: LoadSpec,
    /// What was asked, for the report.
    pub plan: LoadPlan,
    /// Slow clients beside it.
    pub slow_clients: Option<SlowLoad>,
    /// How long the name resolution took; `None` if the host is an address.
    pub name_resolution: Option<Nanos>,
    /// The CPUs of the server and of the lanes; `None` if it is not known who serves.
    pub placement: Option<Placement>,
    /// The pids of the server's first processes; none if it is not known who serves.
    pub serving: Vec<u32>,
    /// Why there are so many lanes.
    pub lanes_by: LaneCountReason,
    /// Where the server is.
    pub server: ServerLocation,
    /// What is done to the server in the middle of the run.
    pub event: Option<EventOrder>,
}

impl PreparedLoad {
    /// The study of its run, of which nothing was logged or checked.
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
            classes_alone: Vec::new(),
            slow_clients: None,
            log_dropped: 0,
            interrupted: false,
        }
    }
}

/// What the engine runs for this plan, with these requests.
///
/// # Panics
/// If there are none.
pub(crate) fn spec_of(plan: &LoadPlan, transport: Transport, requests: RequestMix) -> LoadSpec {
    let first = requests.request(0).clone();
    LoadSpec {
        requests: requests.into(),
        load: plan.load.clone(),
        measured: plan.measured(),
        busy_polls: plan.load.timing != Timing::Coalesce,
        drain: Some(DRAIN),
        // What the app computed from the header.
        reads_app_times: plan.load.queue_header.is_some(),
        ..LoadSpec::closed(transport, first, plan.load.connections)
    }
}

/// Takes single requests while a run goes on, on a thread of its own. Lanes never wait for it: they
/// drop and count what it is too slow for.
pub trait RequestJournal: Send {
    /// Takes batches until the lanes are done. `over` says so too: from then on the run's figures
    /// wait for the journal.
    fn record(
        &mut self,
        batches: &Receiver<RecordBatch>,
        lanes: u32,
        progress: &RunProgress,
        over: &AtomicBool,
    );

    /// What the checks of the responses found, a line each.
    fn checks(&self) -> Vec<String>;
}

/// Who observes a load, besides the lanes that make it.
pub struct LoadObservers<'a> {
    /// Takes single requests.
    pub journal: Option<&'a mut dyn RequestJournal>,
    /// Listens to statsd.
    pub statsd: Option<&'a Mutex<StatsdListener>>,
    /// Whether the generator's own limit is measured, after the run.
    pub calibrates: bool,
}

/// Runs the load and judges it once, when all is known. `phase` is told what is going on.
///
/// # Errors
/// If the engine cannot start.
///
/// # Panics
/// If the journal does.
pub fn conduct_load(
    prepared: PreparedLoad,
    mut observers: LoadObservers<'_>,
    context: &Context<'_>,
    phase: &mut dyn FnMut(&Phase),
) -> Result<LoadStudy, SweepError> {
    let PreparedLoad { spec, plan, placement, server, .. } = &prepared;
    // Before this thread is kept to some of its processors.
    let environment = host::environment(context.version);
    let restriction = CpuRestriction::off_the_server(placement.as_ref());
    let classes_alone = if plan.classes_alone {
        phase(&Phase::MeasuringServiceTime { at_most: class_alone::LONGEST_OF_ALL });
        measure_classes_alone(spec, context)?
    } else {
        Vec::new()
    };
    let progress = Arc::new(context.progress(spec));
    phase(&Phase::single_run(spec, String::new(), &progress, &Arc::default()));
    let DrivenLoad { observed, slow_clients } =
        drive_with_slow_clients(&prepared, &mut observers, context, &progress)?;
    let ObservedRun { mut run, ended_by, interrupted, dropped_records: log_dropped, .. } = observed;
    if !server.is_here() {
        // The counter that was read is this machine's.
        run.generator.listen_overflows = None;
    }
    let responses = run.tally.all_responses();
    if !interrupted && responses > 0 && observers.calibrates {
        phase(&Phase::Calibrating);
        let placement = if restriction.is_some() { placement.as_ref() } else { None };
        let bytes = run.tally.received_bytes / responses;
        run.generator.ceiling = ceiling_of(spec, bytes, placement, context);
    }
    judge(&mut run, plan, placement.as_ref(), interrupted, ended_by.flatten());
    if log_dropped > 0 && observers.journal.is_some() {
        run.warnings.push(Diagnostic::LogIncomplete { dropped: log_dropped });
    }
    if log_dropped > 0 && has_steps(spec) {
        run.warnings.push(Diagnostic::StepsIncomplete { dropped: log_dropped });
    }
    let checks = observers.journal.map_or_else(Vec::new, |journal| journal.checks());
    let study = prepared.study(run, environment, context);
    Ok(LoadStudy { classes_alone, checks, slow_clients, log_dropped, interrupted, ..study })
}

/// The most responses that measure how long a class takes alone. They are few, because the server
/// runs already and may serve others.
const RESPONSES_OF_CLASS: u64 = 20;

/// Measures how long a request of each class of the load takes alone.
fn measure_classes_alone(
    spec: &LoadSpec,
    context: &Context<'_>,
) -> Result<Vec<ClassAlone>, EngineError> {
    class_alone::measure(&spec.requests, RESPONSES_OF_CLASS, |requests, number, longest| {
        if context.is_interrupted() {
            return Ok(None);
        }
        let alone = LoadSpec {
            requests: requests.into(),
            load: LoadSettings {
                requests_total: Some(number),
                keep_alive: spec.load.keep_alive,
                timeout: spec.load.timeout,
                queue_header: spec.load.queue_header,
                ..LoadSettings::closed(1)
            },
            measured: Some(longest),
            keep_responses: false,
            ..spec.clone()
        };
        let progress = RunProgress::new(alone.load.lanes);
        let driven = drive(&alone, &context.clock, context.interrupt, &progress, None)?;
        Ok(Some(driven.outcome.tally))
    })
}

/// A load that is over, and what became of the slow clients beside it.
struct DrivenLoad {
    observed: ObservedRun<Option<String>>,
    slow_clients: Option<SlowClientCounts>,
}

/// Drives the load while slow clients, if there are any, hold their connections. They connect
/// before the load's first request, and end with the load.
fn drive_with_slow_clients(
    prepared: &PreparedLoad,
    observers: &mut LoadObservers<'_>,
    context: &Context<'_>,
    progress: &RunProgress,
) -> Result<DrivenLoad, EngineError> {
    let Some(slow) = &prepared.slow_clients else {
        let observed = drive_with_journal(prepared, observers, context, progress)?;
        return Ok(DrivenLoad { observed, slow_clients: None });
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let ending = RaiseOnDrop(over);
        let (in_place, is_in_place) = channel();
        let connections = prepared.spec.load.connections;
        let clients = spawn_scoped(scope, "slow-clients", move || {
            slow.drive(&context.clock, connections, &in_place, over)
        })?;
        // If they could not start, the load is not sent, and their error is returned.
        let observed = if is_in_place.recv().is_ok() {
            Some(drive_with_journal(prepared, observers, context, progress)?)
        } else {
            None
        };
        drop(ending);
        let slow_clients = Some(clients.join().expect("slow clients never panic")?);
        let observed =
            observed.ok_or_else(|| EngineError("slow clients ended early".to_owned()))?;
        Ok(DrivenLoad { observed, slow_clients })
    })
}

/// Drives the load, while the journal takes its requests on a thread of its own. If the run ended
/// early, its `ended_by` holds the user's condition that ended it, or `None` inside if it was
/// Ctrl-C.
fn drive_with_journal(
    prepared: &PreparedLoad,
    observers: &mut LoadObservers<'_>,
    context: &Context<'_>,
    progress: &RunProgress,
) -> Result<ObservedRun<Option<String>>, EngineError> {
    let PreparedLoad { spec, plan, placement, serving, event, .. } = prepared;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        // If a thread cannot be started, this ends those that were.
        let _ending = RaiseOnDrop(over);
        let mut sender = None;
        if let Some(journal) = &mut observers.journal {
            let (to_journal, batches) = sync_channel(WAITING);
            // Each of several generators has so many lanes.
            let lanes = spec.load.lanes * context.far.map_or(1, FarGenerators::count);
            // It ends with the lanes, which hold the other end.
            spawn_scoped(scope, "journal", move || {
                journal.record(&batches, lanes, progress, over);
            })?;
            sender = Some(to_journal);
        }
        // Where other machines send the load, their connections are not others'.
        let is_seen = prepared.server.is_here() && context.far.is_none();
        let places = spec.transport.endpoints.iter();
        let mut others = if is_seen { OtherClients::of(places) } else { None };
        let mut early_end = early_end(context.interrupt, &plan.stop_if, progress, &context.clock);
        let mut next_look = FIRST_LOOK;
        let mut ends = || {
            let start = progress.start();
            let elapsed = context.clock.now().saturating_sub(start);
            if let Some(others) = others.as_mut()
                && start > Nanos::ZERO
                && elapsed >= next_look
            {
                others.look();
                next_look = next_look * 2;
            }
            early_end()
        };
        let run_observers = RunObservers {
            ends: &mut ends,
            loses_requests: |_| false,
            serving,
            placement: placement.as_ref(),
            statsd: observers.statsd,
            journal: sender,
            sampling: None,
            event: event.as_ref().map(|order| EventOfRun { order, own: None }),
            tells_steps: true,
            percentiles: &checks::LOAD_PERCENTILES,
        };
        let mut observed =
            drive_observed(spec, &context.clock, context.far, progress, run_observers)?;
        observed.run.generator.other_clients = others.map(|others| others.most());
        Ok(observed)
    })
}

/// The generator's own limit for such a load, whose responses have so many bytes; `None` if it
/// cannot be measured, which spoils nothing: the load is done.
fn ceiling_of(
    spec: &LoadSpec,
    response_bytes: u64,
    placement: Option<&Placement>,
    context: &Context<'_>,
) -> Option<Ceiling> {
    let measured = ceilings(std::slice::from_ref(spec), response_bytes, placement, context).ok()?;
    measured[0]
}

/// Judges the run by its own figures; `stopped_by` is the user's condition that ended it early.
pub(crate) fn judge(
    run: &mut Run,
    plan: &LoadPlan,
    placement: Option<&Placement>,
    interrupted: bool,
    stopped_by: Option<String>,
) {
    // The verdict says what the overload shows.
    run.overload = overload(run, plan);
    run.judgement = Some(verdict::of_load(run, plan));
    // Without a condition it was a signal: nothing else stops the lanes.
    let ended_by = if interrupted && stopped_by.is_none() { Some(EndedBy::User) } else { None };
    let setting = RunSetting { keep_alive: plan.load.keep_alive, placement, ended_by };
    run.warnings = checks::warnings_of_load(run, &plan.load.pace, setting);
    run.warnings.extend(stopped_by.map(|condition| Diagnostic::StoppedEarly { condition }));
}

/// Whether a load is to end early: by Ctrl-C, without a reason (`Some(None)`), or because one of
/// the user's conditions holds, which is given with its figure.
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
        // Lanes show their tally only after somebody has asked for it.
        let is_first = next_check.replace(now + CHECK_EVERY).is_none();
        let tally = progress.tally().filter(|_| !is_first)?;
        let measured = now.min(tally.window.until).saturating_sub(tally.window.from);
        // The run so far, as far as objectives need it.
        Run::recorded(1, tally, measured, measured).first_that_holds(stop_if).map(Some)
    }
}

/// Two estimates of the same capacity may differ by this part.
const AGREE: f64 = 0.05;
/// Half of the 95 % interval of a mean of fifteen increments, in standard errors (Student's t, 14
/// degrees of freedom).
const IN_95_PERCENT: f64 = 2.14;

/// The server's capacity, by how fast response times grew, or else the backlog; `None` if the
/// rate was not one number, or there was no overload.
///
/// Its slots can be told only with a service time that the user gives: in an overload every request
/// has waited, so the shortest time of the run is no service time.
pub(crate) fn overload(run: &Run, plan: &LoadPlan) -> Option<Overload> {
    if !matches!(plan.load.pace, Pace::Open { profile: Profile::Flat { .. }, .. }) {
        return None;
    }
    let statistics =
        run.statistics.as_ref().filter(|statistics| statistics.is_overload(&run.tally))?;
    let backlog = statistics.backlog?;
    let offered = run.offered_rate(&plan.load.pace)?;
    // Where some requests wait longer and others do not, only the backlog tells the capacity.
    let agrees =
        |growth: &f64| (offered / (1.0 + growth) / (offered - backlog.growth) - 1.0).abs() <= AGREE;
    let growth = statistics.growth().filter(agrees);
    let capacity = if let Some((growth, steadiness)) = growth.zip(statistics.steadiness) {
        queueing::open_loop::capacity(
            offered,
            growth,
            steadiness.growth / steadiness.growth_in_errors,
        )
        .ok()?
    } else {
        Estimate { value: offered - backlog.growth, half_width: IN_95_PERCENT * backlog.error }
    };
    let answered = run.completed_under_load();
    Some(Overload {
        offered,
        growth,
        backlog_growth: backlog.growth,
        backlog_at_end: backlog.at_end,
        capacity,
        answered,
        service_time: plan.service_time,
        slots: plan.service_time.map(|time| slots(capacity, time.as_secs_f64(), run)),
        doubt: doubt(run, capacity.value, answered),
    })
}

/// Slots = capacity x service time. A request holds its slot a little longer than the time that was
/// given: the first requests of a run wait for nobody, so the shortest response time bounds that
/// overhead, which widens the estimate. Where even that request has waited, it tells nothing.
fn slots(capacity: Estimate, service: f64, run: &Run) -> Estimate {
    let shortest = run.tally.response_time.min();
    let overhead = shortest
        .map(|shortest| shortest.as_secs_f64() / service - 1.0)
        .filter(|part| (0.0..MOST_OVERHEAD).contains(part))
        .unwrap_or(0.0);
    let value = capacity.value * service;
    Estimate { value, half_width: capacity.half_width * service + value * overhead }
}

/// A request that took more than this part beyond its service time has waited.
const MOST_OVERHEAD: f64 = 0.1;

fn doubt(run: &Run, capacity: f64, answered: f64) -> Option<OverloadDoubt> {
    if run.tally.counts.failed() > 0 {
        return Some(OverloadDoubt::Failures);
    }
    // Until the first responses come nothing can be counted.
    let first = run.tally.response_time.min().unwrap_or(Nanos::ZERO);
    let uncounted_share = first.as_secs_f64() / run.measured.as_secs_f64().max(1e-9);
    let differs = (capacity / answered.max(1e-9) - 1.0).abs() > AGREE + 2.0 * uncounted_share;
    differs.then_some(OverloadDoubt::Disagreement)
}

#[cfg(test)]
mod tests {
    use judge::checks;
    use model::{Outcome, Window};

    use super::*;

    /// This many requests a second, each of which holds a slot for this many ms.
    fn plan(rate: f64, service_ms: Option<u64>) -> LoadPlan {
        let pace = Pace::constant(model::Rate::new(rate).unwrap());
        let mut plan = testkit::load::closed().plan;
        plan.load.pace = pace;
        plan.service_time = service_ms.map(Nanos::from_millis);
        plan
    }

    fn recorded(rate: u64, seconds: u64, play: impl FnMut(u64, Nanos) -> (Nanos, Outcome)) -> Run {
        let window = Window { from: Nanos::ZERO, until: Nanos::from_secs(seconds) };
        testkit::load::paced(window, rate, &checks::LOAD_PERCENTILES, play)
    }

    /// On slots of 0.1 s: the `n`-th request takes the slot that is free first.
    fn run(rate: u64, slots: u64, seconds: u64, fails: bool) -> Run {
        let mut free = vec![Nanos::ZERO; slots as usize];
        recorded(rate, seconds, |n, due| {
            let slot = &mut free[(n % slots) as usize];
            *slot = due.max(*slot) + Nanos::from_millis(100);
            (*slot, Outcome::Answered(if fails && n == 7 { 503 } else { 200 }))
        })
    }

    /// 60 requests a second for 9 s, of which the `n`-th takes this long.
    fn taking(time: impl Fn(u64) -> Nanos) -> Run {
        recorded(60, 9, |n, due| (due + time(n), Outcome::Answered(200)))
    }

    #[test]
    fn the_slope_alone_tells_five_slots_and_overhead_widens_the_estimate() {
        let run = run(60, 5, 20, false);
        let seen = overload(&run, &plan(60.0, Some(100))).unwrap();
        assert!((seen.growth.unwrap() - 0.2).abs() < 0.01 && seen.doubt.is_none(), "{seen:?}");
        assert!(
            (seen.capacity.value - 50.0).abs() < 0.5 && (seen.answered - 50.0).abs() < 1.0,
            "{seen:?}"
        );
        let slots = seen.slots.unwrap();
        assert!((slots.value - 5.0).abs() < 0.05 && slots.half_width < 0.1, "{seen:?}");
        assert_eq!(overload(&run, &plan(60.0, None)).unwrap().slots, None);
        // The requests hold a slot for 100 ms, but 99 were given: 4.95 slots, and five are not
        // ruled out.
        let wider = overload(&run, &plan(60.0, Some(99))).unwrap().slots.unwrap();
        assert!(
            (wider.value - 4.95).abs() < 0.05 && wider.value + wider.half_width >= 5.0 - 1e-3,
            "{wider:?}"
        );
        assert!(slots.half_width < wider.half_width, "{wider:?}");
    }

    #[test]
    fn an_overload_that_no_median_shows_is_told_by_the_backlog() {
        let ms = Nanos::from_millis;
        let plan = plan(60.0, Some(100));
        // Every third waits for three quarters of all that has passed, as on kept connections of
        // Puma before 7.
        let run = taking(|n| if n % 3 == 0 { ms(100 + 3 * n * 1000 / 60) } else { ms(100) });
        let seen = overload(&run, &plan).expect("an overload");
        assert_eq!(seen.growth, None);
        assert!((14.0..16.0).contains(&seen.backlog_growth), "{seen:?}");
        assert!((seen.capacity.value - 45.0).abs() < seen.capacity.half_width + 0.5, "{seen:?}");
        assert!((seen.slots.unwrap().value - 4.5).abs() < 0.2, "{seen:?}");
        assert_eq!(seen.doubt, None, "the answers counted agree");
        assert_eq!(run.response_time(0.5), model::Quantile::Growing);
    }

    #[test]
    fn requests_that_take_longer_than_the_run_are_not_called_an_overload() {
        let ms = Nanos::from_millis;
        let plan = plan(60.0, None);
        for (what, slow, is_named) in
            [("longer than the run", 20_000, true), ("a second", 1_000, false)]
        {
            let run = taking(|n| if n % 20 == 0 { ms(slow) } else { ms(20) });
            assert_eq!(overload(&run, &plan), None, "{what}");
            let setting = RunSetting { keep_alive: true, placement: None, ended_by: None };
            let warnings = checks::warnings_of_load(&run, &plan.load.pace, setting);
            let is_unexplained = |warning: &model::Diagnostic| {
                matches!(warning, model::Diagnostic::BacklogUnexplained { .. })
            };
            assert_eq!(warnings.iter().any(is_unexplained), is_named, "{what}: {warnings:?}");
            assert!(run.response_time(0.5).time().is_some(), "{what}");
        }
    }

    #[test]
    fn without_an_overload_at_one_constant_rate_there_is_no_capacity() {
        let rate = |per_second| model::Rate::new(per_second).unwrap();
        let profile =
            Profile::Ramp { from: rate(50.0), to: rate(70.0), over: Nanos::from_secs(20) };
        let steady = plan(60.0, None);
        let Pace::Open { arrivals, seed, burst, .. } = steady.load.pace else {
            panic!("an open loop")
        };
        let mut ramp = plan(60.0, None);
        ramp.load.pace = Pace::Open { profile, arrivals, seed, burst };
        assert_eq!(overload(&run(40, 5, 20, false), &plan(40.0, None)), None, "below the capacity");
        assert_eq!(overload(&run(60, 5, 20, false), &ramp), None);
        assert_eq!(overload(&run(60, 5, 20, false), &testkit::load::closed().plan), None);
    }

    #[test]
    fn doubts_about_an_overload_are_stated() {
        let plan = plan(60.0, None);
        assert_eq!(
            overload(&run(60, 5, 20, true), &plan).unwrap().doubt,
            Some(OverloadDoubt::Failures)
        );
        let mut other = run(60, 5, 20, false);
        other.tally.completed_in_window = other.tally.completed_in_window * 8 / 10;
        assert_eq!(overload(&other, &plan).unwrap().doubt, Some(OverloadDoubt::Disagreement));
    }
}
