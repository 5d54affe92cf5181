//! What one lane recorded: histograms, counts, seconds, and the shares of connections and workers.
//!
//! A lane owns its tally and shares nothing. At the end tallies are merged, in any order, into what
//! a single lane would have recorded. A request belongs to the measured window if it was **due** in
//! it; the others, before and after, are only counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::class_tally::RecordedOutcomes;
use crate::histogram::BucketIndex;
use crate::phases::Slowest;
use crate::unfinished::UnfinishedRequests;
use crate::{
    BadResponse, BadResponses, BrokenResponses, ClassTally, ConnectionClosings, Counts,
    DurationSummary, Exchange, Histogram, Nanos, NetworkPath, Outcome, Phases, QueueTimes,
    Redirect, Turns, WrongLengths,
};

/// The measured part of a run, `from` inclusive and `until` exclusive, on the run's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// End of the warm-up.
    #[serde(rename = "from_ns")]
    pub from: Nanos,
    /// When no further request becomes due; [`Nanos::MAX`] if a count ends the run.
    #[serde(rename = "until_ns", with = "crate::units::never_is_null")]
    pub until: Nanos,
}

impl Window {
    /// Whether the instant is inside.
    #[inline]
    pub fn contains(self, instant: Nanos) -> bool {
        self.from <= instant && instant < self.until
    }
}

/// Requests of one worker of the server, as its response header named it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerCount {
    /// Responses to requests due in the measured window.
    pub measured: u64,
    /// Responses to all requests, including unmeasured ones.
    pub all: u64,
}

/// All that a lane records; after merging, all that a run recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Which requests are measured.
    pub window: Window,
    /// The measured requests by outcome.
    pub counts: Counts,
    /// The requests that are not measured, by outcome: those of the warm-up, and those that kept up
    /// the load while the last measured ones were awaited.
    pub unmeasured: Counts,
    /// The measured requests that the user left without a response by stopping the run. They are
    /// not in `counts`.
    #[serde(default, skip_serializing_if = "UnfinishedRequests::is_empty")]
    pub unfinished: UnfinishedRequests,
    /// The same by class, where the load sends several classes; the figures of all requests are
    /// their sum. Omitted from files if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassTally>,
    /// Why the measured bad responses were bad; the sum is their number in `counts`. Empty in older
    /// files.
    pub bad_responses: BadResponses,
    /// The lengths of measured responses with a wrong length; `None` if there are none, and in
    /// older files.
    pub wrong_lengths: Option<WrongLengths>,
    /// Examples of what arrived instead of good responses; omitted from files if empty.
    #[serde(default, skip_serializing_if = "BrokenResponses::is_empty")]
    pub broken: BrokenResponses,
    /// An example of the run's redirects, including unmeasured ones; omitted from files if there
    /// was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// Kept-alive connections that the server closed as it had announced (`Connection: close`);
    /// omitted from files if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced_closings: Option<ConnectionClosings>,
    /// What the server calls itself (its `Server` header), the first name of several; omitted from
    /// files if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Response times of the good responses.
    pub response_time: Histogram,
    /// Service times of the good responses.
    pub service_time: Histogram,
    /// Send lags of all measured requests that were sent.
    pub send_lag: Histogram,
    /// How late the generator itself was: from when a request was due until it began to send or
    /// connect, without waits for the schedule or for a free connection.
    pub generator_lag: Histogram,
    /// How late the generator read the responses: from the kernel's arrival stamp to when the lane
    /// had it. Empty without kernel stamps. It is not part of the response times.
    pub read_lag: Histogram,
    /// Response times of the responses that were not good, never mixed with the good ones.
    pub failed_response_time: Histogram,
    /// Good responses that *ended* inside the window, whenever their requests were due: the basis
    /// of the completed rate.
    pub completed_in_window: u64,
    /// Requests whose first byte was *sent* inside the window, whenever they were due.
    pub sent_in_window: u64,
    /// Time within the window of requests that were due before it, with any outcome, and of those
    /// in flight when the user stopped the run.
    #[serde(rename = "carried_in_ns", default)]
    pub carried_in: Nanos,
    /// Time after the window of requests that were due in it and ended later.
    #[serde(rename = "carried_out_ns", default)]
    pub carried_out: Nanos,
    /// Open loop: how long requests that found no free connection when they were due waited in the
    /// generator.
    pub queued: DurationSummary,
    /// Where the time of the measured good responses went.
    pub phases: Phases,
    /// The queue times that the app computed for the measured good responses; `None` if it reported
    /// none, or was sent no `X-Request-Start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_times: Option<QueueTimes>,
    /// The slowest measured good responses.
    pub slowest: Slowest,
    /// The turns seen on the connections among the first responses of the run; omitted from files
    /// if empty.
    #[serde(default, skip_serializing_if = "Turns::is_empty")]
    pub turns: Turns,
    /// Measured good responses of each connection, by the connection's number in the whole run.
    pub per_connection: Vec<u64>,
    /// By the name that the worker reports; empty if the server doesn't name its workers.
    pub per_worker: BTreeMap<String, WorkerCount>,
    /// Failed requests that were sent again, by whole seconds since the window's start. Those of
    /// the warm-up are in the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<u64>,
    /// Bytes of responses received over all connections, including heads, incomplete and unmeasured
    /// responses.
    pub received_bytes: u64,
    /// The content of complete responses among them, without heads and chunk framing.
    pub body_bytes: u64,
    /// Bytes of requests passed to the kernel over all connections, including unmeasured ones.
    pub sent_bytes: u64,
    /// Connections opened, the first ones included.
    pub connections_opened: u64,
    /// The longest connect of an answered, unmeasured request: a closed loop with keep-alive makes
    /// all its connections in the warm-up.
    #[serde(rename = "longest_unmeasured_connect_ns", default)]
    pub longest_unmeasured_connect: Nanos,
    /// Connects that failed because this machine had no port, descriptor or memory for them.
    pub exhausted: u64,
    /// Kept-alive connections that the server closed.
    pub closed_by_server: u64,
    /// Kept-alive connections that we closed between two requests because the server sent
    /// unrequested bytes on them.
    pub closed_for_unasked: u64,
    /// End of the last measured request.
    #[serde(rename = "last_ended_ns")]
    pub last_ended: Nanos,
    /// What TCP reports about the connections.
    pub network: NetworkPath,
    /// Second by second since the window's start.
    pub series: Series,
}

impl Tally {
    /// An empty tally for `connections` connections in the whole run, preallocated so that
    /// recording does not allocate.
    pub fn new(window: Window, connections: usize) -> Tally {
        let span = if window.until == Nanos::MAX {
            Nanos::from_secs(60)
        } else {
            window.until - window.from
        };
        let mut tally = Tally {
            window,
            per_connection: vec![0; connections],
            last_ended: window.from,
            series: Series::with_span(span + Nanos::from_secs(60)),
            ..Tally::default()
        };
        // Preallocate, so that no lane has to.
        for times in [
            &mut tally.response_time,
            &mut tally.service_time,
            &mut tally.send_lag,
            &mut tally.generator_lag,
            &mut tally.read_lag,
            &mut tally.failed_response_time,
        ] {
            times.make_room();
        }
        tally
    }

    /// Whether nothing was recorded, because another generator made the run.
    pub(crate) fn is_nothing(&self) -> bool {
        // Creating an empty tally allocates histograms, so the cheap comparison comes first.
        self.counts == Counts::default() && *self == Tally::default()
    }

    /// Whether a request due then is measured.
    #[inline]
    pub fn measures(&self, due: Nanos) -> bool {
        self.window.contains(due)
    }

    /// Records how one request of connection number `connection` ended.
    pub fn record(&mut self, exchange: &Exchange, connection: usize) {
        self.record_of(None, exchange, connection);
    }

    /// The same for a request of a class, whose tally [is added](Tally::add_classes) later.
    pub fn record_of(
        &mut self,
        class: Option<&mut ClassTally>,
        exchange: &Exchange,
        connection: usize,
    ) {
        let is_measured = self.measures(exchange.due);
        let is_good = exchange.outcome.is_good();
        self.record_judged(class, exchange, connection, is_measured, is_good);
        if is_measured && exchange.was_sent() {
            self.send_lag.record(exchange.send_lag());
        }
        if is_measured && is_good {
            self.service_time.record(exchange.service_time());
        }
    }

    /// Like [`Tally::record_of`], if it is known whether the request [is measured](Tally::measures)
    /// and its outcome [good](Outcome::is_good); without send lag and service time.
    #[inline(always)]
    pub fn record_judged(
        &mut self,
        class: Option<&mut ClassTally>,
        exchange: &Exchange,
        connection: usize,
        is_measured: bool,
        good: bool,
    ) {
        if good && self.window.contains(exchange.ended) {
            self.completed_in_window += 1;
        }
        if exchange.was_sent() && self.window.contains(exchange.sent) {
            self.sent_in_window += 1;
        }
        let outcomes = match class {
            Some(class) => class.outcomes(),
            None => self.outcomes(),
        };
        outcomes.record(exchange, is_measured, good);
        if !is_measured {
            if exchange.due < self.window.from {
                let within = exchange.ended.min(self.window.until);
                self.carried_in += within.saturating_sub(self.window.from);
            }
            return;
        }
        self.carried_out += exchange.ended.saturating_sub(self.window.until);
        self.last_ended = self.last_ended.max(exchange.ended);
        let response_time = exchange.response_time();
        self.series.record(exchange.ended.saturating_sub(self.window.from), response_time, good);
        if good {
            self.per_connection[connection] += 1;
            self.slowest.record(exchange, self.window.from);
        }
    }

    fn outcomes(&mut self) -> RecordedOutcomes<'_> {
        RecordedOutcomes {
            counts: &mut self.counts,
            unmeasured: &mut self.unmeasured,
            response_time: &mut self.response_time,
            failed_response_time: &mut self.failed_response_time,
        }
    }

    /// Adds what was recorded by class, and so far is counted nowhere else, to the figures of all
    /// requests, and keeps it by class, too.
    pub fn add_classes(&mut self, classes: &[ClassTally]) {
        for class in classes {
            self.counts.merge(&class.counts);
            self.unmeasured.merge(&class.unmeasured);
            self.unfinished.merge(&class.unfinished);
            self.response_time.merge(&class.response_time);
            self.failed_response_time.merge(&class.failed_response_time);
        }
        self.merge_classes(classes);
    }

    fn merge_classes(&mut self, classes: &[ClassTally]) {
        if self.classes.is_empty() {
            self.classes = classes.to_vec();
            return;
        }
        for (mine, theirs) in self.classes.iter_mut().zip(classes) {
            mine.merge(theirs);
        }
    }

    /// Counts that a failed request is sent again at this instant.
    #[cold]
    pub fn record_retry(&mut self, at: Nanos) {
        let second = (at.saturating_sub(self.window.from).0 / SECOND) as usize;
        if self.retries.len() <= second {
            self.retries.resize(second + 1, 0);
        }
        self.retries[second] += 1;
    }

    /// Records a request that is left without a response because the user stops the run.
    /// `is_in_flight`: whether it was sent, or is being sent, on a connection.
    #[cold]
    pub fn record_unfinished(
        &mut self,
        class: Option<&mut ClassTally>,
        exchange: &Exchange,
        is_in_flight: bool,
    ) {
        if exchange.was_sent() && self.window.contains(exchange.sent) {
            self.sent_in_window += 1;
        }
        if is_in_flight {
            let from = exchange.due.max(self.window.from);
            self.carried_in += exchange.ended.min(self.window.until).saturating_sub(from);
        }
        let is_measured = self.measures(exchange.due);
        let (unfinished, unmeasured) = match class {
            Some(class) => (&mut class.unfinished, &mut class.unmeasured),
            None => (&mut self.unfinished, &mut self.unmeasured),
        };
        match (is_measured, is_in_flight) {
            (true, true) => unfinished.record_in_flight(exchange),
            (true, false) => unfinished.record_not_sent(exchange),
            (false, _) => unmeasured.record(exchange.outcome),
        }
    }

    /// Counts unfinished requests as failed, because the end of the server stopped the run, not the
    /// user.
    pub fn fail_unfinished(&mut self) {
        fail(&mut self.unfinished, &mut self.counts);
        for class in &mut self.classes {
            fail(&mut class.unfinished, &mut class.counts);
        }
    }

    /// The fast path: records the times of a good response to a measured request that was sent and
    /// ended in the window. Its response time is recorded by [`Tally::record_at`]. What all such
    /// responses have in common is added for many of them at once: that they were sent and
    /// completed in the window by [`Tally::add_alike`], their status and connection by the caller.
    #[inline(always)]
    pub fn record_own(&mut self, due: Nanos, sent: Nanos, ended: Nanos) {
        let response_time = ended - due;
        self.last_ended = self.last_ended.max(ended);
        self.series.record(ended - self.window.from, response_time, true);
        self.slowest.record_times(response_time, ended - sent, due - self.window.from);
    }

    /// Records the response time of a response of the fast path, whose bucket is `place`.
    #[inline(always)]
    pub fn record_at(&mut self, place: BucketIndex, response_time: Nanos) {
        self.response_time.record_at(place, response_time);
    }

    /// Counts `answers` responses, recorded by [`Tally::record_own`], as sent and completed in the
    /// window.
    pub fn add_alike(&mut self, answers: u64) {
        self.completed_in_window += answers;
        self.sent_in_window += answers;
    }

    /// Records why measured `requests` ended in a bad response. The requests themselves are
    /// recorded separately.
    #[cold]
    pub fn record_reason(&mut self, reason: BadResponse, requests: u64) {
        self.bad_responses.record(reason, requests);
    }

    /// Records the length of a measured response with a wrong length. The request itself is
    /// recorded separately.
    #[cold]
    pub fn record_wrong_length(&mut self, wanted_bytes: u64, bytes: u64) {
        self.add_wrong_lengths(WrongLengths::of(wanted_bytes, bytes));
    }

    /// What else is known about the requests with this `outcome`.
    pub fn reason(&self, outcome: Outcome) -> Option<String> {
        match outcome {
            Outcome::BadResponse if self.bad_responses.total() > 0 => {
                let reasons = self.bad_responses.to_string();
                Some(match &self.broken.first_bytes {
                    Some(bytes) => format!("{reasons}: it begins with {bytes}"),
                    None => reasons,
                })
            }
            Outcome::WrongLength => self.wrong_lengths.map(|lengths| lengths.to_string()),
            Outcome::Refused => {
                self.gone_from().map(|second| format!("nobody listened from second {second} on"))
            }
            _ => self.broken.reason(outcome, self.counts.of(outcome)),
        }
    }

    /// The same, if it is short enough for a sentence with several kinds of failures.
    pub fn brief_reason(&self, outcome: Outcome) -> Option<String> {
        let has_several = outcome == Outcome::BadResponse && self.bad_responses.iter().len() > 1;
        if has_several { None } else { self.reason(outcome) }
    }

    /// The second of the run, counted from 1, from which on connects were refused and no response
    /// came any more, although there had been responses before.
    pub fn gone_from(&self) -> Option<usize> {
        let seconds = &self.series.seconds;
        let last = seconds.iter().rposition(|second| second.completed > 0)?;
        let failed_after: u64 = seconds[last + 1..].iter().map(|second| second.failed).sum();
        // Timeouts also end late and prove nothing.
        let timed_out = self.counts.of(Outcome::TimedOut);
        let refused = self.counts.of(Outcome::Refused);
        let is_gone = timed_out == 0 && (1..=refused).contains(&failed_after);
        // The server may have ended in the second of its last response.
        let ended_in_it = seconds[last].failed > 0;
        is_gone.then_some(last + 1 + usize::from(!ended_in_it))
    }

    fn add_wrong_lengths(&mut self, more: WrongLengths) {
        self.wrong_lengths = Some(self.wrong_lengths.map_or(more, |known| known.and(more)));
    }

    /// The time of all requests within the window, including those that were due before it or ended
    /// after it: mean requests in flight x window. With kernel stamps it doesn't include the wait
    /// of responses to be read; nor does it include failures that never ended.
    pub fn time_in_flight(&self) -> Nanos {
        let due_in_it = self.response_time.sum().saturating_add(self.failed_response_time.sum());
        due_in_it.saturating_add(self.carried_in).saturating_sub(self.carried_out)
    }

    /// The measured requests that became due, with any outcome.
    pub fn due(&self) -> u64 {
        self.counts.total() + self.unfinished.total()
    }

    /// All requests of the run, including unmeasured ones: the most that the server can have seen.
    pub fn all_requests(&self) -> u64 {
        self.due() + self.unmeasured.total()
    }

    /// All requests that were sent, including unmeasured ones.
    pub fn all_sent(&self) -> u64 {
        self.counts.attempted() + self.unmeasured.attempted() + self.unfinished.in_flight
    }

    /// All complete responses of the run, including unmeasured ones.
    pub fn all_responses(&self) -> u64 {
        self.counts.answered() + self.unmeasured.answered()
    }

    /// Records that the server closed a connection with this many responses, as the last of them
    /// announced.
    #[cold]
    pub fn record_announced_closing(&mut self, answers: u64) {
        self.add_announced_closings(ConnectionClosings::one(answers));
    }

    fn add_announced_closings(&mut self, more: ConnectionClosings) {
        self.announced_closings =
            Some(self.announced_closings.map_or(more, |known| known.and(more)));
    }

    fn merge_times(&mut self, other: &Tally) {
        self.response_time.merge(&other.response_time);
        self.service_time.merge(&other.service_time);
        self.send_lag.merge(&other.send_lag);
        self.generator_lag.merge(&other.generator_lag);
        self.read_lag.merge(&other.read_lag);
        self.failed_response_time.merge(&other.failed_response_time);
    }

    /// Adds another lane's tally of the same run.
    ///
    /// # Panics
    /// If the two are not from the same run: different windows or numbers of connections.
    pub fn merge(&mut self, other: &Tally) {
        assert_eq!(self.window, other.window, "tallies of two runs");
        assert_eq!(self.per_connection.len(), other.per_connection.len(), "tallies of two runs");
        self.counts.merge(&other.counts);
        self.unmeasured.merge(&other.unmeasured);
        self.unfinished.merge(&other.unfinished);
        self.merge_classes(&other.classes);
        self.bad_responses.merge(&other.bad_responses);
        if let Some(more) = other.wrong_lengths {
            self.add_wrong_lengths(more);
        }
        self.broken.merge(&other.broken);
        self.redirect = match (&self.redirect, &other.redirect) {
            (Some(ours), Some(theirs)) => Some(ours.and(theirs)),
            (ours, theirs) => ours.as_ref().or(theirs.as_ref()).cloned(),
        };
        if let Some(more) = other.announced_closings {
            self.add_announced_closings(more);
        }
        let names = self.server_name.iter().chain(&other.server_name);
        self.server_name = names.min().cloned();
        self.merge_times(other);
        self.completed_in_window += other.completed_in_window;
        self.sent_in_window += other.sent_in_window;
        self.longest_unmeasured_connect =
            self.longest_unmeasured_connect.max(other.longest_unmeasured_connect);
        self.carried_in = self.carried_in.saturating_add(other.carried_in);
        self.carried_out = self.carried_out.saturating_add(other.carried_out);
        self.queued.merge(&other.queued);
        self.phases.merge(&other.phases);
        if let Some(theirs) = &other.queue_times {
            self.queue_times.get_or_insert_default().merge(theirs);
        }
        self.slowest.merge(&other.slowest);
        self.turns.merge(&other.turns);
        for (mine, theirs) in self.per_connection.iter_mut().zip(&other.per_connection) {
            *mine += theirs;
        }
        for (worker, theirs) in &other.per_worker {
            let mine = self.per_worker.entry(worker.clone()).or_default();
            mine.measured += theirs.measured;
            mine.all += theirs.all;
        }
        if self.retries.len() < other.retries.len() {
            self.retries.resize(other.retries.len(), 0);
        }
        for (mine, theirs) in self.retries.iter_mut().zip(&other.retries) {
            *mine += theirs;
        }
        self.received_bytes += other.received_bytes;
        self.body_bytes += other.body_bytes;
        self.sent_bytes += other.sent_bytes;
        self.connections_opened += other.connections_opened;
        self.exhausted += other.exhausted;
        self.closed_by_server += other.closed_by_server;
        self.closed_for_unasked += other.closed_for_unasked;
        self.network.merge(&other.network);
        self.last_ended = self.last_ended.max(other.last_ended);
        self.series.merge(&other.series);
    }
}

/// Counts the unfinished requests as failed.
fn fail(unfinished: &mut UnfinishedRequests, counts: &mut Counts) {
    let UnfinishedRequests { in_flight, not_sent, .. } = std::mem::take(unfinished);
    counts.add(Outcome::InFlight, in_flight);
    counts.add(Outcome::NotSent, not_sent);
}

const SECOND: u64 = 1_000_000_000;
/// Longer runs allocate while they run: a replayed log may last for years.
const MOST_SECONDS_IN_ADVANCE: u64 = 86_400;

/// One second: the requests that ended in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Good responses.
    pub completed: u64,
    /// Everything else that ended.
    pub failed: u64,
    /// Sum of the good responses' response times, in ns.
    pub response_time_sum_ns: u64,
    /// The longest response time of the good responses, in ns.
    pub response_time_max_ns: u64,
}

/// The seconds of a run, from the start of its measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Series {
    /// By whole seconds since the window's start.
    pub seconds: Vec<Second>,
}

impl Series {
    /// Room for `span` without allocating later, or for a day of it.
    pub(crate) fn with_span(span: Nanos) -> Series {
        let seconds = (span.0 / SECOND).min(MOST_SECONDS_IN_ADVANCE);
        Series { seconds: Vec::with_capacity(seconds as usize + 2) }
    }

    /// Counts a request in the second of its end, `ended` after the start of the window.
    #[inline]
    pub fn record(&mut self, ended: Nanos, response_time: Nanos, good: bool) {
        let second = (ended.0 / SECOND) as usize;
        let second = match self.seconds.get_mut(second) {
            Some(second) => second,
            None => self.grow(second),
        };
        if good {
            let response_time = response_time.0;
            second.completed += 1;
            second.response_time_sum_ns += response_time;
            // Rarely true, so a branch is cheaper than a store each time.
            if response_time > second.response_time_max_ns {
                second.response_time_max_ns = response_time;
            }
        } else {
            second.failed += 1;
        }
    }

    /// Extends the series up to this second and returns it.
    #[cold]
    fn grow(&mut self, second: usize) -> &mut Second {
        self.seconds.resize(second + 1, Second::default());
        &mut self.seconds[second]
    }

    /// Whether the longest response time kept rising in the first `length`: longer in its second
    /// third than in the first, and longest in the last. `false` for less than three seconds.
    pub(crate) fn lengthens(&self, length: Nanos) -> bool {
        let seconds = ((length.as_secs_f64() + 0.5) as usize).min(self.seconds.len());
        if seconds < 3 {
            return false;
        }
        let longest = |third: usize| {
            let part = &self.seconds[third * seconds / 3..(third + 1) * seconds / 3];
            part.iter().map(|second| second.response_time_max_ns).max().unwrap_or(0) as f64
        };
        let [first, second, third] = [0, 1, 2].map(longest);
        // On a straight line through 0 they are as 1 to 2 to 3.
        first > 0.0 && second >= 1.5 * first && third >= 1.2 * second
    }

    /// Adds another lane's seconds.
    pub fn merge(&mut self, other: &Series) {
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), Second::default());
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            mine.completed += theirs.completed;
            mine.failed += theirs.failed;
            mine.response_time_sum_ns += theirs.response_time_sum_ns;
            mine.response_time_max_ns = mine.response_time_max_ns.max(theirs.response_time_max_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::tests::any_outcome;
    use crate::test_fixtures::exchange;
    use proptest::prelude::*;
    use strum::VariantArray as _;

    const CONNECTIONS: usize = 4;
    const WINDOW: Window = Window { from: Nanos(1_000_000_000), until: Nanos(3_000_000_000) };

    fn any_exchange() -> impl Strategy<Value = (Exchange, usize)> {
        let times = (0u64..3_000_000_000, 0u64..10_000_000, 0u64..2_000_000_000);
        (times, any_outcome(), 0..CONNECTIONS).prop_map(
            |((due, lag, service), outcome, connection)| {
                let sent = Nanos(due + lag);
                let ended = sent + Nanos(service);
                (Exchange { due: Nanos(due), sent, ended, received_bytes: 0, outcome }, connection)
            },
        )
    }

    fn tally(exchanges: &[(Exchange, usize)]) -> Tally {
        let mut tally = Tally::new(WINDOW, CONNECTIONS);
        for (exchange, connection) in exchanges {
            tally.record(exchange, *connection);
            if tally.measures(exchange.due) {
                match exchange.outcome {
                    Outcome::BadResponse => {
                        tally.record_reason(BadResponse::VARIANTS[*connection], 1);
                    }
                    Outcome::WrongLength => tally.record_wrong_length(100, exchange.ended.0),
                    _ => {}
                }
            }
        }
        tally
    }

    fn merged(mut a: Tally, b: &Tally) -> Tally {
        a.merge(b);
        a
    }

    #[test]
    fn a_schedule_of_any_length_allocates_little() {
        let mut series = Series::with_span(Nanos::MAX);
        assert!(series.seconds.capacity() < 100_000);
        series.record(Nanos::from_secs(100_000), Nanos(1), true);
        assert_eq!(series.seconds.len(), 100_001, "it grows");
    }

    proptest! {
        #[test]
        fn merged_lanes_equal_one_lane(all in prop::collection::vec(any_exchange(), 0..120), cut in 0usize..120, cut2 in 0usize..120) {
            let low = cut.min(cut2).min(all.len());
            let high = cut.max(cut2).min(all.len());
            let a = tally(&all[..low]);
            let b = tally(&all[low..high]);
            let c = tally(&all[high..]);
            let whole = tally(&all);
            prop_assert_eq!(&merged(merged(a.clone(), &b), &c), &whole);
            prop_assert_eq!(&merged(c.clone(), &merged(b.clone(), &a)), &whole);
            prop_assert_eq!(whole.all_requests(), all.len() as u64);
            prop_assert_eq!(whole.bad_responses.total(), whole.counts.of(Outcome::BadResponse));
            prop_assert_eq!(whole.wrong_lengths.is_some(), whole.counts.of(Outcome::WrongLength) > 0);
        }

        #[test]
        fn a_tally_survives_its_file(all in prop::collection::vec(any_exchange(), 0..40)) {
            let tally = tally(&all);
            let text = serde_json::to_string(&tally).unwrap();
            prop_assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), tally);
        }
    }

    #[test]
    fn a_slow_response_stays_in_the_distribution_and_bad_ones_have_their_own() {
        let tally = tally(&[(exchange(2000, 2000, 9000), 0)]);
        assert_eq!(tally.response_time.max(), Some(Nanos::from_secs(7)));
        assert_eq!(
            (tally.completed_in_window, tally.counts.good()),
            (0, 1),
            "it ends after the window"
        );
        let answer = |status, ms: u64| Exchange {
            outcome: Outcome::Answered(status),
            ..exchange(1000, 1000, 1000 + ms)
        };
        let tally = self::tally(&[(answer(200, 1000), 0), (answer(503, 5), 1)]);
        assert_eq!(tally.response_time.min(), Some(Nanos::from_secs(1)));
        assert_eq!(tally.failed_response_time.max(), Some(Nanos::from_millis(5)));
    }
}
