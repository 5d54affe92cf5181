//! What queueing theory expects of a server: the exact formula where there is one, else a simulation with its interval.

mod closed;
mod lock;
mod open;
pub(crate) mod text;

use model::Nanos;
use queueing::simulate::{Effort, Estimate};
use queueing::{Invalid, bounds};
use serde::Serialize;
use sink::DelayLaw;

use crate::args::{Goal, PredictLoad};

pub(crate) use self::lock::{ByThreads, Closed, Lock};
pub(crate) use self::open::{Step, steps};

/// A server as theory knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) workers: u32,
    /// Of each worker.
    pub(crate) threads: u32,
    /// Of the time a request holds a slot.
    pub(crate) law: DelayLaw,
    /// Chooses what is random in a simulation.
    pub(crate) seed: u64,
}

impl Server {
    fn slots(&self) -> u32 {
        self.workers * self.threads
    }

    /// Mean time a request holds a slot, in seconds.
    fn service(&self) -> f64 {
        self.law.mean().as_secs_f64()
    }

    /// A law for the simulator: the sink's own draws.
    fn draws(&self) -> impl Fn(u64, u64) -> f64 + use<> {
        let law = self.law;
        move |seed, number| law.of(seed, number).as_secs_f64()
    }

    /// Some service times of each slot to warm up.
    fn effort(&self) -> Effort {
        let usual = Effort::new(20_000, self.seed);
        Effort { warm_up: usual.warm_up.max(self.slots() * 20), ..usual }
    }
}

/// A figure in ns; the half width of its 95 % interval where it is simulated.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) half_width_ns: Option<u64>,
}

impl Figure {
    fn exact(seconds: f64) -> Figure {
        Figure { ns: nanos(seconds), half_width_ns: None }
    }

    fn estimated(seconds: Estimate) -> Figure {
        Figure { ns: nanos(seconds.value), half_width_ns: Some(nanos(seconds.half_width)) }
    }
}

fn nanos(seconds: f64) -> u64 {
    Nanos::from_secs_f64(seconds).0
}

/// A time's mean and percentiles.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Times {
    pub(crate) mean: Figure,
    pub(crate) p50: Figure,
    pub(crate) p95: Figure,
    pub(crate) p99: Figure,
}

impl Times {
    /// By a function of a share.
    fn of(mean: Figure, quantile: impl Fn(f64) -> Result<Figure, Invalid>) -> Result<Times, Invalid> {
        Ok(Times { mean, p50: quantile(0.5)?, p95: quantile(0.95)?, p99: quantile(0.99)? })
    }
}

/// One order of service.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    /// shared, split, turns
    pub(crate) queue: &'static str,
    /// The formula, or that it is simulated.
    pub(crate) how: String,
    /// Completed per second.
    pub(crate) rate_per_s: f64,
    /// Share of the time that a slot is busy.
    pub(crate) utilisation: f64,
    /// Absent in an overload, which has no steady state.
    pub(crate) wait: Option<Times>,
    /// As the wait.
    pub(crate) response: Option<Times>,
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
    pub(crate) service_mean_ns: u64,
    /// What loads it, in words.
    pub(crate) load: String,
    /// What the slots can do at most.
    pub(crate) at_most_per_s: f64,
    /// From so many connections on a closed loop's requests must wait.
    pub(crate) knee_connections: f64,
    /// As it was asked for.
    pub(crate) objective: Option<String>,
    pub(crate) lines: Vec<Line>,
    /// What else is to be known.
    pub(crate) notes: Vec<String>,
    /// What Ruby's lock leaves, where it was asked for.
    pub(crate) lock: Option<Lock>,
}

/// What theory says; of Ruby's lock where it is known how long a request holds it, `cpu`.
///
/// # Errors
/// Where it says nothing.
pub(crate) fn predict(
    server: &Server,
    load: PredictLoad,
    goal: Option<Goal>,
    cpu: Option<Nanos>,
) -> Result<Prediction, Invalid> {
    let think = match load {
        PredictLoad::Open(_) => 0.0,
        PredictLoad::Closed(_, think) => think.as_secs_f64(),
    };
    let all = bounds::Bounds::new(&[bounds::Station { servers: server.slots(), demand: server.service() }], think)?;
    let (words, lines, notes) = match load {
        PredictLoad::Open(rate) => {
            let (lines, notes) = open::lines(server, rate.per_second(), goal)?;
            (
                format!("open loop, random arrivals, {} req/s", report::number::rate_in_words(rate.per_second())),
                lines,
                notes,
            )
        }
        PredictLoad::Closed(connections, pause) => {
            let (lines, notes) = closed::lines(server, connections, think)?;
            let pauses =
                if pause.0 == 0 { String::new() } else { format!(" that pause {}", report::number::asked(pause)) };
            (format!("closed loop, {connections} connections{pauses}"), lines, notes)
        }
    };
    Ok(Prediction {
        workers: server.workers,
        threads: server.threads,
        slots: server.slots(),
        service: server.law.to_string(),
        service_mean_ns: server.law.mean().0,
        load: words,
        at_most_per_s: all.saturation,
        knee_connections: all.knee,
        objective: goal.map(|goal| goal.objective.to_string()),
        lines,
        notes,
        lock: cpu.map(|cpu| lock::lock(server, cpu.as_secs_f64(), load)).transpose()?,
    })
}
