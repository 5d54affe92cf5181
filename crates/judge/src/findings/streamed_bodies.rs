//! Bodies take most of the response time: streams, or files over a slow network.

use model::Nanos;
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, count_of, load};

/// Bodies take most of the response time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamedBodies {
    /// The load; `None` if it is not a multiple of the slots.
    pub multiple: Option<f64>,
    /// Connections there.
    pub connections: u32,
    /// Time from the first byte of the request to the first byte of the response, on average.
    #[serde(rename = "first_byte_ns")]
    pub first_byte: Nanos,
    /// Time from there to the last byte.
    #[serde(rename = "body_ns")]
    pub body: Nanos,
}

/// Bodies are reported if they take at least this share of the service time.
const MOST_OF_IT: f64 = 0.5;
/// They must also take this long: less may be a delayed acknowledgement, which takes the kernel
/// 40 ms.
const LONG: Nanos = Nanos::from_millis(50);

/// Judges a run whose responses don't arrive in one piece.
pub(super) fn of_run(run: &model::Run) -> Option<StreamedBodies> {
    let first_byte = run.tally.phases.first_byte.mean()?;
    let body = run.tally.phases.read.mean()?;
    let all = (first_byte + body).0 as f64;
    (body >= LONG && body.0 as f64 >= MOST_OF_IT * all).then_some(StreamedBodies {
        multiple: run.multiple,
        connections: run.connections,
        first_byte,
        body,
    })
}

/// At one load of a sweep.
pub(super) fn of(point: &SweepPoint<'_>) -> Option<Finding> {
    of_run(point.run).map(Finding::from)
}

impl StreamedBodies {
    pub(super) fn sentence(&self) -> String {
        let at = self.multiple.map_or_else(|| count_of(self.connections, "connection"), load);
        format!(
            "Most of the time is the body's: at {at} the first byte comes after {}, and the last {} \
             later, on average. If the app writes the body that slowly, it keeps a thread of the \
             server busy for that long.",
            brief(self.first_byte),
            brief(self.body)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DurationSummary;

    #[test]
    fn a_body_that_takes_a_second_is_named_and_a_short_one_is_not() {
        let mut run = testkit::study::canonical().runs.remove(0);
        run.tally.phases.first_byte = DurationSummary::default();
        run.tally.phases.read = DurationSummary::default();
        run.tally.phases.first_byte.record(Nanos::from_millis(2));
        run.tally.phases.read.record(Nanos::from_millis(1000));
        let found = of_run(&run).unwrap();
        assert_eq!((found.first_byte, found.body), (Nanos::from_millis(2), Nanos::from_secs(1)));
        run.tally.phases.first_byte.record(Nanos::from_secs(10));
        assert_eq!(of_run(&run), None, "most of the time comes before the body");
        run.tally.phases.first_byte = DurationSummary::default();
        run.tally.phases.first_byte.record(Nanos::from_millis(1));
        run.tally.phases.read = DurationSummary::default();
        run.tally.phases.read.record(Nanos::from_millis(40));
        assert_eq!(of_run(&run), None, "a delayed acknowledgement");
    }
}
