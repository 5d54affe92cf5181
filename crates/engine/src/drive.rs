//! One run: starts the lanes, waits for them, merges what they recorded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use model::{Anatomy, BacklogSamples, Batches, Clock, FarGenerator, LaneFacts, Nanos, SystemClock, Tally};

use crate::descriptors::{self, ensure_descriptors};
use crate::error::EngineError;
use crate::journal::RecordBatch;
use crate::lane::{Lane, LaneOutcome};
use crate::load_spec::{LaneShare, LoadSpec};
use crate::preconnect;
use crate::progress::{LaneProgress, RunProgress};
use crate::wire::ConnectionDriver;
use crate::wire_socket::SocketDriver;
use crate::wire_tls::TlsDriver;

/// Time for each lane, which are all ready, to wake up before the first request is due; and for all of them at the most.
const LEAD: Nanos = Nanos::from_millis(1);
const LONGEST_LEAD: Nanos = Nanos::from_millis(5);

/// What a run brought.
#[derive(Debug)]
pub struct DriveResult {
    /// All lanes' records, merged.
    pub tally: Tally,
    /// All lanes' good answers by time, merged.
    pub batches: Batches,
    /// Where the response times went by what the app said; `None` where it was not asked, or said nothing.
    pub anatomy: Option<Anatomy>,
    /// What each lane's thread used of the CPU, where the kernel says.
    pub lanes: Vec<LaneFacts>,
    /// How often the wall clock was set meanwhile; `None` where nobody needed it.
    pub clock_steps: Option<u32>,
    /// Open loop: what was due and not answered, of all lanes.
    pub backlog: Option<BacklogSamples>,
    /// The generators on other machines, where those made the load.
    pub far: Vec<FarGenerator>,
    /// Records that the journal's reader was too slow for.
    pub dropped_records: u64,
    /// When it began, on the run's clock.
    pub start: Nanos,
    /// Length of the measured window, as [`model::Run::measured`].
    pub measured: Nanos,
    /// From the first due time to the end of the last request.
    pub elapsed: Nanos,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// A thread that could not be had.
pub fn no_thread(error: &std::io::Error) -> EngineError {
    EngineError(format!(
        "a thread cannot be started: {error}; raise the limit of processes (ulimit -u), or the container's"
    ))
}

/// Starts a thread that ends within `scope`.
///
/// # Errors
/// Where the kernel gives none.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: impl Into<String>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, EngineError> {
    std::thread::Builder::new().name(name.into()).spawn_scoped(scope, run).map_err(|error| no_thread(&error))
}

/// Sets a flag when it goes, however that comes about: what a scope's threads look at, so that they end where one of them could not be started.
pub struct RaiseOnDrop<'a>(pub &'a AtomicBool);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Drives one run to its end, or until `interrupt` is set. Each lane writes a journal where there is a reader for it.
///
/// # Errors
/// Before any load is sent, where descriptors do not suffice.
///
/// # Panics
/// Where a lane does: our bug.
pub fn drive(
    spec: &LoadSpec,
    clock: &SystemClock,
    interrupt: &AtomicBool,
    progress: &RunProgress,
    journal: Option<&SyncSender<RecordBatch>>,
) -> Result<DriveResult, EngineError> {
    let ready = || Some(clock.now() + (LEAD * u64::from(spec.lanes)).min(LONGEST_LEAD));
    let (start, outcome) = drive_part(spec, clock, interrupt, progress, journal, ready)?;
    Ok(DriveResult::of(spec, start, clock.now(), outcome))
}

/// Drives this generator's part of a run, as [`drive`]. When its lanes are ready it asks when to start; `None`: not at all. When that was, and what
/// the lanes left behind; `None` where there was none.
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
        let (is_ready, readied) = channel();
        let mut starts = Vec::new();
        let lanes: Vec<_> = shares
            .into_iter()
            .zip(progress.lanes())
            .map(|(share, progress)| {
                let (begin, begun) = channel();
                starts.push(begin);
                let (clock, ready, journal) = (*clock, is_ready.clone(), journal.cloned());
                let lane = LaneThread { spec, share, clock, ready, begun, interrupt, progress, journal };
                spawn_scoped(scope, format!("lane-{}", share.lane), move || lane.run())
            })
            .collect();
        drop(is_ready);
        // One that cannot start ends the others before they send anything.
        let all_are_ready = lanes.iter().all(|lane| lane.is_ok() && readied.recv().is_ok());
        let start = if all_are_ready { ready() } else { None };
        if let Some(start) = start {
            progress.set_start(start);
            for begin in &starts {
                let _ = begin.send(start);
            }
        }
        drop(starts);
        let join = |lane: Result<ScopedJoinHandle<'_, _>, EngineError>| lane?.join().expect("a lane never panics");
        (start.unwrap_or_else(|| clock.now()), lanes.into_iter().map(join).collect::<Vec<_>>())
    });
    let ends: Vec<Option<LaneOutcome>> = ends.into_iter().collect::<Result<_, _>>()?;
    let merged = ends.into_iter().flatten().reduce(|mut all, lane| {
        all.merge(lane);
        all
    });
    Ok((start, merged))
}

/// What one lane's thread is given.
struct LaneThread<'a> {
    spec: &'a LoadSpec,
    share: LaneShare,
    clock: SystemClock,
    /// Where it says that it is ready, and hears when all of them begin.
    ready: Sender<()>,
    begun: Receiver<Nanos>,
    interrupt: &'a AtomicBool,
    progress: &'a LaneProgress,
    journal: Option<SyncSender<RecordBatch>>,
}

impl LaneThread<'_> {
    /// Runs the lane, over the kind of sockets that the load wants.
    fn run(self) -> Result<Option<LaneOutcome>, EngineError> {
        // It only makes the calls cheaper.
        descriptors::unshare_table();
        let failed = |errno: rustix::io::Errno| {
            EngineError(format!(
                "a generator thread cannot be set up: {errno}; a sandbox (seccomp, a container's profile) may forbid epoll or sockets"
            ))
        };
        let (first, slots) = (self.share.first_connection, self.share.connections as usize);
        let sockets = SocketDriver::new(&self.spec.transport, first, slots, self.spec.timestamps).map_err(failed)?;
        Ok(match self.spec.transport.tls.clone() {
            Some(tls) => self.run_over(TlsDriver::new(sockets, tls)),
            None => self.run_over(sockets),
        })
    }

    fn run_over(self, mut wire: impl ConnectionDriver) -> Option<LaneOutcome> {
        let open = preconnect::is_wanted(self.spec)
            .then(|| preconnect::preconnect(&mut wire, &self.clock, self.share, self.interrupt, self.progress));
        // Where nobody hears it, another lane could not start, and nobody says when to begin either.
        let _ = self.ready.send(());
        drop(self.ready);
        let start = self.begun.recv().ok()?;
        let lane = Lane::new(self.spec, self.share, self.clock, wire, start, self.journal);
        let lane = lane.connected(&open.unwrap_or_default());
        Some(lane.run(self.interrupt, self.progress))
    }
}

impl DriveResult {
    /// What the lanes of a run, all of them, left behind that began at `start` and was over at `end`.
    pub fn of(spec: &LoadSpec, start: Nanos, end: Nanos, outcome: Option<LaneOutcome>) -> DriveResult {
        let window = spec.window(start);
        let LaneOutcome { tally, batches, dissection, dropped_records, interrupted_at, lanes, clock_steps, backlog } =
            outcome.unwrap_or_else(|| LaneOutcome::nothing(spec, start));
        let until = match (spec.measured, interrupted_at) {
            (_, Some(instant)) => instant.min(window.until),
            // A count may end the run before its time.
            (Some(_), None) if spec.requests_total.is_some() => tally.last_ended.min(window.until),
            (Some(_), None) => window.until,
            (None, None) => tally.last_ended,
        };
        DriveResult {
            tally,
            batches,
            anatomy: dissection.and_then(|dissection| dissection.anatomy()),
            lanes,
            clock_steps,
            backlog,
            far: Vec::new(),
            dropped_records,
            start,
            measured: until.saturating_sub(window.from),
            elapsed: end.saturating_sub(start),
            interrupted: interrupted_at.is_some(),
        }
    }
}
