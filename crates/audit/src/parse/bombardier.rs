//! bombardier's report. Its rate is the mean of rates sampled during the run, not requests / duration.

use super::{blocks, command, scan};
use crate::claim::{Claim, Percentile, Tool};
use crate::printed::Printed;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let found = blocks(lines, |line| line.split_whitespace().take(4).eq(["Statistics", "Avg", "Stdev", "Max"]));
    found.into_iter().map(|(from, to)| claim(lines, from, &lines[from..to])).collect()
}

fn claim(lines: &[String], at: usize, block: &[String]) -> Claim {
    let mut claim = Claim::new(Tool::Bombardier, at + 1);
    claim.command =
        command::above(lines, at, command::below(lines, at, "Throughput:"), "bombardier").map(str::to_owned);
    if let Some(line) = lines[at.saturating_sub(6)..at].iter().rev().find(|line| line.trim().starts_with("Bombarding "))
    {
        bombarding(&mut claim, line);
    }
    for line in block {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Reqs/sec", mean, ..] => claim.rate_per_s = Printed::parse(mean),
            ["Latency", mean, stdev, max] => {
                claim.mean_s = scan::time(mean);
                claim.stdev_s = scan::time(stdev);
                claim.max_s = scan::time(max);
            }
            [percent, time] if percent.ends_with('%') => {
                if let (Some(quantile), Some(time_s)) = (scan::quantile(percent), scan::time(time)) {
                    claim.percentiles.push(Percentile { quantile, time_s });
                }
            }
            ["1xx", "-", ..] => {
                for class in words.chunks(3) {
                    if let [name, "-", count] = class
                        && let Some(count) = scan::count(count).filter(|count| *count > 0)
                    {
                        claim.statuses.insert((*name).to_owned(), count);
                    }
                }
            }
            ["others", "-", count] => claim.errors = scan::count(count),
            ["Throughput:", rate] => {
                claim.transfer_bytes_per_s = rate.strip_suffix("/s").and_then(scan::bytes);
                break;
            }
            _ => {}
        }
    }
    claim
}

/// `Bombarding http://localhost:8080 with 10000 request(s) using 125 connection(s)`, or `for 10s` instead of `with`.
fn bombarding(claim: &mut Claim, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    claim.name = words.get(1).map(|url| (*url).to_owned());
    for pair in words.windows(2) {
        match pair {
            ["using", count] => claim.connections = scan::count(count),
            ["with", count] => claim.asked = scan::count(count),
            _ => {}
        }
    }
}
