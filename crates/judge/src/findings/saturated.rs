//! From this load on, more connections bring no more throughput.

use model::{Limit, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::limits;
use crate::sweep_points::{self, SweepPoint};
use crate::words::{count_of, rate_in_words};

/// From this load on, more connections bring no more throughput.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saturated {
    /// The fewest connections tried at which the server is saturated.
    pub connections: u32,
    /// Whether that was the lowest load of those whose runs can be judged.
    pub is_lowest: bool,
    /// A lower load was tried, and its run says nothing of the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_above_unjudged: bool,
    /// Whether that was the only load tried.
    pub is_only: bool,
    /// Throughput, in requests per second.
    pub rate_per_s: f64,
    /// The CPUs are shared with the generator; on CPUs of its own the server would do more.
    pub on_shared_cpus: bool,
    /// What limits it, such as `its threads are the limit`, if that is known. Its evidence
    /// is in the reason about it ([`super::Limited`]).
    #[serde(skip)]
    pub limit: Option<String>,
}

/// A run this many times faster than the best valid run shows that the server can do more.
const REFUTED: f64 = 1.05;

/// Holds if more connections bring no more throughput, or a limit is known at the best throughput.
/// A faster run that the generator limited refutes it: the server does at least as much.
pub(super) fn of(study: &SweepStudy, points: &[SweepPoint<'_>]) -> Option<Finding> {
    let first = points.first()?;
    let last = points.last()?;
    let best = sweep_points::best(points)?;
    let shown = sweep_points::saturation(points);
    let known = sweep_points::known_limit(points).and_then(|_| sweep_points::reached(points));
    let reached = shown.or(known)?;
    // The highest load alone does not show that more connections bring no more.
    let is_highest = reached.run.connections == last.run.connections && points.len() > 1;
    if is_highest && shown.is_none() {
        return None;
    }
    if study.runs.iter().any(|run| run.completed_rate() > REFUTED * best.rate) {
        return None;
    }
    Some(
        Saturated {
            connections: reached.run.connections,
            is_lowest: reached.run.connections == first.run.connections,
            is_above_unjudged: study.runs.iter().any(|run| run.connections < first.run.connections),
            is_only: points.len() == 1,
            rate_per_s: best.rate,
            on_shared_cpus: matches!(last.limit(), Some(Limit::SharedCpus(_))),
            // The same limit as the reason says (`limited`).
            limit: points.iter().rev().find_map(|point| point.limit()).and_then(limits::clause),
        }
        .into(),
    )
}

impl Saturated {
    pub(super) fn sentence(&self) -> String {
        let Saturated { connections, rate_per_s, on_shared_cpus, limit, .. } = self;

        let rate = rate_in_words(*rate_per_s);
        let n = count_of(*connections, "connection");
        let from = if self.is_only {
            format!("at {n}")
        } else if self.is_lowest && self.is_above_unjudged {
            format!("from {n} on, the lowest load whose run can be judged")
        } else {
            format!("from {n} on")
        };
        let most = format!("The server does {rate} requests/s at most");
        match limit {
            _ if *on_shared_cpus => {
                format!("{most} on shared CPUs, {from}; on CPUs of its own it would do more.")
            }
            Some(limit) => format!("{most}: {limit}, {from}."),
            None => format!("{most}, {from}."),
        }
    }
}
