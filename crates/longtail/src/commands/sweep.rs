//! `longtail sweep`, also with `--bodies`.

use engine::Resolver;
use generators::{GeneratorDriver, InstalledGenerator};
use launch::puma;
use sweep::{Context, OtherGenerator, conduct_bodies, conduct_sweep};

use super::conducted::{
    StudyStart, TerminalObserver, bind_for_remote_generators, check_probe_available,
    fall_back_to_builtin,
};
use crate::args::SweepArgs;
use crate::args::output::StudyKind;
use crate::args::server::{addresses, with_environment};
use crate::exit::{Exit, Mistake};
use crate::metrics::{Outlets, StatsdInput};
use crate::results::Results;
use crate::{guard, secrets, signals};

/// Conducts a sweep, shows each run as it is done, and saves the study.
///
/// # Errors
/// If a flag is wrong, the server does not work, or the study cannot be saved.
pub(crate) fn run(args: &SweepArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    if args.bodies.is_some() {
        return run_bodies(args, resolver);
    }
    args.output.check(StudyKind::Sweep)?;
    let mut plan = args.plan()?;
    let addresses = addresses()?;
    let found = args.generator.map(InstalledGenerator::on_path).transpose()?;
    if let (Some(generator), None) = (args.generator, args.server.generator_threads)
        && let Some(cpus) = generators::cpus_setting(generator)?
    {
        plan.stream.lanes = cpus;
    }
    // The command line that repeats the study must name the server that was measured.
    let stand_in = if fall_back_to_builtin(&mut plan.server)? { " --server builtin" } else { "" };
    check_probe_available(plan.probe)?;
    let mut here = StudyStart::now()?;
    let statsd_input = StatsdInput::open(plan.statsd_listen, true)?;
    let mut outlets = Outlets::open(&args.outlets, &resolver, here.clock)?;
    here.start_far(&args.server.from)?;
    bind_for_remote_generators(&mut plan.server, here.far.as_ref());
    let results = Results::open("sweep", &here.started_at, &args.output)?;
    signals::begin();
    let driver = match found {
        Some(found) => Some(GeneratorDriver::new(found, guard(), here.clock)?),
        None => None,
    };
    let context = Context {
        addresses,
        boot_timeout: args.server.puma.boot_timeout,
        statsd: statsd_input.listener.as_ref(),
        server_env: statsd_input.settings.clone(),
        other: driver.as_ref().map(|driver| driver as &dyn OtherGenerator),
        ..here.context(
            with_environment(&format!("{}{stand_in}", secrets::command_line()), args.generator),
            resolver,
        )
    };
    let mut observer = TerminalObserver::new(&results, Some(&mut outlets));
    let study = conduct_sweep(&plan, &context, &mut observer);
    let exit = observer.publish(study);
    outlets.close(&here.interrupt);
    exit
}

/// Conducts a study of bodies, shows each run as it is done, and saves the study.
///
/// # Errors
/// If a flag is wrong, the server does not work, or the study cannot be saved.
fn run_bodies(args: &SweepArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    args.output.check(StudyKind::Bodies)?;
    let mut plan = args.bodies_plan()?;
    let addresses = addresses()?;
    check_probe_available(plan.probe)?;
    if plan.server.kind.has_to_be_found() {
        puma::discover(&puma::Surroundings::here()?)?;
    }
    let mut here = StudyStart::now()?;
    here.start_far(&args.server.from)?;
    bind_for_remote_generators(&mut plan.server, here.far.as_ref());
    let results = Results::open("bodies", &here.started_at, &args.output)?;
    let context = Context {
        addresses,
        boot_timeout: args.server.puma.boot_timeout,
        ..here.context(with_environment(&secrets::command_line(), None), resolver)
    };
    let mut observer = TerminalObserver::new(&results, None);
    signals::begin();
    let study = conduct_bodies(&plan, &context, &mut observer);
    observer.publish(study)
}
