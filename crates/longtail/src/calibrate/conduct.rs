//! All rounds: one generator after the other against the one sink, every other round in the opposite order, so that
//! what the machine does meanwhile falls on all alike.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

use model::Nanos;
use serde::Serialize;

use crate::calibrate::account::{CalibrationRun, said};
use crate::calibrate::subject::Subject;
use crate::generators::{Generator, GeneratorRunner, LoadOrder};

/// One generator, and all that was seen of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Contender {
    pub(crate) tool: Generator,
    #[serde(skip)]
    program: OsString,
    /// As a shell takes it.
    pub(crate) command_line: String,
    /// Its runs.
    pub(crate) runs: Vec<CalibrationRun>,
    /// Why runs are missing.
    pub(crate) failures: Vec<String>,
}

/// What a round needs.
pub(crate) struct Ring<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) order: &'a LoadOrder,
    pub(crate) runner: &'a GeneratorRunner,
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

    fn run(&self, round: u32, contender: &mut Contender) -> Result<CalibrationRun, String> {
        let silent = || "the sink does not answer any more".to_owned();
        let before = self.subject.at_rest().ok_or_else(silent)?;
        let order = LoadOrder { url: self.subject.url.clone(), ..self.order.clone() };
        // Its start and its end are not its speed: the rate is of what is between.
        let length = order.time().unwrap_or_default();
        let glance_at = [length.0 / 4, length.0 * 9 / 10].map(Nanos);
        let mut glances = Vec::new();
        let mut meanwhile = |since: Nanos| {
            if glance_at.get(glances.len()).is_some_and(|at| since >= *at && since < length) {
                glances.push(self.subject.glance());
            }
            self.interrupted()
        };
        let generator = (contender.tool, contender.program.as_os_str());
        let report = self.runner.run(generator, &order, order.end, &mut meanwhile)?;
        let report = report.ok_or_else(|| "it was interrupted".to_owned())?;
        contender.command_line.clone_from(&report.command_line);
        let after = self.subject.at_rest().ok_or_else(silent)?;
        let why = |what: &str| match &report.complaint {
            Some(line) => format!("{what}: {line}"),
            None => what.to_owned(),
        };
        let [Some(first), Some(last)] = glances[..] else { return Err(why("it ended before its time")) };
        let received = after.requests - before.requests;
        if last.requests == first.requests || received == 0 {
            return Err(why("the sink got no request of it"));
        }
        let said = said(contender.tool, &report.printed, order.connections);
        let said = said.ok_or_else(|| why("what it printed is not understood"))?;
        let span = (last.at - first.at).as_secs_f64();
        let (user, system) = report.cpu.ok_or("the kernel does not tell the CPU time of children")?;
        Ok(CalibrationRun {
            round,
            rate_per_s: (last.requests - first.requests) as f64 / span,
            user: user.0 as f64 / received as f64,
            system: system.0 as f64 / received as f64,
            sink_busy: last.cpu.zip(first.cpu).map(|(last, first)| (last - first).as_secs_f64() / span),
            received,
            connections: after.connections - before.connections,
            said,
        })
    }
}
