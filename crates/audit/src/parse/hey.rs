//! hey's summary. It names neither connections nor requests: the first come from a command line above it (50 where
//! that says nothing), the second from its statuses and errors.

use super::scan::{self, after};
use super::{blocks, command};
use crate::claim::{Bin, Claim, Percentile, Tool};
use crate::printed::Printed;

/// What `-c` is when it is not given.
const CONNECTIONS: u64 = 50;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut floor = 0;
    for (at, block) in summaries(lines) {
        if !is_ohas(block) {
            claims.push(claim(lines, at, floor, block));
        }
        floor = at + 1;
    }
    claims
}

/// hey's and oha's: from `Summary:` to the next one.
pub(super) fn summaries(lines: &[String]) -> impl Iterator<Item = (usize, &[String])> {
    blocks(lines, |line| line == "Summary:").into_iter().map(|(from, to)| (from, &lines[from..to]))
}

pub(super) fn is_ohas(block: &[String]) -> bool {
    block.iter().take(3).any(|line| line.trim().starts_with("Success rate"))
}

fn claim(lines: &[String], at: usize, floor: usize, block: &[String]) -> Claim {
    let mut claim = Claim::new(Tool::Hey, at + 1);
    figures(&mut claim, block);
    if let Some(command) = command::above(lines, at, floor, "hey") {
        claim.command = Some(command.to_owned());
        claim.connections = command::count(command, &["-c"]).or(Some(CONNECTIONS));
        // With -z it goes on until then, whatever -n says.
        let timed = command::option(command, &["-z"], scan::time).is_some();
        claim.asked = command::count(command, &["-n"]).filter(|_| !timed);
        // -q is of each connection.
        claim.offered_per_s = command::option(command, &["-q"], Printed::parse)
            .filter(|rate| rate.value > 0.0)
            .zip(claim.connections)
            .map(|(rate, connections)| Printed { half_width: 0.0, ..rate.scaled(connections as f64) });
    }
    claim
}

/// The lines that hey and oha have in common.
pub(super) fn figures(claim: &mut Claim, block: &[String]) {
    let mut part = "Summary:";
    for line in block {
        let line = line.trim();
        if let Some(head) = head(line) {
            part = head;
        }
        match part {
            "Summary:" => summary(claim, line),
            "Response time histogram:" => claim.bins.extend(bin(line)),
            "Latency distribution:" | "Response time distribution:" => claim.percentiles.extend(percentile(line)),
            "Status code distribution:" => {
                if let Some((status, count)) = bracketed(line) {
                    if let Some(count) = count.split_whitespace().next().and_then(scan::count) {
                        claim.statuses.insert(status.to_owned(), count);
                    }
                } else if !line.is_empty() && line != part {
                    // Text that follows in the same file.
                    part = "";
                }
            }
            "Error distribution:" => {
                if let Some((count, what)) = bracketed(line) {
                    let count = scan::count(count).unwrap_or(0);
                    claim.errors = Some(claim.errors.unwrap_or(0).saturating_add(count));
                    // They were under way when oha's time was up: no fault of anybody.
                    if what.contains("aborted due to deadline") {
                        claim.unfinished = Some(claim.unfinished.unwrap_or(0).saturating_add(count));
                    }
                } else if !line.is_empty() && line != part {
                    part = "";
                }
            }
            _ => {}
        }
    }
}

fn head(line: &str) -> Option<&'static str> {
    let heads = [
        "Response time histogram:",
        "Latency distribution:",
        "Response time distribution:",
        "Status code distribution:",
        "Error distribution:",
    ];
    let details = line.starts_with("Details (average").then_some("Details");
    heads.into_iter().find(|head| line == *head).or(details)
}

fn summary(claim: &mut Claim, line: &str) {
    let time = |key: &str| after(line, key).and_then(scan::time_in_words);
    claim.duration_s = claim.duration_s.or_else(|| time("Total:"));
    claim.max_s = claim.max_s.or_else(|| time("Slowest:"));
    claim.min_s = claim.min_s.or_else(|| time("Fastest:"));
    claim.mean_s = claim.mean_s.or_else(|| time("Average:"));
    claim.rate_per_s = claim.rate_per_s.or_else(|| after(line, "Requests/sec:").and_then(Printed::parse));
    claim.received_bytes = claim.received_bytes.or_else(|| after(line, "Total data:").and_then(scan::bytes));
    claim.answer_bytes = claim.answer_bytes.or_else(|| after(line, "Size/request:").and_then(scan::bytes));
    claim.transfer_bytes_per_s = claim.transfer_bytes_per_s.or_else(|| after(line, "Size/sec:").and_then(scan::bytes));
}

/// `0.025 [820206] |■■■` or `0.817 ms [160796] |■■■`.
fn bin(line: &str) -> Option<Bin> {
    let (mark, rest) = line.split_once('[')?;
    let (count, _) = rest.split_once(']')?;
    let mark = mark.trim();
    let up_to_s = if mark.contains(' ') { scan::time_in_words(mark)? } else { Printed::parse(mark)? };
    Some(Bin { up_to_s, count: scan::count(count)? })
}

/// `99% in 0.0172 secs`.
fn percentile(line: &str) -> Option<Percentile> {
    let (percent, time) = line.split_once(" in ")?;
    let quantile = scan::quantile(percent.trim())?;
    // Where it has too few times for a percentile, hey prints an empty one: `0% in 0.0000 secs`.
    (quantile > 0.0 && quantile < 1.0).then_some(Percentile { quantile, time_s: scan::time_in_words(time)? })
}

/// `[200] 824106 responses`: what is in the brackets, and the rest.
fn bracketed(line: &str) -> Option<(&str, &str)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    Some((inside.trim(), rest.trim()))
}
