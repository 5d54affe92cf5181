//! What is doubtful in a run, from its own figures.

use model::run::PERCENTILES;
use model::{Caveat, Quantile, Run};

/// Below this index of fairness the connections' shares are worth a word.
const FAIR: f64 = 0.9;
/// Measured rates this far above the theoretical maximum are no rounding.
const ABOVE: f64 = 1.02;

/// All that the run's own figures give reason to doubt.
pub(crate) fn of_run(run: &Run, keep_alive: bool, interrupted: bool) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if interrupted {
        caveats.push(Caveat::Interrupted);
    }
    let counts = &run.tally.counts;
    if counts.failed() > 0 && !interrupted {
        caveats.push(Caveat::Failures { failed: counts.failed(), planned: counts.total() });
    }
    let first = |kind: Quantile| PERCENTILES.into_iter().find(|q| run.response_time(*q) == kind);
    if let Some(from) = first(Quantile::Unanswered) {
        caveats.push(Caveat::QuantilesHidden { from, unanswered: counts.failed() });
    }
    if let Some(from) = first(Quantile::TooFew) {
        caveats.push(Caveat::TooFewRequests { from, answers: counts.good() });
    }
    if keep_alive && run.tally.closed_by_server > 0 {
        caveats.push(Caveat::ConnectionsClosed { closed: run.tally.closed_by_server });
    }
    if let Some(jain) = run.fairness().filter(|jain| *jain < FAIR) {
        let each = &run.tally.per_connection;
        let (fewest, most) = (each.iter().min().copied(), each.iter().max().copied());
        caveats.push(Caveat::Unfair { jain, fewest: fewest.unwrap_or(0), most: most.unwrap_or(0) });
    }
    if let Some(ratio) = run.of_maximum().filter(|ratio| *ratio > ABOVE) {
        caveats.push(Caveat::AboveMaximum { ratio });
    }
    caveats
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::forecast::ServiceTimeSource;
    use model::{Exchange, Nanos, Outcome, Tally, Window};

    fn run(good: u64, timed_out: u64) -> Run {
        let mut tally = Tally::new(Window { from: Nanos::ZERO, until: Nanos::MAX }, 2);
        let exchange = |outcome| Exchange {
            due: Nanos::ZERO,
            sent: Nanos::ZERO,
            ended: Nanos::from_millis(100),
            received_bytes: 0,
            outcome,
        };
        for n in 0..good + timed_out {
            let outcome = if n < good { Outcome::Answered(200) } else { Outcome::TimedOut };
            tally.record(&exchange(outcome), usize::from(n % 10 == 0));
        }
        Run {
            repeat: 1,
            multiple: 1.0,
            connections: 2,
            tally,
            measured: Nanos::from_secs(10),
            elapsed: Nanos::from_secs(10),
            workers: Vec::new(),
            readings: Vec::new(),
            forecast: queueing::closed::forecast(2, 2, Nanos::from_millis(100), ServiceTimeSource::Given),
            caveats: Vec::new(),
        }
    }

    fn codes(run: &Run) -> Vec<String> {
        of_run(run, true, false).iter().map(|c| format!("{c:?}").split([' ', '{']).next().unwrap().to_owned()).collect()
    }

    #[test]
    fn timeouts_hide_the_percentiles_they_could_change() {
        let caveats = of_run(&run(198, 2), true, false);
        assert!(caveats.contains(&Caveat::Failures { failed: 2, planned: 200 }));
        assert!(caveats.contains(&Caveat::QuantilesHidden { from: 0.99, unanswered: 2 }));
    }

    #[test]
    fn one_connection_taking_nine_tenths_is_unfair() {
        assert!(codes(&run(200, 0)).contains(&"Unfair".to_owned()));
    }

    #[test]
    fn more_than_the_maximum_is_doubted() {
        assert!(codes(&run(300, 0)).contains(&"AboveMaximum".to_owned()));
        assert!(!codes(&run(150, 0)).contains(&"AboveMaximum".to_owned()));
    }

    #[test]
    fn too_few_answers_support_no_p999() {
        assert!(codes(&run(150, 0)).contains(&"TooFewRequests".to_owned()));
    }
}
