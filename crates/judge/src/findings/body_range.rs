//! Bodies: which are served at the lowest rate, and which at the highest.

use model::{BodiesStudy, BodyRun};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::words::rate_in_words;

/// Bodies: which are served at the lowest rate, and which at the highest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodyRange {
    /// Socket and body of the lowest rate.
    pub slowest: String,
    /// That rate, in requests per second.
    pub slowest_per_s: f64,
    /// Socket and body of the highest rate.
    pub fastest: String,
    /// That rate, in requests per second.
    pub fastest_per_s: f64,
}

/// Compares the slowest body with the fastest.
pub(super) fn of(study: &BodiesStudy) -> Option<Finding> {
    let runs: Vec<&BodyRun> =
        study.sorted().into_iter().filter(|row| row.run.is_evidence()).collect();
    let by_rate =
        |a: &&&BodyRun, b: &&&BodyRun| a.run.completed_rate().total_cmp(&b.run.completed_rate());
    let slowest = runs.iter().min_by(by_rate)?;
    let fastest = runs.iter().max_by(by_rate)?;
    let name = |row: &BodyRun| format!("{} {}", row.socket, row.body);
    (runs.len() > 1).then(|| {
        BodyRange {
            slowest: name(slowest),
            slowest_per_s: slowest.run.completed_rate(),
            fastest: name(fastest),
            fastest_per_s: fastest.run.completed_rate(),
        }
        .into()
    })
}

impl BodyRange {
    pub(super) fn sentence(&self) -> String {
        let BodyRange { slowest, slowest_per_s, fastest, fastest_per_s } = self;

        let [low, high] = [*slowest_per_s, *fastest_per_s].map(rate_in_words);
        format!("Throughput ranges from {low} requests/s ({slowest}) to {high} ({fastest}).")
    }
}
