//! What a simulation answers: figures with their intervals.

use crate::{Invalid, check};

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Independent runs; 2 to 31.
    pub replications: u32,
    /// Requests measured in each.
    pub requests: u32,
    /// Requests before them, in each.
    pub warm_up: u32,
    /// Chooses what is random.
    pub seed: u64,
}

impl Effort {
    /// Ten runs of `requests` after a fifth of that as warm-up.
    pub fn new(requests: u32, seed: u64) -> Effort {
        Effort { replications: 10, requests, warm_up: requests / 5, seed }
    }

    pub(super) fn checked(self) -> Result<Effort, Invalid> {
        if self.replications < 2 {
            return Err(Invalid::TooFew { what: "replications", given: self.replications as usize, needed: 2 });
        }
        check::at_most("replications", self.replications, STUDENT.len() as u32 + 1)?;
        check::some("request", self.requests)?;
        Ok(self)
    }
}

/// A figure, and the half width of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// How far off chance may have put it.
    pub half_width: f64,
}

impl Estimate {
    /// Whether `exact` lies within `times` half widths.
    pub fn covers(&self, exact: f64, times: f64) -> bool {
        (self.value - exact).abs() <= self.half_width * times
    }
}

/// Student's t at 97.5 %, for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// One replication.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Ascending, once finished.
    pub(super) waits: Vec<f64>,
    /// Ascending, once finished.
    pub(super) responses: Vec<f64>,
    /// Requests per unit of time.
    pub(super) rate: f64,
}

impl Sample {
    pub(super) fn record(&mut self, wait: f64, response: f64) {
        self.waits.push(wait);
        self.responses.push(response);
    }

    pub(super) fn finished(mut self, span: f64) -> Sample {
        self.rate = self.waits.len() as f64 / span;
        self.waits.sort_by(f64::total_cmp);
        self.responses.sort_by(f64::total_cmp);
        self
    }
}

/// What was simulated.
#[derive(Clone, Debug)]
pub struct Simulated {
    samples: Vec<Sample>,
}

impl Simulated {
    pub(super) fn new(samples: Vec<Sample>) -> Simulated {
        Simulated { samples }
    }

    /// Requests per unit of time.
    pub fn rate(&self) -> Estimate {
        self.mean_of(|sample| sample.rate)
    }

    /// Share of the requests that waited at all.
    pub fn delayed(&self) -> Estimate {
        self.mean_of(|sample| {
            let none = sample.waits.partition_point(|wait| *wait <= 0.0);
            1.0 - none as f64 / sample.waits.len() as f64
        })
    }

    /// Mean wait.
    pub fn mean_wait(&self) -> Estimate {
        self.mean_of(|sample| mean(&sample.waits))
    }

    /// Mean response time.
    pub fn mean_response(&self) -> Estimate {
        self.mean_of(|sample| mean(&sample.responses))
    }

    /// Quantile of the wait, by nearest rank.
    ///
    /// # Errors
    /// Where `share` is not in 0 to 1.
    pub fn wait_quantile(&self, share: f64) -> Result<Estimate, Invalid> {
        check::share(share)?;
        Ok(self.mean_of(|sample| nearest_rank(&sample.waits, share)))
    }

    /// Quantile of the response time, by nearest rank.
    ///
    /// # Errors
    /// Where `share` is not in 0 to 1.
    pub fn response_quantile(&self, share: f64) -> Result<Estimate, Invalid> {
        check::share(share)?;
        Ok(self.mean_of(|sample| nearest_rank(&sample.responses, share)))
    }

    /// All response times, ascending.
    pub fn responses(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.samples.iter().flat_map(|sample| sample.responses.iter().copied()).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    fn mean_of(&self, figure: impl Fn(&Sample) -> f64) -> Estimate {
        let figures: Vec<f64> = self.samples.iter().map(figure).collect();
        let value = mean(&figures);
        let beyond = figures.len() - 1;
        let variance = figures.iter().map(|figure| (figure - value).powi(2)).sum::<f64>() / beyond as f64;
        Estimate { value, half_width: STUDENT[beyond - 1] * (variance / figures.len() as f64).sqrt() }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The least of an ascending, non-empty list that at least `share` of it do not exceed.
pub(crate) fn nearest_rank(ascending: &[f64], share: f64) -> f64 {
    // A share such as 0.9 is not exact in binary: 0.9 · 10 must not become the tenth.
    let rank = (share * ascending.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    ascending[rank.min(ascending.len()) - 1]
}
