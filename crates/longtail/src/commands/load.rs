//! `longtail load` and its older name `attack`: loads a server that is already running.

use std::path::Path;
use std::sync::atomic::Ordering;

use engine::{Endpoint, Resolver};
use generators::OrderedLoad;
use judge::explain_no_response;
use model::endpoint::is_public;
use model::{Diagnostic, LoadStudy, Study, Verdict};
use sweep::{Context, LoadObservers, Phase, PreparedLoad, RequestJournal, conduct_load};

use super::conducted::StudyStart;
use crate::args::LoadArgs;
use crate::args::event::check_parts;
use crate::args::output::StudyKind;
use crate::args::server::with_variables;
use crate::exit::{Exit, Mistake, refuse_if};
use crate::load::{Recorder, order_load, prepare};
use crate::metrics::{Outlets, StatsdInput};
use crate::progress::ProgressDisplay;
use crate::results::Results;
use crate::{secrets, signals, ui};

/// Names of `--log` that are stdout: attack's lines, and CSV.
const STDOUT: [&str; 2] = ["-", CSV_TO_STDOUT];
const CSV_TO_STDOUT: &str = "-.csv";

/// Runs the load and prints its report.
///
/// # Errors
/// If a flag is wrong, before any load is sent, or the results cannot be written.
pub(crate) fn run(args: &LoadArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    // Then its lines are the output.
    let is_logged = args.log.as_deref() == Some(Path::new(CSV_TO_STDOUT));
    measure(args, resolver, |results, study| {
        if is_logged { ui::exit_of_part(results.keep(study)) } else { results.publish(study) }
    })
}

/// Runs the load of `attack`: prints its lines, and how many of the started requests were
/// completed.
///
/// # Errors
/// As [`run`].
pub(crate) fn attack(args: &LoadArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    measure(args, resolver, |results, study| {
        let kept = ui::exit_of_part(results.keep(study));
        if let Study::Load(study) = study {
            let counts = &study.run.tally.counts;
            ui::print(&format!("Completed {}/{}\n", counts.answered(), counts.attempted()));
        }
        kept
    })
}

/// Runs the load; `publish` is given its study, and says what became of its results.
fn measure(
    args: &LoadArgs,
    resolver: Resolver,
    publish: impl FnOnce(&Results<'_>, &Study) -> Exit,
) -> Result<Exit, Mistake> {
    check_flags(args)?;
    let resolver = args.resolver(resolver);
    let mut start = StudyStart::now()?;
    let statsd = StatsdInput::open(args.outlets.statsd_listen, false)?;
    let mut outlets = Outlets::open(&args.outlets, &resolver, start.clock)?;
    // After all other checks, because it may connect.
    start.start_far(&args.from)?;
    let prepared = prepare(args, &resolver, &start.clock, start.far.as_ref())?;
    let other_generator = match args.generator {
        Some(generator) => Some(order_load(args, &resolver, generator, &prepared, start.clock)?),
        None => None,
    };
    announce(&prepared);
    let mut results = Results::open("load", &start.started_at, &args.output)?;
    let variables = generators::settings(args.generator);
    let context = start.context(with_variables(variables, &secrets::command_line()), resolver);
    let mut recorder = Recorder::open(args.log.as_deref(), logs_to_stdout(args), &args.checks)?;
    let transport = prepared.spec.transport.clone();
    signals::begin();
    let observers = LoadObservers {
        journal: recorder.as_mut().map(|recorder| recorder as &mut dyn RequestJournal),
        statsd: statsd.listener.as_ref(),
        calibrates: !args.no_calibrate,
    };
    let load = match other_generator {
        Some(other) => conduct_other(&other, prepared, &context, &results)?,
        None => Some(conduct(args, prepared, observers, &context, &mut outlets)?),
    };
    let Some(load) = load else { return Ok(Exit::Interrupted) };
    say_why_it_ended_early(&load);
    let may_look = !start.interrupt.load(Ordering::Relaxed);
    let misunderstanding = if may_look { sweep::misunderstanding(&transport, &load) } else { None };
    let is_interrupted = start.interrupt.load(Ordering::Relaxed);
    let complaint = explain_no_response(&load, misunderstanding.as_deref());
    let has_no_response = complaint.is_some();
    let notes = notes_below(args, &load, is_interrupted, complaint, misunderstanding);
    let study = Study::from(load);
    let page = if args.output.is_prose() && prints_verdict(args) {
        None
    } else {
        judge::findings::page_not_measured(&study)
    };
    let has_log = recorder.as_ref().is_some_and(|recorder| recorder.failed.is_none());
    results.log = args.log.clone().filter(|_| has_log && !logs_to_stdout(args));
    let published = publish(&results, &study);
    // On disk and printed first: whatever becomes of an export, the figures are safe.
    if let Study::Load(load) = &study {
        outlets.load_done(load);
    }
    for note in notes.into_iter().chain(page) {
        ui::note(&note);
    }
    let recorded = exit_of_log(recorder);
    outlets.close(&start.interrupt);
    Ok(Exit::Interrupted
        .if_so(is_interrupted)
        .and(Exit::Invalid.if_so(has_no_response))
        .and(Exit::of(&study))
        .and(recorded)
        .and(published))
}

/// The exit code of the log of requests.
fn exit_of_log(recorder: Option<Recorder>) -> Exit {
    let failed = recorder.and_then(|recorder| recorder.failed);
    failed.map_or(Exit::Fine, |mistake| ui::exit_of_part(Err(mistake)))
}

/// Refuses flags that contradict each other.
fn check_flags(args: &LoadArgs) -> Result<(), Mistake> {
    args.outlets.check()?;
    check_parts(args.event.during.is_some(), &args.thresholds.all(), &args.stop_if)?;
    let kind = if args.generator.is_some() { StudyKind::ClaimedLoad } else { StudyKind::Load };
    args.output.check(kind)?;
    if let Some(generator) = args.generator {
        generators::check_thresholds(generator, &args.thresholds.all())?;
    }
    let Some(log) = &args.log else { return Ok(()) };
    if logs_to_stdout(args) {
        return refuse_if(
            !args.output.is_prose(),
            "two things cannot go to stdout at once: leave out --log, or write the other with -o",
        );
    }
    refuse_if(args.output.writes(log), "--log and -o name one file: give each its own")
}

/// Whether the log of requests is printed.
fn logs_to_stdout(args: &LoadArgs) -> bool {
    let log = args.log.as_deref();
    log.is_some_and(|log| STDOUT.iter().any(|name| log == Path::new(name)))
}

/// Runs our own load, shows on a terminal how it goes on, and exports its figures meanwhile.
fn conduct(
    args: &LoadArgs,
    prepared: PreparedLoad,
    observers: LoadObservers<'_>,
    context: &Context<'_>,
    outlets: &mut Outlets,
) -> Result<LoadStudy, Mistake> {
    let mut shown: Option<ProgressDisplay> = None;
    let load = conduct_load(prepared, observers, context, &mut |phase| {
        let display = shown.get_or_insert_with(ProgressDisplay::new);
        match phase {
            Phase::Running { length, progress: Some(progress), .. } => {
                display.loading(*length, args.number, progress);
            }
            _ => display.phase(phase),
        }
        outlets.phase(phase);
    })?;
    outlets.load_over();
    Ok(load)
}

/// Runs another generator's load; `None` if the user ended it: a generator that was stopped has no
/// figures.
fn conduct_other(
    other: &OrderedLoad,
    prepared: PreparedLoad,
    context: &Context<'_>,
    results: &Results<'_>,
) -> Result<Option<LoadStudy>, Mistake> {
    let display = ProgressDisplay::new();
    display.working(&format!("{} makes the load{}", other.name(), other.length_in_words()));
    // It has been started by then, so an error does not mean that nothing was sent.
    let load = other.conduct(prepared, context).map_err(Mistake::BrokeOff)?;
    drop(display);
    if load.is_none() {
        let name = other.name();
        results.nothing_to_report(&format!("interrupted; {name} had not finished"));
    }
    Ok(load)
}

fn say_why_it_ended_early(load: &LoadStudy) {
    for warning in &load.run.warnings {
        if let Diagnostic::StoppedEarly { condition } = warning {
            ui::note(&format!("ended early: {condition}"));
        }
    }
}

/// Whether what is printed has the verdict and what was found.
fn prints_verdict(args: &LoadArgs) -> bool {
    args.output.tells_verdict() && args.log.as_deref() != Some(Path::new(CSV_TO_STDOUT))
}

/// What is said below the report, where a terminal's user reads it: a verdict that the layout has
/// no place for, why nothing was answered, and what the server misunderstood.
fn notes_below(
    args: &LoadArgs,
    load: &LoadStudy,
    is_interrupted: bool,
    complaint: Option<String>,
    misunderstanding: Option<String>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let verdict = load.run.judgement.as_ref().map(|judgement| judgement.verdict);
    let word = match verdict {
        Some(Verdict::GeneratorBound) => Some("GENERATOR-BOUND"),
        Some(Verdict::Invalid) => Some("INVALID"),
        Some(_) | None => None,
    };
    if let Some(word) = word
        && !prints_verdict(args)
    {
        notes.push(format!("verdict: {word}; longtail report says why, and what to do"));
    }
    if is_interrupted {
        return notes;
    }
    notes.extend(complaint);
    // Where every response was a 400 the load itself was sound, and the reason is worth saying.
    if load.run.tally.all_responses() > 0 {
        notes.extend(misunderstanding);
    }
    notes
}

/// Says where a load goes that leaves for the public internet, and how much it is.
fn announce(prepared: &PreparedLoad) {
    for endpoint in &prepared.spec.transport.endpoints {
        if let Endpoint::Tcp(address) = endpoint
            && is_public(address.ip())
        {
            ui::note(&format!("Loading {address}: {}", report::labels::load(&prepared.plan)));
        }
    }
}
