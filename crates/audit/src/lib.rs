//! Is this published table even possible? Reads what load generators print, and holds their figures against each other:
//! Little's law, what percentiles force the mean to be, counts, bytes, and what each tool is known to do to its samples.
//!
//! Pure functions on text: nothing here opens a file, prints, or measures. A figure counts as printed, with the half
//! of its last digit that rounding may have moved it: a check fails only where no rounding can save it.
//!
//! [`audit`] is the whole of it: [`parse`] makes claims of the text, [`CHECKS`] make findings of a claim.

mod check;
pub mod claim;
mod figure;
mod number;
pub mod parse;
mod text;

use serde::Serialize;
use strum::IntoStaticStr;

pub use check::{AuditFinding, CHECKS, CheckOutcome, ClaimCheck, ClaimGrade};
pub use claim::{Claim, LoadTool};
pub use figure::{FigureRange, PrintedFigure};
pub use text::text;

/// A claim with all that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditedClaim {
    /// What was claimed.
    pub claim: Claim,
    /// Whether it can be.
    pub verdict: ClaimVerdict,
    /// What was checked, and what could not be.
    pub findings: Vec<AuditFinding>,
}

/// Whether a claim can be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(tag = "is", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ClaimVerdict {
    /// Its figures agree with each other, as far as they could be held against each other.
    Possible,
    /// It can be, but is not what a reader takes it for.
    Doubtful {
        /// By these checks.
        by: Vec<ClaimCheck>,
    },
    /// No run can have had these figures.
    Impossible {
        /// By these checks.
        by: Vec<ClaimCheck>,
    },
    /// Nothing could be checked.
    Unchecked,
}

impl ClaimVerdict {
    /// What the findings amount to: one failed check is enough.
    pub(crate) fn from_findings(findings: &[AuditFinding]) -> ClaimVerdict {
        let by = |is: ClaimGrade| -> Vec<ClaimCheck> {
            findings.iter().filter(|finding| finding.outcome.is == is).map(|finding| finding.check).collect()
        };
        let (failed, doubted) = (by(ClaimGrade::Fails), by(ClaimGrade::Doubtful));
        if !failed.is_empty() {
            ClaimVerdict::Impossible { by: failed }
        } else if !doubted.is_empty() {
            ClaimVerdict::Doubtful { by: doubted }
        } else if by(ClaimGrade::Unchecked).len() == findings.len() {
            ClaimVerdict::Unchecked
        } else {
            ClaimVerdict::Possible
        }
    }
}

/// Every claim in the text, in its order, checked.
pub fn audit(text: &str) -> Vec<AuditedClaim> {
    parse::claims(text).into_iter().map(audit_claim).collect()
}

/// One claim, checked.
pub fn audit_claim(claim: Claim) -> AuditedClaim {
    let findings = check::all(&claim);
    let verdict = ClaimVerdict::from_findings(&findings);
    AuditedClaim { claim, verdict, findings }
}
