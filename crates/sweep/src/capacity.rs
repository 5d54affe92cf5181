//! Conducts the search for a capacity: runs the trials that a [`RateSearch`] orders, counts late
//! requests while a trial goes on, and ends it as soon as it is decided.
//!
//! A server that longtail starts is started once, and each trial has fresh connections. Before the
//! first trial a short closed loop tells how many requests per second the server reaches at most.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capacity::{
    LateCounts, RateObjective, RateSearch, SearchSettings, SearchStep, TrialEnding, TrialLook,
    TrialOrder,
};
use engine::{LoadSpec, RunProgress, spawn_scoped};
use judge::{ServerSeen, verdict};
use model::run::PERCENTILES;
use model::study::SCHEMA;
use model::theory::ServiceTime;
use model::{
    Arrivals, BeyondRun, CapacityBracket, CapacityPlan, CapacityStudy, CapacityTarget,
    CapacityTheory, CapacityTrial, Clock, Diagnostic, EndOfBeyond, EndedBy, Exchange, Histogram,
    Nanos, Objective, Pace, Placement, Probe, Profile, Rate, RetryPolicy, Run, SearchEnd,
    ServerSize, SizeSearch, Stop, StreamPlan, Study, TrialResult,
};
use probe::host;
use queueing::mdc::ConstantServiceQueue;
use queueing::open_loop::{ErlangQueue, SteadyQueue as _, highest_utilisation};

use crate::block::Block;
use crate::conduct::{Experiment, conduct};
use crate::context::{Context, Observer, Phase, SweepError};
use crate::load::PreparedLoad;
use crate::observe::{ObservedRun, RunObservers, drive_observed};
use crate::server_gone;
use crate::service_time::{self, OneConnection as _};
use crate::session::{Job, Session};

/// The closed loop before the first trial.
const CLOSED_LOOP: Nanos = Nanos::from_secs(3);
const CLOSED_LOOP_WARM_UP: Nanos = Nanos::from_secs(1);
/// The same of a server that was started: each worker of a Puma reports every five seconds how many
/// threads are busy, and a report of each must be in it.
const CLOSED_LOOP_OF_STARTED: Nanos = Nanos::from_secs(6);
/// Its connections / slots, and their number if the slots are not known.
const CLOSED_LOOP_MULTIPLE: u32 = 3;
const CLOSED_LOOP_CONNECTIONS: u32 = 64;
/// The most connections of a trial where nothing else is asked for.
const MOST_CONNECTIONS: u32 = 1000;
/// Batches of requests that may wait to be counted.
const BATCHES: usize = 256;
/// Lanes hand over a request at the latest this long after it ended.
const SETTLING: Nanos = Nanos::from_millis(500);
/// The server gets at most this long to work off what a trial has left.
const LONGEST_REST: Nanos = Nanos::from_secs(10);
/// How long an overload beyond the capacity lasts. The low rate after it lasts until the objective
/// has held for as long again, or until its time limit.
const BEYOND: Nanos = Nanos::from_secs(10);
/// Bounds of that time limit, in multiples of [`BEYOND`]: see [`recovery_periods`].
const SHORTEST_RECOVERY: u64 = 3;
const LONGEST_RECOVERY: u64 = 60;
/// The low rate / the lower end of the bracket.
const LOW_RATE: f64 = 0.5;
/// No server that is loaded from one machine takes more.
const HIGHEST_RATE: f64 = 1e6;

/// Refuses a condition that no search can have as its objective.
///
/// # Errors
/// Why, and what to type.
pub fn check_objective(condition: Objective) -> Result<(), String> {
    RateObjective::new(condition).map(|_| ())
}

/// Searches for the capacity of a server that runs already.
///
/// # Errors
/// If a condition cannot be an objective, or the engine cannot start.
pub fn conduct_capacity_of(
    prepared: &PreparedLoad,
    plan: &CapacityPlan,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<CapacityStudy, SweepError> {
    announce(plan, observer);
    let mut study = new_study(plan, context);
    let target = TrialTarget::running(prepared);
    let begun = context.clock.now();
    let mut conductor = TrialConductor { target, context, observer, begun, has_ended: &|| false };
    conductor.search(plan, &mut study)?;
    if study.end == Some(SearchEnd::ServerEnded) {
        let endpoints = &prepared.spec.transport.endpoints;
        let places: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
        study.server_end = Some(format!("nothing listens at {} any more", places.join(" or ")));
    }
    Ok(study)
}

/// Searches for the capacity of a server that longtail starts.
///
/// # Errors
/// If a condition cannot be an objective, or the server cannot be started or does not serve what is
/// requested.
pub fn conduct_capacity(
    plan: &CapacityPlan,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<CapacityStudy, SweepError> {
    announce(plan, observer);
    search_started(plan, context, observer)
}

/// Says how long a search may take, before any load.
fn announce(plan: &CapacityPlan, observer: &mut dyn Observer) {
    let budget = model::number::minutes(plan.budget);
    observer
        .remark(&format!("the search ends after {budget} (--budget), or as soon as it is precise"));
}

/// Searches on a server that is started for it.
fn search_started(
    plan: &CapacityPlan,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<CapacityStudy, SweepError> {
    let begun = context.clock.now();
    let mut search = CapacitySearch { plan, study: new_study(plan, context), is_done: false };
    conduct(&mut search, context, observer)?;
    let mut study = search.study;
    if study.end.is_none() {
        // The user interrupted while the server started.
        (study.total_time, study.interrupted) = context.time_taken(begun);
    }
    Ok(study)
}

/// Searches for the capacity of a server of each of the plan's sizes, one after the other.
///
/// # Errors
/// As [`conduct_capacity`].
pub fn conduct_sizes(
    plan: &CapacityPlan,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<CapacityStudy, SweepError> {
    let begun = context.clock.now();
    let sizes = plan.sizes.len() as u64;
    observer.remark(&format!(
        "{}, each searched for {} at most: {} in all at most, and their starts",
        model::number::count_of(sizes, "size"),
        model::number::minutes(plan.budget),
        model::number::minutes(plan.budget * sizes)
    ));
    let mut whole = new_study(plan, context);
    for size in &plan.sizes {
        if context.is_interrupted() {
            break;
        }
        let mut of_size = SizeObserver { size: *size, whole: &mut whole, observer: &mut *observer };
        let search = search_started(&plan.of_size(*size), context, &mut of_size)?;
        of_size.keep(search);
    }
    (whole.total_time, whole.interrupted) = context.time_taken(begun);
    Ok(whole)
}

/// Passes the search for one size on to an observer, as part of the search over all sizes.
struct SizeObserver<'a> {
    size: ServerSize,
    /// What is known of all sizes.
    whole: &'a mut CapacityStudy,
    observer: &'a mut dyn Observer,
}

impl SizeObserver<'_> {
    /// Keeps what is known of this size.
    fn keep(&mut self, search: CapacityStudy) {
        self.whole.sizes.retain(|known| known.size != self.size);
        self.whole.interrupted = search.interrupted;
        self.whole.sizes.push(SizeSearch { size: self.size, search });
    }

    fn keep_study(&mut self, study: &Study) -> Study {
        if let Study::Capacity(search) = study {
            self.keep((**search).clone());
        }
        self.whole.clone().into()
    }
}

impl Observer for SizeObserver<'_> {
    fn phase(&mut self, phase: &Phase) {
        let mut phase = phase.clone();
        if let Phase::Running { what, .. } = &mut phase {
            *what = format!("{}, {what}", self.size);
        }
        self.observer.phase(&phase);
    }

    fn remark(&mut self, text: &str) {
        self.observer.remark(text);
    }

    fn run_done(&mut self, study: &Study, provisional: &Study) {
        let whole = self.keep_study(study);
        self.observer.run_done(&whole, provisional);
    }

    fn judged(&mut self, study: &Study) {
        let whole = self.keep_study(study);
        self.observer.judged(&whole);
    }
}

/// The study of a search that has not begun.
pub(crate) fn new_study(plan: &CapacityPlan, context: &Context<'_>) -> CapacityStudy {
    CapacityStudy {
        schema: SCHEMA,
        started_at: context.started_at.clone(),
        command_line: context.command_line.clone(),
        plan: plan.clone(),
        environment: host::environment(context.version),
        server: None,
        closed_loop: None,
        trials: Vec::new(),
        bracket: CapacityBracket::default(),
        seems: CapacityBracket::default(),
        confirmations: 0,
        is_monotone: true,
        end: None,
        server_end: None,
        theory: None,
        forecast: None,
        beyond: Vec::new(),
        sizes: Vec::new(),
        total_time: Nanos::ZERO,
        interrupted: false,
    }
}

/// The only block of an experiment with one server that longtail starts.
pub(crate) fn only_block(target: &CapacityTarget, is_done: &mut bool) -> Option<Block> {
    let CapacityTarget::Started { server, stream } = target else { return None };
    if std::mem::replace(is_done, true) {
        return None;
    }
    Some(Block::closed((**server).clone(), (**stream).clone(), true, 1))
}

/// The search as an experiment with one server.
struct CapacitySearch<'a> {
    plan: &'a CapacityPlan,
    study: CapacityStudy,
    is_done: bool,
}

impl Experiment for CapacitySearch<'_> {
    fn next(&mut self) -> Option<Block> {
        only_block(&self.plan.target, &mut self.is_done)
    }

    fn jobs(&mut self, session: &mut Session<'_>) -> Result<Vec<Job>, SweepError> {
        let begun = session.context.clock.now();
        self.study.server = Some(session.server.facts.clone());
        self.study.closed_loop = closed_loop_of_started(session)?.map(Box::new);
        let target = TrialTarget::started(session);
        let Session { context, server, observer, .. } = session;
        let server = &*server;
        let mut conductor = TrialConductor {
            target,
            context,
            observer: &mut **observer,
            begun,
            has_ended: &|| server.has_ended(),
        };
        conductor.search(self.plan, &mut self.study)?;
        if let Some(death) = server.death(MOST_CONNECTIONS) {
            self.study.server_end = Some(death.to_string());
        }
        Ok(Vec::new())
    }

    fn run(&mut self, _: &Job, _: &mut Session<'_>) -> Result<bool, SweepError> {
        Ok(false)
    }

    fn judge(&mut self, session: &mut Session<'_>, _: bool) {
        session.observer.judged(&self.study.clone().into());
    }
}

/// The closed loop on a server that was started, observed and judged as in a sweep: after one with a
/// connection for each slot, and with what a request takes alone. If the user interrupted, or the
/// server ended, the last of them that is whole, else the first as far as it went; `None` if it
/// measured nothing.
fn closed_loop_of_started(session: &mut Session<'_>) -> Result<Option<Run>, SweepError> {
    let alone = service_time_alone(session)?;
    let facts = &session.server.facts;
    let server = ServerSeen::of(facts, session.block.stream.keep_alive, alone);
    session.take_baseline();
    let planned = session.block.stream.clone();
    let job = |number: usize, multiple: u32, length: Nanos| Job {
        stream: StreamPlan {
            warm_up: CLOSED_LOOP_WARM_UP,
            stop: Stop::After(length),
            ..planned.clone()
        },
        probe: Probe::Proc,
        what: "a closed loop first".to_owned(),
        multiple: f64::from(multiple),
        connections: (server.slots * multiple).max(1),
        ceiling: None,
        number,
        of: 2,
        later_connections: 0,
        may_end_early: false,
    };
    let at_slots = session.run(&job(1, 1, CLOSED_LOOP), alone)?.run;
    if judge::is_shorter(&at_slots) {
        return Ok(as_far_as_it_went(at_slots));
    }
    session.observer.remark(&judge::capacity::closed_loop_reached(&at_slots));
    if session.is_over() {
        return Ok(Some(at_slots));
    }
    let saturating = job(2, CLOSED_LOOP_MULTIPLE, CLOSED_LOOP_OF_STARTED);
    let mut run = session.run(&saturating, alone)?.run;
    if judge::is_shorter(&run) {
        return Ok(Some(at_slots));
    }
    session.observer.remark(&judge::capacity::closed_loop_reached(&run));
    run.judgement = Some(verdict::of_highest_load(&run, &[at_slots], &server));
    Ok(Some(run))
}

/// A closed loop that ended early, if it got that far that it says something.
fn as_far_as_it_went(run: Run) -> Option<Run> {
    (run.completed_rate() > 0.0).then_some(run)
}

/// How long a request takes alone, if that can be measured.
fn service_time_alone(session: &mut Session<'_>) -> Result<Option<ServiceTime>, SweepError> {
    // As in a sweep: sending a large body takes CPU time, so it would say little about threads.
    if session.block.stream.body.is_some() {
        return Ok(None);
    }
    let at_most = service_time::LONGEST_MEASUREMENT;
    session.observer.phase(&Phase::MeasuringServiceTime { at_most });
    session.measure_service_time()
}

/// What trials are sent to.
pub(crate) struct TrialTarget {
    /// What each of them sends, but for its pace, warm-up and length.
    pub(crate) spec: LoadSpec,
    /// The server's first processes, if they are known.
    pub(crate) serving: Vec<u32>,
    pub(crate) placement: Option<Placement>,
    closed_loop_connections: u32,
}

impl TrialTarget {
    /// A server that runs already.
    pub(crate) fn running(prepared: &PreparedLoad) -> TrialTarget {
        TrialTarget {
            spec: prepared.spec.clone(),
            serving: prepared.serving.clone(),
            placement: prepared.placement.clone(),
            closed_loop_connections: CLOSED_LOOP_CONNECTIONS,
        }
    }

    /// The server of a session.
    pub(crate) fn started(session: &Session<'_>) -> TrialTarget {
        let slots = session.server.facts.slots();
        TrialTarget {
            spec: session.shape(&session.block.stream, MOST_CONNECTIONS),
            serving: vec![session.server.pid()],
            placement: session.server.facts.placement.clone(),
            closed_loop_connections: (slots * CLOSED_LOOP_MULTIPLE).max(1),
        }
    }
}

/// Why a trial ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrialStop {
    Decided,
    User,
    Server,
}

/// Runs trials one after the other.
pub(crate) struct TrialConductor<'a> {
    pub(crate) target: TrialTarget,
    pub(crate) context: &'a Context<'a>,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) begun: Nanos,
    /// Whether the server has ended.
    pub(crate) has_ended: &'a (dyn Fn() -> bool + Sync),
}

impl TrialConductor<'_> {
    /// Searches until the search ends, and keeps in the study what is known after each trial.
    pub(crate) fn search(
        &mut self,
        plan: &CapacityPlan,
        study: &mut CapacityStudy,
    ) -> Result<(), SweepError> {
        let objectives = plan.objectives.iter().map(|condition| RateObjective::new(*condition));
        let objectives: Vec<RateObjective> =
            objectives.collect::<Result<_, _>>().map_err(SweepError::Unusable)?;
        if study.closed_loop.is_none() && self.stop_reason().is_none() {
            study.closed_loop = self.closed_loop()?.map(Box::new);
        }
        let mut search = RateSearch::new(SearchSettings {
            objectives: objectives.clone(),
            precision: plan.precision,
            budget: plan.budget,
            closed_loop_rate: study.closed_loop_rate(),
            highest_rate: HIGHEST_RATE,
            seed: plan.seed,
        });
        let is_whole = !study.closed_loop.as_deref().is_some_and(judge::is_shorter);
        study.theory = if is_whole { theory(plan, study) } else { None };
        let needed = search.shortest_budget().filter(|needed| is_whole && *needed > plan.budget);
        if let Some(needed) = needed {
            let closed_loop = study.closed_loop_rate().unwrap_or_default();
            self.observer.remark(&judge::capacity::too_short(plan, closed_loop, needed));
        }
        let mut is_above_explained = false;
        loop {
            if self.context.is_interrupted() {
                study.end = Some(SearchEnd::User);
                break;
            }
            if (self.has_ended)() {
                study.end = Some(SearchEnd::ServerEnded);
                break;
            }
            let elapsed = self.context.clock.now() - self.begun;
            match search.next(elapsed) {
                SearchStep::End(end) => {
                    study.end = Some(end);
                    break;
                }
                SearchStep::Trial(order) => {
                    let reached = study.closed_loop_rate().filter(|reached| order.rate > *reached);
                    if let Some(reached) = reached.filter(|_| !is_above_explained) {
                        self.observer.remark(&judge::capacity::above_closed_loop(
                            order.number as u64,
                            order.rate,
                            reached,
                        ));
                        is_above_explained = true;
                    }
                    let trial = self.trial(&mut search, &objectives, order, study)?;
                    study.trials.push(trial);
                    self.keep(&search, study);
                }
            }
        }
        for times in &plan.beyond {
            if study.bracket.low > 0.0 && self.stop_reason().is_none() {
                let run = self.beyond(*times, &objectives, study)?;
                study.beyond.extend(run);
            }
        }
        (study.total_time, study.interrupted) = self.context.time_taken(self.begun);
        Ok(())
    }

    /// Notes what is known after a trial, and tells the observer.
    fn keep(&mut self, search: &RateSearch, study: &mut CapacityStudy) {
        study.bracket = search.bracket();
        study.seems = search.provisional();
        study.confirmations = search.confirmations() as u64;
        study.is_monotone = search.is_monotone();
        let elapsed = self.context.clock.now() - self.begun;
        if study.forecast.is_none() && elapsed >= search.forecast_after() {
            study.forecast = search.forecast(elapsed);
        }
        (study.total_time, study.interrupted) = self.context.time_taken(self.begun);
        let known = study.clone().into();
        self.observer.run_done(&known, &known);
    }

    /// The closed loop that shows what the server does at most. If the user interrupted, or the
    /// server ended, as far as it went; `None` if it measured nothing.
    fn closed_loop(&mut self) -> Result<Option<Run>, SweepError> {
        let connections = self.target.closed_loop_connections;
        let spec = self.target.spec.clone().with(|load| {
            load.pace = Pace::Closed;
            load.connections = connections;
            load.warm_up = CLOSED_LOOP_WARM_UP;
        });
        let spec = LoadSpec { measured: Some(CLOSED_LOOP), ..spec };
        let progress = self.announce(&spec, "a closed loop first".to_owned());
        let context = self.context;
        let has_ended = self.has_ended;
        let mut ends = || stop_reason(context, has_ended);
        let observed = drive(&self.target, &spec, self.context, &progress, &mut ends, None)?;
        if let Some(stop) = observed.ended_by {
            let by = match stop {
                TrialStop::Server => EndedBy::Server,
                TrialStop::User | TrialStop::Decided => EndedBy::User,
            };
            let mut run = observed.run;
            run.warnings.push(Diagnostic::Interrupted { by });
            return Ok(as_far_as_it_went(run));
        }
        self.observer.remark(&judge::capacity::closed_loop_reached(&observed.run));
        self.rest(&observed.run, None);
        Ok(Some(observed.run))
    }

    fn announce(&mut self, spec: &LoadSpec, what: String) -> Arc<RunProgress> {
        let progress = Arc::new(self.context.progress(spec));
        self.observer.phase(&Phase::single_run(spec, what, &progress, &Arc::default()));
        progress
    }

    /// One trial, recorded in the search.
    fn trial(
        &mut self,
        search: &mut RateSearch,
        objectives: &[RateObjective],
        order: TrialOrder,
        study: &CapacityStudy,
    ) -> Result<CapacityTrial, SweepError> {
        let at = self.context.clock.now() - self.begun;
        if let Some(above) = order.after_rate {
            self.overload(above, &order)?;
        }
        let pace = poisson(order.rate, order.seed)?;
        let counts = Mutex::new(LateCounts::new(objectives, &pace, order.warm_up));
        let spec = self.load_of_trial(&order, &pace);
        let rate = model::number::significant(order.rate);
        let left = model::number::minutes(study.plan.budget.saturating_sub(at));
        let what = format!("trial {}: {rate}/s, {left} of the budget left", order.number);
        let progress = self.announce(&spec, what);
        let clock = self.context.clock;
        let limits = objectives.iter().filter_map(|objective| objective.late_after);
        let longest = limits.max().unwrap_or_default();
        let end = order.warm_up + order.at_most + longest;
        let mut look = search.look(&order);
        let has_ended = self.has_ended;
        let context = self.context;
        let mut ends = || {
            if let Some(stop) = stop_reason(context, has_ended) {
                return Some(stop);
            }
            let start = progress.start();
            let since = clock.now().saturating_sub(start + SETTLING);
            let is_begun = start > Nanos::ZERO;
            (is_begun && is_over(&counts, &mut look, since, end)).then_some(TrialStop::Decided)
        };
        let take = |exchange: &Exchange, start: Nanos| {
            let due = exchange.due.saturating_sub(start);
            let ended = exchange.ended.saturating_sub(start);
            lock(&counts).record(due, ended, exchange.outcome.is_good());
        };
        let observed = drive(&self.target, &spec, self.context, &progress, &mut ends, Some(&take))?;
        let mut counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ran_for = clock.now().saturating_sub(progress.start());
        if observed.ended_by.is_none() {
            // All of it was sent, and answered or given up.
            counts.advance(end);
        } else {
            counts.advance(ran_for.saturating_sub(SETTLING).min(end));
        }
        let ObservedRun { mut run, ended_by, dropped_records, .. } = observed;
        let keeps = capacity::LateShare::all_of(&counts).iter().all(|it| it.late_ratio() <= 1.0);
        let doubt = judge::capacity::judge_trial(&mut run, &pace, keeps, &study.plan.objectives);
        let is_doubted = doubt.is_some() || dropped_records > 0;
        let ending = self.trial_ending(ended_by, &run, is_doubted);
        let result = search.record(order, &counts, ending);
        if result != TrialResult::BrokenOff {
            self.rest(&run, Some(order.rate));
        }
        let TrialOrder { purpose, rate, seed, .. } = order;
        Ok(CapacityTrial { purpose, rate, seed, at, result, late: search.last_counts(), run })
    }

    fn load_of_trial(&self, order: &TrialOrder, pace: &Pace) -> LoadSpec {
        let spec = self.target.spec.clone().with(|load| {
            load.pace = pace.clone();
            load.warm_up = order.warm_up;
        });
        LoadSpec { measured: Some(order.at_most), ..spec }
    }

    /// How a trial ended, as far as the search has to know.
    fn trial_ending(
        &self,
        ended_by: Option<TrialStop>,
        run: &Run,
        is_doubted: bool,
    ) -> TrialEnding {
        match ended_by {
            Some(TrialStop::User) => TrialEnding::Interrupted,
            Some(TrialStop::Server) => TrialEnding::ServerEnded,
            Some(TrialStop::Decided) | None
                if server_gone::is_gone(run, &self.target.spec, self.context) =>
            {
                TrialEnding::ServerEnded
            }
            Some(TrialStop::Decided) | None if is_doubted => TrialEnding::NotTrusted,
            Some(TrialStop::Decided) | None => TrialEnding::Complete,
        }
    }

    /// An overload at `times` the lower end of the bracket, then half of that lower end on the same
    /// connections; `None` if it was stopped.
    fn beyond(
        &mut self,
        times: f64,
        objectives: &[RateObjective],
        study: &CapacityStudy,
    ) -> Result<Option<BeyondRun>, SweepError> {
        let overload = PlannedOverload {
            times,
            rate: study.bracket.low * times,
            rate_after: study.bracket.low * LOW_RATE,
        };
        let recovery = recovery_periods(times, study.plan.retry);
        let pace = overload.pace(recovery, study.plan.seed)?;
        let spec = self.target.spec.clone().with(|load| {
            load.pace = pace.clone();
            load.warm_up = Nanos::ZERO;
            load.retry = study.plan.retry;
        });
        let length = BEYOND * (1 + recovery);
        let spec = LoadSpec { measured: Some(length), ..spec };
        let shown = model::number::significant(overload.rate);
        let after = model::number::significant(overload.rate_after);
        let what = format!("beyond it: {shown}/s for {BEYOND}, then {after}/s");
        let progress = self.announce(&spec, what);
        let counts = Mutex::new(OverloadCounts {
            late: LateCounts::new(objectives, &pace, Nanos::ZERO),
            times: Histogram::default(),
            failed: 0,
        });
        let take = |exchange: &Exchange, start: Nanos| lock(&counts).record(exchange, start);
        let context = self.context;
        let has_ended = self.has_ended;
        let mut ends = || {
            if let Some(stop) = stop_reason(context, has_ended) {
                return Some(stop);
            }
            let start = progress.start();
            let since = context.clock.now().saturating_sub(start + SETTLING);
            let is_over = start > Nanos::ZERO && has_recovered(&counts, since);
            is_over.then_some(TrialStop::Decided)
        };
        let observed = drive(&self.target, &spec, self.context, &progress, &mut ends, Some(&take))?;
        if matches!(observed.ended_by, Some(TrialStop::User | TrialStop::Server)) {
            return Ok(None);
        }
        let is_whole = observed.ended_by.is_none();
        let mut run = observed.run;
        judge::capacity::judge_trial(&mut run, &pace, false, &study.plan.objectives);
        self.rest(&run, None);
        let mut counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        if is_whole {
            // All of it was sent, and answered or given up.
            let limits = objectives.iter().filter_map(|objective| objective.late_after);
            counts.late.advance(length + limits.max().unwrap_or_default());
        }
        let length = counts.late.counted_for().min(length);
        Ok(Some(counts.beyond_run(overload, length, run)))
    }

    fn stop_reason(&self) -> Option<TrialStop> {
        stop_reason(self.context, self.has_ended)
    }

    /// A load that is too high, right before a trial.
    fn overload(&mut self, rate: f64, order: &TrialOrder) -> Result<(), SweepError> {
        let pace = poisson(rate, order.seed)?;
        let spec = self.target.spec.clone().with(|load| {
            load.pace = pace;
            load.warm_up = Nanos::ZERO;
        });
        let spec = LoadSpec { measured: Some(order.warm_up), ..spec };
        let shown = model::number::significant(rate);
        let progress = self.announce(
            &spec,
            format!("before trial {}: {shown}/s, too high on purpose", order.number),
        );
        let context = self.context;
        let has_ended = self.has_ended;
        let mut ends = || {
            let start = progress.start();
            let is_over = start > Nanos::ZERO && context.clock.now() >= start + order.warm_up;
            stop_reason(context, has_ended).or(is_over.then_some(TrialStop::Decided))
        };
        drive(&self.target, &spec, self.context, &progress, &mut ends, None)?;
        Ok(())
    }

    /// Gives the server time for what it has not answered.
    fn rest(&mut self, run: &Run, rate: Option<f64>) {
        self.observer.phase(&Phase::CoolingDown);
        let unfinished = &run.tally.unfinished;
        let left = (unfinished.in_flight + unfinished.not_sent) as f64;
        let throughput = run.completed_rate().max(rate.unwrap_or(0.0) / 10.0).max(1.0);
        let rest = Nanos::from_secs_f64(left / throughput).min(LONGEST_REST);
        let until = self.context.clock.now() + rest;
        let is_asked_to_stop = || stop_reason(self.context, self.has_ended).is_some();
        while self.context.clock.now() < until && !is_asked_to_stop() {
            self.context.clock.sleep(Nanos::from_millis(50));
        }
    }
}

/// How long the low rate after an overload lasts at most, in multiples of the overload's length:
/// 1.5 times what the half of the capacity that the low rate leaves free needs for the backlog, if
/// each request was sent as often as its retries allow.
fn recovery_periods(times: f64, retry: Option<RetryPolicy>) -> u64 {
    let attempts = 1.0 + retry.map_or(0.0, |retry| f64::from(retry.times));
    let drain = (times * attempts - 1.0) / (1.0 - LOW_RATE);
    ((1.5 * drain).ceil() as u64).clamp(SHORTEST_RECOVERY, LONGEST_RECOVERY)
}

/// Whether the first objective has held for as long as the overload lasted.
fn has_recovered(counts: &Mutex<OverloadCounts>, since: Nanos) -> bool {
    let late = &mut lock(counts).late;
    late.advance(since);
    let counted = late.counted_for();
    counted >= BEYOND * 2 && late.recovered_after(counted - BEYOND) == Some(Nanos::ZERO)
}

/// Failed requests that were sent again between these instants, since the start, in whole seconds.
fn retries_between(run: &Run, from: Nanos, until: Nanos) -> u64 {
    let second = |at: Nanos| (at.as_secs_f64() as usize).min(run.tally.retries.len());
    run.tally.retries[second(from)..second(until)].iter().sum()
}

/// An overload beyond the capacity, and the low rate after it.
#[derive(Clone, Copy)]
struct PlannedOverload {
    /// The overload / the lower end of the bracket.
    times: f64,
    rate: f64,
    rate_after: f64,
}

impl PlannedOverload {
    /// The pace of both; the low rate takes `recovery` times as long.
    fn pace(self, recovery: u64, seed: u64) -> Result<Pace, SweepError> {
        let low = std::iter::repeat_n(self.rate_after, recovery as usize);
        let rates = std::iter::once(self.rate).chain(low).map(Rate::new);
        let rates: Vec<Rate> = rates.collect::<Result<_, _>>().map_err(SweepError::Unusable)?;
        let profile = Profile::Steps { rates, each: BEYOND };
        Ok(Pace::Open { profile, arrivals: Arrivals::Poisson, seed, burst: 1 })
    }
}

/// What is counted of an overload beyond the capacity.
struct OverloadCounts {
    late: LateCounts,
    /// Response times of good responses to requests of the overload.
    times: Histogram,
    /// Requests of the overload that failed.
    failed: u64,
}

impl OverloadCounts {
    /// What came of this overload and of the low rate after it, `length` together.
    fn beyond_run(&self, overload: PlannedOverload, length: Nanos, run: Run) -> BeyondRun {
        let PlannedOverload { times, rate, rate_after } = overload;
        let [requests, late] = self.late.late_between(Nanos::ZERO, BEYOND);
        let [requests_at_end, late_at_end] = self.late.late_between(length - BEYOND, length);
        let answered = self.times.count() as f64 / (requests as f64).max(1.0);
        BeyondRun {
            times,
            rate,
            length: BEYOND,
            requests,
            in_time: requests - late,
            failed: self.failed,
            p99: self.times.quantile((0.99 / answered).min(1.0)).filter(|_| answered >= 0.99),
            rate_after,
            watched: length - BEYOND,
            recovered_after: self.late.recovered_after(BEYOND),
            backlog: self.late.backlog_at(BEYOND),
            retries: retries_between(&run, Nanos::ZERO, BEYOND),
            at_end: Some(EndOfBeyond {
                length: BEYOND,
                requests: requests_at_end,
                late: late_at_end,
                retries: retries_between(&run, length - BEYOND, length),
            }),
            run,
        }
    }

    fn record(&mut self, exchange: &Exchange, start: Nanos) {
        let due = exchange.due.saturating_sub(start);
        let ended = exchange.ended.saturating_sub(start);
        let is_good = exchange.outcome.is_good();
        self.late.record(due, ended, is_good);
        if due < BEYOND {
            if is_good {
                self.times.record(exchange.response_time());
            } else {
                self.failed += 1;
            }
        }
    }
}

/// The capacity of an ideal queue with the server's slots, as fast as the closed loop showed;
/// `None` without slots, or if the objectives have no response time.
fn theory(plan: &CapacityPlan, study: &CapacityStudy) -> Option<CapacityTheory> {
    let slots = study.server.as_ref()?.slots();
    let service = f64::from(slots) / study.closed_loop_rate()?;
    let of_one = |objective: &RateObjective, is_constant: bool| {
        let limit = objective.late_after?.as_secs_f64();
        let quantile = 1.0 - objective.allowed;
        let utilisation = highest_utilisation(slots, service, limit, 1e-4, |load| {
            if is_constant {
                ConstantServiceQueue::new(load)?.response_quantile(quantile)
            } else {
                ErlangQueue::new(load)?.response_quantile(quantile)
            }
        });
        // If the service times alone make too many requests late, no rate keeps the objective.
        Some(utilisation.unwrap_or(0.0) * f64::from(slots) / service)
    };
    let objectives = plan.objectives.iter().filter_map(|it| RateObjective::new(*it).ok());
    let objectives: Vec<RateObjective> = objectives.collect();
    let lowest = |is_constant: bool| {
        let rates = objectives.iter().filter_map(|objective| of_one(objective, is_constant));
        rates.min_by(f64::total_cmp)
    };
    Some(CapacityTheory { constant: lowest(true)?, exponential: lowest(false)? })
}

/// Why a trial must stop; `None` while it may go on.
pub(crate) fn stop_reason(
    context: &Context<'_>,
    has_ended: &dyn Fn() -> bool,
) -> Option<TrialStop> {
    if context.is_interrupted() {
        Some(TrialStop::User)
    } else {
        has_ended().then_some(TrialStop::Server)
    }
}

/// Whether the trial is decided, or its time is over, this long after its start.
fn is_over(counts: &Mutex<LateCounts>, look: &mut TrialLook, since: Nanos, end: Nanos) -> bool {
    let mut counts = lock(counts);
    counts.advance(since.min(end));
    look.is_decided(&counts) || since >= end
}

fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

fn poisson(rate: f64, seed: u64) -> Result<Pace, SweepError> {
    let rate = Rate::new(rate).map_err(SweepError::Unusable)?;
    let profile = Profile::Flat { rate };
    Ok(Pace::Open { profile, arrivals: Arrivals::Poisson, seed, burst: 1 })
}

/// Takes a request that ended, and the start of the schedule.
type TakesExchanges<'a> = dyn Fn(&Exchange, Nanos) + Sync + 'a;

/// Sends a load, and hands each request that ended to `take`, with the start of the schedule.
fn drive(
    target: &TrialTarget,
    spec: &LoadSpec,
    context: &Context<'_>,
    progress: &RunProgress,
    ends: &mut (dyn FnMut() -> Option<TrialStop> + Send),
    take: Option<&TakesExchanges<'_>>,
) -> Result<ObservedRun<TrialStop>, SweepError> {
    let observed = std::thread::scope(|scope| {
        let mut journal = None;
        if let Some(take) = take {
            let (sender, batches) = sync_channel::<engine::RecordBatch>(BATCHES);
            spawn_scoped(scope, "counting", move || take_all(&batches, progress, take))?;
            journal = Some(sender);
        }
        let observers = RunObservers {
            ends,
            loses_requests: |stop| *stop == TrialStop::Server,
            serving: &target.serving,
            placement: target.placement.as_ref(),
            statsd: None,
            journal,
            sampling: None,
            event: None,
            tells_steps: false,
            percentiles: &PERCENTILES,
        };
        drive_observed(spec, &context.clock, context.far, progress, observers)
    })?;
    Ok(observed)
}

/// Hands over each exchange as it ends, until the run is over.
fn take_all(
    batches: &Receiver<engine::RecordBatch>,
    progress: &RunProgress,
    take: &TakesExchanges<'_>,
) {
    for batch in batches {
        let start = progress.start();
        for record in &batch {
            take(&record.exchange, start);
        }
    }
}
