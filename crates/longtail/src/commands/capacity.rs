//! `longtail capacity`: the highest rate at which objectives hold, of a server that runs already or
//! that longtail starts.

use engine::Resolver;
use model::{CapacityPlan, CapacityTarget, Nanos, Stop};
use sweep::{Context, conduct_capacity, conduct_capacity_of, conduct_sizes};

use super::conducted::{
    StudyStart, TerminalObserver, bind_for_remote_generators, fall_back_to_builtin,
};
use super::load_words;
use crate::args::CapacityArgs;
use crate::args::output::StudyKind;
use crate::args::server::{addresses, with_environment};
use crate::exit::{Exit, Mistake};
use crate::load::prepare;
use crate::results::Results;
use crate::{secrets, signals};

/// Searches, shows the bracket as it narrows, and saves the study.
///
/// # Errors
/// If a flag is wrong, the server does not work, or the study cannot be saved.
pub(crate) fn run(args: &CapacityArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    args.output.check(StudyKind::Capacity)?;
    args.check()?;
    match &args.target {
        Some(url) => run_on(args, url, resolver),
        None => run_started(args, resolver),
    }
}

/// Searches on a server that runs already.
fn run_on(args: &CapacityArgs, url: &str, resolver: Resolver) -> Result<Exit, Mistake> {
    args.refuse_server_flags()?;
    let load = load_words(args.words_of_load(url))?;
    let resolver = load.resolver(resolver);
    let mut start = StudyStart::now()?;
    start.start_far(&args.server.from)?;
    let prepared = prepare(&load, &resolver, &start.clock, start.far.as_ref())?;
    let plan = args.plan(CapacityTarget::Running(Box::new(prepared.plan.clone())));
    let results = Results::open("capacity", &start.started_at, &args.output)?;
    let context = start.context(secrets::command_line(), resolver);
    let mut observer = TerminalObserver::new(&results, None);
    signals::begin();
    let study = conduct_capacity_of(&prepared, &plan, &context, &mut observer);
    observer.publish(study)
}

/// Searches on a server that longtail starts.
fn run_started(args: &CapacityArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    args.refuse_request_flags()?;
    args.server.puma.check()?;
    let sizes = args.sizes()?;
    let mut server = args.server.server()?;
    let stream = args.server.stream(Stop::After(Nanos::from_secs(10)), None)?;
    let addresses = addresses()?;
    let stand_in = if fall_back_to_builtin(&mut server)? { " --server builtin" } else { "" };
    let mut start = StudyStart::now()?;
    start.start_far(&args.server.from)?;
    bind_for_remote_generators(&mut server, start.far.as_ref());
    let target = CapacityTarget::Started { server: Box::new(server), stream: Box::new(stream) };
    let plan = CapacityPlan { sizes, ..args.plan(target) };
    let results = Results::open("capacity", &start.started_at, &args.output)?;
    let line = with_environment(&format!("{}{stand_in}", secrets::command_line()), None);
    let context = Context {
        addresses,
        boot_timeout: args.server.puma.boot_timeout,
        ..start.context(line, resolver)
    };
    let mut observer = TerminalObserver::new(&results, None);
    signals::begin();
    let study = if plan.sizes.is_empty() {
        conduct_capacity(&plan, &context, &mut observer)
    } else {
        conduct_sizes(&plan, &context, &mut observer)
    };
    observer.publish(study)
}
