//! What limits the server.

use model::{CpuUsage, Limit, LoadPlan, Pace, Run};
use serde::{Deserialize, Serialize};

use super::{Finding, wait_in_accept_queue};
use crate::limits;
use crate::sweep_points::SweepPoint;
use crate::words::count_of;

/// What limits the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limited {
    /// The limit, with its evidence.
    pub limit: Limit,
    /// How many requests the server can process at a time; `None` if that is unknown.
    pub slots: Option<u32>,
    /// Runs with this limit.
    pub runs: u32,
    /// How many connections there were, if they may be too few to fill the server; `None` if they
    /// are not, or that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub few_connections: Option<u32>,
}

/// CPUs count as unused below this share of them.
const UNUSED: f64 = 0.5;

/// The limit at the highest load that has one.
pub(super) fn of_sweep(points: &[SweepPoint<'_>], slots: u32) -> Option<Finding> {
    let limit = points.iter().rev().find_map(|point| point.limit())?;
    let alike = |point: &&SweepPoint<'_>| {
        point.limit().is_some_and(|other| limits::name(other) == limits::name(limit))
    };
    let runs = points.iter().filter(alike).count() as u32;
    of(limit, Some(slots), runs, None)
}

/// The limit of a load.
pub(super) fn of_load(run: &Run, plan: &LoadPlan) -> Option<Finding> {
    let limit = run.limit()?;
    let is_closed = plan.load.pace == Pace::Closed;
    let may_be_few =
        is_closed && are_cpus_free(limit) && wait_in_accept_queue::of_run(run).is_none();
    let threads = run.generator.server.as_ref().and_then(|server| server.threads);
    of(limit, threads, 1, may_be_few.then_some(run.connections))
}

/// Whether nothing is known to limit the server, and most of its CPUs are free.
fn are_cpus_free(limit: &Limit) -> bool {
    let Limit::NotKnown { cpu: Some(cpu), .. } = limit else { return false };
    let CpuUsage { server, generator, others, of, .. } = cpu;
    server + generator + others.unwrap_or(0.0) < UNUSED * of
}

/// If the limit is unknown and nothing could be read about the server, there is nothing to say.
fn of(
    limit: &Limit,
    slots: Option<u32>,
    runs: u32,
    few_connections: Option<u32>,
) -> Option<Finding> {
    let says_something = !matches!(limit, Limit::NotKnown { cpu: None, at_once: None, .. });
    says_something.then(|| Limited { limit: limit.clone(), slots, runs, few_connections }.into())
}

impl Limited {
    pub(super) fn sentence(&self) -> String {
        let Limited { limit, slots, few_connections, .. } = self;
        let sentence = limits::sentence(limit, *slots);
        match few_connections {
            Some(few) => format!(
                "{sentence} {} may be too few to fill it: -c {} does more if so.",
                count_of(*few, "connection"),
                few.saturating_mul(2)
            ),
            None => sentence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_cpus_and_an_unknown_limit_let_connections_be_too_few() {
        let sentence = |server: f64| {
            let cpu = CpuUsage { server, generator: 0.1, others: None, of: 2.0, by_quota: false };
            let limit = Limit::NotKnown { cpu: Some(cpu), at_once: None, busy: None };
            let few_connections = are_cpus_free(&limit).then_some(10);
            Limited { limit, slots: None, runs: 1, few_connections }.sentence()
        };
        let ends = "10 connections may be too few to fill it: -c 20 does more if so.";
        assert!(sentence(0.1).ends_with(ends), "{}", sentence(0.1));
        assert!(!sentence(1.0).contains("too few"), "{}", sentence(1.0));
    }
}
