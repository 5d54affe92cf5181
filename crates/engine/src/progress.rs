//! What can be seen of a run while it goes on: a number a lane, and a whole tally for whoever asks.
//!
//! Lanes only store into places of their own, and clone their tally once for each question; they never wait. (The lock
//! is taken by a lane only to answer a question, and by the asker only to take the answer.)

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use model::{Nanos, Tally};

/// The lanes' progress.
#[derive(Debug, Default)]
pub struct RunProgress {
    lanes: Vec<LaneProgress>,
    start: AtomicU64,
}

/// One lane's progress, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct LaneProgress {
    connected: AtomicU64,
    ended: AtomicU64,
    asked: AtomicBool,
    answer: Mutex<Option<Tally>>,
}

impl LaneProgress {
    /// Shows how many connections are open before the run.
    pub fn show_connected(&self, connected: u64) {
        self.connected.store(connected, Ordering::Relaxed);
    }

    /// Shows how far it is.
    pub fn show_ended(&self, ended: u64) {
        self.ended.store(ended, Ordering::Relaxed);
    }

    /// Shows how far the lane is, and its tally where somebody has asked.
    #[inline]
    pub fn show(&self, ended: u64, tally: impl FnOnce() -> Tally) {
        self.ended.store(ended, Ordering::Relaxed);
        if self.asked.load(Ordering::Relaxed) {
            self.answer(tally());
        }
    }

    /// Whether somebody has asked for the tally.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    #[cold]
    fn answer(&self, tally: Tally) {
        self.asked.store(false, Ordering::Relaxed);
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(tally);
    }
}

impl RunProgress {
    /// Room for `lanes` lanes.
    pub fn new(lanes: u32) -> RunProgress {
        RunProgress { lanes: (0..lanes.max(1)).map(|_| LaneProgress::default()).collect(), start: AtomicU64::new(0) }
    }

    /// When the run began, on its clock; the clock's origin before.
    pub fn start(&self) -> Nanos {
        Nanos(self.start.load(Ordering::Relaxed))
    }

    /// Notes when the run began.
    pub fn set_start(&self, start: Nanos) {
        self.start.store(start.0, Ordering::Relaxed);
    }

    /// Connections that were opened before the run; 0 where the run itself opens them.
    pub fn connected(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.connected.load(Ordering::Relaxed)).sum()
    }

    /// Requests ended so far in all lanes, warm-up included.
    pub fn ended(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.ended.load(Ordering::Relaxed)).sum()
    }

    /// What all lanes have recorded up to about the last call of this, merged; `None` where not all have answered yet.
    /// Each call asks anew: costs each lane a copy of its tally (about 1 MB), so once a second is often enough.
    pub fn tally(&self) -> Option<Tally> {
        let answers: Option<Vec<Tally>> =
            self.lanes.iter().map(|lane| lane.answer.lock().unwrap_or_else(PoisonError::into_inner).clone()).collect();
        for lane in &self.lanes {
            lane.asked.store(true, Ordering::Relaxed);
        }
        answers?.into_iter().reduce(|mut all, tally| {
            all.merge(&tally);
            all
        })
    }

    /// Each lane's, or each generator's where they are on other machines.
    pub fn lanes(&self) -> &[LaneProgress] {
        &self.lanes
    }
}
