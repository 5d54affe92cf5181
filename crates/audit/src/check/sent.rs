//! What a division left of what was asked for: wrk gives each thread connections / threads, hey each connection
//! requests / connections, both without the rest.

use super::{Check, Evidence, Finding};
use crate::claim::{Claim, Tool};

pub(super) fn connections(claim: &Claim) -> Option<Finding> {
    let (asked, among) = (claim.connections?, claim.threads?);
    let used = claim.used_connections()?;
    Some(judge(Check::ConnectionsOpened, asked, among, used))
}

pub(super) fn requests(claim: &Claim) -> Option<Finding> {
    let (asked, among) = (claim.asked?, claim.connections.filter(|n| *n > 0)?);
    if !claim.tool.is_heys() {
        return None;
    }
    let sent = claim.ended().filter(|_| claim.tool == Tool::Hey).unwrap_or(asked / among * among);
    Some(judge(Check::RequestsSent, asked, among, sent))
}

fn judge(check: Check, asked: u64, among: u64, used: u64) -> Finding {
    let evidence = Evidence::Truncated { asked, among, used };
    if used == asked { Finding::holds(check, evidence) } else { Finding::doubtful(check, evidence) }
}
