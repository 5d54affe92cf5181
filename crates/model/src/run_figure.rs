//! The figure of a run that a condition names (`--expect`, `--fail-if`, `--stop-if`).

use crate::{Nanos, Objective, ObjectiveFigure, Quantile, Run};

impl Run {
    /// The first of these conditions that holds, with its figure; `None` if nothing was measured.
    pub fn first_that_holds(&self, conditions: &[Objective]) -> Option<String> {
        let mut figures = conditions
            .iter()
            .filter_map(|condition| Some((condition, self.figure(condition.figure)?)));
        let (condition, figure) =
            figures.find(|(condition, figure)| condition.holds_for(*figure))?;
        Some(format!("{condition}: it is {}", condition.shown(figure)))
    }

    /// A figure in its unit; `None` if nothing was measured, or another generator did not print it.
    /// A response time that is not known, because too many requests got no response, or that grows
    /// with the length of the run, counts as infinite, so it cannot meet a limit.
    pub fn figure(&self, figure: ObjectiveFigure) -> Option<f64> {
        if let Some(claim) = &self.claim {
            return claim.figure(figure);
        }
        let tally = &self.tally;
        let counts = &tally.counts;
        if counts.total() == 0 {
            return None;
        }
        let requests = counts.total() as f64;
        let or_infinite = |time: Option<Nanos>| time.map_or(f64::INFINITY, |time| time.0 as f64);
        let quantile = |time: Quantile, from_few: Option<Nanos>| match time {
            Quantile::Time(time) => time.0 as f64,
            Quantile::Unanswered | Quantile::Growing => f64::INFINITY,
            Quantile::TooFew | Quantile::NotPrinted => or_infinite(from_few),
        };
        Some(match figure {
            ObjectiveFigure::ResponseTime(q) => {
                quantile(self.response_time(q), tally.response_time.quantile(q))
            }
            ObjectiveFigure::ServiceTime(q) => {
                quantile(self.service_time(q), tally.service_time.quantile(q))
            }
            ObjectiveFigure::Mean => or_infinite(self.mean_response_time()),
            ObjectiveFigure::Max => or_infinite(self.max_response_time().time()),
            ObjectiveFigure::ErrorShare => counts.failed() as f64 / requests,
            ObjectiveFigure::Errors => counts.failed() as f64,
            ObjectiveFigure::SentShare => tally.sent_in_window as f64 / requests,
            ObjectiveFigure::Completed => self.completed_rate(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::test_fixtures;

    #[test]
    fn a_run_without_requests_has_no_figure() {
        let run = test_fixtures::run(&[]);
        assert_eq!(run.first_that_holds(&["failed < 5".parse().unwrap()]), None);
    }
}
