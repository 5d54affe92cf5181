//! One server's life: what is asked of it, run after run, and what it took; a sweep and a measurement of bodies alike.
//!
//! In which order runs are made is not decided here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError};

use engine::{Answer, Drive, Progress, Shape, drive};
use launch::Kept;
use model::forecast::{ServiceTime, ServiceTimeSource};
use model::run::PERCENTILES;
use model::{
    Caveat, Ceiling, Clock, GeneratorFacts, Nanos, Plan, Probe, Reading, Run, ServerKind, ServerPlan, ServerUse,
    Statistics, Stop, StreamPlan, SweepStudy, WorkerShare,
};
use model::{doubts, verdict};
use probe::host::Host;
use probe::processes::this_threads_cpu;
use probe::puma_stats::PumaStats;
use probe::sink_ledger;

use crate::calibrate::{Workshop, ceilings};
use crate::error::SweepError;
use crate::idle::wait_until_idle;
use crate::kernel::{self, Tracing};
use crate::ledger::{Accounts, Ledger, fresh_stats, shares_between, shares_by_header};
use crate::observer::{Observer, Phase};
use crate::subject::Subject;
use crate::tools::Tools;
use crate::turns;
use crate::watch::{poll_on, watch};
use crate::with::Account;
use crate::witnesses::{Watched, Witnesses};

/// Load of one connection to learn a service time that nobody has told us.
const LEARNING: Nanos = Nanos::from_secs(1);

/// Batches of requests that may wait to be joined with what the kernel saw.
const BATCHES: usize = 64;

/// How soon an interruption, or a server's death, is passed on to the lanes.
const GLANCE: Nanos = Nanos::from_millis(20);

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

/// One server's life within a study.
pub(crate) struct Session<'a, C> {
    pub(crate) server: &'a ServerPlan,
    pub(crate) stream: &'a StreamPlan,
    pub(crate) cool_down: bool,
    pub(crate) tools: &'a Tools<'a, C>,
    pub(crate) subject: Subject,
    /// Off the server's processors while this lasts, where there are others.
    kept: Option<Kept>,
    ledger: Ledger,
    /// The last fresh statistics: what the next run's are counted from.
    stats: Option<PumaStats>,
    /// Whether any request was left without an answer, so that the server may rightly have counted more.
    pub(crate) unanswered: bool,
    /// Bytes of content of all whole answers.
    pub(crate) body_bytes: u64,
    /// Of another generator's sweep: what the server had counted after its last run.
    pub(crate) account: Option<Account>,
}

impl<'a, C: Clock + Clone + Send + Sync> Session<'a, C> {
    pub(crate) fn new(
        server: &'a ServerPlan,
        stream: &'a StreamPlan,
        cool_down: bool,
        tools: &'a Tools<'a, C>,
        subject: Subject,
    ) -> Self {
        let mut ledger = Ledger::default();
        ledger.add_answer(subject.first_answer.worker.clone());
        let body_bytes = subject.first_answer.body_bytes;
        let kept = Kept::off_the_server(subject.facts.placement.as_ref());
        Session {
            server,
            stream,
            cool_down,
            tools,
            subject,
            kept,
            ledger,
            stats: None,
            unanswered: false,
            body_bytes,
            account: None,
        }
    }

    /// Whether the app names its worker in each answer, so that nobody need be asked.
    fn workers_name_themselves(&self) -> bool {
        self.subject.first_answer.worker.is_some()
    }

    /// A run of `stream` over so many connections.
    pub(crate) fn shape(&self, stream: &StreamPlan, connections: u32) -> Shape {
        let (measured, requests_per_connection) = match stream.stop {
            Stop::After(length) => (Some(length), None),
            Stop::RequestsPerConnection(n) => (None, Some(n)),
        };
        Shape {
            lanes: stream.lanes,
            timestamps: stream.timestamps,
            warm_up: stream.warm_up,
            measured,
            requests_per_connection,
            keep_alive: stream.keep_alive,
            timeout: stream.timeout,
            worker_header: stream.worker_header.clone(),
            reads_app_times: stream.anatomy,
            body_bytes: stream.body.map(model::Body::bytes),
            ..Shape::closed(
                self.subject.transport.clone(),
                self.subject.request(stream, stream.keep_alive),
                connections,
            )
        }
    }

    /// Drives one run.
    pub(crate) fn drive(&mut self, shape: &Shape, progress: &Progress) -> Result<Drive, SweepError> {
        Ok(self.drive_watched(shape, progress, &Witnesses::none())?.done)
    }

    /// As [`Session::drive`], and looks at server and kernel meanwhile, and listens to them, as `witnesses` says.
    pub(crate) fn drive_watched(
        &mut self,
        shape: &Shape,
        progress: &Progress,
        witnesses: &Witnesses<'_>,
    ) -> Result<Watched, SweepError> {
        let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let clock = &self.tools.clock;
        let port = self.subject.bind.address().map(|address| address.port());
        let port = port.filter(|_| witnesses.probe == Probe::Bpf);
        let traces = port.is_some() && shape.reads_app_times && shape.transport.tls.is_none();
        let shape = &Shape { traces, ..shape.clone() };
        let cpu_before = this_threads_cpu();
        let tracing = port.map(|port| Tracing::begin(port, self.subject.pid(), shape));
        let setup_cpu = this_threads_cpu().saturating_sub(cpu_before);
        let (journal, records) = traces.then(|| sync_channel(BATCHES)).unzip();
        let sight = (witnesses.probe != Probe::None).then(|| self.subject.sight());
        let control = self.subject.control.as_ref().filter(|_| sight.is_some());
        let single = self.subject.workers.first().map_or("", String::as_str);
        let looks = &*witnesses.looks;
        let (done, seen, heard, traced) = std::thread::scope(|scope| {
            scope.spawn(|| self.end_early(&stop, &over));
            let looking = sight.map(|sight| scope.spawn(|| sight.look_on(clock, &over, looks)));
            let polling = control.map(|control| scope.spawn(|| poll_on(control, clock, &over, (looks, single))));
            let hearing = witnesses.statsd.map(|hearing| {
                scope.spawn(|| {
                    let mut hearing = hearing.lock().unwrap_or_else(PoisonError::into_inner);
                    hearing.hear_on(clock, progress, shape.warm_up, &over)
                })
            });
            let is_over = &over;
            let trace = move |tracing: Tracing| tracing.go_on((shape, clock), progress, is_over, records.as_ref());
            let tracing = tracing.map(|begun| scope.spawn(move || begun.and_then(trace)));
            let done = drive(shape, clock, &stop, progress, journal.as_ref());
            over.store(true, Ordering::Relaxed);
            let seen = looking.map(|looking| looking.join().expect("looking never panics"));
            let seen = seen.map(|seen| (seen, polling.map(|polling| polling.join().expect("polling never panics"))));
            let heard = hearing.map(|hearing| hearing.join().expect("hearing never panics"));
            (done, seen, heard, tracing.map(|tracing| tracing.join().expect("tracing never panics")))
        });
        let done = done?;
        let mut watch = seen.map(|(seen, polled)| watch(seen, polled, done.start + shape.warm_up, single));
        let kernel = traced.and_then(|traced| kernel::view(traced, &done.tally, watch.as_mut()));
        self.ledger.add_run(&done.tally);
        self.body_bytes += done.tally.body_bytes;
        self.unanswered |= done.tally.all_answers() != done.tally.all_requests();
        Ok(Watched { done, watch, heard, kernel, setup_cpu })
    }

    /// An answer outside a run, of which this account knows.
    pub(crate) fn add_answer(&mut self, answer: &Answer) {
        self.ledger.add_answer(answer.worker.clone());
        self.body_bytes += answer.body_bytes;
    }

    /// What the generator alone reaches with each of these settings, on answers of so many bytes.
    pub(crate) fn ceilings(&self, shapes: &[Shape], answer_bytes: u64) -> Result<Vec<Option<Ceiling>>, SweepError> {
        let tools = self.tools;
        let shop = Workshop {
            clock: &tools.clock,
            guard: &tools.guard,
            program: &tools.program,
            dir: &tools.dir,
            interrupt: tools.interrupt,
            placement: self.kept.as_ref().and(self.subject.facts.placement.as_ref()),
        };
        ceilings(&shapes.iter().collect::<Vec<_>>(), answer_bytes, tools.ceilings, &shop)
    }

    /// Where workers' parts come from the statistics: what they say now, after all that came before the first run.
    pub(crate) fn take_baseline(&mut self) {
        if !self.workers_name_themselves() {
            self.stats = self.fresh_stats();
        }
    }

    pub(crate) fn fresh_stats(&self) -> Option<PumaStats> {
        let control = self.subject.control.as_ref()?;
        fresh_stats(control, &self.tools.clock, || self.tools.is_interrupted())
    }

    /// Ends the run where the user wants to, or where the server has died: its connections would be refused for ever.
    fn end_early(&self, stop: &AtomicBool, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            if self.tools.is_interrupted() || self.subject.has_ended() {
                stop.store(true, Ordering::Relaxed);
            }
            self.tools.clock.sleep(GLANCE);
        }
    }

    /// What is asked of a server before it is measured: its service time, where nobody has told it, and who waits for whom, where
    /// that was asked for and is not known yet.
    pub(crate) fn learn(
        &mut self,
        plan: &Plan,
        study: &mut SweepStudy,
        observer: &mut dyn Observer,
    ) -> Result<(), SweepError> {
        // What a body costs is work, which slots of one process do not share in as they share a wait.
        if study.service_time.is_none() && plan.stream.body.is_none() {
            observer.phase(&Phase::MeasuringServiceTime);
            let measured = |time| ServiceTime { time, source: ServiceTimeSource::Measured };
            study.service_time = self.learn_service_time()?.map(measured);
        }
        if plan.probe_discipline && study.probes.is_empty() {
            observer.phase(&Phase::Probing);
            study.probes = self.probes(study.service_time)?;
        }
        Ok(())
    }

    /// The median service time over one connection; `None` where nothing was answered.
    fn learn_service_time(&mut self) -> Result<Option<Nanos>, SweepError> {
        let mut shape = self.shape(self.stream, 1);
        shape.warm_up = LEARNING / 5;
        shape.measured = Some(LEARNING);
        shape.requests_per_connection = None;
        let done = self.drive(&shape, &Progress::new(1))?;
        self.cool_down();
        Ok(done.tally.service_time.quantile(0.5))
    }

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
        let progress = Arc::new(Progress::new(shape.lanes));
        let witnesses = Witnesses { probe: job.probe, looks: Arc::default(), statsd: self.tools.statsd };
        phase(&Phase::Running {
            number: job.number,
            of: job.of,
            what: job.what.clone(),
            connections,
            left: job.left(self.tools.clock.now()),
            length: shape.measured.map(|measured| measured + shape.warm_up),
            progress: Arc::clone(&progress),
            looks: Arc::clone(&witnesses.looks),
        });
        let (before, taken_before) = (Host::now(), self.subject.process_use());
        let Watched { done, watch, heard, kernel, .. } = self.drive_watched(&shape, &progress, &witnesses)?;
        let (after, taken) = (Host::now(), self.subject.process_use());
        phase(&Phase::CoolingDown);
        let readings = self.listener_readings(done.elapsed.saturating_sub(self.stream.warm_up));
        let busy = if self.cool_down && !done.interrupted { self.cool_down() } else { None };
        let (workers, new_workers) = self.workers(&done);
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
            forecast: service_time
                .and_then(|ServiceTime { time, source }| queueing::closed::forecast(connections, slots, time, source)),
            theory: None,
            statistics: Some(Statistics::of(&done.tally, &done.batches, &PERCENTILES)),
            generator: GeneratorFacts {
                lanes: done.lanes.clone(),
                clock_steps: done.clock_steps,
                ceiling: job.ceiling,
                steal: after.steal_since(&before),
                listen_overflows: after.listen_overflows_since(&before),
                syn_retransmits: after.syn_retransmits_since(&before),
            },
            judgement: None,
            caveats: Vec::new(),
            tally: done.tally,
        };
        run.judgement = Some(verdict::of_run(&run, slots));
        run.caveats = doubts::of_run(&run, job.stream.keep_alive, done.interrupted);
        run.caveats.extend(turns::of_run(&run, slots, job.stream.keep_alive));
        run.caveats.extend(busy);
        run.caveats.extend((new_workers > 0).then_some(Caveat::WorkersChanged { new: new_workers }));
        Ok((run, taken))
    }

    /// What the kernel still holds for the server right after the run.
    pub(crate) fn listener_readings(&self, at: Nanos) -> Vec<Reading> {
        let Ok(sockets) = self.subject.sockets() else { return Vec::new() };
        let reading = |name: &str, value: u32| Reading {
            source: self.subject.socket_table().to_owned(),
            of: String::new(),
            name: name.to_owned(),
            unit: "connections".to_owned(),
            at,
            value: f64::from(value),
            staleness: Nanos::ZERO,
        };
        vec![reading("accept_queue_at_end", sockets.accept_queue), reading("open_at_end", sockets.open)]
    }

    pub(crate) fn cool_down(&self) -> Option<Caveat> {
        wait_until_idle(|| self.subject.sockets(), &self.tools.clock, || self.tools.is_interrupted())
    }

    /// Each worker's part, and how many of them were not there before.
    fn workers(&mut self, done: &Drive) -> (Vec<WorkerShare>, u32) {
        let shares = if self.workers_name_themselves() {
            shares_by_header(&done.tally, &self.subject.workers)
        } else {
            let before = self.stats.take();
            let asked = self.subject.control.as_ref().filter(|_| !done.interrupted);
            self.stats =
                asked.and_then(|control| fresh_stats(control, &self.tools.clock, || self.tools.is_interrupted()));
            match (&before, &self.stats) {
                (Some(before), Some(after)) => {
                    let single = self.subject.workers.first().cloned().unwrap_or_default();
                    shares_between(before, after, &single)
                }
                _ => Vec::new(),
            }
        };
        let count = self.welcome(&shares);
        (shares, count)
    }

    /// Makes workers known that are new; how many of them were not there before.
    pub(crate) fn welcome(&mut self, shares: &[WorkerShare]) -> u32 {
        let is_new = |share: &&WorkerShare| !self.subject.workers.contains(&share.worker);
        let new: Vec<String> = shares.iter().filter(is_new).map(|share| share.worker.clone()).collect();
        let count = if self.subject.workers.is_empty() { 0 } else { new.len() as u32 };
        self.subject.workers.extend(new);
        count
    }

    /// Puts our account of this server's whole life beside its own: into the judgement of each of its runs, and into a
    /// caveat where they differ or cannot be compared.
    pub(crate) fn settle<'r>(&self, runs: impl Iterator<Item = &'r mut Run>) -> Option<Caveat> {
        match self.reconcile() {
            Ok(accounts) => {
                for run in runs {
                    run.judgement = run.judgement.take().map(|judgement| judgement.with(accounts.gate()));
                }
                accounts.caveat()
            }
            Err(Some(reason)) => Some(Caveat::LedgerUnknown { reason }),
            // The user did not want to wait for it.
            Err(None) => None,
        }
    }

    /// Our account of this server's whole life beside its own.
    ///
    /// # Errors
    /// Why the server's is not known; `None` where the user interrupted.
    fn reconcile(&self) -> Result<Accounts, Option<String>> {
        let unknown = |reason: &str| Err(Some(reason.to_owned()));
        if self.unanswered {
            return unknown("requests were left without an answer, and nobody knows which of them it had started");
        }
        if self.server.kind == ServerKind::Builtin
            && let Some(address) = self.subject.bind.address()
        {
            let server = sink_ledger::requests(address).map_err(|error| Some(error.to_string()))?;
            return Ok(self.ledger.beside(server));
        }
        if self.subject.control.is_none() {
            return unknown("this server has no statistics that longtail can read");
        }
        match self.fresh_stats() {
            Some(stats) => self.ledger.beside_puma(&stats).map_err(Some),
            None if self.tools.is_interrupted() => Err(None),
            None => unknown("its statistics did not become fresh"),
        }
    }
}
