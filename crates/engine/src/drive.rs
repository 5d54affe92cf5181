//! Drives one run: opens many connections beforehand, starts the lanes, waits for them, and merges
//! what they recorded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::ScopedJoinHandle;

use model::{Clock, FarGenerator, Nanos, SystemClock};

use crate::EngineError;
use crate::connection::ConnectionState;
use crate::lane::{Lane, LaneOutcome};
use crate::load_spec::{LaneShare, LoadSpec};
use crate::progress::{LaneProgress, RecordBatch, RunProgress};
use crate::thread::{ensure_descriptors, spawn_scoped, unshare_table};
use crate::wire::{ConnectionDriver, SocketDriver};
use crate::wire_tls::TlsDriver;

/// Time for each lane to wake up, between its start and the first due time.
const LEAD: Nanos = Nanos::from_millis(1);
/// The most of that, however many lanes there are.
const LONGEST_LEAD: Nanos = Nanos::from_millis(5);

/// The result of a run.
#[derive(Debug)]
pub struct DriveResult {
    /// What all lanes recorded, merged.
    pub outcome: LaneOutcome,
    /// The generators on other machines, where they made the load.
    pub far: Vec<FarGenerator>,
    /// When it began, on the run's clock.
    pub start: Nanos,
    /// Length of the measured window, as [`model::Run::measured`].
    pub measured: Nanos,
    /// From the first due time to the end of the last request.
    pub elapsed: Nanos,
}

/// Drives one run to its end, or until `interrupt` is set. If there is a `journal`, each lane sends
/// its records to it.
///
/// # Errors
/// If the limit of open files is too low, before any load is sent.
///
/// # Panics
/// If a lane does: our bug.
pub fn drive(
    spec: &LoadSpec,
    clock: &SystemClock,
    interrupt: &AtomicBool,
    progress: &RunProgress,
    journal: Option<&SyncSender<RecordBatch>>,
) -> Result<DriveResult, EngineError> {
    let ready = || Some(clock.now() + (LEAD * u64::from(spec.load.lanes)).min(LONGEST_LEAD));
    let (start, outcome) = drive_part(spec, clock, interrupt, progress, journal, ready)?;
    Ok(DriveResult::of(spec, start, clock.now(), outcome))
}

/// Drives this generator's part of a run, as [`drive`]. When its lanes are ready it calls `ready`,
/// which returns when they start, or `None` if they are not to start. Returns that time, and what
/// the lanes recorded; `None` if no lane ran.
///
/// # Errors
/// As [`drive`].
///
/// # Panics
/// As [`drive`].
pub fn drive_part(
    spec: &LoadSpec,
    clock: &SystemClock,
    interrupt: &AtomicBool,
    progress: &RunProgress,
    journal: Option<&SyncSender<RecordBatch>>,
    ready: impl FnOnce() -> Option<Nanos>,
) -> Result<(Nanos, Option<LaneOutcome>), EngineError> {
    let shares = spec.shares();
    ensure_descriptors(shares.iter().map(|share| u64::from(share.connections)).sum())?;
    let (start, ends) = std::thread::scope(|scope| {
        let (ready_sender, ready_receiver) = channel();
        let mut starts = Vec::new();
        let lanes: Vec<_> = shares
            .into_iter()
            .zip(progress.lanes())
            .map(|(share, progress)| {
                let (start_sender, begun) = channel();
                starts.push(start_sender);
                let clock = *clock;
                let ready = ready_sender.clone();
                let journal = journal.cloned();
                let lane =
                    LaneThread { spec, share, clock, ready, begun, interrupt, progress, journal };
                spawn_scoped(scope, format!("lane-{}", share.lane), move || lane.run())
            })
            .collect();
        drop(ready_sender);
        // If a lane cannot start, the others end before they send anything.
        let all_are_ready = lanes.iter().all(|lane| lane.is_ok() && ready_receiver.recv().is_ok());
        let start = if all_are_ready { ready() } else { None };
        if let Some(start) = start {
            progress.set_start(start);
            for start_sender in &starts {
                let _ = start_sender.send(start);
            }
        }
        drop(starts);
        let join = |lane: Result<ScopedJoinHandle<'_, _>, EngineError>| {
            lane?.join().expect("a lane never panics")
        };
        (start.unwrap_or_else(|| clock.now()), lanes.into_iter().map(join).collect::<Vec<_>>())
    });
    let ends: Vec<Option<LaneOutcome>> = ends.into_iter().collect::<Result<_, _>>()?;
    let merged = ends.into_iter().flatten().reduce(|mut all, lane| {
        all.merge(lane);
        all
    });
    Ok((start, merged))
}

/// What a lane's thread is given.
struct LaneThread<'a> {
    spec: &'a LoadSpec,
    share: LaneShare,
    clock: SystemClock,
    /// Where it says that it is ready.
    ready: Sender<()>,
    /// Where it is told when all lanes start.
    begun: Receiver<Nanos>,
    interrupt: &'a AtomicBool,
    progress: &'a LaneProgress,
    journal: Option<SyncSender<RecordBatch>>,
}

impl LaneThread<'_> {
    /// Runs the lane over plain sockets or TLS, as the load asks.
    fn run(self) -> Result<Option<LaneOutcome>, EngineError> {
        // This only makes the system calls cheaper, so failure does not matter.
        unshare_table();
        let failed = |errno: rustix::io::Errno| {
            EngineError(format!(
                "a generator thread cannot be set up: {errno}; a sandbox (seccomp, a container's \
                 profile) may forbid epoll or sockets"
            ))
        };
        let first = self.share.first_connection;
        let slots = self.share.connections as usize;
        let sockets =
            SocketDriver::new(&self.spec.transport, first, slots, self.spec.load.timestamps)
                .map_err(failed)?;
        Ok(match self.spec.transport.tls.clone() {
            Some(tls) => self.run_over(TlsDriver::new(sockets, tls)),
            None => self.run_over(sockets),
        })
    }

    fn run_over(self, mut wire: impl ConnectionDriver) -> Option<LaneOutcome> {
        let open = wants_preconnect(self.spec)
            .then(|| preconnect(&mut wire, &self.clock, self.share, self.interrupt, self.progress));
        // If the receiver is gone, another lane failed to start, and this one gets no start.
        let _ = self.ready.send(());
        drop(self.ready);
        let start = self.begun.recv().ok()?;
        let lane = Lane::new(self.spec, self.share, self.clock, wire, start, self.journal);
        let lane = lane.connected(&open.unwrap_or_default());
        Some(lane.run(self.interrupt, self.progress))
    }
}

impl DriveResult {
    /// The result of a run from `start` to `end` in which all lanes together recorded `outcome`.
    pub fn of(
        spec: &LoadSpec,
        start: Nanos,
        end: Nanos,
        outcome: Option<LaneOutcome>,
    ) -> DriveResult {
        let window = spec.window(start);
        let outcome = outcome.unwrap_or_else(|| LaneOutcome::nothing(spec, start));
        let until = match (spec.measured, outcome.interrupted_at) {
            (_, Some(instant)) => instant.min(window.until),
            // A count may end a closed loop before its time.
            (Some(_), None) if spec.load.requests_total.is_some() && !spec.load.pace.is_open() => {
                outcome.tally.last_ended.min(window.until)
            }
            (Some(_), None) => window.until,
            (None, None) => outcome.tally.last_ended,
        };
        let measured = until.saturating_sub(window.from);
        let elapsed = end.saturating_sub(start);
        DriveResult { outcome, far: Vec::new(), start, measured, elapsed }
    }
}

/// This many connections or more are opened beforehand. Fewer open within milliseconds, and their
/// first requests show what a connect costs.
const MANY: u32 = 1000;
/// Connects under way at the same time, in all lanes: fewer than servers' accept queues hold
/// (nginx's 511, Puma's 1024).
const AT_ONCE: u32 = 256;
/// If a server accepts nothing for this long, the run starts with the connections that are open.
/// The others are opened when their first request is due, and how that ends is counted.
const LONGEST_STALL: Nanos = Nanos::from_secs(2);
/// Longest wait before an interruption is noticed.
const LONGEST_WAIT: Nanos = Nanos::from_millis(100);

/// Whether connections are opened before the first request is due: in a closed loop of many
/// keep-alive connections that all make a request. Opening them takes as long as a short run, and a
/// burst of connects overflows the server's accept queue; both would be measured instead of the
/// server.
fn wants_preconnect(spec: &LoadSpec) -> bool {
    let all_are_used =
        spec.load.requests_total.is_none_or(|total| total >= u64::from(spec.load.connections));
    let is_plain = spec.transport.tls.is_none() && !spec.traces_requests;
    spec.load.connections >= MANY
        && !spec.load.pace.is_open()
        && spec.load.keep_alive
        && all_are_used
        && is_plain
}

/// Opens a lane's connections, a few at a time, and returns which of them are open.
fn preconnect(
    wire: &mut impl ConnectionDriver,
    clock: &impl Clock,
    share: LaneShare,
    interrupt: &AtomicBool,
    progress: &LaneProgress,
) -> Vec<bool> {
    let slots = share.connections as usize;
    let at_once = (AT_ONCE / share.lanes).max(1);
    let mut states = vec![ConnectionState::Closed; slots];
    let mut next = 0;
    let mut under_way = 0;
    let mut connected = 0_u64;
    let mut last_news = clock.now();
    let mut events = Vec::with_capacity(1024);
    while next < slots || under_way > 0 {
        while next < slots && under_way < at_once {
            // A connect that fails at once is tried again when its first request is due.
            if wire.open(next).is_ok() {
                states[next] = ConnectionState::Opening;
                under_way += 1;
            }
            next += 1;
        }
        wire.wait(LONGEST_WAIT, &mut events);
        let now = clock.now();
        for event in &events {
            let slot = event.slot as usize;
            let was_opening = states[slot] == ConnectionState::Opening;
            if was_opening && event.is_writable() {
                under_way -= 1;
                connected += 1;
                last_news = now;
                states[slot] = ConnectionState::Open;
            }
            if states[slot] == ConnectionState::Open
                && (event.is_closing() || was_opening && !wire.is_connected(slot))
            {
                states[slot] = ConnectionState::Closed;
                wire.close(slot);
            }
        }
        progress.show_connected(connected);
        if interrupt.load(Ordering::Relaxed) || now.saturating_sub(last_news) > LONGEST_STALL {
            break;
        }
    }
    for slot in (0..slots).filter(|slot| states[*slot] == ConnectionState::Opening) {
        wire.close(slot);
    }
    states.into_iter().map(|state| state == ConnectionState::Open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Transport;
    use model::Timestamps;
    use std::net::TcpListener;

    #[test]
    fn connections_are_opened_and_a_refused_one_is_left_to_the_run() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let alive = listener.local_addr().unwrap();
        let transport =
            Transport::plain(vec![crate::Endpoint::Tcp(alive), crate::Endpoint::Tcp(dead)]);
        let mut wire = SocketDriver::new(&transport, 0, 6, Timestamps::User).unwrap();
        let interrupt = AtomicBool::new(false);
        let progress = LaneProgress::default();
        let share = LaneShare { lane: 0, lanes: 1, first_connection: 0, connections: 6 };
        let open = preconnect(&mut wire, &testkit::clock::REAL_CLOCK, share, &interrupt, &progress);
        assert_eq!(open, [true, false, true, false, true, false]);
        assert_eq!((0..3).map(|_| listener.accept().is_ok()).collect::<Vec<_>>(), [true; 3]);
    }
}
