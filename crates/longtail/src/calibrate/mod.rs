//! `longtail doctor --generators`, all rounds: one generator after the other against the one sink, every other round in the opposite
//! order, so that what the machine does meanwhile falls on all alike. The sink is in `sink`, what a run came to in `account`, the table
//! in `text`; the generators themselves are in `crate::generators`.

mod account;
mod sink;
mod text;

use std::sync::atomic::{AtomicBool, Ordering};

use model::Nanos;
use serde::Serialize;

use self::account::{CalibrationRun, said};
pub(crate) use self::sink::SinkUnderLoad;
pub(crate) use self::text::{CalibrationFindings, json, table};
use crate::generators::{Generator, GeneratorRunner, InstalledGenerator, LoadOrder};

/// One generator, and all that was seen of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComparedGenerator {
    pub(crate) tool: Generator,
    #[serde(skip)]
    installed: InstalledGenerator,
    /// As a shell takes it.
    pub(crate) command_line: String,
    /// Its runs.
    pub(crate) runs: Vec<CalibrationRun>,
    /// Why runs are missing.
    pub(crate) failures: Vec<String>,
}

/// What a round needs.
pub(crate) struct CalibrationRounds<'a> {
    pub(crate) sink: &'a SinkUnderLoad,
    pub(crate) order: &'a LoadOrder,
    pub(crate) runner: &'a GeneratorRunner,
    pub(crate) interrupt: &'a AtomicBool,
}

impl ComparedGenerator {
    pub(crate) fn new(installed: InstalledGenerator) -> ComparedGenerator {
        ComparedGenerator {
            tool: installed.generator,
            installed,
            command_line: String::new(),
            runs: Vec::new(),
            failures: Vec::new(),
        }
    }
}

impl CalibrationRounds<'_> {
    /// One run of each, from the last on where the round is even.
    pub(crate) fn round(&self, round: u32, compared: &mut [ComparedGenerator], tell: &impl Fn(&str)) {
        let mut order: Vec<&mut ComparedGenerator> = compared.iter_mut().collect();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        for generator in order {
            if self.interrupted() {
                return;
            }
            tell(generator.tool.name());
            match self.run(round, generator) {
                Ok(run) => generator.runs.push(run),
                // What the user ended has not failed.
                Err(_) if self.interrupted() => return,
                Err(why) => generator.failures.push(why),
            }
        }
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn run(&self, round: u32, generator: &mut ComparedGenerator) -> Result<CalibrationRun, String> {
        let silent = || "the sink does not answer any more".to_owned();
        let before = self.sink.at_rest().ok_or_else(silent)?;
        let order = LoadOrder { url: self.sink.url.clone(), ..self.order.clone() };
        // Its start and its end are not its speed: the rate is of what is between.
        let length = order.time.unwrap_or_default();
        let read_at = [length.0 / 4, length.0 * 9 / 10].map(Nanos);
        let mut readings = Vec::new();
        let mut meanwhile = |since: Nanos| {
            if read_at.get(readings.len()).is_some_and(|at| since >= *at && since < length) {
                readings.push(self.sink.read());
            }
            self.interrupted()
        };
        let report = self.runner.run(&generator.installed, &order, &mut meanwhile)?;
        let report = report.ok_or_else(|| "it was interrupted".to_owned())?;
        generator.command_line.clone_from(&report.command_line);
        let after = self.sink.at_rest().ok_or_else(silent)?;
        let why = |what: &str| match &report.complaint {
            Some(line) => format!("{what}: {line}"),
            None => what.to_owned(),
        };
        let [Some(first), Some(last)] = readings[..] else { return Err(why("it ended before its time")) };
        let received = after.requests - before.requests;
        if last.requests == first.requests || received == 0 {
            return Err(why("the sink got no request of it"));
        }
        let said = said(generator.tool, &report.printed, order.connections);
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
