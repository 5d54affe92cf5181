//! How late the generator read the responses, by the kernel's time stamps. This lag is not part of
//! the times.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, lag, least_p99, share_of_p99};
use crate::words::percent;

/// Applies where there are response times to compare it with.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let lags = &run.tally.read_lag;
    let p99 = lags.quantile(0.99)?;
    let of_response_time = share_of_p99(run, p99)?;
    let at_least = least_p99(lags).and_then(|least| share_of_p99(run, least));
    Some(Diagnostic::ReadLag { p99, of_response_time, at_least })
}

/// Grade, sentence and hint.
pub(super) fn assess(p99: Nanos, of_response_time: f64, at_least: Option<f64>) -> Assessment {
    let grade = lag(p99, of_response_time, at_least);
    let sentence = format!(
        "the generator read responses up to {:.3} ms late (p99), {} of the response \
            time's p99",
        p99.as_millis_f64(),
        percent(of_response_time)
    );
    let hint = "use more --generator-threads on cores of their own, fewer connections, or a \
            lower rate";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
