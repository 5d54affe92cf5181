//! Is this published table even possible? Reads what load tools print and checks their figures
//! against each other: Little's law, the mean that the percentiles allow, counts, bytes, and what
//! each tool is known to do to its samples.
//!
//! Pure functions on text: nothing here opens a file, prints, or measures. A figure may have been
//! rounded by half of its last digit: a check fails only if no rounding can explain the difference.
//!
//! [`audit`] does all of it: [`parse`] reads the text as claims, [`CHECKS`] turn a claim into
//! findings, and [`text()`] lays them out.

use std::collections::HashMap;

pub use check::{AuditFinding, CHECKS, CheckOutcome, ClaimCheck};
pub use claim::Claim;
pub use figure::{FigureRange, PrintedFigure};
pub use load_tool::LoadTool;
use model::{Believable, ClaimGrade};
pub use parse::TooManyClaims;
use report::number::{count_of, percentile as percentile_name};
use report::{Width, wrap};
use serde::Serialize;

mod check;
pub mod claim;
mod figure;
mod load_tool;
pub mod parse;

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

/// Whether a claim can be true, and by which checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimVerdict {
    /// Whether it can be true.
    pub is: Believable,
    /// The checks that say so, if it is doubtful or impossible.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<ClaimCheck>,
}

impl ClaimVerdict {
    /// The verdict from these findings: one failed check is enough.
    pub(crate) fn from_findings(findings: &[AuditFinding]) -> ClaimVerdict {
        let by = |is: ClaimGrade| -> Vec<ClaimCheck> {
            findings
                .iter()
                .filter(|finding| finding.outcome.is == is)
                .map(|finding| finding.check)
                .collect()
        };
        let failed = by(ClaimGrade::Fails);
        let doubted = by(ClaimGrade::Doubtful);
        if !failed.is_empty() {
            ClaimVerdict { is: Believable::Impossible, by: failed }
        } else if !doubted.is_empty() {
            ClaimVerdict { is: Believable::Doubtful, by: doubted }
        } else if by(ClaimGrade::Unchecked).len() == findings.len() {
            ClaimVerdict { is: Believable::Unchecked, by: Vec::new() }
        } else {
            ClaimVerdict { is: Believable::Possible, by: Vec::new() }
        }
    }
}

/// Every claim in the text, in its order, checked.
///
/// # Errors
/// If there are too many.
pub fn audit(text: &str) -> Result<Vec<AuditedClaim>, TooManyClaims> {
    Ok(parse::claims(text)?.into_iter().map(audit_claim).collect())
}

/// One claim, checked.
pub fn audit_claim(claim: Claim) -> AuditedClaim {
    let findings = check::all(&claim);
    let verdict = ClaimVerdict::from_findings(&findings);
    AuditedClaim { claim, verdict, findings }
}

/// Wider lines are wrapped.
const WIDTH: usize = 100;

/// All findings as text, which ends with a newline.
pub fn text(audited: &[AuditedClaim], width: Width) -> String {
    let width = width.at_most(WIDTH);
    let mut text = String::new();
    wrap(&mut text, width, "", &summary(audited));
    for alike in groups(audited) {
        text.push('\n');
        text += &claim_text(alike[0], width);
        let also: Vec<String> = alike[1..].iter().map(|later| place(&later.claim)).collect();
        if !also.is_empty() {
            let lines = if also.len() == 1 { "line" } else { "lines" };
            wrap(&mut text, width, "  also  ", &format!("{lines} {}", also.join(", ")));
        }
    }
    text
}

/// Rows of a table with the same findings are printed once. Impossible rows are all printed,
/// because their evidence differs.
fn groups(audited: &[AuditedClaim]) -> Vec<Vec<&AuditedClaim>> {
    let mut groups: Vec<Vec<&AuditedClaim>> = Vec::new();
    let mut group_of_row = HashMap::new();
    for each in audited {
        let found: Vec<(ClaimCheck, ClaimGrade)> =
            each.findings.iter().map(|finding| (finding.check, finding.outcome.is)).collect();
        if !is_row_to_group(each) {
            groups.push(vec![each]);
            continue;
        }
        let group = *group_of_row.entry((each.claim.tool, found)).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(alike) => alike.push(each),
            None => groups.push(vec![each]),
        }
    }
    groups
}

fn is_row_to_group(audited: &AuditedClaim) -> bool {
    let is_row = matches!(audited.claim.tool, LoadTool::LongTailHey | LoadTool::ResponseTimeWrk);
    let is_explained =
        audited.findings.iter().any(|finding| finding.outcome.is == ClaimGrade::Explains);
    is_row && !is_explained && audited.verdict.is != Believable::Impossible
}

/// `22 (chunk 1kB)`
fn place(claim: &Claim) -> String {
    let name = claim.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    format!("{}{name}", claim.line)
}

fn summary(audited: &[AuditedClaim]) -> String {
    if audited.is_empty() {
        return "No load generator's output was recognised.".to_owned();
    }
    let part = |word: &str| {
        let n = audited.iter().filter(|each| <&str>::from(each.verdict.is) == word).count();
        (n > 0).then(|| format!("{n} {word}"))
    };
    let parts: Vec<String> =
        ["impossible", "doubtful", "possible", "unchecked"].into_iter().filter_map(part).collect();
    format!("{}: {}.", count_of(audited.len() as u64, "claim"), parts.join(", "))
}

/// The headline, what fails, is doubtful or explains in full, and one line each for what holds and
/// what is unchecked.
fn claim_text(audited: &AuditedClaim, width: Width) -> String {
    let word = <&str>::from(audited.verdict.is).to_uppercase();
    let mut text = String::new();
    wrap(&mut text, width, &format!("{word}  "), &headline(&audited.claim));
    let found =
        |is: ClaimGrade| audited.findings.iter().filter(move |finding| finding.outcome.is == is);
    for (is, mark) in [
        (ClaimGrade::Fails, "fails"),
        (ClaimGrade::Doubtful, "doubt"),
        (ClaimGrade::Explains, "why"),
    ] {
        for finding in found(is) {
            let evidence = format!("{}: {}", finding.check.name(), finding.outcome.text);
            wrap(&mut text, width, &format!("  {mark:<6}"), &evidence);
        }
    }
    let held: Vec<&str> = found(ClaimGrade::Holds).map(|finding| finding.check.name()).collect();
    if !held.is_empty() {
        wrap(&mut text, width, "  holds ", &held.join(", "));
    }
    let unchecked = found(ClaimGrade::Unchecked);
    let unchecked =
        unchecked.map(|finding| format!("{} ({})", finding.check.name(), finding.outcome.text));
    let unchecked: Vec<String> = unchecked.collect();
    if !unchecked.is_empty() {
        wrap(&mut text, width, "  not checked: ", &unchecked.join("; "));
    }
    text
}

/// `wrk, line 53: 4880.11/s, mean 2.31 ms, p99 21.46 ms, 4 connections`
fn headline(claim: &Claim) -> String {
    let time =
        |name: &str, time: PrintedFigure| format!("{name} {}", figure::printed_time(time.value));
    let percentile = |q: f64| Some(time(&percentile_name(q), claim.percentile(q)?));
    // With a mean the median says little more; without one it is the first figure.
    let without_mean = |q: f64| percentile(q).filter(|_| claim.mean_s.is_none());
    let rate = claim.rate_per_s.map(|rate| figure::printed_rate(rate.value));
    let offered =
        claim.offered_per_s.map(|rate| format!("{} asked for", figure::printed_rate(rate.value)));
    let requests =
        (!claim.answers.is_empty()).then(|| count_of(claim.answers.len() as u64, "request"));
    let figures = [
        rate.or(offered),
        claim.mean_s.map(|mean| time("mean", mean)),
        without_mean(0.5),
        without_mean(0.9),
        percentile(0.99),
        requests,
        claim.connections.map(|connections| count_of(connections, "connection")),
    ];
    let figures: Vec<String> = figures.into_iter().flatten().collect();
    format!("{}, line {}: {}", claim.tool, place(claim), figures.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recognised_is_said_so() {
        assert_eq!(text(&[], Width::ANY), "No load generator's output was recognised.\n");
    }
}
