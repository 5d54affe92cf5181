//! Which percentiles a tally supports, and what they are.

use serde::{Deserialize, Serialize};

use crate::histogram::rank;
use crate::{Nanos, Statistics, Tally};

/// A percentile and what it is.
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
    /// So many requests failed or had no answer that they could change it.
    Unanswered,
    /// There are too few requests for it: fewer than one independent answer is expected above it.
    TooFew,
    /// More was offered than the server can do: there is no steady state, and the time would only say how long the run was.
    Growing,
    /// Another generator made the run, and did not print it.
    NotPrinted,
}

impl Quantile {
    /// The time, where there is one.
    pub fn time(self) -> Option<Nanos> {
        match self {
            Quantile::Time(time) => Some(time),
            Quantile::Unanswered | Quantile::TooFew | Quantile::Growing | Quantile::NotPrinted => None,
        }
    }

    /// What another generator printed.
    pub(crate) fn printed(time: Option<Nanos>) -> Quantile {
        time.map_or(Quantile::NotPrinted, Quantile::Time)
    }

    /// The same, if there is a steady state, and the answers of `tally` are worth enough independent ones for quantile `q`.
    pub(crate) fn supported(self, statistics: Option<&Statistics>, q: f64, tally: &Tally) -> Quantile {
        let population = tally.counts.good() + tally.counts.censored();
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
    /// Good answers are the population. A timeout or a request in flight would have been slower than any answer, so
    /// each stands above them; where the quantile falls among those, or failures of any kind are as large a part as `1 - q`,
    /// or fewer than one request is expected above the quantile, there is no figure.
    pub fn response_time_at(&self, q: f64) -> Quantile {
        self.at(q, &self.response_time)
    }

    /// The service time at quantile `q` (0 to 1), by the same rules.
    pub fn service_time_at(&self, q: f64) -> Quantile {
        self.at(q, &self.service_time)
    }

    fn at(&self, q: f64, times: &crate::Histogram) -> Quantile {
        let counts = &self.counts;
        let (good, planned, failed) = (counts.good(), counts.total() as f64, counts.failed() as f64);
        let part_above = (1.0 - q) * planned;
        if good == 0 || failed > 0.0 && failed > part_above - 1e-9 * planned {
            return Quantile::Unanswered;
        }
        let population = good + counts.censored();
        if population as f64 * (1.0 - q) < 1.0 - 1e-9 {
            return Quantile::TooFew;
        }
        times.at_rank(rank(q, population)).map_or(Quantile::Unanswered, Quantile::Time)
    }

    /// The longest response time; unknown where a request has no answer.
    pub fn longest_response_time(&self) -> Quantile {
        match self.response_time.max() {
            Some(max) if self.counts.censored() == 0 => Quantile::Time(max),
            _ => Quantile::Unanswered,
        }
    }
}
