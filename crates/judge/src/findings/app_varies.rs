//! The app takes many times longer for some requests than for most, even when none waits for
//! another.

use model::TwoGroups;
use serde::{Deserialize, Serialize};

use super::{Finding, two_groups};
use crate::sweep_points::SweepPoint;
use crate::words::count_of;

/// The app takes many times longer for some requests than for most, even when none waits for
/// another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppVaries {
    /// Connections of the run in which no request waits.
    pub connections: u32,
    /// The fast and the slow requests there.
    pub groups: TwoGroups,
}

/// Judges the highest load at which no request waits.
pub(super) fn of(alone: &SweepPoint<'_>) -> Option<Finding> {
    let groups = alone.run.tally.response_time.two_groups()?;
    Some(AppVaries { connections: alone.run.connections, groups }.into())
}

impl AppVaries {
    pub(super) fn sentence(&self) -> String {
        let AppVaries { connections, groups } = self;

        let n = count_of(*connections, "connection");
        let groups = two_groups(groups);
        format!("The app itself varies: even at {n}, where no request waits for another, {groups}.")
    }
}
