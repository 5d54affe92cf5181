//! oha's summary: hey's lines with other units, and the connections from a command line above it.

use super::{command, hey, scan};
use crate::claim::{Claim, Tool};
use crate::printed::Printed;

/// What `-c` is when it is not given.
const CONNECTIONS: u64 = 50;

pub(super) fn claims(lines: &[String]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut floor = 0;
    for (at, block) in hey::summaries(lines) {
        if hey::is_ohas(block) {
            claims.push(claim(lines, at, floor, block));
        }
        floor = at + 1;
    }
    claims
}

fn claim(lines: &[String], at: usize, floor: usize, block: &[String]) -> Claim {
    let mut claim = Claim::new(Tool::Oha, at + 1);
    hey::figures(&mut claim, block);
    if let Some(command) = command::above(lines, at, floor, "oha") {
        claim.command = Some(command.to_owned());
        claim.connections = command::count(command, &["-c"]).or(Some(CONNECTIONS));
        claim.streams = command::count(command, &["-p"]);
        let timed = command::option(command, &["-z"], scan::time).is_some();
        claim.asked = command::count(command, &["-n"]).filter(|_| !timed);
        claim.offered_per_s =
            command::option(command, &["-q"], Printed::parse).map(|rate| Printed { half_width: 0.0, ..rate });
    }
    claim
}
