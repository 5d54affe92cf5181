//! A [`Session`] is one server's life: it runs one job after the other, accounts for all requests,
//! and judges the runs. `conduct.rs` decides the order of jobs.

use std::sync::{Arc, Mutex};

use engine::{FetchedResponse, LoadSpec, RunProgress};
use judge::checks::RunSetting;
use judge::event::{EventForecast, forecast};
use judge::{Grade, ServerSeen, checks, verdict};
use launch::CpuRestriction;
use model::run::PERCENTILES;
use model::theory::{ClassAlone, ServiceTime};
use model::{
    Ceiling, Clock, Diagnostic, EndedBy, EventKind, GeneratorFacts, Nanos, PlannedEvent, Probe,
    Run, ServerUse, Stop, StreamPlan, Tally, Timing, WorkerShare,
};
use probe::processes::{memory_of_tree, tree};
use probe::puma_setup;
use probe::puma_stats::PumaStats;
use probe::sampler::Sampler;
use probe::sockets::ServerSockets;

use crate::block::Block;
use crate::boot::StartedServer;
use crate::ceiling::ceilings;
use crate::context::{Context, Observer, Phase, SweepError};
use crate::event::{EventOfRun, EventOrder, OwnServer};
use crate::observe::{ObservedRun, RunObservers, Sampling, drive_observed};
use crate::samples::{LiveReadings, SAMPLING};
use crate::server_count::{Ledger, fresh_stats, new_workers, shares_between, shares_by_header};
use crate::servers::under_test;
use crate::statsd::StatsdListener;

/// One run, and its place in the study.
#[derive(Clone)]
pub(crate) struct Job {
    /// Requests, stop condition, connection handling.
    pub(crate) stream: StreamPlan,
    /// What is read of server and kernel during the run.
    pub(crate) probe: Probe,
    /// A label, if the study's runs differ in more than their load; else empty.
    pub(crate) what: String,
    pub(crate) multiple: f64,
    pub(crate) connections: u32,
    pub(crate) ceiling: Option<Ceiling>,
    /// The run's number within the study, from 1.
    pub(crate) number: usize,
    /// How many runs the study has.
    pub(crate) of: usize,
    /// Connections of the runs after it, all together.
    pub(crate) later_connections: u64,
    /// Whether `of` is the most there may be: the study ends as soon as the result is clear.
    pub(crate) may_end_early: bool,
}

impl Job {
    /// The phase to show while this run goes on.
    pub(crate) fn phase(
        &self,
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
            later_connections: self.later_connections,
            // `time_left.rs` fills it in.
            left: None,
            may_end_early: self.may_end_early,
            progress,
            live: Arc::clone(live),
        }
    }
}

/// How often the server is checked for open connections after a run.
const IDLE_STEP: Nanos = Nanos::from_millis(10);
/// The next run starts after this time even if the server is still busy.
const LONGEST_WAIT: Nanos = Nanos::from_secs(60);

/// What is observed during a run; by default nothing.
#[derive(Default)]
pub(crate) struct Watching<'a> {
    pub(crate) probe: Probe,
    /// Where the last samples are shown.
    pub(crate) live: Arc<LiveReadings>,
    /// Receives the app's statsd metrics.
    pub(crate) statsd: Option<&'a Mutex<StatsdListener>>,
}

/// A run that is over but not judged yet, and what it cost.
pub(crate) struct FinishedRun {
    pub(crate) run: Run,
    pub(crate) server: ServerUse,
    /// CPU time that this process used.
    pub(crate) own_cpu: Nanos,
}

/// A server and the account of all requests that it was sent.
pub(crate) struct Session<'a> {
    pub(crate) block: &'a Block,
    pub(crate) context: &'a Context<'a>,
    pub(crate) server: StartedServer,
    /// Is told what is going on.
    pub(crate) observer: &'a mut dyn Observer,
    /// Keeps this thread off the server's CPUs, if there are others.
    restriction: Option<CpuRestriction>,
    pub(crate) ledger: Ledger,
    /// Puma's statistics after the last run; the next run's counts are the difference to these.
    pub(crate) stats: Option<PumaStats>,
    /// Requests without a response. The server may rightly have counted them or not.
    pub(crate) unanswered: u64,
    /// Bytes of content of all whole responses.
    pub(crate) body_bytes: u64,
    /// Visits so far, in each of which the requests of a mix are drawn anew.
    pub(crate) visits: u64,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        block: &'a Block,
        context: &'a Context<'a>,
        server: StartedServer,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let restriction = CpuRestriction::off_the_server(server.facts.placement.as_ref());
        let mut session = Session {
            block,
            context,
            server,
            observer,
            restriction,
            ledger: Ledger::default(),
            stats: None,
            unanswered: 0,
            body_bytes: 0,
            visits: 0,
        };
        session.add_response(&session.server.first_response.clone());
        session
    }

    /// Whether each response names its worker, so that Puma's statistics are not needed.
    fn workers_name_themselves(&self) -> bool {
        self.server.first_response.worker.is_some()
    }

    /// The load that a run of `stream` over this many connections sends.
    pub(crate) fn shape(&self, stream: &StreamPlan, connections: u32) -> LoadSpec {
        let (measured, requests_per_connection) = match stream.stop {
            Stop::After(length) => (Some(length), None),
            Stop::RequestsPerConnection(n) => (None, Some(n)),
        };
        let request = self.server.request(stream, stream.keep_alive);
        let spec = LoadSpec {
            load: stream.settings(self.block.pace.clone(), connections),
            measured,
            requests_per_connection,
            worker_header: stream.worker_header.clone(),
            reads_app_times: stream.reads_app_times,
            body_bytes: stream.body.map(model::Body::bytes),
            ..LoadSpec::closed(self.server.transport.clone(), request, connections)
        };
        match &self.server.mix {
            Some(mix) if stream.mix.is_some() => LoadSpec { requests: Arc::clone(mix), ..spec },
            Some(_) | None => spec,
        }
    }

    /// Sends one run's load, observes server and kernel meanwhile, and adds the requests to the
    /// account.
    pub(crate) fn drive(
        &mut self,
        shape: &LoadSpec,
        progress: &RunProgress,
        watching: &Watching<'_>,
    ) -> Result<ObservedRun<EndedBy>, SweepError> {
        let Session { context, server, .. } = &*self;
        let order = self.event_order(shape.measured);
        let own = OwnServer { server: &server.server, guard: &context.guard };
        let event = order.as_ref().map(|order| EventOfRun { order, own: Some(own) });
        let is_started_again =
            order.as_ref().is_some_and(|order| order.planned.kind == EventKind::StopStart);
        // A dead server would refuse connections for ever.
        let mut ends = || {
            if context.is_interrupted() {
                Some(EndedBy::User)
            } else {
                (server.has_ended() && !is_started_again).then_some(EndedBy::Server)
            }
        };
        let observation = RunObservers {
            ends: &mut ends,
            loses_requests: |by| *by == EndedBy::Server,
            serving: &[server.pid()],
            placement: server.facts.placement.as_ref(),
            statsd: watching.statsd,
            journal: None,
            sampling: sampling(server, watching),
            event,
            tells_steps: false,
            percentiles: &PERCENTILES,
        };
        let mut observed =
            drive_observed(shape, &context.clock, context.far, progress, observation)?;
        if let Some(server) = observed.started_again.take() {
            self.server.server = server;
        }
        let tally = &observed.run.tally;
        self.ledger.add_run(tally);
        self.body_bytes += tally.body_bytes;
        self.unanswered += tally.all_requests().saturating_sub(tally.all_responses());
        // Once the measured time is over, only the last responses are missing, and counted as such.
        let is_shorter = shape.measured.is_none_or(|planned| observed.run.measured < planned);
        let ended_by = observed
            .ended_by
            .filter(|by| observed.interrupted && (is_shorter || *by == EndedBy::Server));
        Ok(ObservedRun { ended_by, ..observed })
    }

    /// The event of this server's runs.
    fn event_order(&self, window: Option<Nanos>) -> Option<EventOrder> {
        let planned = self.block.during.clone()?;
        Some(EventOrder {
            at: planned.at.or(window.map(|window| window / 3)).unwrap_or_default(),
            planned,
            roots: vec![self.server.pid()],
            place: self.server.reached.bind.place.clone(),
            control: self.server.reached.control.clone(),
        })
    }

    /// Says what the server will not do on such an event, before any load.
    ///
    /// # Errors
    /// If it cannot be done to this server.
    pub(crate) fn check_event(&mut self, event: &PlannedEvent) -> Result<(), SweepError> {
        let output = self.server.server.output();
        let setup = puma_setup::of_output(self.server.pid(), output.lines());
        match forecast(&event.kind, setup.as_ref()) {
            EventForecast::AsAsked => Ok(()),
            EventForecast::Otherwise(note) => {
                self.observer.remark(&note);
                Ok(())
            }
            EventForecast::Refused(why) => Err(SweepError::Unusable(why)),
        }
    }

    /// Announces a run to the observer and does it.
    pub(crate) fn run(
        &mut self,
        job: &Job,
        service_time: Option<ServiceTime>,
    ) -> Result<FinishedRun, SweepError> {
        let progress = Arc::new(self.context.progress(&self.shape(&job.stream, job.connections)));
        let watching =
            Watching { probe: job.probe, live: Arc::default(), statsd: self.context.statsd };
        self.observer.phase(&job.phase(Some(Arc::clone(&progress)), &watching.live));
        self.measure(job, service_time, &progress, &watching)
    }

    /// Does a run that the observer was told of already: sends its load, waits until the server is
    /// idle, and collects all that is known of the run except the server's own count.
    pub(crate) fn measure(
        &mut self,
        job: &Job,
        service_time: Option<ServiceTime>,
        progress: &RunProgress,
        watching: &Watching<'_>,
    ) -> Result<FinishedRun, SweepError> {
        let shape = self.shape(&job.stream, job.connections);
        let processes = tree(self.server.pid());
        let ObservedRun { run, ended_by, interrupted, own_cpu, .. } =
            self.drive(&shape, progress, watching)?;
        let memory_bytes = memory_of_tree(self.server.pid());
        self.observer.phase(&Phase::CoolingDown);
        let still_busy = if self.block.cool_down && !interrupted { self.cool_down() } else { None };
        let workers = self.worker_shares(&run.tally, interrupted);
        let new = new_workers(&workers, &processes, &tree(self.server.pid()));
        let server = ServerUse { cpu: cpu_of_all(&run, &processes), memory_bytes };
        let mut run = Run {
            repeat: self.block.repeat,
            multiple: Some(job.multiple),
            workers,
            generator: GeneratorFacts { ceiling: job.ceiling, ..run.generator },
            ..run
        };
        self.add_expectations(&mut run, job, service_time, ended_by);
        run.warnings.extend(still_busy);
        if new > 0 && run.event.is_none() {
            run.warnings.push(Diagnostic::WorkersChanged { new });
        }
        Ok(FinishedRun { run, server, own_cpu })
    }

    /// Adds the forecast, in a closed loop, and the warnings that do not need the server's own
    /// count.
    fn add_expectations(
        &self,
        run: &mut Run,
        job: &Job,
        service_time: Option<ServiceTime>,
        ended_by: Option<EndedBy>,
    ) {
        let facts = &self.server.facts;
        let keep_alive = job.stream.keep_alive;
        let setting = RunSetting { keep_alive, placement: facts.placement.as_ref(), ended_by };
        if self.block.pace.is_open() {
            run.warnings = checks::warnings_of_load(run, &self.block.pace, setting);
            return;
        }
        self.forecast(run, service_time.unwrap_or_default());
        let turns = checks::served_in_turns(run, facts, keep_alive, service_time.as_ref());
        run.warnings = checks::warnings_of_run(run, setting);
        run.warnings.extend(turns);
    }

    /// Adds what theory expects of a closed loop.
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

    /// How many requests each worker served: by the name in its responses, else by Puma's
    /// statistics.
    fn worker_shares(&mut self, tally: &Tally, interrupted: bool) -> Vec<WorkerShare> {
        let shares = if self.workers_name_themselves() {
            shares_by_header(tally, &self.server.workers)
        } else {
            let before = self.stats.take().filter(|_| self.block.during.is_none());
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

    /// Adds workers that were not known yet.
    pub(crate) fn register_workers(&mut self, shares: &[WorkerShare]) {
        let is_new = |share: &&WorkerShare| !self.server.workers.contains(&share.worker);
        let new: Vec<String> =
            shares.iter().filter(is_new).map(|share| share.worker.clone()).collect();
        self.server.workers.extend(new);
    }

    /// Adds a response to a request outside of any run to the account.
    pub(crate) fn add_response(&mut self, response: &FetchedResponse) {
        self.ledger.add_response(response.worker.clone());
        self.body_bytes += response.body_bytes;
    }

    /// Measures what the generator alone reaches with each of these loads, on responses of this
    /// size.
    pub(crate) fn ceilings(
        &self,
        shapes: &[LoadSpec],
        response_bytes: u64,
    ) -> Result<Vec<Option<Ceiling>>, SweepError> {
        let placement = self.restriction.as_ref().and(self.server.facts.placement.as_ref());
        ceilings(shapes, response_bytes, placement, self.context)
    }

    /// Reads Puma's statistics before the first run, if the workers' shares are to come from them.
    pub(crate) fn take_baseline(&mut self) {
        if !self.workers_name_themselves() {
            self.stats = self.fresh_stats();
        }
    }

    /// Puma's statistics, not older than now; `None` if it has none or was too slow.
    pub(crate) fn fresh_stats(&self) -> Option<PumaStats> {
        let control = self.server.reached.control.as_ref()?;
        fresh_stats(control, &self.context.clock, self.context.interrupt)
    }

    /// Waits until the server has no connections, at most [`LONGEST_WAIT`].
    ///
    /// After a run all our connections are closed. The server is idle once it has closed its ends
    /// too: in every server and version a request that it works on, or has not accepted yet, keeps
    /// its socket open.
    pub(crate) fn cool_down(&self) -> Option<Diagnostic> {
        let clock = &self.context.clock;
        let mut listener = self.server.listener();
        let start = clock.now();
        loop {
            // If the kernel lists no sockets, don't wait.
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
    /// Judges the runs of this server: by their own figures and, if all of its runs are done
    /// (`is_whole`), by comparing our count of requests with the server's. `alone` is the time of
    /// one request alone, and `classes_alone` that of each class of a mix, if known. Returns a
    /// warning if the counts differ or cannot be compared.
    pub(crate) fn judge<'r>(
        &self,
        runs: impl IntoIterator<Item = &'r mut Run>,
        is_whole: bool,
        alone: Option<ServiceTime>,
        classes_alone: &[ClassAlone],
    ) -> Option<Diagnostic> {
        // A user who interrupts does not want to wait for the server's count.
        let account = if is_whole { self.reconcile() } else { Err(None) };
        let facts = &self.server.facts;
        let classes_alone = classes_alone.to_vec();
        let server = ServerSeen {
            classes_alone,
            ..ServerSeen::of(facts, self.block.stream.keep_alive, alone)
        };
        for run in runs.into_iter().filter(|run| run.claim.is_none()) {
            let judgement = if self.block.pace.is_open() {
                verdict::of_open_loop(run, &self.block.pace, Timing::default())
            } else {
                verdict::of_run(run, &server)
            };
            run.judgement = Some(match &account {
                Ok(check) => verdict::with_check(judgement, check.clone()),
                Err(_) => judgement,
            });
        }
        match account {
            Ok(check) => (judge::grade(&check) > Grade::Passed).then_some(check),
            Err(known) => known,
        }
    }

    /// Compares our count of this server's requests with its own.
    ///
    /// # Errors
    /// If the two cannot be compared: what is known instead; `None` if the user interrupted.
    fn reconcile(&self) -> Result<Diagnostic, Option<Diagnostic>> {
        let unknown = |reason: String| Diagnostic::LedgerUnknown { reason };
        let compared = self.compared_count().map_err(|reason| reason.map(unknown))?;
        if self.unanswered == 0 {
            return Ok(compared);
        }
        let unanswered = self.unanswered;
        match compared {
            Diagnostic::Conservation { worker: None, client, server }
                if (client..=client + unanswered).contains(&server) =>
            {
                Err(Some(Diagnostic::ServedForNobody { served: server - client, unanswered }))
            }
            _ => Err(Some(unknown(
                "some requests got no response, so it may have counted more".to_owned(),
            ))),
        }
    }

    /// The server's own count beside ours.
    ///
    /// # Errors
    /// Why the server's count is not known; `None` if the user interrupted.
    fn compared_count(&self) -> Result<Diagnostic, Option<String>> {
        let unknown = |reason: &str| Err(Some(reason.to_owned()));
        if self.block.during.is_some() {
            return unknown("processes that ended in the event took their counts with them");
        }
        if let Some(counted) = under_test(&self.block.server).ledger(&self.server.reached) {
            return Ok(self.ledger.compare_with(counted.map_err(Some)?));
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

/// What is read of server and kernel during a run; `None` for `--inspect none`.
fn sampling<'a>(server: &'a StartedServer, watching: &'a Watching<'_>) -> Option<Sampling<'a>> {
    let tcp = server.reached.bind.place.tcp();
    let traced = match watching.probe {
        Probe::None => return None,
        Probe::Bpf => tcp.map(|address| (address.port(), server.pid())),
        Probe::Auto | Probe::Proc => None,
    };
    Some(Sampling {
        sampler: Sampler::new(server.listener(), &[server.pid()], None, SAMPLING),
        control: server.reached.control.as_ref(),
        single: server.workers.first().map_or("", String::as_str),
        traced,
        live: &watching.live,
    })
}

/// CPU time of all these processes; `None` if one of them ended during the run.
fn cpu_of_all(run: &Run, processes: &[u32]) -> Option<Nanos> {
    let cpu = run.generator.server.as_ref()?;
    let is_known = |pid: &u32| cpu.processes.iter().any(|process| process.pid == *pid);
    if !processes.iter().all(is_known) {
        return None;
    }
    Some(cpu.processes.iter().map(|process| process.cpu).sum())
}
