//! Predicts a whole server: each order of service, Ruby's lock and the CPUs, by an exact formula if
//! there is one, else by a simulation with a confidence interval.

mod queue_model;
mod queues;
mod ruby_lock;
mod server;
mod service;
mod times;

use model::{Nanos, number};
use serde::Serialize;

pub use self::queues::{PredictedP99, PredictedQueue, plot};
pub use self::ruby_lock::{
    EnoughThreads, LockedLoop, RubyLock, ShortWaits, ThreadsUnderLock, WAIT_SHORTLY,
};
pub use self::server::{PredictedLoad, PredictedServer, RequestCpu, ServerCpus, TimeGoal};
pub use self::service::PredictedService;
pub use self::times::{PredictedTime, TimeInterval, TimeSummary};

use self::queues::{PredictedQueues, closed_loop, open_loop};
use self::ruby_lock::ruby_lock;
use crate::QueueingError;

/// A simulation gives no percentile above this: rarer times come in bursts, and it meets too few
/// bursts (`queueing/tests/queueing/coverage.rs`).
pub const HIGHEST_SIMULATED: f64 = 0.99;

/// All that is predicted.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// Worker processes.
    pub workers: u32,
    /// Threads of each.
    pub threads: u32,
    /// Workers x threads.
    pub slots: u32,
    /// The law of the service time, as `--service` takes it.
    pub service: String,
    /// Its mean.
    pub service_mean_ns: Nanos,
    /// The load, in words.
    pub load: String,
    /// The most that it can do: the smallest of its limits.
    pub at_most_per_s: f64,
    /// The highest rate that each resource allows.
    pub limits: RateLimits,
    /// From this number of connections on, requests of a closed loop must wait.
    pub knee_connections: f64,
    /// The objective as it was asked for.
    pub objective: Option<String>,
    /// Empty if threads wait for Ruby's lock or a CPU so much that the times are not known.
    pub lines: Vec<PredictedQueue>,
    /// What else a reader has to know, a sentence each.
    pub notes: Vec<String>,
    /// The effect of Ruby's lock, if a CPU time was given.
    pub lock: Option<RubyLock>,
}

/// The highest rate that each resource allows, in requests per second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RateLimits {
    /// All threads busy.
    #[serde(rename = "threads_per_s")]
    pub threads: f64,
    /// Ruby's lock, which one thread of a worker has at a time; null without a CPU time.
    #[serde(rename = "lock_per_s")]
    pub lock: Option<f64>,
    /// The CPUs; null without a CPU time.
    #[serde(rename = "cpus_per_s")]
    pub cpus: Option<f64>,
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

    /// The smallest of them.
    pub fn smallest(&self) -> f64 {
        self.threads.min(self.by_computing())
    }

    /// What lock and CPUs allow, however many threads there are; infinite without a CPU time.
    pub fn by_computing(&self) -> f64 {
        [self.lock, self.cpus].into_iter().flatten().fold(f64::INFINITY, f64::min)
    }
}

/// Predicts what the server does under this load; with `cpu`, also how far Ruby's lock and the CPUs
/// limit it.
///
/// # Errors
/// If theory has no answer.
pub fn predict(
    server: &PredictedServer,
    load: PredictedLoad,
    goal: Option<TimeGoal>,
    cpu: Option<RequestCpu>,
) -> Result<Prediction, QueueingError> {
    let lock = cpu.map(|cpu| ruby_lock(server, cpu, load)).transpose()?;
    let hides_times = lock.as_ref().is_some_and(|lock| lock.binds);
    let queues = match load {
        _ if hides_times => PredictedQueues::default(),
        PredictedLoad::Open(rate) => {
            let most = lock.as_ref().map_or(f64::INFINITY, |lock| lock.asked().all_busy_per_s);
            open_loop(server, rate.per_second(), goal, most)?
        }
        PredictedLoad::Closed { connections, think } => {
            closed_loop(server, connections, think.as_secs_f64())?
        }
    };
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
        knee_connections: limits.smallest() * (load.think_seconds() + server.service()),
        objective: goal.map(|goal| goal.objective.to_string()),
        lines: queues.lines,
        notes: queues.notes,
        lock,
    })
}

fn in_words(load: PredictedLoad) -> String {
    match load {
        PredictedLoad::Open(rate) => {
            let rate = number::rate_in_words(rate.per_second());
            format!("open loop, random arrivals, {rate} req/s")
        }
        PredictedLoad::Closed { connections, think: Nanos::ZERO } => {
            format!("closed loop, {connections} connections")
        }
        PredictedLoad::Closed { connections, think } => {
            format!("closed loop, {connections} connections that pause {think}")
        }
    }
}

/// Whether threads wait for Ruby's lock or a CPU so much that only rates are known, and no times.
///
/// # Errors
/// As [`predict`].
pub fn hides_times(
    server: &PredictedServer,
    load: PredictedLoad,
    cpu: RequestCpu,
) -> Result<bool, QueueingError> {
    Ok(ruby_lock(server, cpu, load)?.binds)
}
