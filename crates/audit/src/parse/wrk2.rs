//! wrk2's report: wrk's with a rate, and times from when the schedule wanted a request sent.

use super::{command, scan, wrk};
use crate::claim::{Claim, Tool};
use crate::printed::Printed;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    wrk::reports(lines)
        .filter(|(_, block)| wrk::is_wrk2(block))
        .map(|(at, block)| {
            let mut claim = wrk::claim(Tool::Wrk2, lines, at, block);
            let rate = |command: &String| command::count(command, &["-R", "--rate"]);
            claim.offered_per_s = claim.command.as_ref().and_then(rate).map(|n| Printed {
                value: n as f64,
                half_width: 0.0,
                decimals: 0,
            });
            claim.samples = block.iter().find_map(|line| total_count(line));
            claim
        })
        .collect()
}

/// `#[Max     =       12.496, Total count    =        39500]`
fn total_count(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("Total count")?;
    scan::count(rest.trim_start().strip_prefix('=')?.trim().trim_end_matches(']'))
}
