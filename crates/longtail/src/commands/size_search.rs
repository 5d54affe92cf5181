//! `longtail sweep --try auto`: a short run of each number of threads, one after the other, until
//! more threads bring nothing, and one of each with ordinary traffic. The size that seems enough for
//! that and its neighbours are compared then, as those of a list are.

use judge::size_search::{
    ComparedSizes, LookLoad, connections_for, length_at, look_of, next_threads, ordinary_rate,
    rate_look_of, that_can_do, to_compare,
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

/// Looks at one size after the other: how much each can do, and how long its requests take with
/// ordinary traffic.
///
/// # Errors
/// If a server does not work.
pub(super) fn look(
    args: &CompareArgs,
    run_once: &mut RunOnce<'_>,
) -> Result<Option<Vec<SizeLook>>, Mistake> {
    let mut looks = Vec::new();
    let is_whole = look_for_the_most(args, &mut looks, run_once)?
        && look_at_a_rate(args, &mut looks, run_once)?;
    if !is_whole {
        tell_interrupted(&looks);
    }
    Ok(is_whole.then_some(looks))
}

/// How long a search takes: if few sizes are looked at and the blocks soon tell, and if not.
fn total_time(args: &CompareArgs) -> [Nanos; 2] {
    /// To start a server, ask for its own count, and stop it.
    const AROUND_A_RUN: Nanos = Nanos::from_secs(3);
    /// A run at a rate is longer; about so many times.
    const AT_A_RATE: u64 = 2;
    let run = args.length + args.warm_up + AROUND_A_RUN;
    let [few, many] = args.fewest_and_most_blocks().map(u64::from);
    [3 + 2 * AT_A_RATE + 2 * few, 9 + 6 * AT_A_RATE + 3 * many].map(|runs| run * runs)
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
        let look = least_disturbed(|look: &SizeLook| look.others, || run(threads))?;
        let Some(look) = look else { return Ok(false) };
        let is_quiet = look.others.is_none();
        looks.push(look);
        let disturbed = places(looks, |look| look.others.is_some());
        if is_quiet && !disturbed.is_empty() {
            tell_again(&disturbed, looks);
            for at in disturbed {
                let Some(again) = run(looks[at].size.threads)? else { return Ok(false) };
                if again.others.is_some() {
                    break;
                }
                looks[at] = again;
            }
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
    let mut run = |size: ServerSize| {
        let arm = args.arm(&size_arm(size))?;
        let load = LookLoad::Rate { per_s, length };
        observer.shown.working(&format!("a run of {size}"));
        let Some(study) = run_once(arm, load, &mut observer)? else { return Ok(None) };
        let look = rate_look_of(&study, per_s);
        ui::note(&with_others(rate_in_words(size, &look), look.others));
        Ok(Some(look))
    };
    for at in sizes {
        let size = looks[at].size;
        let look = least_disturbed(|look: &RateLook| look.others, || run(size))?;
        let Some(look) = look else { return Ok(false) };
        let is_quiet = look.others.is_none();
        looks[at].at_rate = Some(look);
        let disturbed =
            places(looks, |look| look.at_rate.is_some_and(|at_rate| at_rate.others.is_some()));
        if is_quiet && !disturbed.is_empty() {
            tell_again(&disturbed, looks);
            for at in disturbed {
                let Some(again) = run(looks[at].size)? else { return Ok(false) };
                if again.others.is_some() {
                    break;
                }
                looks[at].at_rate = Some(again);
            }
        }
    }
    Ok(true)
}

/// The places of the looks of which this is true.
fn places(looks: &[SizeLook], is_so: impl Fn(&SizeLook) -> bool) -> Vec<usize> {
    (0..looks.len()).filter(|at| is_so(&looks[*at])).collect()
}

/// Other processes took CPUs from these sizes alone, which would seem to do less than the others.
fn tell_again(disturbed: &[usize], looks: &[SizeLook]) {
    let sizes: Vec<String> = disturbed.iter().map(|at| looks[*at].size.to_string()).collect();
    ui::note(&format!("other processes leave the CPUs alone now: again {}", listed(&sizes)));
}

/// What a run says, which is repeated where other processes use the CPUs (`others`): then that of the
/// run of which they took less. `None` if the user interrupts.
fn least_disturbed<T>(
    others: impl Fn(&T) -> Option<f64>,
    mut run: impl FnMut() -> Result<Option<T>, Mistake>,
) -> Result<Option<T>, Mistake> {
    let taken = |look: &T| others(look).unwrap_or(0.0);
    let mut kept: Option<T> = None;
    for _ in 0..ATTEMPTS {
        let Some(look) = run()? else { return Ok(None) };
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

fn tell_interrupted(looks: &[SizeLook]) {
    ui::note(&interrupted_in_words(looks));
}

/// What single runs said until the user interrupted, and what to type to go on with what seems best:
/// nothing where other processes took CPUs from a size that would be compared, or from one that was
/// left out for doing less.
fn interrupted_in_words(looks: &[SizeLook]) -> String {
    let of_the_most = looks.iter().map(|look| with_others(in_words(look), look.others));
    let at_rate = looks.iter().filter_map(|look| {
        let at_rate = look.at_rate?;
        Some(with_others(rate_in_words(look.size, &at_rate), at_rate.others))
    });
    let known: Vec<String> = of_the_most.chain(at_rate).collect();
    let is_disturbed = |look: &SizeLook| {
        look.others.is_some() || look.at_rate.is_some_and(|at_rate| at_rate.others.is_some())
    };
    let known = match &known[..] {
        [] => String::new(),
        [known] => format!(" One run said {known}."),
        known => format!(" Single runs said {}.", known.join("; ")),
    };
    let ComparedSizes { sizes, .. } = to_compare(looks);
    let named: Vec<String> = sizes.into_iter().map(ServerSize::as_typed).collect();
    let go_on = if named.len() > 1 && !looks.iter().any(is_disturbed) {
        format!(
            "; to compare what seems best so far, put --try {} in place of auto",
            named.join(",")
        )
    } else {
        String::new()
    };
    format!(
        "interrupted before the sizes were compared, so nothing was kept.{known} The same command begins again{go_on}"
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_disturbed_is_said_to_be_and_nothing_is_advised_from_it() {
        let size = |threads| ServerSize { workers: 2, threads, keep_alive: true };
        let look = |threads, rate_per_s| SizeLook {
            size: size(threads),
            rate_per_s,
            is_near_limit: false,
            cpus_used_up: None,
            computes: None,
            others: None,
            at_rate: None,
        };
        let mut looks = [look(2, 60.0), look(3, 80.0)];
        let quiet = interrupted_in_words(&looks);
        assert!(quiet.contains("2 x 2: 60.0/s; 2 x 3: 80.0/s. The same command"), "{quiet}");
        assert!(quiet.contains("put --try 2x2,2x3 in place of auto"), "{quiet}");
        looks[1].others = Some(0.8);
        let disturbed = interrupted_in_words(&looks);
        assert!(disturbed.contains("2 x 3: 80.0/s, while other processes used 0.8 CPUs"));
        assert!(disturbed.ends_with("The same command begins again"), "{disturbed}");
    }
}
