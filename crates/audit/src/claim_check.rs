//! The names of the checks.

use serde::{Deserialize, Serialize};

/// The checks by name, as JSON has them; [`CHECKS`](crate::CHECKS) says what each does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimCheck {
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
