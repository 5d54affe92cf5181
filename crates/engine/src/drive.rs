//! One run: starts the lanes, waits for them, merges what they recorded.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::{Clock, Exchange, Nanos, Tally};
use thiserror::Error;

use crate::lane::{Lane, LaneEnd};
use crate::limits::{LimitError, ensure_descriptors};
use crate::shape::Shape;
use crate::wire_tcp::Tcp;

/// Time for the threads to start before the first request is due.
const LEAD: Nanos = Nanos::from_millis(5);

/// Requests ended so far, for whoever draws progress. Lanes only store into it, each into its own place.
#[derive(Debug, Default)]
pub struct Progress {
    lanes: Vec<Place>,
}

/// A counter on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place(AtomicU64);

impl Progress {
    /// Room for `lanes` lanes.
    pub fn new(lanes: u32) -> Progress {
        Progress { lanes: (0..lanes.max(1)).map(|_| Place::default()).collect() }
    }

    /// Requests ended so far in all lanes, warm-up included.
    pub fn ended(&self) -> u64 {
        self.lanes.iter().map(|place| place.0.load(Ordering::Relaxed)).sum()
    }
}

/// What a run brought.
#[derive(Debug)]
pub struct Drive {
    /// All lanes' records, merged.
    pub tally: Tally,
    /// Each exchange by time of completion, where the shape asked to keep them.
    pub exchanges: Vec<Exchange>,
    /// Length of the measured window, as [`model::Run::measured`].
    pub measured: Nanos,
    /// From the first due time to the end of the last request.
    pub elapsed: Nanos,
    /// Whether the user ended it.
    pub interrupted: bool,
}

/// Why a run could not start.
#[derive(Debug, Error)]
pub enum DriveError {
    /// Too few file descriptors.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A lane got no epoll instance.
    #[error("a lane could not start: {0}")]
    Lane(std::io::Error),
}

/// Drives one run to its end, or until `interrupt` is set.
///
/// # Errors
/// Before any load is sent, where descriptors do not suffice.
///
/// # Panics
/// Where a lane does: our bug.
pub fn drive<C: Clock + Clone + Send>(
    shape: &Shape,
    clock: &C,
    interrupt: &AtomicBool,
    progress: &Progress,
) -> Result<Drive, DriveError> {
    ensure_descriptors(u64::from(shape.connections))?;
    let start = clock.now() + LEAD;
    let ends: Vec<Result<LaneEnd, DriveError>> = std::thread::scope(|scope| {
        let lanes: Vec<_> = shape
            .shares()
            .into_iter()
            .zip(&progress.lanes)
            .map(|(share, place)| {
                let clock = clock.clone();
                scope.spawn(move || {
                    let wire = Tcp::new(shape.address, share.connections as usize)
                        .map_err(|errno| DriveError::Lane(errno.into()))?;
                    Ok(Lane::new(shape, share, clock, wire, start).run(interrupt, &place.0))
                })
            })
            .collect();
        lanes.into_iter().map(|lane| lane.join().expect("a lane never panics")).collect()
    });
    let ends: Vec<LaneEnd> = ends.into_iter().collect::<Result<_, _>>()?;
    Ok(merge(shape, start, clock.now(), ends))
}

fn merge(shape: &Shape, start: Nanos, now: Nanos, ends: Vec<LaneEnd>) -> Drive {
    let window = shape.window(start);
    let mut tally = Tally::new(window, shape.connections as usize);
    let mut exchanges = Vec::new();
    let mut interrupted_at: Option<Nanos> = None;
    for end in ends {
        tally.merge(&end.tally);
        exchanges.extend(end.exchanges);
        interrupted_at = [interrupted_at, end.interrupted_at].into_iter().flatten().min();
    }
    exchanges.sort_by_key(|exchange| exchange.ended);
    let until = match (shape.measured, interrupted_at) {
        (_, Some(instant)) => instant.min(window.until),
        (Some(_), None) => window.until,
        (None, None) => tally.last_ended,
    };
    Drive {
        measured: until.saturating_sub(window.from),
        elapsed: now.saturating_sub(start),
        interrupted: interrupted_at.is_some(),
        tally,
        exchanges,
    }
}
