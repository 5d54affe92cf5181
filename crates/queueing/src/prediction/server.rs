//! The input of a prediction: a server, the load on it and the objective, as plain numbers.

use model::objective::{Compare, ObjectiveFigure};
use model::{DelayLaw, Nanos, Objective, Rate};
use serde::Serialize;

use crate::mdc::MOST_SLOTS;
use crate::simulate::{ServiceLevel, SimulationEffort};

/// A server as theory knows it.
#[derive(Clone, Copy, Debug)]
pub struct PredictedServer {
    /// Worker processes.
    pub workers: u32,
    /// Threads of each worker.
    pub threads: u32,
    /// The distribution of the time that a request holds a slot.
    pub law: DelayLaw,
    /// The seed of everything that is random in a simulation.
    pub seed: u64,
}

impl PredictedServer {
    /// Requests that it can process at a time.
    pub(crate) fn slots(&self) -> u32 {
        self.workers * self.threads
    }

    /// The mean time a request holds a slot, in seconds.
    pub(crate) fn service(&self) -> f64 {
        self.law.mean().as_secs_f64()
    }

    /// The most that its threads can do, in requests per second.
    pub fn by_threads(&self) -> f64 {
        f64::from(self.slots()) / self.service()
    }

    /// Whether there is no formula for an open loop of random arrivals, so that it is simulated.
    pub fn is_simulated(&self) -> bool {
        match self.law {
            DelayLaw::Constant(_) => self.slots() > MOST_SLOTS,
            DelayLaw::Exponential { .. } => false,
            DelayLaw::Uniform { .. } | DelayLaw::Bimodal { .. } | DelayLaw::LogNormal { .. } => {
                true
            }
        }
    }

    /// Whether the seed changes anything: nothing is random in a closed loop of constant service.
    pub fn is_random(&self, load: PredictedLoad) -> bool {
        match load {
            PredictedLoad::Open(_) => self.is_simulated(),
            PredictedLoad::Closed { .. } => !matches!(self.law, DelayLaw::Constant(_)),
        }
    }

    /// The service times, if there are only one or two.
    pub(crate) fn levels(&self) -> Option<Vec<ServiceLevel>> {
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

    /// Draws service times for the simulator, as the bundled server draws its delays.
    pub(crate) fn draws(&self) -> impl Fn(u64, u64) -> f64 + use<> {
        let law = self.law;
        move |seed, number| law.of(seed, number).as_secs_f64()
    }

    /// How long to simulate an open loop of this utilisation.
    pub(crate) fn open_effort(&self, utilisation: f64) -> SimulationEffort {
        let effort = SimulationEffort::of_open_loop(self.seed, utilisation, self.law.variation());
        SimulationEffort { warm_up: effort.warm_up.max(self.slots() * 20), ..effort }
    }

    /// How long to simulate a closed loop: each connection sends about 20 requests to warm up, and
    /// as many that are counted.
    pub(crate) fn closed_effort(&self, connections: u32) -> SimulationEffort {
        let usual = SimulationEffort::usual(self.seed);
        let rounds = connections * 20;
        let warm_up = usual.warm_up.max(self.slots() * 20).max(rounds);
        SimulationEffort { requests: usual.requests.max(rounds), warm_up, ..usual }
    }
}

/// The load on the server.
#[derive(Clone, Copy, Debug)]
pub enum PredictedLoad {
    /// Random arrivals at this rate.
    Open(Rate),
    /// Connections that each wait for the response.
    Closed {
        /// How many.
        connections: u32,
        /// The pause between a response and the connection's next request.
        think: Nanos,
    },
}

impl PredictedLoad {
    /// The pause of a closed loop in seconds; 0 for an open one.
    pub(crate) fn think_seconds(self) -> f64 {
        match self {
            PredictedLoad::Open(_) => 0.0,
            PredictedLoad::Closed { think, .. } => think.as_secs_f64(),
        }
    }
}

/// An objective for the response time: a percentile or the mean, and its limit.
#[derive(Clone, Copy, Debug)]
pub struct TimeGoal {
    /// The objective itself, for printing.
    pub objective: Objective,
    /// The percentile as a share; `None`: the mean.
    pub share: Option<f64>,
    /// In seconds.
    pub limit: f64,
}

impl TimeGoal {
    /// `None` if the objective is not about a response time that has to stay below something.
    pub fn of(objective: Objective) -> Option<TimeGoal> {
        let share = match (objective.figure, objective.compare) {
            (ObjectiveFigure::ResponseTime(share), Compare::Below) => Some(share),
            (ObjectiveFigure::Mean, Compare::Below) => None,
            _ => return None,
        };
        Some(TimeGoal { objective, share, limit: objective.limit / 1e9 })
    }
}

/// CPUs that a server has to itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ServerCpus {
    /// How many; a fraction if a quota leaves a part of one.
    pub count: f64,
    /// Whether no number was given, so that these are the CPUs of this machine.
    pub is_this_machine: bool,
}

/// The CPU time of a request, and the CPUs that it runs on.
#[derive(Clone, Copy, Debug)]
pub struct RequestCpu {
    /// CPU time of a request.
    pub time: Nanos,
    /// The CPUs of all workers.
    pub cpus: ServerCpus,
}
