//! What a trial's counts show: whether the share of late requests is below or above what an
//! objective allows, and how sure that is.
//!
//! Requests close in time share a queue, so `n` of them are worth `n / inflation` independent ones.
//! The inflation comes from the differences between blocks of the trial. A trial without late
//! requests cannot tell it, so it is also computed for requests beyond a shorter time, of which
//! there are at least five times as many as may be late: if these come in clusters, late ones do.

use crate::binomial::{likely_at_least, likely_at_most};
use crate::late_counts::{CountBin, LEVELS, LateCounts};

/// Numbers of blocks into which a trial is divided.
const BLOCKS: [usize; 3] = [10, 20, 40];
/// The worst blocks of the first division that do not count against a server: a stall is a single
/// event, however many requests it makes late.
const SPARED: usize = 1;
/// The shorter time is one that at least this many times the allowed share exceed, or at least this
/// share of all requests.
const TIMES_THE_SHARE: f64 = 5.0;
const LARGEST_SHARE: f64 = 0.3;
/// With fewer late requests than this, nothing is known about their clusters.
const FEW: u64 = 5;

/// The late requests of a trial, by one objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LateShare {
    /// Requests that became due.
    pub requests: u64,
    /// Those that were late or failed.
    pub late: u64,
    /// The share that the objective allows.
    pub allowed: f64,
    /// How many requests are worth one independent one.
    pub inflation: f64,
    /// Without the worst tenth of the trial: requests, and those that were late or failed; `None`
    /// if the trial is too short to leave anything out.
    without_worst: Option<[u64; 2]>,
}

impl LateShare {
    /// For each objective of these counts.
    pub fn all_of(counts: &LateCounts) -> Vec<LateShare> {
        (0..counts.objectives().len()).map(|number| LateShare::of(counts, number)).collect()
    }

    fn of(counts: &LateCounts, number: usize) -> LateShare {
        let objective = counts.objectives()[number];
        let counts_unfinished = objective.late_after.is_some();
        let bins = counts.settled();
        let at = |level: usize| -> Vec<u64> {
            bins.iter().map(|bin| bin.above(number, level, counts_unfinished)).collect()
        };
        let late_bins = at(0);
        let late: u64 = late_bins.iter().sum();
        let requests = counts.requests();
        let wanted = (objective.allowed * TIMES_THE_SHARE).min(LARGEST_SHARE);
        let is_enough =
            |level: &usize| at(*level).iter().sum::<u64>() as f64 >= wanted * requests as f64;
        let lower = (1..LEVELS).find(is_enough).map_or_else(Vec::new, at);
        let of_lower = spread(bins, &lower);
        let of_late = if late >= FEW { spread(bins, &late_bins) } else { 1.0 };
        LateShare {
            requests,
            late,
            allowed: objective.allowed,
            inflation: of_late.max(of_lower).max(1.0),
            without_worst: without_worst(bins, &late_bins),
        }
    }

    /// Late requests / the allowed number of them: below 1 looks as if the objective was kept.
    pub fn late_ratio(&self) -> f64 {
        (self.late as f64 + 0.5) / (self.requests as f64 * self.allowed + 0.5)
    }

    /// The probability of so few late requests, or fewer, if the share was what is allowed.
    pub fn chance_of_so_few(&self) -> f64 {
        let worth = (self.requests as f64 / self.inflation).floor() as u64;
        let late = (self.late as f64 / self.inflation).ceil() as u64;
        likely_at_most(late, worth, self.allowed)
    }

    /// The probability of so many late requests, or more, if the share was what is allowed; the
    /// worst part of the trial is left out.
    pub fn chance_of_so_many(&self) -> f64 {
        let Some([requests, late]) = self.without_worst else { return 1.0 };
        let worth = (requests as f64 / self.inflation).ceil() as u64;
        let late = (late as f64 / self.inflation).floor() as u64;
        likely_at_least(late, worth, self.allowed)
    }
}

/// How many requests are worth one independent one, by how unevenly `counts`, one for each bin, are
/// spread. Short blocks hide long clusters and few blocks tell little, so it is the mean of several
/// divisions; the largest of them would be too large by chance.
fn spread(bins: &[CountBin], counts: &[u64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let due: u64 = bins.iter().map(|bin| bin.due).sum();
    if total == 0 || total >= due {
        return 1.0;
    }
    let share = total as f64 / due as f64;
    let mut inflations = 0.0;
    let mut divisions = 0.0;
    for blocks in BLOCKS.into_iter().filter(|blocks| *blocks <= bins.len()) {
        let length = bins.len() / blocks;
        let excess = in_blocks(bins, counts, blocks)
            .map(|[due, counted]| counted as f64 - share * due as f64);
        // Of independent requests.
        let expected = due as f64 / bins.len() as f64 * length as f64 * share * (1.0 - share);
        let squares: f64 = excess.map(|it| it * it).sum();
        inflations += squares / (blocks - 1) as f64 / expected;
        divisions += 1.0;
    }
    if divisions > 0.0 { inflations / divisions } else { 1.0 }
}

/// Requests and counted ones of each block, the first bins left out if they make no whole block.
fn in_blocks<'a>(
    bins: &'a [CountBin],
    counts: &'a [u64],
    blocks: usize,
) -> impl Iterator<Item = [u64; 2]> + 'a {
    let length = bins.len() / blocks;
    let from = bins.len() - blocks * length;
    (0..blocks).map(move |block| {
        let at = from + block * length..from + (block + 1) * length;
        let due = bins[at.clone()].iter().map(|bin| bin.due).sum();
        [due, counts[at].iter().sum()]
    })
}

/// Requests and late ones without the worst blocks.
fn without_worst(bins: &[CountBin], late: &[u64]) -> Option<[u64; 2]> {
    if bins.len() < BLOCKS[0] {
        return None;
    }
    let mut blocks: Vec<[u64; 2]> = in_blocks(bins, late, BLOCKS[0]).collect();
    blocks.sort_by_key(|[_, late]| *late);
    let kept = &blocks[..BLOCKS[0] - SPARED];
    Some([0, 1].map(|number| kept.iter().map(|block| block[number]).sum()))
}
