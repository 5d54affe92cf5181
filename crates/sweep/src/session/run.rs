//! One run and what comes of it: its row, what the server took for it, each worker's part.

use std::sync::Arc;

use engine::{DriveResult, RunProgress};
use model::forecast::ServiceTime;
use model::run::PERCENTILES;
use model::{
    Ceiling, Clock, Diagnostic, GeneratorFacts, Nanos, Probe, Reading, Run, ServerUse, Statistics, Stop, StreamPlan,
    WorkerShare, doubts, verdict,
};
use probe::host::HostCounters;
use probe::processes::tree;

use super::Session;
use crate::error::SweepError;
use crate::ledger::{replaced, shares_between, shares_by_header};
use crate::observer::Phase;
use crate::turns;
use crate::witnesses::{Watched, Witnesses};

/// One run, and its place in the study.
pub(crate) struct Job<'a> {
    /// What is asked.
    pub(crate) stream: &'a StreamPlan,
    /// What is read of server and kernel meanwhile.
    pub(crate) probe: Probe,
    /// That in a word, where the study's runs differ in it.
    pub(crate) what: String,
    pub(crate) multiple: f64,
    pub(crate) connections: u32,
    pub(crate) ceiling: Option<Ceiling>,
    pub(crate) repeat: u32,
    /// Which of the study's runs, from 1.
    pub(crate) number: usize,
    pub(crate) of: usize,
    /// When the study began.
    pub(crate) begun: Nanos,
}

impl Job<'_> {
    /// How long the study will take from `now` on: as long for each run as for those that are done, with all that lies
    /// between; before there is one, as long as was asked for.
    fn left(&self, now: Nanos) -> Option<Nanos> {
        let (done, left) = (self.number as u64 - 1, (self.of - self.number) as u64 + 1);
        match (self.stream.stop, done) {
            (Stop::After(length), 0) => Some((length + self.stream.warm_up) * left),
            (Stop::RequestsPerConnection(_), 0) => None,
            _ => Some((now - self.begun) / done * left),
        }
    }
}

impl<C: Clock + Clone + Send + Sync> Session<'_, C> {
    /// Does one run, and says what the server took for it.
    pub(crate) fn run(
        &mut self,
        job: &Job<'_>,
        service_time: Option<ServiceTime>,
        phase: &mut dyn FnMut(&Phase),
    ) -> Result<(Run, ServerUse), SweepError> {
        let slots = self.subject.facts.slots();
        let connections = job.connections;
        let shape = self.shape(job.stream, connections);
        let progress = Arc::new(RunProgress::new(shape.lanes));
        let witnesses = Witnesses { probe: job.probe, live: Arc::default(), statsd: self.tools.statsd };
        phase(&Phase::Running {
            number: job.number,
            of: job.of,
            what: job.what.clone(),
            connections,
            left: job.left(self.tools.clock.now()),
            length: shape.measured.map(|measured| measured + shape.warm_up),
            progress: Arc::clone(&progress),
            live: Arc::clone(&witnesses.live),
        });
        let (before, taken_before) = (HostCounters::now(), self.subject.process_use());
        let family = tree(self.subject.pid());
        let Watched { done, ended_by, watch, heard, kernel, server_cpu, .. } =
            self.drive_watched(&shape, &progress, &witnesses)?;
        let (after, taken) = (HostCounters::now(), self.subject.process_use());
        phase(&Phase::CoolingDown);
        let readings = self.listener_readings(done.elapsed.saturating_sub(self.stream.warm_up));
        let busy = if self.cool_down && !done.interrupted { self.cool_down() } else { None };
        let workers = self.workers(&done);
        let new_workers = replaced(&workers, &family, &tree(self.subject.pid()));
        let taken = ServerUse {
            cpu: taken.cpu.zip(taken_before.cpu).map(|(after, before)| after.saturating_sub(before)),
            memory_bytes: taken.memory_bytes,
        };
        let mut run = Run {
            repeat: job.repeat,
            multiple: job.multiple,
            connections,
            measured: done.measured,
            elapsed: done.elapsed,
            workers,
            readings,
            watch,
            heard,
            anatomy: done.anatomy,
            kernel,
            forecast: None,
            theory: None,
            statistics: Some(Statistics::of(&done.tally, &done.batches, &PERCENTILES)),
            generator: GeneratorFacts {
                lanes: done.lanes.clone(),
                clock_steps: done.clock_steps,
                ceiling: job.ceiling,
                steal: after.steal_since(&before),
                listen_overflows: after.listen_overflows_since(&before),
                syn_retransmits: after.syn_retransmits_since(&before),
                server: server_cpu,
            },
            judgement: None,
            warnings: Vec::new(),
            tally: done.tally,
        };
        let known = service_time.unwrap_or_default();
        let cpu_rate = run.generator.server.as_ref().and_then(|cpu| cpu.maximum_rate(self.subject.facts.workers));
        run.forecast = queueing::closed_loop::forecast(connections, slots, known.time, known.source)
            .map(|forecast| queueing::closed_loop::on_cpus(forecast, connections, cpu_rate, run.completed_rate()));
        run.judgement = Some(verdict::of_run(&run, slots));
        run.warnings = doubts::of_run(&run, job.stream.keep_alive, self.subject.facts.placement.as_ref(), ended_by);
        run.warnings.extend(turns::of_run(&run, slots, job.stream.keep_alive));
        run.warnings.extend(busy);
        run.warnings.extend((new_workers > 0).then_some(Diagnostic::WorkersChanged { new: new_workers }));
        Ok((run, taken))
    }

    /// What the kernel still holds for the server right after the run.
    pub(crate) fn listener_readings(&self, at: Nanos) -> Vec<Reading> {
        let mut listener = self.subject.listener();
        let Ok(sockets) = listener.look() else { return Vec::new() };
        let reading = |name: &str, value: u32| Reading {
            source: listener.source().to_owned(),
            of: String::new(),
            name: name.to_owned(),
            unit: "connections".to_owned(),
            at,
            value: f64::from(value),
            staleness: Nanos::ZERO,
        };
        vec![reading("accept_queue_at_end", sockets.accept_queue), reading("open_at_end", sockets.open)]
    }

    /// Each worker's part.
    fn workers(&mut self, done: &DriveResult) -> Vec<WorkerShare> {
        let shares = if self.workers_name_themselves() {
            shares_by_header(&done.tally, &self.subject.workers)
        } else {
            let before = self.stats.take();
            self.stats = if done.interrupted { None } else { self.fresh_stats() };
            match (&before, &self.stats) {
                (Some(before), Some(after)) => {
                    let single = self.subject.workers.first().cloned().unwrap_or_default();
                    shares_between(before, after, &single)
                }
                _ => Vec::new(),
            }
        };
        self.welcome(&shares);
        shares
    }

    /// Makes workers known that are new.
    pub(crate) fn welcome(&mut self, shares: &[WorkerShare]) {
        let is_new = |share: &&WorkerShare| !self.subject.workers.contains(&share.worker);
        let new: Vec<String> = shares.iter().filter(is_new).map(|share| share.worker.clone()).collect();
        self.subject.workers.extend(new);
    }
}
