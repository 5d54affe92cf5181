//! Closed loop without think time: the requests in flight, on average, must be the connections
//! (Little's law).

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, by};

/// Applies to a closed loop without think time. Each connection has a request in flight all the
/// time, so all times add up to connections x window, if requests that were due in the warm-up and
/// those that are never answered are included. Responses that a lane did not read because it stood
/// still are missing.
pub(super) fn ask(run: &Run, connections: u32) -> Option<Diagnostic> {
    let tally = &run.tally;
    // A failed request holds its connection too, and its time is not in the mean.
    if tally.counts.failed() > 0 || run.measured == Nanos::ZERO {
        return None;
    }
    // A response that waits to be read occupies its connection; with the kernel's stamps that wait
    // is not in the mean.
    let unread = &tally.read_lag;
    let sum = tally.time_in_flight().saturating_add(unread.sum());
    let lanes = &run.generator.lanes;
    let stood_still = lanes.iter().map(|lane| lane.longest_standstill).max().unwrap_or_default();
    let missing = unread.max().unwrap_or_default().max(stood_still);
    Some(Diagnostic::LittlesLaw {
        in_flight: sum.as_secs_f64() / run.measured.as_secs_f64(),
        connections,
        tolerance: missing.0 as f64 / run.measured.0 as f64,
    })
}

/// Grade, sentence and hint.
pub(super) fn assess(in_flight: f64, connections: u32, tolerance: f64) -> Assessment {
    let grade = by(
        (in_flight / f64::from(connections.max(1)) - 1.0).abs(),
        0.01 + tolerance,
        0.05 + tolerance,
    );
    let sentence = format!(
        "by Little's law {in_flight:.1} requests were in flight on {connections} \
            connections"
    );
    let hint = "time is counted wrongly somewhere: please report this with longtail report --json";
    Assessment::new(grade, sentence, hint)
}

#[cfg(test)]
mod tests {
    use model::{Exchange, LaneFacts, Outcome, Tally, Window};

    use super::*;
    use crate::checks::Grade;

    #[test]
    fn a_standstill_at_the_start_of_the_window_is_within_tolerance() {
        let ms = Nanos::from_millis;
        // The lane reads a warm-up response 400 ms late. Then 60 responses of 10 ms each fall into
        // the measured second.
        for (stood_still, grade) in [(ms(400), Grade::Passed), (ms(0), Grade::Failed)] {
            let mut tally = Tally::new(Window { from: ms(1000), until: ms(2000) }, 1);
            for due in (0..60).map(|n| 1400 + 10 * n) {
                let [due, ended] = [due, due + 10].map(Nanos::from_millis);
                let outcome = Outcome::Answered(200);
                let exchange = Exchange { due, sent: due, ended, received_bytes: 1, outcome };
                tally.record(&exchange, 0);
            }
            let mut run = Run::recorded(1, tally, ms(1000), ms(2000));
            run.generator.lanes =
                vec![LaneFacts { longest_standstill: stood_still, ..LaneFacts::default() }];
            assert_eq!(ask(&run, 1).map(|law| crate::checks::grade(&law)), Some(grade));
        }
    }
}
