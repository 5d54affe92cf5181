//! One server's life: what is asked of it, run after run, and what it took; a sweep and a measurement of bodies alike.
//!
//! How a run is driven: `session/drive.rs`; what comes of it: `session/run.rs`; the account at the end: `session/settle.rs`. In which
//! order runs are made is not decided here.

mod drive;
mod run;
mod settle;

use engine::{DriveResult, FetchedResponse, LoadSpec, RunProgress};
use launch::CpuRestriction;
use model::forecast::{ServiceTime, ServiceTimeSource};
use model::{Ceiling, Clock, Diagnostic, Nanos, Plan, ServerPlan, Stop, StreamPlan, SweepStudy};
use probe::puma_stats::PumaStats;

pub(crate) use self::run::Job;
use crate::calibrate::{Workshop, ceilings};
use crate::error::SweepError;
use crate::idle::wait_until_idle;
use crate::ledger::{Ledger, fresh_stats};
use crate::observer::{Observer, Phase};
use crate::subject::Subject;
use crate::tools::Tools;
use crate::with::Account;
use crate::witnesses::{Watched, Witnesses};

/// Load of one connection to learn a service time that nobody has told us.
const LEARNING: Nanos = Nanos::from_secs(1);

/// One server's life within a study.
pub(crate) struct Session<'a, C> {
    pub(crate) server: &'a ServerPlan,
    pub(crate) stream: &'a StreamPlan,
    pub(crate) cool_down: bool,
    pub(crate) tools: &'a Tools<'a, C>,
    pub(crate) subject: Subject,
    /// Off the server's processors while this lasts, where there are others.
    kept: Option<CpuRestriction>,
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
        let kept = CpuRestriction::off_the_server(subject.facts.placement.as_ref());
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
    pub(crate) fn shape(&self, stream: &StreamPlan, connections: u32) -> LoadSpec {
        let (measured, requests_per_connection) = match stream.stop {
            Stop::After(length) => (Some(length), None),
            Stop::RequestsPerConnection(n) => (None, Some(n)),
        };
        LoadSpec {
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
            ..LoadSpec::closed(
                self.subject.transport.clone(),
                self.subject.request(stream, stream.keep_alive),
                connections,
            )
        }
    }

    /// Drives one run.
    pub(crate) fn drive(&mut self, shape: &LoadSpec, progress: &RunProgress) -> Result<DriveResult, SweepError> {
        Ok(self.drive_watched(shape, progress, &Witnesses::none())?.done)
    }

    /// An answer outside a run, of which this account knows.
    pub(crate) fn add_answer(&mut self, answer: &FetchedResponse) {
        self.ledger.add_answer(answer.worker.clone());
        self.body_bytes += answer.body_bytes;
    }

    /// What the generator alone reaches with each of these settings, on answers of so many bytes.
    pub(crate) fn ceilings(&self, shapes: &[LoadSpec], answer_bytes: u64) -> Result<Vec<Option<Ceiling>>, SweepError> {
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
            study.service_time = self.learn_service_time()?;
        }
        if plan.probe_discipline && study.probes.is_empty() {
            observer.phase(&Phase::Probing);
            study.probes = self.probes(study.service_time, plan.probe)?;
        }
        Ok(())
    }

    /// The median service time over one connection, and its CPU time; `None` where nothing was answered.
    fn learn_service_time(&mut self) -> Result<Option<ServiceTime>, SweepError> {
        let mut shape = self.shape(self.stream, 1);
        shape.warm_up = LEARNING / 5;
        shape.measured = Some(LEARNING);
        shape.requests_per_connection = None;
        let Watched { done, server_cpu, .. } = self.drive_watched(&shape, &RunProgress::new(1), &Witnesses::none())?;
        self.cool_down();
        let cpu = server_cpu.and_then(|cpu| cpu.per_request());
        let measured = |time: Nanos| ServiceTime { time, source: ServiceTimeSource::Measured, cpu };
        Ok(done.tally.service_time.quantile(0.5).map(measured))
    }

    pub(crate) fn cool_down(&self) -> Option<Diagnostic> {
        let mut listener = self.subject.listener();
        wait_until_idle(|| listener.look(), &self.tools.clock, || self.tools.is_interrupted())
    }
}
