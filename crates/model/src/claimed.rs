//! A run that another generator made (`--generator wrk`): what it says of it, beside what others saw.
//!
//! Nothing here was recorded by us: there is no tally and no histogram, only the figures that the generator printed.
//! What it did not print is absent, never computed from something else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::objective::ObjectiveFigure;
use crate::{Diagnostic, Environment, Forecast, LoadPlan, Nanos, Placement, Reading, WorkerShare};

/// One run of another generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimedRun {
    /// Whose run it is: `wrk`, `hey`.
    pub by: String,
    /// Its version; `None` where it does not tell.
    pub version: Option<String>,
    /// The command that made the run, as a shell takes it.
    pub command_line: String,
    /// Connections that it was asked for, in total.
    pub connections: u32,
    /// What it says.
    pub claim: ClaimedFigures,
    /// All that it printed to stdout, as it came.
    pub output: String,
    /// Requests that it says ended in its own warm-up, a run before this one whose figures are thrown away; `None`
    /// where there was none, or it did not say.
    pub warm_up_requests: Option<u64>,
    /// What its figures, held against each other, leave of its claim.
    pub audit: Believable,
    /// What the audit has to say, in its words.
    pub findings: Vec<ClaimFinding>,
    /// CPU time of its process, user and system together, warm-up left out.
    #[serde(rename = "cpu_ns")]
    pub cpu: Option<Nanos>,
    /// From the start of its process to the end, warm-up left out.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Nanos,
    /// Share of all processors' time that the hypervisor gave to others, 0 to 1.
    pub steal: Option<f64>,
    /// Connects dropped by full accept queues in this network namespace.
    pub listen_overflows: Option<u64>,
    /// What is doubtful beside its own figures.
    pub warnings: Vec<Diagnostic>,
}

/// The figures that a generator printed; absent is what it does not say. Times are its own: of most from when a
/// request was sent, of wrk2 from when it was due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimedFigures {
    /// Requests that ended.
    pub requests: Option<u64>,
    /// Of them, and of those that never got an answer, what it counts as errors, bad statuses or timeouts.
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
    pub percentiles: Vec<ClaimedPercentile>,
    /// Answers by status (`200`) or class (`2xx`), where it tells them.
    pub statuses: BTreeMap<String, u64>,
    /// Bytes received.
    pub received_bytes: Option<f64>,
}

/// A percentile that a generator printed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimedPercentile {
    /// 0 to 1.
    pub quantile: f64,
    /// Its time.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
}

/// Whether a claim can be true, by the checks of `longtail audit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Believable {
    /// Its figures agree with each other.
    Possible,
    /// It can be, but is not what a reader takes it for.
    Doubtful,
    /// No run can have had these figures.
    Impossible,
    /// Nothing could be checked.
    Unchecked,
}

/// A finding of the audit that is worth a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimFinding {
    /// Which check: `Little's law`.
    pub check: String,
    /// How it came out.
    pub is: FindingGrade,
    /// The evidence in a sentence or two.
    pub text: String,
}

/// How a check came out that is worth a word, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingGrade {
    /// It cannot be so.
    Fails,
    /// It can be so, and is not what a reader takes it for.
    Doubtful,
    /// The reason of another finding.
    Explains,
}

/// One row of a sweep that another generator drove.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimedRow {
    /// Which pass over the list of multiples, from 1.
    pub repeat: u32,
    /// Connections / slots, as asked.
    pub multiple: f64,
    /// What the generator says, and what was seen of it.
    pub run: ClaimedRun,
    /// Requests that the server counted from before the warm-up to when it was idle again; `None` where it does not say.
    pub server_requests: Option<u64>,
    /// Each worker's part of them, by the server's statistics; empty where it does not say.
    pub workers: Vec<WorkerShare>,
    /// What the kernel saw.
    pub readings: Vec<Reading>,
    /// What theory expected.
    pub forecast: Option<Forecast>,
}

/// What `longtail load --generator` found: one run of another generator against a server that was there already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimedLoadStudy {
    /// Version of the file format.
    pub schema: u32,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// The command line that would repeat it.
    pub command_line: String,
    /// What was asked.
    pub plan: LoadPlan,
    /// The machine.
    pub environment: Environment,
    /// Where the server's processes may run, and where the generator does (`lanes`); `None` where it is not known who serves, and of
    /// older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// What the generator says, and what was seen of it.
    pub run: ClaimedRun,
    /// The objectives (`fail_if`) that were missed, with the figure that missed them.
    pub missed: Vec<String>,
}

impl ClaimedFigures {
    /// The percentile `q` (0 to 1), where it was printed.
    pub fn percentile(&self, q: f64) -> Option<Nanos> {
        self.percentiles.iter().find(|one| (one.quantile - q).abs() < 1e-9).map(|one| one.time)
    }

    /// All requests that it tells of: those that ended, and at least those that failed.
    fn all(&self) -> Option<u64> {
        Some(self.requests?.max(self.failed.unwrap_or(0)))
    }

    /// Good answers; `None` where errors or requests are not counted.
    pub fn good(&self) -> Option<u64> {
        Some(self.requests?.saturating_sub(self.failed?))
    }

    /// The value of an objective's figure, in its unit; `None` where the generator did not print it.
    pub fn figure(&self, figure: ObjectiveFigure) -> Option<f64> {
        let nanos = |time: Option<Nanos>| time.map(|time| time.0 as f64);
        match figure {
            ObjectiveFigure::ResponseTime(q) => nanos(self.percentile(q)),
            ObjectiveFigure::Mean => nanos(self.mean),
            ObjectiveFigure::Max => nanos(self.max),
            ObjectiveFigure::Errors => self.failed.map(|failed| failed as f64),
            ObjectiveFigure::ErrorShare => Some(self.failed? as f64 / self.all()?.max(1) as f64),
            // What it says itself; where requests failed, only the good part of it.
            ObjectiveFigure::Completed => {
                let good = self.good()? as f64 / self.requests?.max(1) as f64;
                Some(self.rate_per_s? * good)
            }
            ObjectiveFigure::ServiceTime(_) | ObjectiveFigure::SentShare => None,
        }
    }
}

impl ClaimedRun {
    /// `wrk 4.1.0`, or the name alone.
    pub fn name(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.by),
            None => self.by.clone(),
        }
    }

    /// What the machine did meanwhile, as far as it was not as it should be.
    pub fn machine_troubles(&self) -> Vec<Diagnostic> {
        let steal = self.steal.map(|share| Diagnostic::Steal { share });
        let overflows = self.listen_overflows.map(|dropped| Diagnostic::ListenOverflows { dropped });
        steal.into_iter().chain(overflows).filter(|check| check.grade() > crate::Grade::Passed).collect()
    }

    /// Processors that it kept busy, on average; `None` where its CPU time is not known.
    pub fn processors_used(&self) -> Option<f64> {
        let elapsed = self.elapsed.as_secs_f64();
        self.cpu.filter(|_| elapsed > 0.0).map(|cpu| cpu.as_secs_f64() / elapsed)
    }

    /// Requests that it says ended, its warm-up included.
    pub fn claimed_requests(&self) -> Option<u64> {
        Some(self.claim.requests? + self.warm_up_requests.unwrap_or(0))
    }
}

impl ClaimedRow {
    /// Claimed rate over the theoretical maximum (1 is all of it).
    pub fn of_maximum(&self) -> Option<f64> {
        Some(self.run.claim.rate_per_s? / self.forecast.as_ref()?.maximum_rate)
    }

    /// The claimed time at quantile `q` over the ideal first-come-first-served time (1 is ideal).
    pub fn of_ideal(&self, q: f64) -> Option<f64> {
        let ideal = self.forecast.as_ref()?.ideal_response_time;
        let time = self.run.claim.percentile(q)?;
        (ideal > Nanos::ZERO).then(|| time.0 as f64 / ideal.0 as f64)
    }

    /// Longest over 10th percentile, where both were printed.
    pub fn long_tail(&self) -> Option<f64> {
        let (max, p10) = (self.run.claim.max?, self.run.claim.percentile(0.10)?);
        (p10 > Nanos::ZERO).then(|| max.0 as f64 / p10.0 as f64)
    }

    /// The workers' relative deviations from an even share, rising.
    pub fn worker_deviations(&self) -> Vec<f64> {
        crate::run::deviations(&self.workers)
    }

    /// Where the server counted other requests than the generator tells of: more than could have been under way on its
    /// connections when its time was up, in each of `runs` (the warm-up is one), or fewer.
    pub fn ledger_doubt(&self, runs: u64) -> Option<Diagnostic> {
        let (claimed, server) = (self.run.claimed_requests()?, self.server_requests?);
        let under_way = u64::from(self.run.connections) * runs;
        // What had no answer may or may not have reached the server.
        let failed = self.run.claim.failed.unwrap_or(0);
        let is_explained = server + failed >= claimed && server <= claimed + under_way + failed;
        (!is_explained).then(|| Diagnostic::ClaimDiffers { by: self.run.by.clone(), claimed, server, under_way })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(requests: u64, failed: u64) -> ClaimedRun {
        ClaimedRun {
            by: "wrk".to_owned(),
            version: Some("4.1.0".to_owned()),
            command_line: "wrk".to_owned(),
            connections: 10,
            claim: ClaimedFigures {
                requests: Some(requests),
                failed: Some(failed),
                rate_per_s: Some(100.0),
                mean: Some(Nanos::from_millis(5)),
                percentiles: vec![ClaimedPercentile { quantile: 0.99, time: Nanos::from_millis(9) }],
                ..ClaimedFigures::default()
            },
            output: String::new(),
            warm_up_requests: Some(20),
            audit: Believable::Possible,
            findings: Vec::new(),
            cpu: Some(Nanos::from_millis(500)),
            elapsed: Nanos::from_secs(1),
            steal: Some(0.0),
            listen_overflows: Some(0),
            warnings: Vec::new(),
        }
    }

    fn row(requests: u64, failed: u64, server: u64) -> ClaimedRow {
        ClaimedRow {
            repeat: 1,
            multiple: 1.0,
            run: run(requests, failed),
            server_requests: Some(server),
            workers: Vec::new(),
            readings: Vec::new(),
            forecast: None,
        }
    }

    #[test]
    fn a_figure_that_was_not_printed_is_none_and_never_guessed() {
        let claim = run(100, 10).claim;
        assert_eq!(claim.figure(ObjectiveFigure::ResponseTime(0.99)), Some(9e6));
        assert_eq!(claim.figure(ObjectiveFigure::ResponseTime(0.95)), None);
        assert_eq!((claim.figure(ObjectiveFigure::Max), claim.figure(ObjectiveFigure::SentShare)), (None, None));
        assert_eq!(
            (claim.figure(ObjectiveFigure::Errors), claim.figure(ObjectiveFigure::ErrorShare)),
            (Some(10.0), Some(0.1))
        );
        assert_eq!(claim.figure(ObjectiveFigure::Completed), Some(90.0));
    }

    #[test]
    fn the_server_may_have_counted_what_was_under_way_and_no_more() {
        assert_eq!(row(100, 0, 120).ledger_doubt(2), None);
        assert_eq!(row(100, 0, 140).ledger_doubt(2), None);
        let differs =
            |server| Some(Diagnostic::ClaimDiffers { by: "wrk".to_owned(), claimed: 120, server, under_way: 20 });
        assert_eq!(row(100, 0, 141).ledger_doubt(2), differs(141));
        assert_eq!(row(100, 0, 119).ledger_doubt(2), differs(119));
        assert_eq!(row(100, 1, 119).ledger_doubt(2), None, "what failed may never have come");
    }

    #[test]
    fn a_claimed_run_survives_its_file() {
        let row = row(100, 3, 120);
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<ClaimedRow>(&text).unwrap(), row);
    }
}
