//! What an event in the middle of a run cost: how long it took, what failed, how much longer
//! requests took and for how long.

use model::event_requests::FailuresOfKind;
use model::{EventRequests, Nanos, Run, number};
use serde::{Deserialize, Serialize};

use super::failed::{FailureCount, failure};
use crate::event::{ServerChange, server_change};
use crate::words::{brief, counted, listed};

/// A gap between two responses is worth a sentence if it is so long, and so many times the longest
/// before.
const NOTABLE_GAP: Nanos = Nanos::from_millis(200);
const TIMES_BEFORE: u64 = 3;

/// What an event cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventCost {
    /// What was asked for.
    pub event: String,
    /// When it was done, since the begin of the measured window; `None` if it was not.
    #[serde(rename = "at_ns")]
    pub at: Option<Nanos>,
    /// What was done, or why it could not be.
    pub done: String,
    /// What became of the server's processes.
    pub change: ServerChange,
    /// Until the last process had settled, and the command had ended; `None` if nothing changed.
    #[serde(rename = "took_ns")]
    pub took: Option<Nanos>,
    /// The command's exit code.
    pub exit_code: Option<i32>,
    /// For how long no process served.
    #[serde(rename = "unserved_ns")]
    pub unserved: Nanos,
    /// Requests that were out at the event, or due from then until all was as before.
    pub requests: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How, the most frequent first.
    pub kinds: Vec<FailuresOfKind>,
    /// The 99th percentile of the response times before.
    #[serde(rename = "p99_before_ns")]
    pub p99_before: Option<Nanos>,
    /// The same from the event until all was as before.
    #[serde(rename = "p99_during_ns")]
    pub p99_during: Option<Nanos>,
    /// The longest response time then.
    #[serde(rename = "longest_ns")]
    pub longest: Option<Nanos>,
    /// For how long more requests failed or were slow than before.
    #[serde(rename = "disturbed_ns")]
    pub disturbed: Nanos,
    /// The same before the event, for comparison.
    #[serde(rename = "disturbed_before_ns")]
    pub disturbed_before: Nanos,
    /// Whether the run ended before all was as before.
    pub is_cut_off: bool,
    /// The longest time without a response, from the event on, and before.
    #[serde(rename = "gap_ns")]
    pub gap: Nanos,
    /// Before.
    #[serde(rename = "gap_before_ns")]
    pub gap_before: Nanos,
    /// Connections that the server closed from the event on; `None` if it is not known.
    pub closed: Option<u64>,
    /// Whether the response times are the server's, and not longtail's own delay.
    pub has_times: bool,
    /// The timeout of a request.
    #[serde(rename = "timeout_ns")]
    pub timeout: Nanos,
}

/// What the run's event cost; `None` if it has none.
pub(super) fn of(run: &Run, timeout: Nanos) -> Option<EventCost> {
    let record = run.event.as_ref()?;
    let requests = record.requests.as_ref();
    let during = requests.map(|requests| &requests.during);
    let p99 = |times: &model::Histogram| times.quantile(0.99);
    Some(EventCost {
        event: record.planned.kind.to_string(),
        at: record.at,
        done: record.done.clone(),
        change: server_change(record),
        took: record.took(),
        exit_code: record.command.as_ref().and_then(|command| command.exit_code),
        unserved: record.unserved(run.measured),
        requests: during.map_or(0, |part| part.requests),
        failed: during.map_or(0, |part| part.failed),
        kinds: during.map_or_else(Vec::new, |part| part.failures.clone()),
        p99_before: requests.and_then(|requests| p99(&requests.before.response_time)),
        p99_during: during.and_then(|part| p99(&part.response_time)),
        longest: during.and_then(|part| part.response_time.max()),
        disturbed: requests.map_or(Nanos::ZERO, |requests| requests.disturbed),
        disturbed_before: requests.map_or(Nanos::ZERO, |requests| requests.disturbed_before),
        is_cut_off: requests.is_some_and(|requests| requests.is_cut_off),
        gap: during.map_or(Nanos::ZERO, |part| part.longest_gap.length),
        gap_before: requests.map_or(Nanos::ZERO, EventRequests::gap_before),
        closed: record.closed_since,
        has_times: run.is_evidence(),
        timeout,
    })
}

impl EventCost {
    pub(super) fn sentence(&self) -> String {
        if self.at.is_none() {
            return format!("The event was not done ({}): {}.", self.event, self.done);
        }
        let parts = [
            Some(self.what_happened()),
            Some(self.what_failed()),
            Some(self.how_slow()),
            self.gap_in_words(),
            self.closed_in_words(),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// `The phased restart took 6.3 s: all 2 workers were replaced, one after the other.`
    fn what_happened(&self) -> String {
        let name = self.name();
        let change = self.change.in_words();
        let exit = match self.exit_code {
            Some(0) | None => String::new(),
            Some(code) => format!(" It ended with exit code {code}."),
        };
        let Some(took) = self.took else { return format!("{name} was done, and {change}.{exit}") };
        let took = brief(took);
        let unserved = if self.unserved > Nanos::ZERO {
            format!(", and for {} none served", brief(self.unserved))
        } else {
            String::new()
        };
        format!("{name} took {took}: {change}{unserved}.{exit}")
    }

    /// The event as the subject of a sentence.
    fn name(&self) -> String {
        match self.event.as_str() {
            "phased-restart" => "The phased restart".to_owned(),
            "restart" => "The restart".to_owned(),
            "refork" => "The refork".to_owned(),
            "worker-kill" => "The loss of a worker (SIGKILL)".to_owned(),
            "worker-term" => "The end of a worker (SIGTERM)".to_owned(),
            "stop-start" => "Stopping and starting it".to_owned(),
            "scale-up" => "Adding a worker".to_owned(),
            "scale-down" => "Removing a worker".to_owned(),
            other if other.contains(|c: char| c.is_whitespace() || c == '/') => {
                format!("`{other}`")
            }
            signal => format!("SIG{signal}"),
        }
    }

    fn what_failed(&self) -> String {
        let requests = counted(self.requests, "request");
        if self.failed == 0 {
            return format!("No request failed ({requests} meanwhile).");
        }
        let kinds: Vec<String> =
            self.kinds.iter().map(|kind| in_words(kind, self.timeout)).collect();
        format!("{} of the {requests} meanwhile failed: {}.", self.failed, listed(&kinds))
    }

    /// How much longer requests took, and for how long.
    fn how_slow(&self) -> String {
        if !self.has_times {
            return "How much longer requests took is not known, because longtail was late itself."
                .to_owned();
        }
        let (Some(before), Some(during)) = (self.p99_before, self.p99_during) else {
            return "How much longer requests took is not known: too few were answered.".to_owned();
        };
        let before = brief(before);
        if self.disturbed == Nanos::ZERO {
            return format!("Requests took no longer than before (p99 {before}).");
        }
        let end = if self.is_cut_off { ", and still when the run ended" } else { "" };
        format!(
            "For {} requests failed or took longer than before{end}: p99 {} (before {before}), the longest {}.",
            brief(self.disturbed),
            brief(during),
            brief(self.longest.unwrap_or(during))
        )
    }

    fn gap_in_words(&self) -> Option<String> {
        let is_notable =
            self.has_times && self.gap >= NOTABLE_GAP && self.gap > self.gap_before * TIMES_BEFORE;
        is_notable.then(|| {
            format!(
                "No response came for {} (before: {} at most).",
                brief(self.gap),
                brief(self.gap_before)
            )
        })
    }

    fn closed_in_words(&self) -> Option<String> {
        let closed = self.closed.filter(|closed| *closed > 0)?;
        Some(format!("The server closed {}.", counted(closed, "connection")))
    }
}

/// `12 connections refused (20.1 to 20.9 s)`
fn in_words(kind: &FailuresOfKind, timeout: Nanos) -> String {
    let count =
        FailureCount { outcome: kind.outcome.clone(), requests: kind.requests, reason: None };
    let first = number::fixed(kind.first.as_secs_f64(), 1);
    let last = number::fixed(kind.last.as_secs_f64(), 1);
    let times =
        if first == last { format!("at {first} s") } else { format!("{first} to {last} s") };
    format!("{} ({times})", failure(&count, timeout))
}
