//! `longtail compare`: two or more ways to run a server.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;

use engine::Resolver;
use launch::{Build, GuardCommand, LaunchError, Revision, puma_gem};
use model::comparison::ArmPlan;
use model::{ComparisonPlan, Nanos, ServerKind, Stop};
use report::{StudyFile, side_by_side};
use sweep::{Context, conduct_comparison};

use super::conducted::{StudyStart, TerminalObserver, be_reached, fall_back, refuse_in_vain};
use crate::args::environment::{addresses, with_environment};
use crate::args::output::StudyKind;
use crate::args::{ArmRequest, CompareArgs, PumaSource};
use crate::exit::Exit;
use crate::mistake::{Mistake, wrong};
use crate::results::Results;
use crate::{GUARD, store, ui};

/// Conducts a comparison, shows it as it grows, and keeps it on disk; of studies that exist, prints what they say of each other.
///
/// # Errors
/// Where a flag is wrong, an arm's server does not work, or the study cannot be kept.
pub(crate) fn run(args: &CompareArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    if !args.studies.is_empty() {
        return saved(args);
    }
    args.output.check(StudyKind::Compare)?;
    let requests = args.requested_arms()?;
    let mut arms = requests.iter().map(ArmRequest::plan).collect::<Result<Vec<_>, _>>()?;
    args.plan(arms.clone())?;
    let addresses = addresses()?;
    let mut here = StudyStart::now()?;
    let guard = GuardCommand::this_program(GUARD);
    let is_interrupted = || here.interrupt.load(Ordering::Relaxed);
    let data = store::data_folder()?;
    let mut said = BTreeSet::new();
    let mut say = |line: String| {
        if said.insert(line.clone()) {
            ui::note(&line);
        }
    };
    for (request, arm) in requests.iter().zip(&mut arms) {
        let env = arm.env.clone();
        let build = Build { guard: &guard, clock: &here.clock, is_interrupted: &is_interrupted, data: &data, env };
        match find(request, arm, &build, &mut say) {
            Err(Mistake::Launch(LaunchError::Interrupted)) => {
                ui::note("interrupted before the first run: there is nothing to report");
                return Ok(Exit::Interrupted);
            }
            found => found.map_err(|mistake| request.wrong(mistake))?,
        }
        fall_back(&mut arm.server)?;
        refuse_in_vain(arm.probe)?;
    }
    here.start_far(&args.own.server.from)?;
    for arm in &mut arms {
        be_reached(&mut arm.server, here.far.as_ref());
    }
    let plan = args.plan(arms)?;
    let results = Results::open("compare", &here.started_at, &args.output)?;
    let context = Context {
        addresses,
        boot_timeout: args.own.server.puma.boot_timeout,
        ..here.context(with_environment(&args.command_line()), resolver)
    };
    let mut observer = TerminalObserver::new(&results, None);
    observer.before_first_block = time_needed(&plan);
    let study = conduct_comparison(&plan, &context, &mut observer);
    Ok(observer.publish(study)?.map_or(Exit::Interrupted, |study| Exit::strictly(&study, args.strict)))
}

/// How long the runs take, said before the first block; `None` where a count of requests ends them.
fn time_needed(plan: &ComparisonPlan) -> Option<String> {
    let of_arm = |arm: usize| match plan.arm(arm).stream.stop {
        Stop::After(length) => Some(length + plan.arm(arm).stream.warm_up),
        Stop::RequestsPerConnection(_) => None,
    };
    let runs = plan.arms_of_a_block();
    let block = (0..runs).map(of_arm).sum::<Option<Nanos>>()?;
    let minutes = |blocks: u32| report::number::minutes(block * u64::from(blocks));
    let (least, most) = (plan.blocks.looks().first()?.after, plan.blocks.most());
    let (blocks, time) = if least == most {
        (most.to_string(), minutes(most))
    } else {
        (format!("{least} to {most}"), format!("{} to {}", minutes(least), minutes(most)))
    };
    Some(format!("{blocks} blocks of {runs} runs: {time} minutes of load, and the start of a server for each run"))
}

/// Finds what an arm names: a version of Puma, a branch.
fn find(
    request: &ArmRequest,
    arm: &mut ArmPlan,
    build: &Build<'_>,
    say: &mut dyn FnMut(String),
) -> Result<(), Mistake> {
    let folder = match (&arm.server.kind, request.puma()) {
        (ServerKind::Puma { .. }, PumaSource::Version(version)) => {
            if let Some(reference) = &request.reference {
                return Err(wrong(format!("{reference} and Puma {version} are two things: leave out one of them")));
            }
            let gem = puma_gem(&version, build, say)?;
            arm.env.extend(gem.env);
            arm.server.kind = ServerKind::Puma { command: Some(gem.command) };
            return Ok(());
        }
        // Relative to where longtail runs, wherever the server does.
        (ServerKind::Puma { .. }, PumaSource::Command(Some(command))) => {
            Path::new(&command).join("puma.gemspec").is_file().then(|| Path::new(&command).canonicalize()).transpose()
        }
        (ServerKind::Puma { .. }, PumaSource::Command(None)) => Path::new(".")
            .canonicalize()
            .map(|here| here.ancestors().find(|folder| folder.join("puma.gemspec").is_file()).map(Path::to_owned)),
        _ => Ok(None),
    };
    let folder = folder.map_err(|error| wrong(format!("the folder cannot be read: {error}")))?;
    let Some(reference) = &request.reference else {
        if let (Some(folder), PumaSource::Command(Some(_))) = (folder, request.puma()) {
            arm.server.kind = ServerKind::Puma { command: Some(folder.display().to_string()) };
        }
        return Ok(());
    };
    let revision = Revision::find(reference, folder.as_deref().unwrap_or(&request.app_dir()))?;
    if revision.is_dirty {
        say(format!("{} has changes that are not committed: they are in no branch", revision.root.display()));
    }
    say(format!("{reference} is {}: its files are copied, and built where that is needed", revision.short()));
    let copy = revision.copy(build)?;
    let short = revision.short();
    let is_hash = reference.starts_with(short);
    arm.settings.insert(0, if is_hash { short.to_owned() } else { format!("{reference} {short}") });
    if folder.is_some() {
        arm.server.kind = ServerKind::Puma { command: Some(copy.display().to_string()) };
        return Ok(());
    }
    let here = Path::new(".").canonicalize().map_err(|error| wrong(format!("this folder cannot be read: {error}")))?;
    let Ok(below) = here.strip_prefix(&revision.root) else {
        return Err(wrong(format!("'{reference}' is of {}: start longtail in that folder", revision.root.display())));
    };
    for path in [&mut arm.server.rackup, &mut arm.server.config].into_iter().flatten() {
        if let Ok(inside) = path.strip_prefix(&revision.root) {
            *path = copy.join(inside);
        }
    }
    arm.dir = Some(copy.join(below));
    Ok(())
}

/// Compares two studies that exist.
fn saved(args: &CompareArgs) -> Result<Exit, Mistake> {
    let [base, other] = &args.studies[..] else {
        return Err(wrong("compare wants two saved studies: longtail compare a.study.json b.study.json"));
    };
    let studies = (store::read(base)?, store::read(other)?);
    let names = (base.display().to_string(), other.display().to_string());
    let of = |name, study| StudyFile { name, study };
    let (base, other) = (of(&names.0, &studies.0), of(&names.1, &studies.1));
    ui::print(&side_by_side(base, other, args.output.width()).map_err(wrong)?);
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::time_needed;

    #[test]
    fn the_time_is_that_of_the_fewest_and_of_the_most_blocks() {
        let fixed = testkit::comparison::best();
        let said = time_needed(&fixed.plan).unwrap();
        assert_eq!(said, "12 blocks of 4 runs: 3:36 minutes of load, and the start of a server for each run");
        let mut plan = fixed.plan;
        plan.blocks = model::comparison::ComparisonBlocks::UntilDecided;
        assert!(time_needed(&plan).unwrap().starts_with("8 to 20 blocks of 4 runs: 2:24 to 6:00 minutes"));
        plan.arms[0].stream.stop = model::Stop::RequestsPerConnection(100);
        assert_eq!(time_needed(&plan), None);
    }
}
