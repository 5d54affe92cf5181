//! Is this published table even possible? Reads what load generators print, and holds their figures against each other:
//! Little's law, what percentiles force the mean to be, counts, bytes, and what each tool is known to do to its samples.
//!
//! Pure functions on text: nothing here opens a file, prints, or measures. A figure counts as printed, with the half
//! of its last digit that rounding may have moved it: a check fails only where no rounding can save it.
//!
//! [`audit`] is the whole of it; [`parse`] and [`check`] are its two halves.

pub mod check;
pub mod claim;
mod number;
pub mod parse;
mod printed;
mod range;
mod text;
mod verdict;
mod words;

use serde::{Deserialize, Serialize};

pub use check::{Check, Evidence, Finding, Outcome};
pub use claim::{Claim, Tool};
pub use printed::Printed;
pub use range::Range;
pub use text::text;
pub use verdict::Verdict;

/// A claim with all that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Audited {
    /// What was claimed.
    pub claim: Claim,
    /// Whether it can be.
    pub verdict: Verdict,
    /// What was checked, and what could not be.
    pub findings: Vec<Finding>,
}

/// What is said of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The check's name, as in "Little's law".
    pub check: &'static str,
    /// The evidence, in a sentence or two.
    pub sentence: String,
}

impl Audited {
    /// One of its findings, in words.
    pub fn remark(&self, finding: &Finding) -> Remark {
        Remark { check: words::name(finding.check), sentence: words::sentence(self.claim.tool, finding) }
    }
}

/// Every claim in the text, in its order, checked.
pub fn audit(text: &str) -> Vec<Audited> {
    parse::claims(text).into_iter().map(of_claim).collect()
}

/// One claim, checked.
pub fn of_claim(claim: Claim) -> Audited {
    let findings = check::all(&claim);
    let verdict = Verdict::of(&findings);
    Audited { claim, verdict, findings }
}
