//! One server's life ([`Session`]): its runs, one after the other, and what each took. `conduct.rs`
//! decides their order.

use std::sync::{Arc, Mutex};

use engine::{FetchedResponse, LoadSpec, RunProgress};
use judge::checks::RunSetting;
use judge::{Grade, ServerSeen, checks, verdict};
use launch::CpuRestriction;
use model::run::PERCENTILES;
use model::theory::ServiceTime;
use model::{
    Ceiling, Clock, Diagnostic, EndedBy, GeneratorFacts, Nanos, Probe, Run, ServerKind, ServerUse,
    Stop, StreamPlan, Tally, Timing, WorkerShare,
};
use probe::control;
use probe::processes::{memory_of_tree, tree};
use probe::puma_stats::PumaStats;
use probe::sampler::Sampler;
use probe::sockets::ServerSockets;

use crate::ceiling::ceilings;
use crate::context::{Context, Observer, Phase, SweepError};
use crate::observe::{ObservedRun, RunObservers, Sampling, drive_observed};
use crate::samples::{LiveReadings, SAMPLING};
use crate::server::{Block, ServerUnderTest};
use crate::server_count::{Ledger, fresh_stats, replaced, shares_between, shares_by_header};
use crate::statsd::StatsdListener;

/// One run, and its place in the study.
#[derive(Clone)]
pub(crate) struct Job {
    /// What is asked.
    pub(crate) stream: StreamPlan,
    /// What is read of server and kernel meanwhile.
    pub(crate) probe: Probe,
    /// That in a word, where the study's runs differ in it.
    pub(crate) what: String,
    pub(crate) multiple: f64,
    pub(crate) connections: u32,
    pub(crate) ceiling: Option<Ceiling>,
    /// Which of the study's runs, from 1.
    pub(crate) number: usize,
    pub(crate) of: usize,
    /// When the study began.
    pub(crate) begun: Nanos,
    /// Whether `of` is the most there may be: the study ends when its answer is clear.
    pub(crate) may_end_early: bool,
}

impl Job {
    /// How long the study will take from `now` on: as long for each run as for those that are done,
    /// with all that lies between; before there is one, as long as was asked for, or not known
    /// where each run has to start a server too.
    fn left(&self, now: Nanos) -> Option<Nanos> {
        let (done, left) = (self.number as u64 - 1, (self.of - self.number) as u64 + 1);
        match (self.stream.stop, done) {
            (_, 0) if self.may_end_early => None,
            (Stop::After(length), 0) => Some((length + self.stream.warm_up) * left),
            (Stop::RequestsPerConnection(_), 0) => None,
            _ => Some((now - self.begun) / done * left),
        }
    }

    /// The run begins `now`.
    pub(crate) fn phase(
        &self,
        now: Nanos,
        progress: Option<Arc<RunProgress>>,
        live: &Arc<LiveReadings>,
    ) -> Phase {
        Phase::Running {
            number: self.number,
            of: self.of,
            what: self.what.clone(),
            connections: self.connections,
            length: match self.stream.stop {
                Stop::After(length) => Some(length + self.stream.warm_up),
                Stop::RequestsPerConnection(_) => None,
            },
            left: self.left(now),
            may_end_early: self.may_end_early,
            progress,
            live: Arc::clone(live),
        }
    }
}

/// Between two looks whether the server is idle.
const IDLE_STEP: Nanos = Nanos::from_millis(10);
/// A server that is busy longer than this after a run is not waited for.
const LONGEST_WAIT: Nanos = Nanos::from_secs(60);

/// What is read and statsd while a run goes on; by default nothing.
#[derive(Default)]
pub(crate) struct Watching<'a> {
    pub(crate) probe: Probe,
    /// Where the last samples are shown.
    pub(crate) live: Arc<LiveReadings>,
    /// Who listens to statsd.
    pub(crate) statsd: Option<&'a Mutex<StatsdListener>>,
}

/// A run that is over and not judged, and what it took.
pub(crate) struct FinishedRun {
    pub(crate) run: Run,
    pub(crate) server: ServerUse,
    /// CPU time of this process.
    pub(crate) own_cpu: Nanos,
}

/// One server's life within a study.
pub(crate) struct Session<'a> {
    pub(crate) block: &'a Block,
    pub(crate) context: &'a Context<'a>,
    pub(crate) server: ServerUnderTest,
    /// Learns what is going on.
    pub(crate) observer: &'a mut dyn Observer,
    /// Off the server's processors while this lasts, where there are others.
    kept: Option<CpuRestriction>,
    pub(crate) ledger: Ledger,
    /// What the server had counted after the last run: what the next run's part is counted from.
    pub(crate) stats: Option<PumaStats>,
    /// Whether any request was left without an answer, so that the server may rightly have counted
    /// more.
    pub(crate) unanswered: bool,
    /// Bytes of content of all whole answers.
    pub(crate) body_bytes: u64,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        block: &'a Block,
        context: &'a Context<'a>,
        server: ServerUnderTest,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let kept = CpuRestriction::off_the_server(server.facts.placement.as_ref());
        let mut session = Session {
            block,
            context,
            server,
            observer,
            kept,
            ledger: Ledger::default(),
            stats: None,
            unanswered: false,
            body_bytes: 0,
        };
        session.add_answer(&session.server.first_answer.clone());
        session
    }

    /// Whether the app names its worker in each answer, so that nobody need be asked.
    fn workers_name_themselves(&self) -> bool {
        self.server.first_answer.worker.is_some()
    }

    /// A run of `stream` over so many connections.
    pub(crate) fn shape(&self, stream: &StreamPlan, connections: u32) -> LoadSpec {
        let (measured, requests_per_connection) = match stream.stop {
            Stop::After(length) => (Some(length), None),
            Stop::RequestsPerConnection(n) => (None, Some(n)),
        };
        let request = self.server.request(stream, stream.keep_alive);
        LoadSpec {
            pace: self.block.pace.clone(),
            lanes: stream.lanes,
            timestamps: stream.timestamps,
            warm_up: stream.warm_up,
            measured,
            requests_per_connection,
            keep_alive: stream.keep_alive,
            timeout: stream.timeout,
            worker_header: stream.worker_header.clone(),
            reads_app_times: stream.reads_app_times,
            body_bytes: stream.body.map(model::Body::bytes),
            ..LoadSpec::closed(self.server.transport.clone(), request, connections)
        }
    }

    /// Drives one run, watches server and kernel meanwhile, and accounts for it.
    pub(crate) fn drive(
        &mut self,
        shape: &LoadSpec,
        progress: &RunProgress,
        watching: &Watching<'_>,
    ) -> Result<ObservedRun<EndedBy>, SweepError> {
        let Session { context, server, .. } = &*self;
        let probe = watching.probe;
        let port = server
            .reached
            .bind
            .place
            .tcp()
            .map(|address| address.port())
            .filter(|_| probe == Probe::Bpf);
        let sampling = (probe != Probe::None).then(|| Sampling {
            sampler: Sampler::new(server.listener(), &[server.pid()], None, SAMPLING),
            control: server.reached.control.as_ref(),
            single: server.workers.first().map_or("", String::as_str),
            traced: port.map(|port| (port, server.pid())),
            live: &watching.live,
        });
        // Where the server has died, its connections would be refused for ever.
        let mut ends = || {
            let server = || server.has_ended().then_some(EndedBy::Server);
            context.is_interrupted().then_some(EndedBy::User).or_else(server)
        };
        let observation = RunObservers {
            ends: &mut ends,
            loses_requests: |by| *by == EndedBy::Server,
            serving: &[server.pid()],
            placement: server.facts.placement.as_ref(),
            statsd: watching.statsd,
            journal: None,
            sampling,
            percentiles: &PERCENTILES,
        };
        let observed = drive_observed(shape, &context.clock, context.far, progress, observation)?;
        let tally = &observed.run.tally;
        self.ledger.add_run(tally);
        self.body_bytes += tally.body_bytes;
        self.unanswered |= tally.all_answers() != tally.all_requests();
        let ended_by = observed.ended_by.filter(|_| observed.interrupted);
        Ok(ObservedRun { ended_by, ..observed })
    }

    /// Does one run, and listens to statsd meanwhile where the context does.
    pub(crate) fn run(
        &mut self,
        job: &Job,
        service_time: Option<ServiceTime>,
    ) -> Result<FinishedRun, SweepError> {
        let progress = Arc::new(self.context.progress(&self.shape(&job.stream, job.connections)));
        let watching =
            Watching { probe: job.probe, live: Arc::default(), statsd: self.context.statsd };
        let now = self.context.clock.now();
        self.observer.phase(&job.phase(now, Some(Arc::clone(&progress)), &watching.live));
        self.measure(job, service_time, &progress, &watching)
    }

    /// As [`Session::run`], of which the observer was told already.
    pub(crate) fn measure(
        &mut self,
        job: &Job,
        service_time: Option<ServiceTime>,
        progress: &RunProgress,
        watching: &Watching<'_>,
    ) -> Result<FinishedRun, SweepError> {
        let slots = self.server.facts.slots();
        let shape = self.shape(&job.stream, job.connections);
        let family = tree(self.server.pid());
        let ObservedRun { run, ended_by, interrupted, own_cpu, .. } =
            self.drive(&shape, progress, watching)?;
        let memory_bytes = memory_of_tree(self.server.pid());
        self.observer.phase(&Phase::CoolingDown);
        let busy = if self.block.cool_down && !interrupted { self.cool_down() } else { None };
        let workers = self.worker_shares(&run.tally, interrupted);
        let new_workers = replaced(&workers, &family, &tree(self.server.pid()));
        // Not known where one of its processes has gone with what it had.
        let server_cpu = run.generator.server.as_ref();
        let whole = server_cpu.filter(|cpu| {
            family.iter().all(|pid| cpu.processes.iter().any(|process| process.pid == *pid))
        });
        let cpu = whole.map(|cpu| cpu.processes.iter().map(|process| process.cpu).sum());
        let mut run = Run {
            repeat: self.block.repeat,
            multiple: Some(job.multiple),
            workers,
            generator: GeneratorFacts { ceiling: job.ceiling, ..run.generator },
            ..run
        };
        let (keep_alive, placement) = (job.stream.keep_alive, self.server.facts.placement.as_ref());
        let setting = RunSetting { keep_alive, placement, ended_by };
        if self.block.pace.is_open() {
            run.warnings = checks::warnings_of_load(&run, &self.block.pace, setting);
        } else {
            self.forecast(&mut run, service_time.unwrap_or_default());
            run.warnings = checks::warnings_of_run(&run, setting);
            run.warnings.extend(checks::served_in_turns(
                &run,
                slots,
                keep_alive,
                service_time.as_ref(),
            ));
        }
        run.warnings.extend(busy);
        run.warnings
            .extend((new_workers > 0).then_some(Diagnostic::WorkersChanged { new: new_workers }));
        Ok(FinishedRun { run, server: ServerUse { cpu, memory_bytes }, own_cpu })
    }

    /// What a closed loop ought to have come to.
    fn forecast(&self, run: &mut Run, known: ServiceTime) {
        let facts = &self.server.facts;
        let cpu_rate =
            run.generator.server.as_ref().and_then(|cpu| cpu.maximum_rate(facts.workers));
        run.forecast = queueing::closed_loop::forecast(run.connections, facts.slots(), known.mean)
            .map(|forecast| {
                queueing::closed_loop::on_cpus(
                    forecast,
                    run.connections,
                    cpu_rate,
                    run.completed_rate(),
                )
            });
    }

    /// Each worker's part.
    fn worker_shares(&mut self, tally: &Tally, interrupted: bool) -> Vec<WorkerShare> {
        let shares = if self.workers_name_themselves() {
            shares_by_header(tally, &self.server.workers)
        } else {
            let before = self.stats.take();
            self.stats = if interrupted || before.is_none() { None } else { self.fresh_stats() };
            match (&before, &self.stats) {
                (Some(before), Some(after)) => {
                    let single = self.server.workers.first().cloned().unwrap_or_default();
                    shares_between(before, after, &single)
                }
                _ => Vec::new(),
            }
        };
        self.register_workers(&shares);
        shares
    }

    /// Makes workers known that are new.
    pub(crate) fn register_workers(&mut self, shares: &[WorkerShare]) {
        let is_new = |share: &&WorkerShare| !self.server.workers.contains(&share.worker);
        let new: Vec<String> =
            shares.iter().filter(is_new).map(|share| share.worker.clone()).collect();
        self.server.workers.extend(new);
    }

    /// An answer outside a run, of which this account knows.
    pub(crate) fn add_answer(&mut self, answer: &FetchedResponse) {
        self.ledger.add_answer(answer.worker.clone());
        self.body_bytes += answer.body_bytes;
    }

    /// What the generator alone reaches with each of these settings, on answers of so many bytes.
    pub(crate) fn ceilings(
        &self,
        shapes: &[LoadSpec],
        answer_bytes: u64,
    ) -> Result<Vec<Option<Ceiling>>, SweepError> {
        let placement = self.kept.as_ref().and(self.server.facts.placement.as_ref());
        ceilings(shapes, answer_bytes, placement, self.context)
    }

    /// Where workers' parts come from the statistics: what they say now, after all that came before
    /// the first run.
    pub(crate) fn take_baseline(&mut self) {
        if !self.workers_name_themselves() {
            self.stats = self.fresh_stats();
        }
    }

    pub(crate) fn fresh_stats(&self) -> Option<PumaStats> {
        let control = self.server.reached.control.as_ref()?;
        fresh_stats(control, &self.context.clock, self.context.interrupt)
    }

    /// Waits until nobody is connected to the server any more, a minute at the longest: never by a
    /// fixed sleep.
    ///
    /// After a run all our connections are closed. The server is idle when it has closed its ends
    /// of them too: a request that it still works on, or has not accepted yet, keeps its socket
    /// open, in every server and version.
    pub(crate) fn cool_down(&self) -> Option<Diagnostic> {
        let (clock, mut listener) = (&self.context.clock, self.server.listener());
        let start = clock.now();
        loop {
            // Where the kernel does not tell, nothing can be said, and nothing is.
            let sockets: ServerSockets = listener.sample().ok()?;
            if sockets.is_idle() || self.context.is_interrupted() {
                return None;
            }
            let waited = clock.now() - start;
            if waited >= LONGEST_WAIT {
                let what = format!(
                    "{} connections open, {} of them not accepted",
                    sockets.open, sockets.accept_queue
                );
                return Some(Diagnostic::StillBusy { waited, what });
            }
            clock.sleep(IDLE_STEP);
        }
    }
}

impl Session<'_> {
    /// Judges runs of this server, once: by their own figures and, where the server's own count is
    /// there for all of them (`is_whole`), by our account of its whole life beside its own. `alone`:
    /// what one request takes alone, where that is known. Returns
    /// a warning where the two differ or cannot be compared.
    pub(crate) fn judge<'r>(
        &self,
        runs: impl IntoIterator<Item = &'r mut Run>,
        is_whole: bool,
        alone: Option<ServiceTime>,
    ) -> Option<Diagnostic> {
        // The user who interrupts does not want to wait for it.
        let account = if is_whole { self.reconcile() } else { Err(None) };
        let facts = &self.server.facts;
        let server = ServerSeen::stated(facts.slots(), facts.workers, alone);
        for run in runs.into_iter().filter(|run| run.claim.is_none()) {
            let judgement = if self.block.pace.is_open() {
                verdict::of_open_loop(run, &self.block.pace, Timing::default())
            } else {
                verdict::of_run(run, &server)
            };
            run.judgement = Some(account.clone().into_iter().fold(judgement, verdict::with_check));
        }
        match account {
            Ok(check) => (judge::grade(&check) > Grade::Passed).then_some(check),
            Err(reason) => reason.map(|reason| Diagnostic::LedgerUnknown { reason }),
        }
    }

    /// Our account of this server's whole life beside its own.
    ///
    /// # Errors
    /// Why the server's is not known; `None` where the user interrupted.
    fn reconcile(&self) -> Result<Diagnostic, Option<String>> {
        let unknown = |reason: &str| Err(Some(reason.to_owned()));
        if self.unanswered {
            return unknown(
                "requests were left without an answer, and nobody knows which of them it had started",
            );
        }
        if self.block.server.kind == ServerKind::Builtin
            && let Some(address) = self.server.reached.bind.place.tcp()
        {
            let server = control::sink_requests(address).map_err(Some)?;
            return Ok(self.ledger.compare_with(server));
        }
        if self.server.reached.control.is_none() {
            return unknown("this server has no statistics that longtail can read");
        }
        match self.fresh_stats() {
            Some(stats) => {
                let first = self.server.workers.len().min(self.server.facts.workers as usize);
                self.ledger.compare_with_puma(&stats, &self.server.workers[..first]).map_err(Some)
            }
            None if self.context.is_interrupted() => Err(None),
            None => unknown("its statistics did not become fresh"),
        }
    }
}
