//! Response times are spread out; the figures don't say whether the server or the app is the
//! reason.

use serde::{Deserialize, Serialize};

use super::Finding;
use super::in_order::OrderEvidence;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, load};

/// Response times are spread out; the figures don't say whether the server or the app is the
/// reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread(OrderEvidence);

/// Describes a run that is not in order, and whose response times form no two distinct groups.
pub(super) fn of(point: &SweepPoint<'_>) -> Option<Finding> {
    Some(Spread(OrderEvidence::of(point)?).into())
}

impl Spread {
    pub(super) fn sentence(&self) -> String {
        let OrderEvidence { multiple, p50, p95, in_order, .. } = &self.0;
        format!(
            "At {} half of the requests take {} or less, and 5 % more than {}; first come, first served, each would take about {}.",
            load(*multiple),
            brief(*p50),
            brief(*p95),
            brief(*in_order)
        )
    }
}
