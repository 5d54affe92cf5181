//! How many requests' worth of work a server does at once: throughput x what one request takes
//! alone.
//!
//! By Little's law the product counts the requests in service where each takes no longer under load
//! than alone. Where they do take longer (a lock that each holds for a part of its time, Ruby's
//! lock), it is less than the number inside: it is work, and no head count.

use model::theory::ServiceTime;
use model::{AtOnce, Nanos, Run};

/// No figure of this kind is better known than this, either way: the time alone is measured on an
/// idle server, the throughput on a busy one.
const LEAST_ERROR: f64 = 0.05;
/// Standard errors of a 95 % interval.
pub(crate) const ERRORS: f64 = 1.96;

/// Of a run in closed loop without think time; `None` where nothing was measured of one request
/// alone, or nothing completed. In an open loop, or with pauses, Puma before 7 holds a thread up to
/// 0.2 s for the connection's next request: then it is not asked.
pub(crate) fn of_run(run: &Run, alone: &ServiceTime) -> Option<AtOnce> {
    let rate = run.completed_rate();
    let responses = run.tally.counts.good();
    of(rate, responses, &alone.of_a_thread())
}

/// Of a throughput (requests per second), over so many responses, and the time for which each holds
/// a thread.
pub(crate) fn of(rate: f64, responses: u64, alone: &ServiceTime) -> Option<AtOnce> {
    if rate <= 0.0 || responses == 0 || alone.mean == Nanos::ZERO {
        return None;
    }
    // Responses of a busy server come with the scatter of their service times. Those of a given
    // time are taken for constant.
    let by_chance = ERRORS * alone.variation / (responses as f64).sqrt();
    let mean = rate * alone.mean.as_secs_f64();
    // Those that are served together may end together: the window has one such batch more or less.
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

/// What the interval says of a number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotsMatch {
    /// It is clearly below.
    Below,
    /// The number lies in it, and it is narrow: it is that number, and not another.
    Equal,
    /// The number lies in it, and many others do too.
    Unclear,
    /// It is clearly above.
    Above,
}

/// An interval wider than this, either way, does not tell one number of threads from another.
const WIDE: f64 = 0.2;

/// Whether it tells one number of threads from another.
pub(crate) fn is_narrow(at_once: &AtOnce) -> bool {
    let high = at_once.high.unwrap_or(f64::INFINITY);
    at_once.low >= (1.0 - WIDE) * at_once.mean && high <= (1.0 + WIDE) * at_once.mean
}

/// What is clearly below or above lies outside an interval of 99.9 %: 3.3 standard errors, where one of
/// 95 % has 1.96. What is no chance, the least error, stays as it is.
const CLEARLY: f64 = 3.3 / ERRORS;

fn clear_end(mean: f64, end: f64) -> f64 {
    let apart = (end - mean).abs();
    let by_chance = (apart - LEAST_ERROR * mean).max(0.0);
    mean + (end - mean).signum() * (apart + (CLEARLY - 1.0) * by_chance)
}

/// Holds it against `slots`.
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
    fn a_constant_time_is_known_to_five_per_cent() {
        let ten = of(100.0, 1000, &alone(100, 100, 100, 0.0)).unwrap();
        assert!((ten.mean - 10.0).abs() < 1e-9 && (ten.low - 9.5).abs() < 1e-9, "{ten:?}");
        assert_eq!(compare_with_slots(&ten, 10.0), SlotsMatch::Equal);
        assert_eq!(
            [9.4, 10.6].map(|slots| compare_with_slots(&ten, slots)),
            [SlotsMatch::Above, SlotsMatch::Below]
        );
    }

    #[test]
    fn a_pool_of_nine_is_told_from_ten_threads() {
        let nine = of(180.0, 1800, &alone(50, 50, 50, 0.0)).unwrap();
        assert_eq!(compare_with_slots(&nine, 10.0), SlotsMatch::Below);
        assert_eq!(compare_with_slots(&nine, 9.0), SlotsMatch::Equal);
    }

    #[test]
    fn what_varies_much_alone_tells_no_number() {
        // 15 ms, and a second once in eighteen: the mean is 41 to 110 ms.
        let any = of(145.0, 1450, &alone(69, 41, 110, 3.1)).unwrap();
        assert!(any.low < 6.0 && any.high > Some(15.0), "{any:?}");
        assert_eq!(compare_with_slots(&any, 10.0), SlotsMatch::Unclear);
        let unknown = ServiceTime { high: Nanos::MAX, ..alone(69, 41, 110, 3.1) };
        assert_eq!(of(145.0, 1450, &unknown).unwrap().high, None);
        assert_eq!(of(145.0, 0, &unknown), None);
    }
}
