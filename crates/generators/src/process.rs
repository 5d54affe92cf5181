//! Runs another generator as a child process, first a warm-up whose figures are dropped, then the
//! run; and reads what it printed and how much CPU time it took. Nothing is computed that it did
//! not print, except the sum of its errors.
//!
//! It runs under the guard that servers run under, so that it and all its children die with us,
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
    Clock, Diagnostic, GeneratorClaim, LoadSettings, Nanos, Pace, PercentileTime, Stop, SystemClock,
};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use sweep::{ClaimedRun, OtherGenerator, Task};

use crate::{GeneratorCommand, GeneratorError, InstalledGenerator, LoadOrder, command};

/// A generator that has not ended this long after its time and the timeout of its last request is
/// stuck.
const STUCK_AFTER: Nanos = Nanos::from_secs(20);
/// How long a program may take to print its version.
const VERSION_WITHIN: Nanos = Nanos::from_secs(5);
const POLL_EVERY: Nanos = Nanos::from_millis(10);

/// Redirects the generator's two streams to files, which cannot block as a full pipe does, unsets
/// the variables that would send the load to a proxy, and becomes the generator.
const INTO_FILES: &str = r#"out=$1 err=$2; shift 2
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
exec "$@" >"$out" 2>"$err" </dev/null"#;

/// Runs generators, one at a time. Their files are in a folder that is removed even if we are
/// killed.
pub struct GeneratorRunner {
    scratch: Arc<Scratch>,
    guard: GuardCommand,
    clock: SystemClock,
}

/// What a process that ended with exit code 0 printed, and the time that it took.
pub struct ProcessReport {
    /// What it printed to stdout.
    pub printed: String,
    /// The last line that it printed to stderr, or else to stdout.
    pub complaint: Option<String>,
    /// The command, quoted for a shell.
    pub command_line: String,
    /// From its start to its end.
    pub elapsed: Nanos,
    /// CPU time of it and all its children; `None` if the kernel does not tell.
    pub cpu: Option<CpuUse>,
}

/// CPU time, as `getrusage` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuUse {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

impl CpuUse {
    /// CPU time of all children that have been waited for, with their children. Between two
    /// readings only one child ends here, with its guard, which takes about a millisecond itself.
    fn of_children() -> Option<CpuUse> {
        let nanos = |time: TimeVal| {
            Nanos((time.tv_sec() as u64) * 1_000_000_000 + (time.tv_usec() as u64) * 1000)
        };
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
        Some(CpuUse { user: nanos(usage.user_time()), system: nanos(usage.system_time()) })
    }

    fn since(self, before: CpuUse) -> CpuUse {
        CpuUse {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }
}

/// How a generator's process ended.
enum ProcessEnd {
    Exited(ServerExit),
    /// It was killed because `meanwhile` said so.
    GivenUp,
}

impl GeneratorRunner {
    /// A runner with an empty folder. `guard` is the command that guards children.
    ///
    /// # Errors
    /// If no folder can be made.
    pub fn new(guard: GuardCommand, clock: SystemClock) -> Result<GeneratorRunner, GeneratorError> {
        let within = std::env::temp_dir();
        let data = launch::data_folder();
        let scratch = match Scratch::noted(&within, data.as_deref()) {
            Ok(scratch) => Arc::new(scratch),
            Err(why) => {
                let hint = "set TMPDIR to a folder you can write";
                return Err(GeneratorError::Unwritable { path: within, why, hint });
            }
        };
        Ok(GeneratorRunner { scratch, guard, clock })
    }

    /// Where generators have their files.
    fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs one process of the generator to its end. `meanwhile` is called again and again with the
    /// time since the start, and says whether to give up: then there is no report.
    ///
    /// # Errors
    /// If it cannot be started, fails, or does not end: why, in one line.
    pub fn run(
        &self,
        installed: &InstalledGenerator,
        order: &LoadOrder,
        meanwhile: &mut dyn FnMut(Nanos) -> bool,
    ) -> Result<Option<ProcessReport>, String> {
        // vegeta reads its targets from a file.
        let targets = format!("{} {}\n", order.method.as_deref().unwrap_or("GET"), order.url);
        fs::write(self.folder().join("targets"), targets).map_err(|why| why.to_string())?;
        let command = command(installed.tool, &installed.program, order, self.folder());
        let cpu_before = CpuUse::of_children();
        let begun = self.clock.now();
        let process = self.start(&command)?;
        let end = self.wait_for(&process, order, begun, meanwhile)?;
        let ProcessEnd::Exited(exit) = end else { return Ok(None) };
        let elapsed = self.clock.now() - begun;
        let mut printed = self.text("stdout");
        let complaint = self.complaint();
        // Its CPU time is complete only when its guard is gone.
        drop(process);
        let cpu_after = CpuUse::of_children();
        if meanwhile(elapsed) {
            return Ok(None);
        }
        if exit != ServerExit::Code(0) {
            let why = complaint.map(|line| format!(": {line}")).unwrap_or_default();
            return Err(format!("{exit}{why}"));
        }
        if installed.tool == LoadTool::Vegeta {
            // While it makes load it only writes a file; the report is printed by another process.
            let file = self.folder().join("vegeta.bin");
            let argv = vec![installed.program.clone(), "report".into(), file.into()];
            printed = self.printed_within(argv, STUCK_AFTER)?.stdout;
        }
        let cpu = cpu_after.zip(cpu_before).map(|(after, before)| after.since(before));
        let command_line = command.for_shell();
        Ok(Some(ProcessReport { printed, complaint, command_line, elapsed, cpu }))
    }

    /// Waits until the process ends, is stuck, or `meanwhile` says to give up.
    fn wait_for(
        &self,
        process: &Server,
        order: &LoadOrder,
        begun: Nanos,
        meanwhile: &mut dyn FnMut(Nanos) -> bool,
    ) -> Result<ProcessEnd, String> {
        // However slow the server is, each request ends by its timeout.
        let grace = order.load.timeout + STUCK_AFTER;
        loop {
            if let Some(exit) = process.exited() {
                return Ok(ProcessEnd::Exited(exit));
            }
            let since = self.clock.now() - begun;
            if meanwhile(since) {
                return Ok(ProcessEnd::GivenUp);
            }
            if order.time.is_some_and(|time| since > time + grace) {
                return Err(format!("it had not ended {grace} after its time, and was killed"));
            }
            self.clock.sleep(POLL_EVERY);
        }
    }

    /// The tool's version, if it prints one.
    fn version(&self, installed: &InstalledGenerator) -> Option<String> {
        let argv = vec![installed.program.clone(), installed.tool.version_flag()?.into()];
        let printed = self.printed_within(argv, VERSION_WITHIN).ok()?;
        version_in(&printed.stdout).or_else(|| version_in(&printed.complaint?))
    }

    /// What a short command prints within this time.
    fn printed_within(&self, argv: Vec<OsString>, time: Nanos) -> Result<PrintedText, String> {
        let process = self.start(&GeneratorCommand { argv, env: Vec::new() })?;
        let begun = self.clock.now();
        while process.exited().is_none() && self.clock.now() - begun < time {
            self.clock.sleep(POLL_EVERY);
        }
        Ok(PrintedText { stdout: self.text("stdout"), complaint: self.complaint() })
    }

    /// The last line of stderr, or else of stdout.
    fn complaint(&self) -> Option<String> {
        let last = |text: &str| {
            text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(masked)
        };
        last(&self.text("stderr")).or_else(|| last(&self.text("stdout")))
    }

    /// What the last process printed to `stdout` or `stderr`.
    fn text(&self, file: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.folder().join(file)).unwrap_or_default())
            .into_owned()
    }

    /// Starts a generator. Dropping it kills it and all its children.
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
            // The process before wrote them.
            let _ = fs::remove_file(file);
        }
        Server::start(&spec, &self.guard, &self.clock).map_err(|why| why.to_string())
    }
}

/// What a process printed.
struct PrintedText {
    stdout: String,
    /// The last line of stderr, or else of stdout.
    complaint: Option<String>,
}

impl GeneratorCommand {
    /// The command with its environment, quoted for a shell, without secrets.
    fn for_shell(&self) -> String {
        let env =
            self.env.iter().map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
        let words: Vec<String> =
            self.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let argv = masked_words(&words);
        let argv = argv.iter().map(|word| quoted(word));
        env.chain(argv).collect::<Vec<_>>().join(" ")
    }
}

/// The first thing that looks like a version: `wrk debian/4.1.0-3+b2 [epoll]` is 4.1.0.
fn version_in(text: &str) -> Option<String> {
    let mut words =
        text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.find(|word| word.contains('.')).map(str::to_owned)
}

/// A generator, ready to run.
pub struct GeneratorDriver {
    installed: InstalledGenerator,
    version: Option<String>,
    runner: GeneratorRunner,
}

impl GeneratorDriver {
    /// Asks the generator for its version, and makes a folder for its files. `guard` is the command
    /// that guards children.
    ///
    /// # Errors
    /// If no folder can be made.
    pub fn new(
        installed: InstalledGenerator,
        guard: GuardCommand,
        clock: SystemClock,
    ) -> Result<GeneratorDriver, GeneratorError> {
        let runner = GeneratorRunner::new(guard, clock)?;
        let version = runner.version(&installed);
        Ok(GeneratorDriver { installed, version, runner })
    }

    /// Writes a request body to a file for the generator.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_body(&self, body: &[u8]) -> Result<PathBuf, GeneratorError> {
        let path = self.runner.folder().join("body");
        match fs::write(&path, body) {
            Ok(()) => Ok(path),
            Err(why) => Err(GeneratorError::Unwritable { path, why, hint: "is the disk full?" }),
        }
    }

    /// Runs the warm-up, then the load; `Ok(None)` if `ended` says to give up.
    ///
    /// # Errors
    /// If the generator fails, or what it prints is not understood.
    pub fn run(
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
        // Only our own app is known to sleep, and only at its own path.
        let delay = stream.delay.filter(|_| stream.path.is_none() && task.started.rackup.is_none());
        let server = ClaimedServer {
            workers: task.server.workers.into(),
            threads: task.server.threads.into(),
        };
        let load = LoadSettings {
            requests_total: requests,
            ..stream.settings(Pace::Closed, task.connections)
        };
        let order =
            LoadOrder { time, server: Some(server), delay, ..LoadOrder::get(task.url, load) };
        GeneratorDriver::run(self, &order, ended)
    }
}

/// What the tool claims, audited.
///
/// # Errors
/// If what it printed is not understood.
pub(crate) fn claimed_run(
    tool: LoadTool,
    report: ProcessReport,
    order: &LoadOrder,
) -> Result<ClaimedRun, String> {
    // The command line says what the output leaves out, such as connections.
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
    // Printed times have at most nine decimals.
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
        cpu: report.cpu.map(|cpu| cpu.user + cpu.system),
        output: report.printed.into(),
        ..GeneratorClaim::default()
    };
    let audited = audit::audit_claim(claim);
    let claim = GeneratorClaim { audit: audited.verdict.is, ..figures };
    Ok(ClaimedRun { claim, elapsed: report.elapsed, found: findings(&audited, tool.name()) })
}

/// The audit's findings against the claim: what is impossible first, then what is doubtful.
fn findings(audited: &AuditedClaim, by: &str) -> Vec<Diagnostic> {
    let speaks_against = |is| !matches!(is, ClaimGrade::Holds | ClaimGrade::Unchecked);
    let mut findings: Vec<_> =
        audited.findings.iter().filter(|finding| speaks_against(finding.outcome.is)).collect();
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
    fn figures_are_those_that_were_printed_and_no_others() {
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
    fn socket_errors_of_all_kinds_add_up_to_failed_requests() {
        let with_errors = WRK.replace(
            "Requests/sec",
            "  Socket errors: connect 1, read 2, write 3, timeout 4\nRequests/sec",
        );
        assert_eq!(read(&with_errors).unwrap().claim.failed, Some(10));
    }

    #[test]
    fn a_mean_above_littles_law_is_impossible() {
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
    fn output_without_figures_is_refused_with_its_last_line() {
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
