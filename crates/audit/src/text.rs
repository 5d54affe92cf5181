//! The report: for each claim a headline, what fails with its evidence, and one line each for what holds and what could
//! not be checked.

use crate::check::ClaimGrade;
use crate::claim::{Claim, LoadTool};
use crate::figure::PrintedFigure;
use crate::number::{self, count_of};
use crate::{AuditedClaim, ClaimVerdict};

/// Wider lines are broken.
const WIDTH: usize = 110;

/// The whole of it; ends with a newline.
pub fn text(audited: &[AuditedClaim]) -> String {
    let mut text = summary(audited);
    for (at, each) in audited.iter().enumerate() {
        if audited[..at].iter().any(|earlier| is_like(earlier, each)) {
            continue;
        }
        text.push('\n');
        text += &claim_text(each);
        let alike: Vec<String> =
            audited[at + 1..].iter().filter(|later| is_like(each, later)).map(|later| place(&later.claim)).collect();
        if !alike.is_empty() {
            let lines = if alike.len() == 1 { "line" } else { "lines" };
            text += &wrapped("  also  ", &format!("{lines} {}", alike.join(", ")));
        }
    }
    text
}

/// Rows of a table of which the same was found are printed once. What is impossible is printed of each: the evidence
/// counts.
fn is_like(one: &AuditedClaim, other: &AuditedClaim) -> bool {
    let is_row = matches!(one.claim.tool, LoadTool::LongTail | LoadTool::ResponseTimeWrk);
    let found = |audited: &AuditedClaim| -> Vec<_> {
        audited.findings.iter().map(|finding| (finding.check, finding.outcome.is)).collect()
    };
    let is_explained = one.findings.iter().any(|finding| finding.outcome.is == ClaimGrade::Explains);
    is_row
        && !is_explained
        && !matches!(one.verdict, ClaimVerdict::Impossible { .. })
        && one.claim.tool == other.claim.tool
        && found(one) == found(other)
}

/// `22 (chunk 1kB)`
fn place(claim: &Claim) -> String {
    let name = claim.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    format!("{}{name}", claim.line)
}

fn summary(audited: &[AuditedClaim]) -> String {
    if audited.is_empty() {
        return "No load generator's output was recognised.\n".to_owned();
    }
    let part = |word: &str| {
        let n = audited.iter().filter(|each| verdict_word(&each.verdict) == word).count();
        (n > 0).then(|| format!("{n} {word}"))
    };
    let parts: Vec<String> = ["impossible", "doubtful", "possible", "unchecked"].into_iter().filter_map(part).collect();
    format!("{}: {}.\n", count_of(audited.len() as u64, "claim"), parts.join(", "))
}

fn verdict_word(verdict: &ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Possible => "possible",
        ClaimVerdict::Doubtful { .. } => "doubtful",
        ClaimVerdict::Impossible { .. } => "impossible",
        ClaimVerdict::Unchecked => "unchecked",
    }
}

/// The headline, what fails, is doubtful or explains in full, and one line each for what holds and what is unchecked.
fn claim_text(audited: &AuditedClaim) -> String {
    let word = verdict_word(&audited.verdict).to_uppercase();
    let mut text = wrapped(&format!("{word}  "), &headline(&audited.claim));
    let found = |is: ClaimGrade| audited.findings.iter().filter(move |finding| finding.outcome.is == is);
    for (is, mark) in [(ClaimGrade::Fails, "fails"), (ClaimGrade::Doubtful, "doubt"), (ClaimGrade::Explains, "why")] {
        for finding in found(is) {
            let evidence = format!("{}: {}", finding.check.name(), finding.outcome.text);
            text += &wrapped(&format!("  {mark:<6}"), &evidence);
        }
    }
    let held: Vec<&str> = found(ClaimGrade::Holds).map(|finding| finding.check.name()).collect();
    if !held.is_empty() {
        text += &wrapped("  holds ", &held.join(", "));
    }
    let unchecked = found(ClaimGrade::Unchecked);
    let unchecked = unchecked.map(|finding| format!("{} ({})", finding.check.name(), finding.outcome.text));
    let unchecked: Vec<String> = unchecked.collect();
    if !unchecked.is_empty() {
        text += &wrapped("  not checked: ", &unchecked.join("; "));
    }
    text
}

/// `wrk, line 53: 4880.11/s, mean 2.31 ms, p99 21.46 ms, 4 connections`
fn headline(claim: &Claim) -> String {
    let time = |name: &str, time: PrintedFigure| format!("{name} {}", number::printed_time(time.value));
    let percentile = |q: f64| Some(time(&number::percentile(q), claim.percentile(q)?));
    // With a mean the median says little more; without one it is the first figure.
    let without_mean = |q: f64| percentile(q).filter(|_| claim.mean_s.is_none());
    let rate = claim.rate_per_s.map(|rate| number::printed_rate(rate.value));
    let offered = claim.offered_per_s.map(|rate| format!("{} asked for", number::printed_rate(rate.value)));
    let answers = (!claim.answers.is_empty()).then(|| count_of(claim.answers.len() as u64, "answer"));
    let figures = [
        rate.or(offered),
        claim.mean_s.map(|mean| time("mean", mean)),
        without_mean(0.5),
        without_mean(0.9),
        percentile(0.99),
        answers,
        claim.connections.map(|connections| count_of(connections, "connection")),
    ];
    let figures: Vec<String> = figures.into_iter().flatten().collect();
    format!("{}, line {}: {}", claim.tool, place(claim), figures.join(", "))
}

/// `first` and `text`, broken between words, with what follows indented under the text.
fn wrapped(first: &str, text: &str) -> String {
    let indent = first.chars().count();
    let mut out = first.to_owned();
    let mut column = indent;
    for (at, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if at > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_under_their_text() {
        let lines: Vec<String> = wrapped("  why   ", &"word ".repeat(40)).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("        word") && lines.iter().all(|line| line.len() <= WIDTH));
    }

    #[test]
    fn nothing_recognised_is_said_so() {
        assert_eq!(text(&[]), "No load generator's output was recognised.\n");
    }
}
