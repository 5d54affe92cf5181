//! What the commands that start servers share: the context of the conductor, and who observes it.

use std::collections::BTreeMap;
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::Resolver;
use launch::puma::{self, Addresses};
use launch::{GuardCommand, LaunchError};
use model::comparison::{ComparisonFindings, Difference, Metric};
use model::plan::quoted;
use model::{
    App, BodiesStudy, BodyRun, ComparisonRun, ComparisonStudy, Nanos, Probe, Run, ServerKind, ServerPlan, Socket,
    Study, SweepStudy, SystemClock,
};
use sweep::{Context, FarGenerators, Observer, Phase, SweepError};

use crate::clock::wall_time;
use crate::mistake::{Mistake, wrong};
use crate::outlets::Outlets;
use crate::results::Results;
use crate::store::CeilingFile;
use crate::ui::Ui;
use crate::{GUARD, signals, this_program, ui};

/// When a study began, who wants to end it, and who else makes its load.
pub(super) struct StudyStart {
    pub(super) clock: SystemClock,
    pub(super) started_at: String,
    pub(super) interrupt: Arc<AtomicBool>,
    pub(super) far: Option<FarGenerators>,
    ceilings: CeilingFile,
}

impl StudyStart {
    /// Begins a study now, which Ctrl-C ends.
    ///
    /// # Errors
    /// Where the system refuses to listen to signals.
    pub(super) fn now() -> Result<StudyStart, Mistake> {
        Ok(StudyStart::ended_by(signals::interruption()?))
    }

    /// Begins a study now.
    pub(super) fn ended_by(interrupt: Arc<AtomicBool>) -> StudyStart {
        let started_at = wall_time();
        let ceilings = CeilingFile::of_day(&started_at);
        StudyStart { clock: SystemClock::start(), started_at, interrupt, far: None, ceilings }
    }

    /// Starts the generators on other machines, where there are any.
    ///
    /// # Errors
    /// Where one of them does not start, or is another version of longtail.
    pub(super) fn start_far(&mut self, from: &[String]) -> Result<(), Mistake> {
        let start = || FarGenerators::start(from, env!("CARGO_PKG_VERSION"), self.clock);
        self.far = if from.is_empty() { None } else { Some(start().map_err(SweepError::from)?) };
        Ok(())
    }

    /// What a conductor needs of the world; what is of one command alone is as if nobody had asked for it.
    pub(super) fn context(&self, command_line: String, resolver: Resolver) -> Context<'_> {
        Context {
            clock: self.clock,
            guard: GuardCommand::this_program(GUARD),
            program: this_program(),
            dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            addresses: Addresses::default(),
            boot_timeout: Nanos::ZERO,
            version: env!("CARGO_PKG_VERSION"),
            started_at: self.started_at.clone(),
            command_line,
            interrupt: &self.interrupt,
            ceilings: &self.ceilings,
            other: None,
            far: self.far.as_ref(),
            statsd: None,
            server_env: BTreeMap::new(),
            resolver,
        }
    }
}

/// Refuses a probe that was asked for and cannot be had, before anything is started.
pub(super) fn refuse_in_vain(asked: Probe) -> Result<(), Mistake> {
    let tried = if asked == Probe::Bpf { probe::bpf::possible() } else { Ok(()) };
    tried.map_err(|missing| {
        wrong(format!("--inspect kernel cannot be done here: {missing}; --inspect proc goes without"))
    })
}

/// Gives a server the address that ssh came from, where all of its generators name the same, so that they reach it there.
pub(super) fn be_reached(server: &mut ServerPlan, far: Option<&FarGenerators>) {
    let addresses: Option<Vec<IpAddr>> =
        far.and_then(|far| far.hosts().into_iter().map(|host| host.conductor).collect());
    let Some([first, others @ ..]) = addresses.as_deref() else { return };
    let is_v4 = matches!(server.socket, Socket::Tcp4 | Socket::Ssl4);
    let is_ours = !first.is_loopback() && TcpListener::bind((*first, 0)).is_ok();
    if server.address.is_none() && is_ours && first.is_ipv4() == is_v4 && others.iter().all(|other| other == first) {
        server.address = Some(*first);
    }
}

/// Takes the built-in server where no Puma is found and nothing was asked of one in particular.
pub(super) fn fall_back(server: &mut ServerPlan) -> Result<(), Mistake> {
    if server.kind != (ServerKind::Puma { command: None }) {
        return Ok(());
    }
    let wants_puma = server.rackup.is_some()
        || server.config.is_some()
        || server.yjit
        || server.app != App::Sleep
        || !server.socket.is_plain_tcp();
    match puma::discover(&puma::Surroundings::here()?) {
        Err(LaunchError::NoPuma) if !wants_puma => {
            ui::note(
                "no Puma found, so the built-in server stands in (--server builtin); `gem install puma` measures the real one",
            );
            server.kind = ServerKind::Builtin;
            Ok(())
        }
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

/// Shows rows as runs are done, keeps the study on disk, and exports what is judged.
pub(super) struct TerminalObserver<'a> {
    ui: Option<Ui>,
    results: &'a Results<'a>,
    outlets: Option<&'a mut Outlets>,
    /// So many runs of the study are judged, and exported; of a comparison, blocks.
    judged: usize,
    /// Whether a run is on disk.
    is_kept: bool,
    /// Said once every arm of a comparison has started: until then a mistake may end it.
    pub(super) before_first_block: Option<String>,
}

impl<'a> TerminalObserver<'a> {
    pub(super) fn new(results: &'a Results<'a>, outlets: Option<&'a mut Outlets>) -> TerminalObserver<'a> {
        TerminalObserver { ui: Some(Ui::new()), results, outlets, judged: 0, is_kept: false, before_first_block: None }
    }

    fn keep(&mut self, study: &Study) {
        // A place that cannot be written is an error at the end: the study goes on, and is printed.
        self.is_kept |= self.results.keep(study).is_ok();
    }

    fn show(&mut self, phase: &Phase) {
        if let (Phase::Running { may_end_early: true, .. }, Some(ui)) = (phase, &self.ui) {
            self.before_first_block.take().iter().for_each(|line| ui.line(line));
        }
        self.ui.iter().for_each(|ui| ui.phase(phase));
        self.outlets.iter_mut().for_each(|outlets| outlets.phase(phase));
    }

    fn show_rows(&self, study: &Study) {
        self.ui.iter().for_each(|ui| ui.rows(study));
    }

    /// The study; where it ended before its time, says how to see the runs that were finished, if there are any.
    pub(super) fn finished<S>(&mut self, study: Result<S, SweepError>) -> Result<S, SweepError> {
        self.ui = None;
        let path = self.results.path().to_string_lossy();
        study.inspect_err(|_| {
            if self.is_kept {
                ui::note(&format!("the finished runs are kept: longtail report {}", quoted(&path)));
            }
        })
    }
}

impl Observer for TerminalObserver<'_> {
    fn phase(&mut self, phase: &Phase) {
        self.show(phase);
    }

    fn run_done(&mut self, study: &SweepStudy, provisional: &Run) {
        self.outlets.iter_mut().for_each(|outlets| outlets.run_over());
        self.keep(&study.clone().into());
        let mut shown = study.clone();
        shown.runs.pop();
        shown.runs.push(provisional.clone());
        self.show_rows(&shown.into());
    }

    fn judged(&mut self, study: &SweepStudy) {
        // What another generator claims is nobody's measurement.
        let ours = (self.judged..study.runs.len()).filter(|number| study.runs[*number].claim.is_none());
        for number in ours {
            self.outlets.iter_mut().for_each(|outlets| outlets.sweep_done(study, number));
        }
        self.judged = study.runs.len();
        if self.judged > 0 {
            self.keep(&study.clone().into());
        }
    }
}

impl Observer<BodiesStudy, BodyRun> for TerminalObserver<'_> {
    fn phase(&mut self, phase: &Phase) {
        self.show(phase);
    }

    fn run_done(&mut self, study: &BodiesStudy, provisional: &BodyRun) {
        self.keep(&study.clone().into());
        let mut shown = study.clone();
        shown.runs.pop();
        shown.runs.push(provisional.clone());
        self.show_rows(&shown.into());
    }

    fn judged(&mut self, study: &BodiesStudy) {
        if !study.runs.is_empty() {
            self.keep(&study.clone().into());
        }
    }
}

impl Observer<ComparisonStudy, ComparisonRun> for TerminalObserver<'_> {
    fn phase(&mut self, phase: &Phase) {
        self.show(phase);
    }

    fn run_done(&mut self, _: &ComparisonStudy, _: &ComparisonRun) {}

    fn judged(&mut self, study: &ComparisonStudy) {
        let Some(last) = study.runs.last() else { return };
        self.keep(&study.clone().into());
        let mut arms: Vec<usize> = study.runs.iter().filter(|run| run.block == last.block).map(|run| run.arm).collect();
        arms.sort_unstable();
        arms.dedup();
        let block = last.block as usize;
        if arms.len() == study.plan.arms_of_a_block() && block > self.judged {
            self.judged = block;
            self.show_rows(&study.clone().into());
            let line = progress(study, block);
            self.ui.iter().for_each(|ui| ui.line(&line));
        }
    }
}

/// What is known after a block of what decides: the estimates, and their intervals where there are blocks enough.
fn progress(study: &ComparisonStudy, block: usize) -> String {
    let found = ComparisonFindings::of(&study.plan, &study.runs);
    let percent = report::number::deviation;
    let known = |metric: Metric, difference: &Difference| {
        let arms = (study.plan.letter(difference.arm), study.plan.letter(difference.base));
        let interval = difference.interval.map(|[low, high]| format!(" [{}, {}]", percent(low), percent(high)));
        let estimate = percent(difference.estimate?);
        Some(format!("{metric} of {} against {} {estimate} %{}", arms.0, arms.1, interval.unwrap_or_default()))
    };
    let deciding = found.metrics.iter().filter(|row| row.decides);
    let known: Vec<String> =
        deciding.flat_map(|row| row.differences.iter().filter_map(|it| known(row.metric, it))).collect();
    let colon = if known.is_empty() { "" } else { ": " };
    format!("block {block} of at most {}{colon}{}", study.plan.blocks.most(), known.join(", "))
}
