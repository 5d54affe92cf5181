//! The wait in the accept queue, inferred from its length, is longer than the whole wait that it is
//! part of.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, Grade};

/// The inferred wait may exceed the whole by this share of the whole, plus [`ABOVE_RESPONSE`] of
/// the response time: the queue is only sampled.
const ABOVE_WAIT: f64 = 0.05;
const ABOVE_RESPONSE: f64 = 0.01;

/// Applies where the queue was sampled often enough.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let accept_queue = run.accept_queue_wait()?;
    let whole = run.tally.response_time.mean()?;
    let app_times = run.app_times.as_ref();
    let before = app_times.and_then(|app_times| app_times.all.mean(app_times.all.before_app?));
    let wait = before.unwrap_or(whole);
    let slack = ABOVE_WAIT * wait.as_secs_f64() + ABOVE_RESPONSE * whole.as_secs_f64();
    (accept_queue.as_secs_f64() > wait.as_secs_f64() + slack)
        .then_some(Diagnostic::QueueExceedsWait { accept_queue, wait })
}

/// Grade, sentence and hint.
pub(super) fn assess(accept_queue: Nanos, wait: Nanos) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "by its length, the accept queue held requests for {:.1} ms, but the whole wait that \
            includes this was {:.1} ms",
        accept_queue.as_millis_f64(),
        wait.as_millis_f64()
    );
    let hint = "the queue is only sampled, and others may connect to this server too: run \
            longer (--for)";
    Assessment::new(grade, sentence, hint)
}
