//! How late the generator itself was: from when a request was due until it was sent, without waits
//! for a free connection.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, lag, least_p99, share_of_p99};
use crate::words::percent;

/// Applies where there are response times to compare it with.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let lags = &run.tally.generator_lag;
    let p99 = lags.quantile(0.99)?;
    let of_response_time = share_of_p99(run, p99)?;
    let at_least = least_p99(lags).and_then(|least| share_of_p99(run, least));
    Some(Diagnostic::GeneratorLag { p99, of_response_time, at_least })
}

/// Grade, sentence and hint.
pub(super) fn assess(p99: Nanos, of_response_time: f64, at_least: Option<f64>) -> Assessment {
    let grade = lag(p99, of_response_time, at_least);
    let sentence = format!(
        "the generator sent up to {:.3} ms late (p99), {} of the response time's p99",
        p99.as_millis_f64(),
        percent(of_response_time)
    );
    // At a few requests a second its threads sleep, and more of them sleep as well.
    let hint = "at a few requests a second its threads sleep and wake late: keep a CPU free for them \
            (taskset, or --server-cpus), and run longer (--for), so that one late request is not the \
            p99; at a high rate use more --generator-threads on cores of their own";
    Assessment::new(grade, sentence, hint).of_the_generator()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{Grade, grade};
    use model::Histogram;

    /// The grade of a run of fifty requests of 1 ms of which so many were sent 10 ms late.
    fn with_late(late: u64) -> Grade {
        let mut run = testkit::study::canonical().runs.remove(0);
        let [mut times, mut lags] = [Histogram::default(), Histogram::default()];
        for n in 0..50 {
            let lag = Nanos::from_millis(if n < late { 10 } else { 0 });
            lags.record(lag);
            times.record(Nanos::from_millis(1) + lag);
        }
        run.tally.response_time = times;
        run.tally.generator_lag = lags;
        grade(&ask(&run).unwrap())
    }

    #[test]
    fn one_late_request_of_fifty_is_doubtful_and_several_fail() {
        assert_eq!(with_late(0), Grade::Passed);
        assert_eq!(with_late(1), Grade::Doubtful);
        assert_eq!(with_late(2), Grade::Doubtful);
        assert_eq!(with_late(3), Grade::Failed);
    }
}
