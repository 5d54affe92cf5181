//! The rows of Puma's `long_tail_hey`: hey's percentiles in seconds, and how the workers shared the requests.

use super::{command, scan, server};
use crate::claim::{Claim, Deviation, Percentile, Server, Shares, Tool};
use crate::printed::Printed;
use crate::range::Range;

/// What its columns are; 100 % is the longest.
const QUANTILES: [f64; 7] = [0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99];

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.contains("Mult/Conn") && line.contains("req/sec") {
            claims.extend(table(lines, at));
        }
    }
    claims
}

fn table(lines: &[String], head: usize) -> Vec<Claim> {
    let above = &lines[head.saturating_sub(3)..head];
    let server = above.iter().rev().find_map(|line| server(line));
    let delay_s = above.iter().rev().find_map(|line| delay_s(line));
    let rows = lines[head + 1..].iter().enumerate();
    let mut claims: Vec<Claim> = rows.map_while(|(offset, line)| row(line, head + offset + 2, server)).collect();
    for claim in &mut claims {
        claim.delay_s = delay_s;
        let connections = claim.connections;
        let asks = |line: &&str| command::count(line, &["-c"]) == connections;
        let hey = lines[..head].iter().map(|line| command::bare(line)).filter(|line| line.starts_with("hey "));
        if let Some(line) = hey.rev().find(asks) {
            claim.command = Some(line.to_owned());
            claim.asked = command::count(line, &["-n"]);
        }
    }
    let unloaded = claims.iter().find_map(|claim| unloaded_s(claim, server?));
    for claim in &mut claims {
        if let Some(shares) = &mut claim.shares {
            shares.unloaded_s = unloaded;
        }
    }
    claims
}

/// `dly 0.2` in the line above the head.
fn delay_s(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).find(|pair| pair[0] == "dly").and_then(|pair| Printed::parse(pair[1])).map(|delay| delay.value)
}

/// What a request occupies its slot for, from a row where every request found one free.
fn unloaded_s(claim: &Claim, server: Server) -> Option<Range> {
    let connections = claim.connections.filter(|n| *n <= server.slots())?;
    let even = claim.shares.as_ref()?.deviations.iter().all(|deviation| deviation.value.abs() < 0.005);
    even.then(|| Range::exactly(connections as f64).over(claim.rate_per_s?.range()))?
}

fn row(line: &str, number: usize, server: Option<Server>) -> Option<Claim> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (multiple, rest) = words.split_first()?;
    let (connections, rest) = rest.split_first()?;
    Printed::parse(multiple)?;
    let figures: Option<Vec<Printed>> = rest.iter().take(9).map(|word| Printed::parse(word)).collect();
    let figures = figures.filter(|figures| figures.len() == 9)?;
    let mut claim = Claim::new(Tool::LongTail, number);
    claim.connections = scan::count(connections);
    claim.name = Some(format!("{multiple} x"));
    claim.server = server;
    claim.rate_per_s = Some(figures[0]);
    claim.percentiles =
        QUANTILES.iter().zip(&figures[1..8]).map(|(q, time)| Percentile { quantile: *q, time_s: *time }).collect();
    claim.max_s = Some(figures[8]);
    claim.shares = shares(&mut claim.requests, &rest[9..]);
    Some(claim)
}

/// `0.935   -3.6 -1.6 -1.1  6.3    3000`; a single process has but the total.
fn shares(requests: &mut Option<u64>, words: &[&str]) -> Option<Shares> {
    let (total, words) = words.split_last()?;
    *requests = scan::count(total);
    let (stdev, words) = words.split_first()?;
    let deviations: Option<Vec<Deviation>> = words.iter().map(|word| deviation(word)).collect();
    let deviations = deviations.filter(|deviations| !deviations.is_empty())?;
    Some(Shares { deviations, stdev_points: Printed::parse(stdev), unloaded_s: None })
}

fn deviation(word: &str) -> Option<Deviation> {
    let printed = Printed::parse(word.trim_start_matches(['-', '+']))?.scaled(0.01);
    let sign = if word.starts_with('-') { -1.0 } else { 1.0 };
    Some(Deviation { value: sign * printed.value, half_width: printed.half_width })
}
