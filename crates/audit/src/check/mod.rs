//! The checks: pure functions from a claim to what was found, with the numbers that prove it. One file a check.
//!
//! A check that does not concern a claim says nothing; one that does, and lacks a figure, says which.

mod bytes;
mod counts;
mod delivery;
mod evidence;
mod failures;
mod finding;
mod first_come;
mod floor;
mod forced;
mod ideal;
mod little;
mod order;
mod phantom;
mod samples;
mod sent;
mod shares;
mod spread;
mod staircase;

use serde::{Deserialize, Serialize};

pub use self::evidence::Evidence;
pub use self::finding::{Finding, Outcome};
use crate::claim::Claim;

/// The checks by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Rate x mean = requests at once.
    LittlesLaw,
    /// The mean that the percentiles force, against the one that Little's law leaves.
    PercentilesAgainstRate,
    /// The mean that the percentiles force, against the printed one.
    PercentilesAgainstMean,
    /// The mean that the histogram forces, against the printed one.
    HistogramAgainstMean,
    /// Percentiles rise, and lie between shortest and longest; so does the mean.
    Order,
    /// A standard deviation that this mean, shortest and longest allow.
    Spread,
    /// Requests = rate x duration.
    RateTimesDuration,
    /// Answers and errors add up to the requests.
    OutcomesAddUp,
    /// The histogram's bins add up to the answers.
    HistogramAddsUp,
    /// Bytes = answers x bytes an answer.
    BytesPerAnswer,
    /// Bytes per second = bytes / duration.
    TransferRate,
    /// No request is faster than the server sleeps.
    Floor,
    /// No more than slots / sleep per second.
    TheoreticalMaximum,
    /// First come, first served would give everybody about the mean.
    FirstComeFirstServed,
    /// wrk's phantom samples.
    PhantomSamples,
    /// Connections that were really opened.
    ConnectionsOpened,
    /// Requests that were really sent.
    RequestsSent,
    /// All requests are in the times' figures.
    AllSamplesKept,
    /// What was asked for was sent.
    OfferedRate,
    /// The staircase of answers to a paced overload.
    Staircase,
    /// Shares of the workers, and what the fullest one does to a fixed count.
    WorkerShares,
    /// The printed deviation of the shares.
    SharesDeviation,
    /// Requests that failed.
    Failures,
}

/// All that can be said about a claim.
pub fn all(claim: &Claim) -> Vec<Finding> {
    let checks: [fn(&Claim) -> Option<Finding>; 23] = [
        little::law,
        forced::against_rate,
        forced::against_mean,
        forced::histogram,
        order::rises,
        spread::possible,
        counts::rate_times_duration,
        counts::outcomes,
        counts::bins,
        bytes::per_answer,
        bytes::transfer,
        floor::sleep,
        ideal::maximum,
        first_come::served,
        phantom::samples,
        sent::connections,
        sent::requests,
        samples::kept,
        delivery::offered,
        staircase::steps,
        shares::fullest,
        shares::deviation,
        failures::counted,
    ];
    checks.iter().filter_map(|check| check(claim)).collect()
}
