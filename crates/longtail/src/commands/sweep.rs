//! `longtail sweep`: the main job; with `--bodies` types x sizes x kinds of socket.

use engine::Resolver;
use launch::puma;
use sweep::{Context, OtherGenerator, conduct_bodies, conduct_sweep};

use super::conducted::{StudyStart, TerminalObserver, be_reached, fall_back, refuse_in_vain};
use crate::args::SweepArgs;
use crate::args::environment::{addresses, with_environment};
use crate::args::output::StudyKind;
use crate::command_line;
use crate::exit::Exit;
use crate::generators::{GeneratorDriver, InstalledGenerator};
use crate::mistake::Mistake;
use crate::outlets::{Outlets, StatsdInput};
use crate::results::Results;

/// Conducts a sweep, shows its rows as they are done, and keeps it on disk.
///
/// # Errors
/// Where a flag is wrong, the server does not work, or the study cannot be kept.
pub(crate) fn run(args: &SweepArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    if args.has_bodies() {
        return run_bodies(args, resolver);
    }
    args.output.check(StudyKind::Sweep)?;
    let mut plan = args.plan()?;
    let addresses = addresses()?;
    let found = args.generator.map(InstalledGenerator::on_path).transpose()?;
    // What stands in is part of what repeats the study.
    let stand_in = if fall_back(&mut plan.server)? { " --server builtin" } else { "" };
    refuse_in_vain(plan.probe)?;
    let mut here = StudyStart::now()?;
    let ears = StatsdInput::open(plan.statsd_listen, true)?;
    let mut outlets = Outlets::open(&args.outlets, &resolver, here.clock)?;
    here.start_far(&plan.stream.from)?;
    be_reached(&mut plan.server, here.far.as_ref());
    let results = Results::open("sweep", &here.started_at, &args.output)?;
    let driver = found.map(|found| GeneratorDriver::new(found, here.clock)).transpose()?;
    let context = Context {
        addresses,
        boot_timeout: args.server.puma.boot_timeout,
        statsd: ears.listener.as_ref(),
        server_env: ears.settings.clone(),
        other: driver.as_ref().map(|driver| driver as &dyn OtherGenerator),
        ..here.context(with_environment(&(command_line::typed() + stand_in)), resolver)
    };
    let mut observer = TerminalObserver::new(&results, Some(&mut outlets));
    let study = conduct_sweep(&plan, &context, &mut observer);
    let study = observer.publish(study)?;
    outlets.close(&here.interrupt);
    Ok(study.map_or(Exit::Interrupted, |study| Exit::of(&study)))
}

/// Conducts the matrix, shows its rows as they are done, and keeps it on disk.
///
/// # Errors
/// Where a flag is wrong, the server does not work, or the study cannot be kept.
fn run_bodies(args: &SweepArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    args.output.check(StudyKind::Bodies)?;
    let mut plan = args.bodies_plan()?;
    let addresses = addresses()?;
    refuse_in_vain(plan.probe)?;
    if plan.server.kind == (model::ServerKind::Puma { command: None }) {
        puma::discover(&puma::Surroundings::here()?)?;
    }
    let mut here = StudyStart::now()?;
    here.start_far(&plan.stream.from)?;
    be_reached(&mut plan.server, here.far.as_ref());
    let results = Results::open("bodies", &here.started_at, &args.output)?;
    let context = Context {
        addresses,
        boot_timeout: args.server.puma.boot_timeout,
        ..here.context(with_environment(&command_line::typed()), resolver)
    };
    let mut observer = TerminalObserver::new(&results, None);
    let study = conduct_bodies(&plan, &context, &mut observer);
    Ok(observer.publish(study)?.map_or(Exit::Interrupted, |study| Exit::of(&study)))
}
