//! What a check came to, with the numbers that prove it.

use serde::{Deserialize, Serialize};

use super::{Check, Evidence};

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Outcome {
    /// The figures agree.
    Holds {
        /// The numbers.
        evidence: Evidence,
    },
    /// No judgement of its own, but the reason of another's.
    Explains {
        /// The numbers.
        evidence: Evidence,
    },
    /// It can be so, and is not what a reader takes it for.
    Doubtful {
        /// The numbers.
        evidence: Evidence,
    },
    /// It cannot be so, whatever rounding did.
    Fails {
        /// The numbers.
        evidence: Evidence,
    },
    /// A figure is missing.
    Unchecked {
        /// Which, or why else.
        why: String,
    },
}

/// A check with what it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which.
    pub check: Check,
    /// And what.
    pub outcome: Outcome,
}

impl Finding {
    pub(super) fn unchecked(check: Check, why: &str) -> Finding {
        Finding { check, outcome: Outcome::Unchecked { why: why.to_owned() } }
    }

    pub(crate) fn holds(check: Check, evidence: Evidence) -> Finding {
        Finding { check, outcome: Outcome::Holds { evidence } }
    }

    pub(super) fn explains(check: Check, evidence: Evidence) -> Finding {
        Finding { check, outcome: Outcome::Explains { evidence } }
    }

    pub(crate) fn doubtful(check: Check, evidence: Evidence) -> Finding {
        Finding { check, outcome: Outcome::Doubtful { evidence } }
    }

    pub(crate) fn fails(check: Check, evidence: Evidence) -> Finding {
        Finding { check, outcome: Outcome::Fails { evidence } }
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Fails { .. })
    }
}
