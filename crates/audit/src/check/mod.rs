//! The checks: pure functions from a claim to what was found, with the figures that prove it and
//! the sentence that says it.
//!
//! A check that does not apply to a claim says nothing; one that applies but lacks a figure says
//! which.

mod counts;
mod histogram;
mod phantom;
mod server;
mod times;

use std::collections::BTreeMap;

use model::ClaimGrade;
use serde::Serialize;

use crate::claim::Claim;

/// What a check does with a claim.
type CheckFunction = fn(&Claim) -> Option<CheckOutcome>;

/// The table of checks: what is compared, the name in JSON, the name in text, and the function.
macro_rules! checks {
    ($($(#[doc = $doc:literal])* $check:ident = $name:literal $run:path;)*) => {
        /// The checks by name, as JSON has them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ClaimCheck {
            $($(#[doc = $doc])* $check,)*
        }

        /// Each check, its name in text and its function, in the order of a report.
        pub const CHECKS: &[(ClaimCheck, &str, CheckFunction)] = &[$((ClaimCheck::$check, $name, $run),)*];
    };
}

checks! {
    /// Rate x mean = requests at once.
    LittlesLaw = "Little's law" times::littles_law;
    /// The mean that the percentiles allow, against the one that Little's law allows.
    PercentilesAgainstRate = "percentiles against rate" times::percentiles_against_rate;
    /// The mean that the percentiles allow, against the printed one.
    PercentilesAgainstMean = "percentiles against mean" times::percentiles_against_mean;
    /// The mean that the histogram allows, against the printed one.
    HistogramAgainstMean = "histogram against mean" times::histogram_against_mean;
    /// By the histogram, as many times lie below each percentile as its rank says.
    HistogramAgainstPercentiles = "histogram against percentiles" histogram::against_percentiles;
    /// Percentiles rise and lie between the shortest and the longest time, and so does the mean.
    Order = "order of percentiles" times::order;
    /// A standard deviation that this mean, shortest and longest allow.
    Spread = "standard deviation" times::spread;
    /// Requests = rate x duration.
    RateTimesDuration = "rate x duration" counts::rate_times_duration;
    /// Responses and errors add up to the requests.
    OutcomesAddUp = "outcomes add up" counts::outcomes;
    /// The histogram's bins add up to the responses.
    HistogramAddsUp = "histogram adds up" counts::bins;
    /// Bytes = responses x bytes per response.
    BytesPerAnswer = "bytes per response" counts::bytes_per_answer;
    /// Bytes per second = bytes / duration.
    TransferRate = "bytes per second" counts::transfer_rate;
    /// No request is faster than the server sleeps.
    Floor = "nothing faster than the sleep" server::floor;
    /// No more than slots / sleep per second.
    TheoreticalMaximum = "theoretical maximum" server::maximum;
    /// First come, first served would give everybody about the mean.
    FirstComeFirstServed = "first come, first served" server::first_come_first_served;
    /// wrk's phantom samples.
    PhantomSamples = "phantom samples" phantom::samples;
    /// Connections that were really opened.
    ConnectionsOpened = "connections opened" counts::connections_opened;
    /// Requests that were really sent.
    RequestsSent = "requests sent" counts::requests_sent;
    /// All requests are in the times' figures.
    AllSamplesKept = "all times kept" counts::samples_kept;
    /// What was asked for was sent.
    OfferedRate = "offered rate" counts::offered_rate;
    /// The staircase of responses to a paced overload.
    Staircase = "staircase" server::staircase;
    /// Shares of the workers, and what the fullest one does to a fixed count.
    WorkerShares = "workers' shares" server::fullest_worker;
    /// The printed deviation of the shares.
    SharesDeviation = "Std Dev of the shares" server::shares_deviation;
    /// Requests that failed.
    Failures = "failures" counts::failures;
}

impl ClaimCheck {
    /// Its name in text.
    pub fn name(self) -> &'static str {
        CHECKS.iter().find(|(check, ..)| *check == self).map_or("", |(_, name, _)| name)
    }
}

/// A check and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditFinding {
    /// The check.
    pub check: ClaimCheck,
    /// Its outcome.
    pub outcome: CheckOutcome,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckOutcome {
    /// The outcome in a word.
    pub is: ClaimGrade,
    /// What was found, for a reader who has to decide whether to believe the claim; if the check
    /// could not be made, which figure is missing. Empty if all is well.
    pub text: String,
    /// The figures that prove it, by name, with times in seconds. Unknown ones are absent.
    pub figures: BTreeMap<&'static str, f64>,
}

/// A figure and what it is called.
type NamedFigure = (&'static str, f64);

/// A figure that is not known, among those that are.
const ABSENT: f64 = f64::NAN;

impl CheckOutcome {
    /// An outcome with this evidence, without the figures that are [`ABSENT`] or otherwise not
    /// numbers.
    fn new(is: ClaimGrade, figures: &[NamedFigure], text: String) -> CheckOutcome {
        CheckOutcome {
            is,
            text,
            figures: figures.iter().copied().filter(|(_, value)| value.is_finite()).collect(),
        }
    }
}

/// Fails if the claim is impossible; else is doubtful if it is not what a reader takes it for; else
/// holds.
#[expect(clippy::unnecessary_wraps, reason = "a check ends with it, and some have nothing to say")]
fn judged(
    is_impossible: bool,
    is_doubtful: bool,
    figures: &[NamedFigure],
    text: impl FnOnce() -> String,
) -> Option<CheckOutcome> {
    let is = match (is_impossible, is_doubtful) {
        (true, _) => ClaimGrade::Fails,
        (false, true) => ClaimGrade::Doubtful,
        (false, false) => {
            return Some(CheckOutcome::new(ClaimGrade::Holds, figures, String::new()));
        }
    };
    Some(CheckOutcome::new(is, figures, text()))
}

#[expect(clippy::unnecessary_wraps, reason = "a check ends with it, and some have nothing to say")]
fn unchecked(why: &str) -> Option<CheckOutcome> {
    Some(CheckOutcome::new(ClaimGrade::Unchecked, &[], why.to_owned()))
}

/// All that can be said about a claim.
pub(crate) fn all(claim: &Claim) -> Vec<AuditFinding> {
    let found = |(check, _, run): &(ClaimCheck, _, CheckFunction)| {
        Some(AuditFinding { check: *check, outcome: run(claim)? })
    };
    CHECKS.iter().filter_map(found).collect()
}
