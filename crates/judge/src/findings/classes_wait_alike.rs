//! Requests of each class wait about as long, so that response times differ by what a request
//! takes and not by the order of service.

use model::{Nanos, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::class_times::{ClassTime, times_of_classes};
use crate::sweep_points::SweepPoint;
use crate::words::{brief, load};

/// Requests of each class wait about as long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassesWaitAlike {
    /// The load.
    pub multiple: f64,
    /// The shortest mean wait of a class: what a response takes longer than alone.
    #[serde(rename = "shortest_wait_ns")]
    pub shortest_wait: Nanos,
    /// The longest.
    #[serde(rename = "longest_wait_ns")]
    pub longest_wait: Nanos,
    /// What the fastest class takes alone.
    #[serde(rename = "fastest_alone_ns")]
    pub fastest_alone: Nanos,
    /// What the slowest takes.
    #[serde(rename = "slowest_alone_ns")]
    pub slowest_alone: Nanos,
}

/// Each class needs at least this many responses.
const LEAST: u64 = 30;
/// They differ if the slowest takes this many times as long as the fastest.
const DIFFER: u64 = 2;
/// They wait alike if each class's mean wait is within this share of the mean wait of all.
const ALIKE: f64 = 0.25;
/// Below this share of what a request takes alone, a wait is lost in its variation.
const NOTABLE: f64 = 0.5;

/// Judges a load at which requests wait.
pub(super) fn of(study: &SweepStudy, point: &SweepPoint<'_>) -> Option<Finding> {
    let classes = times_of_classes(&study.classes_alone, point.run, &study.runs)?;
    let is_known = |class: &ClassTime<'_>| {
        class.tally.response_time.count() >= LEAST && class.tally.counts.failed() == 0
    };
    if !classes.iter().all(is_known) {
        return None;
    }
    let waits: Vec<Nanos> = classes.iter().map(ClassTime::wait).collect::<Option<_>>()?;
    let shortest_wait = *waits.iter().min()?;
    let longest_wait = *waits.iter().max()?;
    let fastest_alone = classes.iter().map(|class| class.alone).min()?;
    let slowest_alone = classes.iter().map(|class| class.alone).max()?;
    let requests: f64 = classes.iter().map(|class| class.requests).sum();
    let wait = classes.iter().zip(&waits).map(|(class, wait)| class.requests * wait.as_secs_f64());
    let wait = wait.sum::<f64>() / requests;
    let alone = classes.iter().map(ClassTime::server_time).sum::<f64>() / requests;
    let is_alike = |other: &Nanos| (other.as_secs_f64() / wait - 1.0).abs() <= ALIKE;
    let holds = slowest_alone >= fastest_alone * DIFFER
        && wait >= NOTABLE * alone
        && waits.iter().all(is_alike);
    holds.then(|| {
        ClassesWaitAlike {
            multiple: point.multiple,
            shortest_wait,
            longest_wait,
            fastest_alone,
            slowest_alone,
        }
        .into()
    })
}

impl ClassesWaitAlike {
    pub(super) fn sentence(&self) -> String {
        let ClassesWaitAlike { multiple, shortest_wait, longest_wait, .. } = self;
        format!(
            "All kinds of requests wait about as long at {}, {} to {} on average; what differs is how \
             long each takes alone, {} to {}.",
            load(*multiple),
            brief(*shortest_wait),
            brief(*longest_wait),
            brief(self.fastest_alone),
            brief(self.slowest_alone)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_times::fixtures::{AloneAndWait, with_searches};
    use crate::sweep_points;

    fn found(posts: AloneAndWait, searches: AloneAndWait) -> Option<String> {
        let study = with_searches(posts, searches);
        of(&study, sweep_points::of(&study).last().unwrap()).map(|finding| finding.sentence())
    }

    #[test]
    fn classes_that_wait_as_long_are_told_from_an_order_of_service() {
        let times = |alone, wait| AloneAndWait { alone, wait };
        let alike = found(times(50, 600), times(800, 640)).unwrap();
        assert!(alike.contains("600 ms to 640 ms"), "{alike}");
        assert!(alike.contains("50.0 ms to 800 ms"), "{alike}");
        assert_eq!(found(times(50, 100), times(800, 1600)), None, "the slow ones wait longer");
        assert_eq!(found(times(190, 600), times(240, 600)), None, "they take as long");
        assert_eq!(found(times(50, 20), times(800, 20)), None, "hardly anyone waits");
    }
}
