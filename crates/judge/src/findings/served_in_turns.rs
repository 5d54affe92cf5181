//! The server serves one connection several times before it takes the next.

use model::{Diagnostic, Run, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::words::{count_of, counted, tenths};

/// The server serves one connection several times before it takes the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServedInTurns {
    /// Responses in a row for one connection, in the run with the fewest.
    pub least: f64,
    /// The same, in the run with the most.
    pub most: f64,
    /// Whether turns have several lengths, so that these are means.
    #[serde(default)]
    pub varies: bool,
    /// Connections that wait meanwhile, at the highest load at which this was seen.
    pub waiting: u32,
    /// Connections of that load.
    #[serde(default)]
    pub connections: u32,
    /// Whether the server is a Puma before version 7.
    pub is_old_puma: bool,
}

/// Sums up the runs in which it was seen, one that was cut short, too: turns are counted.
pub(super) fn of(study: &SweepStudy) -> Option<Finding> {
    let mut runs: Vec<&Run> = study.runs.iter().filter(|run| run.is_evidence()).collect();
    runs.sort_by_key(|run| run.connections);
    let mut seen: Option<ServedInTurns> = None;
    let warnings = runs.iter().flat_map(|run| run.warnings.iter().map(|it| (run.connections, it)));
    for (connections, warning) in warnings {
        let Diagnostic::ServedInTurns { answers_a_turn: here, varies, waiting } = *warning else {
            continue;
        };
        let before = seen.take();
        seen = Some(ServedInTurns {
            least: before.as_ref().map_or(here, |before| before.least.min(here)),
            most: before.as_ref().map_or(here, |before| before.most.max(here)),
            varies: varies || before.is_some_and(|before| before.varies),
            waiting,
            connections,
            is_old_puma: is_old_puma(study),
        });
    }
    seen.map(Finding::from)
}

pub(super) fn is_old_puma(study: &SweepStudy) -> bool {
    study.server.puma_major().is_some_and(|major| major < 7)
}

impl ServedInTurns {
    pub(super) fn sentence(&self) -> String {
        let [least, most] = [self.least, self.most].map(tenths);
        let n = if least == most { most } else { format!("{least} to {most}") };
        let on_average = if self.varies { " on average" } else { "" };
        let who = if self.is_old_puma { "Puma before 7" } else { "The server" };
        let wait = if self.waiting == 1 { "waits" } else { "wait" };
        let at = count_of(self.connections, "connection");
        let waiting = counted(self.waiting, "other");
        format!(
            "{who} serves a connection several times before it takes the next ({n} \
             responses in a row{on_average}); at {at} {waiting} {wait}."
        )
    }
}
