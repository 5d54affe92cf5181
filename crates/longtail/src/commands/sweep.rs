//! `longtail sweep`: the main job.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::Resolver;
use launch::puma::Addresses;
use launch::{GuardCommand, LaunchError, puma};
use model::plan::quoted;
use model::{App, ClaimedRow, Nanos, Probe, Run, ServerKind, ServerPlan, SweepStudy};
use report::Layout;
use sweep::{Observer, OtherGenerator, Phase, Tools, conduct};

use crate::args::environment::{addresses, with_environment};
use crate::args::{OutputArgs, SweepArgs};
use crate::clock::{SystemClock, wall_time};
use crate::exit::Exit;
use crate::generators::{GeneratorDriver, InstalledGenerator};
use crate::mistake::Mistake;
use crate::outlets::{Outlets, StatsdInput};
use crate::store::{CeilingFile, Store};
use crate::ui::Ui;
use crate::{GUARD, signals, this_program, ui};

/// Conducts a sweep, prints its rows as they are done, and keeps it on disk.
///
/// # Errors
/// Where a flag is wrong, the server does not work, or the study cannot be kept.
pub(crate) fn run(args: &SweepArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    // As the terminal is now: a table is as its head was.
    let layout = Layout { columns: args.output.sweep_columns()?, width: args.output.width() };
    let mut plan = args.plan()?;
    let addresses = addresses()?;
    let found = args.with.map(InstalledGenerator::on_path).transpose()?;
    fall_back(&mut plan.server)?;
    let lanes_by = args.with.is_none().then(|| args.conduct.lanes_by());
    refuse_in_vain(plan.probe)?;
    let clock = SystemClock::start();
    let ears = StatsdInput::open(plan.statsd_listen, true)?;
    let mut outlets = Outlets::open(&args.outlets, &resolver, clock)?;
    let interrupt = signals::interruption()?;
    let started_at = wall_time();
    let store = Store::create("sweep", &started_at, args.save.as_deref())?;
    let driver = found.map(|found| GeneratorDriver::new(found, clock)).transpose()?;
    let interrupt = Arc::clone(&interrupt);
    let ceilings = CeilingFile::of_day(&started_at);
    let command_line = with_environment(&plan.command_line());
    let tools = Tools {
        statsd: ears.hearing.as_ref(),
        server_env: ears.settings.clone(),
        lanes_by,
        resolver,
        other: driver.as_ref().map(|driver| driver as &dyn OtherGenerator),
        ..tools(clock, (addresses, args.puma.boot_timeout), (started_at, command_line), &interrupt, &ceilings)
    };
    let mut told = Told {
        ui: Ui::new(),
        store: &store,
        outlets: &mut outlets,
        output: args.output,
        layout,
        compared: 0,
        kept: false,
        failed: None,
    };
    let study = conduct(&plan, &tools, &mut told);
    let Told { ui, output, kept, failed, .. } = told;
    drop(ui);
    let study = study.inspect_err(|_| say_what_is_kept(&store, kept))?;
    if study.server.name.is_empty() {
        ui::note("interrupted before the server was ready");
        return Ok(Exit::Interrupted);
    }
    let interrupted = study.interrupted;
    let exit = Exit::of(study.runs.iter().map(|run| run.judgement.as_ref()));
    // What was measured is told also where it cannot be kept.
    let failed = store.save(&study.clone().into()).err().or(failed);
    if output.streams() {
        let mut study = study;
        output.force_sweep(&mut study);
        ui::print(&report::text::closing(&study, layout));
        if failed.is_none() {
            ui::note(&format!("saved as {}", store.path().display()));
        }
    } else {
        ui::print(&output.whole(&study.into())?);
    }
    outlets.close(&interrupt);
    if let Some(mistake) = failed {
        return Err(mistake);
    }
    Ok(if interrupted { Exit::Interrupted } else { exit })
}

/// Where a study ended before its time: how to see the runs that were finished, if there are any.
pub(super) fn say_what_is_kept(store: &Store, kept: bool) {
    if kept {
        ui::note(&format!("the runs above are kept: longtail report {}", quoted(&store.path().to_string_lossy())));
    }
}

/// Refuses a probe that was asked for and cannot be had, before anything is started.
pub(super) fn refuse_in_vain(asked: Probe) -> Result<(), Mistake> {
    let tried = if asked == Probe::Bpf { probe::bpf::possible() } else { Ok(()) };
    tried.map_err(|missing| {
        Mistake::Flags(format!("--probe bpf cannot be done here: {missing}; --probe proc goes without"))
    })
}

/// What a conductor needs of the world.
pub(super) fn tools<'a>(
    clock: SystemClock,
    (addresses, boot_timeout): (Addresses, Nanos),
    (started_at, command_line): (String, String),
    interrupt: &'a AtomicBool,
    ceilings: &'a CeilingFile,
) -> Tools<'a, SystemClock> {
    Tools {
        clock,
        guard: GuardCommand::this_program(GUARD),
        program: this_program(),
        dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        addresses,
        boot_timeout,
        version: env!("CARGO_PKG_VERSION"),
        started_at,
        command_line,
        interrupt,
        ceilings,
        other: None,
        statsd: None,
        server_env: Vec::new(),
        lanes_by: None,
        resolver: Resolver::default(),
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

/// Prints and keeps what the conductor tells.
struct Told<'a> {
    ui: Ui,
    store: &'a Store,
    outlets: &'a mut Outlets,
    output: OutputArgs,
    layout: Layout,
    /// So many of the study's runs are judged to the end: what the server counted has been put beside them.
    compared: usize,
    /// Whether a run is on disk.
    kept: bool,
    failed: Option<Mistake>,
}

impl Observer for Told<'_> {
    fn phase(&mut self, phase: &Phase) {
        self.ui.phase(phase);
        self.outlets.phase(phase);
    }

    fn opened(&mut self, study: &SweepStudy) {
        if self.output.streams() {
            self.ui.print(&report::text::opening(study, self.layout.width));
            self.ui.print(&report::text::table_head(study, self.layout));
        }
    }

    fn run_done(&mut self, study: &SweepStudy, run: &Run) {
        self.outlets.run_over();
        let mut saved = study.clone();
        saved.runs[self.compared..].iter_mut().for_each(|run| run.judgement = None);
        match self.store.save(&saved.into()) {
            Ok(()) => self.kept = true,
            // Said at the end: the study goes on, and is printed.
            Err(mistake) => self.failed = Some(mistake),
        }
        if self.output.streams() {
            let mut run = run.clone();
            self.output.forced(&mut run.judgement);
            self.ui.print(&report::text::row(study, &run, self.layout));
        }
    }

    fn compared(&mut self, study: &SweepStudy) {
        for number in self.compared..study.runs.len() {
            self.outlets.sweep_done(study, number);
        }
        self.compared = study.runs.len();
    }

    fn claimed_done(&mut self, study: &SweepStudy, run: &ClaimedRow) {
        match self.store.save(&study.clone().into()) {
            Ok(()) => self.kept = true,
            Err(mistake) => self.failed = Some(mistake),
        }
        if self.output.streams() {
            self.ui.print(&report::claimed::row(study, run, self.layout));
        }
    }
}
