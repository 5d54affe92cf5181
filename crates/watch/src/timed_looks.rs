//! How the waits with a time limit ended that the last looks at one process's threads found: whether
//! another thread ended them, as in a pool, or their time was up, as that of a sleep.

use std::collections::{BTreeMap, VecDeque};

use judge::watch::{EndedWaits, NumberAtLooks};
use probe::threads::PoolLook;

/// So many looks are kept: those of 30 s. Few of the longer waits end in five.
const MOST_LOOKS: usize = 150;

/// The last looks, the newest at the end.
#[derive(Debug, Default)]
pub(crate) struct TimedLooks {
    looks: VecDeque<TimedLook>,
}

/// One look.
#[derive(Debug, Default)]
struct TimedLook {
    /// The threads that serve requests.
    threads: u32,
    /// How many of them waited with a time limit; `None` if this user may not see it.
    timed: Option<u32>,
    /// How many of these waits another thread has ended since, and how many have lasted their time.
    early: u32,
    in_time: u32,
    /// The waits that had ended since the look before, of either kind.
    ended_early: u32,
    ended_in_time: u32,
    /// How often the app's own threads had run since the look before, if that is known.
    runs_beside: Option<u64>,
}

impl TimedLook {
    /// How many threads were in no wait that another one ended, if it is known of all.
    fn not_ended_early(&self) -> Option<u32> {
        (self.timed? == self.early + self.in_time).then(|| self.threads - self.early)
    }
}

impl TimedLooks {
    /// Takes the next look.
    pub(crate) fn take(&mut self, pool: &PoolLook) {
        let mut now = TimedLook {
            threads: pool.threads,
            timed: pool.waits.map(|waits| waits.timed),
            runs_beside: pool.runs_beside,
            ..TimedLook::default()
        };
        for wait in &pool.ended {
            *(if wait.is_early { &mut now.ended_early } else { &mut now.ended_in_time }) += 1;
            for look in self.looks.iter_mut().rev().take(wait.looks as usize) {
                *(if wait.is_early { &mut look.early } else { &mut look.in_time }) += 1;
            }
        }
        self.looks.push_back(now);
        self.looks.drain(..self.looks.len().saturating_sub(MOST_LOOKS));
    }

    /// What they tell together.
    pub(crate) fn ended(&self) -> EndedWaits {
        let sum = |part: fn(&TimedLook) -> u32| self.looks.iter().map(part).sum();
        let runs_beside = self.looks.iter().filter_map(|look| look.runs_beside);
        let others = || self.looks.iter().filter_map(TimedLook::not_ended_early);
        EndedWaits {
            early: sum(|look| look.ended_early),
            in_time: sum(|look| look.ended_in_time),
            early_looks: sum(|look| look.early),
            in_time_looks: sum(|look| look.in_time),
            others: usual(others()),
            fewest_others: fewest(others()),
            runs_beside: runs_beside.reduce(|a, b| a + b),
        }
    }
}

/// The smallest of these numbers, but for one in fifty: the threads are looked at one after another, so
/// that one which hands something to another may be seen in neither's place.
fn fewest(numbers: impl Iterator<Item = u32>) -> NumberAtLooks {
    const SELDOM: f64 = 0.02;
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    let looks = numbers.len();
    let Some(number) = numbers.get((SELDOM * looks as f64) as usize).copied() else {
        return NumberAtLooks::default();
    };
    let times = numbers.iter().filter(|other| **other == number).count();
    NumberAtLooks { number, share: times as f64 / looks as f64, looks: looks as u32 }
}

/// The number that occurs most often among these.
pub(crate) fn usual(numbers: impl Iterator<Item = u32>) -> NumberAtLooks {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    numbers.for_each(|number| *counts.entry(number).or_default() += 1);
    let looks: u32 = counts.values().sum();
    let (number, times) = counts.into_iter().max_by_key(|(_, times)| *times).unwrap_or_default();
    NumberAtLooks { number, share: f64::from(times) / f64::from(looks.max(1)), looks }
}

#[cfg(test)]
mod tests {
    use probe::threads::{EndedWait, ThreadWaits};

    use super::*;

    /// A look at five threads, of which so many wait with a time limit and the others for a socket;
    /// and the waits that have ended since the look before, each with the looks that found it.
    fn look(timed: u32, ended: &[(bool, u32)]) -> PoolLook {
        PoolLook {
            pid: 7,
            threads: 5,
            waits: Some(ThreadWaits { timed, socket: 5 - timed, ..ThreadWaits::default() }),
            ended: ended.iter().map(|&(is_early, looks)| EndedWait { is_early, looks }).collect(),
            ..PoolLook::default()
        }
    }

    #[test]
    fn a_wait_counts_at_each_look_that_found_it() {
        const EARLY: bool = true;
        const IN_TIME: bool = false;
        let mut looks = TimedLooks::default();
        // Two sleep and three wait for their turn; one of these waits at three looks.
        looks.take(&look(5, &[]));
        looks.take(&look(5, &[(EARLY, 1), (EARLY, 1), (IN_TIME, 1), (IN_TIME, 1)]));
        looks.take(&look(5, &[(EARLY, 1), (EARLY, 1), (IN_TIME, 1), (IN_TIME, 1)]));
        assert_eq!(looks.ended().others.looks, 0, "of the third wait it is not known how it ends");
        looks.take(&look(5, &[(EARLY, 3), (EARLY, 1), (EARLY, 1), (IN_TIME, 1), (IN_TIME, 1)]));
        let others = NumberAtLooks { number: 2, share: 1.0, looks: 3 };
        let expected = EndedWaits {
            early: 7,
            in_time: 6,
            early_looks: 9,
            in_time_looks: 6,
            others,
            fewest_others: others,
            runs_beside: None,
        };
        assert_eq!(looks.ended(), expected);
    }

    #[test]
    fn the_fewest_are_the_smallest_number_but_for_one_in_fifty() {
        let of = |numbers: &[(u32, usize)]| {
            let all = numbers.iter().flat_map(|(number, times)| vec![*number; *times]);
            let found = fewest(all);
            (found.number, (found.share * 100.0).round() as u32)
        };
        assert_eq!(of(&[(3, 20), (2, 29), (1, 1)]), (2, 58));
        assert_eq!(of(&[(3, 20), (2, 28), (1, 2)]), (1, 4), "two in fifty");
        assert_eq!(of(&[(3, 20), (2, 29), (0, 0)]), (2, 59));
        assert_eq!(of(&[]), (0, 0));
    }

    #[test]
    fn those_that_do_not_wait_for_others_may_do_anything() {
        let mut looks = TimedLooks::default();
        looks.take(&look(3, &[]));
        looks.take(&look(4, &[(true, 1), (true, 1), (true, 1)]));
        looks.take(&look(0, &[(true, 1), (true, 1), (true, 1), (false, 1)]));
        let others = looks.ended().others;
        assert_eq!(
            (others.number, others.looks),
            (2, 3),
            "two at a socket, or one, and one asleep"
        );
    }
}
