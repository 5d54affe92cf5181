//! The conductor's end: generators on other machines, as one.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{
    ClockExchange, DriveResult, EngineError, GeneratorPart, LoadSpec, RecordBatch, RunProgress,
};
use launch::dies_with_us;
use model::{Ceiling, Clock, FarGenerator, Nanos, SystemClock, Tally};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

use super::{
    ClockShift, FarHost, GREETING, Order, PartDone, Report, credible, frame, merge,
    receive_credible,
};

/// Exchanges by which a clock is known.
const EXCHANGES: u32 = 20;
/// Longest silence: of a start, and of a generator at work, which says every quarter of a second
/// how far it is.
const LONGEST_SILENCE: Nanos = Nanos::from_secs(30);
/// How late an interruption is passed on.
const GLANCE: Nanos = Nanos::from_millis(20);
/// Between the order to start and the start, beside three round trips.
const LEAD: Nanos = Nanos::from_millis(50);
/// By how much a generator's clock may be off.
const CLOCK_ERROR: Nanos = Nanos::from_secs(1);
/// Reports that may wait to be read: then whoever floods us waits.
const WAITING_REPORTS: usize = 32;
/// What a shell prints before a generator's first line, at the most.
const NOISE: usize = 64 << 10;

/// Generators on other machines, which drive each run together.
pub struct FarGenerators(Mutex<Generators>);

struct Generators {
    clock: SystemClock,
    version: String,
    all: Vec<RemoteGenerator>,
}

/// One of them.
struct RemoteGenerator {
    /// The command that leads to it.
    name: String,
    /// `None` until it has said.
    host: Option<FarHost>,
    /// `None` after it was lost, until the next run.
    link: Option<Link>,
}

/// A process that leads to a generator. It ends when this is dropped: its input ends, and then the
/// kernel kills what has not.
struct Link {
    process: Child,
    orders: Option<ChildStdin>,
    /// No report may be longer, in bytes.
    longest_report: Arc<AtomicUsize>,
    /// What it said, or why it cannot or does not any more; and when that came.
    news: Receiver<(Nanos, Result<Report, String>)>,
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
    /// Says something, waiting as long as anybody may be silent for the other end to read.
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

/// `exec ssh box2 longtail generate`, of `ssh box2`.
fn shell_words(from: &str) -> String {
    let last = from.split_whitespace().next_back().unwrap_or_default();
    let is_named = last.rsplit('/').next() == Some("longtail");
    format!("exec {from}{} generate", if is_named { "" } else { " longtail" })
}

impl FarGenerators {
    /// Starts a generator by each of these commands, which must be of the same `version` as we are.
    ///
    /// # Errors
    /// Where one does not start.
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

    /// Their machines, in order.
    pub fn hosts(&self) -> Vec<FarHost> {
        self.generators().all.iter().filter_map(|one| one.host).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.generators().all.len() as u32
    }

    fn generators(&self) -> MutexGuard<'_, Generators> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives one run with all of them, as `engine::drive` does.
    ///
    /// # Errors
    /// Where one cannot start, before any load is sent.
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
            // What is under way at the others ends with them.
            generators.all.iter_mut().for_each(|one| one.link = None);
        }
        driven
    }

    /// What all of them together reach with each of these settings against sinks on their own
    /// machines.
    ///
    /// # Errors
    /// Where one cannot measure it.
    pub(crate) fn ceilings(
        &self,
        shapes: &[LoadSpec],
        answer_bytes: u64,
    ) -> Result<Vec<Option<Ceiling>>, EngineError> {
        let mut generators = self.generators();
        generators.start_missing()?;
        shapes.iter().map(|shape| generators.ceiling(shape, answer_bytes)).collect()
    }
}

impl Generators {
    /// This one's part of a run.
    fn part(&self, spec: &LoadSpec, index: usize) -> Box<LoadSpec> {
        let part = GeneratorPart { index: index as u32, of: self.all.len() as u32 };
        Box::new(LoadSpec { part, ..spec.clone() })
    }

    fn start_missing(&mut self) -> Result<(), EngineError> {
        for one in 0..self.all.len() {
            if self.all[one].link.is_none() {
                let link = start(&self.all[one].name, &self.version, self.clock)
                    .map_err(|why| self.failed(one, why))?;
                (self.all[one].host, self.all[one].link) = (None, Some(link));
            }
        }
        for one in 0..self.all.len() {
            if self.all[one].host.is_none() {
                let (_, Report::Host(host)) = self.next_of(one)? else {
                    return Err(self.failed(one, "it does not say what machine it is"));
                };
                self.all[one].host = Some(host);
            }
        }
        Ok(())
    }

    fn failed(&self, one: usize, why: impl Display) -> EngineError {
        EngineError(format!("--from '{}': {why}", self.all[one].name))
    }

    fn order(&mut self, one: usize, order: &Order) -> Result<(), EngineError> {
        let said = self.all[one]
            .link
            .as_mut()
            .map_or(Err("it is gone".to_owned()), |link| link.order(order));
        said.map_err(|why| self.failed(one, why))
    }

    /// The next report of one of them, but for those of a run's progress.
    fn next_of(&mut self, one: usize) -> Result<(Nanos, Report), EngineError> {
        let failed = |why| Err(self.failed(one, why));
        let Some(link) = &self.all[one].link else { return failed("it is gone".to_owned()) };
        let latest = self.clock.now() + LONGEST_SILENCE;
        loop {
            let left = latest.saturating_sub(self.clock.now());
            match link.news.recv_timeout(Duration::from_nanos(left.0)) {
                Ok((_, Ok(Report::Progress { .. } | Report::Records(_)))) => {}
                Ok((at, Ok(report))) => return Ok((at, report)),
                Ok((_, Err(why))) => return failed(why),
                Err(_) => {
                    return failed(format!(
                        "nothing came for {LONGEST_SILENCE}: does that command ask for a password? It must not"
                    ));
                }
            }
        }
    }

    /// The best of some exchanges with one of them.
    fn compare_clocks(&mut self, one: usize) -> Result<ClockExchange, EngineError> {
        let exchanges = (0..EXCHANGES).map(|_| {
            let asked = self.clock.now();
            self.order(one, &Order::Clock)?;
            let (answered, Report::Clock(there)) = self.next_of(one)? else {
                return Err(self.failed(one, "it does not say what its clock shows"));
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
        let shared_ahead = self.clock.shared_ahead();
        let before =
            (0..count).map(|one| self.compare_clocks(one)).collect::<Result<Vec<_>, _>>()?;
        for (one, exchange) in before.iter().enumerate() {
            let shift = ClockShift { ahead: exchange.ahead(), shared_ahead };
            let spec = self.part(spec, one);
            if let Some(link) = &self.all[one].link {
                let longest = credible::longest_frame(&spec, journal.is_some());
                link.longest_report.store(longest, Ordering::Relaxed);
            }
            self.order(one, &Order::Prepare { spec, clock: shift, journal: journal.is_some() })?;
        }
        for one in 0..count {
            let (_, Report::Ready) = self.next_of(one)? else {
                return Err(self.failed(one, "it does not get ready"));
            };
        }
        let slowest = before.iter().map(ClockExchange::round_trip).max().unwrap_or_default();
        let start = self.clock.now() + LEAD + slowest * 3;
        (0..count).try_for_each(|one| self.order(one, &Order::Start(start)))?;
        progress.set_start(start);
        let mut dropped_records = 0;
        let keep = |batch: RecordBatch| {
            let records = batch.len() as u64;
            dropped_records +=
                journal.map_or(Ok(()), |journal| journal.try_send(batch)).map_or(records, |()| 0);
        };
        let parts = self.wait_for_parts(spec, start, interrupt, progress, keep);
        let (mut far, mut merged, mut end) = (Vec::with_capacity(count), None, start);
        for (one, part) in parts.into_iter().enumerate() {
            let name = self.all[one].name.clone();
            let latest = self.clock.now() + CLOCK_ERROR;
            let part = part.and_then(|done| {
                credible::check(&done, spec, start, latest).map_err(|why| not_credible(&why))?;
                Ok(done)
            });
            match part {
                Ok(done) => {
                    end = end.max(done.ended);
                    let clock_error =
                        self.compare_clocks(one).ok().map(|after| before[one].error(&after));
                    far.push(FarGenerator { clock_error, ..done.facts(name) });
                    merge(&mut merged, done.outcome);
                }
                Err(why) => {
                    self.all[one].link = None;
                    far.push(FarGenerator::lost(name, why));
                }
            }
        }
        let mut done = DriveResult { far, ..DriveResult::of(spec, start, end, merged) };
        done.outcome.dropped_records += dropped_records;
        Ok(done)
    }

    /// Waits until each has done its part, or is lost: then why. Single requests go to `keep`.
    fn wait_for_parts(
        &mut self,
        spec: &LoadSpec,
        start: Nanos,
        interrupt: &AtomicBool,
        progress: &RunProgress,
        mut keep: impl FnMut(RecordBatch),
    ) -> Vec<Result<PartDone, String>> {
        let mut parts: Vec<Option<Result<PartDone, String>>> =
            self.all.iter().map(|_| None).collect();
        let mut last_news = vec![self.clock.now(); parts.len()];
        let mut last_advance = vec![LastAdvance { ended: 0, at: self.clock.now() }; parts.len()];
        let mut latest = credible::longest_run(spec).map(|length| start + length + LONGEST_SILENCE);
        let mut is_stopped = false;
        while parts.iter().any(Option::is_none) {
            if interrupt.load(Ordering::Relaxed) && !is_stopped {
                is_stopped = true;
                latest = Some(self.clock.now() + LONGEST_SILENCE);
                (0..parts.len()).for_each(|one| drop(self.order(one, &Order::Stop)));
            }
            self.clock.sleep(GLANCE);
            for one in 0..parts.len() {
                let news: Vec<_> =
                    self.all[one].link.iter().flat_map(|link| link.news.try_iter()).collect();
                for (at, event) in news {
                    last_news[one] = at;
                    match event {
                        Ok(Report::Progress { ended, connected, tally }) => {
                            let Some(lane) = progress.lanes().get(one) else { continue };
                            lane.show_connected(connected);
                            if ended > last_advance[one].ended {
                                last_advance[one] = LastAdvance { ended, at };
                            }
                            let latest = at + CLOCK_ERROR;
                            let is_credible = |tally: &Tally| {
                                credible::check_tally(tally, spec, start, latest).is_ok()
                            };
                            match tally.filter(|tally| is_credible(tally)) {
                                Some(tally) => lane.show(ended, || *tally),
                                None => lane.show_ended(ended),
                            }
                            // Where somebody wants its tally.
                            if lane.is_asked() {
                                let _ = self.order(one, &Order::Tally);
                            }
                        }
                        Ok(Report::Records(batch)) => {
                            if batch.iter().all(|record| record.exchange.is_possible()) {
                                keep(batch);
                            } else {
                                let why = not_credible("a request that ended before it was sent");
                                parts[one].get_or_insert(Err(why));
                            }
                        }
                        Ok(Report::Done(done)) => _ = parts[one].get_or_insert(Ok(*done)),
                        Ok(_) => {}
                        Err(why) => _ = parts[one].get_or_insert(Err(why)),
                    }
                }
            }
            let now = self.clock.now();
            let pause = credible::longest_pause(spec) + LONGEST_SILENCE;
            for ((part, last), advance) in parts.iter_mut().zip(&last_news).zip(&last_advance) {
                let lost = if now.saturating_sub(*last) > LONGEST_SILENCE {
                    format!("nothing came from it for {LONGEST_SILENCE}")
                } else if latest.is_some_and(|latest| now > latest) {
                    format!("it goes on {LONGEST_SILENCE} after the end of the run")
                } else if latest.is_none() && now.saturating_sub(advance.at) > pause {
                    format!("none of its requests has ended for {pause}")
                } else {
                    continue;
                };
                part.get_or_insert(Err(lost));
            }
        }
        parts.into_iter().flatten().collect()
    }

    fn ceiling(
        &mut self,
        shape: &LoadSpec,
        answer_bytes: u64,
    ) -> Result<Option<Ceiling>, EngineError> {
        // With fewer connections than generators some have none.
        let mut asked = Vec::new();
        for one in 0..self.all.len() {
            let spec = self.part(shape, one);
            if !spec.shares().is_empty() {
                self.order(one, &Order::Calibrate { spec, answer_bytes })?;
                asked.push(one);
            }
        }
        let mut rate = Some(0.0);
        for one in asked {
            let (_, Report::Ceiling(ceiling)) = self.next_of(one)? else {
                return Err(
                    self.failed(one, "it does not say how many requests per second it can send")
                );
            };
            if ceiling.is_some_and(|ceiling| ceiling.rate_per_s < 0.0) {
                return Err(self.failed(one, "it says that it sends less than nothing"));
            }
            rate = rate.zip(ceiling).map(|(rate, ceiling)| rate + ceiling.rate_per_s);
        }
        Ok(rate.map(|rate_per_s| Ceiling { rate_per_s }))
    }
}

/// When a generator said last that more requests have ended, and how many.
#[derive(Clone, Copy)]
struct LastAdvance {
    ended: u64,
    at: Nanos,
}

fn not_credible(why: &str) -> String {
    format!("what it reports cannot be: {why}")
}

/// Starts the command that leads to a generator, and two threads that read what comes of it.
fn start(name: &str, version: &str, clock: SystemClock) -> Result<Link, String> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(shell_words(name));
    // A terminal's Ctrl-C is for us: a generator is asked to stop, and reports.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    dies_with_us(&mut command);
    let mut process = command.spawn().map_err(|error| error.to_string())?;
    let (orders, output, errors) =
        (process.stdin.take(), process.stdout.take(), process.stderr.take());
    let (tell, news) = sync_channel(WAITING_REPORTS);
    let longest_report = Arc::new(AtomicUsize::new(credible::LONGEST_WITHOUT_PLAN));
    let longest = Arc::clone(&longest_report);
    let link = Link { process, orders, longest_report, news };
    let (Some(orders), Some(output), Some(mut errors)) = (&link.orders, output, errors) else {
        return Err("it has no pipes".to_owned());
    };
    ioctl_fionbio(orders, true).map_err(|errno| errno.to_string())?;
    let (complain, complaints) = channel();
    let ours = version.to_owned();
    let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(run)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    spawn(
        "far-errors",
        Box::new(move || {
            let (mut last, mut bytes) = (Vec::new(), [0; 4096]);
            while let Ok(read @ 1..) = errors.read(&mut bytes) {
                last.extend_from_slice(&bytes[..read]);
                last.drain(..last.len().saturating_sub(4096));
            }
            let _ = complain.send(String::from_utf8_lossy(&last).into_owned());
        }),
    )?;
    spawn(
        "far-reports",
        Box::new(move || {
            let say = |what| tell.send((clock.now(), what)).is_ok();
            let mut output = BufReader::new(output);
            let greeted = greeting(&mut output);
            if let Ok(there) = &greeted {
                if *there != ours {
                    say(Err(format!(
                        "longtail is {there} there and {ours} here: install the same on both"
                    )));
                    return;
                }
                loop {
                    match receive_credible(&mut output, longest.load(Ordering::Relaxed)) {
                        Ok(Some(Report::Refused(why))) => drop(say(Err(why))),
                        Ok(Some(report)) => {
                            if !say(Ok(report)) {
                                return;
                            }
                        }
                        Ok(None) => break,
                        Err(why) => {
                            say(Err(format!("what it says is not understood: {why}")));
                            return;
                        }
                    }
                }
            }
            // A process that goes on keeps its stderr.
            let Ok(complaint) = complaints.recv_timeout(Duration::from_secs(1)) else {
                say(Err(match greeted {
                    Ok(_) => "it says no more: its output is closed".to_owned(),
                    Err(noise) => end_of(Some(&noise), ""),
                }));
                return;
            };
            say(Err(end_of(greeted.err().as_deref(), &complaint)));
        }),
    )?;
    Ok(link)
}

/// Reads up to a generator's first line: the version in it.
///
/// # Errors
/// What came instead, where there is none.
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

/// Why it ended, as far as that is known: of one that never began (`noise` is what came instead),
/// and of one that did.
fn end_of(noise: Option<&str>, complaint: &str) -> String {
    let last = |text: &str| {
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    };
    let said = last(complaint).or_else(|| last(noise.unwrap_or_default()));
    let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
    match noise {
        Some(_) => format!(
            "no longtail answers there{said}: is it installed and on the PATH? Its path may end the command: 'ssh box2 /opt/longtail'"
        ),
        None => format!("it ended{said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_added_where_the_command_does_not_end_with_it() {
        assert_eq!(shell_words("ssh box2"), "exec ssh box2 longtail generate");
        assert_eq!(shell_words("ssh box2 /opt/longtail"), "exec ssh box2 /opt/longtail generate");
        assert_eq!(shell_words("ssh longtail@box2"), "exec ssh longtail@box2 longtail generate");
    }

    #[test]
    fn what_a_shell_prints_first_is_passed_over() {
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
