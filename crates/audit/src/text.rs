//! The report: for each claim a headline, what fails with its evidence, and one line each for what holds and what could
//! not be checked.

use crate::Audited;
use crate::check::{Finding, Outcome};
use crate::claim::{Claim, Tool};
use crate::verdict::Verdict;
use crate::{number, words};

/// Wider lines are broken.
const WIDTH: usize = 110;

/// The whole of it; ends with a newline.
pub fn text(audited: &[Audited]) -> String {
    let mut text = summary(audited);
    for (at, each) in audited.iter().enumerate() {
        if audited[..at].iter().any(|earlier| is_like(earlier, each)) {
            continue;
        }
        text.push('\n');
        text += &of_claim(each);
        let alike: Vec<String> =
            audited[at + 1..].iter().filter(|later| is_like(each, later)).map(|later| place(&later.claim)).collect();
        if !alike.is_empty() {
            let lines = if alike.len() == 1 { "line" } else { "lines" };
            text += &wrapped("  also  ", &format!("{lines} {}", alike.join(", ")));
        }
    }
    text
}

/// Rows of a table of which the same was found are told once. What is impossible is told of each: the evidence counts.
fn is_like(one: &Audited, other: &Audited) -> bool {
    let is_row = matches!(one.claim.tool, Tool::LongTail | Tool::ResponseTimeWrk);
    let found = |audited: &Audited| -> Vec<_> {
        audited.findings.iter().map(|finding| (finding.check, std::mem::discriminant(&finding.outcome))).collect()
    };
    let explained = one.findings.iter().any(|finding| matches!(finding.outcome, Outcome::Explains { .. }));
    is_row
        && !explained
        && !matches!(one.verdict, Verdict::Impossible { .. })
        && one.claim.tool == other.claim.tool
        && found(one) == found(other)
}

/// `22 (chunk 1kB)`
fn place(claim: &Claim) -> String {
    let name = claim.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    format!("{}{name}", number::count(claim.line as u64))
}

fn summary(audited: &[Audited]) -> String {
    if audited.is_empty() {
        return "No load generator's output was recognised.\n".to_owned();
    }
    let mut parts = Vec::new();
    for verdict in ["impossible", "doubtful", "possible", "unchecked"] {
        let n = audited.iter().filter(|each| verdict_word(&each.verdict) == verdict).count();
        if n > 0 {
            parts.push(format!("{} {verdict}", number::count(n as u64)));
        }
    }
    format!("{}: {}.\n", number::count_of(audited.len() as u64, "claim"), parts.join(", "))
}

fn verdict_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Possible => "possible",
        Verdict::Doubtful { .. } => "doubtful",
        Verdict::Impossible { .. } => "impossible",
        Verdict::Unchecked => "unchecked",
    }
}

fn of_claim(audited: &Audited) -> String {
    let claim = &audited.claim;
    let word = verdict_word(&audited.verdict);
    let mut text = wrapped(&format!("{}  ", word.to_uppercase()), &headline(claim));
    for mark in ["fails", "doubt", "why"] {
        for finding in audited.findings.iter().filter(|finding| told_as(&finding.outcome) == Some(mark)) {
            let sentence = words::sentence(claim.tool, finding);
            text += &wrapped(&format!("  {mark:<6}"), &format!("{}: {sentence}", words::name(finding.check)));
        }
    }
    let held: Vec<&str> = audited.findings.iter().filter_map(held).collect();
    if !held.is_empty() {
        text += &wrapped("  holds ", &held.join(", "));
    }
    let unchecked: Vec<String> = audited.findings.iter().filter_map(unchecked).collect();
    if !unchecked.is_empty() {
        text += &wrapped("  not checked: ", &unchecked.join("; "));
    }
    text
}

/// How an outcome is marked that is told in full.
fn told_as(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Fails { .. } => Some("fails"),
        Outcome::Doubtful { .. } => Some("doubt"),
        Outcome::Explains { .. } => Some("why"),
        Outcome::Holds { .. } | Outcome::Unchecked { .. } => None,
    }
}

fn held(finding: &Finding) -> Option<&'static str> {
    matches!(finding.outcome, Outcome::Holds { .. }).then(|| words::name(finding.check))
}

fn unchecked(finding: &Finding) -> Option<String> {
    match &finding.outcome {
        Outcome::Unchecked { why } => Some(format!("{} ({why})", words::name(finding.check))),
        _ => None,
    }
}

/// `wrk, line 53: 4880.11/s, mean 2.31 ms, p99 21.46 ms, 4 connections`
fn headline(claim: &Claim) -> String {
    let mut figures = Vec::new();
    if let Some(rate) = claim.rate_per_s {
        figures.push(number::printed_rate(rate.value));
    }
    if let (Some(offered), None) = (claim.offered_per_s, claim.rate_per_s) {
        figures.push(format!("{} asked for", number::printed_rate(offered.value)));
    }
    if let Some(mean) = claim.mean_s {
        figures.push(format!("mean {}", number::printed_time(mean.value)));
    }
    for quantile in [0.5, 0.9, 0.99] {
        let found = claim.percentiles.iter().find(|p| (p.quantile - quantile).abs() < 1e-9);
        // With a mean the median says little more; without one it is the first figure.
        if let Some(found) = found.filter(|_| claim.mean_s.is_none() || quantile > 0.98) {
            figures.push(format!("{} {}", number::percentile(quantile), number::printed_time(found.time_s.value)));
        }
    }
    if !claim.answers.is_empty() {
        figures.push(number::count_of(claim.answers.len() as u64, "answer"));
    }
    if let Some(connections) = claim.connections {
        figures.push(number::count_of(connections, "connection"));
    }
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
