//! Who wants to know what the conductor is doing: the terminal, the file on disk.

use std::sync::Arc;

use engine::Progress;
use model::{ClaimedRow, Nanos, Run, SweepStudy};

/// What is going on now.
#[derive(Clone, Debug)]
pub enum Phase {
    /// The generator's own limit is being measured.
    Calibrating,
    /// The server is being started.
    Starting,
    /// One connection, to learn the service time.
    MeasuringServiceTime,
    /// A run.
    Running {
        /// Which of them, from 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// Its connections.
        connections: u32,
        /// How long it takes, warm-up included; `None` where a count ends it.
        length: Option<Nanos>,
        /// Requests ended so far.
        progress: Arc<Progress>,
    },
    /// A run of another generator, which does not tell how far it is.
    OtherRunning {
        /// Which of them, from 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// Its connections.
        connections: u32,
        /// How long it takes, warm-up included; `None` where a count ends it.
        length: Option<Nanos>,
    },
    /// The run is over; the server works off what is left.
    CoolingDown,
    /// Waiting until the server's own count is fresh.
    Reconciling,
    /// The server is being stopped.
    Stopping,
}

/// Told what happens, between runs and never during one.
pub trait Observer {
    /// A new phase has begun.
    fn phase(&mut self, phase: &Phase);

    /// The server is ready; the study has its header and no runs.
    fn opened(&mut self, study: &SweepStudy);

    /// A run was finished; it is the last of `study.runs`.
    fn run_done(&mut self, study: &SweepStudy, run: &Run);

    /// A run of another generator was finished; it is the last of `study.claimed_runs`.
    fn claimed_done(&mut self, study: &SweepStudy, run: &ClaimedRow);
}
