//! What queueing theory expects of a server: the exact formula where there is one, else a
//! simulation with its interval.

pub(crate) mod text;

use std::collections::BTreeSet;

use model::Nanos;
use model::theory::Estimate;
use queueing::closed_loop::{
    ResponseLevel, WorkerDemand, assigned_at_random, dealt_evenly, highest_rate, levels_in_step,
    quantile, saturated_rate, worker,
};
use queueing::mdc::{ConstantServiceQueue, MOST_SLOTS};
use queueing::open_loop::{ErlangQueue, SteadyQueue, highest_utilisation};
use queueing::puma::{HOLD_SECONDS, TURN};
use queueing::simulate::{
    self, PoolArrivals, QuantileEstimate, ServiceLevel, Simulated, SimulationEffort, ThreadPool,
};
use queueing::{OfferedLoad, QueueingError};
use report::number;
use serde::Serialize;
use sink::DelayLaw;

use crate::args::{Goal, PredictLoad};

/// Numbers of threads that are compared under Ruby's lock, beside the server's own.
const THREADS: [u32; 8] = [1, 2, 3, 4, 5, 8, 16, 32];

/// A simulated objective is searched to this part of the slots.
const SIMULATED_WIDTH: f64 = 0.002;

/// Above this a simulation is doubted.
const NEARLY_FULL: f64 = 0.9;

/// A simulation tells no percentile above this: what is rarer comes in bursts, of which it has met
/// too few (`queueing/tests/queueing/coverage.rs`).
pub(crate) const HIGHEST_SIMULATED: f64 = 0.99;

/// A percentile that is so near to the next level is either.
const EDGE: f64 = 1e-9;

/// Below this part of what the slots would do without Ruby's lock and with CPUs enough, these are
/// the limit that counts.
const LOCK_MATTERS: f64 = 0.95;

/// A server as theory knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PredictedServer {
    pub(crate) workers: u32,
    /// Of each worker.
    pub(crate) threads: u32,
    /// Of the time a request holds a slot.
    pub(crate) law: DelayLaw,
    /// Chooses what is random in a simulation.
    pub(crate) seed: u64,
}

impl PredictedServer {
    fn slots(&self) -> u32 {
        self.workers * self.threads
    }

    /// Mean time a request holds a slot, in seconds.
    fn service(&self) -> f64 {
        self.law.mean().as_secs_f64()
    }

    /// What its threads can do at most, in requests per second.
    fn by_threads(&self) -> f64 {
        f64::from(self.slots()) / self.service()
    }

    /// Whether an open loop of it has no formula.
    pub(crate) fn is_simulated(&self) -> bool {
        match self.law {
            DelayLaw::Constant(_) => self.slots() > MOST_SLOTS,
            DelayLaw::Exponential { .. } => false,
            DelayLaw::Uniform { .. } | DelayLaw::Bimodal { .. } | DelayLaw::LogNormal { .. } => {
                true
            }
        }
    }

    /// Whether the seed decides anything: a closed loop of constant service has no chance in it.
    pub(crate) fn has_chance(&self, load: PredictLoad) -> bool {
        match load {
            PredictLoad::Open(_) => self.is_simulated(),
            PredictLoad::Closed(..) => !matches!(self.law, DelayLaw::Constant(_)),
        }
    }

    /// The service times where there are but one or two.
    fn levels(&self) -> Option<Vec<ServiceLevel>> {
        let level = |time: Nanos, share: f64| ServiceLevel { time: time.as_secs_f64(), share };
        match self.law {
            DelayLaw::Constant(time) => Some(vec![level(time, 1.0)]),
            DelayLaw::Bimodal { common, other, share } => {
                Some(vec![level(common, 1.0 - share.part()), level(other, share.part())])
            }
            DelayLaw::Exponential { .. }
            | DelayLaw::Uniform { .. }
            | DelayLaw::LogNormal { .. } => None,
        }
    }

    /// A law for the simulator: the sink's own draws.
    fn draws(&self) -> impl Fn(u64, u64) -> f64 + use<> {
        let law = self.law;
        move |seed, number| law.of(seed, number).as_secs_f64()
    }

    /// Of an open loop that is `utilisation` full.
    fn open_effort(&self, utilisation: f64) -> SimulationEffort {
        let effort = SimulationEffort::of_open_loop(self.seed, utilisation, self.law.variation());
        SimulationEffort { warm_up: effort.warm_up.max(self.slots() * 20), ..effort }
    }

    /// Some rounds of everybody's turn to warm up, and as many to look at.
    fn closed_effort(&self, connections: u32) -> SimulationEffort {
        let usual = SimulationEffort::usual(self.seed);
        let rounds = connections * 20;
        let warm_up = usual.warm_up.max(self.slots() * 20).max(rounds);
        SimulationEffort { requests: usual.requests.max(rounds), warm_up, ..usual }
    }
}

/// A time in ns, with its 95 % interval where it is simulated.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct PredictedTime {
    pub(crate) ns: Nanos,
    #[serde(flatten)]
    pub(crate) interval: Option<TimeInterval>,
}

/// Between which times a simulated one lies.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct TimeInterval {
    /// The distance of the farther end; null where that is not known.
    #[serde(rename = "half_width_ns")]
    pub(crate) half_width: Option<Nanos>,
    #[serde(rename = "low_ns")]
    pub(crate) low: Nanos,
    /// Null where too few simulated times lie above to tell.
    #[serde(rename = "high_ns")]
    pub(crate) high: Option<Nanos>,
}

impl PredictedTime {
    fn exact(seconds: f64) -> PredictedTime {
        PredictedTime { ns: Nanos::from_secs_f64(seconds), interval: None }
    }

    /// A mean that is simulated.
    fn mean(seconds: Estimate) -> PredictedTime {
        PredictedTime::quantile(QuantileEstimate {
            value: seconds.value,
            low: (seconds.value - seconds.half_width).max(0.0),
            high: seconds.value + seconds.half_width,
        })
    }

    /// A quantile that is simulated.
    fn quantile(seconds: QuantileEstimate) -> PredictedTime {
        let [ns, low] = [seconds.value, seconds.low].map(Nanos::from_secs_f64);
        let high = seconds.high.is_finite().then(|| Nanos::from_secs_f64(seconds.high));
        let half_width = high.map(|high| high.saturating_sub(ns).max(ns.saturating_sub(low)));
        PredictedTime { ns, interval: Some(TimeInterval { half_width, low, high }) }
    }

    /// The longest that it may be, in seconds.
    fn at_most(&self) -> f64 {
        match self.interval {
            None => self.ns.as_secs_f64(),
            Some(interval) => interval.high.map_or(f64::INFINITY, Nanos::as_secs_f64),
        }
    }
}

/// A time's mean and percentiles.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct TimeSummary {
    pub(crate) mean: PredictedTime,
    pub(crate) p50: PredictedTime,
    pub(crate) p95: PredictedTime,
    pub(crate) p99: PredictedTime,
}

/// What one order of service makes of the load.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PredictedQueue {
    /// shared, split, turns
    pub(crate) queue: &'static str,
    /// The formula, or that it is simulated.
    pub(crate) how: String,
    /// Completed per second.
    pub(crate) rate_per_s: f64,
    /// Share of the time that a slot is busy.
    pub(crate) utilisation: f64,
    /// Absent in an overload, which has no steady state.
    pub(crate) wait: Option<TimeSummary>,
    /// As the wait.
    pub(crate) response: Option<TimeSummary>,
    /// The highest rate that keeps the objective; absent without one, or where none keeps it.
    pub(crate) highest_rate_per_s: Option<f64>,
}

/// All that is predicted.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Prediction {
    pub(crate) workers: u32,
    pub(crate) threads: u32,
    pub(crate) slots: u32,
    /// The law of the service time, as `--service` takes it.
    pub(crate) service: String,
    pub(crate) service_mean_ns: Nanos,
    /// What loads it, in words.
    pub(crate) load: String,
    /// What it can do at most: the smallest of its limits.
    pub(crate) at_most_per_s: f64,
    pub(crate) limits: RateLimits,
    /// From so many connections on a closed loop's requests must wait.
    pub(crate) knee_connections: f64,
    /// As it was asked for.
    pub(crate) objective: Option<String>,
    /// None where threads wait for Ruby's lock or a CPU so much that they are not known.
    pub(crate) lines: Vec<PredictedQueue>,
    /// What else is to be known.
    pub(crate) notes: Vec<String>,
    /// What Ruby's lock leaves, where it was asked for.
    pub(crate) lock: Option<RubyLock>,
}

/// What allows how many requests per second.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RateLimits {
    #[serde(rename = "threads_per_s")]
    pub(crate) threads: f64,
    /// Ruby's, which one thread of a worker has at a time; null without a CPU time.
    #[serde(rename = "lock_per_s")]
    pub(crate) lock: Option<f64>,
    /// Null without a CPU time.
    #[serde(rename = "cpus_per_s")]
    pub(crate) cpus: Option<f64>,
}

impl RateLimits {
    fn of(server: &PredictedServer, cpu: Option<RequestCpu>) -> RateLimits {
        let seconds = |cpu: RequestCpu| cpu.time.as_secs_f64();
        RateLimits {
            threads: server.by_threads(),
            lock: cpu.map(|cpu| f64::from(server.workers) / seconds(cpu)),
            cpus: cpu.map(|cpu| cpu.cpus.count / seconds(cpu)),
        }
    }

    /// The smallest.
    pub(crate) fn smallest(&self) -> f64 {
        let others = [self.lock, self.cpus].into_iter().flatten();
        others.fold(self.threads, f64::min)
    }
}

/// CPUs that a server has to itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ServerCpus {
    /// How many; of a quota it may be a part of one.
    pub(crate) count: f64,
    /// Whether nobody said so, and it is what this machine has.
    pub(crate) is_this_machine: bool,
}

/// What a request computes, and with what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestCpu {
    pub(crate) time: Nanos,
    pub(crate) cpus: ServerCpus,
}

/// What theory says; of Ruby's lock and of CPUs where it is known how long a request computes,
/// `cpu`.
///
/// # Errors
/// Where it says nothing.
pub(crate) fn predict(
    server: &PredictedServer,
    load: PredictLoad,
    goal: Option<Goal>,
    cpu: Option<RequestCpu>,
) -> Result<Prediction, QueueingError> {
    let lock = cpu.map(|cpu| lock(server, cpu, load)).transpose()?;
    let think = match load {
        PredictLoad::Open(_) => 0.0,
        PredictLoad::Closed(_, think) => think.as_secs_f64(),
    };
    let mut queues = PredictedQueues::default();
    if !lock.as_ref().is_some_and(|lock| lock.binds) {
        queues = match load {
            PredictLoad::Open(rate) => {
                let most = lock.as_ref().map_or(f64::INFINITY, |lock| lock.asked().all_busy_per_s);
                open_loop(server, rate.per_second(), goal, most)?
            }
            PredictLoad::Closed(connections, _) => closed_loop(server, connections, think)?,
        };
    }
    let limits = RateLimits::of(server, cpu);
    Ok(Prediction {
        workers: server.workers,
        threads: server.threads,
        slots: server.slots(),
        service: server.law.to_string(),
        service_mean_ns: server.law.mean(),
        load: in_words(load),
        at_most_per_s: limits.smallest(),
        limits,
        knee_connections: limits.smallest() * (think + server.service()),
        objective: goal.map(|goal| goal.objective.to_string()),
        lines: queues.lines,
        notes: queues.notes,
        lock,
    })
}

fn in_words(load: PredictLoad) -> String {
    match load {
        PredictLoad::Open(rate) => {
            let rate = number::rate_in_words(rate.per_second());
            format!("open loop, random arrivals, {rate} req/s")
        }
        PredictLoad::Closed(connections, Nanos::ZERO) => {
            format!("closed loop, {connections} connections")
        }
        PredictLoad::Closed(connections, think) => {
            format!("closed loop, {connections} connections that pause {think}")
        }
    }
}

/// Whether threads wait for Ruby's lock or a CPU so much that only rates are known, and no times.
///
/// # Errors
/// As the prediction.
pub(crate) fn hides_times(
    server: &PredictedServer,
    load: PredictLoad,
    cpu: RequestCpu,
) -> Result<bool, QueueingError> {
    Ok(lock(server, cpu, load)?.binds)
}

/// How it is known what a queue does.
enum QueueModel {
    /// By this formula.
    Exact(&'static str, Box<dyn SteadyQueue>),
    /// Levels of constant service, with that service time. Where two of them meet a percentile is
    /// either.
    Levels(Vec<ResponseLevel>, f64),
    Simulated(SimulatedQueue),
}

/// What was simulated, and what of it is known without that.
struct SimulatedQueue {
    times: Simulated,
    /// Mean service time.
    service: f64,
    /// The service times where there are but one or two.
    levels: Option<Vec<ServiceLevel>>,
    /// Mean response time, where Little's law says it.
    mean_response: Option<f64>,
}

impl SimulatedQueue {
    /// Mean wait and mean response time.
    fn means(&self) -> [PredictedTime; 2] {
        if let Some(mean) = self.mean_response {
            return [mean - self.service, mean].map(PredictedTime::exact);
        }
        // Of the response time only the wait is by chance.
        let wait = self.times.mean_wait();
        let response = Estimate { value: wait.value + self.service, ..wait };
        [wait, response].map(PredictedTime::mean)
    }

    /// The quantiles of wait and response time.
    fn quantiles(&self, share: f64) -> Result<[PredictedTime; 2], QueueingError> {
        let wait = self.times.wait_quantile(share)?;
        let response = match &self.levels {
            Some(levels) => self.times.response_quantile_of(levels, share)?,
            None => self.times.response_quantile(share)?,
        };
        Ok([wait, response].map(PredictedTime::quantile))
    }
}

impl QueueModel {
    /// Random arrivals: M/D/c and M/M/c exactly, other laws simulated.
    fn open(server: &PredictedServer, load: OfferedLoad) -> Result<QueueModel, QueueingError> {
        Ok(match server.law {
            DelayLaw::Constant(_) if load.slots() <= MOST_SLOTS => {
                QueueModel::Exact("M/D", Box::new(ConstantServiceQueue::new(load)?))
            }
            DelayLaw::Exponential { .. } => {
                QueueModel::Exact("M/M", Box::new(ErlangQueue::new(load)?))
            }
            _ => {
                let gaps = simulate::exponential(1.0 / load.rate());
                let effort = server.open_effort(load.utilisation());
                QueueModel::Simulated(SimulatedQueue {
                    times: simulate::open(load, &gaps, &server.draws(), effort)?,
                    service: server.service(),
                    levels: server.levels(),
                    mean_response: None,
                })
            }
        })
    }

    /// Mean wait and mean response time, or the quantile of both at that share.
    fn times(&self, share: Option<f64>) -> Result<[PredictedTime; 2], QueueingError> {
        Ok(match (self, share) {
            (QueueModel::Exact(_, queue), None) => {
                [queue.mean_wait(), queue.mean_response()].map(PredictedTime::exact)
            }
            (QueueModel::Exact(_, queue), Some(share)) => {
                [queue.wait_quantile(share)?, queue.response_quantile(share)?]
                    .map(PredictedTime::exact)
            }
            (QueueModel::Levels(levels, service), None) => {
                let turns: f64 = levels.iter().map(|level| level.turns * level.share).sum();
                [(turns - 1.0) * service, turns * service].map(PredictedTime::exact)
            }
            (QueueModel::Levels(levels, service), Some(share)) => {
                let lower = quantile(levels, share)?;
                let upper = quantile(levels, share + EDGE)?;
                [1.0, 0.0].map(|left_out| {
                    let [low, high] = [lower, upper].map(|turns| (turns - left_out) * service);
                    if low < high {
                        PredictedTime::quantile(QuantileEstimate { value: low, low, high })
                    } else {
                        PredictedTime::exact(low)
                    }
                })
            }
            (QueueModel::Simulated(queue), None) => queue.means(),
            (QueueModel::Simulated(queue), Some(share)) => queue.quantiles(share)?,
        })
    }

    /// Wait and response time.
    fn summaries(&self) -> Result<[TimeSummary; 2], QueueingError> {
        let [mean, p50, p95, p99] = [
            self.times(None)?,
            self.times(Some(0.5))?,
            self.times(Some(0.95))?,
            self.times(Some(0.99))?,
        ];
        Ok([0, 1].map(|at| TimeSummary {
            mean: mean[at],
            p50: p50[at],
            p95: p95[at],
            p99: p99[at],
        }))
    }
}

/// The orders of service, and what is to be known of them.
#[derive(Default)]
struct PredictedQueues {
    lines: Vec<PredictedQueue>,
    notes: Vec<String>,
}

/// The load of one queue of each order of service: shared, and split. A single worker has but one
/// queue.
fn queues(
    server: &PredictedServer,
    load: OfferedLoad,
) -> Result<Vec<(&'static str, OfferedLoad)>, QueueingError> {
    let mut all = vec![("shared", load)];
    if server.workers > 1 {
        all.push(("split", load.of_one_worker(server.workers)?));
    }
    Ok(all)
}

/// What `predict` makes of each, on a thread of its own: simulations take their time.
fn side_by_side<I: Send, O: Send>(
    items: Vec<I>,
    predict: impl Fn(I) -> Result<O, QueueingError> + Sync,
) -> Result<Vec<O>, QueueingError> {
    let predict = &predict;
    std::thread::scope(|scope| {
        let running: Vec<_> =
            items.into_iter().map(|item| scope.spawn(move || predict(item))).collect();
        let joined = running.into_iter().map(|one| one.join().expect("a prediction ends"));
        joined.collect()
    })
}

/// Random arrivals; an objective is searched up to `most` requests per second.
fn open_loop(
    server: &PredictedServer,
    rate: f64,
    goal: Option<Goal>,
    most: f64,
) -> Result<PredictedQueues, QueueingError> {
    let load = OfferedLoad::new(server.slots(), rate, server.service())?;
    let full = load.utilisation();
    let line = |(queue, one): (&'static str, OfferedLoad)| {
        let model = if full < 1.0 { Some(QueueModel::open(server, one)?) } else { None };
        let how = match &model {
            None => "overload".to_owned(),
            Some(QueueModel::Exact(formula, _)) => format!("{formula}/{}, exact", one.slots()),
            Some(_) => format!("M/G/{}, simulated", one.slots()),
        };
        let [wait, response] =
            model.map_or(Ok([None; 2]), |model| Ok(model.summaries()?.map(Some)))?;
        let highest = goal.map(|goal| highest(server, one.slots(), goal)).transpose()?.flatten();
        Ok(PredictedQueue {
            queue,
            how,
            rate_per_s: rate.min(server.by_threads()),
            utilisation: full.min(1.0),
            wait,
            response,
            highest_rate_per_s: highest.map(|full| (full * server.by_threads()).min(most)),
        })
    };
    let lines = side_by_side(queues(server, load)?, line)?;
    let mut notes = Vec::new();
    if full >= 1.0 {
        notes.push(format!(
            "overload: no steady state. Response times grow by {} s in each second; after a minute they are {} s",
            number::significant(full - 1.0),
            number::significant(load.response_in_overload(60.0))
        ));
    }
    if let (Some(goal), true) = (goal, lines.iter().all(|line| line.highest_rate_per_s.is_none())) {
        notes.push(format!(
            "no rate keeps {}: a request takes longer without any load",
            goal.objective
        ));
    }
    let is_doubted = |line: &PredictedQueue| {
        let highest = line.highest_rate_per_s.unwrap_or(0.0) / server.by_threads();
        line.how.ends_with("simulated") && full.max(highest) > NEARLY_FULL
    };
    if lines.iter().any(is_doubted) {
        notes.push(
            "simulated this near to full, a run may not have forgotten how it began: true waits may be longer"
                .to_owned(),
        );
    }
    Ok(PredictedQueues { lines, notes })
}

/// The highest utilisation of one queue that keeps the goal; of a simulation by the upper end of
/// its interval. `None` where none does.
fn highest(server: &PredictedServer, slots: u32, goal: Goal) -> Result<Option<f64>, QueueingError> {
    let width = if server.is_simulated() { SIMULATED_WIDTH } else { 1e-9 };
    let found = highest_utilisation(slots, server.service(), goal.limit, width, |load| {
        let [_, response] = QueueModel::open(server, load)?.times(goal.share)?;
        Ok(response.at_most())
    });
    match found {
        Ok(full) => Ok(Some(full)),
        Err(QueueingError::OutOfReach { .. }) => Ok(None),
        Err(why) => Err(why),
    }
}

/// Connections that wait for their answers: shared, split with the connections dealt evenly, and
/// turns of ten, for which all wait in one line.
fn closed_loop(
    server: &PredictedServer,
    connections: u32,
    think: f64,
) -> Result<PredictedQueues, QueueingError> {
    let pool =
        |threads, connections, turn| ThreadPool { threads, connections, turn, hold: HOLD_SECONDS };
    let one_line = |turn| vec![pool(server.slots(), connections, turn)];
    let mut lines = vec![closed_line(server, "shared", &one_line(1), think)?];
    let mut notes = Vec::new();
    if server.workers > 1 {
        let dealt =
            dealt_evenly(connections, server.workers).into_iter().filter(|count| *count > 0);
        let pools: Vec<_> = dealt.map(|count| pool(server.threads, count, 1)).collect();
        lines.push(closed_line(server, "split", &pools, think)?);
        notes.push("split: the connections dealt evenly to the workers".to_owned());
        if let (Ok(dealt), true) =
            (assigned_at_random(connections, server.workers, server.threads), think == 0.0)
        {
            notes.push(format!(
                "dealt at random the fullest worker has {} instead of {}, and the expected rate is {} % of all slots busy",
                number::significant(dealt.fullest),
                number::significant(f64::from(connections) / f64::from(server.workers)),
                number::percent(dealt.rate)
            ));
        }
    }
    lines.push(closed_line(server, "turns", &one_line(TURN), think)?);
    notes.push(
        "turns: Puma up to 6 with keep-alive, ten requests of one connection in a row".to_owned(),
    );
    Ok(PredictedQueues { lines, notes })
}

/// The levels of constant service exactly, all else simulated.
fn closed_line(
    server: &PredictedServer,
    queue: &'static str,
    pools: &[ThreadPool],
    think: f64,
) -> Result<PredictedQueue, QueueingError> {
    let service = server.service();
    // Turns of connections that do not divide have more levels than those in step.
    let divides = |pool: &ThreadPool| {
        pool.turn == 1
            || pool.connections <= pool.threads
            || pool.connections.is_multiple_of(pool.threads)
    };
    let is_exact =
        matches!(server.law, DelayLaw::Constant(_)) && think == 0.0 && pools.iter().all(divides);
    let connections: u32 = pools.iter().map(|pool| pool.connections).sum();
    let busy = |pool: &ThreadPool| f64::from(pool.connections.min(pool.threads));
    let all_busy: f64 = pools.iter().map(busy).sum();
    let how;
    let rate;
    let model;
    if is_exact {
        let mut levels = Vec::new();
        for pool in pools {
            // Each with the weight of its rate.
            let of_all = busy(pool) / all_busy;
            let weighted =
                |level: ResponseLevel| ResponseLevel { share: level.share * of_all, ..level };
            levels.extend(
                levels_in_step(pool.connections, pool.threads, pool.turn)?
                    .into_iter()
                    .map(weighted),
            );
        }
        levels.sort_by(|a, b| a.turns.total_cmp(&b.turns));
        how = "levels, exact";
        rate = all_busy / service;
        model = QueueModel::Levels(levels, service);
    } else {
        let effort = server.closed_effort(connections);
        let thinks = simulate::constant(think);
        let times = simulate::closed(pools, PoolArrivals::Kept, &thinks, &server.draws(), effort)?;
        // Without a pause no thread is idle while somebody waits, whatever the law: Little's law
        // says rate and mean.
        let known_rate = (think == 0.0).then_some(all_busy / service);
        how = "simulated";
        rate = known_rate.unwrap_or(times.rate().value);
        model = QueueModel::Simulated(SimulatedQueue {
            times,
            service,
            levels: server.levels(),
            mean_response: known_rate.map(|rate| f64::from(connections) / rate),
        });
    }
    let [wait, response] = model.summaries()?.map(Some);
    let utilisation = (rate / server.by_threads()).min(1.0);
    let (how, highest_rate_per_s) = (how.to_owned(), None);
    Ok(PredictedQueue {
        queue,
        how,
        rate_per_s: rate,
        utilisation,
        wait,
        response,
        highest_rate_per_s,
    })
}

/// A point of the plot.
pub(crate) struct PredictedP99 {
    pub(crate) rate_per_s: f64,
    pub(crate) queue: &'static str,
    /// Of the response time.
    pub(crate) p99: Nanos,
}

/// p99 of each queue, from a tenth to nearly all of what the slots can do.
///
/// # Errors
/// As the prediction.
pub(crate) fn plot(server: &PredictedServer) -> Result<Vec<PredictedP99>, QueueingError> {
    let mut points = Vec::new();
    for full in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95] {
        let rate_per_s = full * server.by_threads();
        let load = OfferedLoad::new(server.slots(), rate_per_s, server.service())?;
        points.extend(side_by_side(queues(server, load)?, |(queue, load)| {
            let [_, response] = QueueModel::open(server, load)?.times(Some(0.99))?;
            Ok(PredictedP99 { rate_per_s, queue, p99: response.ns })
        })?);
    }
    Ok(points)
}

/// What Ruby's global lock leaves of threads, those of a worker computing one at a time, and the
/// CPUs of all workers.
///
/// The lines of the orders of service take no account of it. Here is what a worker of each number
/// of threads can do: at most, by any law, and with all threads busy where the times scatter
/// exponentially, for which the formula is exact (`queueing::closed_loop`) as long as each worker
/// finds a CPU.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RubyLock {
    /// How long a request holds it.
    pub(crate) cpu_ns: Nanos,
    pub(crate) cpus: ServerCpus,
    /// What the workers can do at most by the lock, however many threads they have.
    pub(crate) at_most_per_s: f64,
    /// Whether threads wait for it, or for a CPU, so much that only rates are known.
    pub(crate) binds: bool,
    pub(crate) by_threads: Vec<ThreadsUnderLock>,
    /// Which of them was asked for.
    #[serde(skip)]
    asked: usize,
}

impl RubyLock {
    /// Workers of the threads that were asked for.
    pub(crate) fn asked(&self) -> &ThreadsUnderLock {
        &self.by_threads[self.asked]
    }
}

/// Workers of one number of threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ThreadsUnderLock {
    /// Of each worker.
    pub(crate) threads: u32,
    /// All workers', at most, by any law.
    pub(crate) at_most_per_s: f64,
    /// All workers', with all threads busy; at most that where there are more workers than CPUs.
    pub(crate) all_busy_per_s: f64,
    /// That, of what as many slots would do without the lock.
    pub(crate) of_slots: f64,
    /// With the connections of a closed loop, dealt evenly to the workers; null in an open one.
    pub(crate) closed: Option<LockedLoop>,
    /// The rate of an open loop, of that with all threads busy: from 1 on there is no steady state;
    /// null in a closed one.
    pub(crate) offered_of_all_busy: Option<f64>,
}

/// What a closed loop has.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LockedLoop {
    pub(crate) rate_per_s: f64,
    pub(crate) response_mean_ns: Nanos,
}

/// What the lock and the CPUs leave of this server.
///
/// # Errors
/// Where a request computes for no time or for longer than its service time, or a worker has more
/// connections than are computed.
fn lock(
    server: &PredictedServer,
    cpu: RequestCpu,
    load: PredictLoad,
) -> Result<RubyLock, QueueingError> {
    let seconds = cpu.time.as_secs_f64();
    let demand = WorkerDemand { io: server.service() - seconds, cpu: seconds };
    let all: BTreeSet<u32> = THREADS.into_iter().chain([server.threads]).collect();
    let asked = all.iter().take_while(|threads| **threads < server.threads).count();
    let by_cpus = cpu.cpus.count / seconds;
    let by_threads = all
        .into_iter()
        .map(|threads| locked_threads(server, threads, demand, by_cpus, load))
        .collect::<Result<Vec<_>, QueueingError>>()?;
    let overloads = by_threads[asked].offered_of_all_busy.is_some_and(|offered| offered >= 1.0);
    Ok(RubyLock {
        cpu_ns: cpu.time,
        cpus: cpu.cpus,
        at_most_per_s: f64::from(server.workers) / seconds,
        binds: by_threads[asked].of_slots < LOCK_MATTERS || overloads,
        by_threads,
        asked,
    })
}

/// Workers of so many threads, whose CPUs do `by_cpus` requests per second at most.
fn locked_threads(
    server: &PredictedServer,
    threads: u32,
    demand: WorkerDemand,
    by_cpus: f64,
    load: PredictLoad,
) -> Result<ThreadsUnderLock, QueueingError> {
    let workers = f64::from(server.workers);
    let all_busy = (workers * saturated_rate(threads, demand)?).min(by_cpus);
    let mut closed = None;
    let mut offered_of_all_busy = None;
    match load {
        PredictLoad::Open(rate) => offered_of_all_busy = Some(rate.per_second() / all_busy),
        PredictLoad::Closed(connections, think) => {
            let mut rate = 0.0;
            for dealt in
                dealt_evenly(connections, server.workers).into_iter().filter(|count| *count > 0)
            {
                rate += worker(dealt, threads, demand, think.as_secs_f64())?.rate;
            }
            rate = rate.min(by_cpus);
            // Little's law, of the whole cycle.
            let response = f64::from(connections) / rate - think.as_secs_f64();
            closed = Some(LockedLoop {
                rate_per_s: rate,
                response_mean_ns: Nanos::from_secs_f64(response),
            });
        }
    }
    Ok(ThreadsUnderLock {
        threads,
        at_most_per_s: (workers * highest_rate(threads, demand)?).min(by_cpus),
        all_busy_per_s: all_busy,
        of_slots: all_busy * server.service() / (workers * f64::from(threads)),
        closed,
        offered_of_all_busy,
    })
}
