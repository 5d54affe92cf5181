//! Open loop: all that was offered was sent and completed.

use model::{Run, Verdict};
use serde::{Deserialize, Serialize};

use super::{Finding, HighestPercentile, Offered};
use crate::words::rate_in_words;

/// If less than this share of what was offered ended within the measured time, or of the rate that
/// was asked for came by chance, the sentence says so.
const NOTABLE: f64 = 0.99;

/// Open loop: all that was offered was sent and completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeepsUp {
    /// Requests per second, as they were asked for; `None` if the rate changes.
    pub offered_per_s: Option<f64>,
    /// How many came by chance, in requests per second, if that is notably more or less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_per_s: Option<f64>,
    /// Completed within the measured time, in requests per second, if that is notably less than was
    /// offered: the last requests ended after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_per_s: Option<f64>,
    /// The highest percentile that there are enough responses for.
    pub highest: Option<HighestPercentile>,
}

/// Holds if the server was not behind.
pub(super) fn of(run: &Run, offered: Offered) -> Option<Finding> {
    let judgement = run.judgement.as_ref();
    let keeps_up = judgement.is_none_or(|judgement| judgement.verdict == Verdict::Unloaded);
    let completed = run.completed_under_load();
    let is_less = offered.is_flat && completed < NOTABLE * offered.per_second;
    // Requests that failed did not only end late.
    let is_lost = is_less && run.tally.counts.failed() > 0;
    let came = offered.per_second;
    let asked = offered.asked_per_second.unwrap_or(came);
    let is_off = (came - asked).abs() > (1.0 - NOTABLE) * asked;
    (keeps_up && !is_lost).then(|| {
        KeepsUp {
            offered_per_s: offered.is_flat.then_some(asked),
            came_per_s: is_off.then_some(came),
            completed_per_s: is_less.then_some(completed),
            highest: HighestPercentile::of(run),
        }
        .into()
    })
}

impl KeepsUp {
    pub(super) fn sentence(&self) -> String {
        let KeepsUp { offered_per_s, came_per_s, completed_per_s, highest } = self;
        let offered = offered_per_s.map(|rate| format!("{} requests/s", rate_in_words(rate)));
        let offered = offered.as_deref().unwrap_or("what is offered");
        let came = came_per_s.map(|rate| format!("by chance {}/s came", rate_in_words(rate)));
        let late = completed_per_s.map(|rate| {
            format!(
                "{}/s ended within the measured time, the others were still in flight",
                rate_in_words(rate)
            )
        });
        let but: Vec<String> = came.into_iter().chain(late).collect();
        let but = if but.is_empty() { String::new() } else { format!(" ({})", but.join("; ")) };
        let within = highest.map(HighestPercentile::clause).unwrap_or_default();
        format!("The server keeps up with {offered}{but}{within}.")
    }
}

#[cfg(test)]
mod tests {
    use model::{Nanos, PercentileTime};

    use super::*;

    #[test]
    fn a_percentile_that_is_known_roughly_is_no_fact_of_the_sentence() {
        let said = |ends: Option<[Option<u64>; 2]>| {
            let at = PercentileTime { quantile: 0.99, time: Nanos::from_millis(563) };
            let roughly = ends.map(|ends| ends.map(|end| end.map(Nanos::from_millis)));
            let highest = Some(HighestPercentile { at, roughly });
            KeepsUp { offered_per_s: Some(50.0), came_per_s: None, completed_per_s: None, highest }
                .sentence()
        };
        let start = "The server keeps up with 50 requests/s; 99 of 100 are answered within";
        assert_eq!(said(None), format!("{start} 563 ms."));
        let [low, high] = [Some(243), Some(901)];
        assert_eq!(said(Some([low, high])), format!("{start} about 563 ms (243 ms to 901 ms)."));
        assert_eq!(said(Some([low, None])), format!("{start} about 563 ms (at least 243 ms)."));
    }

    #[test]
    fn the_rate_that_was_asked_for_is_named_before_what_came_by_chance() {
        let said = |came_per_s, completed_per_s| {
            let offered_per_s = Some(500.0);
            KeepsUp { offered_per_s, came_per_s, completed_per_s, highest: None }.sentence()
        };
        assert_eq!(said(None, None), "The server keeps up with 500 requests/s.");
        let came = "The server keeps up with 500 requests/s (by chance 514/s came";
        assert_eq!(said(Some(514.0), None), format!("{came})."));
        assert_eq!(
            said(Some(514.0), Some(497.0)),
            format!(
                "{came}; 497/s ended within the measured time, the others were still in flight)."
            )
        );
    }
}
