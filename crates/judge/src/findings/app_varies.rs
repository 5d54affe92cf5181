//! Some requests take the app many times longer than most, also where none waits for another.

use model::TwoGroups;
use serde::{Deserialize, Serialize};

use super::{Finding, two_groups};
use crate::sweep_points::SweepPoint;
use crate::words::count_of;

/// Some requests take the app many times longer than most, also where none waits for another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppVaries {
    /// Connections of the run in which none waits.
    pub connections: u32,
    /// The two kinds of requests there.
    pub groups: TwoGroups,
}

/// Of the highest load at which nobody waits.
pub(super) fn of(alone: &SweepPoint<'_>) -> Option<Finding> {
    let groups = alone.run.tally.response_time.two_groups()?;
    Some(AppVaries { connections: alone.run.connections, groups }.into())
}

impl AppVaries {
    pub(super) fn sentence(&self) -> String {
        let AppVaries { connections, groups } = self;

        let (n, groups) = (count_of(*connections, "connection"), two_groups(groups));
        format!("The app itself varies: also at {n}, where no request waits for another, {groups}.")
    }
}
