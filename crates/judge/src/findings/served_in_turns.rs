//! The server serves one connection several times before it takes the next.

use model::{Diagnostic, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::{count_of, tenths};

/// The server serves one connection several times before it takes the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServedInTurns {
    /// Responses in a row for one connection: the least and the most of the runs.
    pub least: f64,
    /// As `least`.
    pub most: f64,
    /// Connections that wait meanwhile, at the highest load.
    pub waiting: u32,
    /// It is a Puma before version 7.
    pub is_old_puma: bool,
}

/// Of the runs in which it was seen.
pub(super) fn of(study: &SweepStudy, points: &[SweepPoint<'_>]) -> Option<Finding> {
    let seen = |point: &SweepPoint<'_>| {
        point.run.warnings.iter().find_map(|warning| match warning {
            Diagnostic::ServedInTurns { answers_a_turn, waiting } => {
                Some((*answers_a_turn, *waiting))
            }
            _ => None,
        })
    };
    let seen: Vec<(f64, u32)> = points.iter().filter_map(seen).collect();
    let waiting = seen.last()?.1;
    let (least, most) = seen
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), (n, _)| (least.min(*n), most.max(*n)));
    let major = study
        .server
        .version
        .as_ref()
        .and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let is_old_puma = study.server.name == "Puma" && major.is_some_and(|major| major < 7);
    Some(ServedInTurns { least, most, waiting, is_old_puma }.into())
}

impl ServedInTurns {
    pub(super) fn sentence(&self) -> String {
        let ServedInTurns { least, most, waiting, is_old_puma } = self;

        let [least, most] = [*least, *most].map(tenths);
        let n = if least == most { most } else { format!("{least} to {most}") };
        let who = if *is_old_puma { "Puma before 7" } else { "The server" };
        let waiting = count_of(*waiting, "other connection");
        format!(
            "{who} serves one keep-alive connection several times before it takes the next ({n} responses in a row); {waiting} wait meanwhile."
        )
    }
}
