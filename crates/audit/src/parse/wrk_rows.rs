//! The rows of Puma's `response_time_wrk`: wrk's rate and percentiles in milliseconds, with the size of an answer. The
//! wrk command is in the row, or below the table for all of it.

use super::{command, server};
use crate::claim::{Claim, Percentile, Server, Tool};
use crate::printed::Printed;

const QUANTILES: [f64; 4] = [0.50, 0.75, 0.90, 0.99];

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let named = match words[..] {
            ["Type", "req/sec", "50%", "75%", "90%", "99%", "100%", ..] => true,
            ["req/sec", "50%", "75%", "90%", "99%", "100%", ..] => false,
            _ => continue,
        };
        claims.extend(table(lines, at, named));
    }
    claims
}

fn table(lines: &[String], head: usize, named: bool) -> Vec<Claim> {
    let server = puma(lines, head);
    let mut size = "";
    let mut claims = Vec::new();
    let mut end = lines.len();
    for (at, line) in lines.iter().enumerate().skip(head + 1) {
        let ruled = line.trim().trim_start_matches(is_rule);
        if ruled.len() < line.trim().len() {
            size = ruled.trim();
        } else if let Some(claim) = row(line, at + 1, named, size, server) {
            claims.push(claim);
        } else {
            end = at;
            break;
        }
    }
    // For the whole table, up to the next one.
    let below = lines[end..].iter().take(20).map(|line| line.trim());
    let common = below.take_while(|line| !line.starts_with("Type ")).find(|line| line.starts_with("wrk -"));
    for claim in &mut claims {
        if claim.command.is_none() {
            claim.command = common.map(str::to_owned);
        }
        if let Some(command) = claim.command.clone() {
            claim.connections = command::count(&command, &["-c"]);
            claim.threads = command::count(&command, &["-t"]);
        }
    }
    claims
}

fn row(line: &str, number: usize, named: bool, size: &str, server: Option<Server>) -> Option<Claim> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, figures) =
        if named { words.split_first().map(|(name, rest)| (Some(*name), rest))? } else { (None, &words[..]) };
    let printed: Option<Vec<Printed>> = figures.iter().take(7).map(|word| Printed::parse(word)).collect();
    let printed = printed.filter(|printed| printed.len() == 7)?;
    let mut claim = Claim::new(Tool::ResponseTimeWrk, number);
    claim.server = server;
    // A rate without decimals is cut off.
    claim.rate_per_s = Some(printed[0].cut());
    let milliseconds = |printed: Printed| printed.scaled(1e-3);
    claim.percentiles = QUANTILES
        .iter()
        .zip(&printed[1..5])
        .map(|(q, time)| Percentile { quantile: *q, time_s: milliseconds(*time) })
        .collect();
    claim.max_s = Some(milliseconds(printed[5]));
    claim.answer_bytes = Some(printed[6]);
    claim.command = (figures.len() > 7).then(|| figures[7..].join(" "));
    claim.name = match (name, claim.command.is_some()) {
        (Some(name), _) => Some(format!("{name} {size}").trim().to_owned()),
        (None, _) => None,
    };
    Some(claim)
}

/// What a horizontal rule is drawn with, in whatever encoding it arrived.
fn is_rule(c: char) -> bool {
    c == '-' || !c.is_ascii()
}

/// The nearest line above the table, or else below it, that says how Puma was started.
fn puma(lines: &[String], head: usize) -> Option<Server> {
    let starts = |line: &&String| line.contains("response_time_wrk.sh") || line.contains("Server cluster mode");
    let above = lines[..head].iter().rev().filter(starts).find_map(|line| server(line));
    above.or_else(|| lines[head..].iter().filter(starts).find_map(|line| server(line)))
}
