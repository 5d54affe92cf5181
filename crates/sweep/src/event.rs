//! Does something to the server in the middle of a run (`--during`), and watches closely what
//! becomes of its processes.
//!
//! What happened is read from processes and from what the server wrote, never from what was asked.
//! A command is not the server: when the run is over and it still goes on, it is waited for for a
//! while, and then ended. What it has left behind, such as a server, is not touched.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use engine::{Endpoint, RecordBatch, RunProgress};
use model::secret::MaskedText;
use model::{
    Clock, ControlServer, EventCommand, EventKind, EventRecord, EventRequests, EventTimes,
    Exchange, Nanos, OthersCpu, PlannedEvent, SystemClock, Tally, TimedRequest,
};
use probe::host::HostCounters;
use probe::http::NEVER;
use probe::processes::{memory_of_tree, this_process_cpu};
use probe::server_life::ServerLife;
use probe::{control, puma_setup, puma_stats};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::listeners::Listeners;

/// How often the server's processes are looked at.
const LOOK_PERIOD: Nanos = Nanos::from_millis(20);
/// How often the CPUs are, and how often a server that is gone is searched for.
const SLOW_PERIOD: Nanos = Nanos::from_secs(1);
/// The lanes are asked for their figures so long before the event.
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
    /// When, since the begin of the measured window.
    pub at: Nanos,
    /// The server's first processes; none if they are not on this machine, or not visible.
    pub roots: Vec<u32>,
    /// Where it listens.
    pub place: Endpoint,
    /// Puma's control server.
    pub control: Option<ControlServer>,
}

/// Waits for the run to begin, does it, and watches the server until the run is `over`. The
/// requests are added later.
pub(crate) fn conduct_event(
    order: &EventOrder,
    warm_up: Nanos,
    clock: &SystemClock,
    progress: &RunProgress,
    over: &AtomicBool,
) -> EventRecord {
    let mut watched = WatchedEvent::begin(order, clock);
    while progress.start() == Nanos::ZERO && !over.load(Ordering::Relaxed) {
        clock.sleep(LOOK_PERIOD);
    }
    watched.begun = progress.start() + warm_up;
    let mut next = clock.now();
    let mut is_asked = false;
    while clock.sleep_until(next, over) {
        watched.look();
        let now = watched.now();
        if !is_asked && now + ASK_BEFORE >= order.at {
            is_asked = true;
            let _ = progress.tally();
        }
        if watched.record.at.is_none() && watched.record.done.is_empty() && now >= order.at {
            watched.record.closed_before = progress.tally().map(|tally| tally.closed_by_server);
            watched.act();
        }
        next = (next + LOOK_PERIOD).max(clock.now());
    }
    watched.end()
}

/// An event that is waited for, or has happened.
struct WatchedEvent<'a> {
    order: &'a EventOrder,
    clock: &'a SystemClock,
    /// When the measured window began.
    begun: Nanos,
    life: ServerLife,
    record: EventRecord,
    command: Option<RunningCommand>,
    log: Option<ServerLog>,
    phase: Option<u32>,
    cpus: CpuOfOthers,
    next_slow: Nanos,
}

impl<'a> WatchedEvent<'a> {
    fn begin(order: &'a EventOrder, clock: &'a SystemClock) -> Self {
        let mut life = ServerLife::of(&order.roots);
        life.look(Nanos::ZERO, true);
        let record = EventRecord::planned(order.planned.clone());
        WatchedEvent {
            order,
            clock,
            begun: clock.now(),
            life,
            record,
            command: None,
            log: order.roots.first().and_then(|root| ServerLog::open(*root)),
            phase: phase_of(order),
            cpus: CpuOfOthers::begin(clock.now()),
            next_slow: Nanos::ZERO,
        }
    }

    /// Time since the begin of the measured window.
    fn now(&self) -> Nanos {
        self.clock.now().saturating_sub(self.begun)
    }

    fn look(&mut self) {
        self.life.look(self.now(), false);
        if let Some(command) = &mut self.command
            && self.record.command.is_none()
            && let Some(exit) = command.exit()
        {
            let exit_code = exit.code();
            let last_line = command.last_line();
            let ended = Some(self.clock.now().saturating_sub(self.begun));
            self.record.command = Some(EventCommand { ended, exit_code, last_line });
        }
        if self.clock.now() < self.next_slow {
            return;
        }
        self.next_slow = self.clock.now() + SLOW_PERIOD;
        let ticks = self.life.cpu_ticks();
        self.cpus.sample(self.clock.now(), ticks, self.record.at.is_some());
        if self.life.has_no_root() && !self.order.roots.is_empty() {
            let (_, roots) = Listeners::now().serving(&self.order.place);
            self.life.add_roots(&roots);
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
            self.command = Some(RunningCommand::start(command.exposed())?);
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
            let roots = self.life.roots();
            roots.first().copied().ok_or("the server's processes cannot be seen")?
        };
        let whose = if kind.is_for_worker() { "worker" } else { "process" };
        let target = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("it has no process")?;
        kill_process(target, signal_named(name))
            .map_err(|error| format!("SIG{name} to {whose} {pid} failed: {error}"))?;
        Ok(format!("SIG{name} to {whose} {pid}"))
    }

    fn memory(&self) -> Option<u64> {
        let living = self.life.roots().last()?;
        memory_of_tree(*living)
    }

    /// The record, when the run is over.
    fn end(mut self) -> EventRecord {
        self.wait_for_command();
        self.look();
        self.record.memory_after = self.memory();
        self.record.processes = self.life.seen();
        self.record.log = self.log.take().map(ServerLog::new_lines).unwrap_or_default();
        let phase_after = phase_of(self.order);
        self.record.phases = self.phase.zip(phase_after).map(|(before, after)| [before, after]);
        self.record.others = self.cpus.result();
        self.record
    }

    /// Waits for the command, and ends it if that takes too long.
    fn wait_for_command(&mut self) {
        let Some(command) = &mut self.command else { return };
        if self.record.command.is_some() {
            return;
        }
        let until = self.clock.now() + LAST_PATIENCE;
        while command.exit().is_none() && self.clock.now() < until {
            self.clock.sleep(LOOK_PERIOD);
        }
        command.kill();
        let last_line = command.last_line();
        self.record.command = Some(EventCommand { ended: None, exit_code: None, last_line });
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

/// A command that runs in a shell and a process group of its own.
struct RunningCommand {
    child: Child,
    output: Option<File>,
}

impl RunningCommand {
    fn start(text: &str) -> Result<RunningCommand, String> {
        // Not a pipe: a server that the command starts keeps it as its output, and must be able to
        // write when we have gone.
        let output = memfd_create("event", MemfdFlags::CLOEXEC).ok().map(File::from);
        let copy = || {
            let file = output.as_ref().and_then(|file| file.try_clone().ok());
            file.map_or_else(Stdio::null, Stdio::from)
        };
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", text]).stdin(Stdio::null()).stdout(copy()).stderr(copy());
        let child = shell.process_group(0).spawn();
        let child = child.map_err(|error| format!("/bin/sh cannot be started: {error}"))?;
        Ok(RunningCommand { child, output })
    }

    /// How it ended; `None` while it runs.
    fn exit(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok()?
    }

    fn kill(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
            && self.exit().is_none()
        {
            let _ = kill_process_group(group, Signal::TERM);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// The last line that it wrote, without secrets.
    fn last_line(&mut self) -> Option<String> {
        let text = read_from(self.output.as_mut()?, 0)?;
        let line = text.lines().rfind(|line| !line.trim().is_empty())?;
        Some(MaskedText::from(line).to_string())
    }
}

/// What a server writes, where its output is a file.
struct ServerLog {
    file: File,
    /// Where it ended before the event.
    from: u64,
}

impl ServerLog {
    fn open(pid: u32) -> Option<ServerLog> {
        let file = File::open(puma_setup::log_of(pid)?).ok()?;
        let from = file.metadata().ok()?.len();
        Some(ServerLog { file, from })
    }

    /// What Puma itself has written since, without the app's lines.
    fn new_lines(mut self) -> Vec<String> {
        let text = read_from(&mut self.file, self.from).unwrap_or_default();
        puma_lines(&text)
    }
}

/// The lines that Puma itself wrote: `[4242] - Worker 0 (PID: 4250) booted in 0.5s, phase: 1`.
fn puma_lines(text: &str) -> Vec<String> {
    let is_pumas = |line: &&str| {
        let said = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
        let said = said.map_or(*line, |(_, said)| said);
        ["- ", "* ", "! ", "=== "].iter().any(|start| said.starts_with(start))
    };
    let lines = text.lines().filter(is_pumas).take(MOST_LINES);
    lines.map(|line| MaskedText::from(line).to_string()).collect()
}

fn read_from(file: &mut File, from: u64) -> Option<String> {
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_OF_LOG).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// How many CPUs other programs used, second by second.
struct CpuOfOthers {
    last: CpuReading,
    before: Nanos,
    before_length: Nanos,
    most_since: Option<f64>,
}

struct CpuReading {
    at: Nanos,
    host: HostCounters,
    server_ticks: u64,
    own: Nanos,
}

impl CpuOfOthers {
    fn begin(now: Nanos) -> CpuOfOthers {
        CpuOfOthers {
            last: CpuReading::now(now, 0),
            before: Nanos::ZERO,
            before_length: Nanos::ZERO,
            most_since: None,
        }
    }

    fn sample(&mut self, now: Nanos, server_ticks: u64, is_since_event: bool) {
        let reading = CpuReading::now(now, server_ticks);
        let last = std::mem::replace(&mut self.last, reading);
        let length = self.last.at - last.at;
        let Some(busy) = self.last.host.busy_since(&last.host) else { return };
        // A tick is 10 ms.
        let server = Nanos::from_millis(10 * (server_ticks - last.server_ticks));
        let others = busy.saturating_sub(server + (self.last.own - last.own));
        if !is_since_event {
            self.before += others;
            self.before_length += length;
        } else if length >= SLOW_PERIOD / 2 {
            let cpus = others.as_secs_f64() / length.as_secs_f64();
            self.most_since = Some(self.most_since.unwrap_or(0.0).max(cpus));
        }
    }

    fn result(&self) -> Option<OthersCpu> {
        let of = std::thread::available_parallelism().ok()?.get() as u32;
        if self.before_length < SLOW_PERIOD {
            return None;
        }
        let before = self.before.as_secs_f64() / self.before_length.as_secs_f64();
        Some(OthersCpu { before, most_since: self.most_since?, of })
    }
}

impl CpuReading {
    fn now(at: Nanos, server_ticks: u64) -> CpuReading {
        CpuReading { at, host: HostCounters::now(), server_ticks, own: this_process_cpu() }
    }
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

/// Adds to what was seen of the event what became of the requests, of which the lanes had to drop
/// so many.
pub(crate) fn with_requests(
    mut record: EventRecord,
    collected: &EventExchanges,
    tally: &Tally,
    measured: Nanos,
    dropped_by_lanes: u64,
) -> EventRecord {
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
    let settled = at + record.took().unwrap_or_default();
    let times = EventTimes { at, settled: settled.min(measured), window: measured };
    let missing = collected.dropped + dropped_by_lanes;
    record.requests = Some(EventRequests::of(&requests, times, missing));
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_log_only_pumas_own_lines_are_kept() {
        let log = "[9] - Worker 0 (PID: 12) booted in 0.5s, phase: 1\nGET /secret?token=abc\n\
                   * Restarting...\n[9] - Stopping 11 for phased upgrade...\nStarted GET\n";
        assert_eq!(
            puma_lines(log),
            [
                "[9] - Worker 0 (PID: 12) booted in 0.5s, phase: 1",
                "* Restarting...",
                "[9] - Stopping 11 for phased upgrade...",
            ]
        );
    }

    #[test]
    fn a_command_tells_its_exit_code_and_its_last_line() {
        let mut command = RunningCommand::start("echo one; echo two >&2; exit 3").unwrap();
        let exit_code = loop {
            if let Some(exit) = command.exit() {
                break exit.code();
            }
        };
        assert_eq!((exit_code, command.last_line().as_deref()), (Some(3), Some("two")));
    }
}
