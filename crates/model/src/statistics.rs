//! How well a run knows its percentiles, which ones it supports, whether it was steady, and whether
//! its generator fell behind.
//!
//! Of `n` independent times, the number at or below the true quantile `p` is binomial, so it lies
//! between the `l`-th and `u`-th smallest with probability `F(u-1) - F(l-1)`, whatever the
//! distribution of the times (David, Nagaraja: Order Statistics, section 7.1). Times of one run are
//! not independent: `n` of them are worth `n / inflation`.

use serde::{Deserialize, Serialize};

use crate::batches::{Batch, Batches, QuantileRange};
use crate::histogram::rank;
use crate::steadiness::{FitPoint, SettledPart, line, mser, shift};
use crate::{Backlog, Nanos, ResponseTimeMap, Tally};

/// So many standard errors on either side of a mean are its 95 % interval.
pub const STANDARD_ERRORS: f64 = 1.96;

/// Statistics of a run, from its batches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// One for each percentile that the report prints, rising.
    pub intervals: Vec<Interval>,
    /// Whether the run was steady; `None` if it is too short to tell.
    pub steadiness: Option<Steadiness>,
    /// Whether the generator fell further and further behind; `None` if the run is too short to
    /// tell.
    pub lag_slope: Option<LagSlope>,
    /// Open loop: the backlog over time; `None` if the run is too short to tell.
    pub backlog: Option<Backlog>,
    /// Response time over due time; `None` without responses.
    pub time_map: Option<ResponseTimeMap>,
}

/// How well a percentile of the response times is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The percentile, 0 to 1.
    pub quantile: f64,
    /// How many responses are worth one independent one for this percentile (at least 1). `None` if
    /// the whole run is correlated, or too short to tell: then there is no 95 % interval. If the
    /// percentile hardly moved, a wider range stands in its place.
    pub inflation: Option<f64>,
    /// Lower end of the 95 % confidence interval.
    #[serde(rename = "low_ns")]
    pub low: Option<Nanos>,
    /// Its upper end; `None` if too few responses bound it.
    #[serde(rename = "high_ns")]
    pub high: Option<Nanos>,
    /// A lower bound of the percentile if the generator had never been late; the measured
    /// percentile is the upper bound. `None` if the generator's read lag was not measured.
    #[serde(rename = "without_generator_ns")]
    pub without_generator: Option<Nanos>,
}

impl Interval {
    /// How many independent responses the run's are worth for this percentile.
    pub fn effective(&self, answers: u64) -> Option<f64> {
        Some(answers as f64 / self.inflation?)
    }

    /// About how many responses it takes until the interval is at most ± `part` of the percentile,
    /// which is `time`. Its width shrinks with the square root of their number. `None` if it is
    /// narrow enough already.
    pub fn responses_needed(&self, answers: u64, time: Option<Nanos>, part: f64) -> Option<u64> {
        let both_ends = fewest_for_both_ends(self.quantile) * self.inflation.unwrap_or(1.0);
        let wide = time.zip(self.low).zip(self.high).map(|((time, low), high)| {
            let half = high.saturating_sub(low).as_secs_f64() / 2.0;
            answers as f64 * (half / (part * time.as_secs_f64().max(1e-9))).powi(2)
        });
        let needed = wide.unwrap_or(both_ends).ceil() as u64;
        (needed > answers).then_some(needed)
    }
}

/// Whether response times and rate stayed constant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    /// When the run became steady, since the start of its window; `None` if no steady part was
    /// found.
    #[serde(rename = "settled_after_ns")]
    pub settled_after: Option<Nanos>,
    /// The mean response time of the second half minus that of the first, as a share of the mean.
    pub shift: f64,
    /// That difference / its standard error.
    pub shift_in_errors: f64,
    /// How fast the response time grew with the due time, in seconds per second, by least squares.
    pub growth: f64,
    /// Growth / its standard error.
    pub growth_in_errors: f64,
}

/// The trend of the generator's own lag.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LagSlope {
    /// Growth of the lag, in seconds per second, by least squares.
    pub slope: f64,
    /// That growth / its standard error.
    pub in_errors: f64,
    /// How much the lag grew over the run, by that slope.
    #[serde(rename = "grown_ns")]
    pub grown: Nanos,
}

/// Shares of requests for which the generator may have been later than the lag that is subtracted
/// from a percentile. Each share gives a valid lower bound, so the largest of these bounds is
/// taken.
const SPARED: [f64; 8] = [0.0, 0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1];
/// Growth of the response time below this, in seconds per second, is too small for a run to show.
const GROWS: f64 = 0.01;
/// A figure of more standard errors than this is not chance.
const BEYOND_CHANCE: f64 = 6.0;
/// Numbers of parts into which a run is divided to compare their shares of slow responses.
const PARTS: [usize; 2] = [32, 16];
/// Fewer batches with responses than this are not enough.
const LEAST: usize = 16;
/// Batches per batch mean of MSER-5.
const MSER: usize = 5;

/// Percentiles that differ by less are the same: 99.9 / 100 is not quite 0.999.
const SAME: f64 = 1e-9;

impl Statistics {
    /// For a run with this tally and its good responses in `batches`. `percentiles`: those that its
    /// report prints.
    pub fn of(tally: &Tally, batches: &Batches, percentiles: &[f64]) -> Statistics {
        let each: Vec<Interval> =
            percentiles.iter().map(|q| interval(tally, batches, *q)).collect();
        Statistics {
            intervals: bounded_by_each_other(&each, tally.response_time.min()),
            steadiness: steadiness(batches),
            lag_slope: lag_slope(batches),
            backlog: None,
            time_map: ResponseTimeMap::of(batches),
        }
    }

    /// How fast response times grew, in seconds per second, if they kept growing.
    pub fn growth(&self) -> Option<f64> {
        let steadiness = self.steadiness?;
        let grows = steadiness.growth > GROWS && steadiness.growth_in_errors > BEYOND_CHANCE;
        (grows && steadiness.settled_after.is_none()).then_some(steadiness.growth)
    }

    /// Open loop: whether more was offered than the server can do, so that there is no steady
    /// state. If all requests wait their turn, response times keep growing. If some are served at
    /// once and others wait longer and longer, the backlog and the longest times grow. A growing
    /// backlog alone may also come from responses that take longer than the run, so it proves
    /// nothing.
    pub fn is_overload(&self, tally: &Tally) -> bool {
        self.backlog.is_some_and(|backlog| {
            self.growth().is_some() || backlog.grows() && tally.series.lengthens(backlog.over)
        })
    }

    /// The same with the trend of the backlog.
    #[must_use]
    pub fn with_backlog(self, backlog: Option<Backlog>) -> Statistics {
        Statistics { backlog, ..self }
    }

    /// Whether fewer than one independent response is expected above the percentile, or above a
    /// lower one.
    pub(crate) fn is_too_thin(&self, quantile: f64, answers: u64) -> bool {
        let is_thin = |interval: &Interval| {
            interval
                .effective(answers)
                .is_some_and(|effective| effective * (1.0 - interval.quantile) < 1.0 - 1e-9)
        };
        self.intervals.iter().take_while(|interval| interval.quantile <= quantile).any(is_thin)
    }

    /// The interval of a percentile, if it was one of those asked for.
    pub fn interval(&self, quantile: f64) -> Option<&Interval> {
        self.intervals.iter().find(|interval| (interval.quantile - quantile).abs() < SAME)
    }

    /// The interval of a percentile. Of one that was not asked for it reaches from the lower end of
    /// the percentile below to the upper end of the one above, which is wider: p98 is neither below
    /// the lower end of p95 nor above the upper end of p99. `None` if nothing is known of any.
    pub fn interval_of_any(&self, quantile: f64) -> Option<Interval> {
        if let Some(interval) = self.interval(quantile) {
            return Some(*interval);
        }
        let below = self.intervals.iter().filter(|interval| interval.quantile < quantile);
        let above = self.intervals.iter().filter(|interval| interval.quantile > quantile);
        let nearest = below.clone().next_back().or(above.clone().next())?;
        Some(Interval {
            quantile,
            low: below.filter_map(|interval| interval.low).max(),
            high: above.filter_map(|interval| interval.high).min(),
            without_generator: None,
            ..*nearest
        })
    }
}

/// The intervals, none of which reaches below that of a lower percentile or above that of a higher one,
/// nor below the shortest time. One that could not be told by itself lies between those.
fn bounded_by_each_other(each: &[Interval], shortest: Option<Nanos>) -> Vec<Interval> {
    let bounded = |interval: &Interval| {
        let below = each.iter().filter(|other| other.quantile <= interval.quantile);
        let above = each.iter().filter(|other| other.quantile >= interval.quantile);
        let low = below.filter_map(|other| other.low).chain(shortest).max();
        let high = above.filter_map(|other| other.high).min();
        match (interval.low, interval.high) {
            // Nothing bounds it on one side.
            (None, None) if high.is_none() => *interval,
            (None, Some(_)) => Interval { high, ..*interval },
            (Some(_), None) => Interval { low, ..*interval },
            (None | Some(_), _) => Interval { low, high, ..*interval },
        }
    };
    each.iter().map(bounded).collect()
}

fn interval(tally: &Tally, batches: &Batches, quantile: f64) -> Interval {
    let inflation = inflation(batches, quantile);
    let population = tally.population();
    let times = &tally.response_time;
    let (low, high) = match inflation {
        Some(inflation) => {
            let ranks = ranks(quantile, population, inflation);
            let time = |rank: Option<u64>| rank.and_then(|rank| times.at_rank(rank));
            (time(ranks.low), time(ranks.high))
        }
        None if population == times.count() => range_of_drift(batches, quantile).unzip(),
        None => (None, None),
    };
    Interval {
        quantile,
        inflation,
        low,
        high,
        without_generator: without_generator(tally, quantile),
    }
}

/// Between which times the percentile lies if it drifts a little through the whole run: what it was in
/// any sixteenth of it, and as far again on either side as it moved. `None` if it moved far, as in a run
/// whose times keep rising, or if there are too few responses.
fn range_of_drift(batches: &Batches, quantile: f64) -> Option<(Nanos, Nanos)> {
    /// Fewer responses above the percentile of a part, or below it, make that chance.
    const EACH_SIDE: u64 = 10;
    /// Farther than this share of the least is no small drift. Buckets are 3 % wide.
    const SMALL: f64 = 0.1;
    if batches.filled().iter().filter(|batch| batch.answers > 0).count() < LEAST {
        return None;
    }
    let QuantileRange { least, most, moved } =
        batches.range_of_quantile(quantile, LEAST, EACH_SIDE)?;
    let is_small = most.saturating_sub(least).as_secs_f64() <= SMALL * least.as_secs_f64();
    is_small.then(|| (least.saturating_sub(moved), most + moved))
}

/// `Q(p - η) - x`, where the generator's own lag was above `x` for a share `η` of the requests.
/// This holds for any distributions, independent or not. If the kernel stamps arrivals, the times
/// contain no other delay of the generator.
fn without_generator(tally: &Tally, quantile: f64) -> Option<Nanos> {
    let lag = &tally.generator_lag;
    let read = &tally.read_lag;
    // For responses without a stamp, the time includes the read lag; up to one in a hundred is
    // tolerated.
    if read.count() * 100 < 99 * tally.counts.good() || read.count() == 0 {
        return None;
    }
    tally.response_time_at(quantile).time()?;
    let bound = |spared: f64| {
        let most = if spared == 0.0 { lag.max()? } else { lag.quantile(1.0 - spared)? };
        let below = tally.response_time_at(quantile - spared).time()?;
        Some(below.saturating_sub(most))
    };
    SPARED.into_iter().filter(|spared| *spared < quantile).filter_map(bound).max()
}

/// How much more the share of responses above the quantile varies from part to part than among
/// independent responses, `B/(B-1) Σ(k - p·m)² / (n p (1-p))` over `B` parts with `k` such
/// responses of `m`: at least 1. `None` if neighbouring parts are similar however long they are, or
/// there are too few.
fn inflation(batches: &Batches, quantile: f64) -> Option<f64> {
    let filled = batches.filled().iter().filter(|batch| batch.answers > 0).count();
    if filled < LEAST {
        return None;
    }
    // All responses took about the same time: each is within a bucket of the true percentile.
    let Some(above) = batches.above(quantile) else { return Some(1.0) };
    let n = above.iter().map(|(answers, _)| answers).sum::<u64>() as f64;
    let slow = above.iter().map(|(_, above)| above).sum::<u64>() as f64;
    let p = slow / n.max(1.0);
    PARTS.into_iter().find_map(|parts| {
        let size = above.len().div_ceil(parts);
        let sum = |part: &[(u64, u64)]| {
            part.iter().fold((0, 0), |(m, k), (answers, above)| (m + answers, k + above))
        };
        let off: Vec<f64> =
            above.chunks(size).map(sum).map(|(m, k)| k as f64 - p * m as f64).collect();
        let count = off.len() as f64;
        let squares: f64 = off.iter().map(|e| e * e).sum();
        let neighbours: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
        // The autocorrelation of neighbouring parts, against its 95 % limit without correlation.
        let is_alike = squares > 0.0 && neighbours / squares >= 2.0 / count.sqrt();
        (!is_alike).then(|| (count / (count - 1.0) * squares / (n * p * (1.0 - p))).max(1.0))
    })
}

/// For each batch with responses: the middle of its time in seconds, and the mean in ns.
fn means(batches: &Batches, of: fn(&Batch) -> u128) -> Vec<FitPoint> {
    let width = batches.width().as_secs_f64();
    let filled = batches.filled().iter().enumerate().filter(|(_, batch)| batch.answers > 0);
    filled
        .map(|(at, batch)| FitPoint {
            x: (at as f64 + 0.5) * width,
            y: of(batch) as f64 / batch.answers as f64,
        })
        .collect()
}

fn steadiness(batches: &Batches) -> Option<Steadiness> {
    let means = means(batches, |batch| batch.response_time_sum);
    let times: Vec<f64> = means.iter().map(|mean| mean.y).collect();
    // The last batch may be incomplete.
    let filled = batches.filled();
    let counts: Vec<f64> =
        filled[..filled.len().saturating_sub(1)].iter().map(|batch| batch.answers as f64).collect();
    let settled = [mser(&times, MSER)?, mser(&counts, MSER)?];
    let shift = shift(&times)?;
    let growth = line(&means)?;
    let share_left_out = |settled: SettledPart| settled.after as f64 / settled.of as f64;
    let part = settled.into_iter().map(share_left_out).fold(0.0, f64::max);
    let span = batches.width().as_secs_f64() * filled.len() as f64;
    let is_steady = settled.into_iter().all(SettledPart::is_steady);
    Some(Steadiness {
        settled_after: is_steady.then_some(Nanos((part * span * 1e9) as u64)),
        shift: shift.of_mean,
        shift_in_errors: shift.in_errors,
        growth: growth.slope / 1e9,
        growth_in_errors: growth.t,
    })
}

fn lag_slope(batches: &Batches) -> Option<LagSlope> {
    let line = line(&means(batches, |batch| batch.lag_sum))?;
    let span = batches.width().as_secs_f64() * batches.filled().len() as f64;
    Some(LagSlope {
        slope: line.slope / 1e9,
        in_errors: line.t,
        grown: Nanos((line.slope * span).max(0.0) as u64),
    })
}

/// A percentile and its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PercentileTime {
    /// 0 to 1.
    pub quantile: f64,
    /// Its time.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
}

/// A percentile, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// The time.
    Time(Nanos),
    /// So many requests failed or had no response that they could change it.
    Unanswered,
    /// There are too few requests for it: fewer than one independent response is expected above it.
    TooFew,
    /// More was offered than the server can do: there is no steady state, and the time would only
    /// reflect the length of the run.
    Growing,
    /// Another generator made the run, and did not print it.
    NotPrinted,
}

impl Quantile {
    /// The time, if there is one.
    pub fn time(self) -> Option<Nanos> {
        match self {
            Quantile::Time(time) => Some(time),
            Quantile::Unanswered | Quantile::TooFew | Quantile::Growing | Quantile::NotPrinted => {
                None
            }
        }
    }

    /// What another generator printed.
    pub(crate) fn printed(time: Option<Nanos>) -> Quantile {
        time.map_or(Quantile::NotPrinted, Quantile::Time)
    }

    /// The same, if there is a steady state and the responses of `tally` are worth enough
    /// independent ones for quantile `q`.
    pub(crate) fn supported(
        self,
        statistics: Option<&Statistics>,
        q: f64,
        tally: &Tally,
    ) -> Quantile {
        let population = tally.population();
        match statistics {
            _ if self == Quantile::Unanswered => self,
            Some(statistics) if statistics.is_overload(tally) => Quantile::Growing,
            Some(statistics) if statistics.is_too_thin(q, population) => Quantile::TooFew,
            _ => self,
        }
    }
}

impl Tally {
    /// The response time at quantile `q` (0 to 1).
    ///
    /// The population is the good responses. Timeouts and requests that were in flight or not sent
    /// at the end would have been slower than any response, so they rank above all. There is no
    /// figure if the quantile falls among those, if failures of any kind make up `1 - q` or more,
    /// or if fewer than one request is expected above the quantile.
    pub fn response_time_at(&self, q: f64) -> Quantile {
        self.at(q, &self.response_time)
    }

    /// The service time at quantile `q` (0 to 1), by the same rules.
    pub fn service_time_at(&self, q: f64) -> Quantile {
        self.at(q, &self.service_time)
    }

    fn at(&self, q: f64, times: &crate::Histogram) -> Quantile {
        let counts = &self.counts;
        let good = counts.good();
        let longer = self.unfinished_above_all();
        let planned = (counts.total() + longer) as f64;
        let failed = (counts.failed() + longer) as f64;
        let part_above = (1.0 - q) * planned;
        if good == 0 || failed > 0.0 && failed > part_above - 1e-9 * planned {
            return Quantile::Unanswered;
        }
        let population = self.population();
        if population as f64 * (1.0 - q) < 1.0 - 1e-9 {
            return Quantile::TooFew;
        }
        times.at_rank(rank(q, population)).map_or(Quantile::Unanswered, Quantile::Time)
    }

    /// The longest response time; unknown if a request has no response.
    pub fn longest_response_time(&self) -> Quantile {
        match self.response_time.max() {
            Some(max) if self.counts.censored() + self.unfinished_above_all() == 0 => {
                Quantile::Time(max)
            }
            _ => Quantile::Unanswered,
        }
    }

    /// The number of requests that percentiles refer to: the good responses, and above them the
    /// requests that would have been slower.
    pub fn population(&self) -> u64 {
        self.counts.good() + self.counts.censored() + self.unfinished_above_all()
    }

    /// Requests that the user left without a response although they had waited longer than any
    /// response took. The others don't count: their response may have been about to arrive.
    pub fn unfinished_above_all(&self) -> u64 {
        self.unfinished.longer_than(self.response_time.max())
    }
}

/// More independent times than this don't narrow an interval visibly. A file may contain any count,
/// and the distribution has as many terms as its root.
const MOST_WORTH: u64 = 1 << 34;

/// The probability outside of an interval on each side.
const EACH_SIDE: f64 = 0.025;

/// The ranks (1-based) of the times between which the true quantile lies with 95 %; `None` if the
/// sample has no such time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantileRanks {
    /// The rank of the lower end.
    pub low: Option<u64>,
    /// The rank of the upper end.
    pub high: Option<u64>,
}

/// The ranks for the quantile `p` (0 to 1, exclusive) of `n` times that are worth `n / inflation`
/// independent ones (`inflation` ≥ 1): the highest `l` with `F(l-1) ≤ 2.5 %` and the lowest `u`
/// with `F(u-1) ≥ 97.5 %`, F the binomial distribution.
pub fn ranks(p: f64, n: u64, inflation: f64) -> QuantileRanks {
    let worth = ((n as f64 / inflation.max(1.0)).floor() as u64).min(MOST_WORTH);
    if worth == 0 || !(0.0 < p && p < 1.0) {
        return QuantileRanks { low: None, high: None };
    }
    let (first, weights) = binomial(p, worth);
    let distribution: Vec<f64> = weights
        .iter()
        .scan(0.0, |below, weight| {
            *below += weight;
            Some(*below)
        })
        .collect();
    // (If the weights begin above 0, the omitted ones are negligible.)
    let low = first + distribution.partition_point(|f| *f <= EACH_SIDE) as u64;
    let high = first + distribution.partition_point(|f| *f < 1.0 - EACH_SIDE) as u64 + 1;
    // Scales a rank among independent times to one among all.
    let scale = n as f64 / worth as f64;
    let scaled = |rank: u64| rank as f64 * scale;
    QuantileRanks {
        low: (low > 0).then(|| (scaled(low).floor() as u64).max(1)),
        high: (high <= worth).then(|| (scaled(high).ceil() as u64).min(n)),
    }
}

/// The fewest independent times of which one is above the quantile `p` with 97.5 %, so that the
/// interval has an upper end.
fn fewest_for_both_ends(p: f64) -> f64 {
    (EACH_SIDE.ln() / p.ln()).ceil()
}

/// The non-negligible binomial probabilities, and the count of the first one.
///
/// Computed by the recurrence `P(k+1) / P(k) = (n-k)/(k+1) · p/(1-p)` from the mode outwards and
/// normalized: exact to rounding for any `n`, in `O(√n)`.
pub fn binomial(p: f64, n: u64) -> (u64, Vec<f64>) {
    const NOTHING: f64 = 1e-20;
    let odds = p / (1.0 - p);
    let mode = (((n + 1) as f64 * p).floor() as u64).min(n);
    let mut down = Vec::new();
    let mut weight = 1.0;
    let mut k = mode;
    while k > 0 && weight > NOTHING {
        weight *= k as f64 / ((n - k + 1) as f64 * odds);
        k -= 1;
        down.push(weight);
    }
    let first = k;
    down.reverse();
    let mut weights = down;
    weights.push(1.0);
    (weight, k) = (1.0, mode);
    while k < n && weight > NOTHING {
        weight *= (n - k) as f64 / (k + 1) as f64 * odds;
        k += 1;
        weights.push(weight);
    }
    let sum: f64 = weights.iter().sum();
    for weight in &mut weights {
        *weight /= sum;
    }
    (first, weights)
}

/// Student's t at 97.5 %, for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Standard errors on each side of a 95 % interval.
pub(crate) const NORMAL: f64 = 1.959_964;

/// Student's t at 97.5 %: infinite without degrees of freedom; beyond 30 by the first term of its
/// series around the normal quantile, which is accurate to 0.1 %.
pub fn student(degrees_of_freedom: u64) -> f64 {
    match usize::try_from(degrees_of_freedom) {
        Ok(0) => f64::INFINITY,
        Ok(degrees @ 1..=30) => STUDENT[degrees - 1],
        _ => NORMAL + (NORMAL.powi(3) + NORMAL) / (4.0 * degrees_of_freedom as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::uniform;
    use crate::{Exchange, Outcome, Window};

    const WINDOW: Window = Window { from: Nanos::ZERO, until: Nanos::from_secs(10) };
    const PERCENTILES: [f64; 3] = [0.5, 0.9, 0.99];

    /// A run of 10 000 responses, a millisecond apart. Each takes `time` (ms) and was sent `lag`
    /// late.
    fn run(
        time: impl Fn(u64) -> f64,
        lag: impl Fn(u64) -> Nanos,
        is_stamped: bool,
    ) -> (Tally, Statistics) {
        let mut tally = Tally::new(WINDOW, 1);
        let mut batches = Batches::new(WINDOW);
        for n in 0..10_000 {
            let due = Nanos::from_millis(n);
            let sent = due + lag(n);
            let service = Nanos::from_secs_f64(time(n) / 1e3);
            let outcome = Outcome::Answered(200);
            let exchange =
                Exchange { due, sent, ended: sent + service, received_bytes: 0, outcome };
            tally.record(&exchange, 0);
            tally.generator_lag.record(lag(n));
            if is_stamped {
                tally.read_lag.record(Nanos(5_000));
            }
            batches.record(due, exchange.response_time(), lag(n));
        }
        let statistics = Statistics::of(&tally, &batches, &PERCENTILES);
        (tally, statistics)
    }

    fn none(_: u64) -> Nanos {
        Nanos::ZERO
    }

    /// Uniform from 1 to 101 ms.
    fn independent(n: u64) -> f64 {
        1.0 + 100.0 * uniform(1, n)
    }

    #[test]
    fn independent_responses_count_in_full() {
        let (_, statistics) = run(independent, none, true);
        for interval in &statistics.intervals {
            let inflation = interval.inflation.unwrap();
            assert!((1.0..2.0).contains(&inflation), "{inflation} at {}", interval.quantile);
            // The true percentile is inside the 95 % interval (the draw is always the same).
            let truth = Nanos::from_secs_f64((1.0 + 100.0 * interval.quantile) / 1e3);
            assert!(interval.low <= Some(truth) && Some(truth) <= interval.high, "{interval:?}");
        }
    }

    #[test]
    fn responses_in_groups_of_a_hundred_are_worth_a_hundredth() {
        let (tally, statistics) = run(|n| independent(n / 100), none, true);
        let interval = statistics.interval(0.5).unwrap();
        let inflation = interval.inflation.unwrap();
        assert!((30.0..300.0).contains(&inflation), "{inflation}");
        let truth = Some(Nanos::from_millis(51));
        assert!(interval.low < truth && truth < interval.high, "{interval:?}");
        // A hundred independent responses are too few for the upper end of p99, and hardly enough
        // for p99.
        assert_eq!(statistics.interval(0.99).unwrap().high, None);
        assert!(statistics.interval(0.99).unwrap().effective(tally.counts.good()) < Some(400.0));
    }

    #[test]
    fn a_percentile_that_hardly_drifts_lies_within_its_drift() {
        // 20.0 ms at first and 20.9 ms at the end; one in ten takes 5 ms more.
        let millis = |n: u64| {
            let slow = if n.is_multiple_of(10) { 5.0 } else { 0.0 };
            20.0 + slow + 0.9 * n as f64 / 10_000.0
        };
        let (_, statistics) = run(millis, none, true);
        let [median, rare] = [0.5, 0.99].map(|q| *statistics.interval(q).unwrap());
        assert!(median.inflation.is_none(), "{median:?}");
        let [low, high] = [median.low, median.high].map(|end| end.unwrap().as_millis_f64());
        // No percentile is below the shortest time.
        assert!((20.0..20.001).contains(&low) && (20.9..23.0).contains(&high), "{median:?}");
        assert!(rare.inflation.is_none() && rare.high.is_none(), "too few are slower: {rare:?}");
    }

    #[test]
    fn no_interval_reaches_beyond_that_of_another_percentile() {
        let millis = |time: Option<f64>| time.map(|time| Nanos((time * 1e6) as u64));
        let of = |(quantile, low, high): (f64, Option<f64>, Option<f64>)| Interval {
            quantile,
            inflation: None,
            low: millis(low),
            high: millis(high),
            without_generator: None,
        };
        let bounded = |all: &[(f64, Option<f64>, Option<f64>)]| {
            let each: Vec<Interval> = all.iter().map(|one| of(*one)).collect();
            let found = bounded_by_each_other(&each, Some(Nanos::from_millis(20)));
            let ends = |it: &Interval| [it.low, it.high].map(|end| end.map(Nanos::as_millis_f64));
            found.iter().map(ends).collect::<Vec<_>>()
        };
        let found = bounded(&[
            (0.5, Some(19.4), Some(21.0)),
            (0.9, Some(18.9), Some(22.0)),
            (0.95, None, None),
            (0.99, Some(20.9), Some(21.3)),
            (0.999, Some(20.5), None),
            (0.9999, None, None),
        ]);
        let expected = [
            [Some(20.0), Some(21.0)],
            [Some(20.0), Some(21.3)],
            [Some(20.0), Some(21.3)],
            [Some(20.9), Some(21.3)],
            [Some(20.9), None],
            [None, None],
        ];
        assert_eq!(found, expected);
        assert_eq!(bounded(&[(0.5, None, None), (0.9, None, None)]), [[None, None]; 2]);
    }

    #[test]
    fn a_run_whose_times_keep_rising_has_no_interval_and_no_steady_part() {
        let (_, statistics) = run(|n| 1.0 + n as f64 / 10.0, none, true);
        assert!(
            statistics.interval(0.5).is_some_and(|it| it.inflation.is_none() && it.low.is_none())
        );
        let steadiness = statistics.steadiness.unwrap();
        assert_eq!(steadiness.settled_after, None);
        assert!((steadiness.growth - 0.1).abs() < 1e-3, "0.1 s per second: {}", steadiness.growth);
        assert!(steadiness.shift > 0.9 && steadiness.shift_in_errors > 3.0);
        // A warm-up is left out.
        let (_, statistics) = run(|n| if n < 1_000 { 500.0 } else { independent(n) }, none, true);
        let settled = statistics.steadiness.unwrap().settled_after.unwrap();
        assert!((900..=2_000).contains(&(settled.0 / 1_000_000)), "{settled:?}");
    }

    #[test]
    fn the_generators_share_is_at_most_its_lag() {
        let ms = Nanos::from_millis;
        let (tally, statistics) = run(independent, |_| ms(3), true);
        for interval in &statistics.intervals {
            let time = tally.response_time_at(interval.quantile).time().unwrap();
            let part = time - interval.without_generator.unwrap();
            assert!((2_990_000..=3_100_000).contains(&part.0), "{part:?} at {}", interval.quantile);
        }
        // One request in a hundred was a second late: that affects p99, but hardly the median.
        let (tally, statistics) =
            run(independent, |n| if n % 100 == 7 { ms(1000) } else { none(n) }, true);
        let part = |q| {
            tally.response_time_at(q).time().unwrap()
                - statistics.interval(q).unwrap().without_generator.unwrap()
        };
        assert!(part(0.5) < ms(2) && part(0.9) < ms(2), "{:?} {:?}", part(0.5), part(0.9));
        let (_, unstamped) = run(independent, none, false);
        assert_eq!(
            unstamped.interval(0.5).unwrap().without_generator,
            None,
            "the read lag is unknown"
        );
    }

    #[test]
    fn a_generator_that_falls_further_behind_is_detected() {
        let (_, statistics) = run(independent, |n| Nanos(n * 10_000), true);
        let slope = statistics.lag_slope.unwrap();
        assert!((slope.slope - 0.01).abs() < 1e-4 && slope.in_errors > 100.0, "{slope:?}");
        assert!((99..=101).contains(&(slope.grown.0 / 1_000_000)), "{slope:?}");
        let (_, steady) = run(independent, |n| Nanos(n % 7 * 1_000), true);
        assert!(steady.lag_slope.unwrap().grown < Nanos::from_micros(2));
    }

    fn of(p: f64, n: u64) -> (Option<u64>, Option<u64>) {
        let QuantileRanks { low, high } = ranks(p, n, 1.0);
        (low, high)
    }

    /// P(l ≤ B < u) for the binomial B.
    fn coverage(p: f64, n: u64, l: u64, u: u64) -> f64 {
        let (first, weights) = binomial(p, n);
        (l..u)
            .map(|k| k.checked_sub(first).and_then(|at| weights.get(at as usize)).unwrap_or(&0.0))
            .sum()
    }

    #[test]
    fn ranks_match_the_published_table() {
        let table = [
            (0.5, 100, 40, Some(61), 0.96480),
            (0.5, 1000, 469, Some(532), 0.95371),
            (0.9, 100, 84, Some(96), 0.95569),
            (0.9, 1000, 881, Some(919), 0.95491),
            (0.99, 300, 293, None, 0.98853),
            (0.99, 1000, 983, Some(997), 0.97609),
            (0.99, 10_000, 9880, Some(9920), 0.95575),
            (0.999, 1000, 997, None, 0.98107),
            (0.999, 10_000, 9983, Some(9997), 0.97546),
            (0.999, 100_000, 99_880, Some(99_920), 0.95479),
        ];
        for (p, n, low, high, covered) in table {
            assert_eq!(of(p, n), (Some(low), high), "p {p} n {n}");
            let seen = coverage(p, n, low, high.unwrap_or(n + 1));
            assert!((seen - covered).abs() < 5e-6, "p {p} n {n}: {seen}");
        }
        // 1.96 √(n/4) on each side.
        assert_eq!(of(0.5, 100_000_000), (Some(50_000_000 - 9800), Some(50_000_000 + 9801)));
        assert_eq!(of(0.5, 0), (None, None));
    }

    #[test]
    fn the_fewest_times_for_an_upper_end_are_known() {
        // p^n ≤ 2.5 %.
        for (p, least) in
            [(0.9, 36), (0.95, 72), (0.99, 368), (0.995, 736), (0.999, 3688), (0.9999, 36_887)]
        {
            assert_eq!(
                (of(p, least - 1).1.is_some(), of(p, least).1.is_some()),
                (false, true),
                "p {p}"
            );
        }
    }

    #[test]
    fn correlated_times_are_worth_less() {
        let narrow = ranks(0.9, 10_000, 1.0);
        let wide = ranks(0.9, 10_000, 10.0);
        assert!(wide.low < narrow.low && wide.high > narrow.high);
        // Like 1000 independent times, each ten times.
        assert_eq!((wide.low, wide.high), (Some(8810), Some(9190)));
        assert_eq!(ranks(0.99, 1000, 10.0).high, None);
    }
}
