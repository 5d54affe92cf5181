//! The numbers that prove a finding, and how they are said.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::claim::LoadTool;
use crate::claim_check::ClaimCheck;
use crate::figure::FigureRange;
use crate::number::{self, count_of, exact_time, percent, points, printed_rate, printed_time, rate, sum, time, times};

/// The numbers that prove a finding. Times in seconds; quotients as ranges are what rounding allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClaimEvidence {
    /// Rate and mean against the requests at once.
    InFlight(InFlight),
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
        allowed: FigureRange,
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
    Phantoms(PhantomSamples),
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
    Staircase(Staircase),
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

/// Rate and mean against the requests at once: Little's law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InFlight {
    /// Requests per second that have a time.
    pub rate_per_s: f64,
    /// Printed mean.
    pub mean_s: f64,
    /// Requests at once that there can be.
    pub at_once: u64,
    /// Rate x mean.
    pub in_flight: f64,
    /// That over `at_once`.
    pub ratio: f64,
    /// And as far as rounding allows.
    pub ratio_allowed: FigureRange,
    /// `at_once` / rate: the only mean that Little's law allows.
    pub cycle_s: f64,
    /// Whether it ran until a count was sent, so that connections idle at its end.
    pub fixed_count: bool,
}

/// The samples that wrk's `stats_correct` added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhantomSamples {
    /// wrk's expected interval E, connections / rate.
    pub interval_s: f64,
    /// The part of the samples that was never sent, at least and at most.
    pub share: FigureRange,
    /// Between the two, were the distribution straight between its percentiles.
    pub share_estimate: f64,
    /// The mean without them, estimated likewise.
    pub mean_without_s: f64,
    /// And its limits.
    pub mean_allowed_s: FigureRange,
    /// How many times too large such samples make the mean, estimated; `None` where no mean is printed.
    pub predicted_ratio: Option<f64>,
    /// How many times too large it is; `None` where no mean is printed.
    pub printed_ratio: Option<f64>,
}

/// The staircase of answers to a paced overload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Staircase {
    /// Requests to a step: what the server processes at once.
    pub slots: u64,
    /// Steps.
    pub steps: u64,
    /// Mean rise from step to step, the first answer of each left out.
    pub step_s: f64,
    /// What the rise would be at the offered rate.
    pub step_expected_s: Option<f64>,
    /// By how much the first answer of a step exceeds the others.
    pub first_excess_s: f64,
    /// What a request occupies the server for at the least.
    pub hold_s: f64,
    /// Whether `hold_s` was stated, and is not the mean of the first step.
    pub hold_is_known: bool,
    /// The first step's mean: the hold as measured.
    pub hold_measured_s: f64,
    /// Requests were at least this far apart.
    pub spacing_least_s: f64,
    /// So that no more were sent.
    pub sent_at_most_per_s: f64,
    /// And with the hold as measured.
    pub sent_estimate_per_s: f64,
    /// What was asked for.
    pub offered_per_s: Option<f64>,
    /// The part that is missing at the least.
    pub missing_least: Option<f64>,
}

impl ClaimEvidence {
    /// What was found, for whoever has to decide whether to believe the claim.
    pub(crate) fn sentence(&self, tool: LoadTool, check: ClaimCheck) -> String {
        match *self {
            ClaimEvidence::InFlight(ref found) => found.sentence(),
            ClaimEvidence::ForcedMean { least_s, most_s, mean_s } => {
                let whose = if check == ClaimCheck::HistogramAgainstMean { "the histogram" } else { "its percentiles" };
                let most = most_s.map_or_else(String::new, |most| format!(" and {} at the most", time(most)));
                let against = match check {
                    ClaimCheck::PercentilesAgainstRate => format!("connections / rate leaves {}", time(mean_s)),
                    _ => format!("the printed mean is {}", printed_time(mean_s)),
                };
                format!("{whose} force a mean of {} at the least{most}; {against}.", time(least_s))
            }
            ClaimEvidence::Order { ref lower, lower_s, ref upper, upper_s } => {
                format!("the {lower} is {} and yet the {upper} is {}.", printed_time(lower_s), printed_time(upper_s))
            }
            ClaimEvidence::InOrder { figures } => format!("{} in order.", count_of(figures, "figure")),
            ClaimEvidence::Spread { stdev_s, most_s } => {
                let (stdev, most) = (printed_time(stdev_s), time(most_s));
                format!("{stdev} is printed; with this mean and longest it is at most {most}.")
            }
            ClaimEvidence::Equal { printed, expected, allowed } => {
                let [printed, expected, low, high] = [printed, expected, allowed.low, allowed.high].map(sum);
                format!(
                    "{printed} is printed, and {expected} follows from the other figures ({low} to {high} as they are rounded)."
                )
            }
            ClaimEvidence::Floor { shortest_s, delay_s } => {
                let [shortest, delay] = [shortest_s, delay_s].map(printed_time);
                format!("{shortest} is printed, and the server sleeps {delay} over each request.")
            }
            ClaimEvidence::Ideal { rate_per_s, maximum_per_s, cycle_s, ideal_s } => {
                let ([mean, ideal], part) = ([cycle_s, ideal_s].map(time), percent(rate_per_s / maximum_per_s));
                let (printed, maximum) = (printed_rate(rate_per_s), rate(maximum_per_s));
                format!(
                    "{printed} is {part} of the {maximum} that the slots allow; the mean is {mean}, and {ideal} if nothing but the sleep took time."
                )
            }
            ClaimEvidence::Phantoms(ref found) => found.sentence(),
            ClaimEvidence::Truncated { asked, among, used } => {
                let (what, done, each) = match check {
                    ClaimCheck::ConnectionsOpened => ("connections", "opened", "threads takes"),
                    _ => ("requests", "sent", "connections sends"),
                };
                format!(
                    "{asked} {what} were asked for and {used} {done}: each of {among} {each} {asked} / {among}, without the rest."
                )
            }
            ClaimEvidence::Staircase(ref found) => found.sentence(),
            ClaimEvidence::FullestWorker { largest_share, predicted_per_s, printed_per_s, even_per_s } => {
                let [predicted, even] = [predicted_per_s, even_per_s].map(rate);
                let (share, printed) = (percent(largest_share), printed_rate(printed_per_s));
                format!(
                    "one worker got {share} of a fixed number of requests, and the run ends with it: that alone gives {predicted} instead of {even}, and {printed} is printed. The dip is imbalance, and not capacity."
                )
            }
            ClaimEvidence::SharesDeviation { printed_points, population_points, sample_points } => {
                let [printed, population, sample] = [printed_points, population_points, sample_points].map(points);
                format!(
                    "{printed} is printed; the printed shares have {population} (as a population) or {sample} (as a sample)."
                )
            }
            ClaimEvidence::Fairness { cycle_s, median_s, p90_s, connections, slots } => {
                let ([median, p90], everybody) = ([median_s, p90_s].map(printed_time), time(cycle_s));
                let cause = if tool.is_corrected_by_wrk() {
                    " (Puma up to 6 does, with keep-alive), or the slow samples are wrk's own, or both"
                } else {
                    ""
                };
                format!(
                    "first come, first served gives everybody about {everybody} with {connections} connections on {slots} slots; here half took {median} or less and a tenth {p90} or more. The server serves some connections many times in a row while others wait{cause}."
                )
            }
            ClaimEvidence::SamplesLost { .. } | ClaimEvidence::Delivery { .. } | ClaimEvidence::Failures { .. } => {
                self.what_is_left_out(tool)
            }
        }
    }

    /// Of what is not in the figures, or should not be: in parts.
    fn what_is_left_out(&self, tool: LoadTool) -> String {
        let mut text = String::new();
        match *self {
            ClaimEvidence::SamplesLost { requests, kept, mean_ratio } => {
                text = format!("of {} only {kept} have a time in the figures", count_of(requests, "request"));
                _ = match mean_ratio.map(times) {
                    Some(ratio) => write!(
                        text,
                        ": hey keeps the first million, and divides the sum of all times by as many, so that its mean is {ratio} times too large. Percentiles and histogram are of the start of the run."
                    ),
                    None => write!(text, "; the start of the run was used to calibrate."),
                };
            }
            ClaimEvidence::Delivery { offered_per_s, achieved_per_s, missing, in_flight } => {
                let ([asked, reached], part) = ([offered_per_s, achieved_per_s].map(printed_rate), percent(missing));
                text = format!(
                    "{asked} was asked for and {reached} reached: {part} of the load is missing, and the times are of a lighter one."
                );
                if let Some(n) = in_flight.map(number::in_flight) {
                    _ = write!(text, " On average {n} requests were under way.");
                }
            }
            ClaimEvidence::Failures { failed, requests, good_per_s, timeouts, as_status_zero } => {
                text = format!("{failed} of {} failed", count_of(requests, "request"));
                if let Some(good) = good_per_s {
                    let good = if failed >= requests { "none".to_owned() } else { rate(good) };
                    _ = write!(text, ", and are in its rate: {good} of it was good");
                }
                text.push('.');
                if timeouts > 0 {
                    _ = write!(text, " {timeouts} took longer than {tool}'s timeout and have left its distribution.");
                }
                if as_status_zero {
                    text += " Those without an answer stand among the statuses as 0, and nothing says that they are not in the times.";
                }
            }
            _ => {}
        }
        text
    }
}

impl InFlight {
    fn sentence(&self) -> String {
        let product = format!(
            "{} x {} is {} requests at once",
            printed_rate(self.rate_per_s),
            printed_time(self.mean_s),
            number::in_flight(self.in_flight)
        );
        let [low, high] = [self.ratio_allowed.low, self.ratio_allowed.high].map(times);
        let allowed =
            if low == high { "however it was rounded".to_owned() } else { format!("{low} to {high} as rounded") };
        let (at_once, ratio, cycle) = (self.at_once, times(self.ratio), time(self.cycle_s));
        if self.ratio >= 1.0 {
            return format!(
                "{product}, and there can be {at_once}: {ratio} times too many ({allowed}). At that rate the true mean is {cycle} at the most."
            );
        }
        let count = if self.fixed_count { ", or has sent its part and is done" } else { "" };
        format!(
            "{product}, of {at_once} that there should be: {ratio} times ({allowed}). A connection sends every {cycle} on average; for the rest of that it connects, waits for the generator{count}."
        )
    }
}

impl PhantomSamples {
    fn sentence(&self) -> String {
        let limit = if self.share.low > 0.0 {
            format!("at least {}", percent(self.share.low))
        } else {
            format!("up to {}", percent(self.share.high))
        };
        let mut text = format!(
            "after the run wrk adds a sample for every {} (connections / rate) that a longer one lasted. Of its samples {limit}, and about {}, were never sent. Without them the mean is about {}",
            time(self.interval_s),
            percent(self.share_estimate),
            time(self.mean_without_s)
        );
        if let (Some(predicted), Some(printed)) = (self.predicted_ratio, self.printed_ratio) {
            let (predicted, printed) = (times(predicted), times(printed));
            _ = write!(text, ": they make it {predicted} times too large, and {printed} is found");
        }
        text + "."
    }
}

impl Staircase {
    fn sentence(&self) -> String {
        let Staircase { slots, hold_s, .. } = *self;
        let expected = self.step_expected_s.map(|step| format!(" ({} at the offered rate)", time(step)));
        let mut text = format!(
            "every {slots} answers take {} longer{}, {} times: {slots} are processed at once. As each {} {} at the least, requests were {} or more apart: at most {} were sent",
            exact_time(self.step_s),
            expected.unwrap_or_default(),
            self.steps - 1,
            if self.hold_is_known { "sleeps" } else { "takes" },
            printed_time(hold_s),
            exact_time(self.spacing_least_s),
            rate(self.sent_at_most_per_s)
        );
        if let (Some(offered), Some(missing)) = (self.offered_per_s, self.missing_least.filter(|part| *part > 0.0)) {
            _ = write!(
                text,
                ", not {}: {} or more is missing (with the {} measured, {} was sent). The delay grows with every request, as when a generator sleeps after each send",
                printed_rate(offered),
                percent(missing),
                exact_time(self.hold_measured_s),
                rate(self.sent_estimate_per_s)
            );
        }
        text.push('.');
        if self.first_excess_s > 0.02 * hold_s {
            let excess = time(self.first_excess_s);
            _ = write!(
                text,
                " The first of every {slots} takes {excess} more than the others: one slow start is never forgotten."
            );
        }
        text
    }
}
