//! What conducting a study needs: the clock, the command line, where servers run, another
//! generator, the user's interruption, and an observer; and why a study could not be made.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use engine::{EngineError, LoadSpec, Resolver, RunProgress};
use launch::{Addresses, GuardCommand, LaunchError};
use model::{
    Ceiling, Clock, Diagnostic, GeneratorClaim, MaskedText, Nanos, ServerFacts, ServerPlan,
    StreamPlan, Study, SystemClock,
};
use thiserror::Error;

use crate::far::conductor::FarGenerators;
use crate::samples::LiveReadings;
use crate::statsd::StatsdListener;

/// What a study needs of the world.
pub struct Context<'a> {
    /// The clock.
    pub clock: SystemClock,
    /// The command that runs the guard of a server.
    pub guard: GuardCommand,
    /// This program, which runs the built-in server and the load sink as `sink`.
    pub program: OsString,
    /// The directory that servers run in.
    pub dir: PathBuf,
    /// Finds where a server of a command answers.
    pub resolver: Resolver,
    /// Where Puma listens.
    pub addresses: Addresses,
    /// Longest wait for a server to be ready.
    pub boot_timeout: Nanos,
    /// Our version.
    pub version: &'a str,
    /// The time of the start, as RFC 3339.
    pub started_at: String,
    /// The command line that repeats this study.
    pub command_line: MaskedText,
    /// Set when the user wants to end.
    pub interrupt: &'a AtomicBool,
    /// The generator's limits that are known already.
    pub ceilings: &'a dyn Ceilings,
    /// The generator that makes the load where it is not our own.
    pub other: Option<&'a dyn OtherGenerator>,
    /// Generators on other machines, where those make the load.
    pub far: Option<&'a FarGenerators>,
    /// Listens to statsd while runs go on.
    pub statsd: Option<&'a Mutex<StatsdListener>>,
    /// Settings that the server gets beside those that it inherits.
    pub server_env: BTreeMap<OsString, OsString>,
}

impl Context<'_> {
    /// Room for the progress of a run: each lane's, or that of each generator elsewhere.
    pub(crate) fn progress(&self, spec: &LoadSpec) -> RunProgress {
        RunProgress::new(self.far.map_or(spec.lanes, FarGenerators::count)).of_load(spec)
    }

    /// How long a study that was begun then has taken, and whether the user has ended it.
    pub(crate) fn time_taken(&self, begun: Nanos) -> (Nanos, bool) {
        (self.clock.now() - begun, self.is_interrupted())
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// Remembers ceilings, so that they are measured once a day.
pub trait Ceilings: Sync {
    /// What is remembered of these settings.
    fn known(&self, settings: &str) -> Option<Ceiling>;

    /// Remembers it.
    fn remember(&self, settings: &str, ceiling: &Ceiling);
}

/// What another generator is to do in one run.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// What is asked.
    pub stream: &'a StreamPlan,
    /// How the server was started.
    pub started: &'a ServerPlan,
    /// The server, slots and all.
    pub server: &'a ServerFacts,
    /// Where to: a URL of an address of this machine.
    pub url: &'a str,
    /// Connections, in total.
    pub connections: u32,
}

/// A run that another generator finished.
#[derive(Clone, Debug)]
pub struct ClaimedRun {
    /// What it says.
    pub claim: GeneratorClaim,
    /// From the start of its process to the end, warm-up left out.
    pub elapsed: Nanos,
    /// What the audit of its figures found.
    pub found: Vec<Diagnostic>,
}

/// Another generator.
pub trait OtherGenerator: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Runs it once, its warm-up before it; `ended` says when to give up. `Ok(None)` where it was
    /// given up.
    ///
    /// # Errors
    /// Where it fails, or what it prints is not understood: why, in a line.
    fn run(&self, task: &Task<'_>, ended: &dyn Fn() -> bool) -> Result<Option<ClaimedRun>, String>;
}

/// What is going on now.
#[derive(Clone, Debug)]
pub enum Phase {
    /// The generator's own limit is being measured.
    Calibrating,
    /// The server is being started.
    Starting,
    /// One request at a time, to learn what each takes alone.
    MeasuringServiceTime {
        /// How long that takes at the most, but for requests that are out by then.
        at_most: Nanos,
    },
    /// The first load once more, after the last run.
    RepeatingFirstLoad {
        /// How long that takes.
        length: Nanos,
    },
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
        /// Requests ended so far; `None` where another generator makes the load, which does not
        /// say.
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

    /// Something that the user should know before the server is started. Each of several servers
    /// may say the same.
    fn remark(&mut self, text: &str);

    /// A run was finished. It is the last of the study's runs, where it has no verdict yet; in
    /// `provisional` it has the verdict of its own figures, which may still become INVALID. For the
    /// terminal alone.
    fn run_done(&mut self, study: &Study, provisional: &Study);

    /// All runs of the study so far are judged, once: what their server counted stands beside our
    /// own count, or cannot be known.
    fn judged(&mut self, study: &Study);
}

/// Why a sweep could not be done, or not to its end.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The server could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The generator could not start, or connections to the server cannot be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The server was started and does not serve what is requested. No load was sent.
    #[error("{what}")]
    NotServing {
        /// What is wrong, and what to do.
        what: String,
        /// Its last lines, where they tell more.
        last_lines: Vec<String>,
    },
    /// The server ended while it was measured.
    #[error(
        "the server ended during the run with {} ({how}); its last lines are above",
        model::number::count_of(*.connections, "connection")
    )]
    Died {
        /// Connections of that run.
        connections: u32,
        /// Its exit code or signal.
        how: String,
        /// Its last lines.
        last_lines: Vec<String>,
    },
    /// Something is wrong with one of several arms.
    #[error("{arm}: {why}")]
    Arm {
        /// Its name.
        arm: String,
        /// What.
        why: Box<SweepError>,
    },
    /// Something else that the user can do something about.
    #[error("{0}")]
    Unusable(String),
}

impl SweepError {
    /// Whether it is the server that failed, so that it may do better another time.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self, SweepError::NotServing { .. } | SweepError::Died { .. })
    }

    /// The server's last lines, where they tell more than we can.
    pub fn last_lines(&self) -> &[String] {
        match self {
            SweepError::NotServing { last_lines, .. } | SweepError::Died { last_lines, .. } => {
                last_lines
            }
            SweepError::Arm { why, .. } => why.last_lines(),
            _ => &[],
        }
    }
}
