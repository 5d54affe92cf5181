//! The one word about a claim.

use serde::{Deserialize, Serialize};

use crate::check::{Check, Finding, Outcome};

/// Whether a claim can be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Verdict {
    /// Its figures agree with each other, as far as they could be held against each other.
    Possible,
    /// It can be, but is not what a reader takes it for.
    Doubtful {
        /// By these checks.
        by: Vec<Check>,
    },
    /// No run can have had these figures.
    Impossible {
        /// By these checks.
        by: Vec<Check>,
    },
    /// Nothing could be checked.
    Unchecked,
}

impl Verdict {
    /// What the findings amount to: one failed check is enough.
    pub fn of(findings: &[Finding]) -> Verdict {
        let those = |wanted: fn(&Outcome) -> bool| -> Vec<Check> {
            findings.iter().filter(|finding| wanted(&finding.outcome)).map(|finding| finding.check).collect()
        };
        let failed = those(|outcome| matches!(outcome, Outcome::Fails { .. }));
        let doubted = those(|outcome| matches!(outcome, Outcome::Doubtful { .. }));
        if !failed.is_empty() {
            Verdict::Impossible { by: failed }
        } else if !doubted.is_empty() {
            Verdict::Doubtful { by: doubted }
        } else if findings.iter().all(|finding| matches!(finding.outcome, Outcome::Unchecked { .. })) {
            Verdict::Unchecked
        } else {
            Verdict::Possible
        }
    }
}
