//! How many requests' worth of work a server does at once: throughput x what one request takes
//! alone.
//!
//! By Little's law the product is the number of requests in service, if each takes no longer under
//! load than alone. If requests do take longer (because of Ruby's lock, or another lock that each
//! holds for part of its time), it is less than the number inside: it measures work done, not
//! requests that are held.

use model::statistics::STANDARD_ERRORS;
use model::theory::{ClassAlone, ServiceTime};
use model::{AtOnce, Nanos, Run};

use crate::class_times::work_of_good;

/// The smallest relative error, either way: the time alone is measured on an idle server, the
/// throughput on a busy one.
const LEAST_ERROR: f64 = 0.05;

/// For a run in closed loop without think time; `None` if no request was measured alone, or nothing
/// completed. Don't use it for an open loop or with pauses: Puma before 7 then holds a thread for
/// up to 0.2 s to wait for the connection's next request. If some requests of a mix failed, most of
/// the good ones may be of shorter classes, so each counts with the time of its own class.
pub(crate) fn of_run(
    run: &Run,
    alone: &ServiceTime,
    classes_alone: &[ClassAlone],
) -> Option<AtOnce> {
    let rate = run.completed_rate() * work_of_good(classes_alone, run)?;
    let responses = run.tally.counts.good();
    of(rate, responses, &alone.of_a_thread())
}

/// The same from a throughput (requests per second), the number of responses behind it, and the
/// time for which each holds a thread.
pub(crate) fn of(rate: f64, responses: u64, alone: &ServiceTime) -> Option<AtOnce> {
    if rate <= 0.0 || responses == 0 || alone.mean == Nanos::ZERO {
        return None;
    }
    // The responses of a busy server scatter like their service times. A service time that the user
    // gave is taken as constant.
    let by_chance = STANDARD_ERRORS * alone.variation / (responses as f64).sqrt();
    let mean = rate * alone.mean.as_secs_f64();
    // Requests that are served together may end together, so the window may have one such batch
    // more or less.
    let by_edges = mean / responses as f64;
    let error = by_chance.hypot(by_edges);
    let most = |end: f64| (1.0 + error) * end;
    let least = |end: f64| end / (1.0 + error);
    let low = least(rate * alone.low.as_secs_f64()).min((1.0 - LEAST_ERROR) * mean);
    let high = if alone.high == Nanos::MAX {
        f64::INFINITY
    } else {
        most(rate * alone.high.as_secs_f64()).max((1.0 + LEAST_ERROR) * mean)
    };
    Some(AtOnce { mean, low, high: Some(high).filter(|high| high.is_finite()) })
}

/// How an interval compares with a number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotsMatch {
    /// The interval is clearly below.
    Below,
    /// The number lies in it, and it is narrow enough to rule out others.
    Equal,
    /// The number lies in it, but so do many others.
    Unclear,
    /// The interval is clearly above.
    Above,
}

/// An interval that extends further than this share of the mean, either way, can't tell one number
/// of threads from another.
const WIDE: f64 = 0.2;

/// Whether the interval can tell one number of threads from another.
pub(crate) fn is_narrow(at_once: &AtOnce) -> bool {
    let high = at_once.high.unwrap_or(f64::INFINITY);
    at_once.low >= (1.0 - WIDE) * at_once.mean && high <= (1.0 + WIDE) * at_once.mean
}

/// To be clearly below or above, a number must lie outside the 99.9 % interval: 3.3 standard errors
/// instead of the 1.96 of 95 %. [`LEAST_ERROR`] is not due to chance and stays as it is.
const CLEARLY: f64 = 3.3 / STANDARD_ERRORS;

/// The end of the 99.9 % interval, from this end of the 95 % interval.
fn clear_end(mean: f64, end: f64) -> f64 {
    let apart = (end - mean).abs();
    let by_chance = (apart - LEAST_ERROR * mean).max(0.0);
    mean + (end - mean).signum() * (apart + (CLEARLY - 1.0) * by_chance)
}

/// Compares the interval with `slots`.
pub(crate) fn compare_with_slots(at_once: &AtOnce, slots: f64) -> SlotsMatch {
    let high = at_once.high.unwrap_or(f64::INFINITY);
    if high.is_finite() && clear_end(at_once.mean, high) < slots {
        SlotsMatch::Below
    } else if clear_end(at_once.mean, at_once.low) > slots {
        SlotsMatch::Above
    } else if is_narrow(at_once) {
        SlotsMatch::Equal
    } else {
        SlotsMatch::Unclear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(mean: u64, low: u64, high: u64, variation: f64) -> ServiceTime {
        let [mean, low, high] = [mean, low, high].map(Nanos::from_millis);
        ServiceTime { low, high, variation, answers: 100, ..ServiceTime::given(mean) }
    }

    #[test]
    fn a_constant_time_is_known_to_within_five_per_cent() {
        let ten = of(100.0, 1000, &alone(100, 100, 100, 0.0)).unwrap();
        assert!((ten.mean - 10.0).abs() < 1e-9 && (ten.low - 9.5).abs() < 1e-9, "{ten:?}");
        assert_eq!(compare_with_slots(&ten, 10.0), SlotsMatch::Equal);
        assert_eq!(
            [9.4, 10.6].map(|slots| compare_with_slots(&ten, slots)),
            [SlotsMatch::Above, SlotsMatch::Below]
        );
    }

    #[test]
    fn a_pool_of_nine_is_told_apart_from_ten_threads() {
        let nine = of(180.0, 1800, &alone(50, 50, 50, 0.0)).unwrap();
        assert_eq!(compare_with_slots(&nine, 10.0), SlotsMatch::Below);
        assert_eq!(compare_with_slots(&nine, 9.0), SlotsMatch::Equal);
    }

    #[test]
    fn a_widely_varying_time_alone_tells_no_number() {
        // 15 ms, but one request in 18 takes a second: the mean is between 41 and 110 ms.
        let any = of(145.0, 1450, &alone(69, 41, 110, 3.1)).unwrap();
        assert!(any.low < 6.0 && any.high > Some(15.0), "{any:?}");
        assert_eq!(compare_with_slots(&any, 10.0), SlotsMatch::Unclear);
        let unknown = ServiceTime { high: Nanos::MAX, ..alone(69, 41, 110, 3.1) };
        assert_eq!(of(145.0, 1450, &unknown).unwrap().high, None);
        assert_eq!(of(145.0, 0, &unknown), None);
    }
}
