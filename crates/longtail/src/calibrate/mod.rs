//! `longtail doctor --generators`, all rounds: one generator after the other against the one sink, every other round in the opposite
//! order, so that what the machine does meanwhile falls on all alike. The sink is in `sink`, the table in `text`; the generators themselves
//! are in `crate::generators`.

mod sink;
mod text;

use std::sync::atomic::{AtomicBool, Ordering};

use model::diagnostic::FindingGrade;
use model::{Believable, Diagnostic, Environment, Nanos, Run, Study};
use serde::Serialize;
use sweep::ClaimedRun;

pub(crate) use self::sink::SinkUnderLoad;
pub(crate) use self::text::table;
use crate::generators::{Generator, GeneratorRunner, InstalledGenerator, LoadOrder, ProcessReport, claimed_run};

/// All that was found, as it is in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct CalibrationFindings {
    pub(crate) started_at: String,
    pub(crate) environment: Environment,
    pub(crate) connections: u32,
    /// Of each run.
    #[serde(rename = "length_ns")]
    pub(crate) length: Nanos,
    pub(crate) rounds: u32,
    pub(crate) interrupted: bool,
    #[serde(rename = "tools")]
    pub(crate) compared: Vec<ComparedGenerator>,
    /// Those that are not on PATH.
    pub(crate) missing: Vec<Generator>,
}

/// One generator, and all that was seen of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComparedGenerator {
    pub(crate) tool: Generator,
    #[serde(skip)]
    installed: InstalledGenerator,
    /// By the sink's count, of all its runs.
    rate_per_s: Option<Spread>,
    /// Its runs.
    pub(crate) runs: Vec<CalibrationRun>,
    /// Why runs are missing.
    pub(crate) failures: Vec<String>,
}

/// A run that was done: what the sink says, what the kernel says, and what the generator says of itself.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CalibrationRun {
    /// In which round, from 1.
    round: u32,
    /// As a shell takes it.
    command_line: String,
    /// Requests per second, by the sink's count over the middle of the run.
    rate_per_s: f64,
    /// The generator's CPU per request that the sink received.
    #[serde(rename = "user_cpu_per_request_ns")]
    user: f64,
    #[serde(rename = "system_cpu_per_request_ns")]
    system: f64,
    /// The part of a CPU that the sink used.
    sink_busy: Option<f64>,
    /// Requests that the sink received, from the first to the last.
    received: u64,
    /// Connections that it accepted.
    connections: u64,
    said: OwnFigures,
}

/// What a generator says of its own run; absent is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct OwnFigures {
    /// Requests that ended.
    claimed: Option<u64>,
    rate_per_s: Option<f64>,
    #[serde(rename = "mean_ns")]
    mean: Option<Nanos>,
    #[serde(rename = "p50_ns")]
    p50: Option<Nanos>,
    #[serde(rename = "p99_ns")]
    p99: Option<Nanos>,
    /// Rate x mean / connections: at most 1, in a closed loop.
    littles_law: Option<f64>,
    /// What the audit finds wrong with them, in words; of others' alone.
    doubt: Option<String>,
}

impl OwnFigures {
    fn of(run: &Run, found: &[Diagnostic]) -> OwnFigures {
        let at = |quantile| run.response_time(quantile).time();
        let (rate_per_s, mean) = (run.rate(), run.mean_response_time());
        let under_way = rate_per_s.zip(mean).map(|(rate, mean)| rate * mean.as_secs_f64());
        let claim = run.claim.as_deref();
        let doubt = claim.and_then(|claim| match claim.audit {
            Believable::Doubtful => Some(("doubtful", FindingGrade::Doubtful)),
            Believable::Impossible => Some(("impossible", FindingGrade::Fails)),
            Believable::Possible | Believable::Unchecked => None,
        });
        let checks = |grade: FindingGrade| {
            let found = found.iter().filter_map(|found| match found {
                Diagnostic::Audited { check, is, .. } if *is == grade => Some(check.as_str()),
                _ => None,
            });
            found.collect::<Vec<_>>().join(", ")
        };
        OwnFigures {
            claimed: claim.map_or_else(|| Some(run.tally.all_answers()), |claim| claim.requests),
            rate_per_s,
            mean,
            p50: at(0.5),
            p99: at(0.99),
            littles_law: under_way.map(|requests| requests / f64::from(run.connections)),
            doubt: doubt.map(|(word, grade)| format!("{word}: {}", checks(grade))),
        }
    }

    /// Of what it printed.
    ///
    /// # Errors
    /// Where that is not understood.
    fn read(generator: Generator, report: ProcessReport, order: &LoadOrder) -> Result<OwnFigures, String> {
        if generator == Generator::Longtail {
            return match report::json::read(&report.printed) {
                Ok(Study::Load(study)) => Ok(OwnFigures::of(&study.run, &[])),
                _ => Err("what it printed is not understood".to_owned()),
            };
        }
        let ClaimedRun { claim, elapsed, found } = claimed_run(generator, report, order)?;
        Ok(OwnFigures::of(&Run::claimed(order.connections, claim, elapsed), &found))
    }
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
            rate_per_s: None,
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
                Ok(run) => {
                    generator.runs.push(run);
                    generator.rate_per_s = Spread::of(generator.runs.iter().map(|run| run.rate_per_s));
                }
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
        let span = (last.at - first.at).as_secs_f64();
        let (user, system) = report.cpu.ok_or("the kernel does not tell the CPU time of children")?;
        Ok(CalibrationRun {
            round,
            command_line: report.command_line.clone(),
            rate_per_s: (last.requests - first.requests) as f64 / span,
            user: user.0 as f64 / received as f64,
            system: system.0 as f64 / received as f64,
            sink_busy: last.cpu.zip(first.cpu).map(|(last, first)| (last - first).as_secs_f64() / span),
            received,
            connections: after.connections - before.connections,
            said: OwnFigures::read(generator.tool, report, &order)?,
        })
    }
}

/// The middle of several, with the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// `None` of nothing.
    fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let (min, max) = (*all.first()?, *all.last()?);
        Some(Spread { median: f64::midpoint(all[(all.len() - 1) / 2], all[all.len() / 2]), min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::output::WRK;

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(Spread::of([3.0, 1.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([3.0, 1.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn wrk_is_held_against_the_connections_it_was_given() {
        let read = |printed: &str| {
            let (printed, command_line) = (printed.to_owned(), "wrk -t1 -c10 -d1s http://127.0.0.1:1/".to_owned());
            let report = ProcessReport { printed, complaint: None, command_line, elapsed: Nanos::ZERO, cpu: None };
            OwnFigures::read(Generator::Wrk, report, &LoadOrder::closed_loop("", 10, 1)).unwrap()
        };
        let said = read(WRK);
        assert_eq!((said.claimed, said.littles_law, said.p99), (Some(10_000), Some(1.0), Some(Nanos(1_500_000))));
        let beyond = read(&WRK.replace("Latency     1.00ms", "Latency     1.90ms"));
        assert!(beyond.doubt.is_some_and(|doubt| doubt.starts_with("impossible: Little's law")));
    }
}
