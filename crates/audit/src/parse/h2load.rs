//! h2load's report.

use super::scan::{self, after};
use super::{blocks, command};
use crate::claim::{Claim, Tool};
use crate::printed::Printed;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let found = blocks(lines, |line| line.starts_with("finished in ") && line.contains("req/s"));
    let mut floor = 0;
    found
        .into_iter()
        .map(|(from, to)| {
            let claim = claim(lines, from, floor, &lines[from..to]);
            floor = from + 1;
            claim
        })
        .collect()
}

fn claim(lines: &[String], at: usize, floor: usize, block: &[String]) -> Claim {
    let mut claim = Claim::new(Tool::H2load, at + 1);
    if let Some(command) = command::above(lines, at, floor, "h2load") {
        claim.command = Some(command.to_owned());
        claim.streams = command::count(command, &["-m", "--max-concurrent-streams"]).or(Some(1));
        claim.connections = command::count(command, &["-c", "--clients"]);
        claim.asked = command::count(command, &["-n", "--requests"]);
    }
    // Each thread says how many clients it has; that many were there.
    let spawned = lines[floor..at].iter().filter_map(|line| clients(line)).reduce(u64::saturating_add);
    claim.connections = spawned.or(claim.connections);
    for line in block {
        let line = line.trim();
        if let Some(rest) = after(line, "finished in ") {
            let parts: Vec<&str> = rest.split(", ").collect();
            if let [duration, rate, ..] = parts[..] {
                claim.duration_s = scan::time(duration);
                claim.rate_per_s = rate.split_whitespace().next().and_then(Printed::parse);
                let transfer = parts.get(2).and_then(|part| part.strip_suffix("/s"));
                claim.transfer_bytes_per_s = transfer.and_then(scan::bytes);
            }
        } else if let Some(rest) = after(line, "requests:") {
            claim.requests = named(rest, "done");
            // An answer of 400 or more has failed too: it is among the statuses.
            let lost = ["errored", "timeout"].map(|name| named(rest, name).unwrap_or(0));
            claim.errors = Some(lost[0].max(lost[1]));
        } else if let Some(rest) = after(line, "status codes:") {
            for class in ["2xx", "3xx", "4xx", "5xx"] {
                if let Some(count) = named(rest, class).filter(|count| *count > 0) {
                    claim.statuses.insert(class.to_owned(), count);
                }
            }
        } else if let Some(rest) = after(line, "traffic:") {
            let exact = rest.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            claim.received_bytes = exact.and_then(|(count, _)| Printed::parse(count));
        } else if let Some(rest) = after(line, "time for request:") {
            let figures: Vec<&str> = rest.split_whitespace().collect();
            if let [min, max, mean, stdev, ..] = figures[..] {
                [claim.min_s, claim.max_s, claim.mean_s, claim.stdev_s] = [min, max, mean, stdev].map(time);
            }
        } else if line.starts_with("req/s  ") {
            break;
        }
    }
    claim
}

/// Whole microseconds are cut off, not rounded.
fn time(word: &str) -> Option<Printed> {
    scan::time(word).map(|time| if time.decimals == 0 { time.cut() } else { time })
}

/// `spawning thread #0: 8 total client(s). 20000 total requests`
fn clients(line: &str) -> Option<u64> {
    let (_, rest) = line.trim().strip_prefix("spawning thread #")?.split_once(": ")?;
    scan::count(rest.split_whitespace().next()?)
}

/// The count in front of a name: `20000 total, 20000 started`.
fn named(list: &str, name: &str) -> Option<u64> {
    list.split(',').find_map(|item| {
        let (count, what) = item.trim().split_once(' ')?;
        (what.trim() == name).then(|| scan::count(count))?
    })
}
