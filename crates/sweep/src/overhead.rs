//! What looking costs: the same server with and without each instrument, in rounds.
//!
//! Each round runs every arm once, in an order of chance, each on a fresh server, closed loop. What a run took is read from the
//! kernel: CPU time of the server's processes and of our own.

use std::sync::Mutex;

use engine::ensure_descriptors;
use model::{Clock, LaneFacts, Nanos, Probe, ServerFacts, ServerPlan, StreamPlan, Timestamps, paired};
use probe::StatsdSocket;

use crate::conduct::{Experiment, conduct};
use crate::context::Context;
use crate::error::SweepError;
use crate::job::{Block, Job};
use crate::observer::Phase;
use crate::session::{FinishedRun, Session};
use crate::statsd_listener::StatsdListener;

/// What `servers/sleep.ru` takes for the address that it sends its measurements to.
const STATSD: &str = "LONGTAIL_STATSD";

/// One way to run the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arm {
    /// Nothing looks.
    Bare,
    /// As [`Arm::Bare`], once more: what differs between the two is noise.
    Control,
    /// Server and kernel are looked at meanwhile.
    Probe(Probe),
    /// The kernel stamps when answers come in.
    Stamps,
    /// The app stamps when it began and ended.
    Anatomy,
    /// The app sends a statsd packet for each request.
    Statsd,
    /// The server has this variable in its environment.
    Setting(String, String),
}

impl Arm {
    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Arm::Bare => "bare".to_owned(),
            Arm::Control => "control".to_owned(),
            Arm::Probe(probe) => probe.to_string(),
            Arm::Stamps => "stamps".to_owned(),
            Arm::Anatomy => "anatomy".to_owned(),
            Arm::Statsd => "statsd".to_owned(),
            Arm::Setting(name, value) => format!("{name}={value}"),
        }
    }

    /// What it adds, in words.
    pub fn words(&self) -> &'static str {
        match self {
            Arm::Bare => "nothing looks",
            Arm::Control => "bare once more: what differs is noise",
            Arm::Probe(Probe::Bpf) => "the kernel's tracepoints are listened to as well (--inspect kernel)",
            Arm::Probe(_) => "server and kernel are read meanwhile (--inspect proc)",
            Arm::Stamps => "the kernel stamps arrivals (--timestamps kernel)",
            Arm::Anatomy => "the app stamps its begin and end (--inspect app)",
            Arm::Statsd => "the app sends a statsd packet for each request",
            Arm::Setting(..) => "the server has it in its environment",
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct OverheadPlan {
    /// The server.
    pub server: ServerPlan,
    /// The stream of requests of the bare arm.
    pub stream: StreamPlan,
    /// Connections; `None`: as many as the server has slots.
    pub connections: Option<u32>,
    /// All arms, the bare one and the control among them.
    pub arms: Vec<Arm>,
    /// How often each is run.
    pub rounds: u32,
    /// Chooses the order of the arms in each round.
    pub seed: u64,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The place of its arm in the plan.
    pub arm: usize,
    /// From 1.
    pub round: u32,
    /// Good answers a second of the measured window.
    pub rate_per_s: f64,
    /// All answers, the warm-up's included: the CPU times are of these.
    pub answers: u64,
    /// Requests that were not answered well.
    pub failed: u64,
    /// CPU time of the server's processes; `None` where the kernel does not tell it of all of them.
    pub server_cpu: Option<Nanos>,
    /// CPU time of our own process: lanes, and what looks on.
    pub generator_cpu: Nanos,
    /// The busiest lane's share of a CPU, 0 to 1.
    pub lane_busy: Option<f64>,
    /// Packets that the app sent.
    pub packets: Option<u64>,
    /// Whether the app said when it began and ended.
    pub is_stamped: bool,
}

impl Sample {
    /// The server's CPU time for each answer, in ns.
    pub fn server_ns_per_request(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.server_cpu.map(|cpu| cpu.0 as f64 / self.answers as f64)).flatten()
    }

    /// Our own, in ns.
    pub fn generator_ns_per_request(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.generator_cpu.0 as f64 / self.answers as f64)
    }
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overhead {
    /// The server, as it was last started.
    pub server: ServerFacts,
    /// Connections of each run.
    pub connections: u32,
    /// Runs that were finished, in the order in which they were.
    pub samples: Vec<Sample>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

/// Runs all rounds; `phase` learns what is going on.
///
/// # Errors
/// Where a server cannot be started, is not ready in time, or dies.
pub fn conduct_overhead<C: Clock + Clone + Send + Sync>(
    plan: &OverheadPlan,
    context: &Context<'_, C>,
    phase: &mut dyn FnMut(&Phase),
) -> Result<Overhead, SweepError> {
    // A place of our own for the app's packets, as an agent on the server's machine would be.
    let bind = || StatsdSocket::bind(([127, 0, 0, 1], 0).into());
    let socket = plan.arms.contains(&Arm::Statsd).then(bind).transpose().map_err(SweepError::NoReceiver)?;
    let address = socket.as_ref().map(StatsdSocket::address);
    let statsd = socket.map(|socket| Mutex::new(StatsdListener::at(socket)));
    let turns = |round| paired::order(plan.seed, round, plan.arms.len()).into_iter().map(move |arm| (arm, round));
    let turns: Vec<(usize, u32)> = (1..=plan.rounds).flat_map(turns).collect();
    let blocks: Vec<Block> = turns
        .iter()
        .map(|(arm, round)| {
            let arm = &plan.arms[*arm];
            Block {
                server: plan.server.clone(),
                stream: StreamPlan {
                    timestamps: if *arm == Arm::Stamps { Timestamps::Kernel } else { Timestamps::User },
                    anatomy: *arm == Arm::Anatomy,
                    ..plan.stream.clone()
                },
                pace: model::Pace::Closed,
                dir: None,
                env: match (arm, address) {
                    (Arm::Setting(name, value), _) => vec![(name.into(), value.into())],
                    (Arm::Statsd, Some(address)) => vec![(STATSD.into(), address.to_string().into())],
                    _ => Vec::new(),
                },
                cool_down: false,
                repeat: *round,
            }
        })
        .collect();
    let (found, begun) = (Overhead::default(), context.clock.now());
    let mut arms =
        Arms { blocks: blocks.into_iter(), plan, phase, turns: &turns, statsd: statsd.as_ref(), found, begun };
    conduct(&mut arms, context)?;
    arms.found.interrupted = context.is_interrupted();
    Ok(arms.found)
}

struct Arms<'a> {
    blocks: std::vec::IntoIter<Block>,
    plan: &'a OverheadPlan,
    phase: &'a mut dyn FnMut(&Phase),
    /// The arm, by its place in the plan, and the round of each run.
    turns: &'a [(usize, u32)],
    statsd: Option<&'a Mutex<StatsdListener>>,
    found: Overhead,
    begun: Nanos,
}

impl<C: Clock + Clone + Send + Sync> Experiment<C> for Arms<'_> {
    fn next(&mut self) -> Option<Block> {
        self.blocks.next()
    }

    fn phase(&mut self, phase: &Phase) {
        (self.phase)(phase);
    }

    fn jobs(&mut self, block: &Block, session: &mut Session<'_, C>) -> Result<Vec<Job>, SweepError> {
        let (plan, done) = (self.plan, self.found.samples.len());
        let arm = &plan.arms[self.turns[done].0];
        let slots = session.server.facts.slots();
        let connections = plan.connections.unwrap_or(slots);
        ensure_descriptors(u64::from(connections))?;
        (self.found.server, self.found.connections) = (session.server.facts.clone(), connections);
        Ok(vec![Job {
            stream: block.stream.clone(),
            probe: if let Arm::Probe(probe) = arm { *probe } else { Probe::None },
            what: format!("round {}/{}: {}", block.repeat, plan.rounds, arm.name()),
            multiple: f64::from(connections) / f64::from(slots.max(1)),
            connections,
            ceiling: None,
            repeat: block.repeat,
            number: done + 1,
            of: self.turns.len(),
            begun: self.begun,
        }])
    }

    fn run(&mut self, job: &Job, session: &mut Session<'_, C>) -> Result<bool, SweepError> {
        let (arm, round) = self.turns[self.found.samples.len()];
        let statsd = self.statsd.filter(|_| self.plan.arms[arm] == Arm::Statsd);
        let FinishedRun { run, server, own_cpu } = session.run_with_statsd(job, None, statsd, self.phase)?;
        if session.context.is_interrupted() {
            return Ok(false);
        }
        let busy = |lane: &LaneFacts| lane.work().as_secs_f64() / lane.elapsed.as_secs_f64().max(1e-9);
        let seconds = run.measured.as_secs_f64();
        self.found.samples.push(Sample {
            arm,
            round,
            rate_per_s: if seconds > 0.0 { run.tally.counts.good() as f64 / seconds } else { 0.0 },
            answers: run.tally.all_answers(),
            failed: run.tally.counts.failed(),
            server_cpu: server.cpu,
            generator_cpu: own_cpu,
            lane_busy: run.generator.lanes.iter().map(busy).max_by(f64::total_cmp),
            // A packet has one line.
            packets: run.statsd.as_ref().map(|statsd| statsd.before + statsd.packets),
            is_stamped: run.anatomy.is_some(),
        });
        Ok(true)
    }

    fn judge(&mut self, _: &Block, _: &mut Session<'_, C>, _: bool) {}
}
