//! A generator as a child process: what it printed, and what it used of the CPU.
//!
//! It runs under the guard that servers run under, so that it and all that it starts die with us, whatever happens.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use launch::{GuardCommand, LaunchSpec, Scratch, Server, ServerExit};
use model::{Clock, Nanos, SystemClock};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::GUARD;
use crate::command_line::shown;
use crate::generators::order::GeneratorCommand;
use crate::generators::{Generator, InstalledGenerator, LoadOrder};
use crate::mistake::{Mistake, unwritable};

/// A generator that has not ended so long after its time (and its last answer's timeout) is taken for stuck.
const STUCK_AFTER: Nanos = Nanos::from_secs(20);
/// Time for a program to print its version.
const VERSION_WITHIN: Nanos = Nanos::from_secs(5);
const POLL_EVERY: Nanos = Nanos::from_millis(10);

/// Sends the two streams into files, so that no pipe can be full and neither is lost in the other, takes away what would
/// send the load to a proxy, and becomes the generator.
const INTO_FILES: &str = r#"out=$1 err=$2; shift 2
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
exec "$@" >"$out" 2>"$err" </dev/null"#;

/// Runs generators, one at a time; their files are in a folder that goes with us where we are killed.
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
        let scratch = Scratch::new(&within).map_err(|why| unwritable(&within, &why, hint))?;
        Ok(GeneratorRunner { scratch: Arc::new(scratch), guard: GuardCommand::this_program(GUARD), clock })
    }

    /// Where generators have their files.
    pub(crate) fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// One process of it, to its end; `meanwhile` is called again and again with the time since its start, and says
    /// whether to give up: then there is no report.
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
        let command = installed.generator.command(&installed.program, order, self.folder());
        let env = command.env.iter().map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
        let argv = command.argv.iter().map(|word| shown(&word.to_string_lossy()));
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
            if order.time.is_some_and(|time| since > time + order.timeout + STUCK_AFTER) {
                return Err(format!("it had not ended {} after its time, and was killed", order.timeout + STUCK_AFTER));
            }
            self.clock.sleep(POLL_EVERY);
        };
        let elapsed = self.clock.now() - begun;
        let (printed, complaint) = (self.text("stdout"), self.complaint());
        // Its guard has to be gone before its CPU time is known.
        drop(process);
        let cpu = used_by_children().zip(cpu_before);
        let cpu = cpu.map(|(after, before)| (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1)));
        if meanwhile(elapsed) {
            return Ok(None);
        }
        if exit != ServerExit::Code(0) {
            return Err(format!("{exit}{}", complaint.map(|line| format!(": {line}")).unwrap_or_default()));
        }
        let printed = if installed.generator == Generator::Vegeta {
            // It only writes a file while it makes load; what prints the report is not measured.
            let file = self.folder().join("vegeta.bin");
            self.printed_within(vec![installed.program.clone(), "report".into(), file.into()], STUCK_AFTER)?.0
        } else {
            printed
        };
        Ok(Some(ProcessReport { printed, complaint, command_line, elapsed, cpu }))
    }

    /// Its version, where it prints one.
    pub(crate) fn version(&self, installed: &InstalledGenerator) -> Option<String> {
        let flag = installed.generator.traits().version_flag;
        let argv = vec![installed.program.clone(), flag.into()];
        if flag.is_empty() {
            return None;
        }
        let (printed, complaint) = self.printed_within(argv, VERSION_WITHIN).ok()?;
        version_in(&printed).or_else(|| version_in(&complaint.unwrap_or_default()))
    }

    /// What a short command prints and complains about.
    fn printed_within(&self, argv: Vec<OsString>, time: Nanos) -> Result<(String, Option<String>), String> {
        let process = self.start(&GeneratorCommand { argv, env: Vec::new() })?;
        let begun = self.clock.now();
        while process.exited().is_none() && self.clock.now() - begun < time {
            self.clock.sleep(POLL_EVERY);
        }
        Ok((self.text("stdout"), self.complaint()))
    }

    /// The last line of what it has complained about, or of what it has printed.
    fn complaint(&self) -> Option<String> {
        let last = |text: &str| text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        last(&self.text("stderr")).or_else(|| last(&self.text("stdout")))
    }

    /// What the last process has printed into one of its two files.
    fn text(&self, file: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.folder().join(file)).unwrap_or_default()).into_owned()
    }

    /// A child that makes load. Dropping it kills it and all that it has started.
    fn start(&self, command: &GeneratorCommand) -> Result<Server, String> {
        let files = ["stdout", "stderr"].map(|name| self.folder().join(name));
        let shell = ["/bin/sh", "-c", INTO_FILES, "longtail"].map(OsString::from);
        let into = files.iter().map(|file| file.as_os_str().to_owned());
        let all = shell.into_iter().chain(into).chain(command.argv.iter().cloned());
        let mut spec = LaunchSpec::command(all, &std::env::current_dir().unwrap_or_else(|_| self.folder().to_owned()));
        spec.env = command.env.iter().map(|(name, value)| (OsString::from(name), value.clone())).collect();
        spec.scratch = Some(Arc::clone(&self.scratch));
        for file in &files {
            // What the one before has left is not its.
            let _ = fs::remove_file(file);
        }
        Server::start(&spec, &self.guard, &self.clock).map_err(|why| why.to_string())
    }
}

/// CPU time of all children that have been waited for, and theirs: user and system. Between two readings only one
/// child ends here, with its guard, which takes about a millisecond for itself.
fn used_by_children() -> Option<(Nanos, Nanos)> {
    let nanos = |time: TimeVal| Nanos((time.tv_sec() as u64) * 1_000_000_000 + (time.tv_usec() as u64) * 1000);
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    Some((nanos(usage.user_time()), nanos(usage.system_time())))
}

/// The first thing that looks like a version: `wrk debian/4.1.0-3+b2 [epoll]` is 4.1.0.
fn version_in(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.find(|word| word.contains('.')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

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
