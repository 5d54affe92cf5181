//! wrk's report. `stats_correct` has been over its times: see the check of phantom samples.

use super::scan::{self, after};
use super::{blocks, command};
use crate::claim::{Claim, Percentile, Tool};
use crate::printed::Printed;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    reports(lines).filter(|(_, block)| !is_wrk2(block)).map(|(at, block)| claim(Tool::Wrk, lines, at, block)).collect()
}

/// wrk's and wrk2's reports: from `Running 30s test @ …` to `Transfer/sec`.
pub(super) fn reports(lines: &[String]) -> impl Iterator<Item = (usize, &[String])> {
    blocks(lines, |line| line.starts_with("Running ") && line.contains(" test @ ")).into_iter().map(|(from, to)| {
        let last = lines[from..to].iter().position(|line| line.trim().starts_with("Transfer/sec"));
        (from, &lines[from..last.map_or(to, |last| from + last + 1)])
    })
}

pub(super) fn is_wrk2(block: &[String]) -> bool {
    block.iter().any(|line| line.contains("HdrHistogram") || line.contains("Thread calibration"))
}

pub(super) fn claim(tool: Tool, lines: &[String], at: usize, block: &[String]) -> Claim {
    let mut claim = Claim::new(tool, at + 1);
    claim.name = block[0].split_once(" @ ").map(|(_, url)| url.trim().to_owned());
    let floor = command::below(lines, at, "Transfer/sec");
    let command = ["wrk", "wrk2"].iter().find_map(|program| command::above(lines, at, floor, program));
    claim.command = command.map(str::to_owned);
    // Without `--latency` there are none.
    let mut distribution = false;
    for line in &block[1..] {
        let line = line.trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [threads, "threads", "and", connections, "connections"] => {
                claim.threads = scan::count(threads);
                claim.connections = scan::count(connections);
            }
            ["Latency", "Distribution", ..] => distribution = true,
            ["Latency", mean, stdev, max, ..] => {
                claim.mean_s = scan::time(mean);
                claim.stdev_s = scan::time(stdev);
                claim.max_s = scan::time(max);
            }
            [percent, time] if distribution && percent.ends_with('%') => {
                if let (Some(quantile), Some(time_s)) = (scan::quantile(percent), scan::time(time))
                    && quantile < 1.0
                {
                    claim.percentiles.push(Percentile { quantile, time_s });
                }
            }
            [requests, "requests", "in", duration, read, "read"] => {
                claim.requests = scan::count(requests);
                claim.duration_s = scan::time(duration);
                claim.received_bytes = scan::bytes(read);
                distribution = false;
            }
            ["Socket", "errors:", ..] => socket_errors(&mut claim, &words),
            _ => {}
        }
        if let Some(rest) = after(line, "Requests/sec:") {
            claim.rate_per_s = Printed::parse(rest);
        } else if let Some(rest) = after(line, "Transfer/sec:") {
            claim.transfer_bytes_per_s = scan::bytes(rest);
        } else if let Some(rest) = after(line, "Non-2xx or 3xx responses:") {
            claim.bad_answers = scan::count(rest);
        }
    }
    claim
}

/// `Socket errors: connect 0, read 88, write 0, timeout 12`.
fn socket_errors(claim: &mut Claim, words: &[&str]) {
    let of = |name: &str| words.windows(2).find(|pair| pair[0] == name).and_then(|pair| scan::count(pair[1]));
    let each = ["connect", "read", "write"].map(|name| of(name).unwrap_or(0));
    claim.errors = Some(each.iter().fold(0, |sum, n| sum.saturating_add(*n)));
    claim.timeouts = of("timeout");
}
