//! The checks: pure functions from a claim to what was found, with the numbers that prove it.
//!
//! A check that does not concern a claim says nothing; one that does, and lacks a figure, says which.

mod counts;
mod phantom;
mod server;
mod times;

use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::claim_check::ClaimCheck;
use crate::evidence::ClaimEvidence;

/// What a check does with a claim.
type CheckFunction = fn(&Claim) -> Option<CheckOutcome>;

/// Each check, its name in text, and what it does, in the order of a report.
pub const CHECKS: [(ClaimCheck, &str, CheckFunction); 23] = [
    (ClaimCheck::LittlesLaw, "Little's law", times::littles_law),
    (ClaimCheck::PercentilesAgainstRate, "percentiles against rate", times::percentiles_against_rate),
    (ClaimCheck::PercentilesAgainstMean, "percentiles against mean", times::percentiles_against_mean),
    (ClaimCheck::HistogramAgainstMean, "histogram against mean", times::histogram_against_mean),
    (ClaimCheck::Order, "order of percentiles", times::order),
    (ClaimCheck::Spread, "standard deviation", times::spread),
    (ClaimCheck::RateTimesDuration, "rate x duration", counts::rate_times_duration),
    (ClaimCheck::OutcomesAddUp, "outcomes add up", counts::outcomes),
    (ClaimCheck::HistogramAddsUp, "histogram adds up", counts::bins),
    (ClaimCheck::BytesPerAnswer, "bytes per answer", counts::bytes_per_answer),
    (ClaimCheck::TransferRate, "bytes per second", counts::transfer_rate),
    (ClaimCheck::Floor, "nothing faster than the sleep", server::floor),
    (ClaimCheck::TheoreticalMaximum, "theoretical maximum", server::maximum),
    (ClaimCheck::FirstComeFirstServed, "first come, first served", server::first_come_first_served),
    (ClaimCheck::PhantomSamples, "phantom samples", phantom::samples),
    (ClaimCheck::ConnectionsOpened, "connections opened", counts::connections_opened),
    (ClaimCheck::RequestsSent, "requests sent", counts::requests_sent),
    (ClaimCheck::AllSamplesKept, "all times kept", counts::samples_kept),
    (ClaimCheck::OfferedRate, "offered rate", counts::offered_rate),
    (ClaimCheck::Staircase, "staircase", server::staircase),
    (ClaimCheck::WorkerShares, "workers' shares", server::fullest_worker),
    (ClaimCheck::SharesDeviation, "Std Dev of the shares", server::shares_deviation),
    (ClaimCheck::Failures, "failures", counts::failures),
];

impl ClaimCheck {
    /// Its name in text.
    pub fn name(self) -> &'static str {
        CHECKS.iter().find(|(check, ..)| *check == self).map_or("", |(_, name, _)| name)
    }
}

/// A check with what it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditFinding {
    /// Which.
    pub check: ClaimCheck,
    /// And what.
    pub outcome: CheckOutcome,
}

/// What a check came to, with the numbers that prove it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The figures agree.
    Holds {
        /// The numbers.
        evidence: ClaimEvidence,
    },
    /// No judgement of its own, but the reason of another's.
    Explains {
        /// The numbers.
        evidence: ClaimEvidence,
    },
    /// It can be so, and is not what a reader takes it for.
    Doubtful {
        /// The numbers.
        evidence: ClaimEvidence,
    },
    /// It cannot be so, whatever rounding did.
    Fails {
        /// The numbers.
        evidence: ClaimEvidence,
    },
    /// A figure is missing.
    Unchecked {
        /// Which, or why else.
        why: String,
    },
}

impl CheckOutcome {
    /// The numbers; `None` where a figure is missing.
    pub fn evidence(&self) -> Option<&ClaimEvidence> {
        match self {
            CheckOutcome::Holds { evidence }
            | CheckOutcome::Explains { evidence }
            | CheckOutcome::Doubtful { evidence }
            | CheckOutcome::Fails { evidence } => Some(evidence),
            CheckOutcome::Unchecked { .. } => None,
        }
    }
}

/// Fails where it cannot be so, else is doubtful where it is not what a reader takes it for, else holds.
#[expect(clippy::unnecessary_wraps, reason = "a check ends with it, and some have nothing to say")]
fn judged(evidence: ClaimEvidence, is_impossible: bool, is_doubtful: bool) -> Option<CheckOutcome> {
    Some(match (is_impossible, is_doubtful) {
        (true, _) => CheckOutcome::Fails { evidence },
        (false, true) => CheckOutcome::Doubtful { evidence },
        (false, false) => CheckOutcome::Holds { evidence },
    })
}

#[expect(clippy::unnecessary_wraps, reason = "a check ends with it, and some have nothing to say")]
fn unchecked(why: &str) -> Option<CheckOutcome> {
    Some(CheckOutcome::Unchecked { why: why.to_owned() })
}

/// All that can be said about a claim.
pub fn all(claim: &Claim) -> Vec<AuditFinding> {
    let finding =
        |(check, _, run): (ClaimCheck, &str, CheckFunction)| Some(AuditFinding { check, outcome: run(claim)? });
    CHECKS.into_iter().filter_map(finding).collect()
}
