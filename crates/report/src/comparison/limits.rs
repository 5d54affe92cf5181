//! What limits each size of `sweep --try`, as far as it is known: what its own runs show, Ruby's
//! lock by what its processes compute, and its threads where more of them did more.

use model::comparison::{ComparedMetric, Metric};
use model::{ComparisonRun, ComparisonStudy, Limit, ServerFacts};

use super::summary::SummaryComparison;
use crate::number::{self, count_of};
use judge::tried_sizes::{NEAR_THE_LOCK, computes, sound, used_up};
use judge::words::listed;

/// The names of each arm's limits, if one of them was to be found best; none if they are not known.
pub(super) fn of(study: &ComparisonStudy, summary: &SummaryComparison) -> Vec<Vec<&'static str>> {
    let throughput = summary.metric(Metric::Throughput).filter(|_| summary.ranking.is_some());
    let Some(throughput) = throughput else { return Vec::new() };
    (0..study.plan.arms.len()).map(|arm| of_arm(study, throughput, arm)).collect()
}

fn of_arm(study: &ComparisonStudy, throughput: &ComparedMetric, arm: usize) -> Vec<&'static str> {
    if are_threads(study, throughput, arm) {
        return vec!["threads"];
    }
    let mut names: Vec<&str> = of_most_runs(study, arm).into_iter().collect();
    let lock = computes(study, arm).filter(|computes| *computes >= NEAR_THE_LOCK);
    if lock.is_some() && !names.contains(&"Ruby's lock") {
        names.push("Ruby's lock");
    }
    names
}

/// The limits in a column; two of them are shortened, and `-` is none that is known.
pub(super) fn in_column(limits: &[&str]) -> String {
    let short = |name: &&str| match *name {
        "CPU" | "shared CPUs" => "CPUs".to_owned(),
        "Ruby's lock" => "lock".to_owned(),
        other => other.to_owned(),
    };
    match limits {
        [] => number::NONE.to_owned(),
        [one] => (*one).to_owned(),
        several => several.iter().map(short).collect::<Vec<_>>().join(", "),
    }
}

/// The limit that more than half of an arm's runs have.
pub(super) fn of_most_runs(study: &ComparisonStudy, arm: usize) -> Option<&'static str> {
    let limit = |run: &ComparisonRun| match run.run.limit()? {
        Limit::NotKnown { .. } => None,
        known => Some(judge::limits::name(known)),
    };
    let names: Vec<Option<&str>> = sound(study, arm).map(limit).collect();
    let is_of_most =
        |name: &&str| 2 * names.iter().filter(|it| **it == Some(*name)).count() > names.len();
    names.iter().copied().flatten().find(is_of_most)
}

/// Added threads that bring at least this share of what they could show that threads were missing.
const MOST_OF_IT: f64 = 0.5;

/// Whether more threads in as many workers did more, by at least [`MOST_OF_IT`] of what they could,
/// with the certainty of the test.
fn are_threads(study: &ComparisonStudy, throughput: &ComparedMetric, arm: usize) -> bool {
    let like =
        |arm: usize| Some((study.server(arm)?.workers, study.plan.arm(arm).stream.keep_alive));
    let slots = |arm: usize| study.server(arm).map(ServerFacts::slots);
    let Some(own) = slots(arm) else { return false };
    let letter = study.plan.letter(arm);
    (0..study.plan.arms.len()).filter(|other| like(*other) == like(arm)).any(|other| {
        let Some(more) = slots(other).filter(|more| *more > own) else { return false };
        let gain = throughput.seen_from(&letter, &study.plan.letter(other));
        let gain = gain.and_then(|difference| difference.interval);
        let could = f64::from(more) / f64::from(own.max(1)) - 1.0;
        gain.is_some_and(|[low, _]| low >= MOST_OF_IT * could)
    })
}

/// At which sizes the threads are the limit, with the time for which a request holds one.
pub(super) fn threads(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    summary.ranking.as_ref()?;
    let is_limited = |at: &usize| summary.arms[*at].limits.contains(&"threads");
    let arms: Vec<usize> = (0..study.plan.arms.len()).filter(is_limited).collect();
    let worth = |arm: &usize| {
        let slots = study.server(*arm)?.slots();
        let rate = summary.metric(Metric::Throughput)?.median(&study.plan.letter(*arm))?;
        let held = number::significant(f64::from(slots) / rate * 1e3);
        Some(format!("{slots} / {held} ms a request = {}/s", number::significant(rate)))
    };
    let worth: Vec<String> = arms.iter().filter_map(worth).collect();
    let names: Vec<String> = arms.iter().map(|arm| study.plan.called(*arm)).collect();
    (!worth.is_empty()).then(|| {
        format!(
            "At {} the threads are the limit, and more of them did more: {}.",
            listed(&names),
            worth.join(", ")
        )
    })
}

/// The arm to take, or the best, so far.
fn best_to_take(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<usize> {
    let ranking = summary.ranking.as_ref()?;
    study.plan.arm_of(summary.recommended.as_ref().unwrap_or(&ranking.best))
}

/// Whether CPUs, or a lock that lets one thread compute at a time, are the limit of more than half of
/// the runs of each of these arms.
pub(super) fn are_computing(study: &ComparisonStudy, letters: [&String; 2]) -> bool {
    let is_computing = |run: &ComparisonRun| run.run.limit().is_some_and(Limit::is_computing);
    letters.into_iter().all(|letter| {
        study.plan.arm_of(letter).is_some_and(|arm| {
            2 * sound(study, arm).filter(|run| is_computing(run)).count()
                > sound(study, arm).count()
        })
    })
}

/// That the CPUs are used up at the size to take, so that a larger one would hardly do more.
pub(super) fn cpus(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    let best = best_to_take(study, summary)?;
    let cpu = used_up(study, best)?;
    let cpus =
        if cpu.of > 1.0 { format!("the {} CPUs are", cpu.of) } else { "its CPU is".to_owned() };
    let at = study.plan.called(best);
    Some(format!("At {at} {cpus} used up: more workers or threads would hardly do more."))
}

/// How far the best size is from what Ruby's lock allows, where a process computes for most of the
/// time: then more threads gain little.
pub(super) fn ruby_lock(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    const MOST_OF_THE_TIME: f64 = 0.6;
    let best = best_to_take(study, summary)?;
    let computes = computes(study, best)?;
    let rate = summary.metric(Metric::Throughput)?.median(&study.plan.letter(best))?;
    let are_cpus_used_up = used_up(study, best).is_some();
    let least = if are_cpus_used_up { NEAR_THE_LOCK } else { MOST_OF_THE_TIME };
    if computes < least {
        return None;
    }
    let (begin, lock) = if are_cpus_used_up {
        ("Ruby's lock is as near a limit: at", "the lock")
    } else {
        ("At", "Ruby's lock")
    };
    let workers = count_of(u64::from(study.server(best)?.workers), "worker");
    Some(format!(
        "{begin} {} a process computes for {} of the time, and {lock} lets one of its threads compute at a time: {workers} can do about {} requests/s at most, with any number of threads.",
        study.plan.called(best),
        judge::words::share(computes),
        number::significant(rate / computes)
    ))
}
