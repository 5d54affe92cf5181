//! What a generator printed as figures of its claim, and what the audit leaves of it. Nothing is computed that it did not
//! print, but for its errors, which are added up.

use audit::claim::ClaimedServer;
use audit::{AuditedClaim, CheckOutcome, Claim, ClaimVerdict, PrintedFigure};
use model::claimed::{Believable, ClaimFinding, ClaimedFigures, ClaimedPercentile, FindingGrade};
use model::{Nanos, ServerFacts};

use crate::generators::Generator;

/// A claim as it was understood and checked.
pub(crate) struct Understood {
    pub(crate) figures: ClaimedFigures,
    pub(crate) audit: Believable,
    pub(crate) findings: Vec<ClaimFinding>,
}

/// What is known of the server whom the load went to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'a> {
    pub(crate) server: Option<&'a ServerFacts>,
    /// How long it sleeps over each request.
    pub(crate) delay: Option<Nanos>,
}

/// What `generator` printed after this command line; `None` where it is not understood.
pub(crate) fn understood(
    generator: Generator,
    (command_line, printed): (&str, &str),
    connections: u32,
    known: Known<'_>,
) -> Option<Understood> {
    let tool = generator.tool()?;
    // The command line says what the output does not: connections, and what was asked for.
    let text = format!("{command_line}\n{printed}");
    let mut claim = audit::parse::claims(&text).into_iter().find(|claim| claim.tool == tool)?;
    claim.connections.get_or_insert(u64::from(connections));
    let server =
        known.server.map(|facts| ClaimedServer { workers: facts.workers.into(), threads: facts.threads.into() });
    claim.server = claim.server.or(server);
    claim.delay_s = claim.delay_s.or(known.delay.map(Nanos::as_secs_f64));
    let figures = figures(&claim);
    let audited = audit::audit_claim(claim);
    Some(Understood { figures, audit: believable(&audited.verdict), findings: findings(&audited) })
}

fn figures(claim: &Claim) -> ClaimedFigures {
    let time = |printed: Option<PrintedFigure>| printed.map(nanos);
    ClaimedFigures {
        requests: claim.ended(),
        failed: claim.failed(),
        rate_per_s: claim.rate_per_s.map(|rate| rate.value),
        duration: time(claim.duration_s),
        mean: time(claim.mean_s),
        stdev: time(claim.stdev_s),
        min: time(claim.min_s),
        max: time(claim.max_s),
        percentiles: claim
            .percentiles
            .iter()
            .map(|one| ClaimedPercentile { quantile: one.quantile, time: nanos(one.time_s) })
            .collect(),
        statuses: claim.statuses.clone(),
        received_bytes: claim.received_bytes.map(|bytes| bytes.value),
    }
}

/// A printed time, to the nanosecond: it has at most as many digits.
fn nanos(printed: PrintedFigure) -> Nanos {
    Nanos((printed.value * 1e9).round() as u64)
}

fn believable(verdict: &ClaimVerdict) -> Believable {
    match verdict {
        ClaimVerdict::Possible => Believable::Possible,
        ClaimVerdict::Doubtful { .. } => Believable::Doubtful,
        ClaimVerdict::Impossible { .. } => Believable::Impossible,
        ClaimVerdict::Unchecked => Believable::Unchecked,
    }
}

fn findings(audited: &AuditedClaim) -> Vec<ClaimFinding> {
    let grade = |outcome: &CheckOutcome| match outcome {
        CheckOutcome::Fails { .. } => Some(FindingGrade::Fails),
        CheckOutcome::Doubtful { .. } => Some(FindingGrade::Doubtful),
        CheckOutcome::Explains { .. } => Some(FindingGrade::Explains),
        CheckOutcome::Holds { .. } | CheckOutcome::Unchecked { .. } => None,
    };
    let told = audited.findings.iter().filter_map(|finding| Some((grade(&finding.outcome)?, finding)));
    let mut findings: Vec<ClaimFinding> = told
        .map(|(is, finding)| ClaimFinding {
            check: finding.check.name().to_owned(),
            is,
            text: audited.sentence(finding),
        })
        .collect();
    // What cannot be first, then what is doubtful, then why.
    findings.sort_by_key(|finding| match finding.is {
        FindingGrade::Fails => 0,
        FindingGrade::Doubtful => 1,
        FindingGrade::Explains => 2,
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::output::WRK;

    fn read(printed: &str) -> Option<Understood> {
        understood(Generator::Wrk, ("wrk -t1 -c10 -d1s http://127.0.0.1:1/", printed), 10, Known::default())
    }

    #[test]
    fn only_what_was_printed_is_a_figure() {
        let figures = read(WRK).unwrap().figures;
        let quantiles: Vec<f64> = figures.percentiles.iter().map(|one| one.quantile).collect();
        assert_eq!(quantiles, [0.5, 0.75, 0.9, 0.99]);
        assert_eq!((figures.requests, figures.failed, figures.min), (Some(10_000), Some(0), None));
        assert_eq!((figures.percentile(0.99), figures.max), (Some(Nanos(1_500_000)), Some(Nanos(2_000_000))));
    }

    #[test]
    fn errors_are_those_that_it_tells() {
        let with_errors =
            WRK.replace("Requests/sec", "  Socket errors: connect 1, read 2, write 3, timeout 4\nRequests/sec");
        assert_eq!(read(&with_errors).unwrap().figures.failed, Some(10));
    }

    #[test]
    fn a_mean_beyond_littles_law_is_found_out() {
        let read = read(&WRK.replace("Latency     1.00ms", "Latency     1.90ms")).unwrap();
        assert_eq!(read.audit, Believable::Impossible);
        assert!(read.findings.iter().any(|finding| finding.check == "Little's law"), "{:?}", read.findings);
    }

    #[test]
    fn nothing_known_is_nothing_understood() {
        assert!(read("unable to connect").is_none());
    }
}
