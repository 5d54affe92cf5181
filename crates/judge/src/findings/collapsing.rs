//! The server completes less at the highest load than at a lower one.

use model::CpuUsage;
use serde::{Deserialize, Serialize};

use super::{Finding, rates_unclear};
use crate::server_limit::COLLAPSE;
use crate::sweep_points::{self, SweepPoint};
use crate::words::{count_of, rate_in_words, tenths};

/// The server completes less at the highest load than at a lower one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collapsing {
    /// Connections at the best rate.
    pub best_connections: u32,
    /// That rate, in requests per second.
    pub best_per_s: f64,
    /// The most connections that were tried.
    pub connections: u32,
    /// The rate there, in requests per second.
    pub rate_per_s: f64,
    /// How many more CPUs other processes used there; if set, they may be the reason why the server
    /// completes less.
    pub more_cpus_of_others: Option<f64>,
}

/// Other processes disturb a comparison of two loads if their share of the CPUs differs by this
/// much.
const DISTURBED: f64 = 0.10;

/// Holds if throughput at the highest load is lower by [`COLLAPSE`] and by more than chance
/// explains. `variation`: coefficient of variation of the service times.
pub(super) fn of(points: &[SweepPoint<'_>], variation: f64) -> Option<Finding> {
    let last = points.last()?;
    let best = sweep_points::best(points)?;
    if last.rate >= (1.0 - COLLAPSE) * best.rate {
        return None;
    }
    // With all connections in one worker the threads of another are idle, which is chance: the next
    // run may be dealt otherwise.
    if last.run.has_idle_worker() {
        return None;
    }
    if 1.0 - last.rate / best.rate <= rates_unclear::error_between(best, last, variation) {
        return rates_unclear::of(points, variation);
    }
    let [at_best, at_last] = [best, last].map(|point| CpuUsage::of(&point.run.generator));
    let more_cpus_of_others = at_best.zip(at_last).and_then(|(best, last)| {
        let more = last.others? - best.others?;
        (more > DISTURBED * last.of).then_some(more)
    });
    Some(
        Collapsing {
            best_connections: best.run.connections,
            best_per_s: best.rate,
            connections: last.run.connections,
            rate_per_s: last.rate,
            more_cpus_of_others,
        }
        .into(),
    )
}

impl Collapsing {
    pub(super) fn sentence(&self) -> String {
        let Collapsing {
            best_connections,
            best_per_s,
            connections,
            rate_per_s,
            more_cpus_of_others,
        } = self;

        let [best, rate] = [*best_per_s, *rate_per_s].map(rate_in_words);
        let rates = format!(
            "{best} requests/s at {}, {rate} at {connections}",
            count_of(*best_connections, "connection")
        );
        match more_cpus_of_others.map(tenths) {
            None => format!("Throughput falls under load: {rates}."),
            Some(more) => format!(
                "Throughput falls: {rates}. But other processes used {more} more CPUs at {connections}, so this does not show that the server does less."
            ),
        }
    }
}
