//! `longtail sweep`: the main job.

use engine::Resolver;
use report::Layout;
use sweep::{Context, OtherGenerator, conduct_sweep};

use super::conducted::{TerminalObserver, context, fall_back, refuse_in_vain};
use crate::args::SweepArgs;
use crate::args::environment::{addresses, with_environment};
use crate::clock::{SystemClock, wall_time};
use crate::exit::Exit;
use crate::generators::{GeneratorDriver, InstalledGenerator};
use crate::mistake::Mistake;
use crate::outlets::{Outlets, StatsdInput};
use crate::store::{CeilingFile, Store};
use crate::{signals, ui};

/// Conducts a sweep, prints its rows as they are done, and keeps it on disk.
///
/// # Errors
/// Where a flag is wrong, the server does not work, or the study cannot be kept.
pub(crate) fn run(args: &SweepArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    let output = args.output;
    // As the terminal is now: a table is as its head was.
    let layout = Layout { columns: output.sweep_columns()?, width: output.width() };
    let mut plan = args.plan()?;
    let addresses = addresses()?;
    let found = args.generator.map(InstalledGenerator::on_path).transpose()?;
    fall_back(&mut plan.server)?;
    refuse_in_vain(plan.probe)?;
    let clock = SystemClock::start();
    let ears = StatsdInput::open(plan.statsd_listen, true)?;
    let mut outlets = Outlets::open(&args.outlets, &resolver, clock)?;
    let interrupt = signals::interruption()?;
    let started_at = wall_time();
    let store = Store::create("sweep", &started_at, args.save.as_deref())?;
    let driver = found.map(|found| GeneratorDriver::new(found, clock)).transpose()?;
    let ceilings = CeilingFile::of_day(&started_at);
    let context = Context {
        addresses,
        boot_timeout: args.puma.boot_timeout,
        command_line: with_environment(&plan.command_line()),
        statsd: ears.hearing.as_ref(),
        server_env: ears.settings.clone(),
        lanes_by: args.generator.is_none().then(|| args.conduct.lanes_by()),
        resolver,
        other: driver.as_ref().map(|driver| driver as &dyn OtherGenerator),
        ..context(clock, &started_at, &interrupt, &ceilings)
    };
    let mut observer = TerminalObserver::new(&store, Some(&mut outlets), (output, layout, output.streams()));
    let study = conduct_sweep(&plan, &context, &mut observer);
    let study = observer.finished(study)?;
    if study.server.name.is_empty() {
        ui::note("interrupted before the server was ready");
        return Ok(Exit::Interrupted);
    }
    let mut printed = study.clone();
    output.force_sweep(&mut printed);
    let exit = observer.close(study, || report::sweep::closing(&printed, layout));
    outlets.close(&interrupt);
    exit
}
