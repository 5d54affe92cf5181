//! Arms that are measured in rounds, each beside the bare one of its own round: ratios, how well they are known, and whether they
//! is beyond the noise.
//!
//! What the machine does changes from minute to minute, so each round has every arm once, in an order of chance, and an
//! arm is divided by the bare one of the same round. Of the ratios the median is given, between the order statistics that hold
//! the true one with 95 % ([`crate::interval`]): nothing is assumed of their law but that rounds are independent.

use serde::{Deserialize, Serialize};

use crate::bodies::shuffled;
use crate::interval::{QuantileRanks, ranks};
use crate::pace::uniform;

/// Fewer rounds have no interval that holds the median with 95 %: of five, the least and the most leave 2 / 2^5 = 6 % out.
pub const LEAST_ROUNDS: u32 = 6;

/// The places of `arms` arms in the order in which the `round`-th round (from 1) runs them.
pub fn order(seed: u64, round: u32, arms: usize) -> Vec<usize> {
    let mut draws = (0..).map(|n| uniform(seed ^ 0x0072_6F75_6E64 ^ (u64::from(round) << 32), n));
    shuffled((0..arms).collect(), &mut draws)
}

/// An arm's figure over the bare one's, of all rounds that have both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    /// The median of the rounds' ratios.
    pub median: f64,
    /// Lower end of its 95 % interval; absent of fewer than [`LEAST_ROUNDS`] rounds.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Rounds.
    pub rounds: u32,
}

/// What a ratio tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairedAnswer {
    /// The arm differs from the bare one.
    Differs,
    /// It is within the noise.
    Noise,
    /// Too few rounds for an interval.
    TooFewRounds,
}

impl PairedRatio {
    /// Of pairs of an arm's figure and the bare one's, both above 0; others are left out. `None` where there is no pair.
    pub fn of_pairs(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<PairedRatio> {
        let is_good = |(arm, bare): &(f64, f64)| arm.is_finite() && bare.is_finite() && *arm > 0.0 && *bare > 0.0;
        let mut ratios: Vec<f64> = pairs.into_iter().filter(is_good).map(|(arm, bare)| arm / bare).collect();
        ratios.sort_by(f64::total_cmp);
        let QuantileRanks { low, high } = ranks(0.5, ratios.len() as u64, 1.0);
        let at = |rank: u64| ratios.get(rank as usize - 1).copied();
        let (low, high) = low.zip(high).map_or((None, None), |(low, high)| (at(low), at(high)));
        Some(PairedRatio { median: median(&ratios)?, low, high, rounds: ratios.len() as u32 })
    }

    /// What it tells beside `control`, which is the bare arm measured a second time: noise where 1 is within the interval, or
    /// where the whole interval is within the control's.
    pub fn answer(&self, control: Option<&PairedRatio>) -> PairedAnswer {
        let (Some(low), Some(high)) = (self.low, self.high) else { return PairedAnswer::TooFewRounds };
        let floor = control.and_then(|control| control.low.zip(control.high));
        let is_within = floor.is_some_and(|(least, most)| least <= low && high <= most);
        if (low <= 1.0 && 1.0 <= high) || is_within { PairedAnswer::Noise } else { PairedAnswer::Differs }
    }
}

/// The middle one of values that rise, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(ratios: &[f64]) -> PairedRatio {
        PairedRatio::of_pairs(ratios.iter().map(|ratio| (ratio * 4.0, 4.0))).unwrap()
    }

    #[test]
    fn six_rounds_are_the_least_that_have_an_interval() {
        let five = ratio(&[1.1, 1.2, 1.3, 1.4, 1.5]);
        assert_eq!((five.median, five.low, five.high), (1.3, None, None));
        assert_eq!(five.answer(None), PairedAnswer::TooFewRounds);
        // 1 - 2 / 2^6 = 97 % between the least and the most.
        let six = ratio(&[1.5, 1.25, 1.125, 2.0, 1.75, 3.0]);
        assert_eq!((six.median, six.low, six.high, six.rounds), (1.625, Some(1.125), Some(3.0), LEAST_ROUNDS));
        // Of nine the second and the eighth: 1 - 2 (1 + 9) / 2^9 = 96 %.
        let nine = ratio(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        assert_eq!((nine.median, nine.low, nine.high), (5.0, Some(2.0), Some(8.0)));
    }

    #[test]
    fn noise_is_what_holds_one_or_what_the_control_does_too() {
        let of =
            |low, high| PairedRatio { median: f64::midpoint(low, high), low: Some(low), high: Some(high), rounds: 6 };
        let control = of(0.94, 1.07);
        assert_eq!(of(0.99, 1.30).answer(None), PairedAnswer::Noise);
        assert_eq!(of(1.0, 1.30).answer(None), PairedAnswer::Noise);
        assert_eq!(of(1.01, 1.05).answer(None), PairedAnswer::Differs);
        assert_eq!(
            of(1.01, 1.05).answer(Some(&control)),
            PairedAnswer::Noise,
            "the bare arm differs from itself by as much"
        );
        assert_eq!(of(1.01, 1.08).answer(Some(&control)), PairedAnswer::Differs);
        assert_eq!(of(0.70, 0.80).answer(Some(&control)), PairedAnswer::Differs);
        let short = PairedRatio { low: None, high: None, ..control };
        assert_eq!(of(1.01, 1.05).answer(Some(&short)), PairedAnswer::Differs, "no floor is known");
    }

    #[test]
    fn what_was_not_measured_is_no_pair() {
        assert_eq!(PairedRatio::of_pairs([]), None);
        assert_eq!(PairedRatio::of_pairs([(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0)]), None);
        assert_eq!(
            PairedRatio::of_pairs([(3.0, 2.0), (1.0, 0.0)]).map(|ratio| (ratio.median, ratio.rounds)),
            Some((1.5, 1))
        );
    }

    #[test]
    fn each_round_has_every_arm_once_and_a_seed_is_an_order() {
        let rounds: Vec<Vec<usize>> = (1..=50).map(|round| order(7, round, 5)).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
        }
        assert_eq!(rounds[3], order(7, 4, 5));
        // Every arm is first, and last, sometimes.
        for arm in 0..5 {
            assert!(rounds.iter().any(|round| round[0] == arm) && rounds.iter().any(|round| round[4] == arm), "{arm}");
        }
    }

    proptest! {
        #[test]
        fn the_median_is_within_its_interval_and_scales(
            ratios in prop::collection::vec(0.1f64..10.0, 6..40), factor in 0.5f64..2.0,
        ) {
            let one = ratio(&ratios);
            prop_assert!(one.low.unwrap() <= one.median && one.median <= one.high.unwrap());
            let scaled: Vec<f64> = ratios.iter().map(|ratio| ratio * factor).collect();
            let scaled = ratio(&scaled);
            prop_assert!((scaled.median / one.median / factor - 1.0).abs() < 1e-9);
            prop_assert!((scaled.low.unwrap() / one.low.unwrap() / factor - 1.0).abs() < 1e-9);
        }
    }
}
