//! The due times of a replayed log ([`RecordedTimes`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Nanos, Rate};

/// When the requests of a log are due, from its start on, at the speed of the replay. A mean gap
/// after its last request the log starts again.
///
/// A study keeps how many there were and how long they lasted, but not the times themselves, which
/// are in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedTimes {
    /// Requests of the log.
    pub requests: u64,
    /// From the start to the last request, plus a mean gap.
    #[serde(rename = "lasts_ns")]
    pub lasts: Nanos,
    /// How many times as fast as the log they are sent.
    pub speed: f64,
    /// The most requests that are due in a second.
    #[serde(rename = "peak_per_s")]
    pub peak: Rate,
    /// The due times, rising; none where they were read from a study.
    #[serde(skip)]
    due: Arc<[Nanos]>,
}

impl RecordedTimes {
    /// From the times of a log, which rise from `start` on, to be replayed at `speed` times its
    /// speed. `None` if there are none.
    pub fn new(times: &[Nanos], start: Nanos, speed: f64) -> Option<RecordedTimes> {
        let at_speed =
            |time: &Nanos| Nanos((time.saturating_sub(start).0 as f64 / speed).round() as u64);
        let due: Arc<[Nanos]> = times.iter().map(at_speed).collect();
        let last = *due.last()?;
        let requests = due.len() as u64;
        let gap = if requests > 1 { last / (requests - 1) } else { Nanos::from_secs(1) };
        // Where all are due at once, the log still takes some time.
        let lasts = (last + gap).max(Nanos(1));
        Some(RecordedTimes { requests, lasts, speed, peak: peak(&due), due })
    }

    /// When the `number`-th request is due.
    pub fn due(&self, number: u64) -> Nanos {
        let requests = self.requests.max(1);
        let index = number % requests;
        let in_log = self.due.get(index as usize).copied();
        let even = || Nanos((self.lasts.0 as f64 / requests as f64 * index as f64) as u64);
        self.lasts * (number / requests) + in_log.unwrap_or_else(even)
    }
}

/// The most that are due within a second.
fn peak(due: &[Nanos]) -> Rate {
    let mut from = 0;
    let mut most = 1;
    for (at, time) in due.iter().enumerate() {
        while time.saturating_sub(due[from]) >= Nanos::from_secs(1) {
            from += 1;
        }
        most = most.max(at + 1 - from);
    }
    Rate::new(most as f64).expect("at least one request a second")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, Pace, Profile};

    fn times(millis: &[u64]) -> Vec<Nanos> {
        millis.iter().map(|ms| Nanos::from_millis(*ms)).collect()
    }

    #[test]
    fn due_times_are_the_logs_at_any_speed_and_begin_anew() {
        let log = times(&[5000, 5000, 5400, 6000]);
        for (speed, expected) in
            [(1.0, [0, 0, 400, 1000, 1333, 1333]), (2.0, [0, 0, 200, 500, 666, 666])]
        {
            let recorded = RecordedTimes::new(&log, log[0], speed).unwrap();
            let due = (0..6).map(|n| recorded.due(n).0 / 1_000_000).collect::<Vec<_>>();
            assert_eq!(due, expected, "{speed}");
        }
        assert_eq!(RecordedTimes::new(&log, log[0], 1.0).unwrap().peak, Rate::new(3.0).unwrap());
        assert_eq!(RecordedTimes::new(&[], Nanos::ZERO, 1.0), None);
    }

    #[test]
    fn ten_thousand_due_times_are_kept_to_a_microsecond() {
        let mut time = 1_764_098_567_123_456;
        // Gaps of up to 17 s, in whole microseconds: almost a day.
        let log: Vec<Nanos> = (0..10_000)
            .map(|n| {
                time += (crate::pace::uniform(7, n) * 17e6) as u64;
                Nanos::from_micros(time)
            })
            .collect();
        for speed in [1, 3] {
            let recorded = RecordedTimes::new(&log, log[0], speed as f64).unwrap();
            let profile = Profile::Recorded { recorded };
            let pace = Pace::Open { profile, arrivals: Arrivals::Constant, seed: 1, burst: 1 };
            for (lane, lanes) in [(0, 1), (0, 3), (1, 3), (2, 3)] {
                let due = pace.schedule().unwrap().skip(lane).step_by(lanes);
                for (due, time) in due.zip(log.iter().skip(lane).step_by(lanes)) {
                    let expected = (*time - log[0]).0 / speed;
                    assert!(due.0.abs_diff(expected) <= 1_000, "{due} in place of {expected} ns");
                }
            }
        }
    }
}
