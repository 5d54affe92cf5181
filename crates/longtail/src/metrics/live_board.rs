//! The present figures, for the threads that export them while longtail works.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::RunProgress;
use export::{FinishedRuns, LiveRun, MetricFamily};
use sweep::LiveReadings;

/// The present figures. The lock is for the threads that export and the one that conducts; no lane
/// takes it.
pub(super) type LiveBoard = Mutex<LiveState>;

pub(super) fn locked(board: &LiveBoard) -> MutexGuard<'_, LiveState> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
pub(super) struct LiveState {
    finished: FinishedRuns,
    pub(super) run: Option<PresentRun>,
}

pub(super) struct PresentRun {
    pub(super) number: u64,
    pub(super) connections: u32,
    pub(super) progress: Arc<RunProgress>,
    pub(super) samples: Arc<LiveReadings>,
}

impl LiveState {
    /// A run is over, with these figures.
    pub(super) fn done(&mut self, families: Vec<MetricFamily>) {
        let requests_ended = self.run.take().map_or(0, |run| run.progress.ended());
        self.finished.add(requests_ended, families);
    }

    /// The figures of the present run, and the totals.
    pub(super) fn now(&self) -> Vec<MetricFamily> {
        let Some(PresentRun { number, connections, progress, samples }) = &self.run else {
            return self.finished.totals(0, None);
        };
        let run = LiveRun { number: *number, connections: *connections, samples: samples.all() };
        self.finished.totals(progress.ended(), Some(&run))
    }

    /// The same, and the figures of all finished runs.
    pub(super) fn all(&self) -> Vec<MetricFamily> {
        self.now().into_iter().chain(self.finished.families().iter().cloned()).collect()
    }
}
