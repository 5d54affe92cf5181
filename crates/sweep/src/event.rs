//! Does something to the server in the middle of a run (`--during`), and watches closely what
//! becomes of its processes.
//!
//! What happened is read from processes and from what the server wrote, never from what was asked.
//! If the event is a command that still runs at the end of the run, it gets some time to finish,
//! and is then ended; at once if the user stopped the run. What a finished command left behind,
//! such as a server, is not touched.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use engine::{Endpoint, RecordBatch, RunProgress};
use judge::event::settled;
use launch::{GuardCommand, Server};
use model::secret::MaskedText;
use model::{
    Clock, ControlServer, EventCommand, EventKind, EventRecord, EventRequests, EventTimes,
    Exchange, Nanos, PlannedEvent, SystemClock, Tally, TimedRequest,
};
use probe::http::NEVER;
use probe::processes::memory_of_tree;
use probe::server_life::ServerLife;
use probe::{control, puma_setup, puma_stats};
use rustix::process::{Pid, Signal, kill_process};

use crate::event_command::RunningCommand;
use crate::listeners::Listeners;
use crate::others_cpu::{CPU_PERIOD, OthersCpuSeries};

/// How often the server's processes are looked at.
const LOOK_PERIOD: Nanos = Nanos::from_millis(20);
/// The pause between two searches for a new first process, in multiples of what the last one took:
/// reading many sockets and processes must not take a CPU from the server.
const SEARCH_PAUSE: u64 = 10;
/// The lanes are asked for their figures this long before the event.
const ASK_BEFORE: Nanos = Nanos::from_millis(300);
/// How long a command is waited for when the run is over.
const LAST_PATIENCE: Nanos = Nanos::from_secs(10);
/// The most lines of the server's log that are kept, and the most of the log that is read.
const MOST_LINES: usize = 60;
const MOST_OF_LOG: u64 = 4 << 20;
/// The most requests of which a record is kept: 120 MB.
const MOST_REQUESTS: usize = 5_000_000;

/// An event, and the server to which it is done.
#[derive(Clone, Debug)]
pub struct EventOrder {
    /// What to do.
    pub planned: PlannedEvent,
    /// When, since the start of the measured window.
    pub at: Nanos,
    /// The server's first processes; none if they are not on this machine, or not visible.
    pub roots: Vec<u32>,
    /// Where it listens.
    pub place: Endpoint,
    /// Puma's control server.
    pub control: Option<ControlServer>,
}

/// An event that a run has.
#[derive(Clone, Copy)]
pub(crate) struct EventOfRun<'a> {
    pub(crate) order: &'a EventOrder,
    /// The server, if longtail started it.
    pub(crate) own: Option<OwnServer<'a>>,
}

/// A server that longtail started, and can start again. It writes to longtail.
#[derive(Clone, Copy)]
pub(crate) struct OwnServer<'a> {
    pub(crate) server: &'a Server,
    pub(crate) guard: &'a GuardCommand,
}

/// What was seen of an event, without the requests.
pub(crate) struct SeenEvent {
    record: EventRecord,
    others: OthersCpuSeries,
    /// When the measured window began, on the run's clock.
    begun: Nanos,
    /// The server that took the place of the one that was stopped.
    pub(crate) restarted: Option<Server>,
}

/// Waits for the run to begin, does the event, and watches the server until the run is `over`. If
/// the run was asked to `stop` early, a command that still goes on is ended at once.
pub(crate) fn conduct_event(
    event: EventOfRun<'_>,
    warm_up: Nanos,
    clock: &SystemClock,
    progress: &RunProgress,
    stop: &AtomicBool,
    over: &AtomicBool,
) -> SeenEvent {
    let mut watched = WatchedEvent::begin(event, clock);
    while progress.start() == Nanos::ZERO && !over.load(Ordering::Relaxed) {
        clock.sleep(LOOK_PERIOD);
    }
    watched.begun = progress.start() + warm_up;
    let mut next = clock.now();
    let mut is_asked = false;
    while clock.sleep_until(next, over) {
        watched.look();
        let now = watched.now();
        if !is_asked && now + ASK_BEFORE >= event.order.at {
            is_asked = true;
            let _ = progress.tally();
        }
        if watched.record.at.is_none() && watched.record.done.is_empty() && now >= event.order.at {
            watched.record.closed_before = progress.tally().map(|tally| tally.closed_by_server);
            watched.act();
        }
        next = (next + LOOK_PERIOD).max(clock.now());
    }
    watched.wait_for_command(stop);
    watched.end()
}

/// An event that is waited for, or has happened.
struct WatchedEvent<'a> {
    order: &'a EventOrder,
    /// The server that is to be started again as soon as it has ended.
    to_start: Option<OwnServer<'a>>,
    restarted: Option<Server>,
    clock: &'a SystemClock,
    /// When the measured window began.
    begun: Nanos,
    life: ServerLife,
    record: EventRecord,
    command: Option<RunningCommand>,
    /// The command's processes.
    command_life: ServerLife,
    log: Option<ServerLog<'a>>,
    phase: Option<u32>,
    version: Option<String>,
    others: OthersCpuSeries,
    next_slow_look: Nanos,
    next_search: Nanos,
}

impl<'a> WatchedEvent<'a> {
    fn begin(event: EventOfRun<'a>, clock: &'a SystemClock) -> Self {
        let order = event.order;
        let mut life = ServerLife::of(&order.roots);
        life.look(Nanos::ZERO, true);
        let mut record = EventRecord::planned(order.planned.clone());
        record.loses_options = event.own.is_some_and(|own| own.server.gives_ruby_a_library());
        WatchedEvent {
            order,
            to_start: event.own.filter(|_| order.planned.kind == EventKind::StopStart),
            restarted: None,
            clock,
            begun: clock.now(),
            life,
            record,
            command: None,
            command_life: ServerLife::of(&[]),
            log: ServerLog::of(event),
            phase: phase_of(order),
            version: order.roots.first().and_then(|root| puma_setup::version_of(*root)),
            others: OthersCpuSeries::begin(clock.now()),
            next_slow_look: clock.now() + CPU_PERIOD,
            next_search: Nanos::ZERO,
        }
    }

    /// Time since the start of the measured window.
    fn now(&self) -> Nanos {
        self.clock.now().saturating_sub(self.begun)
    }

    fn look(&mut self) {
        self.look_for_root();
        self.life.look(self.now(), false);
        self.command_life.look(self.now(), false);
        if self.record.at.is_some() {
            self.start_again();
        }
        if let Some(command) = &self.command {
            command.forget_old_output();
        }
        if let Some(command) = &mut self.command
            && self.record.command.is_none()
            && let Some(exit) = command.exit()
        {
            let exit_code = exit.code();
            let last_line = command.last_line();
            let ended = Some(self.clock.now().saturating_sub(self.begun));
            self.record.command = Some(EventCommand { ended, exit_code, last_line });
        }
        if self.clock.now() < self.next_slow_look {
            return;
        }
        self.next_slow_look = self.clock.now() + CPU_PERIOD;
        let known_ticks = self.life.cpu_ticks() + self.command_life.cpu_ticks();
        self.others.read(self.clock.now(), known_ticks);
    }

    /// Looks for the server that took the place of one that ended. Most searches find no listener,
    /// and cost little; a new one is found at once, before it serves.
    fn look_for_root(&mut self) {
        let begun = self.clock.now();
        let is_wanted = self.life.living_root().is_none() && !self.order.roots.is_empty();
        if !is_wanted || begun < self.next_search {
            return;
        }
        let (_, roots) = Listeners::now().serving(&self.order.place);
        self.life.add_roots(&roots);
        let now = self.clock.now();
        self.next_search = now + (now - begun) * SEARCH_PAUSE;
    }

    /// Starts a server again that was stopped, as soon as it has ended.
    fn start_again(&mut self) {
        let Some(own) = self.to_start.filter(|own| own.server.exited().is_some()) else { return };
        self.to_start = None;
        match own.server.start_again(own.guard, self.clock) {
            Ok(server) => {
                self.life.add_roots(&[server.pid()]);
                self.restarted = Some(server);
            }
            Err(why) => {
                let _ = write!(self.record.done, "; it could not be started again: {why}");
            }
        }
    }

    /// Does what was asked for.
    fn act(&mut self) {
        self.record.memory_before = self.memory();
        let at = self.now();
        match self.attempt() {
            Ok(done) => {
                self.record.at = Some(at);
                self.record.done = done;
            }
            Err(why) => self.record.done = why,
        }
    }

    /// Returns what was done, in words, or why it could not be.
    fn attempt(&mut self) -> Result<String, String> {
        let kind = &self.order.planned.kind;
        if let EventKind::Command(command) = kind {
            let running = RunningCommand::start(command.exposed())?;
            self.command_life.add_roots(&[running.pid()]);
            self.command = Some(running);
            return Ok(format!("`{command}` was run"));
        }
        let by_signal = self.send_signal(kind);
        match (by_signal, &self.order.control, kind.control_command()) {
            (Ok(done), _, _) => Ok(done),
            (Err(_), Some(server), Some(command)) => {
                control::order(server, command)?;
                Ok(format!("Puma's control server was told {command}"))
            }
            (Err(why), _, _) => Err(why),
        }
    }

    fn send_signal(&self, kind: &EventKind) -> Result<String, String> {
        let name = kind.signal().ok_or("no signal asks for it")?;
        let pid = if kind.is_for_worker() {
            self.life
                .workers()
                .last()
                .copied()
                .ok_or("the server has no worker that can be seen")?
        } else {
            let mut roots = self.life.living_roots();
            roots.next().ok_or("the server's processes cannot be seen")?
        };
        let whose = if kind.is_for_worker() { "worker" } else { "process" };
        let target = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("it has no process")?;
        kill_process(target, signal_named(name))
            .map_err(|error| format!("SIG{name} to {whose} {pid} failed: {error}"))?;
        Ok(format!("SIG{name} to {whose} {pid}"))
    }

    fn memory(&self) -> Option<u64> {
        memory_of_tree(self.life.living_root()?)
    }

    /// What was seen, when the run is over.
    fn end(mut self) -> SeenEvent {
        if self.record.at.is_none() && self.record.done.is_empty() {
            "the run ended before".clone_into(&mut self.record.done);
        }
        self.look();
        self.record.memory_after = self.memory();
        let version_after = self.life.living_root().and_then(puma_setup::version_of);
        self.record.versions =
            self.version.take().zip(version_after).map(|(before, after)| [before, after]);
        self.record.processes = self.life.seen();
        self.record.log = self.log.take().map(ServerLog::new_lines).unwrap_or_default();
        self.record.log.extend(self.restarted.iter().flat_map(lines_of_output));
        self.record.log.truncate(MOST_LINES);
        let phase_after = phase_of(self.order);
        self.record.phases = self.phase.zip(phase_after).map(|(before, after)| [before, after]);
        SeenEvent {
            record: self.record,
            others: self.others,
            begun: self.begun,
            restarted: self.restarted,
        }
    }

    /// Waits for the command, and ends it if that takes too long.
    fn wait_for_command(&mut self, stop: &AtomicBool) {
        let Some(command) = &mut self.command else { return };
        if self.record.command.is_some() {
            return;
        }
        let until = self.clock.now() + LAST_PATIENCE;
        let is_waited_for = || self.clock.now() < until && !stop.load(Ordering::Relaxed);
        while command.exit().is_none() && is_waited_for() {
            command.forget_old_output();
            self.clock.sleep(LOOK_PERIOD);
        }
        let exit_code = command.exit().and_then(|exit| exit.code());
        command.end(self.clock);
        let last_line = command.last_line();
        self.record.command = Some(EventCommand { ended: None, exit_code, last_line });
    }
}

/// Puma's phase now, if its control server says it.
fn phase_of(order: &EventOrder) -> Option<u32> {
    puma_stats::read_soon(order.control.as_ref()?, &NEVER).ok()?.phase
}

/// The signal of this name, which is one that an event can have.
fn signal_named(name: &str) -> Signal {
    match name {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "ABRT" => Signal::ABORT,
        "KILL" => Signal::KILL,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "ALRM" => Signal::ALARM,
        "CONT" => Signal::CONT,
        "STOP" => Signal::STOP,
        "TTIN" => Signal::TTIN,
        "TTOU" => Signal::TTOU,
        "URG" => Signal::URG,
        "WINCH" => Signal::WINCH,
        "PWR" => Signal::POWER,
        _ => Signal::TERM,
    }
}

/// What a server writes.
enum ServerLog<'a> {
    /// Its output is a file, which ended there before the event.
    File { file: File, from: u64 },
    /// It writes to longtail, and had written these lines of Puma's own before the event.
    Output { server: &'a Server, before: Vec<String> },
}

impl<'a> ServerLog<'a> {
    fn of(event: EventOfRun<'a>) -> Option<ServerLog<'a>> {
        if let Some(OwnServer { server, .. }) = event.own {
            return Some(ServerLog::Output { server, before: lines_of_output(server) });
        }
        let file = File::open(puma_setup::log_of(*event.order.roots.first()?)?).ok()?;
        let from = file.metadata().ok()?.len();
        Some(ServerLog::File { file, from })
    }

    /// What Puma itself has written since, without the app's lines.
    fn new_lines(self) -> Vec<String> {
        match self {
            ServerLog::File { mut file, from } => {
                let text = read_from(&mut file, from).unwrap_or_default();
                puma_lines(text.lines())
            }
            ServerLog::Output { server, before } => {
                let mut lines = lines_of_output(server);
                if lines.starts_with(&before) {
                    lines.drain(..before.len());
                } else {
                    // The middle of a long output is forgotten.
                    lines.retain(|line| !before.contains(line));
                }
                lines
            }
        }
    }
}

fn lines_of_output(server: &Server) -> Vec<String> {
    puma_lines(server.output().lines())
}

/// The lines that Puma itself wrote: `[4242] - Worker 0 (PID: 4250) booted in 0.5s, phase: 1`.
fn puma_lines<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<String> {
    let is_pumas = |line: &&str| {
        let said = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        let said = said.map_or(*line, |(_, said)| said);
        ["- ", "* ", "! ", "=== "].iter().any(|start| said.starts_with(start))
    };
    lines.filter(is_pumas).map(|line| MaskedText::from(line).to_string()).collect()
}

fn read_from(file: &mut File, from: u64) -> Option<String> {
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_OF_LOG).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The requests of a run, as far as there was room for them.
#[derive(Default)]
pub(crate) struct EventExchanges {
    exchanges: Vec<Exchange>,
    dropped: u64,
}

impl EventExchanges {
    /// Keeps all records until the lanes are done, and passes them on to `next`.
    pub(crate) fn of(
        batches: &Receiver<RecordBatch>,
        next: Option<&SyncSender<RecordBatch>>,
    ) -> EventExchanges {
        let mut all = EventExchanges::default();
        while let Ok(batch) = batches.recv() {
            let room = MOST_REQUESTS - all.exchanges.len();
            all.exchanges.extend(batch.iter().take(room).map(|record| record.exchange));
            all.dropped += batch.len().saturating_sub(room) as u64;
            if let Some(next) = next {
                let _ = next.send(batch);
            }
        }
        all
    }
}

/// The whole record of an event: what was seen, and what became of the requests. The lanes had to
/// drop the records of `dropped_by_lanes` of them.
pub(crate) fn with_requests(
    seen: SeenEvent,
    collected: &EventExchanges,
    tally: &Tally,
    measured: Nanos,
    dropped_by_lanes: u64,
) -> EventRecord {
    let SeenEvent { mut record, others, begun, .. } = seen;
    record.closed_since =
        record.closed_before.and_then(|before| tally.closed_by_server.checked_sub(before));
    let Some(at) = record.at else { return record };
    let from = tally.window.from;
    let measured_only = collected.exchanges.iter().filter(|exchange| tally.measures(exchange.due));
    let requests: Vec<TimedRequest> = measured_only
        .map(|exchange| TimedRequest {
            due: exchange.due - from,
            ended: exchange.ended - from,
            outcome: exchange.outcome,
        })
        .collect();
    let times = EventTimes { at, settled: settled(&record, measured), window: measured };
    let missing = collected.dropped + dropped_by_lanes;
    let requests = EventRequests::of(&requests, times, missing);
    record.others = others.around(begun + at, begun + at + requests.during.length);
    record.requests = Some(requests);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pumas_own_lines_of_a_log_are_kept() {
        let log = "[9] - Worker 0 (PID: 12) booted in 0.5s, phase: 1\nGET /secret?token=abc\n\
                   * Restarting...\n[9] - Stopping 11 for phased upgrade...\nStarted GET\n";
        assert_eq!(
            puma_lines(log.lines()),
            [
                "[9] - Worker 0 (PID: 12) booted in 0.5s, phase: 1",
                "* Restarting...",
                "[9] - Stopping 11 for phased upgrade...",
            ]
        );
    }
}
