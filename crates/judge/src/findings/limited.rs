//! What limits the server.

use model::{Limit, Run};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::limits;
use crate::sweep_points::SweepPoint;

/// What limits the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limited {
    /// The limit, with its evidence.
    pub limit: Limit,
    /// How many requests the server can process at a time; `None` if that is unknown.
    pub slots: Option<u32>,
    /// Runs with this limit.
    pub runs: u32,
}

/// The limit at the highest load that has one.
pub(super) fn of_sweep(points: &[SweepPoint<'_>], slots: u32) -> Option<Finding> {
    let limit = points.iter().rev().find_map(|point| point.limit())?;
    let alike = |point: &&SweepPoint<'_>| {
        point.limit().is_some_and(|other| limits::name(other) == limits::name(limit))
    };
    let runs = points.iter().filter(alike).count() as u32;
    of(limit, Some(slots), runs)
}

/// The limit of a load.
pub(super) fn of_load(run: &Run) -> Option<Finding> {
    of(run.limit()?, None, 1)
}

/// If the limit is unknown and nothing could be read about the server, there is nothing to say.
fn of(limit: &Limit, slots: Option<u32>, runs: u32) -> Option<Finding> {
    let says_something = !matches!(limit, Limit::NotKnown { cpu: None, at_once: None, .. });
    says_something.then(|| Limited { limit: limit.clone(), slots, runs }.into())
}

impl Limited {
    pub(super) fn sentence(&self) -> String {
        let Limited { limit, slots, .. } = self;
        limits::sentence(limit, *slots)
    }
}
