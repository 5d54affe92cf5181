//! `longtail compare`: two or more ways to run a server, or two saved studies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use engine::Resolver;
use judge::size_search::{ComparedSizes, LookLoad, to_compare};
use launch::{Build, GuardCommand, LaunchError, Revision, check_files, puma_gem};
use model::comparison::{ArmPlan, ComparisonLoad, ComparisonPlan};
use model::{Arrivals, Clock as _, MaskedText, ServerKind, quoted};
use report::{StudyFile, side_by_side};
use sweep::{Context, Observer, conduct_comparison};

use super::conducted::{
    BlocksAhead, StudyStart, TerminalObserver, bind_for_remote_generators, check_probe_available,
    fall_back_to_builtin,
};
use super::size_search;
use crate::args::CompareArgs;
use crate::args::compare::{ArmRequest, MARGIN_OF_THROUGHPUT, PumaSource};
use crate::args::output::StudyKind;
use crate::args::server::{addresses, with_environment};
use crate::exit::{Exit, Mistake, wrong};
use crate::results::{Results, nothing_to_report};
use crate::secrets::{self, MaskedWords};
use crate::{GUARD, signals, study_files, ui};

/// Conducts a comparison, shows it as it grows, and saves the study. With two study files it compares
/// those.
///
/// # Errors
/// If a flag is wrong, an arm's server does not work, or the study cannot be saved.
pub(crate) fn run(args: &CompareArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    if !args.studies.is_empty() {
        return saved(args);
    }
    args.output.check(StudyKind::Compare)?;
    let requests =
        if args.find_threads { size_search::usual_arms(args)? } else { args.requested_arms()? };
    args.plan(requests.iter().map(ArmRequest::plan).collect::<Result<_, _>>()?)?;
    let addresses = addresses()?;
    let mut here = StudyStart::now()?;
    let data = folder_for_builds(&requests)?;
    let mut said = BTreeSet::new();
    let mut say = |line: String| {
        if said.insert(line.clone()) {
            ui::note(&line);
        }
    };
    let Some(mut arms) = find_all(&requests, &here, &data, &mut say)? else {
        return Ok(interrupted_before_the_first_run(args));
    };
    here.start_far(&args.own.server.from)?;
    let bind = |arms: &mut Vec<ArmPlan>| {
        let servers = arms.iter_mut().map(|arm| &mut arm.server);
        servers.for_each(|server| bind_for_remote_generators(server, here.far.as_ref()));
    };
    let results = Results::open("compare", &here.started_at, &args.output)?;
    let context = Context {
        addresses,
        boot_timeout: args.own.server.puma.boot_timeout,
        ..here.context(with_environment(&command_line(args), None), resolver)
    };
    signals::begin();
    let (mut looked_at, mut at_rate) = (Vec::new(), None);
    let begun = here.clock.now();
    if args.find_threads {
        for arm in &arms {
            check_files(&arm.server, arm.dir.as_deref().unwrap_or_else(|| Path::new(".")))?;
        }
        let mut run_once = |request: ArmRequest, load: LookLoad, observer: &mut dyn Observer| {
            let Some(mut arm) = find_all(&[request], &here, &data, &mut say)? else {
                return Ok(None);
            };
            bind(&mut arm);
            let plan = args.plan_of_one_run(arm, &load);
            let study = conduct_comparison(&plan, &context, here.clock.now(), observer);
            Ok(Some(study?).filter(|study| !study.interrupted))
        };
        let looks = size_search::look(args, &mut run_once)?;
        // Where the user has interrupted, no block begins below, and the study has these runs alone.
        if here.interrupt.load(Ordering::Relaxed) && !size_search::is_worth_keeping(&looks) {
            results.tell_unwritten();
            return Ok(Exit::Interrupted);
        }
        let ComparedSizes { sizes, per_s } = to_compare(&looks);
        let requests = size_search::arms_of(args, &sizes)?;
        let Some(found) = find_all(&requests, &here, &data, &mut say)? else {
            return Ok(interrupted_before_the_first_run(args));
        };
        (arms, looked_at, at_rate) = (found, looks, per_s);
    }
    bind(&mut arms);
    let mut plan = ComparisonPlan { looked_at, ..args.plan(arms)? };
    if let Some(per_s) = at_rate {
        plan.load = ComparisonLoad::Rate { per_s };
        plan.arrivals = Arrivals::Poisson;
    } else if args.find_threads {
        // Throughput decides.
        plan.margin = MARGIN_OF_THROUGHPUT;
        plan.wanted_per_s = args.rate_per_s();
    }
    let mut observer = TerminalObserver::new(&results, None);
    observer.blocks_ahead = Some(BlocksAhead {
        looks: plan.looks(),
        least: plan.fewest_that_decide().unwrap_or(plan.blocks.most()),
        most: plan.blocks.most(),
        runs: plan.arms_of_a_block(),
        are_announced: false,
    });
    observer.is_strict = args.strict;
    let study = conduct_comparison(&plan, &context, begun, &mut observer);
    observer.publish(study)
}

fn interrupted_before_the_first_run(args: &CompareArgs) -> Exit {
    let files: Vec<_> = args.output.files().map(|file| file.path).collect();
    nothing_to_report("interrupted before the first run", files.iter().map(|path| &**path));
    Exit::Interrupted
}

/// Finds the server that each arm names, and builds it if that is needed; `None` if the user
/// interrupts. `say` tells the user.
fn find_all(
    requests: &[ArmRequest],
    here: &StudyStart,
    data: &Path,
    say: &mut dyn FnMut(String),
) -> Result<Option<Vec<ArmPlan>>, Mistake> {
    let guard = GuardCommand::this_program(GUARD);
    let is_interrupted = || here.interrupt.load(Ordering::Relaxed);
    let mut arms = Vec::new();
    for request in requests {
        let mut arm = request.plan()?;
        let env = arm.env.exposed().clone();
        let build =
            Build { guard: &guard, clock: &here.clock, is_interrupted: &is_interrupted, data, env };
        match find(request, &mut arm, &build, say) {
            Err(Mistake::Launch(LaunchError::Interrupted)) => return Ok(None),
            found => found.map_err(|mistake| request.wrong(mistake))?,
        }
        fall_back_to_builtin(&mut arm.server)?;
        check_probe_available(arm.probe)?;
        arms.push(arm);
    }
    Ok(Some(arms))
}

/// The command line that repeats a comparison.
fn command_line(args: &CompareArgs) -> MaskedText {
    let words = args.typed.as_ref().unwrap_or(&args.words);
    secrets::line(&MaskedWords::of(&super::definition(), words).words)
}

/// The folder in which copies of revisions and versions of Puma are built. If no arm needs one, there
/// need be no such folder.
fn folder_for_builds(requests: &[ArmRequest]) -> Result<PathBuf, Mistake> {
    let is_built = |request: &ArmRequest| {
        request.reference.is_some() || matches!(request.puma(), PumaSource::Version(_))
    };
    match study_files::data_folder() {
        Err(_) if !requests.iter().any(is_built) => Ok(PathBuf::new()),
        folder => folder,
    }
}

/// Finds the server that an arm names, such as a version of Puma or a branch, and builds it if that
/// is needed. `say` tells the user.
fn find(
    request: &ArmRequest,
    arm: &mut ArmPlan,
    build: &Build<'_>,
    say: &mut dyn FnMut(String),
) -> Result<(), Mistake> {
    let is_puma = matches!(arm.server.kind, ServerKind::Puma { .. });
    if let PumaSource::Version(version) = request.puma()
        && is_puma
    {
        if let Some(reference) = &request.reference {
            return Err(wrong(format!(
                "{reference} and Puma {version} are two things: leave out one of them"
            )));
        }
        let gem = puma_gem(&version, build, say)?;
        let env = arm.env.exposed().clone().into_iter().chain(gem.env);
        arm.env = env.collect::<BTreeMap<_, _>>().into();
        arm.server.kind = ServerKind::Puma { command: Some(gem.command.into()) };
        return Ok(());
    }
    let checkout = if is_puma { puma_checkout(request)? } else { None };
    if let Some(reference) = &request.reference {
        return use_revision(reference, request, arm, checkout.as_deref(), build, say);
    }
    if let (Some(folder), PumaSource::Command(Some(_))) = (checkout, request.puma()) {
        arm.server.kind = ServerKind::Puma { command: Some(folder.display().to_string().into()) };
    }
    Ok(())
}

/// The checkout of Puma that an arm names, or that longtail runs in. Relative paths start where
/// longtail runs, whatever folder the server runs in.
fn puma_checkout(request: &ArmRequest) -> Result<Option<PathBuf>, Mistake> {
    let unreadable = |error| wrong(format!("the folder cannot be read: {error}"));
    match request.puma() {
        PumaSource::Command(Some(command)) => {
            let folder = Path::new(&command);
            if !folder.join("puma.gemspec").is_file() {
                return Ok(None);
            }
            folder.canonicalize().map(Some).map_err(unreadable)
        }
        PumaSource::Command(None) => {
            let here = Path::new(".").canonicalize().map_err(unreadable)?;
            let mut folders = here.ancestors();
            Ok(folders.find(|folder| folder.join("puma.gemspec").is_file()).map(Path::to_owned))
        }
        PumaSource::Version(_) => Ok(None),
    }
}

/// Has an arm use a copy of a revision: of Puma, if `checkout` is one, else of the app.
fn use_revision(
    reference: &str,
    request: &ArmRequest,
    arm: &mut ArmPlan,
    checkout: Option<&Path>,
    build: &Build<'_>,
    say: &mut dyn FnMut(String),
) -> Result<(), Mistake> {
    let revision = Revision::find(reference, checkout.unwrap_or(&request.app_dir()))?;
    if revision.is_dirty {
        say(format!(
            "{} has changes that are not committed: they are in no branch",
            revision.root.display()
        ));
    }
    let short = revision.short();
    say(format!("{reference} is {short}: its files are copied, and built if needed"));
    let copy = revision.copy(build)?;
    let is_hash = reference.starts_with(short);
    let commit = if is_hash { short.to_owned() } else { format!("{reference} {short}") };
    arm.settings.insert(0, commit.into());
    if checkout.is_some() {
        arm.server.kind = ServerKind::Puma { command: Some(copy.display().to_string().into()) };
        return Ok(());
    }
    let here = Path::new(".")
        .canonicalize()
        .map_err(|error| wrong(format!("this folder cannot be read: {error}")))?;
    let Ok(below) = here.strip_prefix(&revision.root) else {
        return Err(wrong(format!(
            "'{reference}' belongs to {}: start longtail in that folder",
            revision.root.display()
        )));
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
    if let [one] = &args.studies[..]
        && one.exists()
    {
        let file = quoted(&one.to_string_lossy());
        return Err(wrong(format!(
            "compare wants two saved studies; longtail report {file} shows one: of a comparison --metric, --base and --pairs judge it anew"
        )));
    }
    let [base, other] = &args.studies[..] else {
        return Err(wrong(
            "compare wants two saved studies: longtail compare a.study.json b.study.json",
        ));
    };
    let is_arm = |file: &&PathBuf| file.extension().is_none() && !file.exists();
    if let Some(arm) = args.studies.iter().find(is_arm) {
        return Err(wrong(format!(
            "there is no file '{}', and a branch or options go after --arm: type longtail \
             compare --arm {} --arm {}",
            arm.display(),
            base.display(),
            other.display()
        )));
    }
    let studies = (study_files::read(base)?, study_files::read(other)?);
    let names = (base.display().to_string(), other.display().to_string());
    let of = |name, study| StudyFile { name, study };
    let base = of(&names.0, &studies.0);
    let other = of(&names.1, &studies.1);
    ui::print(&side_by_side(base, other, args.output.width()).map_err(wrong)?);
    Ok(Exit::Fine)
}
