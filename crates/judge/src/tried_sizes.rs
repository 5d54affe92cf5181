//! The sizes of `sweep --try`, workers x threads: what each of them uses up, and whether a larger one
//! than those that were tried may do better.

use model::comparison::{ArmRanking, SizeLook, median};
use model::{ComparisonRun, ComparisonStudy, CpuUsage, Limit, ServerFacts, ServerSize};

use crate::checks::TURN_OF_OLD_PUMA;

/// A process that computes for at least this share of the time is near what Ruby's lock allows: a
/// sixth more at most.
pub const NEAR_THE_LOCK: f64 = 0.85;

/// The runs of an arm that count.
pub fn sound(study: &ComparisonStudy, arm: usize) -> impl Iterator<Item = &ComparisonRun> {
    study.runs.iter().filter(move |run| run.arm == arm && run.is_sound())
}

/// The CPUs of an arm, if they are the limit of more than half of its runs.
pub fn used_up(study: &ComparisonStudy, arm: usize) -> Option<CpuUsage> {
    let of_run = |run: &ComparisonRun| match run.run.limit()? {
        Limit::Cpu(cpu) | Limit::SharedCpus(cpu) => Some(*cpu),
        _ => None,
    };
    let used: Vec<Option<CpuUsage>> = sound(study, arm).map(of_run).collect();
    let limited = used.iter().flatten();
    limited.clone().next().copied().filter(|_| 2 * limited.count() > used.len())
}

/// The best arm, if all smaller sizes are behind it, none is larger, none that a single run looked at
/// before either, and CPUs are left: then a larger one may do better still.
pub fn largest_is_best(study: &ComparisonStudy, ranking: &ArmRanking) -> Option<usize> {
    let arms = || 0..study.plan.arms.len();
    let best = study.plan.arm_of(&ranking.best)?;
    let slots = |arm: usize| study.server(arm).map(ServerFacts::slots);
    let is_behind = |arm: usize| ranking.ahead_of.contains(&study.plan.letter(arm));
    let is_smaller =
        |arm: usize| slots(arm) == slots(best) || slots(arm) < slots(best) && is_behind(arm);
    let is_largest = arms().all(|arm| arm == best || is_smaller(arm));
    let has_smaller = arms().any(|arm| slots(arm) < slots(best));
    let is_larger = |look: &SizeLook| Some(look.size.slots()) > slots(best);
    if study.plan.looked_at.iter().any(is_larger) {
        return None;
    }
    (is_largest && has_smaller && used_up(study, best).is_none()).then_some(best)
}

/// `2x5,2x8,2x13`: this size and larger ones, as `--try` takes them. Where Ruby's lock is near, more
/// workers; else more threads.
pub(crate) fn larger_sizes(study: &ComparisonStudy, arm: usize) -> Option<String> {
    let ServerFacts { workers, threads, .. } = *study.server(arm)?;
    let is_near_the_lock = computes(study, arm).is_some_and(|share| share >= NEAR_THE_LOCK);
    let more = |size: u32| size.saturating_mul(8).div_ceil(5);
    let sizes = if is_near_the_lock {
        [workers, more(workers), more(more(workers))].map(|workers| (workers, threads))
    } else {
        [threads, more(threads), more(more(threads))].map(|threads| (workers, threads))
    };
    let keep_alive = study.plan.arm(arm).stream.keep_alive;
    let size = |(workers, threads)| ServerSize { workers, threads, keep_alive }.as_typed();
    Some(sizes.map(size).join(","))
}

/// Whether CPUs or Ruby's lock leave an arm hardly any room for more.
pub fn is_near_limit(study: &ComparisonStudy, arm: usize) -> bool {
    used_up(study, arm).is_some()
        || computes(study, arm).is_some_and(|share| share >= NEAR_THE_LOCK)
}

/// The share of the time for which the busiest process of an arm computes, if it is Ruby's.
pub fn computes(study: &ComparisonStudy, arm: usize) -> Option<f64> {
    median(sound(study, arm).filter_map(busiest_ruby_process))
}

/// Whether an arm served connections in turns in most of its runs: a Puma before 7 announces that it
/// closes a connection if it gave it ten responses in a row while all threads were busy and others
/// waited to be accepted.
pub fn serves_in_turns(study: &ComparisonStudy, arm: usize) -> bool {
    let is_before_7 = study.server(arm).and_then(ServerFacts::puma_major).is_some_and(|it| it < 7);
    let has_ended_turns = |run: &&ComparisonRun| {
        run.run
            .tally
            .announced_closings
            .is_some_and(|ended| ended.fewest_answers >= TURN_OF_OLD_PUMA)
    };
    let all = sound(study, arm).count();
    let with = sound(study, arm).filter(has_ended_turns).count();
    is_before_7 && study.plan.arm(arm).stream.keep_alive && 2 * with > all
}

/// The same of a run.
fn busiest_ruby_process(run: &ComparisonRun) -> Option<f64> {
    let server = run.run.generator.server.as_ref().filter(|server| server.is_ruby)?;
    server.serving().iter().map(|process| process.used).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_sizes_have_more_threads_or_more_workers_where_the_lock_is_near() {
        // Four workers with five threads are the largest size.
        let far = testkit::comparison::largest_is_best(false);
        assert_eq!(larger_sizes(&far, 3).as_deref(), Some("4x5,4x8,4x13"));
        let mut near = testkit::comparison::largest_holds_the_lock();
        for cpu in near.runs.iter_mut().filter_map(|run| run.run.generator.server.as_mut()) {
            // Each computes for 80 % of the time; now for 90 %.
            cpu.processes.iter_mut().for_each(|process| process.cpu = process.cpu * 9 / 8);
        }
        assert_eq!(larger_sizes(&near, 3).as_deref(), Some("4x5,7x5,12x5"));
    }
}
