//! `longtail sweep --try auto`: a short run of each number of threads, one after the other, until
//! more threads bring nothing, and one of each with ordinary traffic. The size that seems enough for
//! that and its neighbours are compared then, as those of a list are.

use judge::size_search::{
    LookLoad, connections_for, length_at, look_of, next_threads, ordinary_rate, rate_look_of,
    that_can_do,
};
use judge::words::listed;
use model::comparison::{MissingFigure, RateLook, SizeLook};
use model::number::{self, count_of};
use model::{ComparisonStudy, Nanos, ServerSize, Study};
use probe::server_cpu::CpuRoom;
use sweep::{Observer, Phase};

use super::conducted::StudyDisplay;
use crate::args::CompareArgs;
use crate::args::compare::ArmRequest;
use crate::args::sweep::size_arm;
use crate::exit::{Mistake, refuse_if};
use crate::ui;

/// A look while other processes use the CPUs is repeated.
const ATTEMPTS: u32 = 2;

/// As many arms as may be compared: of them it can be said beforehand whether the comparison could
/// come to a decision.
///
/// # Errors
/// If a flag is wrong, or there are too few connections for two sizes.
pub(super) fn usual_arms(args: &CompareArgs) -> Result<Vec<ArmRequest>, Mistake> {
    let workers = workers(args).unwrap_or(1);
    let at_least = 2 * workers.max(1);
    refuse_if(
        args.connections.is_some_and(|connections| connections < at_least),
        format_args!(
            "--try auto: {workers} workers with two threads each need {at_least} connections: raise -c, or leave it out"
        ),
    )?;
    [1, 2, 3, 5]
        .map(|threads| args.arm(&arm_of(args, Some(workers), threads)))
        .into_iter()
        .collect()
}

/// Runs the server of an arm once; `None` if the user interrupts.
type RunOnce<'a> = dyn FnMut(ArmRequest, LookLoad, &mut dyn Observer) -> Result<Option<ComparisonStudy>, Mistake>
    + 'a;

/// Runs a size once more, and says what this look at it shows; `None` if the user interrupts.
type RunAgain<'a> = dyn FnMut(&SizeLook) -> Result<Option<SizeLook>, Mistake> + 'a;

/// How many CPUs other processes took during the run that is meant.
type OthersOf = fn(&SizeLook) -> Option<f64>;

/// Looks at one size after the other: how much each can do, and how long its requests take with
/// ordinary traffic. If the user interrupts, these are the looks until then.
///
/// # Errors
/// If a server does not work.
pub(super) fn look(
    args: &CompareArgs,
    run_once: &mut RunOnce<'_>,
) -> Result<Vec<SizeLook>, Mistake> {
    let mut looks = Vec::new();
    let is_whole = look_for_the_most(args, &mut looks, run_once)?
        && look_at_a_rate(args, &mut looks, run_once)?;
    if !is_whole {
        ui::note(interrupted_in_words(&looks));
    }
    Ok(looks)
}

/// How long a search takes: if few sizes are looked at and the blocks soon tell, and if not.
fn total_time(args: &CompareArgs) -> [Nanos; 2] {
    /// To start a server, ask for its own count, and stop it.
    const AROUND_A_RUN: Nanos = Nanos::from_secs(2);
    /// A run at a rate that is not known yet is longer; about so many times.
    const AT_A_RATE: u64 = 3;
    let around = args.warm_up + AROUND_A_RUN;
    let run = args.length + around;
    let at_rate =
        args.rate_per_s().map_or(args.length * AT_A_RATE, |per_s| length_at(per_s, args.length));
    let at_rate = at_rate + around;
    let [few, many] = args.fewest_and_most_blocks().map(u64::from);
    [run * (3 + 2 * few) + at_rate * 2, run * (9 + 3 * many) + at_rate * 6]
}

/// A run of each size in a closed loop, until more threads bring nothing. `false` if the user
/// interrupts.
fn look_for_the_most(
    args: &CompareArgs,
    looks: &mut Vec<SizeLook>,
    run_once: &mut RunOnce<'_>,
) -> Result<bool, Mistake> {
    let mut workers = workers(args);
    let mut observer = LookObserver { shown: StudyDisplay::new() };
    let [shortest, longest] =
        total_time(args).map(|time| number::fixed((time.as_secs_f64() / 60.0).ceil(), 0));
    ui::note(&format!(
        "--try auto: a run of each number of threads first, until more threads bring nothing; about {shortest} to {longest} minutes in all"
    ));
    while let Some(threads) = next_threads(looks, workers.unwrap_or(1), args.connections) {
        let mut run = |threads: u32| {
            let arm = args.arm(&arm_of(args, workers, threads))?;
            let size = size_of(args, workers.unwrap_or(1), threads);
            let connections = args.connections.unwrap_or_else(|| connections_for(size));
            let load = LookLoad::Closed { connections };
            observer.shown.working(&format!("a run of {size}"));
            let Some(study) = run_once(arm, load, &mut observer)? else { return Ok(None) };
            // A config file's workers are known once the first server runs.
            workers = workers.or_else(|| Some(study.server(0)?.workers));
            let look = look_of(&study, size_of(args, workers.unwrap_or(0), threads));
            ui::note(&with_others(in_words(&look), look.others));
            Ok(Some(look))
        };
        let others: OthersOf = |look| look.others;
        let look = least_disturbed(others, || run(threads))?;
        let Some(look) = look else { return Ok(false) };
        looks.push(look);
        if others(&look).is_none()
            && !look_again(looks, others, &mut |look| run(look.size.threads))?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A run in an open loop of each size that can do the rate of ordinary traffic. `false` if the user
/// interrupts.
fn look_at_a_rate(
    args: &CompareArgs,
    looks: &mut [SizeLook],
    run_once: &mut RunOnce<'_>,
) -> Result<bool, Mistake> {
    let Some(per_s) = args.rate_per_s().or_else(|| ordinary_rate(looks)) else { return Ok(true) };
    let length = length_at(per_s, args.length);
    let sizes = that_can_do(looks, per_s);
    if sizes.is_empty() {
        ui::note(&format!(
            "no size can do {}/s, so that those that do most are compared, in a closed loop",
            number::rate_in_words(per_s)
        ));
        return Ok(true);
    }
    let mut observer = LookObserver { shown: StudyDisplay::new() };
    ui::note(&format!(
        "then {} at {}/s, with random arrivals, of {} that can do so much",
        number::span(length),
        number::rate_in_words(per_s),
        count_of(sizes.len() as u64, "size")
    ));
    let mut run = |look: &SizeLook| {
        let size = look.size;
        let arm = args.arm(&size_arm(size))?;
        let load = LookLoad::Rate { per_s, length };
        observer.shown.working(&format!("a run of {size}"));
        let Some(study) = run_once(arm, load, &mut observer)? else { return Ok(None) };
        let at_rate = rate_look_of(&study, per_s);
        ui::note(&with_others(rate_in_words(size, &at_rate), at_rate.others));
        Ok(Some(SizeLook { at_rate: Some(at_rate), ..*look }))
    };
    let others: OthersOf = |look| look.at_rate?.others;
    for at in sizes {
        let before = looks[at];
        let Some(look) = least_disturbed(others, || run(&before))? else { return Ok(false) };
        looks[at] = look;
        if others(&look).is_none() && !look_again(looks, others, &mut run)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// After a run that other processes left alone, repeats those that they disturbed, until they disturb
/// one again: sizes from which they took CPUs would seem to do less than the others. `false` if the
/// user interrupts.
fn look_again(
    looks: &mut [SizeLook],
    others: OthersOf,
    run: &mut RunAgain<'_>,
) -> Result<bool, Mistake> {
    let disturbed: Vec<&mut SizeLook> =
        looks.iter_mut().filter(|look| others(look).is_some()).collect();
    if !disturbed.is_empty() {
        let sizes: Vec<String> = disturbed.iter().map(|look| look.size.to_string()).collect();
        ui::note(&format!("other processes leave the CPUs alone now: again {}", listed(&sizes)));
    }
    for look in disturbed {
        let Some(again) = run(look)? else { return Ok(false) };
        if others(&again).is_some() {
            break;
        }
        *look = again;
    }
    Ok(true)
}

/// A look at a size, which is repeated where other processes use the CPUs: then that of the run of
/// which they took less. `None` if the user interrupts the first.
fn least_disturbed(
    others: OthersOf,
    mut run: impl FnMut() -> Result<Option<SizeLook>, Mistake>,
) -> Result<Option<SizeLook>, Mistake> {
    let taken = |look: &SizeLook| others(look).unwrap_or(0.0);
    let mut kept: Option<SizeLook> = None;
    for _ in 0..ATTEMPTS {
        let Some(look) = run()? else { return Ok(kept) };
        let is_undisturbed = others(&look).is_none();
        if kept.as_ref().is_none_or(|kept| taken(&look) < taken(kept)) {
            kept = Some(look);
        }
        if is_undisturbed {
            break;
        }
    }
    Ok(kept)
}

/// The arms that are worth comparing.
///
/// # Errors
/// If their options cannot be understood.
pub(super) fn arms_of(
    args: &CompareArgs,
    sizes: &[ServerSize],
) -> Result<Vec<ArmRequest>, Mistake> {
    sizes.iter().map(|size| args.arm(&size_arm(*size))).collect()
}

/// The workers of all sizes: those that were given, or one for each CPU. `None` if a config file may
/// set them.
fn workers(args: &CompareArgs) -> Option<u32> {
    let puma = &args.own.server.puma;
    let one_for_each_cpu = || {
        let room = CpuRoom::of(&[std::process::id()]);
        room.map_or(1, |room| (room.cpus as u32).max(1))
    };
    puma.workers().or_else(|| (!puma.has_config()).then(one_for_each_cpu))
}

fn size_of(args: &CompareArgs, workers: u32, threads: u32) -> ServerSize {
    ServerSize { workers, threads, keep_alive: !args.own.server.no_keep_alive }
}

fn arm_of(args: &CompareArgs, workers: Option<u32>, threads: u32) -> String {
    match workers {
        Some(workers) => size_arm(size_of(args, workers, threads)),
        None => format!("-t{threads}:{threads}"),
    }
}

/// `2 x 5: 95.6/s`
fn in_words(look: &SizeLook) -> String {
    format!("{}: {}/s", look.size, number::significant(look.rate_per_s))
}

/// `2 x 5 at 75/s: p50 59.3, p95 101 ms`
fn rate_in_words(size: ServerSize, look: &RateLook) -> String {
    let rate = number::rate_in_words(look.per_s);
    let said = if let (Some(p50), Some(p95)) = (look.p50, look.p95) {
        format!("p50 {}, p95 {} ms", number::milliseconds(p50), number::milliseconds(p95))
    } else {
        let why = match look.missing {
            Some(MissingFigure::Overloaded) => "ever more requests waited",
            Some(MissingFigure::Failures) => "requests failed",
            _ => "too few responses to tell",
        };
        why.to_owned()
    };
    format!("{size} at {rate}/s: {said}")
}

fn with_others(said: String, others: Option<f64>) -> String {
    match others {
        Some(others) => {
            format!("{said}, while other processes used {} CPUs", number::fixed(others, 1))
        }
        None => said,
    }
}

/// What becomes of the single runs until the user interrupted.
fn interrupted_in_words(looks: &[SizeLook]) -> &'static str {
    if is_worth_keeping(looks) {
        "interrupted before the sizes were compared: the single runs until then are kept"
    } else {
        "interrupted before two sizes had a run, so nothing is kept: the same command begins again"
    }
}

/// Whether these looks tell more than what one size does.
pub(super) fn is_worth_keeping(looks: &[SizeLook]) -> bool {
    looks.len() > 1
}

/// Shows what the servers say. The runs are told by their results.
struct LookObserver {
    shown: StudyDisplay,
}

impl Observer for LookObserver {
    fn phase(&mut self, _: &Phase) {}

    fn remark(&mut self, text: &str) {
        self.shown.remark(text);
    }

    fn run_done(&mut self, _: &Study, _: &Study) {}

    fn judged(&mut self, _: &Study) {}
}
