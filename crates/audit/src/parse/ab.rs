//! `ApacheBench`'s report.
//!
//! Its first `Time per request` is concurrency x duration / requests, and so keeps Little's law whatever happened; the
//! mean taken here is that of the table, of measured times, though only in whole milliseconds.

use super::scan::{self, after};
use super::{blocks, command};
use crate::claim::{Claim, Percentile, Tool};
use crate::printed::Printed;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let found = blocks(lines, |line| line.starts_with("Concurrency Level:"));
    found.into_iter().map(|(from, to)| claim(lines, from, &lines[from..to])).collect()
}

fn claim(lines: &[String], at: usize, block: &[String]) -> Claim {
    let mut claim = Claim::new(Tool::Ab, at + 1);
    claim.name =
        lines[at.saturating_sub(8)..at].iter().find_map(|line| after(line, "Document Path:")).map(str::to_owned);
    claim.command = command::above(lines, at, command::below(lines, at, "(longest request)"), "ab").map(str::to_owned);
    let timed = |command: &String| command::count(command, &["-t"]).is_some();
    claim.asked = claim.command.as_ref().filter(|command| !timed(command)).and_then(|c| command::count(c, &["-n"]));
    for line in block {
        let line = line.trim();
        let first = |key: &str| after(line, key).and_then(|rest| rest.split_whitespace().next());
        if let Some(word) = first("Concurrency Level:") {
            claim.connections = scan::count(word);
        } else if let Some(rest) = after(line, "Time taken for tests:") {
            claim.duration_s = scan::time_in_words(rest);
        } else if let Some(word) = first("Complete requests:") {
            claim.requests = scan::count(word);
        } else if let Some(word) = first("Failed requests:") {
            add_bad(&mut claim, scan::count(word));
        } else if let Some(word) = first("Non-2xx responses:") {
            add_bad(&mut claim, scan::count(word));
        } else if let Some(word) = first("Total transferred:") {
            claim.received_bytes = Printed::parse(word);
        } else if let Some(word) = first("Requests per second:") {
            claim.rate_per_s = Printed::parse(word);
        } else if let Some(word) = first("Transfer rate:") {
            claim.transfer_bytes_per_s = Printed::parse(word).map(|rate| rate.scaled(1024.0));
        } else if let Some(rest) = after(line, "Total:") {
            table(&mut claim, rest);
        } else if let Some((percent, rest)) = line.split_once('%') {
            let time_s = rest.split_whitespace().next().and_then(milliseconds);
            if let (Some(quantile), Some(time_s)) = (scan::quantile(&format!("{}%", percent.trim())), time_s) {
                if quantile >= 1.0 {
                    break;
                }
                claim.percentiles.push(Percentile { quantile, time_s });
            }
        }
    }
    claim
}

/// An answer can be of another length and not 2xx at once: the larger count is certain.
fn add_bad(claim: &mut Claim, count: Option<u64>) {
    claim.bad_answers = claim.bad_answers.max(count);
}

/// `min  mean[+/-sd] median   max`, in milliseconds.
fn table(claim: &mut Claim, rest: &str) {
    let figures: Vec<Option<Printed>> = rest.split_whitespace().map(milliseconds).collect();
    if let [min, mean, stdev, _, max] = figures[..] {
        claim.min_s = min;
        claim.mean_s = mean;
        claim.stdev_s = stdev;
        claim.max_s = max;
    }
}

fn milliseconds(word: &str) -> Option<Printed> {
    Printed::parse(word).map(|ms| ms.scaled(1e-3))
}
