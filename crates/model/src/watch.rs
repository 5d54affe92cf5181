//! What was read of server and kernel again and again while a run went on: one time axis a source, one curve a quantity.
//!
//! As with [`crate::Reading`], a value that could not be had is absent, never 0.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// The readings that were taken during a run's measured window and the wait for its last answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// One for each source that answered.
    pub tracks: Vec<Track>,
    /// CPU time that the looks took of this machine, all in our own threads, the warm-up's looks included.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// What could not be read and why, a line each.
    pub missing: Vec<String>,
}

/// The readings of one source, all of a row taken in one look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    /// Who said it: `sock_diag`, `/proc/net/unix`, `/proc/PID/task/TID/schedstat`, `puma stats`.
    pub source: String,
    /// When each look was taken, rising, since the start of the measured window.
    #[serde(rename = "at_ns")]
    pub at: Vec<Nanos>,
    /// What was seen.
    pub curves: Vec<Curve>,
}

/// How one quantity went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curve {
    /// Of whom: a process by its id, a worker; empty for the whole server.
    pub of: String,
    /// What: `accept_queue`, `open_connections`, `cpu`.
    pub name: String,
    /// The unit of the values: `connections`, `threads`, `requests`, `ns`.
    pub unit: String,
    /// One for each look of its track; `None` where it could not be had.
    pub values: Vec<Option<u64>>,
    /// How old each value may have been when it was read, one for each look; empty where all were read as they were.
    #[serde(rename = "staleness_ns", default, skip_serializing_if = "Vec::is_empty")]
    pub staleness: Vec<Option<Nanos>>,
}

/// The curves of how many of the server's connections each process holds.
pub const HELD_CONNECTIONS: &str = "held_connections";

/// Fewer looks than this tell no mean.
pub const LEAST_LOOKS: usize = 10;

impl Watch {
    /// The curve of that name and its track; where several have it, the first.
    pub fn curve<'a>(&'a self, name: &'a str) -> Option<(&'a Track, &'a Curve)> {
        self.curves(name).next()
    }

    /// All curves of that name, each with its track.
    pub fn curves<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Track, &'a Curve)> + 'a {
        self.tracks.iter().flat_map(move |track| track.named(name).map(move |curve| (track, curve)))
    }
}

impl Track {
    /// Its curves of that name. One with another number of values than there were looks is of no use to anybody.
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Curve> + 'a {
        self.curves.iter().filter(move |curve| curve.name == name && curve.values.len() == self.at.len())
    }

    /// Mean over time of a curve of this track from the start of the measured window up to `until`: between two looks
    /// the mean of the two, so that looks that came late weigh as much as the time they stand for. `None` of fewer than
    /// [`LEAST_LOOKS`] looks, and where they leave out more than a tenth of that time.
    pub fn mean(&self, curve: &Curve, until: Nanos) -> Option<f64> {
        let known: Vec<(Nanos, u64)> = self
            .at
            .iter()
            .zip(&curve.values)
            .filter(|(at, _)| **at <= until)
            .filter_map(|(at, value)| Some((*at, (*value)?)))
            .collect();
        let (first, last) = (known.first()?.0, known.last()?.0);
        let covered = last.saturating_sub(first);
        if known.len() < LEAST_LOOKS || covered.as_secs_f64() < 0.9 * until.as_secs_f64() {
            return None;
        }
        let twice = |pair: &[(Nanos, u64)]| {
            u128::from(pair[1].0.saturating_sub(pair[0].0).0) * (u128::from(pair[0].1) + u128::from(pair[1].1))
        };
        let twice_the_area: u128 = known.windows(2).map(twice).sum();
        Some(twice_the_area as f64 / 2.0 / covered.0 as f64)
    }
}

impl Curve {
    /// The largest value that was seen.
    pub fn most(&self) -> Option<u64> {
        self.values.iter().flatten().max().copied()
    }

    /// Of a counter: what it counted from the first look to the last.
    pub fn counted(&self) -> Option<u64> {
        let known = || self.values.iter().flatten();
        known().next_back()?.checked_sub(*known().next()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn track(looks: &[(u64, Option<u64>)]) -> Track {
        let curve = Curve {
            name: "accept_queue".to_owned(),
            values: looks.iter().map(|(_, value)| *value).collect(),
            ..Curve::default()
        };
        let at = looks.iter().map(|(at, _)| Nanos::from_millis(*at)).collect();
        Track { at, curves: vec![curve], ..Track::default() }
    }

    fn mean(looks: &[(u64, Option<u64>)], until: u64) -> Option<f64> {
        let track = track(looks);
        track.mean(&track.curves[0], Nanos::from_millis(until))
    }

    #[test]
    fn a_late_look_weighs_as_much_as_the_time_it_stands_for() {
        // 4 for the first half in 20 looks, 0 after it in 2.
        let mut looks: Vec<_> = (0..=20).map(|n| (n * 50, Some(4))).collect();
        looks.extend([(1001, Some(0)), (2000, Some(0))]);
        assert!((mean(&looks, 2000).unwrap() - 2.001).abs() < 1e-9, "{:?}", mean(&looks, 2000));
    }

    #[test]
    fn what_is_absent_is_no_zero() {
        let looks: Vec<_> = (0..=40).map(|n| (n * 50, (n % 2 == 0).then_some(7))).collect();
        assert_eq!(mean(&looks, 2000), Some(7.0));
    }

    #[test]
    fn few_looks_or_a_part_of_the_window_tell_no_mean() {
        let looks: Vec<_> = (0..40).map(|n| (n * 50, Some(1))).collect();
        assert_eq!((mean(&looks[..9], 400), mean(&looks[..10], 450)), (None, Some(1.0)));
        assert_eq!(mean(&looks, 4000), None, "half of the window");
        assert_eq!(mean(&[], 1000), None);
    }

    #[test]
    fn a_counter_tells_what_came_between() {
        let curve = Curve { values: vec![None, Some(5), None, Some(12), None], ..Curve::default() };
        assert_eq!((curve.counted(), curve.most()), (Some(7), Some(12)));
        assert_eq!(Curve::default().counted(), None);
    }

    proptest! {
        #[test]
        fn a_mean_lies_between_the_least_and_the_most(values in prop::collection::vec((1u64..100, 0u64..50), 20..80)) {
            let mut at = 0;
            let looks: Vec<_> = values.iter().map(|(gap, value)| { at += gap; (at, Some(*value)) }).collect();
            if let Some(mean) = mean(&looks, at) {
                let known = || values.iter().map(|(_, value)| *value as f64);
                let (least, most) = (known().fold(f64::MAX, f64::min), known().fold(0.0, f64::max));
                prop_assert!(least - 1e-9 <= mean && mean <= most + 1e-9);
            }
        }
    }
}
