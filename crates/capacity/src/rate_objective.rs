//! An objective that a rate can keep or break: a percentile of the response time, or a share of
//! failed requests.

use model::{Compare, Nanos, Objective, ObjectiveFigure};

/// An objective as a share of requests: `p99 < 200ms` allows 1 % of them to be late or to fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateObjective {
    /// As the user gave it.
    pub condition: Objective,
    /// A good response after this time counts as late; `None` if only failed requests count.
    pub late_after: Option<Nanos>,
    /// The share of requests that may be late or fail, 0 to 1, exclusive.
    pub allowed: f64,
}

impl RateObjective {
    /// Reads a condition as an objective that a rate can keep.
    ///
    /// # Errors
    /// If it is none, with what to type.
    pub fn new(condition: Objective) -> Result<RateObjective, String> {
        let only = "an objective is a percentile such as 'p99 < 200ms', or 'failed < 0.1%'";
        if condition.compare != Compare::Below {
            return Err(format!("'{condition}' is not a limit from above: {only}"));
        }
        if condition.part.is_some() {
            return Err(format!("'{condition}' is about an event, and a search has none: {only}"));
        }
        let (late_after, allowed) = match condition.figure {
            ObjectiveFigure::ResponseTime(q) => (Some(Nanos(condition.limit as u64)), 1.0 - q),
            ObjectiveFigure::ErrorShare => (None, condition.limit),
            ObjectiveFigure::ServiceTime(_)
            | ObjectiveFigure::Mean
            | ObjectiveFigure::Max
            | ObjectiveFigure::Errors
            | ObjectiveFigure::SentShare
            | ObjectiveFigure::Completed => {
                return Err(format!("'{condition}' cannot be searched for: {only}"));
            }
        };
        if !(0.0 < allowed && allowed < 1.0) || late_after == Some(Nanos::ZERO) {
            return Err(format!("'{condition}' can never be shown to hold: {only}"));
        }
        Ok(RateObjective { condition, late_after, allowed })
    }

    /// The fewest requests in which a hundred may be late: fewer say little about the share.
    pub fn full_trial_requests(&self) -> f64 {
        LATE_IN_A_FULL_TRIAL / self.allowed
    }
}

/// Requests beyond the limit that a full trial at the objective's edge has.
const LATE_IN_A_FULL_TRIAL: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_or_a_share_of_failures_is_an_objective_and_nothing_else_is() {
        let read = |text: &str| RateObjective::new(text.parse().unwrap());
        let p99 = read("p99 < 200ms").unwrap();
        assert_eq!(p99.late_after, Some(Nanos::from_millis(200)));
        assert!((p99.allowed - 0.01).abs() < 1e-12);
        let failed = read("failed < 0.1%").unwrap();
        assert_eq!((failed.late_after, failed.allowed), (None, 0.001));
        for text in ["mean < 50ms", "max < 1s", "failed < 5", "p99 > 200ms", "failed < 0%"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
