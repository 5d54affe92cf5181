//! How many lanes a run has where nobody asked for a number, and why: by what was measured on this machine, or by rules.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Placement;

/// What a lane is trusted to send in a second of an open loop where nothing was measured: a tenth of what it can, so that it never
/// queues by itself.
pub const TRUSTED_RATE: u32 = 20_000;

/// What was measured on one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneLimits {
    /// The day (UTC), `2026-11-22`.
    pub measured_on: String,
    /// The highest rate tried, in requests per second, that one lane of an open loop kept.
    pub kept_per_s: u32,
    /// The smallest number of lanes beyond which more did not pay in a closed loop; `None` where there are too few processors to
    /// ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paying: Option<u32>,
}

/// Why a run has so many lanes: what the smallest of several bounds was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum LanesBy {
    /// `--lanes` says so.
    Asked,
    /// The highest rate that may be needs no more.
    Rate {
        /// What one lane sends in a second.
        of_a_lane_per_s: u32,
        /// The day on which that was measured; `None` where it is a rule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        measured_on: Option<String>,
    },
    /// More did not pay on this machine.
    Growth {
        /// The day on which that was measured.
        measured_on: String,
    },
    /// Half of the processors, a rule: the server wants some.
    Half,
    /// All processors that the server leaves.
    Left,
    /// A lane needs a connection.
    Connections,
    /// One, a rule: how fast the server can be is not known.
    One,
}

/// A number of lanes and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// How many, at least 1.
    pub count: u32,
    /// Why.
    pub by: LanesBy,
}

/// What there is room for.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// Processors that longtail may use.
    pub cpus: u32,
    /// Who may run where, as far as that is known.
    pub placement: Option<&'a Placement>,
    /// Connections of the run, at least 1.
    pub connections: u32,
    /// What was measured here.
    pub limits: Option<&'a LaneLimits>,
}

impl Room<'_> {
    /// The lanes of a load: those that were asked for, else as many as pay, and in an open loop no more than its highest rate
    /// (requests per second) needs, as each is one more thread that wakes up beside the server.
    pub fn of_load(&self, asked: Option<u32>, highest_rate: Option<f64>) -> Lanes {
        let chosen = match (asked, highest_rate) {
            (Some(count), _) => Lanes { count, by: LanesBy::Asked },
            (None, Some(rate)) => self.needed(rate).or_fewer(self.most()),
            (None, None) => self.most(),
        };
        chosen.or_fewer(Lanes { count: self.connections, by: LanesBy::Connections })
    }

    /// The lanes of a closed loop on a server that we start: those that were asked for, else one. More only where the most that it
    /// can do (requests per second) is known to be more than one lane was seen to send.
    pub fn of_server(&self, asked: Option<u32>, highest_rate: Option<f64>) -> Lanes {
        let chosen = match (asked, highest_rate) {
            (Some(count), _) => return Lanes { count, by: LanesBy::Asked },
            (None, Some(rate)) if self.limits.is_some() => self.needed(rate).or_fewer(self.most()),
            (None, _) => Lanes { count: 1, by: LanesBy::One },
        };
        chosen.or_fewer(Lanes { count: self.connections, by: LanesBy::Connections })
    }

    /// As many as a rate needs.
    fn needed(&self, rate: f64) -> Lanes {
        let of_a_lane_per_s = self.limits.map_or(TRUSTED_RATE, |limits| limits.kept_per_s).max(1);
        let count = (rate / f64::from(of_a_lane_per_s)).ceil().clamp(1.0, 1e6) as u32;
        let measured_on = self.limits.map(|limits| limits.measured_on.clone());
        Lanes { count, by: LanesBy::Rate { of_a_lane_per_s, measured_on } }
    }

    /// As many as there is anything for: all that a server which is kept to others has left, else half of the processors; where
    /// it was measured, no more than paid.
    fn most(&self) -> Lanes {
        let paid = self.limits.and_then(|limits| {
            Some(Lanes { count: limits.paying?, by: LanesBy::Growth { measured_on: limits.measured_on.clone() } })
        });
        match (self.placement.filter(|placement| !placement.is_shared()), paid) {
            (Some(apart), paid) => {
                let left = Lanes { count: apart.lanes.len() as u32, by: LanesBy::Left };
                paid.into_iter().fold(left, Lanes::or_fewer)
            }
            (None, Some(paid)) => paid,
            (None, None) => Lanes { count: (self.cpus / 2).max(1), by: LanesBy::Half },
        }
    }
}

impl Lanes {
    /// The other one where it is fewer.
    fn or_fewer(self, other: Lanes) -> Lanes {
        if other.count < self.count { other } else { self }
    }
}

impl fmt::Display for LanesBy {
    /// In few words; nothing where nobody need be told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LanesBy::Asked | LanesBy::One => Ok(()),
            LanesBy::Rate { of_a_lane_per_s, measured_on: Some(day) } => {
                write!(f, "a lane kept {of_a_lane_per_s} req/s on {day}")
            }
            LanesBy::Rate { of_a_lane_per_s, measured_on: None } => {
                write!(f, "{of_a_lane_per_s} req/s a lane, not measured here")
            }
            LanesBy::Growth { measured_on } => write!(f, "more did not pay on {measured_on}"),
            LanesBy::Half => f.write_str("half of the CPUs"),
            LanesBy::Left => f.write_str("one for each CPU that the server leaves"),
            LanesBy::Connections => f.write_str("one for each connection"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpus;
    use proptest::prelude::*;

    const DAY: &str = "2026-11-22";

    fn limits(kept_per_s: u32, paying: Option<u32>) -> LaneLimits {
        LaneLimits { measured_on: DAY.to_owned(), kept_per_s, paying }
    }

    /// The first `n` of so many processors.
    fn first(n: u32) -> Cpus {
        (0..n).collect()
    }

    /// The lanes of a load beside a server on the first `server` of `cpus` processors.
    fn beside(cpus: u32, server: u32, limits: Option<&LaneLimits>, rate: Option<f64>) -> (u32, LanesBy, Cpus) {
        let placement = Placement::beside(first(server), &first(cpus));
        let room = Room { cpus, placement: Some(&placement), connections: 1000, limits };
        let Lanes { count, by } = room.of_load(None, rate);
        (count, by, placement.lanes)
    }

    #[test]
    fn without_a_measurement_lanes_take_what_the_server_leaves_or_half() {
        // (processors, lanes where the server has one, half, all of them)
        for (cpus, with_one, with_half, with_all) in [(2, 1, 1, 1), (4, 3, 2, 2), (8, 7, 4, 4), (64, 63, 32, 32)] {
            for (server, lanes, by) in
                [(1, with_one, LanesBy::Left), (cpus / 2, with_half, LanesBy::Left), (cpus, with_all, LanesBy::Half)]
            {
                let (count, why, places) = beside(cpus, server, None, None);
                assert_eq!((count, why), (lanes, by), "{server} of {cpus}");
                let is_apart = places.common(&first(server)).is_empty();
                assert_eq!(is_apart, server < cpus, "{server} of {cpus}: lanes on {places}");
            }
        }
        let alone = Room { cpus: 1, placement: None, connections: 50, limits: None };
        assert_eq!(alone.of_load(None, None).count, 1);
    }

    #[test]
    fn with_a_measurement_no_more_lanes_than_paid() {
        let measured = limits(50_000, Some(3));
        let growth = LanesBy::Growth { measured_on: DAY.to_owned() };
        for (cpus, with_one, with_half, with_all) in [(4, 3, 2, 3), (8, 3, 3, 3), (64, 3, 3, 3)] {
            let counts = [1, cpus / 2, cpus].map(|server| beside(cpus, server, Some(&measured), None).0);
            assert_eq!(counts, [with_one, with_half, with_all], "{cpus}");
        }
        assert_eq!(beside(8, 1, Some(&measured), None).1, growth);
        // What the server leaves is less than what would pay.
        assert_eq!(beside(4, 2, Some(&measured), None).1, LanesBy::Left);
        // Two processors were too few to ask.
        assert_eq!(beside(2, 2, Some(&limits(50_000, None)), None).1, LanesBy::Half);
    }

    #[test]
    fn an_open_loop_has_no_more_lanes_than_its_highest_rate_needs() {
        let by_rule = |rate, cpus| beside(cpus, cpus, None, Some(rate)).0;
        assert_eq!([by_rule(100.0, 8), by_rule(20_000.0, 8), by_rule(20_001.0, 8), by_rule(5e5, 8)], [1, 1, 2, 4]);
        let measured = limits(50_000, Some(7));
        let measured = |rate| beside(8, 8, Some(&measured), Some(rate)).0;
        assert_eq!([measured(50_000.0), measured(50_001.0), measured(5e6), measured(0.001)], [1, 2, 7, 1]);
    }

    #[test]
    fn a_server_that_we_start_has_one_lane_unless_it_may_be_faster_than_a_lane() {
        let measured = limits(10_000, None);
        let room = |limits| Room { cpus: 8, placement: None, connections: 3, limits };
        let chosen = |limits, asked, rate| {
            let lanes = room(limits).of_server(asked, rate);
            (lanes.count, lanes.by)
        };
        assert_eq!(chosen(None, None, Some(1e6)), (1, LanesBy::One));
        assert_eq!(chosen(Some(&measured), None, None), (1, LanesBy::One));
        let by = LanesBy::Rate { of_a_lane_per_s: 10_000, measured_on: Some(DAY.to_owned()) };
        assert_eq!(chosen(Some(&measured), None, Some(100.0)), (1, by.clone()));
        assert_eq!(chosen(Some(&measured), None, Some(11_000.0)), (2, by));
        assert_eq!(chosen(Some(&measured), None, Some(1e6)), (3, LanesBy::Connections));
        assert_eq!(chosen(Some(&measured), Some(9), Some(1.0)), (9, LanesBy::Asked));
    }

    #[test]
    fn who_asks_is_obeyed_but_for_want_of_connections() {
        let room = Room { cpus: 2, placement: None, connections: 4, limits: None };
        assert_eq!(room.of_load(Some(3), None), Lanes { count: 3, by: LanesBy::Asked });
        assert_eq!(room.of_load(Some(9), Some(1.0)), Lanes { count: 4, by: LanesBy::Connections });
    }

    proptest! {
        #[test]
        fn no_lane_runs_where_a_server_runs_alone(cpus in 1_u32..130, server in 1_u32..130, asked in proptest::option::of(1_u32..200)) {
            let placement = Placement::beside(first(server), &first(cpus));
            let room = Room { cpus, placement: Some(&placement), connections: 1000, limits: None };
            let lanes = room.of_load(asked, None);
            prop_assert!(lanes.count >= 1);
            prop_assert_eq!(placement.is_shared(), server >= cpus);
            if asked.is_none() && !placement.is_shared() {
                prop_assert_eq!(lanes.count as usize, placement.lanes.len());
            }
        }
    }
}
