//! How things stand, for whoever asks: the figures of finished runs, and of the present one what lanes and looks have stored.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::RunProgress;
use export::{Family, Live, LiveRun, Look, live};
use sweep::Looks;

/// How things stand. Its lock is between threads that tell; no lane knows of it.
pub(crate) struct Board(Mutex<State>);

struct State {
    version: &'static str,
    /// Requests that had ended when the last finished run was over.
    ended: u64,
    runs_done: u64,
    run: Option<Present>,
    finished: Vec<Family>,
}

struct Present {
    number: u64,
    connections: u32,
    progress: Arc<RunProgress>,
    looks: Arc<Looks>,
}

impl Board {
    /// Before the first run.
    pub(crate) fn new(version: &'static str) -> Board {
        Board(Mutex::new(State { version, ended: 0, runs_done: 0, run: None, finished: Vec::new() }))
    }

    /// A run has begun.
    pub(crate) fn begun(&self, number: u64, connections: u32, progress: Arc<RunProgress>, looks: Arc<Looks>) {
        self.state().run = Some(Present { number, connections, progress, looks });
    }

    /// It is over, with these figures.
    pub(crate) fn done(&self, families: Vec<Family>) {
        let mut state = self.state();
        if let Some(run) = state.run.take() {
            state.ended += run.progress.ended();
        }
        state.runs_done += 1;
        let finished = std::mem::take(&mut state.finished);
        state.finished = Family::merged(finished.into_iter().chain(families));
    }

    /// How things stand now.
    pub(crate) fn now(&self) -> Vec<Family> {
        live(&self.state().live())
    }

    /// How things stand now, and all finished runs.
    pub(crate) fn all(&self) -> Vec<Family> {
        let state = self.state();
        let mut families = live(&state.live());
        families.extend(state.finished.iter().cloned());
        families
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn live(&self) -> Live {
        let run = self.run.as_ref().map(|run| LiveRun {
            number: run.number,
            connections: run.connections,
            looks: run.looks.seen().into_iter().map(|(name, of, value)| Look { of, name, value }).collect(),
        });
        let now = self.run.as_ref().map_or(0, |run| run.progress.ended());
        Live { version: self.version, requests_ended: self.ended + now, runs_done: self.runs_done, run }
    }
}
