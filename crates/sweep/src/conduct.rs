//! One study: the order of its servers and runs, from the first server's start to the last one's end.

use engine::{LoadSpec, ensure_descriptors};
use model::forecast::{ServiceTime, ServiceTimeSource};
use model::study::SCHEMA;
use model::{Clock, Nanos, Plan, Probe, ServerKind, ServerPlan, SweepStudy};
use probe::machine;

use crate::error::SweepError;
use crate::kernel;
use crate::observer::{Observer, Phase};
use crate::session::{Job, Session};
use crate::subject::Subject;
use crate::theory;
use crate::tools::Tools;

/// Conducts the study of `plan`. Where the user interrupts, the study has the runs that there are, and says so.
///
/// # Errors
/// Where the server cannot be started, is not ready in time, or dies. The runs that were finished before were given to
/// the observer.
pub fn conduct<C: Clock + Clone + Send + Sync>(
    plan: &Plan,
    tools: &Tools<'_, C>,
    observer: &mut dyn Observer,
) -> Result<SweepStudy, SweepError> {
    let begun = tools.clock.now();
    refuse_too_many_connections(plan)?;
    let mut study = unbegun(plan, tools);
    let mut known_ceilings = vec![None; plan.loads(1).len()];
    for repeat in 1..=plan.repeat {
        observer.phase(&Phase::Starting);
        let Some(subject) = Subject::start(&plan.server, &plan.stream, tools)? else { break };
        study.server = subject.facts.clone();
        let loads = plan.loads(subject.facts.slots());
        ensure_descriptors(most_connections(plan, subject.facts.slots()))?;
        let mut session = Session::new(&plan.server, &plan.stream, plan.cool_down, tools, subject);
        session.learn(plan, &mut study, observer)?;
        if study.probed.is_none() {
            let is_tcp = session.subject.bind.address().is_some();
            study.probed = kernel::choose(plan.probe, is_tcp, session.subject.facts.slots(), study.service_time);
        }
        let probe = study.probed.as_ref().map_or(Probe::None, |probed| probed.probe);
        if tools.other.is_none() {
            session.take_baseline();
        }
        if plan.calibrate && repeat == 1 {
            observer.phase(&Phase::Calibrating);
            let shapes: Vec<LoadSpec> = loads.iter().map(|(_, n)| session.shape(&plan.stream, *n)).collect();
            known_ceilings = session.ceilings(&shapes, session.subject.first_answer.bytes)?;
        }
        if repeat == 1 {
            observer.opened(&study);
        }
        for ((multiple, connections), ceiling) in loads.iter().zip(&known_ceilings) {
            if tools.is_interrupted() {
                break;
            }
            if let Some(other) = tools.other {
                let load = (*multiple, *connections);
                let at = (repeat, study.claimed_runs.len());
                let Some(run) = session.claimed_run((plan, other), load, at, study.service_time, observer)? else {
                    break;
                };
                study.claimed_runs.push(run);
                study.interrupted = tools.is_interrupted();
                study.total_time = tools.clock.now() - begun;
                if let Some(run) = study.claimed_runs.last() {
                    observer.claimed_done(&study, run);
                }
                continue;
            }
            let job = Job {
                stream: &plan.stream,
                probe,
                what: String::new(),
                multiple: *multiple,
                connections: *connections,
                ceiling: *ceiling,
                repeat,
                number: study.runs.len() + 1,
                of: plan.runs(),
                begun,
            };
            let (mut run, _) = session
                .run(&job, study.service_time, &mut |phase| observer.phase(phase))
                .inspect_err(|_| observer.compared(&study))?;
            let scatters = |run| theory::app_scatters(run, &study.server);
            let app_scatters = study.runs.iter().any(scatters) || scatters(&run);
            let known = study.service_time;
            run.theory = theory::beside(&run, &plan.server, &plan.stream, &study.server, known, app_scatters);
            study.runs.push(run);
            study.interrupted = tools.is_interrupted();
            study.total_time = tools.clock.now() - begun;
            if let Some(run) = study.runs.last() {
                observer.run_done(&study, run);
            }
            if let Some(error) = study.runs.last().and_then(|run| session.subject.death(run.connections)) {
                observer.compared(&study);
                return Err(error);
            }
        }
        // Another generator's account is compared run by run.
        if !tools.is_interrupted() && tools.other.is_none() {
            observer.phase(&Phase::Reconciling);
            let of_this_server = study.runs.iter_mut().filter(|run| run.repeat == repeat);
            study.warnings.extend(session.settle(of_this_server));
        }
        observer.compared(&study);
        observer.phase(&Phase::Stopping);
        session.subject.stop(&tools.clock);
        if tools.is_interrupted() {
            break;
        }
    }
    study.interrupted = tools.is_interrupted();
    study.total_time = tools.clock.now() - begun;
    Ok(study)
}

/// The study before its first server.
fn unbegun<C>(plan: &Plan, tools: &Tools<'_, C>) -> SweepStudy {
    SweepStudy {
        schema: SCHEMA,
        started_at: tools.started_at.clone(),
        command_line: tools.command_line.clone(),
        plan: plan.clone(),
        environment: machine::environment(tools.version),
        lanes_by: tools.lanes_by,
        server: model::ServerFacts::default(),
        probed: None,
        service_time: plan.stream.delay.map(|time| ServiceTime { time, source: ServiceTimeSource::Given, cpu: None }),
        probes: Vec::new(),
        runs: Vec::new(),
        claimed_runs: Vec::new(),
        warnings: Vec::new(),
        total_time: Nanos::ZERO,
        interrupted: false,
    }
}

fn most_connections(plan: &Plan, slots: u32) -> u64 {
    plan.loads(slots).iter().map(|(_, connections)| u64::from(*connections)).max().unwrap_or(0)
}

/// Before the server is started, where the slots are known so early.
fn refuse_too_many_connections(plan: &Plan) -> Result<(), SweepError> {
    if let Some(slots) = planned_slots(&plan.server) {
        ensure_descriptors(most_connections(plan, slots))?;
    }
    Ok(())
}

/// Workers x threads, where they are known before the server is started.
pub fn planned_slots(server: &ServerPlan) -> Option<u32> {
    match &server.kind {
        ServerKind::Command { slots, .. } => Some(*slots),
        _ => server.threads.map(|threads| threads.max * server.workers.unwrap_or(0).max(1)),
    }
}
