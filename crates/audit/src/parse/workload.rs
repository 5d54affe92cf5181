//! `ic-workload-generator`'s summary, emoji and their mojibake included.

use super::blocks;
use super::scan::{self, after};
use crate::claim::{Claim, Percentile, Tool};
use crate::printed::Printed;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let found = blocks(lines, |line| line.starts_with("requested:") && line.contains("achieved:"));
    found.into_iter().map(|(from, to)| claim(from, &lines[from..to])).collect()
}

fn claim(at: usize, block: &[String]) -> Claim {
    let mut claim = Claim::new(Tool::Workload, at + 1);
    let head = block[0].trim();
    let number = |key: &str| {
        let (_, rest) = head.split_once(key)?;
        rest.trim_start().split(|c: char| !c.is_ascii_digit() && c != '.').next()
    };
    claim.offered_per_s = number("requested:").and_then(Printed::parse).map(|rate| Printed { half_width: 0.0, ..rate });
    claim.rate_per_s = number("achieved:").and_then(Printed::parse).map(Printed::cut);
    let failures = ["submit failures:", "wait failures:"].map(|key| number(key).and_then(scan::count));
    claim.bad_answers = failures.into_iter().flatten().reduce(u64::saturating_add);
    let mut codes = false;
    for line in &block[1..] {
        let line = line.trim();
        if let Some(rest) = after(line, "Average:") {
            claim.mean_s = scan::time_in_words(rest);
            let stdev = rest.split_once("std:").map(|(_, rest)| rest.trim().trim_end_matches(')'));
            claim.stdev_s = stdev.and_then(scan::time_in_words);
        } else if let Some(rest) = after(line, "Median:") {
            claim.percentiles =
                scan::time_in_words(rest).map(|time_s| Percentile { quantile: 0.5, time_s }).into_iter().collect();
        } else if let Some(rest) = after(line, "Longest:") {
            claim.max_s = scan::time_in_words(rest);
        } else if let Some(rest) = after(line, "Shortest:") {
            claim.min_s = scan::time_in_words(rest);
        } else if let Some(rest) = after(line, "Requests:") {
            claim.requests = scan::count(rest);
        } else if line.starts_with("Status codes:") {
            codes = true;
        } else if codes {
            let status = line.split_once(':').filter(|(code, _)| code.parse::<u16>().is_ok());
            let Some((code, count)) = status else { break };
            if let Some(count) = scan::count(count.trim()) {
                claim.statuses.insert(code.to_owned(), count);
            }
        }
    }
    claim
}
