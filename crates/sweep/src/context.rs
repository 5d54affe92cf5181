//! What conducting a study needs ([`Context`]), whom it tells ([`Observer`]), and why it may fail
//! ([`SweepError`]).

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

/// What a study needs from outside.
pub struct Context<'a> {
    /// The clock.
    pub clock: SystemClock,
    /// The command that runs a server's guard.
    pub guard: GuardCommand,
    /// This program, which also is the built-in server and the sink (`longtail sink`).
    pub program: OsString,
    /// The directory that servers run in.
    pub dir: PathBuf,
    /// Resolves the host of `--url`.
    pub resolver: Resolver,
    /// Where Puma listens.
    pub addresses: Addresses,
    /// Longest wait for a server to be ready.
    pub boot_timeout: Nanos,
    /// longtail's version.
    pub version: &'a str,
    /// When the study started, as RFC 3339.
    pub started_at: String,
    /// The command line that repeats this study.
    pub command_line: MaskedText,
    /// Set when the user interrupts.
    pub interrupt: &'a AtomicBool,
    /// Remembers the generator's ceilings.
    pub ceilings: &'a dyn Ceilings,
    /// Another generator that makes the load in place of longtail's (`--generator`).
    pub other: Option<&'a dyn OtherGenerator>,
    /// Generators on other machines that make the load (`--from`).
    pub far: Option<&'a FarGenerators>,
    /// Receives the app's statsd metrics during runs.
    pub statsd: Option<&'a Mutex<StatsdListener>>,
    /// Environment variables for the server, in addition to those it inherits.
    pub server_env: BTreeMap<OsString, OsString>,
}

impl Context<'_> {
    /// The progress of a run: of each lane, or of each generator on another machine.
    pub(crate) fn progress(&self, spec: &LoadSpec) -> RunProgress {
        RunProgress::new(self.far.map_or(spec.load.lanes, FarGenerators::count)).of_load(spec)
    }

    /// How long a study took that was begun then, and whether the user interrupted it.
    pub(crate) fn time_taken(&self, begun: Nanos) -> (Nanos, bool) {
        (self.clock.now() - begun, self.is_interrupted())
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// Remembers the generator's ceilings, so that they are measured only once a day.
pub trait Ceilings: Sync {
    /// The ceiling with these settings, if it is remembered.
    fn known(&self, settings: &str) -> Option<Ceiling>;

    /// Remembers a ceiling.
    fn remember(&self, settings: &str, ceiling: &Ceiling);
}

/// What another generator is to do in one run.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// Requests, stop condition, connection handling.
    pub stream: &'a StreamPlan,
    /// How the server was started.
    pub started: &'a ServerPlan,
    /// What is known of the server, such as its slots.
    pub server: &'a ServerFacts,
    /// The target, as a URL with an address of this machine.
    pub url: &'a str,
    /// Connections, in total.
    pub connections: u32,
}

/// A run that another generator finished.
#[derive(Clone, Debug)]
pub struct ClaimedRun {
    /// What it printed.
    pub claim: GeneratorClaim,
    /// From the start of its process to the end, without the warm-up.
    pub elapsed: Nanos,
    /// What the audit of its figures found.
    pub found: Vec<Diagnostic>,
}

/// Another generator.
pub trait OtherGenerator: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Runs it once, after its warm-up; `Ok(None)` if `ended` stopped it early.
    ///
    /// # Errors
    /// If it fails, or its output is not understood: why, in one line.
    fn run(&self, task: &Task<'_>, ended: &dyn Fn() -> bool) -> Result<Option<ClaimedRun>, String>;
}

/// What is going on now.
#[derive(Clone, Debug)]
pub enum Phase {
    /// The generator's own limit is being measured.
    Calibrating,
    /// The server is being started.
    Starting,
    /// One request at a time, to measure how long each takes alone.
    MeasuringServiceTime {
        /// The longest that may take, apart from requests in flight at its end.
        at_most: Nanos,
    },
    /// The first load is repeated after the last run.
    RepeatingFirstLoad {
        /// How long that takes.
        length: Nanos,
    },
    /// Two short loads, with keep-alive and without, to tell the order of service.
    Probing,
    /// Load that is not measured, so that the server has seen each kind of request.
    WarmingUp,
    /// A run.
    Running {
        /// The run's number, from 1.
        number: usize,
        /// How many runs there are.
        of: usize,
        /// A label, if the runs differ in more than their load; else empty.
        what: String,
        /// Its connections.
        connections: u32,
        /// How long it takes, warm-up included; `None` if a count of requests ends it.
        length: Option<Nanos>,
        /// Connections of the runs after it, all together.
        later_connections: u64,
        /// How long the rest of the study will take, this run included, if known.
        left: Option<TimeLeft>,
        /// Whether the study ends as soon as the result is clear.
        may_end_early: bool,
        /// Requests so far; `None` if another generator makes the load.
        progress: Option<Arc<RunProgress>>,
        /// The latest readings of server and kernel; empty if they are not read.
        live: Arc<LiveReadings>,
    },
    /// The run is over; the server works off what is left.
    CoolingDown,
    /// Waiting until the server's own count is fresh.
    Reconciling,
    /// The server is being stopped.
    Stopping,
}

impl Phase {
    /// A run that is looked at alone: no others are counted before or after it.
    pub(crate) fn single_run(
        spec: &LoadSpec,
        what: String,
        progress: &Arc<RunProgress>,
        live: &Arc<LiveReadings>,
    ) -> Phase {
        Phase::Running {
            number: 1,
            of: 1,
            what,
            connections: spec.load.connections,
            length: spec.measured.map(|measured| measured + spec.load.warm_up),
            later_connections: 0,
            left: None,
            may_end_early: false,
            progress: Some(Arc::clone(progress)),
            live: Arc::clone(live),
        }
    }
}

/// How long the rest of a study will take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLeft {
    /// The time.
    pub time: Nanos,
    /// Whether it may be less, because the study ends as soon as the result is clear.
    pub is_at_most: bool,
    /// Why that is longer than what was said before.
    pub why_longer: Option<String>,
}

/// Is told what happens to a study, between runs and never during one.
pub trait Observer {
    /// A new phase has begun.
    fn phase(&mut self, phase: &Phase);

    /// Something the user should know before the server is started. With several servers the same
    /// text may come several times.
    fn remark(&mut self, text: &str);

    /// A run was finished: the last one of `study`, which has no verdict yet. In `provisional` it
    /// has the verdict of its own figures, for the terminal only: the run may still become INVALID.
    fn run_done(&mut self, study: &Study, provisional: &Study);

    /// All runs of the study so far have their final verdict: their server's count was compared
    /// with ours, or cannot be known.
    fn judged(&mut self, study: &Study);
}

/// Why a study failed.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The server could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The generator could not start or connect.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The server was started but does not serve what is requested. No load was sent.
    #[error("{what}")]
    NotServing {
        /// What is wrong, and what to do.
        what: String,
        /// Its last lines of output, if they help.
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
        /// Its last lines of output.
        last_lines: Vec<String>,
    },
    /// Something is wrong with one of several arms.
    #[error("{arm}: {why}")]
    Arm {
        /// The arm's name.
        arm: String,
        /// What is wrong.
        why: Box<SweepError>,
    },
    /// Anything else that the user can mend.
    #[error("{0}")]
    Unusable(String),
}

impl SweepError {
    /// Whether the server failed, so that another attempt may succeed.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self, SweepError::NotServing { .. } | SweepError::Died { .. })
    }

    /// The server's last lines of output, if they help.
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
