//! Conducts `longtail signals`: a short closed loop that tells what the server can do, then one open
//! loop that begins at half of that, goes up through saturation by steps and down again, while server
//! and kernel are sampled.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use engine::{EngineError, LoadSpec, RaiseOnDrop, RecordBatch, RunProgress, spawn_scoped};
use judge::signals::{CPU_PRESSURE, DueSecond, SignalStep, SignalsFound, SignalsSeen};
use judge::verdict;
use model::run::PERCENTILES;
use model::samples::{WatchCurve, WatchTrack};
use model::{
    Arrivals, Clock, ControlServer, Nanos, Pace, Profile, Rate, Run, SystemClock, Timing, Watch,
};
use probe::sampler::Sampler;
use probe::sockets::ServerListener;

use crate::context::{Context, Phase, SweepError};
use crate::event::EventExchanges;
use crate::load::PreparedLoad;
use crate::observe::{ObservedRun, RunObservers, Sampling, drive_observed};
use crate::samples::{LiveReadings, SAMPLING};
use crate::server_gone;

/// The closed loop that tells what the server can do: its length, warm-up and connections.
const CLOSED_LOOP: Nanos = Nanos::from_secs(4);
const CLOSED_LOOP_WARM_UP: Nanos = Nanos::from_secs(1);
const CLOSED_LOOP_CONNECTIONS: u32 = 64;
/// What the closed loop and its end take of the budget.
const BEFORE: Nanos = Nanos::from_secs(10);
/// The while at half load has so many steps' length.
const HALF_LOAD_STEPS: usize = 6;
/// The load after that, as parts of what the server can do.
const PARTS: [f64; 10] = [0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 0.9, 0.7, 0.5];
const HALF_LOAD: f64 = 0.5;
/// How often the machine's CPU pressure is read.
const PRESSURE_PERIOD: Nanos = Nanos::from_millis(250);
/// Batches of requests that may wait to be counted.
const BATCHES: usize = 256;

/// What `longtail signals` was asked.
#[derive(Clone, Debug)]
pub struct SignalsPlan {
    /// A request that takes longer is late.
    pub late_after: Nanos,
    /// The share of requests that may be late or fail.
    pub allowed: f64,
    /// How long all of it takes.
    pub budget: Nanos,
    /// How often a scraper reads.
    pub interval: Nanos,
    /// The seed of the arrivals.
    pub seed: u64,
    /// Puma's control server.
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
}

/// What was found.
#[derive(Clone, Debug)]
pub struct SignalsOutcome {
    /// What the server did at most, in requests per second: the closed loop's rate.
    pub highest_rate: f64,
    /// What the signals told.
    pub found: SignalsFound,
    /// The load that went up and down.
    pub run: Run,
    /// Each step's length.
    pub step: Nanos,
    /// Why the load was not the one that was asked for; `None` if it was.
    pub doubt: Option<String>,
}

impl SignalsPlan {
    /// The shortest budget with this interval: each step has two readings.
    pub fn shortest_budget(interval: Nanos) -> Nanos {
        BEFORE + interval * 2 * steps_in_all()
    }

    fn step(&self) -> Nanos {
        self.budget.saturating_sub(BEFORE) / steps_in_all()
    }
}

fn steps_in_all() -> u64 {
    (HALF_LOAD_STEPS + PARTS.len()) as u64
}

/// Loads the server up and down, and tells what its numbers told.
///
/// # Errors
/// If the engine cannot start, or nothing was answered.
pub fn conduct_signals(
    prepared: &PreparedLoad,
    plan: &SignalsPlan,
    context: &Context<'_>,
    phase: &mut dyn FnMut(&Phase),
) -> Result<SignalsEnd, SweepError> {
    let mut conductor = SignalsConductor { prepared, plan, context, phase };
    let closed = conductor.closed_loop()?;
    if context.is_interrupted() {
        return Ok(SignalsEnd::Interrupted);
    }
    let highest_rate = closed.completed_rate();
    if highest_rate <= 0.0 {
        return Err(SweepError::Unusable(
            "no request of the closed loop was answered well, so there is nothing to go by"
                .to_owned(),
        ));
    }
    let mut driven = conductor.up_and_down(highest_rate)?;
    if context.is_interrupted() {
        return Ok(SignalsEnd::Interrupted);
    }
    if server_gone::is_gone(&driven.run, &prepared.spec, context) {
        return Ok(SignalsEnd::ServerGone);
    }
    let step = plan.step();
    let steps = steps(step);
    let seconds = due_seconds(&driven, plan);
    let nothing = Watch::default();
    let seen = SignalsSeen {
        watch: driven.run.watch.as_ref().unwrap_or(&nothing),
        seconds: &seconds,
        allowed: plan.allowed,
        steps: &steps,
        interval: plan.interval,
    };
    let found = SignalsFound::of(&seen);
    let pace = pace(highest_rate, plan)?;
    driven.run.judgement = Some(verdict::of_open_loop(&driven.run, &pace, Timing::default()));
    let doubt = doubt(&driven.run);
    let run = driven.run;
    Ok(SignalsEnd::Found(Box::new(SignalsOutcome { highest_rate, found, run, step, doubt })))
}

/// The open loop that begins at half of what the server can do, goes up and comes down again.
fn pace(highest_rate: f64, plan: &SignalsPlan) -> Result<Pace, SweepError> {
    let parts = [HALF_LOAD; HALF_LOAD_STEPS].into_iter().chain(PARTS);
    let rates: Result<Vec<Rate>, String> =
        parts.map(|part| Rate::new(part * highest_rate)).collect();
    let profile = Profile::Steps { rates: rates.map_err(SweepError::Unusable)?, each: plan.step() };
    Ok(Pace::Open { profile, arrivals: Arrivals::Poisson, seed: plan.seed, burst: 1 })
}

/// Why the figures of a run are not the server's.
fn doubt(run: &Run) -> Option<String> {
    let decided_by = run.judgement.as_ref()?.decided_by.as_ref();
    let why = decided_by.map(|check| judge::assess(check).sentence).unwrap_or_default();
    (!run.is_evidence()).then_some(why)
}

/// A load that is over, and its requests.
struct DrivenSignals {
    run: Run,
    requests: EventExchanges,
}

/// The steps of the load, each with when it begins.
fn steps(length: Nanos) -> Vec<SignalStep> {
    let half = SignalStep { from: Nanos::ZERO, part: HALF_LOAD };
    let later = PARTS.into_iter().enumerate().map(|(number, part)| SignalStep {
        from: length * (HALF_LOAD_STEPS + number) as u64,
        part,
    });
    std::iter::once(half).chain(later).collect()
}

/// The requests by the second in which they were due.
fn due_seconds(driven: &DrivenSignals, plan: &SignalsPlan) -> Vec<DueSecond> {
    let tally = &driven.run.tally;
    let whole = driven.run.measured.0 / 1_000_000_000;
    let mut seconds = vec![DueSecond::default(); whole as usize];
    for exchange in driven.requests.all().iter().filter(|exchange| tally.measures(exchange.due)) {
        let due = exchange.due.saturating_sub(tally.window.from);
        let Some(second) = seconds.get_mut((due.0 / 1_000_000_000) as usize) else { continue };
        let is_late = !exchange.outcome.is_good() || exchange.response_time() > plan.late_after;
        second.requests += 1;
        second.late += u64::from(is_late);
    }
    seconds
}

/// Reads for how long some task has waited for a CPU, until `over` is raised.
fn read_pressure(clock: &SystemClock, over: &AtomicBool) -> Vec<PressureReading> {
    let mut readings = Vec::new();
    let mut next = clock.now();
    while clock.sleep_until(next, over) {
        let text = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
        let waited = some_total(&text).map(Nanos::from_micros);
        readings.push(PressureReading { at: clock.now(), waited });
        next += PRESSURE_PERIOD;
    }
    readings
}

/// The last word of `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, in microseconds.
fn some_total(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// What `/proc/pressure/cpu` said.
struct PressureReading {
    at: Nanos,
    waited: Option<Nanos>,
}

/// The readings from the begin of the window on.
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

/// Drives both loads.
struct SignalsConductor<'a, 'p> {
    prepared: &'a PreparedLoad,
    plan: &'a SignalsPlan,
    context: &'a Context<'a>,
    phase: &'p mut dyn FnMut(&Phase),
}

impl SignalsConductor<'_, '_> {
    fn closed_loop(&mut self) -> Result<Run, SweepError> {
        let spec = self.prepared.spec.clone().with(|load| {
            load.pace = Pace::Closed;
            load.connections = CLOSED_LOOP_CONNECTIONS;
            load.warm_up = CLOSED_LOOP_WARM_UP;
        });
        let spec = LoadSpec { measured: Some(CLOSED_LOOP), ..spec };
        let what = "a closed loop: what can it do?".to_owned();
        let progress = Arc::new(self.context.progress(&spec));
        Ok(self.drive(&spec, what, &progress, None)?.run)
    }

    fn up_and_down(&mut self, highest_rate: f64) -> Result<DrivenSignals, SweepError> {
        let pace = pace(highest_rate, self.plan)?;
        let each = self.plan.step();
        let spec = self.prepared.spec.clone().with(|load| {
            load.pace = pace;
            load.warm_up = Nanos::ZERO;
        });
        let spec = LoadSpec { measured: Some(each * steps_in_all()), ..spec };
        let what = "half of that, then up and down again".to_owned();
        let progress = Arc::new(self.context.progress(&spec));
        let clock = self.context.clock;
        let over = AtomicBool::new(false);
        let (sender, batches) = sync_channel(BATCHES);
        std::thread::scope(|scope| {
            let ends_reading = RaiseOnDrop(&over);
            let collector = spawn_scoped(scope, "signals-requests", move || {
                EventExchanges::of(&batches, None)
            })?;
            let reader = spawn_scoped(scope, "pressure", || read_pressure(&clock, &over))?;
            let mut run = self.drive(&spec, what, &progress, Some(sender))?.run;
            drop(ends_reading);
            let requests = collector.join().expect("collecting never panics");
            let pressure = reader.join().expect("reading never panics");
            let track = pressure_track(&pressure, progress.start());
            run.watch.get_or_insert_default().tracks.push(track);
            Ok(DrivenSignals { run, requests })
        })
    }

    fn drive(
        &mut self,
        spec: &LoadSpec,
        what: String,
        progress: &Arc<RunProgress>,
        journal: Option<SyncSender<RecordBatch>>,
    ) -> Result<ObservedRun<()>, EngineError> {
        let live = Arc::new(LiveReadings::default());
        (self.phase)(&Phase::single_run(spec, what, progress, &live));
        let interrupt = self.context.interrupt;
        let mut ends = || interrupt.load(Ordering::Relaxed).then_some(());
        let place = &self.prepared.spec.transport.endpoints[0];
        let sampling = journal.is_some().then(|| Sampling {
            sampler: Sampler::new(
                ServerListener::of(place),
                &self.prepared.serving,
                None,
                SAMPLING,
            ),
            control: self.plan.control.as_ref(),
            single: "puma",
            traced: None,
            live: &live,
        });
        let observers = RunObservers {
            ends: &mut ends,
            loses_requests: |()| false,
            serving: &self.prepared.serving,
            placement: self.prepared.placement.as_ref(),
            statsd: None,
            journal,
            sampling,
            event: None,
            tells_steps: false,
            percentiles: &PERCENTILES,
        };
        drive_observed(spec, &self.context.clock, self.context.far, progress, observers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_goes_up_from_half_through_saturation_and_down_again_within_its_budget() {
        let interval = Nanos::from_secs(5);
        let shortest = SignalsPlan::shortest_budget(interval);
        assert_eq!(shortest, Nanos::from_secs(170));
        let plan = SignalsPlan {
            late_after: Nanos::from_millis(200),
            allowed: 0.01,
            budget: shortest,
            interval,
            seed: 1,
            control: None,
        };
        assert_eq!(plan.step(), interval * 2);
        let steps = steps(plan.step());
        assert_eq!((steps[0].part, steps[1].part, steps[1].from), (0.5, 0.6, Nanos::from_secs(60)));
        assert_eq!((steps[10].part, steps[10].from), (0.5, Nanos::from_secs(150)));
        assert!(steps.iter().any(|step| step.part > 1.0));
    }

    #[test]
    fn the_pressure_of_a_machine_is_read_as_the_kernel_writes_it() {
        let text = "some avg10=1.53 avg60=0.30 avg300=0.08 total=7123456\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(some_total(text), Some(7_123_456));
        assert_eq!(some_total(""), None);
    }
}
