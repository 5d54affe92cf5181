//! The closed form of a server that only sleeps, in a closed loop of N connections on c slots: rate = min(N, c) / sleep,
//! mean = N / rate, exactly, for any order of service.

use super::{Check, Evidence, Finding};
use crate::claim::Claim;

/// A sleep may be cut short by a timer's tick.
const TICK: f64 = 0.005;

pub(super) fn maximum(claim: &Claim) -> Option<Finding> {
    let delay = claim.delay_s.filter(|delay| *delay > 0.0)?;
    let (server, rate) = (claim.server?, claim.rate_per_s?);
    let check = Check::TheoreticalMaximum;
    let (Some(at_once), Some(cycle)) = (claim.at_once(), claim.cycle_s()) else {
        return Some(Finding::unchecked(check, "connections are not told"));
    };
    let maximum_per_s = at_once.min(server.slots()) as f64 / delay;
    let evidence = Evidence::Ideal {
        rate_per_s: rate.value,
        maximum_per_s,
        cycle_s: cycle.middle(),
        ideal_s: at_once as f64 / maximum_per_s,
    };
    Some(if rate.range().low > maximum_per_s * (1.0 + TICK) {
        Finding::fails(check, evidence)
    } else {
        Finding::holds(check, evidence)
    })
}
