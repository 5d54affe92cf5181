//! What limits each size of `sweep --try`, as far as it is known: what its own runs show, Ruby's
//! lock by what its processes compute, and its threads where more of them did more.

use model::comparison::{ComparedMetric, Metric, median};
use model::{ComparisonRun, ComparisonStudy, CpuUsage, Limit, ServerFacts};

use super::summary::SummaryComparison;
use crate::number::{self, count_of};
use judge::words::listed;

/// A process that computes for at least this share of the time is near what Ruby's lock allows: a
/// sixth more at most.
const NEAR_THE_LOCK: f64 = 0.85;

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

/// The limits in a column; two of them are shortened.
pub(super) fn in_column(limits: &[&str]) -> String {
    let short = |name: &&str| match *name {
        "CPU" | "shared CPUs" => "CPUs".to_owned(),
        "Ruby's lock" => "lock".to_owned(),
        other => other.to_owned(),
    };
    match limits {
        [one] => (*one).to_owned(),
        several => several.iter().map(short).collect::<Vec<_>>().join(", "),
    }
}

fn sound(study: &ComparisonStudy, arm: usize) -> impl Iterator<Item = &ComparisonRun> {
    study.runs.iter().filter(move |run| run.arm == arm && run.is_sound())
}

/// The limit that more than half of an arm's runs have.
fn of_most_runs(study: &ComparisonStudy, arm: usize) -> Option<&'static str> {
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

/// The arm to take, or the best, where that is decided.
fn best_to_take(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<usize> {
    let ranking = summary.ranking.as_ref().filter(|ranking| ranking.is_decided())?;
    let letter = summary.recommended.as_ref().unwrap_or(&ranking.best);
    (0..study.plan.arms.len()).find(|arm| study.plan.letter(*arm) == *letter)
}

/// Whether CPUs, or a lock that lets one thread compute at a time, are the limit of more than half of
/// the runs of each of these arms.
pub(super) fn are_computing(study: &ComparisonStudy, letters: [&String; 2]) -> bool {
    let is_computing = |run: &ComparisonRun| run.run.limit().is_some_and(Limit::is_computing);
    letters.into_iter().all(|letter| {
        let arm = (0..study.plan.arms.len()).find(|arm| study.plan.letter(*arm) == *letter);
        arm.is_some_and(|arm| {
            2 * sound(study, arm).filter(|run| is_computing(run)).count()
                > sound(study, arm).count()
        })
    })
}

/// The CPUs of an arm, if they are the limit of more than half of its runs.
fn used_up(study: &ComparisonStudy, arm: usize) -> Option<CpuUsage> {
    let of_run = |run: &ComparisonRun| match run.run.limit()? {
        Limit::Cpu(cpu) | Limit::SharedCpus(cpu) => Some(*cpu),
        _ => None,
    };
    let used: Vec<Option<CpuUsage>> = sound(study, arm).map(of_run).collect();
    let limited = used.iter().flatten();
    limited.clone().next().copied().filter(|_| 2 * limited.count() > used.len())
}

/// Whether a larger size than the best could do better: hardly if the CPUs are used up, perhaps if
/// no larger one was tried.
pub(super) fn edge(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    let ranking = summary.ranking.as_ref()?;
    let best = best_to_take(study, summary)?;
    if let Some(cpu) = used_up(study, best) {
        let cpus =
            if cpu.of > 1.0 { format!("the {} CPUs are", cpu.of) } else { "its CPU is".to_owned() };
        let at = study.plan.called(best);
        return Some(format!(
            "At {at} {cpus} used up: more workers or threads would hardly do more."
        ));
    }
    let slots = |arm: usize| study.server(arm).map(ServerFacts::slots);
    let is_behind = |arm: usize| ranking.ahead_of.contains(&study.plan.letter(arm));
    let is_smaller =
        |arm: usize| slots(arm) == slots(best) || slots(arm) < slots(best) && is_behind(arm);
    let is_largest = (0..study.plan.arms.len()).all(|arm| arm == best || is_smaller(arm));
    let has_smaller = (0..study.plan.arms.len()).any(|arm| slots(arm) < slots(best));
    let name = study.plan.called(best);
    (is_largest && has_smaller)
        .then(|| format!("{name} is the largest size tried: a larger one may do better still."))
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

/// The share of the time for which the busiest process of an arm computes, if it is Ruby's.
fn computes(study: &ComparisonStudy, arm: usize) -> Option<f64> {
    median(sound(study, arm).filter_map(busiest_ruby_process))
}

/// The same of a run.
fn busiest_ruby_process(run: &ComparisonRun) -> Option<f64> {
    let server = run.run.generator.server.as_ref().filter(|server| server.is_ruby)?;
    server.serving().iter().map(|process| process.used).reduce(f64::max)
}
