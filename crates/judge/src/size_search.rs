//! Which sizes `sweep --try auto` looks at, with one short run each, and which of them it compares.
//!
//! A single run says little: its rate differs by some percent from the next one's. It is enough to
//! leave out what is far behind, and the comparison decides between the rest.

use model::comparison::SizeLook;
use model::{ComparisonStudy, ServerSize};

use crate::findings::others_beyond;
use crate::tried_sizes::is_near_limit;

/// Threads of a worker that are looked at, one after the other.
const THREADS: [u32; 9] = [1, 2, 3, 5, 8, 13, 21, 34, 55];

/// A rate of at least this part of another is as good, as far as one run of each can tell.
const AS_GOOD: f64 = 0.95;

/// So many sizes in a row that bring nothing, or where nothing is left to gain, end the search: a
/// single one may be wrong.
const ENOUGH: usize = 2;

/// What a run of a size shows: the only run of `study`.
pub fn look_of(study: &ComparisonStudy, size: ServerSize) -> SizeLook {
    let run = study.runs.last().map(|run| &run.run);
    let others = run.and_then(|run| others_beyond(run, study.plan.margin));
    SizeLook {
        size,
        rate_per_s: run.map_or(0.0, model::Run::completed_rate),
        // CPUs that others use up say nothing of the size.
        is_near_limit: others.is_none() && is_near_limit(study, 0),
        others,
    }
}

/// Of two looks at one size, the one of which other processes took less.
pub fn less_disturbed(one: SizeLook, other: SizeLook) -> SizeLook {
    let others = |look: SizeLook| look.others.unwrap_or(0.0);
    if others(one) <= others(other) { one } else { other }
}

/// The next number of threads to look at, after those of `looks`; `None` if more of them brought
/// nothing or can bring nothing, there are none left, or `connections` cannot keep so many busy.
pub fn next_threads(looks: &[SizeLook], workers: u32, connections: Option<u32>) -> Option<u32> {
    let (before, latest) = looks.split_at(looks.len().saturating_sub(ENOUGH));
    let brought_nothing =
        !before.is_empty() && highest_rate(latest) * AS_GOOD <= highest_rate(before);
    let can_bring_nothing = latest.len() == ENOUGH && latest.iter().all(|look| look.is_near_limit);
    if brought_nothing || can_bring_nothing {
        return None;
    }
    let threads = *THREADS.get(looks.len())?;
    let size = ServerSize { workers, threads, keep_alive: true };
    connections.is_none_or(|connections| size.slots() <= connections).then_some(threads)
}

/// The connections of a look: twice the slots of this size, and no fewer than fill the smaller sizes
/// alike. Where there are few, Puma's workers get uneven numbers of them, and a larger size would
/// seem better because its connections are more.
pub fn connections_for(size: ServerSize) -> u32 {
    const FOR_EACH_WORKER: u32 = 16;
    size.slots().saturating_mul(2).max(size.workers.max(1).saturating_mul(FOR_EACH_WORKER))
}

/// The sizes to compare, in ascending order: the smallest that was as good as the best, the best,
/// and their neighbours, because one run of each may be wrong by a step. Fewer than two if fewer were
/// looked at.
pub fn to_compare(looks: &[SizeLook]) -> Vec<ServerSize> {
    let rates = || looks.iter().map(|look| look.rate_per_s);
    let most = highest_rate(looks);
    let best = rates().position(|rate| rate >= most).unwrap_or_default();
    let smallest = rates().position(|rate| rate >= AS_GOOD * most).unwrap_or_default();
    let wanted = [smallest.saturating_sub(1), smallest, best, best + 1];
    let chosen = looks.iter().enumerate().filter(|(at, _)| wanted.contains(at));
    chosen.map(|(_, look)| look.size).collect()
}

/// The smallest sizes that do so much of what the best does that one may want them; each of them takes
/// minutes to measure, so they are few.
pub(crate) fn worth_having(looks: &[SizeLook]) -> impl Iterator<Item = ServerSize> {
    const PART_OF_THE_BEST: f64 = 0.7;
    const MOST: usize = 3;
    let least = PART_OF_THE_BEST * highest_rate(looks);
    looks.iter().filter(move |look| look.rate_per_s >= least).map(|look| look.size).take(MOST)
}

fn highest_rate(looks: &[SizeLook]) -> f64 {
    looks.iter().map(|look| look.rate_per_s).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at workers of 1, 2, 3, 5, … threads, with these rates.
    fn looks(rates: &[f64]) -> Vec<SizeLook> {
        let look = |(rate, threads): (&f64, u32)| SizeLook {
            size: ServerSize { workers: 2, threads, keep_alive: true },
            rate_per_s: *rate,
            is_near_limit: false,
            others: None,
        };
        rates.iter().zip(THREADS).map(look).collect()
    }

    fn compared(rates: &[f64]) -> Vec<u32> {
        to_compare(&looks(rates)).iter().map(|size| size.threads).collect()
    }

    #[test]
    fn the_search_ends_where_two_more_sizes_bring_nothing() {
        let next = |rates: &[f64]| next_threads(&looks(rates), 2, None);
        assert_eq!(next(&[]), Some(1));
        assert_eq!(next(&[44.0]), Some(2));
        assert_eq!(next(&[44.0, 72.0, 76.0]), Some(5));
        assert_eq!(next(&[44.0, 72.0, 76.0, 73.0]), Some(8), "3 threads did more than 2");
        assert_eq!(next(&[44.0, 72.0, 74.0, 75.0]), None, "neither 3 nor 5 did");
        assert_eq!(next(&[130.0, 131.0, 129.0]), None, "it only computes");
        let only_waits: Vec<f64> = THREADS.map(|threads| f64::from(threads) * 20.0).into();
        assert_eq!(next(&only_waits[..8]), Some(55));
        assert_eq!(next(&only_waits), None, "all were looked at");
        assert_eq!(next(&[0.0, 0.0, 0.0]), None, "nothing is completed");
    }

    #[test]
    fn the_search_ends_where_nothing_is_left_to_gain() {
        let mut looks = looks(&[44.0, 72.0, 90.0, 110.0]);
        looks[3].is_near_limit = true;
        assert_eq!(next_threads(&looks, 2, None), Some(8), "one run may be wrong");
        looks[2].is_near_limit = true;
        assert_eq!(next_threads(&looks, 2, None), None);
    }

    #[test]
    fn no_more_threads_are_looked_at_than_have_connections() {
        let next = |connections| next_threads(&looks(&[44.0, 72.0, 90.0]), 2, Some(connections));
        assert_eq!((next(9), next(10)), (None, Some(5)));
        assert_eq!(next_threads(&looks(&[44.0]), 0, Some(2)), Some(2), "single mode is a worker");
    }

    #[test]
    fn the_best_sizes_and_their_neighbours_are_compared() {
        assert_eq!(
            compared(&[44.0, 72.0, 76.0, 96.0, 110.0, 117.0, 119.0, 118.0]),
            [8, 13, 21, 34]
        );
        assert_eq!(compared(&[44.0, 66.0, 83.0, 113.0, 116.0, 118.0, 117.0]), [3, 5, 13, 21]);
        assert_eq!(compared(&[130.0, 131.0, 129.0]), [1, 2, 3]);
        assert_eq!(compared(&[131.0, 120.0, 110.0]), [1, 2]);
        let only_waits = THREADS.map(|threads| f64::from(threads) * 20.0);
        assert_eq!(compared(&only_waits), [34, 55]);
        assert_eq!(compared(&[44.0]), [1]);
        assert_eq!(compared(&[]), [0; 0]);
    }
}
