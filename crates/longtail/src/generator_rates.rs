//! `longtail doctor --generators`: runs each generator against one load sink, in rounds of
//! alternating order, and prints the sink's count beside each claim. The generators' own words are
//! in `crate::generators`.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use audit::LoadTool;
use launch::{Addresses, GuardCommand, LaunchSpec, Server, free_address};
use model::comparison::median;
use model::diagnostic::ClaimGrade;
use model::{
    Believable, Clock as _, Diagnostic, Environment, Nanos, Run, Socket, Study, SystemClock,
};
use probe::control;
use probe::processes::ServerProcesses;
use report::number;
use report::tree::{ColumnBand, DataTable, ReportSection, TableColumn, TableRow};
use report::{Width, text};
use serde::Serialize;
use sink::SinkLedger;
use sweep::ClaimedRun;

use crate::GUARD;
use crate::exit::Mistake;
use crate::generators::{
    GeneratorRunner, InstalledGenerator, LoadOrder, ProcessReport, claimed_run,
};

const COLUMNS: usize = 100;
/// Longest wait for the sink to have nothing open any more.
const PATIENCE: Nanos = Nanos::from_secs(30);
const STEP: Nanos = Nanos::from_millis(10);

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
    pub(crate) missing: Vec<LoadTool>,
}

/// One generator, and all that was seen of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComparedGenerator {
    pub(crate) tool: LoadTool,
    #[serde(skip)]
    installed: InstalledGenerator,
    /// By the sink's count, of all its runs.
    rate_per_s: Option<RateRange>,
    /// Its runs.
    pub(crate) runs: Vec<CalibrationRun>,
    /// Why runs are missing.
    pub(crate) failures: Vec<String>,
}

/// A run that was done: what the sink says, what the kernel says, and what the generator says of
/// itself.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CalibrationRun {
    /// In which round, from 1.
    round: u32,
    /// As a shell takes it.
    command_line: String,
    /// Requests per second, by the sink's count over the middle of the run.
    rate_per_s: f64,
    /// The generator's CPU per request that the sink received.
    user_cpu_per_request_ns: f64,
    system_cpu_per_request_ns: f64,
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
    mean_ns: Option<Nanos>,
    p50_ns: Option<Nanos>,
    p99_ns: Option<Nanos>,
    /// Rate x mean / connections: at most 1, in a closed loop.
    littles_law: Option<f64>,
    /// What the audit finds wrong with them, in words; of others' alone.
    doubt: Option<String>,
}

impl OwnFigures {
    fn of(run: &Run, found: &[Diagnostic]) -> OwnFigures {
        let at = |quantile| run.response_time(quantile).time();
        let rate_per_s = run.rate();
        let mean = run.mean_response_time();
        let under_way = rate_per_s.zip(mean).map(|(rate, mean)| rate * mean.as_secs_f64());
        let claim = run.claim.as_deref();
        let doubt = claim.and_then(|claim| match claim.audit {
            Believable::Doubtful => Some(("doubtful", ClaimGrade::Doubtful)),
            Believable::Impossible => Some(("impossible", ClaimGrade::Fails)),
            Believable::Possible | Believable::Unchecked => None,
        });
        let checks = |grade: ClaimGrade| {
            let found = found.iter().filter_map(|found| match found {
                Diagnostic::Audited { check, is, .. } if *is == grade => Some(check.as_str()),
                _ => None,
            });
            found.collect::<Vec<_>>().join(", ")
        };
        OwnFigures {
            claimed: claim.map_or_else(|| Some(run.tally.all_responses()), |claim| claim.requests),
            rate_per_s,
            mean_ns: mean,
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            littles_law: under_way.map(|requests| requests / f64::from(run.connections)),
            doubt: doubt.map(|(word, grade)| format!("{word}: {}", checks(grade))),
        }
    }

    /// Of what it printed.
    ///
    /// # Errors
    /// Where that is not understood.
    fn read(
        tool: LoadTool,
        report: ProcessReport,
        order: &LoadOrder,
    ) -> Result<OwnFigures, String> {
        if tool == LoadTool::Longtail {
            return match report::json::read(&report.printed) {
                Ok(Study::Load(study)) => Ok(OwnFigures::of(&study.run, &[])),
                _ => Err("what it printed is not understood".to_owned()),
            };
        }
        let ClaimedRun { claim, elapsed, found } = claimed_run(tool, report, order)?;
        Ok(OwnFigures::of(&Run::claimed(order.load.connections, claim, elapsed), &found))
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
            tool: installed.tool,
            installed,
            rate_per_s: None,
            runs: Vec::new(),
            failures: Vec::new(),
        }
    }
}

impl CalibrationRounds<'_> {
    /// One run of each, from the last on where the round is even.
    pub(crate) fn round(
        &self,
        round: u32,
        compared: &mut [ComparedGenerator],
        tell: &impl Fn(&str),
    ) {
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
                    generator.rate_per_s =
                        RateRange::of(generator.runs.iter().map(|run| run.rate_per_s));
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
        let received = after.requests - before.requests;
        if received == 0 {
            return Err(why("the sink got no request of it"));
        }
        let [Some(first), Some(last)] = readings[..] else {
            return Err(why("it ended before its time"));
        };
        if last.requests == first.requests {
            return Err(why("the sink got no request of it"));
        }
        let span = (last.at - first.at).as_secs_f64();
        let (user, system) =
            report.cpu.ok_or("the kernel does not tell the CPU time of children")?;
        Ok(CalibrationRun {
            round,
            command_line: report.command_line.clone(),
            rate_per_s: (last.requests - first.requests) as f64 / span,
            user_cpu_per_request_ns: user.0 as f64 / received as f64,
            system_cpu_per_request_ns: system.0 as f64 / received as f64,
            sink_busy: last
                .cpu
                .zip(first.cpu)
                .map(|(last, first)| (last - first).as_secs_f64() / span),
            received,
            connections: after.connections - before.connections,
            said: OwnFigures::read(generator.tool, report, &order)?,
        })
    }
}

/// The middle of several, with the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct RateRange {
    median: f64,
    min: f64,
    max: f64,
}

impl RateRange {
    /// `None` of nothing.
    fn of(values: impl Iterator<Item = f64> + Clone) -> Option<RateRange> {
        let min = values.clone().reduce(f64::min)?;
        let max = values.clone().reduce(f64::max)?;
        Some(RateRange { median: median(values)?, min, max })
    }
}

impl ComparedGenerator {
    fn row(&self) -> TableRow {
        let name = self.tool.name();
        let Some(rate) = self.rate_per_s else { return TableRow::new([name, "failed"]) };
        let middle = |figure: &dyn Fn(&CalibrationRun) -> Option<f64>, shown: fn(f64) -> String| {
            number::or_none(median(self.runs.iter().filter_map(figure)), shown)
        };
        let own = |time: fn(&CalibrationRun) -> Option<Nanos>| {
            middle(&|run| time(run).map(Nanos::as_millis_f64), number::significant)
        };
        let received: u64 = self.runs.iter().map(|run| run.received).sum();
        // Where one run does not say, the sum is not known.
        let claimed = self.runs.iter().map(|run| run.said.claimed).sum::<Option<u64>>();
        let unclaimed = claimed.map(|claimed| received.cast_signed() - claimed.cast_signed());
        TableRow::new([
            name.to_owned(),
            number::rate(rate.median),
            format!("{}–{}", number::rate(rate.min), number::rate(rate.max)),
            middle(
                &|run| Some((run.user_cpu_per_request_ns + run.system_cpu_per_request_ns) / 1e3),
                number::significant,
            ),
            middle(&|run| run.sink_busy, number::percent),
            own(|run| run.said.p50_ns),
            own(|run| run.said.p99_ns),
            received.to_string(),
            number::or_none(unclaimed, |n| n.to_string()),
            middle(&|run| run.said.littles_law, number::times),
        ])
    }
}

pub(crate) fn table(found: &CalibrationFindings) -> String {
    let title = format!(
        "{} of each to one load sink, 1 thread, {} a run, {} in turns; medians",
        number::count_of(found.connections, "connection"),
        number::span(found.length),
        number::count_of(found.rounds, "round"),
    );
    let [rate, own] = ["requests/s", "own, ms"].map(|title| ColumnBand::new(title, ""));
    let columns = [
        TableColumn::new(""),
        TableColumn::new("median").under(&rate),
        TableColumn::new("min–max").under(&rate),
        TableColumn::new("CPU, µs"),
        TableColumn::new("sink, %"),
        TableColumn::new("p50").under(&own),
        TableColumn::new("p99").under(&own),
        TableColumn::new("received"),
        TableColumn::new("unclaimed"),
        TableColumn::new("Little"),
    ];
    let table = DataTable::of_columns(columns, found.compared.iter().map(ComparedGenerator::row));
    let legend = "Requests/s is what the sink counted in the middle of each run: the most that this generator can measure \
                  here. A faster server is not what its tables show; and where the sink is near 100 % of a CPU, it may be more. \
                  CPU: the generator's, of each request. Unclaimed: received by the sink and not in the generator's own \
                  count, such as what was under way at the end. Own: what it prints itself. Little: its rate x its mean / connections; below 1 \
                  connections idled, above 1 times were made up. longtail's p50 and p99 are from the due time, the others' \
                  from where each starts its watch.";
    let sections =
        [
            Some(ReportSection::new(title).table(table)),
            ReportSection::new("").lines(remarks(found)).filled(),
            Some(ReportSection::new("").lines([
                legend.to_owned(),
                report::labels::longtail_and_machine(&found.environment),
            ])),
        ];
    text::sections(&sections.into_iter().flatten().collect::<Vec<_>>(), Width::of(COLUMNS))
}

/// What failed, what the audit finds wrong, and who is not here.
fn remarks(found: &CalibrationFindings) -> Vec<String> {
    let mut lines = Vec::new();
    for generator in &found.compared {
        let name = generator.tool.name();
        if let Some(why) = generator.failures.last() {
            let failed = number::count_of(generator.failures.len() as u64, "run");
            lines.push(format!("{name}: {failed} failed: {why}"));
        }
        let doubt = generator.runs.iter().rev().find_map(|run| run.said.doubt.as_ref());
        lines.extend(doubt.map(|doubt| format!("{name}: its own figures are {doubt}")));
    }
    if !found.missing.is_empty() {
        let names: Vec<&str> = found.missing.iter().map(|one| one.name()).collect();
        lines.push(format!("missing (not on PATH): {}", names.join(", ")));
    }
    lines
}

/// A sink that runs as a process of its own, under guard.
pub(crate) struct SinkUnderLoad {
    server: Server,
    address: SocketAddr,
    clock: SystemClock,
    process: RefCell<ServerProcesses>,
    /// Where it is.
    pub(crate) url: String,
}

/// The sink at an instant, while it works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SinkReading {
    /// When.
    pub(crate) at: Nanos,
    /// Requests that it has received.
    pub(crate) requests: u64,
    /// CPU time that it has used since it was first read.
    pub(crate) cpu: Option<Nanos>,
}

impl SinkUnderLoad {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub(crate) fn start(program: &OsStr, clock: SystemClock) -> Result<SinkUnderLoad, Mistake> {
        let address: SocketAddr = free_address(Socket::Tcp4, None, &Addresses::default())?;
        let words = [program.to_owned(), "sink".into(), format!("--listen={address}").into()];
        let dir = std::env::current_dir().unwrap_or_else(|_| ".".into());
        let spec = LaunchSpec::command(words, &dir);
        let guard = GuardCommand::this_program(GUARD);
        let server =
            sweep::start_sink(&spec, &guard, &clock, || control::sink_requests(address).is_ok())?;
        let mut process = ServerProcesses::of(&[server.pid()]);
        process.search(1);
        let process = RefCell::new(process);
        Ok(SinkUnderLoad { server, address, clock, process, url: format!("http://{address}/") })
    }

    /// What it has counted so far.
    fn ledger(&self) -> Option<SinkLedger> {
        control::sink_ledger(self.address).ok()
    }

    /// The sink now, while it is busy.
    pub(crate) fn read(&self) -> Option<SinkReading> {
        let before = self.clock.now();
        let requests = self.ledger()?.requests;
        let after = self.clock.now();
        Some(SinkReading {
            at: before + Nanos((after - before).0 / 2),
            requests,
            cpu: self
                .process
                .borrow_mut()
                .sample(None, false)
                .pop()
                .and_then(|sample| Some(Nanos(sample.used?.cpu))),
        })
    }

    /// Its account when nobody is connected any more; `None` where somebody stays.
    pub(crate) fn at_rest(&self) -> Option<SinkLedger> {
        let begun = self.clock.now();
        loop {
            let ledger = self.ledger()?;
            if ledger.open_connections == 0 && ledger.unfinished() == 0 {
                return Some(ledger);
            }
            if self.clock.now() - begun > PATIENCE {
                return None;
            }
            self.clock.sleep(STEP);
        }
    }

    /// Ends it.
    pub(crate) fn stop(self) {
        self.server.stop(Nanos::from_secs(5), &self.clock);
    }
}

#[cfg(test)]
mod tests {
    use model::LoadSettings;

    use super::*;
    use testkit::output::WRK;

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        let of = |values: &[f64]| RateRange::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0]), Some(RateRange { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(of(&[3.0, 1.0, 9.0]), Some(RateRange { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn wrk_is_held_against_the_connections_it_was_given() {
        let read = |printed: &str| {
            let printed = printed.to_owned();
            let command_line = "wrk -t1 -c10 -d1s http://127.0.0.1:1/".to_owned();
            let report = ProcessReport {
                printed,
                complaint: None,
                command_line,
                elapsed: Nanos::ZERO,
                cpu: None,
            };
            OwnFigures::read(LoadTool::Wrk, report, &LoadOrder::get("", LoadSettings::closed(10)))
                .unwrap()
        };
        let said = read(WRK);
        assert_eq!(
            (said.claimed, said.littles_law, said.p99_ns),
            (Some(10_000), Some(1.0), Some(Nanos(1_500_000)))
        );
        let beyond = read(&WRK.replace("Latency     1.00ms", "Latency     1.90ms"));
        assert!(beyond.doubt.is_some_and(|doubt| doubt.starts_with("impossible: Little's law")));
    }
}
