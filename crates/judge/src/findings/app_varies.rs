//! The app takes many times longer for some requests than for most, even when none waits for
//! another.

use model::{Histogram, TwoGroups};
use serde::{Deserialize, Serialize};

use super::{Finding, requests_of, two_groups_of};
use crate::sweep_points::SweepPoint;
use crate::words::count_of;

/// The app takes many times longer for some requests than for most, even when none waits for
/// another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppVaries {
    /// Connections of the run in which no request waits.
    pub connections: u32,
    /// The class of the requests that were compared, where they are told apart; absent in older
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The fast and the slow requests there.
    pub groups: TwoGroups,
}

/// Judges the highest load at which no request waits, by `times`: its response times, those of one
/// class where there are several.
pub(super) fn of(
    alone: &SweepPoint<'_>,
    times: &Histogram,
    class: Option<&str>,
) -> Option<Finding> {
    let groups = times.two_groups()?;
    let connections = alone.run.connections;
    Some(AppVaries { connections, class: class.map(str::to_owned), groups }.into())
}

impl AppVaries {
    pub(super) fn sentence(&self) -> String {
        let AppVaries { connections, class, groups } = self;

        let n = count_of(*connections, "connection");
        let groups = two_groups_of(groups, &requests_of(class.as_deref()));
        format!("The app itself varies: even at {n}, where no request waits for another, {groups}.")
    }
}
