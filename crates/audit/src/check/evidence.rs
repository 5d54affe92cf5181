//! The numbers that prove a finding.

use serde::{Deserialize, Serialize};

use crate::range::Range;

/// The numbers that prove a finding. Times in seconds; quotients as ranges are what rounding allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Evidence {
    /// Rate and mean against the requests at once.
    InFlight {
        /// Requests per second that have a time.
        rate_per_s: f64,
        /// Printed mean.
        mean_s: f64,
        /// Requests at once that there can be.
        at_once: u64,
        /// Rate x mean.
        in_flight: f64,
        /// That over `at_once`.
        ratio: f64,
        /// And as far as rounding allows.
        ratio_allowed: Range,
        /// `at_once` / rate: the only mean that Little's law allows.
        cycle_s: f64,
        /// Whether it ran until a count was sent, so that connections idle at its end.
        fixed_count: bool,
    },
    /// A mean forced by parts of the distribution.
    ForcedMean {
        /// At least this.
        least_s: f64,
        /// At most this; unknown without the longest.
        most_s: Option<f64>,
        /// The mean it is held against: printed, or at once / rate.
        mean_s: f64,
    },
    /// Figures that should rise.
    Order {
        /// The one that should not be larger.
        lower: String,
        /// Its time.
        lower_s: f64,
        /// The one that should not be smaller.
        upper: String,
        /// Its time.
        upper_s: f64,
    },
    /// Nothing out of order among so many.
    InOrder {
        /// Figures compared.
        figures: u64,
    },
    /// A standard deviation and its limit.
    Spread {
        /// Printed.
        stdev_s: f64,
        /// √((longest − mean)(mean − shortest)): Bhatia and Davis, 2000.
        most_s: f64,
    },
    /// Two counts, or two sums, that should be equal.
    Equal {
        /// As printed.
        printed: f64,
        /// As it follows from others.
        expected: f64,
        /// And as far as rounding allows.
        allowed: Range,
    },
    /// The shortest time against the server's sleep.
    Floor {
        /// Shortest time, or lowest percentile.
        shortest_s: f64,
        /// The sleep.
        delay_s: f64,
    },
    /// The rate against the closed form of a server that sleeps.
    Ideal {
        /// Printed.
        rate_per_s: f64,
        /// Slots / sleep, or connections / sleep where those are fewer.
        maximum_per_s: f64,
        /// The mean that Little's law leaves.
        cycle_s: f64,
        /// The mean if nothing but the sleep took time.
        ideal_s: f64,
    },
    /// How far times spread around what first come, first served gives everybody.
    Fairness {
        /// Connections / rate.
        cycle_s: f64,
        /// Half took at most this.
        median_s: f64,
        /// A tenth took at least this.
        p90_s: f64,
        /// Connections.
        connections: u64,
        /// What the server can process at once.
        slots: u64,
    },
    /// What `stats_correct` added.
    Phantoms {
        /// wrk's expected interval E, connections / rate.
        interval_s: f64,
        /// The part of the samples that was never sent, at least and at most.
        share: Range,
        /// Between the two, were the distribution straight between its percentiles.
        share_estimate: f64,
        /// The mean without them, estimated likewise.
        mean_without_s: f64,
        /// And its limits.
        mean_allowed_s: Range,
        /// How many times too large such samples make the mean, estimated; `None` where no mean is printed.
        predicted_ratio: Option<f64>,
        /// How many times too large it is; `None` where no mean is printed.
        printed_ratio: Option<f64>,
    },
    /// Connections or requests lost to a division.
    Truncated {
        /// Asked for.
        asked: u64,
        /// By how many it was divided: threads, or connections.
        among: u64,
        /// What was left.
        used: u64,
    },
    /// Times that are in no figure.
    SamplesLost {
        /// Requests that ended.
        requests: u64,
        /// Those with a time in the figures.
        kept: u64,
        /// How many times too large that makes the mean, where it does.
        mean_ratio: Option<f64>,
    },
    /// A rate that was not reached.
    Delivery {
        /// Asked for.
        offered_per_s: f64,
        /// Printed.
        achieved_per_s: f64,
        /// The part that is missing.
        missing: f64,
        /// Rate x mean: requests under way, on average; `None` without a mean.
        in_flight: Option<f64>,
    },
    /// D/D/c under a paced overload: every `slots` requests the answers take `step_s` longer.
    Staircase {
        /// Requests to a step: what the server processes at once.
        slots: u64,
        /// Steps.
        steps: u64,
        /// Mean rise from step to step, the first answer of each left out.
        step_s: f64,
        /// What the rise would be at the offered rate.
        step_expected_s: Option<f64>,
        /// By how much the first answer of a step exceeds the others.
        first_excess_s: f64,
        /// What a request occupies the server for at the least.
        hold_s: f64,
        /// Whether `hold_s` was told, and is not the mean of the first step.
        hold_told: bool,
        /// The first step's mean: the hold as measured.
        hold_measured_s: f64,
        /// Requests were at least this far apart.
        spacing_least_s: f64,
        /// So that no more were sent.
        sent_at_most_per_s: f64,
        /// And with the hold as measured.
        sent_estimate_per_s: f64,
        /// What was asked for.
        offered_per_s: Option<f64>,
        /// The part that is missing at the least.
        missing_least: Option<f64>,
    },
    /// The fullest worker decides when a fixed count is done.
    FullestWorker {
        /// Its part of all requests.
        largest_share: f64,
        /// Were it the only reason: threads / (unloaded time x largest share).
        predicted_per_s: f64,
        /// Printed.
        printed_per_s: f64,
        /// Slots / unloaded time.
        even_per_s: f64,
    },
    /// The population's standard deviation of the shares.
    SharesDeviation {
        /// Printed, in percentage points.
        printed_points: f64,
        /// √(Σ(share − 1/workers)² / workers).
        population_points: f64,
        /// √(Σ(share − 1/workers)² / (workers − 1)).
        sample_points: f64,
    },
    /// Requests that failed.
    Failures {
        /// How many.
        failed: u64,
        /// Of how many.
        requests: u64,
        /// Good ones per second; `None` where no rate is printed, or it counts only answers.
        good_per_s: Option<f64>,
        /// Of the failed, those whose time was too long to be in the figures.
        timeouts: u64,
        /// Whether failed ones have no status, and yet stand among the statuses.
        as_status_zero: bool,
    },
}
