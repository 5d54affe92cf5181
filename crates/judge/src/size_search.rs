//! Which sizes `sweep --try auto` looks at, with single runs, and which of them it compares.
//!
//! A first run of each size, in a closed loop, says how much it can do. A second one, in an open loop
//! at a rate below that, says how long requests take when users send no more than usual: there more
//! threads bring little from some size on, and Ruby's lock lets requests wait for each other.
//!
//! A single run says little: its rate differs by some percent from the next one's. It is enough to
//! leave out what is far behind, and the comparison decides between the rest.

use model::comparison::{MissingFigure, RateLook, SizeLook};
use model::{ComparisonStudy, CpuUsage, Nanos, Run, ServerSize};

use crate::findings::others_beyond;
use crate::tried_sizes::{computes, is_near_limit, used_up};

/// Threads of a worker that are looked at, one after the other.
const THREADS: [u32; 9] = [1, 2, 3, 5, 8, 13, 21, 34, 55];

/// A rate of at least this part of another is as good, as far as one run of each can tell.
pub const AS_GOOD: f64 = 0.95;

/// So many sizes in a row that bring nothing, or where nothing is left to gain, end the search: a
/// single one may be wrong.
const ENOUGH: usize = 2;

/// Ordinary traffic, where the user does not say what it is: this share of the most that any size
/// does. Servers are rarely run nearer to their limit.
const ORDINARY: f64 = 0.6;

/// A 95th percentile up to so many times the least is as good, as far as one run of each can tell.
const AS_SHORT: f64 = 1.25;

/// The load of a single run.
pub enum LookLoad {
    /// A closed loop.
    Closed {
        /// Its connections.
        connections: u32,
    },
    /// An open loop with Poisson arrivals.
    Rate {
        /// Requests per second.
        per_s: f64,
        /// How long it runs.
        length: Nanos,
    },
}

/// What a run of a size in a closed loop shows: the only run of `study`.
pub fn look_of(study: &ComparisonStudy, size: ServerSize) -> SizeLook {
    let run = study.runs.last().map(|run| &run.run);
    let others = run.and_then(|run| others_beyond(run, study.plan.margin));
    SizeLook {
        size,
        rate_per_s: run.map_or(0.0, model::Run::completed_rate),
        // CPUs that others use up say nothing of the size.
        is_near_limit: others.is_none() && is_near_limit(study, 0),
        cpus_used_up: used_up(study, 0).map(|cpus| cpus.of),
        computes: computes(study, 0),
        others,
        at_rate: None,
    }
}

/// What a run of a size in an open loop at this rate shows: the only run of `study`.
pub fn rate_look_of(study: &ComparisonStudy, per_s: f64) -> RateLook {
    let run = study.runs.last().map(|run| &run.run);
    let steady = run.filter(|run| !run.is_overload());
    let at = |quantile: f64| steady?.tally.response_time_at(quantile).time();
    // The server leaves CPUs idle, so whatever others use of them may make its requests wait.
    let others = run.and_then(|run| CpuUsage::of(&run.generator)).and_then(|cpus| {
        let least = 2.0 * study.plan.margin * cpus.of;
        cpus.others.filter(|others| *others >= least)
    });
    let [p50, p95] = [0.50, 0.95].map(at);
    let has_failed = |run: &Run| run.tally.counts.failed() > 0;
    let missing = match steady {
        _ if p50.is_some() && p95.is_some() => None,
        None => run.map(|_| MissingFigure::Overloaded),
        Some(run) if has_failed(run) => Some(MissingFigure::Failures),
        Some(_) => Some(MissingFigure::TooFewAnswers),
    };
    RateLook { per_s, p50, p95, missing, others }
}

/// The rate of ordinary traffic, where the user does not say it: a round number.
pub fn ordinary_rate(looks: &[SizeLook]) -> Option<f64> {
    let rate = ORDINARY * highest_rate(looks);
    let step = 10f64.powf(rate.log10().floor() - 1.0);
    (rate > 0.0).then(|| (rate / step).round() * step)
}

/// How long a run at this rate is: long enough for 40 responses above the 95th percentile, within
/// what somebody waits for who wants runs in blocks of `length`.
pub fn length_at(per_s: f64, length: Nanos) -> Nanos {
    const RESPONSES: f64 = 800.0;
    const LEAST_S: f64 = 5.0;
    const MOST: u64 = 5;
    Nanos::from_secs((RESPONSES / per_s).max(LEAST_S).ceil() as u64).min(length * MOST)
}

/// The sizes that can do so many requests per second, by their place among the looks.
pub fn that_can_do(looks: &[SizeLook], per_s: f64) -> Vec<usize> {
    (0..looks.len()).filter(|at| looks[*at].rate_per_s >= per_s).collect()
}

/// The smallest size whose response times with ordinary traffic are as short as those of any other,
/// as far as one run of each can tell.
pub fn enough_for_rate(looks: &[SizeLook]) -> Option<&SizeLook> {
    let p95 = |look: &SizeLook| Some(look.at_rate?.p95?.as_secs_f64());
    let least = looks.iter().filter_map(p95).reduce(f64::min)?;
    looks.iter().find(|look| p95(look).is_some_and(|time| time <= AS_SHORT * least))
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

/// The sizes to compare, in ascending order, and at which rate.
pub struct ComparedSizes {
    /// The sizes; fewer than two if fewer were looked at.
    pub sizes: Vec<ServerSize>,
    /// Requests per second of an open loop with Poisson arrivals; `None` is a closed loop.
    pub per_s: Option<f64>,
}

/// A size that a rate keeps busier than this is left out: requests may wait ever longer there, and
/// then it has no response times to compare.
const BUSY_AT_MOST: f64 = 0.9;

/// The size that seems enough for ordinary traffic and its neighbours, at that rate. If fewer than
/// two sizes can do it, those that do most, in a closed loop.
pub fn to_compare(looks: &[SizeLook]) -> ComparedSizes {
    let near = enough_for_rate(looks).and_then(|enough| {
        let per_s = enough.at_rate?.per_s;
        let at = looks.iter().position(|look| look.size == enough.size)?;
        let has_room = |look: &&SizeLook| look.rate_per_s * BUSY_AT_MOST >= per_s;
        let below = looks[..at].last().filter(has_room);
        let above =
            looks[at + 1..].iter().filter(has_room).take(if below.is_some() { 1 } else { 2 });
        let sizes: Vec<ServerSize> =
            below.into_iter().chain([enough]).chain(above).map(|look| look.size).collect();
        (sizes.len() > 1).then_some(ComparedSizes { sizes, per_s: Some(per_s) })
    });
    near.unwrap_or_else(|| ComparedSizes { sizes: that_do_most(looks), per_s: None })
}

/// The smallest that was as good as the best in a closed loop, the best, and their neighbours, because
/// one run of each may be wrong by a step.
fn that_do_most(looks: &[SizeLook]) -> Vec<ServerSize> {
    let rates = || looks.iter().map(|look| look.rate_per_s);
    let most = highest_rate(looks);
    let best = rates().position(|rate| rate >= most).unwrap_or_default();
    let smallest = rates().position(|rate| rate >= AS_GOOD * most).unwrap_or_default();
    let wanted = [smallest.saturating_sub(1), smallest, best, best + 1];
    let chosen = looks.iter().enumerate().filter(|(at, _)| wanted.contains(at));
    chosen.map(|(_, look)| look.size).collect()
}

/// The two smallest sizes that do so much of what the best does that one may want them, and the best
/// itself; each of them takes minutes to measure, so they are few.
pub(crate) fn worth_having(looks: &[SizeLook]) -> Vec<ServerSize> {
    const PART_OF_THE_BEST: f64 = 0.7;
    const SMALLEST: usize = 2;
    let most = highest_rate(looks);
    let good = looks.iter().filter(|look| look.rate_per_s >= PART_OF_THE_BEST * most);
    let chosen = good.enumerate().filter(|(at, look)| *at < SMALLEST || look.rate_per_s >= most);
    chosen.map(|(_, look)| look.size).collect()
}

fn highest_rate(looks: &[SizeLook]) -> f64 {
    looks.iter().map(|look| look.rate_per_s).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at workers of 1, 2, 3, 5, … threads, with these rates.
    fn looks(rates: &[f64]) -> Vec<SizeLook> {
        let look = |(rate, threads): (&f64, u32)| testkit::comparison::size_look(threads, *rate);
        rates.iter().zip(THREADS).map(look).collect()
    }

    fn threads(sizes: &[ServerSize]) -> Vec<u32> {
        sizes.iter().map(|size| size.threads).collect()
    }

    /// Looks with these rates, and 95th percentiles in milliseconds at 75/s; 0 is none.
    fn looks_at_rate(rows: &[(f64, u64)]) -> Vec<SizeLook> {
        let rates: Vec<f64> = rows.iter().map(|(rate, _)| *rate).collect();
        let mut looks = looks(&rates);
        for (look, (rate, ms)) in looks.iter_mut().zip(rows) {
            let p95 = (*ms > 0).then(|| Nanos::from_millis(*ms));
            let at_rate = RateLook { per_s: 75.0, p50: p95, p95, missing: None, others: None };
            look.at_rate = (*rate >= 75.0).then_some(at_rate);
        }
        looks
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
    fn ordinary_traffic_is_a_round_rate_that_most_sizes_can_do() {
        let looks = looks(&[44.0, 63.8, 76.5, 93.0, 108.0, 120.0, 125.0]);
        let rate = ordinary_rate(&looks).unwrap();
        let length = |rate| length_at(rate, Nanos::from_secs(4));
        assert_eq!((rate, length(rate)), (75.0, Nanos::from_secs(11)));
        assert_eq!(that_can_do(&looks, rate), [2, 3, 4, 5, 6]);
        assert_eq!(ordinary_rate(&[]), None);
        assert_eq!([1.0, 1e5].map(length), [20, 5].map(Nanos::from_secs));
    }

    #[test]
    fn the_smallest_size_with_short_times_is_enough() {
        let enough = |p95_ms: &[u64]| {
            let rates = [76.5, 93.0, 108.0, 120.0];
            let rows: Vec<(f64, u64)> = rates.into_iter().zip(p95_ms.iter().copied()).collect();
            enough_for_rate(&looks_at_rate(&rows)).map(|look| look.size.threads)
        };
        assert_eq!(enough(&[4119, 101, 104, 109]), Some(2), "the largest are no better");
        assert_eq!(enough(&[0, 190, 104, 109]), Some(3), "ever more waited at the first");
        assert_eq!(enough(&[30, 31, 34]), Some(1));
        assert_eq!((enough(&[0, 0]), enough(&[])), (None, None));
    }

    #[test]
    fn no_more_threads_are_looked_at_than_have_connections() {
        let next = |connections| next_threads(&looks(&[44.0, 72.0, 90.0]), 2, Some(connections));
        assert_eq!((next(9), next(10)), (None, Some(5)));
        assert_eq!(next_threads(&looks(&[44.0]), 0, Some(2)), Some(2), "single mode is a worker");
    }

    #[test]
    fn the_size_that_is_enough_is_compared_with_its_neighbours_at_the_rate() {
        let compared = |rows: &[(f64, u64)]| {
            let ComparedSizes { sizes, per_s } = to_compare(&looks_at_rate(rows));
            (threads(&sizes), per_s)
        };
        let most = [(110.0, 206), (117.0, 186), (124.0, 190)];
        let after = |first: &[(f64, u64)]| compared(&[first, &most].concat());
        assert_eq!(after(&[(43.8, 0), (94.8, 1166)]), (vec![2, 3, 5], Some(75.0)));
        // The second is busy at that rate for 98 % of the time.
        assert_eq!(after(&[(43.8, 0), (76.5, 1166)]), (vec![3, 5, 8], Some(75.0)));
        assert_eq!(compared(&[(43.8, 0), (125.0, 90)]), (vec![1, 2], None), "only one can do it");
        assert_eq!(compared(&[(43.8, 0), (60.0, 0)]), (vec![1, 2], None), "none can do it");
    }

    #[test]
    fn the_best_sizes_and_their_neighbours_are_those_that_do_most() {
        let compared = |rates: &[f64]| threads(&that_do_most(&looks(rates)));
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
