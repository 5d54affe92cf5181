//! A sweep: one run for each multiple of the slots, all of them on one server; each pass on a fresh one.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use engine::{LoadSpec, ensure_descriptors};
use model::forecast::{ServiceTime, ServiceTimeSource};
use model::study::SCHEMA;
use model::{Ceiling, Clock, Nanos, Pace, Plan, Probe, Run, SweepStudy};
use probe::machine;

use crate::conduct::{Experiment, conduct, ensure_connections};
use crate::context::Context;
use crate::error::SweepError;
use crate::job::{Block, Job};
use crate::kernel;
use crate::observer::{Observer, Phase};
use crate::session::Session;
use crate::theory;

/// Conducts the study of `plan`. Where the user interrupts, the study has the runs that there are, and says so.
///
/// # Errors
/// Where the server cannot be started, is not ready in time, or dies. The runs that were finished before were given to
/// the observer.
pub fn conduct_sweep<C: Clock + Clone + Send + Sync>(
    plan: &Plan,
    context: &Context<'_, C>,
    observer: &mut dyn Observer,
) -> Result<SweepStudy, SweepError> {
    ensure_connections(&plan.server, |slots| most_connections(plan, slots))?;
    let study = SweepStudy {
        schema: SCHEMA,
        started_at: context.started_at.clone(),
        command_line: context.command_line.clone(),
        plan: plan.clone(),
        environment: machine::environment(context.version),
        lanes_by: context.lanes_by,
        server: model::ServerFacts::default(),
        probed: None,
        service_time: plan.stream.delay.map(|time| ServiceTime { time, source: ServiceTimeSource::Given, cpu: None }),
        probes: Vec::new(),
        runs: Vec::new(),
        warnings: Vec::new(),
        total_time: Nanos::ZERO,
        interrupted: false,
    };
    let ceilings = vec![None; plan.loads(1).len()];
    let mut sweep = Sweep { plan, observer, study, ceilings, passes: 1..=plan.repeat, begun: context.clock.now() };
    conduct(&mut sweep, context)?;
    sweep.note_the_time(context);
    Ok(sweep.study)
}

fn most_connections(plan: &Plan, slots: u32) -> u32 {
    plan.loads(slots).iter().map(|(_, connections)| *connections).max().unwrap_or(0)
}

struct Sweep<'a> {
    plan: &'a Plan,
    observer: &'a mut dyn Observer,
    study: SweepStudy,
    /// The generator's limit at each multiple.
    ceilings: Vec<Option<Ceiling>>,
    /// Those that are to come.
    passes: RangeInclusive<u32>,
    begun: Nanos,
}

impl Sweep<'_> {
    fn note_the_time<C: Clock>(&mut self, context: &Context<'_, C>) {
        self.study.interrupted = context.is_interrupted();
        self.study.total_time = context.clock.now() - self.begun;
    }
}

impl<C: Clock + Clone + Send + Sync> Experiment<C> for Sweep<'_> {
    fn next(&mut self) -> Option<Block> {
        Some(Block {
            server: self.plan.server.clone(),
            stream: self.plan.stream.clone(),
            pace: Pace::Closed,
            env: BTreeMap::new(),
            dir: None,
            cool_down: self.plan.cool_down,
            repeat: self.passes.next()?,
        })
    }

    fn phase(&mut self, phase: &Phase) {
        self.observer.phase(phase);
    }

    fn jobs(&mut self, block: &Block, session: &mut Session<'_, C>) -> Result<Vec<Job>, SweepError> {
        let Sweep { plan, observer, study, .. } = self;
        study.server = session.server.facts.clone();
        let slots = study.server.slots();
        let loads = plan.loads(slots);
        ensure_descriptors(u64::from(most_connections(plan, slots)))?;
        // What a body costs is work, which slots of one process do not share in as they share a wait.
        if study.service_time.is_none() && plan.stream.body.is_none() {
            observer.phase(&Phase::MeasuringServiceTime);
            study.service_time = session.learn_service_time()?;
        }
        if plan.probe_discipline && study.probes.is_empty() {
            observer.phase(&Phase::Probing);
            study.probes = session.probes(study.service_time, plan.probe)?;
        }
        if study.probed.is_none() {
            let is_tcp = session.server.bind.address().is_some();
            study.probed = kernel::choose(plan.probe, is_tcp, slots, study.service_time);
        }
        if session.context.other.is_none() {
            session.take_baseline();
        }
        if block.repeat == 1 && plan.calibrate {
            observer.phase(&Phase::Calibrating);
            let shapes: Vec<LoadSpec> = loads.iter().map(|(_, n)| session.shape(&plan.stream, *n)).collect();
            self.ceilings = session.ceilings(&shapes, session.server.first_answer.bytes)?;
        }
        let done = study.runs.len();
        let job = |(at, ((multiple, connections), ceiling)): (usize, ((f64, u32), &Option<Ceiling>))| Job {
            stream: plan.stream.clone(),
            probe: study.probed.as_ref().map_or(Probe::None, |probed| probed.probe),
            what: String::new(),
            multiple,
            connections,
            ceiling: *ceiling,
            repeat: block.repeat,
            number: done + at + 1,
            of: plan.runs(),
            begun: self.begun,
        };
        Ok(loads.into_iter().zip(&self.ceilings).enumerate().map(job).collect())
    }

    fn run(&mut self, job: &Job, session: &mut Session<'_, C>) -> Result<bool, SweepError> {
        let (service_time, mut phase) = (self.study.service_time, |phase: &Phase| self.observer.phase(phase));
        let run = match session.context.other {
            Some(other) => session.claimed_run(other, job, service_time, &mut phase)?,
            None => Some(session.run(job, service_time, &mut phase)?.run),
        };
        let Some(run) = run else { return Ok(false) };
        self.note_the_time(session.context);
        let mut provisional = run.clone();
        self.study.runs.push(run);
        session.judge([&mut provisional], false);
        self.observer.run_done(&self.study, &provisional);
        Ok(true)
    }

    fn judge(&mut self, block: &Block, session: &mut Session<'_, C>, is_whole: bool) {
        let Sweep { plan, observer, study, .. } = self;
        // Another generator's account is compared run by run.
        let is_whole = is_whole && session.context.other.is_none();
        if is_whole {
            observer.phase(&Phase::Reconciling);
        }
        let of_this_server = |run: &&mut Run| run.repeat == block.repeat && run.claim.is_none();
        study.warnings.extend(session.judge(study.runs.iter_mut().filter(of_this_server), is_whole));
        let scatters = study.runs.iter().any(|run| theory::app_scatters(run, &study.server));
        for run in study.runs.iter_mut().filter(of_this_server) {
            run.theory = theory::beside(run, &plan.server, &plan.stream, &study.server, study.service_time, scatters);
        }
        observer.judged(study);
    }
}
