//! Responses whose bodies take most of their time: streams, and files over a slow way.

use model::Nanos;
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, count_of, load};

/// Responses whose bodies take most of their time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamedBodies {
    /// At which load; `None` of a load that has no multiple.
    pub multiple: Option<f64>,
    /// Connections there.
    pub connections: u32,
    /// From the first byte of the request to that of the response, on average.
    #[serde(rename = "first_byte_ns")]
    pub first_byte: Nanos,
    /// From there to the last byte.
    #[serde(rename = "body_ns")]
    pub body: Nanos,
}

/// A body is worth a word from this part of the service time on,
const MOST_OF_IT: f64 = 0.5;
/// and from this length on: a kernel delays an acknowledgement by 40 ms.
const LONG: Nanos = Nanos::from_millis(50);

/// Of a run whose responses are not whole with their first bytes.
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
             later, on average. A server with threads keeps one for that long, where the app writes \
             the body so slowly.",
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
        assert_eq!(of_run(&run), None, "most of it is no body's");
        run.tally.phases.first_byte = DurationSummary::default();
        run.tally.phases.first_byte.record(Nanos::from_millis(1));
        run.tally.phases.read = DurationSummary::default();
        run.tally.phases.read.record(Nanos::from_millis(40));
        assert_eq!(of_run(&run), None, "an acknowledgement that was delayed");
    }
}
