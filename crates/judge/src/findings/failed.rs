//! Requests failed.

use model::{Counts, Nanos, Run, SweepStudy, counts};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::words::{listed, share};
use model::number;

/// Requests failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    /// Which runs; empty if there is only one.
    pub runs: Vec<String>,
    /// How many requests failed, in all of these runs.
    pub failed: u64,
    /// How many requests there were.
    pub planned: u64,
    /// How many of each kind, the most frequent first.
    pub kinds: Vec<FailureCount>,
    /// The timeout of a request.
    #[serde(rename = "timeout_ns")]
    pub timeout: Nanos,
}

/// How many requests failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// The outcome, by its [name](model::counts::name).
    pub outcome: String,
    /// How many.
    pub requests: u64,
    /// What else is known about them, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Sums up all runs of a sweep.
pub(super) fn of_sweep(study: &SweepStudy) -> Option<Finding> {
    let runs: Vec<&Run> = study.runs.iter().filter(|run| run.tally.counts.failed() > 0).collect();
    let is_one = study.runs.len() == 1;
    let names = runs.iter().filter(|_| !is_one).map(|run| run.in_multiples()).collect();
    of(names, &runs, study.plan.stream.timeout)
}

/// Sums up these runs.
pub(super) fn of(runs: Vec<String>, failed: &[&Run], timeout: Nanos) -> Option<Finding> {
    let mut sum = Counts::default();
    for run in failed {
        sum.merge(&run.tally.counts);
    }
    let bad = sum.iter().filter(|(outcome, _)| !outcome.is_good());
    let mut kinds: Vec<FailureCount> = bad
        .map(|(outcome, requests)| FailureCount {
            outcome: counts::name(outcome),
            requests,
            // The reason of the first run that has one.
            reason: failed.iter().find_map(|run| run.tally.brief_reason(outcome)),
        })
        .collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.requests));
    (sum.failed() > 0)
        .then(|| Failed { runs, failed: sum.failed(), planned: sum.total(), kinds, timeout }.into())
}

pub(crate) fn failure(kind: &FailureCount, timeout: Nanos) -> String {
    let n = kind.requests;
    let plural = if n == 1 { "" } else { "s" };
    let what = match kind.outcome.as_str() {
        "timed_out" => format!("{n} timeout{plural} after {}", number::span(timeout)),
        "connect_timed_out" => format!("{n} connect timeout{plural}"),
        "reset" => format!("{n} connection{plural} reset"),
        "connect_refused" => format!("{n} connection{plural} refused"),
        "closed_early" => format!("{n} connection{plural} closed early"),
        "bad_response" => format!("{n} bad response{plural}"),
        "in_flight_at_end" => format!("{n} still in flight at the end"),
        status if status.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{n} answered with status {status}")
        }
        other => format!("{n} {}", other.replace('_', " ")),
    };
    match &kind.reason {
        Some(reason) => format!("{what} ({reason})"),
        None => what,
    }
}

impl Failed {
    pub(super) fn sentence(&self) -> String {
        let Failed { runs, failed, planned, kinds, timeout } = self;

        let at = if runs.is_empty() { String::new() } else { format!(" at {}", listed(runs)) };
        let share = share(*failed as f64 / (*planned).max(1) as f64);
        let kinds = kinds.iter().map(|kind| failure(kind, *timeout)).collect::<Vec<_>>();
        format!("{share} of the requests failed{at} ({failed} of {planned}): {}.", listed(&kinds))
    }
}
