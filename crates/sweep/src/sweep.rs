//! Conducts a sweep: one run for each multiple of the slots, all on one server, and each pass on a
//! fresh one. With `--probe-discipline` two short closed loops come first, at three times the
//! slots: one with keep-alive and one with a connection for each request, to see which order of
//! service each resembles.

use std::ops::RangeInclusive;

use engine::{LoadSpec, ensure_descriptors};
use judge::verdict;
use model::study::SCHEMA;
use model::theory::DisciplineProbe;
use model::theory::ServiceTime;
use model::{Ceiling, Clock, Nanos, Plan, Probe, Run, Stop, StreamPlan, SweepStudy};
use probe::host;

use crate::block::Block;
use crate::conduct::{Experiment, conduct, ensure_connections};
use crate::context::{Context, Observer, Phase, SweepError};
use crate::observe::ObservedRun;
use crate::service_time::OneConnection as _;
use crate::session::{Job, Session, Watching};
use crate::{kernel, service_time, theory, trend};

/// Conducts the study of `plan`. If the user interrupts, the study has the runs so far and is
/// marked as interrupted.
///
/// # Errors
/// If the server cannot be started, is not ready in time, or dies. The observer already has the
/// runs that were finished before.
pub fn conduct_sweep(
    plan: &Plan,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<SweepStudy, SweepError> {
    ensure_connections(&plan.server, |slots| most_connections(plan, slots))?;
    let study = SweepStudy {
        schema: SCHEMA,
        started_at: context.started_at.clone(),
        command_line: context.command_line.clone(),
        plan: plan.clone(),
        environment: host::environment(context.version),
        server: model::ServerFacts::default(),
        probed: None,
        service_time: plan.stream.delay.map(ServiceTime::given),
        classes_alone: Vec::new(),
        probes: Vec::new(),
        runs: Vec::new(),
        first_load_again: None,
        warnings: Vec::new(),
        total_time: Nanos::ZERO,
        interrupted: false,
    };
    let ceilings = vec![None; plan.loads(1).len()];
    let mut sweep =
        Sweep { plan, study, ceilings, passes: 1..=plan.repeat, begun: context.clock.now() };
    conduct(&mut sweep, context, observer)?;
    let Sweep { mut study, begun, .. } = sweep;
    (study.total_time, study.interrupted) = context.time_taken(begun);
    Ok(study)
}

fn most_connections(plan: &Plan, slots: u32) -> u32 {
    plan.loads(slots).iter().map(|(_, connections)| *connections).max().unwrap_or(0)
}

/// On a warm server a closed loop has settled after this many responses on each connection.
const SETTLED: f64 = 2.0;
/// A shortened warm-up is rounded up to a multiple of this: long enough to open all connections,
/// and easy to read.
const WARM_UP_STEP: Nanos = Nanos::from_millis(100);

struct Sweep<'a> {
    plan: &'a Plan,
    study: SweepStudy,
    /// What the generator alone reaches at each load.
    ceilings: Vec<Option<Ceiling>>,
    /// The passes still to come.
    passes: RangeInclusive<u32>,
    begun: Nanos,
}

/// How long a run over this many connections warms up. The first run of a server takes the warm-up
/// that was asked for. Later ones find the server warm, so only their connections have to settle:
/// each gets [`SETTLED`] responses, by the throughput of the run `before`.
fn warm_up(stream: &StreamPlan, before: Option<&Run>, connections: u32) -> Nanos {
    let throughput = before.map_or(0.0, Run::completed_rate);
    if throughput == 0.0 || matches!(stream.stop, Stop::RequestsPerConnection(_)) {
        return stream.warm_up;
    }
    let settled = Nanos::from_secs_f64(SETTLED * f64::from(connections) / throughput);
    (WARM_UP_STEP * settled.0.div_ceil(WARM_UP_STEP.0)).min(stream.warm_up)
}

impl Experiment for Sweep<'_> {
    fn next(&mut self) -> Option<Block> {
        let Plan { server, stream, cool_down, .. } = self.plan;
        Some(Block::closed(server.clone(), stream.clone(), *cool_down, self.passes.next()?))
    }

    fn jobs(&mut self, session: &mut Session<'_>) -> Result<Vec<Job>, SweepError> {
        let Sweep { plan, study, .. } = self;
        study.server = session.server.facts.clone();
        let slots = study.server.slots();
        let loads = plan.loads(slots);
        ensure_descriptors(u64::from(most_connections(plan, slots)))?;
        // Large bodies cost CPU time, so slots / service time would be no ceiling for them.
        let is_first = session.block.repeat == 1;
        let measures_service_time = is_first && plan.stream.body.is_none();
        if measures_service_time {
            let at_most = service_time::LONGEST_MEASUREMENT;
            session.observer.phase(&Phase::MeasuringServiceTime { at_most });
            study.service_time = session.measure_service_time()?.or(study.service_time);
            study.classes_alone = session.measure_classes_alone()?;
        }
        if plan.probe_discipline && study.probes.is_empty() {
            session.observer.phase(&Phase::Probing);
            study.probes = session.probe_disciplines(study.service_time, plan.probe)?;
        }
        if study.probed.is_none() {
            let is_tcp = session.server.reached.bind.place.tcp().is_some();
            study.probed = kernel::choose(plan.probe, is_tcp, slots, study.service_time);
        }
        if session.context.other.is_none() {
            session.take_baseline();
            if measures_service_time {
                session.visit_missing_workers()?;
            }
        }
        if is_first && plan.calibrate {
            session.observer.phase(&Phase::Calibrating);
            let shapes: Vec<LoadSpec> =
                loads.iter().map(|(_, n)| session.shape(&plan.stream, *n)).collect();
            self.ceilings = session.ceilings(&shapes, session.server.first_response.bytes)?;
        }
        let done = study.runs.len();
        let of_pass: u64 = loads.iter().map(|(_, connections)| u64::from(*connections)).sum();
        let later_passes = u64::from(plan.repeat - session.block.repeat);
        let mut later_connections = of_pass * (later_passes + 1);
        let probe = study.probed.as_ref().map_or(Probe::None, |probed| probed.probe);
        let mut jobs: Vec<Job> = Vec::new();
        for ((multiple, connections), ceiling) in loads.into_iter().zip(&self.ceilings) {
            later_connections -= u64::from(connections);
            let number = done + jobs.len() + 1;
            jobs.push(Job {
                stream: plan.stream.clone(),
                probe,
                what: String::new(),
                multiple,
                connections,
                ceiling: *ceiling,
                number,
                of: plan.runs(),
                later_connections,
                may_end_early: false,
            });
        }
        Ok(jobs)
    }

    fn run(&mut self, job: &Job, session: &mut Session<'_>) -> Result<bool, SweepError> {
        let before = self.study.runs.last().filter(|run| run.repeat == session.block.repeat);
        let warm_up = warm_up(&job.stream, before, job.connections);
        let job = &Job { stream: StreamPlan { warm_up, ..job.stream.clone() }, ..job.clone() };
        let service_time = self.study.service_time;
        let run = match session.context.other {
            Some(other) => session.claimed_run(other, job, service_time)?,
            None => Some(session.run(job, service_time)?.run),
        };
        let Some(run) = run else { return Ok(false) };
        (self.study.total_time, self.study.interrupted) = session.context.time_taken(self.begun);
        // Interrupted before it measured anything, it says nothing, not even that it is invalid.
        if session.context.is_interrupted() && run.tally.due() == 0 {
            return Ok(false);
        }
        self.study.runs.push(run);
        let mut provisional = self.study.clone();
        let classes_alone = &self.study.classes_alone;
        session.judge(provisional.runs.last_mut(), false, service_time, classes_alone);
        session.observer.run_done(&self.study.clone().into(), &provisional.into());
        Ok(true)
    }

    fn finish(&mut self, session: &mut Session<'_>) -> Result<(), SweepError> {
        if session.block.repeat > 1 {
            return Ok(());
        }
        if let Some(known) = self.study.service_time
            && known.answers > 0
        {
            let at_most = service_time::LONGEST_REPETITION;
            session.observer.phase(&Phase::MeasuringServiceTime { at_most });
            let again = session.measure_service_time_again()?;
            let slots = self.study.server.slots();
            let longest = longest_in_lowest_load(&self.study.runs, &known, slots);
            self.study.service_time = Some(known.with_later(&again, longest));
        }
        let runs: Vec<&Run> = self.study.runs.iter().collect();
        let slots = self.study.server.slots();
        // A run by longtail would not compare with those of another generator.
        if session.context.other.is_none()
            && !session.is_over()
            && trend::has_trend(&runs, slots, self.study.service_time)
        {
            self.study.first_load_again = self.repeat_first_load(session)?.map(Box::new);
        }
        Ok(())
    }

    fn judge(&mut self, session: &mut Session<'_>, is_whole: bool) {
        let Sweep { plan, study, .. } = self;
        // Another generator's count is compared run by run.
        let is_whole = is_whole && session.context.other.is_none();
        if is_whole {
            session.observer.phase(&Phase::Reconciling);
        }
        let repeat = session.block.repeat;
        let of_this_server = |run: &&mut Run| run.repeat == repeat && run.claim.is_none();
        let again = study.first_load_again.as_deref_mut();
        let runs = study.runs.iter_mut().chain(again).filter(of_this_server);
        let alone = study.service_time;
        let warning = session.judge(runs, is_whole, alone, &study.classes_alone);
        study.warnings.extend(warning);
        verdict::refine_sweep(study);
        let scatters = study.runs.iter().any(|run| theory::app_scatters(run, &study.server));
        for run in study.runs.iter_mut().filter(of_this_server) {
            run.theory = theory::of_run(
                run,
                &plan.server,
                &plan.stream,
                &study.server,
                study.service_time,
                scatters,
            );
        }
        session.observer.judged(&study.clone().into());
    }
}

/// How long the first load is repeated if its requests are short.
const LENGTH_AGAIN: Nanos = Nanos::from_secs(3);
/// Otherwise until each connection has sent this many, but no longer than the first run was.
const ROUNDS_AGAIN: u64 = 10;

impl Sweep<'_> {
    /// Repeats the server's first load for a shorter time; `None` if the user interrupts, or the
    /// first run has no length.
    fn repeat_first_load(&self, session: &mut Session<'_>) -> Result<Option<Run>, SweepError> {
        let Some(first) = self.study.runs.first() else { return Ok(None) };
        let mean = first.tally.response_time.mean().unwrap_or_default();
        let length = (mean * ROUNDS_AGAIN).max(LENGTH_AGAIN).min(first.measured);
        if length == Nanos::ZERO {
            return Ok(None);
        }
        let stream = StreamPlan {
            warm_up: warm_up(&self.plan.stream, Some(first), first.connections),
            stop: Stop::After(length),
            ..self.plan.stream.clone()
        };
        session.observer.phase(&Phase::RepeatingFirstLoad { length: length + stream.warm_up });
        let job = Job {
            probe: self.study.probed.as_ref().map_or(Probe::None, |probed| probed.probe),
            stream,
            what: String::new(),
            multiple: first.multiple.unwrap_or_default(),
            connections: first.connections,
            ceiling: first.generator.ceiling,
            number: self.study.runs.len(),
            of: self.plan.runs(),
            later_connections: 0,
            may_end_early: false,
        };
        let progress = session.context.progress(&session.shape(&job.stream, job.connections));
        let watching = Watching { probe: job.probe, ..Watching::default() };
        let run = session.measure(&job, self.study.service_time, &progress, &watching)?.run;
        Ok((!session.context.is_interrupted()).then_some(run))
    }
}

/// The longest service time in the runs with the fewest connections.
fn longest_in_lowest_load(runs: &[Run], alone: &ServiceTime, slots: u32) -> Nanos {
    let fewest = runs.iter().map(|run| run.connections).min();
    let lowest = runs.iter().filter(|run| Some(run.connections) == fewest);
    lowest
        .map(|run| alone.longest_in(&run.tally.service_time, run.connections, slots))
        .max()
        .unwrap_or_default()
}

/// Connections / slots in a probe: enough to see who waits for whom.
const MULTIPLE: u32 = 3;
/// Turns of ten requests that the warm-up takes.
const WARM_UP_TURNS: u64 = 1;
/// Half turns that a probe measures.
const HALF_TURNS: u64 = 5;
/// Responses that p95 and p99 need.
const RESPONSES: u64 = 200;
/// The shortest probe.
const LEAST: Nanos = Nanos::from_secs(1);

impl Session<'_> {
    /// Runs both probes of the order of service. Their length depends on the service time, so
    /// without one there are none.
    pub(crate) fn probe_disciplines(
        &mut self,
        service_time: Option<ServiceTime>,
        allowed: model::Probe,
    ) -> Result<Vec<DisciplineProbe>, SweepError> {
        let Some(known) = service_time.filter(|known| known.mean > Nanos::ZERO) else {
            return Ok(Vec::new());
        };
        let mut probes = Vec::new();
        for keep_alive in [true, false] {
            if self.context.is_interrupted() {
                break;
            }
            probes.push(self.probe_discipline(keep_alive, known, allowed)?);
            self.cool_down();
        }
        Ok(probes)
    }

    fn probe_discipline(
        &mut self,
        keep_alive: bool,
        known: ServiceTime,
        allowed: model::Probe,
    ) -> Result<DisciplineProbe, SweepError> {
        let slots = self.server.facts.slots();
        let connections = (slots * MULTIPLE).max(1);
        let turn = known.mean * u64::from(queueing::puma::TURN);
        let for_percentiles = known.mean * (RESPONSES / u64::from(slots.max(1)));
        let stream = StreamPlan {
            keep_alive,
            warm_up: turn * WARM_UP_TURNS,
            stop: Stop::After((turn * HALF_TURNS / 2).max(for_percentiles).max(LEAST)),
            ..self.block.stream.clone()
        };
        let shape = self.shape(&stream, connections);
        // Which worker holds a connection helps to tell the order; tracepoints would not.
        let probe = if allowed == model::Probe::None { allowed } else { model::Probe::Proc };
        let watching = Watching { probe, ..Watching::default() };
        let ObservedRun { run, .. } =
            self.drive(&shape, &self.context.progress(&shape), &watching)?;
        Ok(DisciplineProbe {
            keep_alive,
            connections,
            measured: run.measured,
            answers: run.tally.counts.good(),
            theory: theory::of_run(
                &run,
                &self.block.server,
                &stream,
                &self.server.facts,
                Some(known),
                false,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_on_a_warm_server_warms_up_until_its_connections_have_settled() {
        let ms = Nanos::from_millis;
        let study = testkit::study::canonical();
        let mut before = study.runs[0].clone();
        (before.tally.completed_in_window, before.measured) = (1000, ms(10_000));
        let by_time =
            StreamPlan { stop: Stop::After(ms(10_000)), warm_up: ms(1000), ..study.plan.stream };
        let by_count = StreamPlan { stop: Stop::RequestsPerConnection(100), ..by_time.clone() };
        let none = StreamPlan { warm_up: Nanos::ZERO, ..by_time.clone() };
        let mut failing = before.clone();
        failing.tally.completed_in_window = 0;
        for (case, stream, before, connections, expected) in [
            ("the first run", &by_time, None, 10, 1000),
            ("two rounds at 100/s", &by_time, Some(&before), 20, 400),
            ("rounded up", &by_time, Some(&before), 21, 500),
            ("never longer than was asked for", &by_time, Some(&before), 80, 1000),
            ("all connections are opened", &by_time, Some(&before), 1, 100),
            ("no throughput is known", &by_time, Some(&failing), 20, 1000),
            ("nothing was asked for", &none, Some(&before), 20, 0),
            ("a count ends it", &by_count, Some(&before), 20, 1000),
        ] {
            assert_eq!(warm_up(stream, before, connections), ms(expected), "{case}");
        }
    }
}
