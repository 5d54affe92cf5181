//! What a program says of its own run: requests and times. Ours is read from its study, others' by the code of `audit`.

use std::path::Path;

use model::{Histogram, LoadStudy, Nanos, Study};
use serde::Serialize;

use crate::tools::Tool;

/// Its own words; absent is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Said {
    /// Requests that ended, by its count.
    pub(crate) requests: Option<u64>,
    /// Requests that failed.
    pub(crate) failed: Option<u64>,
    /// Response times.
    pub(crate) times: Times,
    /// How late requests were sent, of the one that says it.
    pub(crate) send_lag: Times,
    /// Lines that its log lacks.
    pub(crate) log_dropped: Option<u64>,
    /// Bytes of all requests, of the one that says it.
    pub(crate) sent_bytes: Option<u64>,
}

/// Percentiles, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Times {
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) p999: Option<f64>,
}

/// What it printed, understood; `None` where nothing of it is. `studies` is where longtail keeps its own.
pub(crate) fn said(tool: Tool, printed: &str, studies: &Path) -> Option<Said> {
    match (tool, tool.claims_as()) {
        (Tool::Floor, _) => {
            Some(Said { requests: Some(printed.trim().parse().ok()?), failed: Some(0), ..Said::default() })
        }
        (_, Some(audited)) => {
            let claim = audit::parse::claims(printed).into_iter().find(|claim| claim.tool == audited)?;
            let at = |q: f64| claim.percentile(q).map(|time| time.value * 1e9);
            Some(Said {
                requests: claim.ended(),
                failed: claim.failed(),
                times: Times { p50: at(0.5), p99: at(0.99), p999: at(0.999) },
                ..Said::default()
            })
        }
        (_, None) => study(studies).map(|study| ours(&study)),
    }
}

/// The only study in longtail's folder.
fn study(studies: &Path) -> Option<LoadStudy> {
    let file = std::fs::read_dir(studies).ok()?.flatten().map(|entry| entry.path()).next()?;
    match report::json::read(&std::fs::read_to_string(file).ok()?) {
        Ok(Study::Load(study)) => Some(*study),
        _ => None,
    }
}

fn ours(study: &LoadStudy) -> Said {
    let tally = &study.run.tally;
    Said {
        requests: Some(tally.all_requests()),
        failed: Some(tally.counts.failed() + tally.unmeasured.failed()),
        times: Times::of(&tally.response_time),
        send_lag: Times::of(&tally.send_lag),
        log_dropped: Some(study.log_dropped),
        sent_bytes: Some(tally.sent_bytes),
    }
}

impl Times {
    /// Of a histogram.
    pub(crate) fn of(histogram: &Histogram) -> Times {
        let at = |q: f64| histogram.quantile(q).map(|Nanos(ns)| ns as f64);
        Times { p50: at(0.5), p99: at(0.99), p999: at(0.999) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: &str = "/nonexistent";

    #[test]
    fn the_count_of_each_is_read() {
        let read = |tool, text| said(tool, text, Path::new(NOWHERE));
        let wrk = read(Tool::Wrk, testkit::output::WRK).unwrap();
        assert_eq!((wrk.requests, wrk.failed), (Some(10_000), Some(0)));
        assert_eq!(wrk.times, Times { p50: Some(1e6), p99: Some(1.5e6), p999: None });
        assert_eq!(read(Tool::Floor, "1234\n").unwrap().requests, Some(1234));
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        for tool in Tool::ALL {
            assert_eq!(said(tool, "unable to connect", Path::new(NOWHERE)), None, "{tool:?}");
        }
    }

    #[test]
    fn ours_says_what_its_tally_counts() {
        let study = testkit::load::closed();
        let said = ours(&study);
        let (measured, warm_up) = (&study.run.tally.counts, &study.run.tally.unmeasured);
        assert!(warm_up.total() > 0);
        assert_eq!(said.requests, Some(measured.total() + warm_up.total()));
        assert_eq!(said.failed, Some(measured.failed() + warm_up.failed()));
        assert_eq!(said.times.p50, study.run.tally.response_time.quantile(0.5).map(|time| time.0 as f64));
        assert!(said.times.p50 < said.times.p99 && said.sent_bytes.is_some());
    }
}
