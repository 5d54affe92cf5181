//! How late the generator itself was: from when a request was due until it was sent, without waits
//! for a free connection.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, lag, share_of_p99};
use crate::words::percent;

/// Applies where there are response times to compare it with.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let p99 = run.tally.generator_lag.quantile(0.99)?;
    let of_response_time = share_of_p99(run, p99)?;
    Some(Diagnostic::GeneratorLag { p99, of_response_time })
}

/// Grade, sentence and hint.
pub(super) fn assess(p99: Nanos, of_response_time: f64) -> Assessment {
    let grade = lag(p99, of_response_time);
    let sentence = format!(
        "the generator sent up to {:.3} ms late (p99), {} of the response time's p99",
        p99.as_millis_f64(),
        percent(of_response_time)
    );
    // At a few requests a second its threads sleep and wake late, and more of them do so as well.
    // Of 50 requests that begin at once the last is late by the time that it takes to send the others.
    let hint = "run longer (at least 10 s and 2000 requests), so that one late request is not the p99, \
            and keep a CPU free for its threads (taskset, or --server-cpus where longtail starts the server); at thousands of \
            requests/s use more --generator-threads on cores of their own";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
