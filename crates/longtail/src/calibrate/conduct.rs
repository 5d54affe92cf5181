//! All rounds: one generator after the other against the one sink, every other round in the opposite order, so that
//! what the machine does meanwhile falls on all alike.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use launch::{Exit, GuardCommand, Scratch};
use model::plan::quoted;
use model::{Clock, Nanos};
use serde::Serialize;

use crate::calibrate::account::{Run, said};
use crate::calibrate::subject::Subject;
use crate::clock::SystemClock;
use crate::generators::{Generator, Job, Load, used_by_children};

/// A generator that has not ended so long after its time is taken for stuck.
const PATIENCE: Nanos = Nanos::from_secs(20);
const STEP: Nanos = Nanos::from_millis(10);

/// One generator, and all that was seen of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Contender {
    pub(crate) tool: Generator,
    #[serde(skip)]
    program: OsString,
    /// As a shell takes it.
    pub(crate) command_line: String,
    /// Its runs.
    pub(crate) runs: Vec<Run>,
    /// Why runs are missing.
    pub(crate) failures: Vec<String>,
}

/// What a round needs.
pub(crate) struct Ring<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) job: Job,
    /// For files.
    pub(crate) scratch: &'a Arc<Scratch>,
    /// The command that runs the guard of a generator.
    pub(crate) guard: &'a GuardCommand,
    pub(crate) clock: SystemClock,
    pub(crate) interrupt: &'a AtomicBool,
}

impl Contender {
    pub(crate) fn new(tool: Generator, program: OsString) -> Contender {
        Contender { tool, program, command_line: String::new(), runs: Vec::new(), failures: Vec::new() }
    }
}

impl Ring<'_> {
    /// One run of each, from the last on where the round is even.
    pub(crate) fn round(&self, round: u32, contenders: &mut [Contender], tell: &impl Fn(&str)) {
        let mut order: Vec<&mut Contender> = contenders.iter_mut().collect();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        for contender in order {
            if self.interrupted() {
                return;
            }
            tell(contender.tool.name());
            match self.run(round, contender) {
                Ok(run) => contender.runs.push(run),
                // What the user ended has not failed.
                Err(_) if self.interrupted() => return,
                Err(why) => contender.failures.push(why),
            }
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn run(&self, round: u32, contender: &mut Contender) -> Result<Run, String> {
        let words = contender.tool.words(&contender.program, self.job, &self.subject.url, self.scratch.path());
        let line: Vec<String> = words.argv.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        contender.command_line = line.join(" ");
        let silent = || "the sink does not answer any more".to_owned();
        let before = self.subject.at_rest().ok_or_else(silent)?;
        let cpu_before = used_by_children();
        let begun = self.clock.now();
        let begin =
            |argv| Load::start(argv, &words, self.scratch, (self.guard, &self.clock)).map_err(|why| why.to_string());
        let load = begin(&words.argv)?;
        // Its start and its end are not its speed: the rate is of what is between.
        let length = Nanos::from_secs(self.job.seconds);
        let glances = [length.0 / 4, length.0 * 9 / 10].map(|after| {
            let there = self.until(begun + Nanos(after), &load);
            there.then(|| self.subject.glance()).flatten()
        });
        self.until(begun + length + PATIENCE, &load);
        let ended = load.ended();
        let printed = load.printed();
        let complaint = load.complaint();
        // Its guard has to be gone before its CPU time is known.
        drop(load);
        let cpu_after = used_by_children();
        let status = ended.ok_or_else(|| format!("it had not ended {PATIENCE} after its time, and was killed"))?;
        let after = self.subject.at_rest().ok_or_else(silent)?;
        let why = || complaint.as_ref().map(|line| format!(": {line}")).unwrap_or_default();
        if status != Exit::Code(0) {
            return Err(format!("{status}{}", why()));
        }
        let [Some(first), Some(last)] = glances else { return Err(format!("it ended before its time{}", why())) };
        let received = after.requests - before.requests;
        if last.requests == first.requests || received == 0 {
            return Err(format!("the sink got no request of it{}", why()));
        }
        let printed = match &words.report {
            None => printed,
            Some(argv) => {
                let report = begin(argv)?;
                self.until(self.clock.now() + PATIENCE, &report);
                report.printed()
            }
        };
        let said = said(contender.tool, &printed, self.job)
            .ok_or_else(|| format!("what it printed is not understood{}", why()))?;
        let span = (last.at - first.at).as_secs_f64();
        let (Some((user, system)), Some((user_after, system_after))) = (cpu_before, cpu_after) else {
            return Err("the kernel does not tell the CPU time of children".to_owned());
        };
        Ok(Run {
            round,
            rate_per_s: (last.requests - first.requests) as f64 / span,
            user: (user_after - user).0 as f64 / received as f64,
            system: (system_after - system).0 as f64 / received as f64,
            sink_busy: last.cpu.zip(first.cpu).map(|(last, first)| (last - first).as_secs_f64() / span),
            received,
            connections: after.connections - before.connections,
            said,
        })
    }

    /// Waits until then, or until it has ended or the user has: whether it still runs.
    fn until(&self, then: Nanos, load: &Load) -> bool {
        loop {
            if load.ended().is_some() || self.interrupted() {
                return false;
            }
            let left = then.saturating_sub(self.clock.now());
            if left == Nanos::ZERO {
                return true;
            }
            self.clock.sleep(left.min(STEP));
        }
    }
}
