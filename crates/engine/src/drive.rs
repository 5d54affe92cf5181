//! One run: starts the lanes, waits for them, merges what they recorded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use model::{Anatomy, BacklogSamples, Batches, Clock, Dissection, Exchange, LaneFacts, Nanos, Tally, Timestamps};
use thiserror::Error;

use crate::journal::RecordBatch;
use crate::lane::{Lane, LaneEnd};
use crate::limits::{LimitError, ensure_descriptors};
use crate::own_files;
use crate::progress::{LaneProgress, RunProgress};
use crate::shape::{LaneShare, LoadSpec};
use crate::wire::ConnectionDriver;
use crate::wire_socket::SocketDriver;
use crate::wire_tls::TlsDriver;

/// Time for the lanes, which are all ready, to wake up before the first request is due.
const LEAD: Nanos = Nanos::from_millis(5);

/// What a run brought.
#[derive(Debug)]
pub struct DriveResult {
    /// All lanes' records, merged.
    pub tally: Tally,
    /// All lanes' good answers by time, merged.
    pub batches: Batches,
    /// Where the response times went by what the app said; `None` where it was not asked, or said nothing.
    pub anatomy: Option<Anatomy>,
    /// Each exchange by time of completion, where the shape asked to keep them.
    pub exchanges: Vec<Exchange>,
    /// What each lane's thread used of the CPU, where the kernel says.
    pub lanes: Vec<LaneFacts>,
    /// How often the wall clock was set meanwhile; `None` where nobody needed it.
    pub clock_steps: Option<u32>,
    /// Open loop: what was due and not answered, of all lanes.
    pub backlog: Option<BacklogSamples>,
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

/// Why a run could not start.
#[derive(Debug, Error)]
pub enum DriveError {
    /// Too few file descriptors.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A lane got no epoll instance.
    #[error(
        "a generator thread cannot be set up: {0}; a sandbox (seccomp, a container's profile) may forbid epoll or sockets"
    )]
    Lane(std::io::Error),
    /// No thread can be had.
    #[error("a thread cannot be started: {0}; raise the limit of processes (ulimit -u), or the container's")]
    Thread(std::io::Error),
}

/// Starts a thread that ends within `scope`.
///
/// # Errors
/// Where the kernel gives none.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: impl Into<String>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, DriveError> {
    std::thread::Builder::new().name(name.into()).spawn_scoped(scope, run).map_err(DriveError::Thread)
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
pub fn drive<C: Clock + Clone + Send>(
    shape: &LoadSpec,
    clock: &C,
    interrupt: &AtomicBool,
    progress: &RunProgress,
    journal: Option<&SyncSender<RecordBatch>>,
) -> Result<DriveResult, DriveError> {
    ensure_descriptors(u64::from(shape.connections))?;
    let (start, ends) = std::thread::scope(|scope| {
        let (ready, readied) = channel();
        let mut starts = Vec::new();
        let lanes: Vec<_> = shape
            .shares()
            .into_iter()
            .zip(progress.places())
            .map(|(share, place)| {
                let (clock, journal) = (clock.clone(), journal.cloned());
                let (begin, begun) = channel();
                let gate = StartBarrier { ready: ready.clone(), begun };
                starts.push(begin);
                let run = move || run_lane(shape, share, clock, gate, (interrupt, place), journal);
                spawn_scoped(scope, format!("lane-{}", share.lane), run)
            })
            .collect();
        drop(ready);
        // One that cannot start ends the others before they send anything.
        let all_are_ready = lanes.iter().all(|lane| lane.is_ok() && readied.recv().is_ok());
        let start = clock.now() + LEAD;
        if all_are_ready {
            progress.set_start(start);
            for begin in &starts {
                let _ = begin.send(start);
            }
        }
        drop(starts);
        let join = |lane: Result<ScopedJoinHandle<'_, _>, DriveError>| lane?.join().expect("a lane never panics");
        let ends: Vec<Result<Option<LaneEnd>, DriveError>> = lanes.into_iter().map(join).collect();
        (start, ends)
    });
    let ends: Vec<Option<LaneEnd>> = ends.into_iter().collect::<Result<_, _>>()?;
    Ok(merge(shape, start, clock.now(), ends.into_iter().flatten().collect()))
}

/// Where a lane waits until all of them are ready.
struct StartBarrier {
    ready: Sender<()>,
    begun: Receiver<Nanos>,
}

impl StartBarrier {
    /// When the run begins; `None` where another lane could not start.
    fn wait(self) -> Option<Nanos> {
        // Where nobody hears it, nobody says when to begin either.
        let _ = self.ready.send(());
        drop(self.ready);
        self.begun.recv().ok()
    }
}

/// One lane, over the kind of wire that the shape wants.
fn run_lane<C: Clock>(
    shape: &LoadSpec,
    share: LaneShare,
    clock: C,
    gate: StartBarrier,
    seen_by: (&AtomicBool, &LaneProgress),
    journal: Option<SyncSender<RecordBatch>>,
) -> Result<Option<LaneEnd>, DriveError> {
    // It only makes the calls cheaper.
    own_files::take();
    let (first, slots) = (share.first_connection, share.connections as usize);
    let failed = |errno: rustix::io::Errno| DriveError::Lane(errno.into());
    if let Some(tls) = shape.transport.tls.clone() {
        let mut wire = TlsDriver::new(&shape.transport, tls, first, slots).map_err(failed)?;
        if shape.timestamps == Timestamps::Kernel {
            wire.stamp_arrivals().map_err(failed)?;
        }
        Ok(run_on(wire, shape, share, clock, gate, seen_by, journal))
    } else {
        let mut wire = SocketDriver::new(&shape.transport, first, slots).map_err(failed)?;
        if shape.timestamps == Timestamps::Kernel {
            wire.stamp_arrivals().map_err(failed)?;
        }
        Ok(run_on(wire, shape, share, clock, gate, seen_by, journal))
    }
}

fn run_on<C: Clock, W: ConnectionDriver>(
    wire: W,
    shape: &LoadSpec,
    share: LaneShare,
    clock: C,
    gate: StartBarrier,
    (interrupt, place): (&AtomicBool, &LaneProgress),
    journal: Option<SyncSender<RecordBatch>>,
) -> Option<LaneEnd> {
    let start = gate.wait()?;
    Some(Lane::new(shape, share, clock, wire, start, journal).run(interrupt, place))
}

fn merge(shape: &LoadSpec, start: Nanos, now: Nanos, ends: Vec<LaneEnd>) -> DriveResult {
    let window = shape.window(start);
    let mut tally = Tally::new(window, shape.connections as usize);
    let mut batches = Batches::new(window);
    let mut dissection = Dissection::default();
    let mut exchanges = Vec::new();
    let mut interrupted_at: Option<Nanos> = None;
    let mut dropped_records = 0;
    let mut lanes = Vec::new();
    let mut clock_steps = None;
    let mut backlog: Option<BacklogSamples> = None;
    for end in ends {
        tally.merge(&end.tally);
        batches.merge(end.batches);
        end.dissection.iter().for_each(|of_lane| dissection.merge(of_lane));
        exchanges.extend(end.exchanges);
        dropped_records += end.dropped_records;
        lanes.extend(end.facts);
        clock_steps = clock_steps.max(end.clock_steps);
        match (&mut backlog, end.backlog) {
            (Some(all), Some(of_lane)) => all.merge(of_lane),
            (all, of_lane) => *all = of_lane,
        }
        interrupted_at = [interrupted_at, end.interrupted_at].into_iter().flatten().min();
    }
    exchanges.sort_by_key(|exchange| exchange.ended);
    let until = match (shape.measured, interrupted_at) {
        (_, Some(instant)) => instant.min(window.until),
        // A count may end the run before its time.
        (Some(_), None) if shape.requests_total.is_some() => tally.last_ended.min(window.until),
        (Some(_), None) => window.until,
        (None, None) => tally.last_ended,
    };
    DriveResult {
        measured: until.saturating_sub(window.from),
        elapsed: now.saturating_sub(start),
        interrupted: interrupted_at.is_some(),
        start,
        tally,
        batches,
        anatomy: dissection.anatomy(),
        exchanges,
        lanes,
        clock_steps,
        backlog,
        dropped_records,
    }
}
