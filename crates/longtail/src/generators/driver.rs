//! One run of another generator for a load or a sweep: its warm-up, thrown away, then the run, then what it claims and
//! what the audit leaves of that. Nothing is computed that it did not print, but for its errors, which are added up.

use std::fs;
use std::path::PathBuf;

use audit::claim::ClaimedServer;
use audit::{AuditedClaim, ClaimGrade, ClaimVerdict, PrintedFigure};
use model::diagnostic::FindingGrade;
use model::{Believable, Diagnostic, GeneratorClaim, Nanos, PercentileTime, Stop, SystemClock};
use sweep::{ClaimedRun, OtherGenerator, Task};

use crate::generators::{Generator, GeneratorRunner, InstalledGenerator, LoadOrder, ProcessReport};
use crate::mistake::{Mistake, unwritable};

/// A generator, ready to run.
pub(crate) struct GeneratorDriver {
    installed: InstalledGenerator,
    version: Option<String>,
    runner: GeneratorRunner,
}

impl GeneratorDriver {
    /// Makes it ready: asks for its version, and makes a folder for its files.
    ///
    /// # Errors
    /// Where no folder can be made.
    pub(crate) fn new(installed: InstalledGenerator, clock: SystemClock) -> Result<GeneratorDriver, Mistake> {
        let runner = GeneratorRunner::new(clock)?;
        let version = runner.version(&installed);
        Ok(GeneratorDriver { installed, version, runner })
    }

    /// A body for it, in a file.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(crate) fn keep_body(&self, body: &[u8]) -> Result<PathBuf, Mistake> {
        let path = self.runner.folder().join("body");
        fs::write(&path, body).map_err(|why| unwritable(&path, &why, "is the disk full?"))?;
        Ok(path)
    }

    /// One run; `Ok(None)` where `ended` says to give up.
    ///
    /// # Errors
    /// Where it fails, or what it prints is not understood.
    pub(crate) fn run(&self, order: &LoadOrder, ended: &dyn Fn() -> bool) -> Result<Option<ClaimedRun>, String> {
        let process = |order: &LoadOrder| {
            let report = self.runner.run(&self.installed, order, &mut |_| ended())?;
            Ok::<_, String>(report.map(|report| claimed_run(self.installed.generator, report, order)))
        };
        let mut warm_up_requests = None;
        if order.warm_up > Nanos::ZERO {
            let warm_up = LoadOrder { time: Some(order.warm_up), requests: None, ..order.clone() };
            let Some(done) = process(&warm_up)? else { return Ok(None) };
            warm_up_requests = done.ok().and_then(|warm_up| warm_up.claim.requests);
        }
        let Some(mut run) = process(order)?.transpose()? else { return Ok(None) };
        run.claim.warm_up_requests = warm_up_requests;
        run.claim.version.clone_from(&self.version);
        Ok(Some(run))
    }
}

impl OtherGenerator for GeneratorDriver {
    fn name(&self) -> &'static str {
        self.installed.generator.name()
    }

    fn run(&self, task: &Task<'_>, ended: &dyn Fn() -> bool) -> Result<Option<ClaimedRun>, String> {
        let stream = task.stream;
        let (time, requests) = match stream.stop {
            Stop::After(time) => (Some(time), None),
            Stop::RequestsPerConnection(each) => (None, Some(each * u64::from(task.connections))),
        };
        // A path of the user's own need not sleep.
        let delay = stream.delay.filter(|_| stream.path.is_none() && task.started.rackup.is_none());
        let server = ClaimedServer { workers: task.server.workers.into(), threads: task.server.threads.into() };
        let order = LoadOrder {
            time,
            requests,
            server: Some(server),
            delay,
            warm_up: stream.warm_up,
            keep_alive: stream.keep_alive,
            timeout: stream.timeout,
            ..LoadOrder::closed_loop(task.url, task.connections, stream.lanes)
        };
        GeneratorDriver::run(self, &order, ended)
    }
}

/// What a process of `generator` claims, audited.
///
/// # Errors
/// Where what it printed is not understood.
pub(crate) fn claimed_run(
    generator: Generator,
    report: ProcessReport,
    order: &LoadOrder,
) -> Result<ClaimedRun, String> {
    // The command line says what the output does not: connections, and what was asked for.
    let text = format!("{}\n{}", report.command_line, report.printed);
    let claim = audit::parse::claims(&text).into_iter().find(|claim| Some(claim.tool) == generator.prints());
    let not_understood = || {
        let last = report.printed.lines().rev().map(str::trim).find(|line| !line.is_empty());
        format!("what it printed is not understood{}", last.map(|line| format!(": {line}")).unwrap_or_default())
    };
    let mut claim = claim.ok_or_else(not_understood)?;
    claim.connections.get_or_insert(u64::from(order.connections));
    claim.server = claim.server.or(order.server);
    claim.delay_s = claim.delay_s.or(order.delay.map(Nanos::as_secs_f64));
    // To the nanosecond: it has at most as many digits.
    let nanos = |printed: PrintedFigure| Nanos((printed.value * 1e9).round() as u64);
    let percentile = |quantile, time_s| PercentileTime { quantile, time: nanos(time_s) };
    let figures = GeneratorClaim {
        by: generator.name().to_owned(),
        command_line: report.command_line,
        requests: claim.ended(),
        failed: claim.failed(),
        rate_per_s: claim.rate_per_s.map(|rate| rate.value),
        duration: claim.duration_s.map(nanos),
        mean: claim.mean_s.map(nanos),
        stdev: claim.stdev_s.map(nanos),
        min: claim.min_s.map(nanos),
        max: claim.max_s.map(nanos),
        percentiles: claim.percentiles.iter().map(|one| percentile(one.quantile, one.time_s)).collect(),
        statuses: claim.statuses.clone(),
        received_bytes: claim.received_bytes.map(|bytes| bytes.value),
        cpu: report.cpu.map(|(user, system)| user + system),
        output: report.printed,
        ..GeneratorClaim::default()
    };
    let audited = audit::audit_claim(claim);
    let audit = match audited.verdict {
        ClaimVerdict::Possible => Believable::Possible,
        ClaimVerdict::Doubtful { .. } => Believable::Doubtful,
        ClaimVerdict::Impossible { .. } => Believable::Impossible,
        ClaimVerdict::Unchecked => Believable::Unchecked,
    };
    let claim = GeneratorClaim { audit, ..figures };
    Ok(ClaimedRun { claim, elapsed: report.elapsed, found: findings(&audited, generator.name()) })
}

/// What the audit has to say: what cannot be first, then what is doubtful, then why.
fn findings(audited: &AuditedClaim, by: &str) -> Vec<Diagnostic> {
    let worth_a_word = audited.findings.iter().filter_map(|finding| {
        let is = match finding.outcome.is {
            ClaimGrade::Fails => FindingGrade::Fails,
            ClaimGrade::Doubtful => FindingGrade::Doubtful,
            ClaimGrade::Explains => FindingGrade::Explains,
            ClaimGrade::Holds | ClaimGrade::Unchecked => return None,
        };
        let (by, check) = (by.to_owned(), finding.check.name().to_owned());
        Some((is, Diagnostic::Audited { by, check, is, text: finding.outcome.text.clone() }))
    });
    let mut findings: Vec<(FindingGrade, Diagnostic)> = worth_a_word.collect();
    findings.sort_by_key(|(is, _)| *is);
    findings.into_iter().map(|(_, finding)| finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::output::WRK;

    fn read(printed: &str) -> Result<ClaimedRun, String> {
        let report = ProcessReport {
            printed: printed.to_owned(),
            complaint: None,
            command_line: "wrk -t1 -c10 -d1s http://127.0.0.1:1/".to_owned(),
            elapsed: Nanos::ZERO,
            cpu: None,
        };
        claimed_run(Generator::Wrk, report, &LoadOrder::closed_loop("", 10, 1))
    }

    #[test]
    fn only_what_was_printed_is_a_figure() {
        let figures = read(WRK).unwrap().claim;
        let quantiles: Vec<f64> = figures.percentiles.iter().map(|one| one.quantile).collect();
        assert_eq!(quantiles, [0.5, 0.75, 0.9, 0.99]);
        assert_eq!((figures.requests, figures.failed, figures.min), (Some(10_000), Some(0), None));
        assert_eq!((figures.percentile(0.99), figures.max), (Some(Nanos(1_500_000)), Some(Nanos(2_000_000))));
    }

    #[test]
    fn errors_are_those_that_it_tells() {
        let with_errors =
            WRK.replace("Requests/sec", "  Socket errors: connect 1, read 2, write 3, timeout 4\nRequests/sec");
        assert_eq!(read(&with_errors).unwrap().claim.failed, Some(10));
    }

    #[test]
    fn a_mean_beyond_littles_law_is_found_out() {
        let read = read(&WRK.replace("Latency     1.00ms", "Latency     1.90ms")).unwrap();
        assert_eq!(read.claim.audit, Believable::Impossible);
        assert!(read.found.iter().any(|found| found.to_string().contains("Little's law FAILS")), "{:?}", read.found);
    }

    #[test]
    fn nothing_known_is_nothing_understood() {
        assert_eq!(read("unable to connect").unwrap_err(), "what it printed is not understood: unable to connect");
    }
}
