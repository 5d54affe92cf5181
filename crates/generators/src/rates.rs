//! What each generator reaches on this machine (`longtail doctor --generators`): runs each against
//! one load sink, in rounds of alternating order, and lays out the sink's count beside what the
//! generator claims.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
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

use crate::process::claimed_run;
use crate::{
    GeneratorError, GeneratorRunner, InstalledGenerator, LoadOrder, ProcessReport, program_of,
};

const COLUMNS: usize = 100;
/// How long to wait until no connection to the sink is open.
const PATIENCE: Nanos = Nanos::from_secs(30);
const STEP: Nanos = Nanos::from_millis(10);

/// All that was measured, as it stands in JSON.
#[derive(Debug, Serialize)]
pub struct CalibrationFindings {
    /// When it began, by the wall clock.
    pub started_at: String,
    /// The machine.
    pub environment: Environment,
    /// Connections of each run.
    pub connections: u32,
    /// The length of each run.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// How often each generator was to run.
    pub rounds: u32,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The generators that were found, longtail among them.
    #[serde(rename = "tools")]
    pub compared: Vec<ComparedGenerator>,
    /// Generators that are not on PATH.
    pub missing: Vec<LoadTool>,
}

/// One generator and its runs.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedGenerator {
    /// Which one it is.
    pub tool: LoadTool,
    #[serde(skip)]
    installed: InstalledGenerator,
    /// Requests per second of all its runs, by the sink's count.
    rate_per_s: Option<RateRange>,
    /// Its runs.
    pub runs: Vec<CalibrationRun>,
    /// Why runs are missing.
    pub failures: Vec<String>,
}

/// A finished run: what the sink counted, what the kernel measured, and what the generator claims.
#[derive(Clone, Debug, Serialize)]
pub struct CalibrationRun {
    /// Its round, from 1.
    round: u32,
    /// The command, quoted for a shell.
    command_line: String,
    /// Requests per second, by the sink's count in the middle of the run.
    rate_per_s: f64,
    /// The generator's CPU per request that the sink received.
    user_cpu_per_request_ns: f64,
    system_cpu_per_request_ns: f64,
    /// CPUs that the sink used.
    sink_busy: Option<f64>,
    /// Requests that the sink received, start and end of the run included.
    received: u64,
    /// Connections that it accepted.
    connections: u64,
    said: OwnFigures,
}

/// What a generator claims of its own run; `None` if it does not print that.
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
    /// What the audit finds wrong with another generator's figures, in words.
    doubt: Option<String>,
}

impl OwnFigures {
    fn of(run: &Run, found: &[Diagnostic]) -> OwnFigures {
        let at = |quantile| run.response_time(quantile).time();
        let rate_per_s = run.rate();
        let mean = run.mean_response_time();
        let in_flight = rate_per_s.zip(mean).map(|(rate, mean)| rate * mean.as_secs_f64());
        let claim = run.claim.as_deref();
        let claimed = match claim {
            Some(claim) => claim.requests,
            None => Some(run.tally.all_responses()),
        };
        OwnFigures {
            claimed,
            rate_per_s,
            mean_ns: mean,
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            littles_law: in_flight.map(|requests| requests / f64::from(run.connections)),
            doubt: claim.and_then(|claim| doubt(claim.audit, found)),
        }
    }

    /// The figures in what a generator printed.
    ///
    /// # Errors
    /// If that is not understood.
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

/// The audit's verdict on a claim, with the checks that decided it; `None` if nothing speaks
/// against the claim.
fn doubt(audit: Believable, found: &[Diagnostic]) -> Option<String> {
    let (word, grade) = match audit {
        Believable::Doubtful => ("doubtful", ClaimGrade::Doubtful),
        Believable::Impossible => ("impossible", ClaimGrade::Fails),
        Believable::Possible | Believable::Unchecked => return None,
    };
    let checks = found.iter().filter_map(|found| match found {
        Diagnostic::Audited { check, is, .. } if *is == grade => Some(check.as_str()),
        _ => None,
    });
    Some(format!("{word}: {}", checks.collect::<Vec<_>>().join(", ")))
}

/// What all rounds have in common.
pub struct CalibrationRounds<'a> {
    /// Receives the load, and counts.
    pub sink: &'a SinkUnderLoad,
    /// The load of each run.
    pub order: &'a LoadOrder,
    /// Runs the generators.
    pub runner: &'a GeneratorRunner,
    /// Set when the user presses Ctrl-C.
    pub interrupt: &'a AtomicBool,
}

impl CalibrationFindings {
    /// Finds the generators on PATH that are wanted (all, if none is named), and longtail itself,
    /// whose program is `longtail`.
    pub fn find_generators(&mut self, wanted: &[LoadTool], longtail: &OsStr) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        for tool in LoadTool::GENERATORS {
            let is_ours = tool == LoadTool::Longtail;
            if !is_ours && !wanted.is_empty() && !wanted.contains(&tool) {
                continue;
            }
            let program = if is_ours { Some(longtail.to_owned()) } else { program_of(tool, &path) };
            match program {
                Some(program) => {
                    self.compared
                        .push(ComparedGenerator::new(InstalledGenerator { tool, program }));
                }
                None => self.missing.push(tool),
            }
        }
    }

    /// Whether longtail ran but brought no figures.
    pub fn is_longtail_without_figures(&self) -> bool {
        let ours = self.compared.iter().find(|one| one.tool == LoadTool::Longtail);
        ours.is_some_and(|ours| ours.runs.is_empty())
    }
}

impl ComparedGenerator {
    fn new(installed: InstalledGenerator) -> ComparedGenerator {
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
    /// One run of each generator; even rounds go backwards. `tell` is given the name of each.
    pub fn round(&self, round: u32, compared: &mut [ComparedGenerator], tell: &impl Fn(&str)) {
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
                // A run that the user ended did not fail.
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
        // Starting and stopping take time: the rate is that of the middle of the run.
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
        let cpu = report.cpu.ok_or("the kernel does not tell the CPU time of children")?;
        Ok(CalibrationRun {
            round,
            command_line: report.command_line.clone(),
            rate_per_s: last.rate_since(&first),
            user_cpu_per_request_ns: cpu.user.0 as f64 / received as f64,
            system_cpu_per_request_ns: cpu.system.0 as f64 / received as f64,
            sink_busy: last.busy_since(&first),
            received,
            connections: after.connections - before.connections,
            said: OwnFigures::read(generator.tool, report, &order)?,
        })
    }
}

/// The median of several rates, with the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct RateRange {
    median: f64,
    min: f64,
    max: f64,
}

impl RateRange {
    /// `None` if there are no values.
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
        // If one run does not say, the sum is not known.
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

/// The text of `longtail doctor --generators`.
pub fn table(found: &CalibrationFindings, width: Width) -> String {
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
    let machine = report::labels::longtail_and_machine(&found.environment);
    let mut sections = vec![ReportSection::new(title).table(table)];
    sections.extend(ReportSection::new("").lines(remarks(found)).filled());
    sections.push(ReportSection::new("").lines([LEGEND.to_owned(), machine]));
    text::sections(&sections, width.at_most(COLUMNS))
}

const LEGEND: &str = "\
Requests/s is what the sink counted in the middle of each run: the most that this generator can \
measure here. A faster server cannot be told from its tables; if the sink is near 100 % of a CPU, \
the generator may reach more. CPU: the generator's, for each request. Unclaimed: received by the \
sink and not in the generator's own count, such as requests in flight at the end. Own: what it \
prints itself. Little: its rate x its mean / connections; below 1, connections were idle; above 1, \
times were made up. longtail's p50 and p99 count from the due time, the others' from where each \
starts its clock.";

/// Failed runs, what the audit finds wrong, and missing generators.
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
pub struct SinkUnderLoad {
    server: Server,
    address: SocketAddr,
    clock: SystemClock,
    process: RefCell<ServerProcesses>,
    url: String,
}

/// What the busy sink has counted at an instant.
#[derive(Clone, Copy, Debug)]
struct SinkReading {
    at: Nanos,
    /// Requests that it has received.
    requests: u64,
    /// CPU time that it has used since it was first read.
    cpu: Option<Nanos>,
}

impl SinkReading {
    /// Requests per second between two readings.
    fn rate_since(&self, earlier: &SinkReading) -> f64 {
        (self.requests - earlier.requests) as f64 / (self.at - earlier.at).as_secs_f64()
    }

    /// CPUs that the sink used between two readings.
    fn busy_since(&self, earlier: &SinkReading) -> Option<f64> {
        let cpu = self.cpu? - earlier.cpu?;
        Some(cpu.as_secs_f64() / (self.at - earlier.at).as_secs_f64())
    }
}

impl SinkUnderLoad {
    /// Starts the sink that is built into longtail, which is also `guard`'s program, and waits
    /// until it answers.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        guard: &GuardCommand,
        clock: SystemClock,
    ) -> Result<SinkUnderLoad, GeneratorError> {
        let address: SocketAddr = free_address(Socket::Tcp4, None, &Addresses::default())?;
        let program: OsString = guard.program.clone().into();
        let words = [program, "sink".into(), format!("--listen={address}").into()];
        let dir = std::env::current_dir().unwrap_or_else(|_| ".".into());
        let spec = LaunchSpec::command(words, &dir);
        let server =
            sweep::start_sink(&spec, guard, &clock, || control::sink_requests(address).is_ok())?;
        let mut process = ServerProcesses::of(&[server.pid()]);
        process.search(1);
        let process = RefCell::new(process);
        Ok(SinkUnderLoad { server, address, clock, process, url: format!("http://{address}/") })
    }

    /// What it has counted so far.
    fn ledger(&self) -> Option<SinkLedger> {
        control::sink_ledger(self.address).ok()
    }

    /// Reads the sink while it is busy.
    fn read(&self) -> Option<SinkReading> {
        let before = self.clock.now();
        let requests = self.ledger()?.requests;
        let after = self.clock.now();
        let sample = self.process.borrow_mut().sample(None, false).pop();
        Some(SinkReading {
            at: before + Nanos((after - before).0 / 2),
            requests,
            cpu: sample.and_then(|sample| Some(Nanos(sample.used?.cpu))),
        })
    }

    /// Its ledger once no connection is open any more; `None` if one stays open.
    fn at_rest(&self) -> Option<SinkLedger> {
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

    /// Stops it.
    pub fn stop(self) {
        self.server.stop(Nanos::from_secs(5), &self.clock);
    }
}

#[cfg(test)]
mod tests {
    use model::LoadSettings;

    use super::*;
    use testkit::output::WRK;

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        let of = |values: &[f64]| RateRange::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0]), Some(RateRange { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(of(&[3.0, 1.0, 9.0]), Some(RateRange { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn littles_law_of_a_claim_counts_the_connections_that_were_ordered() {
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
