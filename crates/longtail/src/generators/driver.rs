//! One run of another generator for a load or a sweep: its warm-up, thrown away, then the run, then what it says.

use std::ffi::OsString;
use std::fs;
use std::sync::Arc;

use launch::{Exit, GuardCommand, Scratch};
use model::plan::quoted;
use model::{ClaimedRun, Clock, Nanos, Stop};
use sweep::{OtherGenerator, Task};

use crate::clock::SystemClock;
use crate::generators::claimed::{Known, Understood, understood};
use crate::generators::{End, Errand, Generator, Load, Words, used_by_children};
use crate::mistake::Mistake;
use crate::{GUARD, this_program};

/// A generator that has not ended so long after its time (and its last answer's timeout) is taken for stuck.
const PATIENCE: Nanos = Nanos::from_secs(20);
/// Time for a program to tell its version.
const MOMENT: Nanos = Nanos::from_secs(5);
const STEP: Nanos = Nanos::from_millis(10);

/// A generator that was found on PATH.
pub(crate) struct Found {
    generator: Generator,
    program: OsString,
}

impl Found {
    /// Looks for it.
    ///
    /// # Errors
    /// Where it is not on PATH.
    pub(crate) fn on_path(generator: Generator) -> Result<Found, Mistake> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let missing = || {
            let name = generator.name();
            Mistake::Flags(format!("--with {name}: {name} is not on PATH; install it, or leave out --with"))
        };
        let program = generator.program(&path, &this_program()).ok_or_else(missing)?;
        Ok(Found { generator, program })
    }
}

/// A generator, ready to run.
pub(crate) struct Driver {
    found: Found,
    version: Option<String>,
    scratch: Arc<Scratch>,
    guard: GuardCommand,
    clock: SystemClock,
}

/// What a process came to.
struct Ended {
    printed: String,
    command_line: String,
    elapsed: Nanos,
    cpu: Option<Nanos>,
}

impl Driver {
    /// Makes it ready: asks for its version, and makes a folder for its files.
    ///
    /// # Errors
    /// Where no folder can be made.
    pub(crate) fn new(found: Found, clock: SystemClock) -> Result<Driver, Mistake> {
        let within = std::env::temp_dir();
        let mend = "set TMPDIR to a folder you can write";
        let scratch = Scratch::new(&within).map_err(|why| Mistake::Write { path: within, why, mend })?;
        let guard = GuardCommand::this_program(GUARD);
        let mut driver = Driver { found, version: None, scratch: Arc::new(scratch), guard, clock };
        driver.version = driver.ask_version();
        Ok(driver)
    }

    /// A body for it, in a file.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(crate) fn keep_body(&self, body: &[u8]) -> Result<std::path::PathBuf, Mistake> {
        let path = self.scratch.path().join("body");
        fs::write(&path, body).map_err(|why| Mistake::Write { path: path.clone(), why, mend: "is the disk full?" })?;
        Ok(path)
    }

    fn ask_version(&self) -> Option<String> {
        let flag = self.found.generator.version_flag()?;
        let argv = vec![self.found.program.clone(), flag.into()];
        let words = Words { argv, env: Vec::new(), report: None };
        let load = Load::start(&words.argv, &words, &self.scratch, (&self.guard, &self.clock)).ok()?;
        let begun = self.clock.now();
        while load.ended().is_none() && self.clock.now() - begun < MOMENT {
            self.clock.sleep(STEP);
        }
        let stderr = load.complaint().unwrap_or_default();
        version_in(&load.printed()).or_else(|| version_in(&stderr))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        self.found.generator.name()
    }

    /// One run; `Ok(None)` where `ended` says to give up.
    ///
    /// # Errors
    /// Where it fails, or what it prints is not understood.
    pub(crate) fn run(
        &self,
        errand: &Errand,
        known: Known<'_>,
        ended: &dyn Fn() -> bool,
    ) -> Result<Option<ClaimedRun>, String> {
        let generator = self.found.generator;
        let understand =
            |done: &Ended| understood(generator, (&done.command_line, &done.printed), errand.connections, known);
        let mut warm_up_requests = None;
        if errand.warm_up > Nanos::ZERO {
            let Some(done) = self.process(errand, End::After(errand.warm_up), ended)? else { return Ok(None) };
            warm_up_requests = understand(&done).and_then(|warm_up| warm_up.figures.requests);
        }
        let Some(done) = self.process(errand, errand.end, ended)? else { return Ok(None) };
        let not_understood = || {
            let last = done.printed.lines().rev().map(str::trim).find(|line| !line.is_empty());
            format!("what it printed is not understood{}", last.map(|line| format!(": {line}")).unwrap_or_default())
        };
        let Understood { figures, audit, findings } = understand(&done).ok_or_else(not_understood)?;
        Ok(Some(ClaimedRun {
            by: generator.name().to_owned(),
            version: self.version.clone(),
            command_line: done.command_line,
            connections: errand.connections,
            claim: figures,
            output: done.printed,
            warm_up_requests,
            audit,
            findings,
            cpu: done.cpu,
            elapsed: done.elapsed,
            steal: None,
            listen_overflows: None,
            warnings: Vec::new(),
        }))
    }

    /// One process of it, to its end.
    fn process(&self, errand: &Errand, end: End, ended: &dyn Fn() -> bool) -> Result<Option<Ended>, String> {
        let folder = self.scratch.path();
        let Found { generator, program } = &self.found;
        // Of those that read their targets from a file.
        let targets = format!("{} {}\n", errand.method, errand.url);
        fs::write(folder.join("targets"), targets).map_err(|why| why.to_string())?;
        let words = generator.errand(program, errand, end, folder);
        let env = words.env.iter().map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
        let argv = words.argv.iter().map(|word| quoted(&word.to_string_lossy()));
        let command_line = env.chain(argv).collect::<Vec<_>>().join(" ");
        let cpu_before = used_by_children();
        let begun = self.clock.now();
        let load = self.start(&words.argv, &words)?;
        let time = match end {
            End::After(time) => Some(time),
            // However slow the server is, each request ends by its timeout.
            End::Requests(_) => None,
        };
        let latest = time.map(|time| begun + time + errand.timeout + PATIENCE);
        let exit = loop {
            if let Some(exit) = load.ended() {
                break exit;
            }
            if ended() {
                return Ok(None);
            }
            if latest.is_some_and(|latest| self.clock.now() > latest) {
                return Err(format!("it had not ended {} after its time, and was killed", errand.timeout + PATIENCE));
            }
            self.clock.sleep(STEP);
        };
        let elapsed = self.clock.now() - begun;
        let (printed, complaint) = (load.printed(), load.complaint());
        // Its guard has to be gone before its CPU time is known.
        drop(load);
        let used = |(user, system): (Nanos, Nanos)| user + system;
        let cpu = used_by_children().zip(cpu_before).map(|(after, before)| used(after).saturating_sub(used(before)));
        if ended() {
            return Ok(None);
        }
        if exit != Exit::Code(0) {
            let why = complaint.map(|line| format!(": {line}")).unwrap_or_default();
            return Err(format!("{exit}{why}"));
        }
        let printed = match &words.report {
            None => printed,
            Some(argv) => self.report(argv, &words)?,
        };
        Ok(Some(Ended { printed, command_line, elapsed, cpu }))
    }

    fn start(&self, argv: &[OsString], words: &Words) -> Result<Load, String> {
        Load::start(argv, words, &self.scratch, (&self.guard, &self.clock)).map_err(|why| why.to_string())
    }

    fn report(&self, argv: &[OsString], words: &Words) -> Result<String, String> {
        let report = self.start(argv, words)?;
        let begun = self.clock.now();
        while report.ended().is_none() && self.clock.now() - begun < PATIENCE {
            self.clock.sleep(STEP);
        }
        Ok(report.printed())
    }
}

impl OtherGenerator for Driver {
    fn run(&self, task: &Task<'_>, ended: &dyn Fn() -> bool) -> Result<Option<ClaimedRun>, String> {
        let stream = &task.plan.stream;
        let errand = Errand::of_sweep(task);
        // A path of the user's own need not sleep.
        let delay = stream.delay.filter(|_| stream.path.is_none() && task.plan.server.rackup.is_none());
        let known = Known { server: Some(task.server), delay };
        Driver::run(self, &errand, known, ended)
    }
}

impl Errand {
    fn of_sweep(task: &Task<'_>) -> Errand {
        let stream = &task.plan.stream;
        Errand {
            url: task.url.to_owned(),
            host: None,
            connections: task.connections,
            threads: stream.lanes,
            end: match stream.stop {
                Stop::After(time) => End::After(time),
                Stop::RequestsPerConnection(each) => End::Requests(each * u64::from(task.connections)),
            },
            warm_up: stream.warm_up,
            rate: None,
            rate_per_connection: None,
            keep_alive: stream.keep_alive,
            timeout: stream.timeout,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
        }
    }
}

/// The first thing that looks like a version: `wrk debian/4.1.0-3+b2 [epoll]` is 4.1.0.
fn version_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.into_iter().find(|word| word.contains('.')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_where_the_tools_say_them() {
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
