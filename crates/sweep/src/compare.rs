//! Conducts a comparison: blocks in which every arm runs once, each on a fresh server, in an order
//! that is balanced over the blocks.
//!
//! Before the first block each arm's server is started once, as a trial: an arm that does not work
//! is refused before any load, the slots of each become known, and if the load is a share of what the
//! arms can do, their maximum is measured. A run that fails its checks, or whose server
//! dies, is repeated once at the end of its block.

use std::collections::VecDeque;

use engine::LoadSpec;
use model::comparison::{ComparisonLoad, Decision, LostRun, decision};
use model::study::SCHEMA;
use model::theory::ServiceTime;
use model::{
    Ceiling, ComparisonPlan, ComparisonRun, ComparisonStudy, Nanos, Pace, Probe, Profile, Rate,
    Stop, StreamPlan,
};
use probe::host;

use crate::block::Block;
use crate::conduct::{Experiment, conduct};
use crate::context::{Context, Observer, Phase, SweepError};
use crate::kernel;
use crate::session::{FinishedRun, Job, Session};

/// How long the run that measures an arm's maximum takes.
const TRIAL: Nanos = Nanos::from_secs(3);
/// The most connections of an open loop, as in `load`.
const MOST_CONNECTIONS: u32 = 1000;
/// How often a run is tried before the study gives up.
const ATTEMPTS: u32 = 2;

/// Conducts the study of `plan`. If the user interrupts, or an arm's server fails in all attempts,
/// the study has the runs so far and is marked as interrupted. `begun`: since when its total time
/// counts, if other runs came before it.
///
/// # Errors
/// If an arm's server cannot be started at all, or does not serve what is requested.
pub fn conduct_comparison(
    plan: &ComparisonPlan,
    context: &Context<'_>,
    begun: Nanos,
    observer: &mut dyn Observer,
) -> Result<ComparisonStudy, SweepError> {
    let study = ComparisonStudy {
        schema: SCHEMA,
        started_at: context.started_at.clone(),
        command_line: context.command_line.clone(),
        plan: plan.clone(),
        environment: host::environment(context.version),
        servers: vec![None; plan.arms.len()],
        maxima_per_s: Vec::new(),
        runs: Vec::new(),
        lost: Vec::new(),
        warnings: Vec::new(),
        total_time: Nanos::ZERO,
        interrupted: false,
    };
    let turn = |arm| Turn { block: TRIAL_BLOCK, arm, attempt: 1 };
    let mut comparison = Comparison {
        plan,
        study,
        turns: (0..plan.arms.len()).map(turn).collect(),
        turn: turn(0),
        ceilings: vec![None; plan.arms.len()],
        measured: 0,
        has_given_up: false,
        begun,
    };
    conduct(&mut comparison, context, observer)?;
    let Comparison { mut study, begun, .. } = comparison;
    (study.total_time, study.interrupted) = context.time_taken(begun);
    Ok(study)
}

/// The number of the block before the first one: each arm once, and none of it counts.
const TRIAL_BLOCK: u32 = 0;

/// One server's place in the study.
#[derive(Clone, Copy)]
struct Turn {
    block: u32,
    arm: usize,
    attempt: u32,
}

struct Comparison<'a> {
    plan: &'a ComparisonPlan,
    study: ComparisonStudy,
    /// The turns still to come in this block.
    turns: VecDeque<Turn>,
    /// The current one.
    turn: Turn,
    /// What the generator alone reaches with each arm's load.
    ceilings: Vec<Option<Ceiling>>,
    /// Runs so far, repeated ones included.
    measured: usize,
    /// Whether an arm's server failed in all attempts of a block.
    has_given_up: bool,
    begun: Nanos,
}

impl Comparison<'_> {
    /// The arm's index in the plan. The control runs the base once more, so it has the base's.
    fn planned_arm(&self) -> usize {
        if self.turn.arm < self.plan.arms.len() { self.turn.arm } else { 0 }
    }

    fn is_trial(&self) -> bool {
        self.turn.block == TRIAL_BLOCK
    }

    /// Whether the trial measures the arm's maximum.
    fn measures_maximum(&self) -> bool {
        matches!(self.plan.load, ComparisonLoad::Share { .. })
    }

    fn pace(&self) -> Pace {
        let rate = if self.is_trial() { None } else { self.study.rate_per_s() };
        let Some(rate) = rate.and_then(|rate| Rate::new(rate).ok()) else { return Pace::Closed };
        Pace::Open {
            profile: Profile::Flat { rate },
            arrivals: self.plan.arrivals,
            seed: self.plan.seed.wrapping_add(u64::from(self.turn.block)),
            burst: 1,
        }
    }

    /// Connections, the same for all arms: in a closed loop twice the slots of the largest arm, so
    /// that all threads of each have work, unless the user says otherwise.
    fn connections(&self) -> u32 {
        let slots = |arm: usize| self.study.server(arm).map_or(1, model::ServerFacts::slots);
        let most_slots = (0..self.plan.arms.len()).map(slots).max().unwrap_or(1);
        match self.plan.load {
            ComparisonLoad::Closed { connections } => connections.unwrap_or(2 * most_slots),
            _ if self.is_trial() => 2 * slots(self.planned_arm()),
            ComparisonLoad::Rate { .. } | ComparisonLoad::Share { .. } => MOST_CONNECTIONS,
        }
    }

    /// Measures the generator's own limit with the load of the current arm.
    fn calibrate(&mut self, session: &mut Session<'_>) -> Result<(), SweepError> {
        let arm = self.planned_arm();
        session.observer.phase(&Phase::Calibrating);
        let shape: LoadSpec = session.shape(&self.plan.arms[arm].stream, self.connections());
        self.ceilings[arm] = session.ceilings(&[shape], session.server.first_response.bytes)?[0];
        Ok(())
    }

    /// Whether the load of the current arm is known now, and its ceiling is not: in a closed loop its
    /// connections may go by the slots of an arm whose trial comes later.
    fn is_time_to_calibrate(&self) -> bool {
        let first_block = match self.plan.load {
            ComparisonLoad::Closed { .. } => TRIAL_BLOCK + 1,
            ComparisonLoad::Rate { .. } | ComparisonLoad::Share { .. } => TRIAL_BLOCK,
        };
        self.turn.block == first_block && self.ceilings[self.planned_arm()].is_none()
    }

    /// Tries the same run again at the end of its block, unless it was the last attempt.
    fn retry(&mut self) {
        if self.turn.attempt < ATTEMPTS {
            self.turns.push_back(Turn { attempt: self.turn.attempt + 1, ..self.turn });
        }
    }

    fn job(&self, stream: StreamPlan, slots: u32, probe: Probe) -> Job {
        let Turn { block, arm, attempt } = self.turn;
        let name = self.plan.called(arm);
        let what = if self.is_trial() {
            format!("the maximum of {name}")
        } else if attempt > 1 {
            format!("block {block}, {name}, once more")
        } else {
            format!("block {block}, {name}")
        };
        let connections = self.connections();
        let number = if self.is_trial() { arm + 1 } else { self.measured + 1 };
        let of = if self.is_trial() {
            self.plan.arms.len()
        } else {
            // The rest of this block, with what is repeated, and the blocks after it.
            let blocks_after = self.plan.blocks.most().saturating_sub(block) as usize;
            let after = blocks_after * self.plan.arms_of_a_block();
            self.measured + 1 + self.turns.len() + after
        };
        Job {
            stream,
            probe,
            what,
            multiple: f64::from(connections) / f64::from(slots.max(1)),
            connections,
            ceiling: self.ceilings[self.planned_arm()],
            number,
            of,
            later_connections: u64::from(connections) * (of - number) as u64,
            may_end_early: !self.is_trial(),
        }
    }
}

impl Experiment for Comparison<'_> {
    fn next(&mut self) -> Option<Block> {
        if self.has_given_up {
            return None;
        }
        if self.turns.is_empty() {
            let block = self.turn.block + 1;
            if self.turn.block != TRIAL_BLOCK
                && decision(self.plan, &self.study.runs) != Decision::GoOn
            {
                return None;
            }
            self.turns = self
                .plan
                .order(block)
                .into_iter()
                .map(|arm| Turn { block, arm, attempt: 1 })
                .collect();
        }
        self.turn = self.turns.pop_front()?;
        let arm = self.plan.arm(self.turn.arm);
        Some(Block {
            server: arm.server.clone(),
            stream: arm.stream.clone(),
            pace: self.pace(),
            env: arm
                .env
                .exposed()
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            dir: arm.dir.clone(),
            cool_down: self.plan.cool_down,
            repeat: self.turn.block,
            during: if self.is_trial() { None } else { arm.during.clone() },
        })
    }

    fn jobs(&mut self, session: &mut Session<'_>) -> Result<Vec<Job>, SweepError> {
        let planned = self.planned_arm();
        let facts = session.server.facts.clone();
        let slots = facts.slots();
        self.study.servers[planned] = Some(facts);
        let arm = &self.plan.arms[planned];
        if let Some(event) = arm.during.as_ref().filter(|_| self.is_trial()) {
            session.check_event(event)?;
        }
        if self.plan.calibrate && self.is_time_to_calibrate() {
            self.calibrate(session)?;
        }
        if !self.is_trial() {
            let service_time = given_service_time(&arm.stream);
            let is_tcp = session.server.reached.bind.place.tcp().is_some();
            let probe = kernel::choose(arm.probe, is_tcp, slots, service_time)
                .map_or(Probe::None, |used| used.probe);
            return Ok(vec![self.job(arm.stream.clone(), slots, probe)]);
        }
        let stream = StreamPlan { stop: Stop::After(TRIAL), ..arm.stream.clone() };
        Ok(if self.measures_maximum() {
            vec![self.job(stream, slots, Probe::None)]
        } else {
            Vec::new()
        })
    }

    fn run(&mut self, job: &Job, session: &mut Session<'_>) -> Result<bool, SweepError> {
        let service_time = given_service_time(&job.stream);
        let done = session.run(job, service_time)?;
        if session.context.is_interrupted() {
            // The run is incomplete, so it does not count.
            return Ok(false);
        }
        let FinishedRun { run, server, own_cpu } = done;
        if self.is_trial() {
            let maximum = run.completed_rate();
            if maximum == 0.0 {
                return Err(SweepError::Unusable(
                    "all requests failed, so its maximum is not known: check the server, or give \
                     --rate or -c"
                        .to_owned(),
                ));
            }
            self.study.maxima_per_s.push(maximum);
            return Ok(true);
        }
        if session.server.has_ended() {
            // `conduct.rs` reports that.
            return Ok(true);
        }
        let Turn { block, arm, attempt } = self.turn;
        self.measured += 1;
        let generator_cpu = Some(own_cpu);
        self.study.runs.push(ComparisonRun { block, arm, attempt, run, server, generator_cpu });
        Ok(true)
    }

    fn judge(&mut self, session: &mut Session<'_>, is_whole: bool) {
        if self.is_trial() {
            return;
        }
        (self.study.total_time, self.study.interrupted) = session.context.time_taken(self.begun);
        let Turn { block, arm, attempt } = self.turn;
        let is_this =
            |run: &&mut ComparisonRun| (run.block, run.arm, run.attempt) == (block, arm, attempt);
        let Some(run) = self.study.runs.last_mut().filter(is_this) else { return };
        // Puma's count may be seconds old and has to be waited for, so only once for each arm.
        let is_counted = is_whole && block == 1;
        if is_counted {
            session.observer.phase(&Phase::Reconciling);
        }
        let alone = given_service_time(&self.study.plan.arm(arm).stream);
        let warning = session.judge([&mut run.run], is_counted, alone, &[]);
        let is_sound = run.is_sound();
        self.study.warnings.extend(warning);
        if !is_sound {
            self.retry();
        }
        session.observer.judged(&self.study.clone().into());
    }

    fn failed(&mut self, error: SweepError, observer: &mut dyn Observer) -> Result<(), SweepError> {
        let Turn { block, arm, attempt } = self.turn;
        if self.is_trial() || !error.is_of_server() {
            return Err(self.of_arm(arm, error));
        }
        self.study.lost.push(LostRun { block, arm, attempt, reason: error.to_string() });
        self.has_given_up = attempt == ATTEMPTS;
        self.retry();
        observer.judged(&self.study.clone().into());
        Ok(())
    }
}

impl Comparison<'_> {
    /// What is wrong with an arm, named as it was typed, unless all start the same server.
    fn of_arm(&self, arm: usize, error: SweepError) -> SweepError {
        let arms = &self.plan.arms;
        let is_shared = arms.iter().all(|other| {
            (&other.server, &other.env, &other.dir) == (&arms[0].server, &arms[0].env, &arms[0].dir)
        });
        if is_shared {
            return error;
        }
        let arm = match self.plan.arm(arm).name.to_string().as_str() {
            "default" => "--arm ''".to_owned(),
            name => name.to_owned(),
        };
        SweepError::Arm { arm, why: Box::new(error) }
    }
}

/// The service time if the user gave it to the app.
fn given_service_time(stream: &StreamPlan) -> Option<ServiceTime> {
    stream.delay.map(ServiceTime::given)
}
