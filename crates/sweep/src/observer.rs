//! Who wants to know what the conductor is doing: the terminal, the file on disk, the exporters.

use std::sync::Arc;

use engine::RunProgress;
use model::{Nanos, Study};

use crate::watch::LiveReadings;

/// What is going on now.
#[derive(Clone, Debug)]
pub enum Phase {
    /// The generator's own limit is being measured.
    Calibrating,
    /// The server is being started.
    Starting,
    /// One connection, to learn the service time.
    MeasuringServiceTime,
    /// A short load with keep-alive and one without, to learn the order of service.
    Probing,
    /// Load that is not measured, so that the server has seen what will be asked of it.
    WarmingUp,
    /// A run.
    Running {
        /// Which of them, from 1.
        number: usize,
        /// How many there are.
        of: usize,
        /// What it asks for, where the runs differ in that.
        what: String,
        /// Its connections.
        connections: u32,
        /// How long it takes, warm-up included; `None` where a count ends it.
        length: Option<Nanos>,
        /// How long the study will take from here on, this run included, where that is known.
        left: Option<Nanos>,
        /// Whether that is the most: the study ends when its answer is clear.
        may_end_early: bool,
        /// Requests ended so far; `None` where another generator makes the load, which does not say.
        progress: Option<Arc<RunProgress>>,
        /// The last readings of server and kernel; none where they are not read.
        live: Arc<LiveReadings>,
    },
    /// The run is over; the server works off what is left.
    CoolingDown,
    /// Waiting until the server's own count is fresh.
    Reconciling,
    /// The server is being stopped.
    Stopping,
}

/// Learns what happens to a study, between runs and never during one.
pub trait Observer {
    /// A new phase has begun.
    fn phase(&mut self, phase: &Phase);

    /// A run was finished. It is the last of the study's runs, where it has no verdict yet; in `provisional` it has the verdict of its own
    /// figures, which may still become INVALID. For the terminal alone.
    fn run_done(&mut self, study: &Study, provisional: &Study);

    /// All runs of the study so far are judged, once: what their server counted stands beside our own count, or cannot be known.
    fn judged(&mut self, study: &Study);
}
