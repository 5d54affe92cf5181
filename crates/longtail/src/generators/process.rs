//! Runs another generator as a child process: a warm-up that is thrown away, then the run; and
//! reads what it printed and what CPU time it took. Nothing is computed that it did not print, but
//! the sum of its errors.
//!
//! It runs under the guard that servers run under, so that it and all that it starts die with us,
//! whatever happens.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use audit::LoadTool;
use audit::claim::ClaimedServer;
use audit::{AuditFinding, AuditedClaim, PrintedFigure};
use launch::{GuardCommand, LaunchSpec, Scratch, Server, ServerExit};
use model::diagnostic::ClaimGrade;
use model::plan::quoted;
use model::secret::{masked, masked_words};
use model::{
    Clock, Diagnostic, GeneratorClaim, LoadSettings, Nanos, PercentileTime, Stop, SystemClock,
};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use sweep::{ClaimedRun, OtherGenerator, Task};

use super::{GeneratorCommand, InstalledGenerator, LoadOrder};
use crate::GUARD;
use crate::exit::{Mistake, unwritable};

/// A generator that has not ended so long after its time (and its last answer's timeout) is taken
/// for stuck.
const STUCK_AFTER: Nanos = Nanos::from_secs(20);
/// Time for a program to print its version.
const VERSION_WITHIN: Nanos = Nanos::from_secs(5);
const POLL_EVERY: Nanos = Nanos::from_millis(10);

/// Sends the two streams into files, so that no pipe can be full and neither is lost in the other,
/// takes away what would send the load to a proxy, and becomes the generator.
const INTO_FILES: &str = r#"out=$1 err=$2; shift 2
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
exec "$@" >"$out" 2>"$err" </dev/null"#;

/// Runs generators, one at a time; their files are in a folder that goes with us where we are
/// killed.
pub(crate) struct GeneratorRunner {
    scratch: Arc<Scratch>,
    guard: GuardCommand,
    clock: SystemClock,
}

/// What a process that ended well came to.
pub(crate) struct ProcessReport {
    /// Its report.
    pub(crate) printed: String,
    /// The last line of what it complained about.
    pub(crate) complaint: Option<String>,
    /// The command, as a shell takes it.
    pub(crate) command_line: String,
    /// From its start to its end.
    pub(crate) elapsed: Nanos,
    /// CPU time of it and of all that it started, user and system.
    pub(crate) cpu: Option<(Nanos, Nanos)>,
}

impl GeneratorRunner {
    /// # Errors
    /// Where no folder can be made.
    pub(crate) fn new(clock: SystemClock) -> Result<GeneratorRunner, Mistake> {
        let within = std::env::temp_dir();
        let hint = "set TMPDIR to a folder you can write";
        let data = launch::data_folder();
        let scratch = Scratch::noted(&within, data.as_deref())
            .map_err(|why| unwritable(&within, &why, hint))?;
        Ok(GeneratorRunner {
            scratch: Arc::new(scratch),
            guard: GuardCommand::this_program(GUARD),
            clock,
        })
    }

    /// Where generators have their files.
    pub(crate) fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// One process of it, to its end; `meanwhile` is called again and again with the time since its
    /// start, and says whether to give up: then there is no report.
    ///
    /// # Errors
    /// Where it cannot be started, fails, or does not end: why, in a line.
    pub(crate) fn run(
        &self,
        installed: &InstalledGenerator,
        order: &LoadOrder,
        meanwhile: &mut dyn FnMut(Nanos) -> bool,
    ) -> Result<Option<ProcessReport>, String> {
        // Of those that read their targets from a file.
        let targets = format!("{} {}\n", order.method.as_deref().unwrap_or("GET"), order.url);
        fs::write(self.folder().join("targets"), targets).map_err(|why| why.to_string())?;
        let command = super::command(installed.tool, &installed.program, order, self.folder());
        let env =
            command.env.iter().map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
        let words: Vec<String> =
            command.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let argv = masked_words(&words);
        let argv = argv.iter().map(|word| quoted(word));
        let command_line = env.chain(argv).collect::<Vec<_>>().join(" ");
        let cpu_before = used_by_children();
        let begun = self.clock.now();
        let process = self.start(&command)?;
        let exit = loop {
            if let Some(exit) = process.exited() {
                break exit;
            }
            let since = self.clock.now() - begun;
            if meanwhile(since) {
                return Ok(None);
            }
            // However slow the server is, each request of a count ends by its timeout.
            if order.time.is_some_and(|time| since > time + order.load.timeout + STUCK_AFTER) {
                return Err(format!(
                    "it had not ended {} after its time, and was killed",
                    order.load.timeout + STUCK_AFTER
                ));
            }
            self.clock.sleep(POLL_EVERY);
        };
        let elapsed = self.clock.now() - begun;
        let (printed, complaint) = (self.text("stdout"), self.complaint());
        // Its guard has to be gone before its CPU time is known.
        drop(process);
        let cpu = used_by_children().zip(cpu_before);
        let cpu = cpu.map(|(after, before)| {
            (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1))
        });
        if meanwhile(elapsed) {
            return Ok(None);
        }
        if exit != ServerExit::Code(0) {
            return Err(format!(
                "{exit}{}",
                complaint.map(|line| format!(": {line}")).unwrap_or_default()
            ));
        }
        let printed = if installed.tool == LoadTool::Vegeta {
            // It only writes a file while it makes load; what prints the report is not measured.
            let file = self.folder().join("vegeta.bin");
            self.printed_within(
                vec![installed.program.clone(), "report".into(), file.into()],
                STUCK_AFTER,
            )?
            .0
        } else {
            printed
        };
        Ok(Some(ProcessReport { printed, complaint, command_line, elapsed, cpu }))
    }

    /// Its version, where it prints one.
    fn version(&self, installed: &InstalledGenerator) -> Option<String> {
        let argv = vec![installed.program.clone(), installed.tool.version_flag()?.into()];
        let (printed, complaint) = self.printed_within(argv, VERSION_WITHIN).ok()?;
        version_in(&printed).or_else(|| version_in(&complaint?))
    }

    /// What a short command prints and complains about.
    fn printed_within(
        &self,
        argv: Vec<OsString>,
        time: Nanos,
    ) -> Result<(String, Option<String>), String> {
        let process = self.start(&GeneratorCommand { argv, env: Vec::new() })?;
        let begun = self.clock.now();
        while process.exited().is_none() && self.clock.now() - begun < time {
            self.clock.sleep(POLL_EVERY);
        }
        Ok((self.text("stdout"), self.complaint()))
    }

    /// The last line of what it has complained about, or of what it has printed.
    fn complaint(&self) -> Option<String> {
        let last = |text: &str| {
            text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(masked)
        };
        last(&self.text("stderr")).or_else(|| last(&self.text("stdout")))
    }

    /// What the last process has printed into one of its two files.
    fn text(&self, file: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.folder().join(file)).unwrap_or_default())
            .into_owned()
    }

    /// A child that makes load. Dropping it kills it and all that it has started.
    fn start(&self, command: &GeneratorCommand) -> Result<Server, String> {
        let files = ["stdout", "stderr"].map(|name| self.folder().join(name));
        let shell = ["/bin/sh", "-c", INTO_FILES, "longtail"].map(OsString::from);
        let into = files.iter().map(|file| file.as_os_str().to_owned());
        let all = shell.into_iter().chain(into).chain(command.argv.iter().cloned());
        let mut spec = LaunchSpec::command(
            all,
            &std::env::current_dir().unwrap_or_else(|_| self.folder().to_owned()),
        );
        spec.env =
            command.env.iter().map(|(name, value)| (OsString::from(name), value.clone())).collect();
        spec.scratch = Some(Arc::clone(&self.scratch));
        for file in &files {
            // What the one before has left is not its.
            let _ = fs::remove_file(file);
        }
        Server::start(&spec, &self.guard, &self.clock).map_err(|why| why.to_string())
    }
}

/// CPU time of all children that have been waited for, and theirs: user and system. Between two
/// readings only one child ends here, with its guard, which takes about a millisecond for itself.
fn used_by_children() -> Option<(Nanos, Nanos)> {
    let nanos = |time: TimeVal| {
        Nanos((time.tv_sec() as u64) * 1_000_000_000 + (time.tv_usec() as u64) * 1000)
    };
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    Some((nanos(usage.user_time()), nanos(usage.system_time())))
}

/// The first thing that looks like a version: `wrk debian/4.1.0-3+b2 [epoll]` is 4.1.0.
fn version_in(text: &str) -> Option<String> {
    let mut words =
        text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.find(|word| word.contains('.')).map(str::to_owned)
}

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
    pub(crate) fn new(
        installed: InstalledGenerator,
        clock: SystemClock,
    ) -> Result<GeneratorDriver, Mistake> {
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
    pub(crate) fn run(
        &self,
        order: &LoadOrder,
        ended: &dyn Fn() -> bool,
    ) -> Result<Option<ClaimedRun>, String> {
        let process = |order: &LoadOrder| {
            let report = self.runner.run(&self.installed, order, &mut |_| ended())?;
            Ok::<_, String>(report.map(|report| claimed_run(self.installed.tool, report, order)))
        };
        let mut warm_up_requests = None;
        if order.load.warm_up > Nanos::ZERO {
            let mut warm_up = LoadOrder { time: Some(order.load.warm_up), ..order.clone() };
            warm_up.load.requests_total = None;
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
        self.installed.tool.name()
    }

    fn run(&self, task: &Task<'_>, ended: &dyn Fn() -> bool) -> Result<Option<ClaimedRun>, String> {
        let stream = task.stream;
        let (time, requests) = match stream.stop {
            Stop::After(time) => (Some(time), None),
            Stop::RequestsPerConnection(each) => (None, Some(each * u64::from(task.connections))),
        };
        // A path of the user's own need not sleep.
        let delay = stream.delay.filter(|_| stream.path.is_none() && task.started.rackup.is_none());
        let server = ClaimedServer {
            workers: task.server.workers.into(),
            threads: task.server.threads.into(),
        };
        let load = LoadSettings {
            requests_total: requests,
            warm_up: stream.warm_up,
            keep_alive: stream.keep_alive,
            timeout: stream.timeout,
            lanes: stream.lanes,
            ..LoadSettings::closed(task.connections)
        };
        let order =
            LoadOrder { time, server: Some(server), delay, ..LoadOrder::get(task.url, load) };
        GeneratorDriver::run(self, &order, ended)
    }
}

/// What a process of `generator` claims, audited.
///
/// # Errors
/// Where what it printed is not understood.
pub(crate) fn claimed_run(
    tool: LoadTool,
    report: ProcessReport,
    order: &LoadOrder,
) -> Result<ClaimedRun, String> {
    // The command line says what the output does not: connections, and what was asked for.
    let text = format!("{}\n{}", report.command_line, report.printed);
    let claim = audit::parse::claims(&text)
        .map_err(|why| why.to_string())?
        .into_iter()
        .find(|claim| claim.tool == tool);
    let not_understood = || {
        let last = report.printed.lines().rev().map(str::trim).find(|line| !line.is_empty());
        format!(
            "what it printed is not understood{}",
            last.map(|line| format!(": {line}")).unwrap_or_default()
        )
    };
    let mut claim = claim.ok_or_else(not_understood)?;
    claim.connections.get_or_insert(u64::from(order.load.connections));
    claim.server = claim.server.or(order.server);
    claim.delay_s = claim.delay_s.or(order.delay.map(Nanos::as_secs_f64));
    // To the nanosecond: it has at most as many digits.
    let nanos = |printed: PrintedFigure| Nanos((printed.value * 1e9).round() as u64);
    let percentile = |quantile, time_s| PercentileTime { quantile, time: nanos(time_s) };
    let figures = GeneratorClaim {
        by: tool.name().to_owned(),
        command_line: report.command_line.into(),
        requests: claim.ended(),
        failed: claim.failed(),
        rate_per_s: claim.rate_per_s.map(|rate| rate.value),
        duration: claim.duration_s.map(nanos),
        mean: claim.mean_s.map(nanos),
        stdev: claim.stdev_s.map(nanos),
        min: claim.min_s.map(nanos),
        max: claim.max_s.map(nanos),
        percentiles: claim
            .percentiles
            .iter()
            .map(|one| percentile(one.quantile, one.time_s))
            .collect(),
        statuses: claim.statuses.clone(),
        received_bytes: claim.received_bytes.map(|bytes| bytes.value),
        cpu: report.cpu.map(|(user, system)| user + system),
        output: report.printed.into(),
        ..GeneratorClaim::default()
    };
    let audited = audit::audit_claim(claim);
    let claim = GeneratorClaim { audit: audited.verdict.is, ..figures };
    Ok(ClaimedRun { claim, elapsed: report.elapsed, found: findings(&audited, tool.name()) })
}

/// What the audit has to say: what cannot be first, then what is doubtful, then why.
fn findings(audited: &AuditedClaim, by: &str) -> Vec<Diagnostic> {
    let is_worth_a_word = |is| !matches!(is, ClaimGrade::Holds | ClaimGrade::Unchecked);
    let mut findings: Vec<_> =
        audited.findings.iter().filter(|finding| is_worth_a_word(finding.outcome.is)).collect();
    findings.sort_by_key(|finding| finding.outcome.is);
    let diagnostic = |finding: &AuditFinding| Diagnostic::Audited {
        by: by.to_owned(),
        check: finding.check.name().to_owned(),
        is: finding.outcome.is,
        text: finding.outcome.text.clone(),
    };
    findings.into_iter().map(diagnostic).collect()
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
        claimed_run(LoadTool::Wrk, report, &LoadOrder::get("", LoadSettings::closed(10)))
    }

    #[test]
    fn only_what_was_printed_is_a_figure() {
        let figures = read(WRK).unwrap().claim;
        let quantiles: Vec<f64> = figures.percentiles.iter().map(|one| one.quantile).collect();
        assert_eq!(quantiles, [0.5, 0.75, 0.9, 0.99]);
        assert_eq!((figures.requests, figures.failed, figures.min), (Some(10_000), Some(0), None));
        assert_eq!(
            (figures.percentile(0.99), figures.max),
            (Some(Nanos(1_500_000)), Some(Nanos(2_000_000)))
        );
    }

    #[test]
    fn errors_are_those_that_it_tells() {
        let with_errors = WRK.replace(
            "Requests/sec",
            "  Socket errors: connect 1, read 2, write 3, timeout 4\nRequests/sec",
        );
        assert_eq!(read(&with_errors).unwrap().claim.failed, Some(10));
    }

    #[test]
    fn a_mean_beyond_littles_law_is_found_out() {
        let read = read(&WRK.replace("Latency     1.00ms", "Latency     1.90ms")).unwrap();
        assert_eq!(read.claim.audit, model::Believable::Impossible);
        assert!(
            read.found
                .iter()
                .any(|found| judge::assess(found).sentence.contains("Little's law FAILS")),
            "{:?}",
            read.found
        );
    }

    #[test]
    fn nothing_known_is_nothing_understood() {
        assert_eq!(
            read("unable to connect").unwrap_err(),
            "what it printed is not understood: unable to connect"
        );
    }

    #[test]
    fn versions_are_found_where_the_tools_print_them() {
        for (text, version) in [
            ("wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer", Some("4.1.0")),
            ("This is ApacheBench, Version 2.3 <$Revision$>", Some("2.3")),
            ("h2load nghttp2/1.52.0", Some("1.52.0")),
            ("oha 1.4.5", Some("1.4.5")),
            ("bombardier version v1.2.6 linux/amd64", Some("1.2.6")),
            ("what?", None),
        ] {
            assert_eq!(version_in(text).as_deref(), version, "{text}");
        }
    }
}
