//! How many lanes (threads of the generator) a load has where nobody asked for a number. [`LaneCountReason`] is the rule that decided.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Placement;

/// What a lane is trusted to send in a second of an open loop: a tenth of what it can, so that it never queues by itself.
pub(crate) const TRUSTED_RATE: f64 = 20_000.0;

/// Why a run has so many lanes: the smallest of several bounds. In few words; in none where nobody need know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneCountReason {
    /// The user asked for so many.
    #[error("")]
    Asked,
    /// The highest rate needs no more, at `TRUSTED_RATE` a lane.
    #[error("{TRUSTED_RATE} req/s a thread")]
    Rate,
    /// Half of the processors: the server wants some.
    #[error("half of the CPUs")]
    Half,
    /// All processors that the server leaves.
    #[error("one for each CPU that the server leaves")]
    Left,
    /// A lane needs a connection.
    #[error("one for each connection")]
    Connections,
}

impl LaneCountReason {
    /// The lanes of a load: those that were asked for, else as many as there are processors for, and in an open loop no more than its
    /// highest rate (requests per second) needs, as each is one more thread that wakes up beside the server.
    pub fn choose(
        asked: Option<u32>,
        highest_rate: Option<f64>,
        connections: u32,
        cpus: u32,
        placement: Option<&Placement>,
    ) -> (u32, LaneCountReason) {
        let of_rate = |rate: f64| ((rate / TRUSTED_RATE).ceil().clamp(1.0, 1e6) as u32, LaneCountReason::Rate);
        let room = match placement.filter(|placement| !placement.is_shared()) {
            Some(apart) => (apart.lanes.len() as u32, LaneCountReason::Left),
            None => ((cpus / 2).max(1), LaneCountReason::Half),
        };
        let bounds = match asked {
            Some(count) => [Some((count, LaneCountReason::Asked)), None],
            None => [highest_rate.map(of_rate), Some(room)],
        };
        let least = bounds.into_iter().flatten().min_by_key(|(count, _)| *count);
        least.filter(|(count, _)| *count <= connections).unwrap_or((connections, LaneCountReason::Connections))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpus;

    /// The first `n` processors.
    fn first(n: u32) -> Cpus {
        (0..n).collect()
    }

    #[test]
    fn lanes_take_what_the_server_leaves_or_half() {
        // (processors, lanes where the server has one, half, all of them)
        for (cpus, with_one, with_half, with_all) in [(2, 1, 1, 1), (4, 3, 2, 2), (8, 7, 4, 4), (64, 63, 32, 32)] {
            for (server, lanes, by) in [
                (1, with_one, LaneCountReason::Left),
                (cpus / 2, with_half, LaneCountReason::Left),
                (cpus, with_all, LaneCountReason::Half),
            ] {
                let placement = Placement::beside(first(server), &first(cpus));
                let chosen = LaneCountReason::choose(None, None, 1000, cpus, Some(&placement));
                assert_eq!(chosen, (lanes, by), "{server} of {cpus}");
                assert_eq!(placement.lanes.common(&first(server)).is_empty(), server < cpus, "{server} of {cpus}");
            }
        }
        assert_eq!(LaneCountReason::choose(None, None, 50, 1, None), (1, LaneCountReason::Half));
    }

    #[test]
    fn an_open_loop_has_no_more_than_its_rate_needs_and_who_asks_is_obeyed_but_for_want_of_connections() {
        for (asked, rate, connections, chosen) in [
            (None, Some(0.001), 1000, (1, LaneCountReason::Rate)),
            (None, Some(20_000.0), 1000, (1, LaneCountReason::Rate)),
            (None, Some(20_001.0), 1000, (2, LaneCountReason::Rate)),
            (None, Some(5e5), 1000, (4, LaneCountReason::Half)),
            (None, Some(5e5), 3, (3, LaneCountReason::Connections)),
            (Some(3), None, 4, (3, LaneCountReason::Asked)),
            (Some(9), Some(1.0), 1000, (9, LaneCountReason::Asked)),
            (Some(9), Some(1.0), 4, (4, LaneCountReason::Connections)),
        ] {
            assert_eq!(
                LaneCountReason::choose(asked, rate, connections, 8, None),
                chosen,
                "{asked:?} {rate:?} {connections}"
            );
        }
    }
}
