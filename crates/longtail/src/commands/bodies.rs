//! `longtail bodies`: types x sizes x kinds of socket.

use std::sync::Arc;

use engine::Resolver;
use launch::puma;
use model::{BodiesStudy, BodyRun};
use report::Layout;
use sweep::{Observer, Phase, Tools, conduct_bodies};

use super::sweep::{refuse_in_vain, say_what_is_kept, tools};
use crate::args::environment::{addresses, with_environment};
use crate::args::{BodiesArgs, OutputArgs};
use crate::clock::{SystemClock, wall_time};
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::store::{CeilingFile, Store};
use crate::ui::Ui;
use crate::{signals, ui};

/// Conducts the matrix, prints its rows as they are done, and keeps it on disk.
///
/// # Errors
/// Where a flag is wrong, the server does not work, or the study cannot be kept.
pub(crate) fn run(args: &BodiesArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    let output = args.output();
    let layout = Layout { columns: output.bodies_columns()?, width: output.width() };
    let plan = args.plan()?;
    let addresses = addresses()?;
    refuse_in_vain(plan.probe)?;
    if plan.server.kind == (model::ServerKind::Puma { command: None }) {
        puma::discover(&puma::Surroundings::here()?)?;
    }
    let interrupt = signals::interruption()?;
    let started_at = wall_time();
    let store = Store::create("bodies", &started_at, args.save.as_deref())?;
    let interrupt = Arc::clone(&interrupt);
    let ceilings = CeilingFile::of_day(&started_at);
    let command_line = with_environment(&plan.command_line());
    let clock = SystemClock::start();
    let tools = Tools {
        lanes_by: Some(args.conduct.lanes_by()),
        resolver,
        ..tools(clock, (addresses, args.puma.boot_timeout), (started_at, command_line), &interrupt, &ceilings)
    };
    let mut told = Told { ui: Ui::new(), store: &store, output, layout, compared: 0, kept: false, failed: None };
    let study = conduct_bodies(&plan, &tools, &mut told);
    let Told { ui, kept, failed, .. } = told;
    drop(ui);
    let study = study.inspect_err(|_| say_what_is_kept(&store, kept))?;
    if study.runs.is_empty() {
        ui::note("interrupted before the first run: there is nothing to report");
        return Ok(Exit::Interrupted);
    }
    let interrupted = study.interrupted;
    let exit = Exit::of(study.runs.iter().map(|run| run.run.judgement.as_ref()));
    // What was measured is told also where it cannot be kept.
    let failed = store.save(&study.clone().into()).err().or(failed);
    if output.streams_bodies() {
        let study = output.forced_bodies(study);
        ui::print(&report::bodies::text::in_order(&study, layout.width));
        ui::print(&report::bodies::text::closing(&study, layout));
        if failed.is_none() {
            ui::note(&format!("saved as {}", store.path().display()));
        }
    } else {
        ui::print(&output.whole(&study.into())?);
    }
    if let Some(mistake) = failed {
        return Err(mistake);
    }
    Ok(if interrupted { Exit::Interrupted } else { exit })
}

/// Prints and keeps what the conductor tells.
struct Told<'a> {
    ui: Ui,
    store: &'a Store,
    output: OutputArgs,
    layout: Layout,
    /// So many of the study's runs are judged to the end.
    compared: usize,
    /// Whether a run is on disk.
    kept: bool,
    failed: Option<Mistake>,
}

impl Observer<BodiesStudy, BodyRun> for Told<'_> {
    fn phase(&mut self, phase: &Phase) {
        self.ui.phase(phase);
    }

    fn opened(&mut self, study: &BodiesStudy) {
        if self.output.streams_bodies() {
            self.ui.print(&report::bodies::text::opening(study, self.layout.width));
            self.ui.print(&report::bodies::text::table_head(study, self.layout.width));
        }
    }

    fn run_done(&mut self, study: &BodiesStudy, run: &BodyRun) {
        let mut saved = study.clone();
        saved.runs[self.compared..].iter_mut().for_each(|run| run.run.judgement = None);
        match self.store.save(&saved.into()) {
            Ok(()) => self.kept = true,
            // Said at the end: the study goes on, and is printed.
            Err(mistake) => self.failed = Some(mistake),
        }
        if self.output.streams_bodies() {
            let mut run = run.clone();
            self.output.forced(&mut run.run.judgement);
            self.ui.print(&report::bodies::text::row(study, &run, self.layout.width));
        }
    }

    fn compared(&mut self, study: &BodiesStudy) {
        self.compared = study.runs.len();
    }
}
