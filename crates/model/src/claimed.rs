//! What another generator (`--generator wrk`) claims about its run: the figures that it printed.
//!
//! Longtail recorded none of these figures: such a run has no tally and no histogram. What the
//! generator did not print is absent, never computed from something else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::diagnostic::ClaimGrade;
use crate::objective::ObjectiveFigure;
use crate::secret::MaskedText;
use crate::{Diagnostic, Nanos, PercentileTime};

/// What a generator says about its run. What it doesn't say is absent. Times are its own: most
/// count from when a request was sent, wrk2 from when it was due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorClaim {
    /// The generator: `wrk`, `hey`.
    pub by: String,
    /// Its version; `None` if it doesn't say.
    pub version: Option<String>,
    /// The command that made the run, as a shell takes it.
    pub command_line: MaskedText,
    /// Requests that ended.
    pub requests: Option<u64>,
    /// Requests that it counts as errors, bad statuses or timeouts, including those that never got
    /// a response.
    pub failed: Option<u64>,
    /// Requests per second.
    pub rate_per_s: Option<f64>,
    /// How long it says it ran.
    #[serde(rename = "duration_ns")]
    pub duration: Option<Nanos>,
    /// Mean time.
    #[serde(rename = "mean_ns")]
    pub mean: Option<Nanos>,
    /// Standard deviation of the times.
    #[serde(rename = "stdev_ns")]
    pub stdev: Option<Nanos>,
    /// Shortest time.
    #[serde(rename = "min_ns")]
    pub min: Option<Nanos>,
    /// Longest time.
    #[serde(rename = "max_ns")]
    pub max: Option<Nanos>,
    /// The percentiles that it printed, rising.
    pub percentiles: Vec<PercentileTime>,
    /// Responses by status (`200`) or class (`2xx`), if it reports them.
    pub statuses: BTreeMap<String, u64>,
    /// Bytes received.
    pub received_bytes: Option<f64>,
    /// Requests that it says ended in its warm-up, a separate run before this one; `None` if there
    /// was none, or it did not say.
    pub warm_up_requests: Option<u64>,
    /// Requests that the server counted, from before the warm-up until it was idle again; `None` if
    /// the server has no count.
    pub server_requests: Option<u64>,
    /// Whether its figures can be believed, after checking them against each other. The audit's
    /// results are among the run's warnings.
    pub audit: Believable,
    /// CPU time of its process, user and system, without the warm-up.
    #[serde(rename = "cpu_ns")]
    pub cpu: Option<Nanos>,
    /// All that it printed to stdout.
    pub output: MaskedText,
}

/// Whether a claim can be true, by the checks of `longtail audit`; the best first.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Believable {
    /// Its figures agree with each other.
    Possible,
    /// Nothing could be checked.
    #[default]
    Unchecked,
    /// They are possible, but don't mean what a reader would think.
    Doubtful,
    /// No run can have produced them.
    Impossible,
}

impl GeneratorClaim {
    /// `wrk 4.1.0`, or the name alone.
    pub fn name(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.by),
            None => self.by.clone(),
        }
    }

    /// The percentile `q` (0 to 1), if it was printed.
    pub fn percentile(&self, q: f64) -> Option<Nanos> {
        self.percentiles.iter().find(|one| (one.quantile - q).abs() < 1e-9).map(|one| one.time)
    }

    /// All requests that it reports: those that ended, and at least those that failed.
    fn all(&self) -> Option<u64> {
        Some(self.requests?.max(self.failed.unwrap_or(0)))
    }

    /// Good responses; `None` if errors or requests are not counted.
    pub fn good(&self) -> Option<u64> {
        Some(self.requests?.saturating_sub(self.failed?))
    }

    /// Requests that it says ended, its warm-up included.
    pub fn all_requests(&self) -> Option<u64> {
        Some(self.requests? + self.warm_up_requests.unwrap_or(0))
    }

    /// The value of an objective's figure, in its unit; `None` if the generator did not print it.
    pub(crate) fn figure(&self, figure: ObjectiveFigure) -> Option<f64> {
        let nanos = |time: Option<Nanos>| time.map(|time| time.0 as f64);
        match figure {
            ObjectiveFigure::ResponseTime(q) => nanos(self.percentile(q)),
            ObjectiveFigure::Mean => nanos(self.mean),
            ObjectiveFigure::Max => nanos(self.max),
            ObjectiveFigure::Errors => self.failed.map(|failed| failed as f64),
            ObjectiveFigure::ErrorShare => Some(self.failed? as f64 / self.all()?.max(1) as f64),
            // Its own rate; if requests failed, only the share of good ones.
            ObjectiveFigure::Completed => {
                let good = self.good()? as f64 / self.requests?.max(1) as f64;
                Some(self.rate_per_s? * good)
            }
            ObjectiveFigure::ServiceTime(_) | ObjectiveFigure::SentShare => None,
        }
    }

    /// Whether an impossible claim makes this figure useless: times always are, the rate is unless
    /// the audit (`found`) explains why only the times are wrong, and the count of errors never is.
    pub fn spoils(&self, figure: ObjectiveFigure, found: &[Diagnostic]) -> bool {
        let explains =
            |it: &Diagnostic| matches!(it, Diagnostic::Audited { is: ClaimGrade::Explains, .. });
        let touches = match figure {
            ObjectiveFigure::Errors | ObjectiveFigure::ErrorShare => false,
            ObjectiveFigure::Completed => !found.iter().any(explains),
            ObjectiveFigure::ResponseTime(_)
            | ObjectiveFigure::ServiceTime(_)
            | ObjectiveFigure::Mean
            | ObjectiveFigure::Max
            | ObjectiveFigure::SentShare => true,
        };
        self.audit == Believable::Impossible && touches
    }

    /// The warning, if the server counted fewer requests than the generator, or so many more that
    /// they cannot all have been in flight on its `connections` at the end of each of the `runs`
    /// (the warm-up is one).
    pub fn ledger_doubt(&self, connections: u32, runs: u64) -> Option<Diagnostic> {
        let claimed = self.all_requests()?;
        let server = self.server_requests?;
        let under_way = u64::from(connections) * runs;
        // Requests without a response may or may not have reached the server.
        let failed = self.failed.unwrap_or(0);
        let is_explained = server + failed >= claimed && server <= claimed + under_way + failed;
        (!is_explained).then(|| Diagnostic::ClaimDiffers {
            by: self.by.clone(),
            claimed,
            server,
            under_way,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(requests: u64, failed: u64, server: u64) -> GeneratorClaim {
        GeneratorClaim {
            by: "wrk".to_owned(),
            requests: Some(requests),
            failed: Some(failed),
            rate_per_s: Some(100.0),
            mean: Some(Nanos::from_millis(5)),
            percentiles: vec![PercentileTime { quantile: 0.99, time: Nanos::from_millis(9) }],
            warm_up_requests: Some(20),
            server_requests: Some(server),
            ..GeneratorClaim::default()
        }
    }

    #[test]
    fn a_figure_that_was_not_printed_is_none_and_never_guessed() {
        use ObjectiveFigure::{Completed, ErrorShare, Errors, Max, ResponseTime, SentShare};
        let figures =
            |of: [ObjectiveFigure; 4]| of.map(|figure| claim(100, 10, 120).figure(figure));
        assert_eq!(
            figures([ResponseTime(0.99), Errors, ErrorShare, Completed]),
            [Some(9e6), Some(10.0), Some(0.1), Some(90.0)]
        );
        assert_eq!(figures([ResponseTime(0.95), Max, SentShare, Max]), [None; 4]);
    }

    #[test]
    fn the_server_may_count_requests_in_flight_but_no_more() {
        let doubt = |requests, failed, server| claim(requests, failed, server).ledger_doubt(10, 2);
        assert_eq!((doubt(100, 0, 120), doubt(100, 0, 140)), (None, None));
        let differs = |server| {
            Some(Diagnostic::ClaimDiffers {
                by: "wrk".to_owned(),
                claimed: 120,
                server,
                under_way: 20,
            })
        };
        assert_eq!((doubt(100, 0, 141), doubt(100, 0, 119)), (differs(141), differs(119)));
        assert_eq!(doubt(100, 1, 119), None, "failed requests may never have arrived");
    }
}
