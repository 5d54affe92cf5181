//! The conductor's end of the pipes: generators on other machines, used as if they were one.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{
    ClockExchange, DriveResult, EngineError, GeneratorPart, LaneProgress, LoadSpec, RecordBatch,
    RunProgress,
};
use launch::dies_with_us;
use model::{Ceiling, Clock, FarGenerator, Nanos, SystemClock, Tally};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

use super::{
    ClockShift, FarHost, GREETING, Order, PartDone, Report, credible, frame, merge,
    receive_credible,
};

/// Exchanges of clock readings; the one with the shortest round trip counts.
const EXCHANGES: u32 = 20;
/// A generator that says nothing for this long is lost. At work it reports its progress every
/// quarter of a second.
const LONGEST_SILENCE: Nanos = Nanos::from_secs(30);
/// How often reports are read, and how soon an interruption is passed on.
const POLL_INTERVAL: Nanos = Nanos::from_millis(20);
/// Time from the order to start until the start, in addition to three round trips.
const LEAD: Nanos = Nanos::from_millis(50);
/// How far off a generator's clock may be.
const CLOCK_ERROR: Nanos = Nanos::from_secs(1);
/// Reports that may wait to be read; a generator that sends more has to wait.
const WAITING_REPORTS: usize = 32;
/// The most that a shell may print before the generator's first line.
const NOISE: usize = 64 << 10;

/// Generators on other machines, which drive each run together.
pub struct FarGenerators(Mutex<Generators>);

struct Generators {
    clock: SystemClock,
    version: String,
    all: Vec<RemoteGenerator>,
}

/// One generator.
struct RemoteGenerator {
    /// The command that connects to it.
    name: String,
    /// Its machine; `None` until it has said.
    host: Option<FarHost>,
    /// `None` after it was lost; the next run starts it again.
    link: Option<Link>,
}

/// The process that connects to a generator, such as ssh. Dropping it closes its input, and kills
/// it if it has not ended within a second.
struct Link {
    process: Child,
    orders: Option<ChildStdin>,
    /// The longest report to accept, in bytes.
    longest_report: Arc<AtomicUsize>,
    /// What it reports, or why it failed; and when that came.
    reports: Receiver<(Nanos, Result<Report, String>)>,
}

impl Drop for Link {
    fn drop(&mut self) {
        drop(self.orders.take());
        for _ in 0..50 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 20_000_000 }));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Link {
    /// Sends an order, waiting up to [`LONGEST_SILENCE`] for the other end to read.
    fn order(&mut self, order: &Order) -> Result<(), String> {
        let orders = self.orders.as_mut().ok_or("it is gone")?;
        let bytes = frame(order);
        let mut left = &bytes[..];
        while !left.is_empty() {
            match orders.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let wait = Timespec {
                        tv_sec: LONGEST_SILENCE.0.cast_signed() / 1_000_000_000,
                        tv_nsec: 0,
                    };
                    match poll(&mut [PollFd::new(orders, PollFlags::OUT)], Some(&wait)) {
                        Ok(0) => return Err(format!("it has read nothing for {LONGEST_SILENCE}")),
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(errno) => return Err(errno.to_string()),
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

/// `exec ssh box2 longtail generate`, from `ssh box2`.
fn shell_line(from: &str) -> String {
    let last = from.split_whitespace().next_back().unwrap_or_default();
    let is_named = last.rsplit('/').next() == Some("longtail");
    format!("exec {from}{} generate", if is_named { "" } else { " longtail" })
}

impl FarGenerators {
    /// Starts a generator by each of these commands. All must be of this `version`.
    ///
    /// # Errors
    /// If one does not start.
    pub fn start(
        from: &[String],
        version: &str,
        clock: SystemClock,
    ) -> Result<FarGenerators, EngineError> {
        let unstarted =
            |name: &String| RemoteGenerator { name: name.clone(), host: None, link: None };
        let all = from.iter().map(unstarted).collect();
        let mut generators = Generators { clock, version: version.to_owned(), all };
        generators.start_missing()?;
        Ok(FarGenerators(Mutex::new(generators)))
    }

    /// The generators' machines, in order.
    pub fn hosts(&self) -> Vec<FarHost> {
        self.generators().all.iter().filter_map(|one| one.host).collect()
    }

    /// How many generators there are.
    pub(crate) fn count(&self) -> u32 {
        self.generators().all.len() as u32
    }

    fn generators(&self) -> MutexGuard<'_, Generators> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the load of one run from all of them, as `engine::drive` does from here.
    ///
    /// # Errors
    /// If one cannot start; then no load is sent.
    pub(crate) fn drive(
        &self,
        spec: &LoadSpec,
        interrupt: &AtomicBool,
        progress: &RunProgress,
        journal: Option<&SyncSender<RecordBatch>>,
    ) -> Result<DriveResult, EngineError> {
        let mut generators = self.generators();
        let driven = generators.drive(spec, interrupt, progress, journal);
        if driven.is_err() {
            // Ends the others, and with them what they have begun.
            generators.all.iter_mut().for_each(|one| one.link = None);
        }
        driven
    }

    /// Measures what all of them together reach with each of these loads, against sinks on their
    /// own machines.
    ///
    /// # Errors
    /// If one cannot measure it.
    pub(crate) fn ceilings(
        &self,
        shapes: &[LoadSpec],
        response_bytes: u64,
    ) -> Result<Vec<Option<Ceiling>>, EngineError> {
        let mut generators = self.generators();
        generators.start_missing()?;
        shapes.iter().map(|shape| generators.ceiling(shape, response_bytes)).collect()
    }
}

impl Generators {
    /// The part of a run that generator `idx` sends.
    fn part(&self, spec: &LoadSpec, idx: usize) -> Box<LoadSpec> {
        let part = GeneratorPart { index: idx as u32, of: self.all.len() as u32 };
        Box::new(LoadSpec { part, ..spec.clone() })
    }

    fn start_missing(&mut self) -> Result<(), EngineError> {
        for idx in 0..self.all.len() {
            if self.all[idx].link.is_none() {
                let link = start(&self.all[idx].name, &self.version, self.clock)
                    .map_err(|why| self.failed(idx, why))?;
                self.all[idx].host = None;
                self.all[idx].link = Some(link);
            }
        }
        for idx in 0..self.all.len() {
            if self.all[idx].host.is_none() {
                let (_, Report::Host(host)) = self.next_report(idx)? else {
                    return Err(self.failed(idx, "it does not say what machine it is"));
                };
                self.all[idx].host = Some(host);
            }
        }
        Ok(())
    }

    fn failed(&self, idx: usize, why: impl Display) -> EngineError {
        EngineError(format!("--from '{}': {why}", self.all[idx].name))
    }

    fn order(&mut self, idx: usize, order: &Order) -> Result<(), EngineError> {
        let sent = match &mut self.all[idx].link {
            Some(link) => link.order(order),
            None => Err("it is gone".to_owned()),
        };
        sent.map_err(|why| self.failed(idx, why))
    }

    /// Waits for a generator's next report, passing over those of a run's progress.
    fn next_report(&mut self, idx: usize) -> Result<(Nanos, Report), EngineError> {
        let failed = |why| Err(self.failed(idx, why));
        let Some(link) = &self.all[idx].link else { return failed("it is gone".to_owned()) };
        let latest = self.clock.now() + LONGEST_SILENCE;
        loop {
            let left = latest.saturating_sub(self.clock.now());
            match link.reports.recv_timeout(Duration::from_nanos(left.0)) {
                Ok((_, Ok(Report::Progress { .. } | Report::Records(_)))) => {}
                Ok((at, Ok(report))) => return Ok((at, report)),
                Ok((_, Err(why))) => return failed(why),
                Err(_) => {
                    return failed(format!(
                        "nothing came for {LONGEST_SILENCE}: does that command ask for a \
                         password? It must not"
                    ));
                }
            }
        }
    }

    /// Compares a generator's clock with ours: the exchange with the shortest round trip.
    fn compare_clocks(&mut self, idx: usize) -> Result<ClockExchange, EngineError> {
        let exchanges = (0..EXCHANGES).map(|_| {
            let asked = self.clock.now();
            self.order(idx, &Order::Clock)?;
            let (answered, Report::Clock(there)) = self.next_report(idx)? else {
                return Err(self.failed(idx, "it does not say what its clock shows"));
            };
            Ok(ClockExchange { asked, there, answered })
        });
        let exchanges = exchanges.collect::<Result<Vec<_>, _>>()?;
        Ok(*exchanges.iter().min_by_key(|exchange| exchange.round_trip()).expect("there were some"))
    }

    fn drive(
        &mut self,
        spec: &LoadSpec,
        interrupt: &AtomicBool,
        progress: &RunProgress,
        journal: Option<&SyncSender<RecordBatch>>,
    ) -> Result<DriveResult, EngineError> {
        self.start_missing()?;
        let count = self.all.len();
        let clocks =
            (0..count).map(|idx| self.compare_clocks(idx)).collect::<Result<Vec<_>, _>>()?;
        self.prepare_parts(spec, &clocks, journal.is_some())?;
        let slowest = clocks.iter().map(ClockExchange::round_trip).max().unwrap_or_default();
        let start = self.clock.now() + LEAD + slowest * 3;
        for idx in 0..count {
            self.order(idx, &Order::Start(start))?;
        }
        progress.set_start(start);
        let mut dropped_records = 0;
        let keep = |batch: RecordBatch| {
            let records = batch.len() as u64;
            if let Some(journal) = journal
                && journal.try_send(batch).is_err()
            {
                dropped_records += records;
            }
        };
        let parts = self.wait_for_parts(spec, start, interrupt, progress, keep);
        let mut far = Vec::with_capacity(count);
        let mut merged = None;
        let mut end = start;
        for (idx, part) in parts.into_iter().enumerate() {
            let name = self.all[idx].name.clone();
            match self.checked_part(part, spec, start) {
                Ok(done) => {
                    end = end.max(done.ended);
                    let clock_error =
                        self.compare_clocks(idx).ok().map(|after| clocks[idx].error(&after));
                    far.push(FarGenerator { clock_error, ..done.facts(name) });
                    merge(&mut merged, done.outcome);
                }
                Err(why) => {
                    self.all[idx].link = None;
                    far.push(FarGenerator::lost(name, why));
                }
            }
        }
        let mut done = DriveResult { far, ..DriveResult::of(spec, start, end, merged) };
        done.outcome.dropped_records += dropped_records;
        Ok(done)
    }

    /// Has each generator open its connections, and waits until all are ready.
    fn prepare_parts(
        &mut self,
        spec: &LoadSpec,
        clocks: &[ClockExchange],
        journal: bool,
    ) -> Result<(), EngineError> {
        let shared_ahead = self.clock.shared_ahead();
        for (idx, exchange) in clocks.iter().enumerate() {
            let clock = ClockShift { ahead: exchange.ahead(), shared_ahead };
            let spec = self.part(spec, idx);
            if let Some(link) = &self.all[idx].link {
                let longest = credible::longest_frame(&spec, journal);
                link.longest_report.store(longest, Ordering::Relaxed);
            }
            self.order(idx, &Order::Prepare { spec, clock, journal })?;
        }
        for idx in 0..clocks.len() {
            let (_, Report::Ready) = self.next_report(idx)? else {
                return Err(self.failed(idx, "it did not get ready"));
            };
        }
        Ok(())
    }

    /// A part whose figures are possible in this run.
    fn checked_part(
        &self,
        part: Result<PartDone, String>,
        spec: &LoadSpec,
        start: Nanos,
    ) -> Result<PartDone, String> {
        let done = part?;
        let latest = self.clock.now() + CLOCK_ERROR;
        credible::check(&done, spec, start, latest).map_err(|why| not_credible(&why))?;
        Ok(done)
    }

    /// Waits until each generator has done its part or is lost. Returns the parts, or why one is
    /// lost. Records of single requests go to `keep`.
    fn wait_for_parts(
        &mut self,
        spec: &LoadSpec,
        start: Nanos,
        interrupt: &AtomicBool,
        progress: &RunProgress,
        mut keep: impl FnMut(RecordBatch),
    ) -> Vec<Result<PartDone, String>> {
        let now = self.clock.now();
        let mut running = RunningParts {
            spec,
            start,
            progress,
            parts: self.all.iter().map(|_| None).collect(),
            last_report: vec![now; self.all.len()],
            last_advance: vec![LastAdvance { ended: 0, at: now }; self.all.len()],
            latest: credible::longest_run(spec).map(|length| start + length + LONGEST_SILENCE),
        };
        let mut is_stopped = false;
        while running.parts.iter().any(Option::is_none) {
            if interrupt.load(Ordering::Relaxed) && !is_stopped {
                is_stopped = true;
                running.latest = Some(self.clock.now() + LONGEST_SILENCE);
                for idx in 0..self.all.len() {
                    let _ = self.order(idx, &Order::Stop);
                }
            }
            self.clock.sleep(POLL_INTERVAL);
            for idx in 0..self.all.len() {
                self.take_reports(idx, &mut running, &mut keep);
            }
            running.give_up_the_silent(self.clock.now());
        }
        running.parts.into_iter().flatten().collect()
    }

    /// Takes the reports that came from a generator, and asks it for its tally if somebody waits
    /// for that.
    fn take_reports(
        &mut self,
        idx: usize,
        running: &mut RunningParts<'_>,
        keep: &mut impl FnMut(RecordBatch),
    ) {
        let link = self.all[idx].link.iter();
        let reports: Vec<_> = link.flat_map(|link| link.reports.try_iter()).collect();
        for (at, report) in reports {
            let is_progress = matches!(report, Ok(Report::Progress { .. }));
            running.take(idx, at, report, keep);
            let is_asked = running.progress.lanes().get(idx).is_some_and(LaneProgress::is_asked);
            if is_progress && is_asked {
                let _ = self.order(idx, &Order::Tally);
            }
        }
    }

    fn ceiling(
        &mut self,
        shape: &LoadSpec,
        response_bytes: u64,
    ) -> Result<Option<Ceiling>, EngineError> {
        // With fewer connections than generators some have none.
        let mut asked = Vec::new();
        for idx in 0..self.all.len() {
            let spec = self.part(shape, idx);
            if !spec.shares().is_empty() {
                self.order(idx, &Order::Calibrate { spec, response_bytes })?;
                asked.push(idx);
            }
        }
        let mut rate = Some(0.0);
        for idx in asked {
            let (_, Report::Ceiling(ceiling)) = self.next_report(idx)? else {
                return Err(
                    self.failed(idx, "it does not say how many requests per second it can send")
                );
            };
            if ceiling.is_some_and(|ceiling| ceiling.rate_per_s < 0.0) {
                return Err(self.failed(idx, "it says that it sends less than nothing"));
            }
            rate = rate.zip(ceiling).map(|(rate, ceiling)| rate + ceiling.rate_per_s);
        }
        Ok(rate.map(|rate_per_s| Ceiling { rate_per_s }))
    }
}

/// A run that generators on other machines have begun.
struct RunningParts<'a> {
    spec: &'a LoadSpec,
    start: Nanos,
    progress: &'a RunProgress,
    /// Each generator's part, or why it is lost; `None` while it goes on.
    parts: Vec<Option<Result<PartDone, String>>>,
    /// When each generator last reported anything.
    last_report: Vec<Nanos>,
    last_advance: Vec<LastAdvance>,
    /// When the run must be over; `None` if only the number of its requests ends it.
    latest: Option<Nanos>,
}

impl RunningParts<'_> {
    /// Takes what generator `idx` reported `at` that time.
    fn take(
        &mut self,
        idx: usize,
        at: Nanos,
        report: Result<Report, String>,
        keep: &mut impl FnMut(RecordBatch),
    ) {
        self.last_report[idx] = at;
        match report {
            Ok(Report::Progress { ended, connected, tally }) => {
                self.show_progress(idx, at, ended, tally);
                if let Some(lane) = self.progress.lanes().get(idx) {
                    lane.show_connected(connected);
                }
            }
            Ok(Report::Records(batch)) => {
                if batch.iter().all(|record| record.exchange.is_possible()) {
                    keep(batch);
                } else {
                    let why = not_credible("a request that ended before it was sent");
                    self.parts[idx].get_or_insert(Err(why));
                }
            }
            Ok(Report::Done(done)) => _ = self.parts[idx].get_or_insert(Ok(*done)),
            Ok(
                Report::Host(_)
                | Report::Clock(_)
                | Report::Ready
                | Report::Refused(_)
                | Report::Ceiling(_),
            ) => {}
            Err(why) => _ = self.parts[idx].get_or_insert(Err(why)),
        }
    }

    fn show_progress(&mut self, idx: usize, at: Nanos, ended: u64, tally: Option<Box<Tally>>) {
        let Some(lane) = self.progress.lanes().get(idx) else { return };
        if ended > self.last_advance[idx].ended {
            self.last_advance[idx] = LastAdvance { ended, at };
        }
        let latest = at + CLOCK_ERROR;
        let is_credible =
            |tally: &Tally| credible::check_tally(tally, self.spec, self.start, latest).is_ok();
        match tally.filter(|tally| is_credible(tally)) {
            Some(tally) => lane.show(ended, || *tally),
            None => lane.show_ended(ended),
        }
    }

    /// Counts generators as lost that say nothing, go on for too long, or make no progress.
    fn give_up_the_silent(&mut self, now: Nanos) {
        let longest_pause = credible::longest_pause(self.spec) + LONGEST_SILENCE;
        for idx in 0..self.parts.len() {
            let silence = now.saturating_sub(self.last_report[idx]);
            let pause = now.saturating_sub(self.last_advance[idx].at);
            let why = if silence > LONGEST_SILENCE {
                format!("nothing came from it for {LONGEST_SILENCE}")
            } else if self.latest.is_some_and(|latest| now > latest) {
                format!("it goes on {LONGEST_SILENCE} after the end of the run")
            } else if self.latest.is_none() && pause > longest_pause {
                format!("none of its requests has ended for {longest_pause}")
            } else {
                continue;
            };
            self.parts[idx].get_or_insert(Err(why));
        }
    }
}

/// When a generator last reported that more requests have ended, and how many.
#[derive(Clone, Copy)]
struct LastAdvance {
    ended: u64,
    at: Nanos,
}

fn not_credible(why: &str) -> String {
    format!("what it reports cannot be: {why}")
}

/// Starts the command that connects to a generator, and two threads that read its output.
fn start(name: &str, version: &str, clock: SystemClock) -> Result<Link, String> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(shell_line(name));
    // A terminal's Ctrl-C is for us: a generator is asked to stop, and reports.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    dies_with_us(&mut command);
    let mut process = command.spawn().map_err(|error| error.to_string())?;
    let orders = process.stdin.take();
    let output = process.stdout.take();
    let errors = process.stderr.take();
    let (sender, reports) = sync_channel(WAITING_REPORTS);
    let longest_report = Arc::new(AtomicUsize::new(credible::LONGEST_WITHOUT_PLAN));
    let longest = Arc::clone(&longest_report);
    let link = Link { process, orders, longest_report, reports };
    let (Some(orders), Some(output), Some(errors)) = (&link.orders, output, errors) else {
        return Err("it has no pipes".to_owned());
    };
    ioctl_fionbio(orders, true).map_err(|errno| errno.to_string())?;
    let (error_sender, error_text) = channel();
    spawn("far-errors", move || drop(error_sender.send(last_errors(errors))))?;
    let reader = ReportReader {
        output: BufReader::new(output),
        version: version.to_owned(),
        clock,
        longest,
        reports: sender,
        error_text,
    };
    spawn("far-reports", move || reader.run())?;
    Ok(link)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(run).map(drop).map_err(|error| error.to_string())
}

/// The end of what a process writes to its standard error.
fn last_errors(mut errors: ChildStderr) -> String {
    let mut last = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = errors.read(&mut bytes) {
        last.extend_from_slice(&bytes[..read]);
        last.drain(..last.len().saturating_sub(bytes.len()));
    }
    String::from_utf8_lossy(&last).into_owned()
}

/// Reads a generator's reports, in a thread of its own.
struct ReportReader {
    output: BufReader<ChildStdout>,
    /// Our version, which must be the generator's.
    version: String,
    clock: SystemClock,
    /// The longest report to accept, in bytes.
    longest: Arc<AtomicUsize>,
    reports: SyncSender<(Nanos, Result<Report, String>)>,
    /// What the process wrote to its standard error, once that is closed.
    error_text: Receiver<String>,
}

impl ReportReader {
    fn run(mut self) {
        let first_line = greeting(&mut self.output);
        if let Ok(theirs) = &first_line {
            let ours = &self.version;
            if theirs != ours {
                self.pass_on(Err(format!(
                    "longtail is {theirs} there and {ours} here: install the same on both"
                )));
                return;
            }
            if !self.pass_on_reports() {
                return;
            }
        }
        // A process that goes on keeps its standard error open.
        let why = match (self.error_text.recv_timeout(Duration::from_secs(1)), first_line) {
            (Ok(errors), Ok(_)) => end_of(None, &errors),
            (Ok(errors), Err(noise)) => end_of(Some(&noise), &errors),
            (Err(_), Ok(_)) => "it says no more: its output is closed".to_owned(),
            (Err(_), Err(noise)) => end_of(Some(&noise), ""),
        };
        self.pass_on(Err(why));
    }

    /// Passes reports on until the output ends. Returns whether the reason for its end has still to
    /// be reported.
    fn pass_on_reports(&mut self) -> bool {
        loop {
            let longest = self.longest.load(Ordering::Relaxed);
            match receive_credible(&mut self.output, longest) {
                Ok(Some(Report::Refused(why))) => _ = self.pass_on(Err(why)),
                Ok(Some(report)) => {
                    if !self.pass_on(Ok(report)) {
                        return false;
                    }
                }
                Ok(None) => return true,
                Err(why) => {
                    self.pass_on(Err(format!("what it says is not understood: {why}")));
                    return false;
                }
            }
        }
    }

    /// Passes a report on. Returns whether somebody still takes reports.
    fn pass_on(&self, report: Result<Report, String>) -> bool {
        self.reports.send((self.clock.now(), report)).is_ok()
    }
}

/// Reads up to a generator's first line; the version in it.
///
/// # Errors
/// The last line that came instead.
fn greeting(output: &mut impl BufRead) -> Result<String, String> {
    let mut noise = String::new();
    let mut line = Vec::new();
    let mut limited = output.take(NOISE as u64);
    while let Ok(1..) = limited.read_until(b'\n', &mut line) {
        String::from_utf8_lossy(&line).trim().clone_into(&mut noise);
        if let Some(version) = noise.strip_prefix(GREETING) {
            return Ok(version.to_owned());
        }
        line.clear();
    }
    Err(noise)
}

/// Why a generator ended, as far as that is known. `noise` is what came in place of its first line,
/// if it never began.
fn end_of(noise: Option<&str>, errors: &str) -> String {
    let last = |text: &str| {
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    };
    let reason = last(errors).or_else(|| last(noise.unwrap_or_default()));
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    match noise {
        Some(_) => format!(
            "no longtail answers there{reason}: is it installed and on the PATH? Its path may end \
             the command: 'ssh box2 /opt/longtail'"
        ),
        None => format!("it ended{reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longtail_is_added_to_a_command_that_does_not_end_with_it() {
        assert_eq!(shell_line("ssh box2"), "exec ssh box2 longtail generate");
        assert_eq!(shell_line("ssh box2 /opt/longtail"), "exec ssh box2 /opt/longtail generate");
        assert_eq!(shell_line("ssh longtail@box2"), "exec ssh longtail@box2 longtail generate");
    }

    #[test]
    fn lines_before_the_first_line_of_a_generator_are_skipped() {
        assert_eq!(
            greeting(&mut &b"Welcome!\nlongtail generate 1.2.3\n\0\0"[..]),
            Ok("1.2.3".to_owned())
        );
        assert_eq!(
            greeting(&mut &b"Welcome!\nno such command"[..]),
            Err("no such command".to_owned())
        );
        assert!(
            end_of(Some("x"), "bash: longtail: command not found\n")
                .contains("(bash: longtail: command not found)")
        );
    }
}
