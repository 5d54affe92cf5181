//! What a study needs of the world: the clock, the command line, where servers run, another generator, and who wants to end it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{LoadSpec, Resolver, RunProgress};
use launch::GuardCommand;
use launch::puma::Addresses;
use model::{Ceiling, Diagnostic, GeneratorClaim, Nanos, ServerFacts, ServerPlan, StreamPlan, SystemClock};

use crate::far::conductor::FarGenerators;
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
    pub command_line: String,
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
        RunProgress::new(self.far.map_or(spec.lanes, FarGenerators::count))
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

    /// Runs it once, its warm-up before it; `ended` says when to give up. `Ok(None)` where it was given up.
    ///
    /// # Errors
    /// Where it fails, or what it prints is not understood: why, in a line.
    fn run(&self, task: &Task<'_>, ended: &dyn Fn() -> bool) -> Result<Option<ClaimedRun>, String>;
}
