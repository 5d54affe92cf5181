//! Threads that are free while requests wait in the accept queue: the server accepts late.

use model::{Nanos, Run, ServiceTime};

/// If the requests inside are fewer than this share of the threads, some threads are free.
const FEWER: f64 = 0.95;
/// The wait in the accept queue matters from this share of the response time on.
const QUEUE_PART: f64 = 0.1;
/// A request that takes at most this many times as long as alone is not held up by anything inside.
const AS_ALONE: f64 = 1.1;

/// The mean time after the accept queue, if requests wait in that queue but take as long inside as
/// alone, so that nothing inside the app holds them up.
pub(crate) fn time_inside(run: &Run, alone: &ServiceTime) -> Option<Nanos> {
    let mean = run.tally.response_time.mean()?;
    let queue = run.accept_queue_wait()?;
    let inside = mean.saturating_sub(queue);
    let waits = queue.0 as f64 >= QUEUE_PART * mean.0 as f64;
    let is_as_alone = inside.0 as f64 <= AS_ALONE * alone.mean.0 as f64;
    (waits && is_as_alone && inside > Nanos::ZERO).then_some(inside)
}

/// How many requests are inside, if they are fewer than the threads although others wait in the
/// accept queue. This must hold both with the time inside and with the time alone.
pub(crate) fn inside(run: &Run, alone: &ServiceTime, slots: u32) -> Option<f64> {
    let rate = run.completed_rate();
    let inside = rate * time_inside(run, alone)?.as_secs_f64();
    let most = inside.max(rate * alone.mean.as_secs_f64());
    (run.connections > slots && most < FEWER * f64::from(slots)).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_accept_queue_samples_the_time_inside_is_unknown() {
        let run = testkit::study::canonical().runs.remove(0);
        let alone = ServiceTime { mean: Nanos::from_millis(100), ..ServiceTime::default() };
        assert_eq!(time_inside(&Run { watch: None, ..run }, &alone), None);
    }
}
