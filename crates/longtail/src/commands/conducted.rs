//! What the commands that start servers share: the context of the conductor, and who observes it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use engine::Resolver;
use launch::puma::{self, Addresses};
use launch::{GuardCommand, LaunchError};
use model::plan::quoted;
use model::{App, BodiesStudy, BodyRun, ClaimedRow, Nanos, Probe, Run, ServerKind, ServerPlan, Study, SweepStudy};
use report::Layout;
use sweep::{Context, Observer, Phase, SweepError};

use crate::args::OutputArgs;
use crate::clock::SystemClock;
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::outlets::Outlets;
use crate::store::{CeilingFile, Store};
use crate::ui::Ui;
use crate::{GUARD, this_program, ui};

/// What a conductor needs of the world; what is of one command alone is as if nobody had asked for it.
pub(super) fn context<'a>(
    clock: SystemClock,
    started_at: &str,
    interrupt: &'a AtomicBool,
    ceilings: &'a CeilingFile,
) -> Context<'a, SystemClock> {
    Context {
        clock,
        guard: GuardCommand::this_program(GUARD),
        program: this_program(),
        dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        addresses: Addresses::default(),
        boot_timeout: Nanos::ZERO,
        version: env!("CARGO_PKG_VERSION"),
        started_at: started_at.to_owned(),
        command_line: String::new(),
        interrupt,
        ceilings,
        other: None,
        statsd: None,
        server_env: Vec::new(),
        lanes_by: None,
        resolver: Resolver::default(),
    }
}

/// Refuses a probe that was asked for and cannot be had, before anything is started.
pub(super) fn refuse_in_vain(asked: Probe) -> Result<(), Mistake> {
    let tried = if asked == Probe::Bpf { probe::bpf::possible() } else { Ok(()) };
    tried.map_err(|missing| {
        Mistake::Flags(format!("--inspect kernel cannot be done here: {missing}; --inspect proc goes without"))
    })
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

/// Prints rows as runs are done, keeps the study on disk, and exports what is judged.
pub(super) struct TerminalObserver<'a> {
    ui: Option<Ui>,
    store: &'a Store,
    outlets: Option<&'a mut Outlets>,
    output: OutputArgs,
    layout: Layout,
    /// Whether rows are printed as they are done.
    streams: bool,
    /// So many runs of the study are judged, and exported.
    judged: usize,
    /// Whether a run is on disk.
    kept: bool,
    failed: Option<Mistake>,
}

impl<'a> TerminalObserver<'a> {
    pub(super) fn new(
        store: &'a Store,
        outlets: Option<&'a mut Outlets>,
        (output, layout, streams): (OutputArgs, Layout, bool),
    ) -> TerminalObserver<'a> {
        let ui = Some(Ui::new());
        TerminalObserver { ui, store, outlets, output, layout, streams, judged: 0, kept: false, failed: None }
    }

    fn print(&self, text: impl FnOnce() -> String) {
        if let Some(ui) = self.ui.as_ref().filter(|_| self.streams) {
            ui.print(&text());
        }
    }

    fn keep(&mut self, study: &Study) {
        match self.store.save(study) {
            Ok(()) => self.kept = true,
            // Said at the end: the study goes on, and is printed.
            Err(mistake) => self.failed = Some(mistake),
        }
    }

    fn show(&mut self, phase: &Phase) {
        self.ui.iter().for_each(|ui| ui.phase(phase));
        self.outlets.iter_mut().for_each(|outlets| outlets.phase(phase));
    }

    /// The study; where it ended before its time, says how to see the runs that were finished, if there are any.
    pub(super) fn finished<S>(&mut self, study: Result<S, SweepError>) -> Result<S, SweepError> {
        self.ui = None;
        let path = self.store.path().to_string_lossy();
        study.inspect_err(|_| {
            if self.kept {
                ui::note(&format!("the runs above are kept: longtail report {}", quoted(&path)));
            }
        })
    }

    /// Keeps the whole study, and prints what its rows have not said. What was measured is printed also where it cannot be kept.
    pub(super) fn close(self, study: impl Into<Study>, closing: impl FnOnce() -> String) -> Result<Exit, Mistake> {
        let study = study.into();
        let failed = self.store.save(&study).err().or(self.failed);
        if self.streams {
            ui::print(&closing());
            if failed.is_none() {
                ui::note(&format!("saved as {}", self.store.path().display()));
            }
        } else {
            ui::print(&self.output.whole(&study)?);
        }
        match (failed, &study) {
            (Some(mistake), _) => Err(mistake),
            (None, Study::Sweep(study)) if study.interrupted => Ok(Exit::Interrupted),
            (None, Study::Bodies(study)) if study.interrupted => Ok(Exit::Interrupted),
            (None, Study::Sweep(study)) => Ok(Exit::of(study.runs.iter().map(|run| run.judgement.as_ref()))),
            (None, Study::Bodies(study)) => Ok(Exit::of(study.runs.iter().map(|run| run.run.judgement.as_ref()))),
            (None, Study::Load(_) | Study::LoadWith(_)) => Ok(Exit::Fine),
        }
    }
}

impl Observer for TerminalObserver<'_> {
    fn phase(&mut self, phase: &Phase) {
        self.show(phase);
    }

    fn opened(&mut self, study: &SweepStudy) {
        self.print(|| report::sweep::opening(study, self.layout));
    }

    fn run_done(&mut self, study: &SweepStudy, provisional: &Run) {
        self.outlets.iter_mut().for_each(|outlets| outlets.run_over());
        self.keep(&study.clone().into());
        let mut run = provisional.clone();
        self.output.forced(&mut run.judgement);
        self.print(|| report::sweep::row(study, &run, self.layout));
    }

    fn judged(&mut self, study: &SweepStudy) {
        for number in self.judged..study.runs.len() {
            self.outlets.iter_mut().for_each(|outlets| outlets.sweep_done(study, number));
        }
        self.judged = study.runs.len();
        if self.judged > 0 {
            self.keep(&study.clone().into());
        }
    }

    fn claimed_done(&mut self, study: &SweepStudy, run: &ClaimedRow) {
        self.keep(&study.clone().into());
        self.print(|| report::sweep::claimed_row(study, run, self.layout));
    }
}

impl Observer<BodiesStudy, BodyRun> for TerminalObserver<'_> {
    fn phase(&mut self, phase: &Phase) {
        self.show(phase);
    }

    fn opened(&mut self, study: &BodiesStudy) {
        self.print(|| report::bodies::opening(study, self.layout));
    }

    fn run_done(&mut self, study: &BodiesStudy, provisional: &BodyRun) {
        self.keep(&study.clone().into());
        let mut run = provisional.clone();
        self.output.forced(&mut run.run.judgement);
        self.print(|| report::bodies::row(study, &run, self.layout));
    }

    fn judged(&mut self, study: &BodiesStudy) {
        if !study.runs.is_empty() {
            self.keep(&study.clone().into());
        }
    }
}
