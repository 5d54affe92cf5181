//! Conducts `longtail signals`: the search of `longtail capacity`, then one open loop that begins
//! at half of the highest rate that keeps the objective, goes up through saturation by steps and
//! down again, while server and kernel are sampled.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use capacity::RateObjective;
use engine::{LoadSpec, RaiseOnDrop, RecordBatch, RequestRecord, RunProgress, spawn_scoped};
use judge::signals::{
    APP_QUEUE_TIME, APP_REQUESTS, CPU_PRESSURE, DueSecond, SignalStep, SignalsBase, SignalsFound,
    SignalsSeen, SignalsServer,
};
use judge::verdict;
use model::run::PERCENTILES;
use model::samples::{WatchCurve, WatchTrack};
use model::{
    AppTime, Arrivals, CapacityPlan, CapacityStudy, CapacityTarget, Clock, ControlServer, Nanos,
    Objective, Pace, Profile, Rate, Run, SearchEnd, SystemClock, Timing, Watch,
};
use probe::host;
use probe::puma_setup;
use probe::sampler::Sampler;
use probe::sockets::ServerListener;

use crate::block::Block;
use crate::capacity::{TrialConductor, TrialStop, TrialTarget, new_study, only_block, stop_reason};
use crate::conduct::{Experiment, conduct};
use crate::context::{Context, Observer, Phase, SweepError};
use crate::load::PreparedLoad;
use crate::observe::{ObservedRun, RunObservers, Sampling, drive_observed};
use crate::samples::{LiveReadings, SAMPLING};
use crate::server_gone;
use crate::session::{Job, Session};

/// The share of the budget that the search for the capacity may take.
const SEARCH_SHARE: f64 = 0.4;
/// The search may take this long even if it is more than its share.
const SHORTEST_SEARCH: Nanos = Nanos::from_secs(20);
/// The search ends once the bracket is this narrow.
const PRECISION: f64 = 0.05;
/// The load stays at half of the capacity for this many steps' length.
const HALF_LOAD_STEPS: usize = 6;
const HALF_LOAD: f64 = 0.5;
/// Then it goes up to the capacity, by these parts of it.
const UP: [f64; 5] = [0.6, 0.7, 0.8, 0.9, 1.0];
/// Then beyond the capacity, in this many steps up to the highest part.
const BEYOND_STEPS: usize = 5;
/// And then down again.
const DOWN: [f64; 3] = [0.9, 0.7, 0.5];
/// How often the machine's CPU pressure is read.
const PRESSURE_PERIOD: Nanos = Nanos::from_millis(250);
/// Batches of requests that may wait to be counted.
const BATCHES: usize = 256;

/// What `longtail signals` was asked.
#[derive(Clone, Debug)]
pub struct SignalsPlan {
    /// The server.
    pub target: CapacityTarget,
    /// What must hold: a percentile of the response time.
    pub objective: Objective,
    /// How long all of it takes.
    pub budget: Nanos,
    /// How often a scraper reads.
    pub interval: Nanos,
    /// The seed of the arrivals.
    pub seed: u64,
    /// The control server of a Puma that runs already.
    pub control: Option<ControlServer>,
}

/// How it ended.
#[derive(Clone, Debug)]
pub enum SignalsEnd {
    /// The whole load was sent.
    Found(Box<SignalsOutcome>),
    /// The user interrupted.
    Interrupted,
    /// Nothing listens any more, and the objective broke because of that.
    ServerGone,
    /// No rate keeps the objective, so nothing can tell before it breaks.
    NothingKeepsIt(Box<CapacityStudy>),
}

/// What was found.
#[derive(Clone, Debug)]
pub struct SignalsOutcome {
    /// The server, as far as it is known.
    pub server: SignalsServer,
    /// The search for the capacity.
    pub search: CapacityStudy,
    /// The rate that the steps are parts of.
    pub base: SignalsBase,
    /// What the signals told.
    pub found: SignalsFound,
    /// The load that went up and down.
    pub run: Run,
    /// Each step's length.
    pub step: Nanos,
    /// Why the load was not the one that was asked for; `None` if it was.
    pub doubt: Option<String>,
}

/// A Puma that runs already, as far as its title and its statistics in the samples of a run tell.
fn running_server(serving: &[u32], watch: &Watch) -> SignalsServer {
    let version = serving.iter().find_map(|pid| puma_setup::version_of(*pid));
    let threads: Vec<u64> = watch.curves("slots").filter_map(|(_, curve)| curve.most()).collect();
    SignalsServer {
        name: version.map(|version| format!("Puma {version}")),
        workers: (!threads.is_empty()).then_some(threads.len() as u32),
        threads: threads.iter().max().map(|most| *most as u32),
    }
}

impl SignalsPlan {
    /// The shortest budget with this interval: each step has two readings.
    pub fn shortest_budget(interval: Nanos) -> Nanos {
        SHORTEST_SEARCH + shortest_ramp(interval)
    }

    /// The search for the capacity.
    fn search(&self) -> CapacityPlan {
        let share = Nanos::from_secs_f64(self.budget.as_secs_f64() * SEARCH_SHARE);
        let most = self.budget.saturating_sub(shortest_ramp(self.interval));
        CapacityPlan {
            target: self.target.clone(),
            objectives: vec![self.objective],
            precision: PRECISION,
            budget: share.max(SHORTEST_SEARCH).min(most),
            seed: self.seed,
            expected: Vec::new(),
            beyond: Vec::new(),
            sizes: Vec::new(),
            retry: None,
        }
    }
}

fn steps_in_all() -> usize {
    HALF_LOAD_STEPS + UP.len() + BEYOND_STEPS + DOWN.len()
}

fn shortest_ramp(interval: Nanos) -> Nanos {
    interval * 2 * steps_in_all() as u64
}

/// Finds the capacity of a server that runs already, loads it up and down, and tells which of its
/// signals warned before the objective broke.
///
/// # Errors
/// If the engine cannot start, or nothing was answered.
pub fn conduct_signals_of(
    prepared: &PreparedLoad,
    plan: &SignalsPlan,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<SignalsEnd, SweepError> {
    let trials = TrialConductor {
        target: TrialTarget::running(prepared),
        context,
        observer,
        begun: context.clock.now(),
        has_ended: &|| false,
    };
    let control = plan.control.as_ref();
    SignalsConductor { trials, plan, control, single: "puma", server: None }.conduct()
}

/// The same of a server that longtail starts.
///
/// # Errors
/// As [`conduct_signals_of`], and if the server cannot be started, does not serve what is
/// requested, or dies.
pub fn conduct_signals(
    plan: &SignalsPlan,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<SignalsEnd, SweepError> {
    let mut signals = SignalsOfStarted { plan, end: None, is_done: false };
    conduct(&mut signals, context, observer)?;
    Ok(signals.end.unwrap_or(SignalsEnd::Interrupted))
}

/// All of it as an experiment with one server.
struct SignalsOfStarted<'a> {
    plan: &'a SignalsPlan,
    end: Option<SignalsEnd>,
    is_done: bool,
}

impl Experiment for SignalsOfStarted<'_> {
    fn next(&mut self) -> Option<Block> {
        only_block(&self.plan.target, &mut self.is_done)
    }

    fn jobs(&mut self, session: &mut Session<'_>) -> Result<Vec<Job>, SweepError> {
        let target = TrialTarget::started(session);
        let connections = target.spec.load.connections;
        let Session { context, server, observer, .. } = session;
        let server = &*server;
        let facts = &server.facts;
        let name = [Some(facts.name.clone()), facts.version.clone()];
        let described = SignalsServer {
            name: Some(name.into_iter().flatten().collect::<Vec<_>>().join(" ")),
            workers: Some(facts.workers),
            threads: Some(facts.threads),
        };
        let conductor = SignalsConductor {
            trials: TrialConductor {
                target,
                context,
                observer: &mut **observer,
                begun: context.clock.now(),
                has_ended: &|| server.has_ended(),
            },
            plan: self.plan,
            control: server.reached.control.as_ref(),
            single: server.workers.first().map_or("", String::as_str),
            server: Some(described),
        };
        self.end = Some(conductor.conduct()?);
        match server.death(connections) {
            Some(death) => Err(death),
            None => Ok(Vec::new()),
        }
    }

    fn run(&mut self, _: &Job, _: &mut Session<'_>) -> Result<bool, SweepError> {
        Ok(false)
    }

    fn judge(&mut self, _: &mut Session<'_>, _: bool) {}
}

/// The open loop that begins at half of the capacity, goes up through saturation and down again.
struct SignalsRamp {
    /// The rate that the steps are parts of.
    base: SignalsBase,
    /// Each step's length.
    step: Nanos,
}

impl SignalsRamp {
    /// The steps after those at half load, as parts of the capacity.
    fn parts(&self) -> Vec<f64> {
        let beyond = self.base.highest_part - 1.0;
        let saturated = (1..=BEYOND_STEPS).map(|n| 1.0 + beyond * n as f64 / BEYOND_STEPS as f64);
        UP.into_iter().chain(saturated).chain(DOWN).collect()
    }

    /// The steps, each with when it begins.
    fn steps(&self) -> Vec<SignalStep> {
        let half = SignalStep { from: Nanos::ZERO, part: HALF_LOAD };
        let later = self.parts().into_iter().enumerate().map(|(number, part)| SignalStep {
            from: self.step * (HALF_LOAD_STEPS + number) as u64,
            part,
        });
        std::iter::once(half).chain(later).collect()
    }

    fn length(&self) -> Nanos {
        self.step * steps_in_all() as u64
    }

    fn pace(&self, seed: u64) -> Result<Pace, SweepError> {
        let parts = [HALF_LOAD; HALF_LOAD_STEPS].into_iter().chain(self.parts());
        let rates = parts.map(|part| Rate::new(part * self.base.rate));
        let rates = rates.collect::<Result<Vec<Rate>, _>>().map_err(SweepError::Unusable)?;
        let profile = Profile::Steps { rates, each: self.step };
        Ok(Pace::Open { profile, arrivals: Arrivals::Poisson, seed, burst: 1 })
    }
}

/// The load that went up and down, and its requests.
struct DrivenSignals {
    run: Run,
    ended_by: Option<TrialStop>,
    /// By the second in which they were due.
    seconds: Vec<DueSecond>,
    /// Requests that could not be looked at.
    missed: u64,
}

/// Searches, and drives the load.
struct SignalsConductor<'a> {
    trials: TrialConductor<'a>,
    plan: &'a SignalsPlan,
    /// Puma's control server.
    control: Option<&'a ControlServer>,
    /// The name of the only worker in single mode.
    single: &'a str,
    /// The server, if longtail started it.
    server: Option<SignalsServer>,
}

impl SignalsConductor<'_> {
    fn conduct(mut self) -> Result<SignalsEnd, SweepError> {
        let plan = self.plan.search();
        let mut search = new_study(&plan, self.trials.context);
        self.trials.search(&plan, &mut search)?;
        match &search.end {
            Some(SearchEnd::User) | None => return Ok(SignalsEnd::Interrupted),
            Some(SearchEnd::ServerEnded) => return Ok(SignalsEnd::ServerGone),
            Some(SearchEnd::NothingKeepsIt) => {
                return Ok(SignalsEnd::NothingKeepsIt(Box::new(search)));
            }
            Some(
                SearchEnd::Precise
                | SearchEnd::Budget
                | SearchEnd::Generator
                | SearchEnd::Undecided
                | SearchEnd::HighestRate,
            ) => {}
        }
        let base = SignalsBase::of(&search).ok_or_else(|| {
            SweepError::Unusable(
                "no request was answered well, so there is nothing to go by".to_owned(),
            )
        })?;
        let ramp = SignalsRamp { base, step: self.step() };
        let driven = self.up_and_down(&ramp)?;
        match driven.ended_by {
            Some(TrialStop::User) => Ok(SignalsEnd::Interrupted),
            Some(TrialStop::Server) => Ok(SignalsEnd::ServerGone),
            Some(TrialStop::Decided) | None if self.is_gone(&driven.run) => {
                Ok(SignalsEnd::ServerGone)
            }
            Some(TrialStop::Decided) | None => self.outcome(search, &ramp, driven),
        }
    }

    fn is_gone(&self, run: &Run) -> bool {
        server_gone::is_gone(run, &self.trials.target.spec, self.trials.context)
    }

    /// The length of a step: all that the search has left is used.
    fn step(&self) -> Nanos {
        let taken = self.trials.context.clock.now() - self.trials.begun;
        let left = self.plan.budget.saturating_sub(taken);
        let whole_seconds = left.0 / steps_in_all() as u64 / 1_000_000_000;
        Nanos::from_secs(whole_seconds).max(self.plan.interval * 2)
    }

    fn outcome(
        self,
        search: CapacityStudy,
        ramp: &SignalsRamp,
        driven: DrivenSignals,
    ) -> Result<SignalsEnd, SweepError> {
        let DrivenSignals { mut run, seconds, missed, .. } = driven;
        let objective = RateObjective::new(self.plan.objective).map_err(SweepError::Unusable)?;
        let nothing = Watch::default();
        let watch = run.watch.as_ref().unwrap_or(&nothing);
        let steps = ramp.steps();
        let found = SignalsFound::of(&SignalsSeen {
            watch,
            seconds: &seconds,
            allowed: objective.allowed,
            steps: &steps,
            parts_of: ramp.base.in_words(),
            interval: self.plan.interval,
        });
        let server =
            self.server.unwrap_or_else(|| running_server(&self.trials.target.serving, watch));
        let pace = ramp.pace(self.plan.seed)?;
        run.judgement = Some(verdict::of_open_loop(&run, &pace, Timing::default()));
        let lost = (missed > 0).then(|| {
            let requests = model::number::count_of(missed, "request");
            format!("{requests} went by too fast to be looked at")
        });
        let doubt = doubt(&run).or(lost);
        let step = ramp.step;
        let base = ramp.base;
        let outcome = SignalsOutcome { server, search, base, found, run, step, doubt };
        Ok(SignalsEnd::Found(Box::new(outcome)))
    }

    fn up_and_down(&mut self, ramp: &SignalsRamp) -> Result<DrivenSignals, SweepError> {
        let objective = RateObjective::new(self.plan.objective).map_err(SweepError::Unusable)?;
        let pace = ramp.pace(self.plan.seed)?;
        let spec = self.trials.target.spec.clone().with(|load| {
            load.pace = pace;
            load.warm_up = Nanos::ZERO;
        });
        let traces_requests = spec.reads_app_times;
        let spec = LoadSpec { measured: Some(ramp.length()), traces_requests, ..spec };
        let context = self.trials.context;
        let clock = context.clock;
        let progress = Arc::new(context.progress(&spec));
        let live = Arc::new(LiveReadings::default());
        let what = format!("from half of {} up, and down again", ramp.base.in_words());
        self.trials.observer.phase(&Phase::single_run(&spec, what, &progress, &live));
        let counts = Mutex::new(SecondCounts::new(
            ramp.length(),
            objective.late_after,
            clock.shared_ahead(),
        ));
        let over = AtomicBool::new(false);
        let (sender, batches) = sync_channel::<RecordBatch>(BATCHES);
        let (observed, pressure) = std::thread::scope(|scope| {
            let ends_reading = RaiseOnDrop(&over);
            let counting = &counts;
            let running = &progress;
            let counter = spawn_scoped(scope, "signals-requests", move || {
                count(&batches, running, counting);
            })?;
            let reader = spawn_scoped(scope, "pressure", || read_pressure(&clock, &over))?;
            let observed = self.drive(&spec, &progress, sender, &live);
            drop(ends_reading);
            counter.join().expect("counting never panics");
            let pressure = reader.join().expect("reading never panics");
            Ok::<_, SweepError>((observed?, pressure))
        })?;
        let ObservedRun { mut run, ended_by, dropped_records, .. } = observed;
        let SecondCounts { due, begun, .. } =
            counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let tracks = &mut run.watch.get_or_insert_default().tracks;
        tracks.push(pressure_track(&pressure, progress.start()));
        tracks.extend(queue_track(&begun));
        Ok(DrivenSignals { run, ended_by, seconds: due, missed: dropped_records })
    }

    fn drive(
        &self,
        spec: &LoadSpec,
        progress: &Arc<RunProgress>,
        journal: SyncSender<RecordBatch>,
        live: &LiveReadings,
    ) -> Result<ObservedRun<TrialStop>, SweepError> {
        let TrialConductor { target, context, has_ended, .. } = &self.trials;
        let mut ends = || stop_reason(context, *has_ended);
        let place = &spec.transport.endpoints[0];
        let sampling = Some(Sampling {
            sampler: Sampler::new(ServerListener::of(place), &target.serving, None, SAMPLING),
            control: self.control,
            single: self.single,
            traced: None,
            live,
        });
        let observers = RunObservers {
            ends: &mut ends,
            loses_requests: |stop| *stop == TrialStop::Server,
            serving: &target.serving,
            placement: target.placement.as_ref(),
            statsd: None,
            journal: Some(journal),
            sampling,
            event: None,
            tells_steps: false,
            percentiles: &PERCENTILES,
        };
        Ok(drive_observed(spec, &context.clock, context.far, progress, observers)?)
    }
}

/// Why the figures of a run are not the server's.
fn doubt(run: &Run) -> Option<String> {
    let decided_by = run.judgement.as_ref()?.decided_by.as_ref();
    let why = decided_by.map(|check| judge::assess(check).sentence).unwrap_or_default();
    (!run.is_evidence()).then_some(why)
}

/// What is counted of the requests, second by second.
struct SecondCounts {
    /// A request that takes longer is late.
    late_after: Option<Nanos>,
    /// How far the app's clock is ahead of ours.
    app_ahead: Nanos,
    /// By the second in which they were due.
    due: Vec<DueSecond>,
    /// By the second in which the app began with them.
    begun: Vec<BegunSecond>,
}

/// Requests with which the app began in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BegunSecond {
    requests: u64,
    /// For how long they had waited, together.
    queued: Nanos,
}

impl SecondCounts {
    fn new(length: Nanos, late_after: Option<Nanos>, app_ahead: Nanos) -> SecondCounts {
        let seconds = second_of(length);
        SecondCounts {
            late_after,
            app_ahead,
            due: vec![DueSecond::default(); seconds],
            begun: vec![BegunSecond::default(); seconds],
        }
    }

    /// Takes a request of a load that began at `start`.
    fn record(&mut self, record: &RequestRecord, start: Nanos) {
        let exchange = &record.exchange;
        let due = exchange.due.saturating_sub(start);
        if let Some(second) = self.due.get_mut(second_of(due)) {
            let took_long = self.late_after.is_some_and(|limit| exchange.response_time() > limit);
            second.requests += 1;
            second.late += u64::from(!exchange.outcome.is_good() || took_long);
        }
        let app = record.trace.and_then(|trace| trace.app);
        let Some(AppTime::Stamps { started, .. }) = app else { return };
        let started = started.saturating_sub(self.app_ahead);
        // Another machine's clock has another origin.
        if !(exchange.sent..=exchange.ended).contains(&started) {
            return;
        }
        if let Some(second) = self.begun.get_mut(second_of(started.saturating_sub(start))) {
            second.requests += 1;
            second.queued += started - exchange.sent;
        }
    }
}

fn second_of(at: Nanos) -> usize {
    (at.0 / 1_000_000_000) as usize
}

/// Counts requests until the lanes are done.
fn count(batches: &Receiver<RecordBatch>, progress: &RunProgress, counts: &Mutex<SecondCounts>) {
    for batch in batches {
        let start = progress.start();
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        for record in &batch {
            counts.record(record, start);
        }
    }
}

/// How long requests had waited when the app began with them, as counters; `None` if the app did
/// not say when that was.
fn queue_track(seconds: &[BegunSecond]) -> Option<WatchTrack> {
    let mut at = vec![Nanos::ZERO];
    let mut queued = vec![Some(0)];
    let mut requests = vec![Some(0)];
    let mut sum = BegunSecond::default();
    for (number, second) in seconds.iter().enumerate() {
        sum.queued += second.queued;
        sum.requests += second.requests;
        at.push(Nanos::from_secs(number as u64 + 1));
        queued.push(Some(sum.queued.0));
        requests.push(Some(sum.requests));
    }
    let curve = |name: &str, unit: &str, values| WatchCurve {
        name: name.to_owned(),
        unit: unit.to_owned(),
        values,
        ..WatchCurve::default()
    };
    let curves =
        vec![curve(APP_QUEUE_TIME, "ns", queued), curve(APP_REQUESTS, "requests", requests)];
    let source = "the app".to_owned();
    (sum.requests > 0).then_some(WatchTrack { source, at, curves })
}

/// Reads for how long some task has waited for a CPU, until `over` is raised.
fn read_pressure(clock: &SystemClock, over: &AtomicBool) -> Vec<PressureReading> {
    let mut readings = Vec::new();
    let mut next = clock.now();
    while clock.sleep_until(next, over) {
        readings.push(PressureReading { at: clock.now(), waited: host::cpu_pressure() });
        next += PRESSURE_PERIOD;
    }
    readings
}

/// What `/proc/pressure/cpu` said.
struct PressureReading {
    at: Nanos,
    waited: Option<Nanos>,
}

/// The readings from the start of the window on.
fn pressure_track(readings: &[PressureReading], from: Nanos) -> WatchTrack {
    let later = || readings.iter().filter(|reading| reading.at >= from);
    let curve = WatchCurve {
        name: CPU_PRESSURE.to_owned(),
        unit: "ns".to_owned(),
        values: later().map(|reading| reading.waited.map(|waited| waited.0)).collect(),
        ..WatchCurve::default()
    };
    WatchTrack {
        source: "/proc/pressure/cpu".to_owned(),
        at: later().map(|reading| reading.at - from).collect(),
        curves: vec![curve],
    }
}

#[cfg(test)]
mod tests {
    use engine::RequestTrace;
    use judge::signals::BaseKnownBy;
    use model::{Exchange, Outcome};

    use super::*;

    fn base(highest_part: f64) -> SignalsBase {
        SignalsBase { rate: 80.0, by: BaseKnownBy::Search, highest_part }
    }

    #[test]
    fn a_load_goes_up_from_half_through_saturation_and_down_again() {
        let interval = Nanos::from_secs(5);
        let ramp = SignalsRamp { base: base(1.4), step: interval * 2 };
        let steps = ramp.steps();
        assert_eq!((steps[0].part, steps[1].part, steps[1].from), (0.5, 0.6, Nanos::from_secs(60)));
        assert_eq!((steps[13].part, steps[13].from), (0.5, Nanos::from_secs(180)));
        let beyond: Vec<u32> = steps
            .iter()
            .map(|step| (step.part * 100.0).round() as u32)
            .filter(|percent| *percent > 100)
            .collect();
        assert_eq!(beyond, [108, 116, 124, 132, 140]);
        assert_eq!(ramp.length(), shortest_ramp(interval));
        assert_eq!(SignalsPlan::shortest_budget(interval), Nanos::from_secs(210));
    }

    #[test]
    fn a_request_counts_where_it_was_due_and_its_wait_where_the_app_began() {
        let ms = Nanos::from_millis;
        let start = ms(500);
        let ahead = ms(7_000);
        let mut counts = SecondCounts::new(Nanos::from_secs(3), Some(ms(200)), ahead);
        let mut take = |due: u64, started: u64, ended: u64, status: u16| {
            let at = |millis: u64| start + ms(millis);
            let by_its_clock = at(started) + ahead;
            let app = AppTime::Stamps { started: by_its_clock, ended: by_its_clock };
            counts.record(
                &RequestRecord {
                    number: 0,
                    exchange: Exchange {
                        due: at(due),
                        sent: at(due),
                        ended: at(ended),
                        received_bytes: 0,
                        outcome: Outcome::Answered(status),
                    },
                    reason: None,
                    response: None,
                    trace: Some(RequestTrace { app: Some(app), ..RequestTrace::default() }),
                },
                start,
            );
        };
        take(100, 130, 150, 200);
        take(900, 1_100, 1_150, 200);
        take(950, 960, 970, 503);
        // Another machine's clock.
        take(2_000, 9_000_000, 2_010, 200);
        let second = |requests, late| DueSecond { requests, late };
        assert_eq!(counts.due, [second(3, 2), second(0, 0), second(1, 0)]);
        let begun: Vec<(u64, Nanos)> =
            counts.begun.iter().map(|second| (second.requests, second.queued)).collect();
        assert_eq!(begun, [(2, ms(40)), (1, ms(200)), (0, Nanos::ZERO)]);
        let track = queue_track(&counts.begun).unwrap();
        assert_eq!(track.curves[1].values, [Some(0), Some(2), Some(3), Some(3)]);
        assert_eq!(queue_track(&[BegunSecond::default()]), None, "an app that says nothing");
    }
}
