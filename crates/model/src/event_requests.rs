//! What became of the requests before, during and after an event, from one record of each.
//!
//! A run with an event has three parts. *Before* is what had ended when the event happened.
//! *During* lasts until the server's processes have settled and requests take no longer than they
//! did before. *After* is the rest. Whether requests take longer is judged in short slices of time:
//! a slice is disturbed if a request failed in it (where none did before), or if more requests than
//! chance allows took longer than the 99th percentile before.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::statistics::{binomial, ranks};
use crate::{Histogram, Nanos, Outcome, counts};

/// One measured request: when it was due and ended, since the start of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRequest {
    /// When it was due.
    pub due: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// How.
    pub outcome: Outcome,
}

/// A part of a run with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPart {
    /// Before the event.
    Before,
    /// From the event until all is as it was before.
    During,
    /// After that.
    After,
}

const PARTS: [(&str, RunPart); 3] =
    [("before", RunPart::Before), ("during", RunPart::During), ("after", RunPart::After)];

impl FromStr for RunPart {
    type Err = ();

    fn from_str(text: &str) -> Result<RunPart, ()> {
        PARTS.into_iter().find(|(name, _)| *name == text).map(|(_, part)| part).ok_or(())
    }
}

impl fmt::Display for RunPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = PARTS.iter().find(|(_, part)| part == self).map(|(name, _)| *name);
        out.write_str(name.expect("each part has a name"))
    }
}

/// The requests of one part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsOfPart {
    /// How long the part is.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// How many there were.
    pub requests: u64,
    /// How many of them failed.
    pub failed: u64,
    /// The response times of the others.
    pub response_time: Histogram,
    /// Those that failed, by outcome, and when.
    pub failures: Vec<FailuresOfKind>,
    /// The longest time in which no good response came.
    pub longest_gap: ResponseGap,
}

/// The requests that failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailuresOfKind {
    /// The outcome, by its [name](counts::name).
    pub outcome: String,
    /// How many.
    pub requests: u64,
    /// When the first of them failed.
    #[serde(rename = "first_ns")]
    pub first: Nanos,
    /// And the last.
    #[serde(rename = "last_ns")]
    pub last: Nanos,
}

/// A time in which no good response came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseGap {
    /// Since when.
    #[serde(rename = "from_ns")]
    pub from: Nanos,
    /// For how long.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
}

/// What became of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRequests {
    /// Before the event.
    pub before: RequestsOfPart,
    /// From the event until all was as before.
    pub during: RequestsOfPart,
    /// After that.
    pub after: RequestsOfPart,
    /// The time that requests seldom exceeded before: the upper end of the interval of their 99th
    /// percentile, or the longest of them if they were few. `None` if there were too few.
    #[serde(rename = "usual_ns")]
    pub usual: Option<Nanos>,
    /// When the last disturbed slice of time was over; `None` if none was disturbed.
    #[serde(rename = "disturbed_until_ns")]
    pub disturbed_until: Option<Nanos>,
    /// How long the disturbed slices since the event are in total.
    #[serde(rename = "disturbed_ns")]
    pub disturbed: Nanos,
    /// The same before the event: disturbances that have another cause.
    #[serde(rename = "disturbed_before_ns")]
    pub disturbed_before: Nanos,
    /// The length of a slice.
    #[serde(rename = "slice_ns")]
    pub slice: Nanos,
    /// Whether the run ended before requests took as long as before.
    pub is_cut_off: bool,
    /// The slowest request of each slice, and how many failed in it, for a picture: at most
    /// [`MOST_SLICES`].
    pub slices: Vec<TimeSlice>,
    /// Requests of which no record could be kept.
    pub missing: u64,
}

/// Requests that were due in the same slice of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSlice {
    /// How many.
    pub requests: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How many took longer than usual, or failed.
    pub slow: u64,
    /// The longest response time of those that did not fail; 0 if all did.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
}

/// The most slices.
pub const MOST_SLICES: u64 = 1200;
/// The shortest slice, and the fewest requests that are due in one on average.
const SHORTEST_SLICE: Nanos = Nanos::from_millis(100);
const REQUESTS_OF_SLICE: f64 = 10.0;
/// The fewest requests before the event from which a 99th percentile can be told.
pub const FEWEST_BEFORE: u64 = 100;
/// The share of requests that take longer than usual when nothing happens.
const SLOW_SHARE: f64 = 0.01;
/// The probability that chance alone makes a slice look disturbed: one in ten thousand.
const BY_CHANCE: f64 = 1e-4;
/// The disturbance is over when no slice was disturbed for this long.
const QUIET: Nanos = Nanos::from_secs(1);

/// The times of a run with an event, from the start of the measured window.
#[derive(Clone, Copy, Debug)]
pub struct EventTimes {
    /// When the event happened.
    pub at: Nanos,
    /// When the server's processes had settled, and the event's command had ended.
    pub settled: Nanos,
    /// The length of the measured window.
    pub window: Nanos,
}

impl EventRequests {
    /// What became of these requests.
    pub fn of(requests: &[TimedRequest], times: EventTimes, missing: u64) -> EventRequests {
        let EventTimes { at, settled, window } = times;
        // A run that ends early may do so just before the event.
        let at = at.min(window);
        let is_before = |request: &&TimedRequest| request.ended < at;
        let before: Vec<TimedRequest> = requests.iter().filter(is_before).copied().collect();
        let usual = usual_time(&before);
        let slice = slice_length(requests.len(), window);
        let slices = slices(requests, slice, window, usual);
        let failed_before = before.iter().any(|request| !request.outcome.is_good());
        let disturbed: Vec<Nanos> = slices
            .iter()
            .enumerate()
            .filter(|(_, one)| is_disturbed(one, usual.is_some(), failed_before))
            .map(|(number, _)| slice * number as u64)
            .collect();
        // The slice in which the event happened.
        let first = Nanos(at.0 / slice.0 * slice.0);
        let end = end_of_disturbance(&disturbed, first, settled, slice);
        let is_cut_off = end.is_some_and(|end| end + slice > window);
        let until = end.unwrap_or(settled).max(settled).min(window).max(at);
        let since = disturbed.iter().filter(|begin| first <= **begin && **begin < until).count();
        let earlier = disturbed.iter().filter(|begin| **begin + slice <= at).count();
        let later: Vec<TimedRequest> =
            requests.iter().filter(|request| request.ended >= at).copied().collect();
        let (during, after): (Vec<TimedRequest>, Vec<TimedRequest>) =
            later.into_iter().partition(|request| request.due < until);
        let gaps = ResponseGaps::of(requests, window);
        EventRequests {
            before: RequestsOfPart::of(&before, at, gaps.longest(|_, end| end <= at)),
            during: RequestsOfPart::of(
                &during,
                until - at,
                gaps.longest(|begin, end| at < end && begin < until),
            ),
            after: RequestsOfPart::of(
                &after,
                window - until,
                gaps.longest(|begin, _| begin >= until),
            ),
            usual,
            disturbed_until: end,
            disturbed: slice * since as u64,
            disturbed_before: slice * earlier as u64,
            slice,
            is_cut_off,
            slices,
            missing,
        }
    }

    /// The requests of a part.
    pub fn part(&self, part: RunPart) -> &RequestsOfPart {
        match part {
            RunPart::Before => &self.before,
            RunPart::During => &self.during,
            RunPart::After => &self.after,
        }
    }

    /// The longest time without a response before the event.
    pub fn gap_before(&self) -> Nanos {
        self.before.longest_gap.length
    }

    /// Requests that failed since the event.
    pub fn failed_since(&self) -> u64 {
        self.during.failed + self.after.failed
    }
}

/// The time that requests seldom exceed.
fn usual_time(before: &[TimedRequest]) -> Option<Nanos> {
    let mut times = Histogram::default();
    for request in before.iter().filter(|request| request.outcome.is_good()) {
        times.record(request.ended - request.due);
    }
    if times.count() < FEWEST_BEFORE {
        return None;
    }
    let high = ranks(1.0 - SLOW_SHARE, times.count(), 1.0).high;
    high.map_or_else(|| times.max(), |rank| times.at_rank(rank))
}

fn slice_length(requests: usize, window: Nanos) -> Nanos {
    let for_requests = window.0 as f64 * REQUESTS_OF_SLICE / requests.max(1) as f64;
    let shortest = SHORTEST_SLICE.max(Nanos(window.0.div_ceil(MOST_SLICES)));
    Nanos(for_requests as u64).clamp(shortest, window.max(shortest))
}

fn slices(
    requests: &[TimedRequest],
    slice: Nanos,
    window: Nanos,
    usual: Option<Nanos>,
) -> Vec<TimeSlice> {
    let mut slices = vec![TimeSlice::default(); window.0.div_ceil(slice.0) as usize];
    for request in requests {
        let Some(slice) = slices.get_mut((request.due.0 / slice.0) as usize) else { continue };
        let time = request.ended - request.due;
        let is_good = request.outcome.is_good();
        slice.requests += 1;
        slice.failed += u64::from(!is_good);
        slice.slow += u64::from(!is_good || usual.is_some_and(|usual| time > usual));
        if is_good {
            slice.longest = slice.longest.max(time);
        }
    }
    slices
}

/// Whether more of its requests failed or were slow than chance allows.
fn is_disturbed(slice: &TimeSlice, is_usual_known: bool, failed_before: bool) -> bool {
    if slice.failed > 0 && !failed_before {
        return true;
    }
    if !is_usual_known || slice.slow == 0 {
        return false;
    }
    let (first, weights) = binomial(SLOW_SHARE, slice.requests);
    let below = slice.slow.saturating_sub(first) as usize;
    weights.iter().skip(below).sum::<f64>() < BY_CHANCE
}

/// When the disturbance that followed the event was over; a later one is not the event's.
fn end_of_disturbance(
    disturbed: &[Nanos],
    first: Nanos,
    settled: Nanos,
    slice: Nanos,
) -> Option<Nanos> {
    let quiet = QUIET.max(slice * 2);
    let mut end = None;
    for begin in disturbed.iter().filter(|begin| **begin >= first) {
        if *begin > end.unwrap_or(settled).max(settled) + quiet {
            break;
        }
        end = Some(*begin + slice);
    }
    end
}

/// When good responses came.
struct ResponseGaps {
    ended: Vec<Nanos>,
    window: Nanos,
}

impl ResponseGaps {
    fn of(requests: &[TimedRequest], window: Nanos) -> ResponseGaps {
        let good = requests.iter().filter(|request| request.outcome.is_good());
        let mut ended: Vec<Nanos> = good.map(|request| request.ended.min(window)).collect();
        ended.sort_unstable();
        ResponseGaps { ended, window }
    }

    /// The longest time without a good response, among those whose start and end `counts` accepts.
    /// The start and the end of the window count as responses.
    fn longest(&self, counts: impl Fn(Nanos, Nanos) -> bool) -> ResponseGap {
        let begins = std::iter::once(Nanos::ZERO).chain(self.ended.iter().copied());
        let ends = self.ended.iter().copied().chain([self.window]);
        let gaps = begins.zip(ends).filter(|(begin, end)| counts(*begin, *end));
        let gaps = gaps.map(|(begin, end)| ResponseGap { from: begin, length: end - begin });
        gaps.max_by_key(|gap| gap.length).unwrap_or_default()
    }
}

impl RequestsOfPart {
    fn of(requests: &[TimedRequest], length: Nanos, longest_gap: ResponseGap) -> RequestsOfPart {
        let mut part = RequestsOfPart { length, longest_gap, ..RequestsOfPart::default() };
        let mut failures: BTreeMap<String, FailuresOfKind> = BTreeMap::new();
        for request in requests {
            part.requests += 1;
            if request.outcome.is_good() {
                part.response_time.record(request.ended - request.due);
                continue;
            }
            part.failed += 1;
            let outcome = counts::name(request.outcome);
            let kind = failures.entry(outcome.clone()).or_insert(FailuresOfKind {
                outcome,
                requests: 0,
                first: request.ended,
                last: request.ended,
            });
            kind.requests += 1;
            kind.first = kind.first.min(request.ended);
            kind.last = kind.last.max(request.ended);
        }
        part.failures = failures.into_values().collect();
        part.failures.sort_by_key(|kind| std::cmp::Reverse(kind.requests));
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Nanos = Nanos::from_secs(30);

    /// Fifty requests a second for half a minute; `time` says what each takes, in ms.
    fn requests(time: impl Fn(u64) -> u64) -> Vec<TimedRequest> {
        let request = |number: u64| {
            let due = Nanos::from_millis(number * 20);
            let ended = due + Nanos::from_millis(time(number));
            TimedRequest { due, ended, outcome: Outcome::Answered(200) }
        };
        (0..1500).map(request).collect()
    }

    fn at_ten(requests: &[TimedRequest], settled: u64) -> EventRequests {
        let settled = Nanos::from_millis(settled);
        let times = EventTimes { at: Nanos::from_secs(10), settled, window: WINDOW };
        EventRequests::of(requests, times, 0)
    }

    /// A time without pattern between 20 and 30 ms; one in two hundred takes 80.
    fn usual(number: u64) -> u64 {
        let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        if scattered.is_multiple_of(200) { 80 } else { 20 + scattered % 11 }
    }

    #[test]
    fn every_request_is_in_exactly_one_part() {
        let all = requests(usual);
        let found = at_ten(&all, 12_000);
        let parts = [RunPart::Before, RunPart::During, RunPart::After];
        let sum: u64 = parts.iter().map(|part| found.part(*part).requests).sum();
        assert_eq!(sum, 1500);
        assert_eq!(found.during.length, Nanos::from_secs(2), "until the processes have settled");
        assert_eq!((found.disturbed, found.disturbed_until), (Nanos::ZERO, None));
        assert_eq!(found.disturbed_before, Nanos::ZERO);
    }

    #[test]
    fn an_event_just_after_a_run_that_ended_early_is_at_its_end() {
        let times = EventTimes { at: Nanos::from_millis(30_005), settled: WINDOW, window: WINDOW };
        let found = EventRequests::of(&requests(usual), times, 0);
        assert_eq!((found.before.length, found.after.length), (WINDOW, Nanos::ZERO));
    }

    #[test]
    fn requests_that_wait_for_a_restart_are_a_disturbance_until_they_are_usual_again() {
        // From 10 to 13 s nobody serves; the queue is gone at 14 s.
        let all = requests(|number| match number * 20 {
            due @ 10_000..13_000 => 13_000 - due + 20,
            13_000..14_000 => 300,
            _ => usual(number),
        });
        let found = at_ten(&all, 13_000);
        assert_eq!(found.disturbed_until, Some(Nanos::from_secs(14)));
        assert_eq!(found.disturbed, Nanos::from_secs(4));
        assert_eq!((found.during.failed, found.is_cut_off), (0, false));
        assert!(found.during.longest_gap.length > Nanos::from_millis(2900));
        assert!(found.before.longest_gap.length < Nanos::from_millis(150));
        assert_eq!(found.usual, Some(Nanos::from_millis(80)));
    }

    #[test]
    fn failures_are_counted_by_kind_with_their_times_and_a_lost_request_in_flight_is_the_events() {
        let mut all = requests(usual);
        all[499].ended = Nanos::from_millis(10_001);
        all[499].outcome = Outcome::Reset;
        all[510].outcome = Outcome::Refused;
        all[520].outcome = Outcome::Refused;
        let found = at_ten(&all, 10_300);
        assert_eq!((found.before.failed, found.during.failed, found.after.failed), (0, 3, 0));
        let kinds: Vec<_> = found
            .during
            .failures
            .iter()
            .map(|kind| (kind.outcome.as_str(), kind.requests, kind.first, kind.last))
            .collect();
        assert_eq!(kinds[0], ("connect_refused", 2, all[510].ended, all[520].ended));
        assert_eq!(kinds[1], ("reset", 1, all[499].ended, all[499].ended));
    }

    #[test]
    fn a_disturbance_that_lasts_until_the_end_is_cut_off() {
        let all = requests(|number| if number * 20 >= 10_000 { 400 } else { usual(number) });
        let found = at_ten(&all, 10_500);
        assert!(found.is_cut_off && found.after.requests == 0, "{found:?}");
    }

    #[test]
    fn too_few_requests_before_tell_no_usual_time() {
        let all: Vec<TimedRequest> = requests(usual).into_iter().skip(420).collect();
        let found = at_ten(&all, 10_500);
        assert_eq!((found.usual, found.disturbed), (None, Nanos::ZERO));
    }
}
