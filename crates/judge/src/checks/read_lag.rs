//! How late the generator read the responses, by the kernel's time stamps. This lag is not part of
//! the times.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, lag, share_of_p99};
use crate::words::percent;

/// Applies where there are response times to compare it with.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let p99 = run.tally.read_lag.quantile(0.99)?;
    let of_response_time = share_of_p99(run, p99)?;
    Some(Diagnostic::ReadLag { p99, of_response_time })
}

/// Grade, sentence and hint.
pub(super) fn assess(p99: Nanos, of_response_time: f64) -> Assessment {
    let grade = lag(p99, of_response_time);
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
