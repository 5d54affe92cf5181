//! What each run needs: where the programs are, which processor is whose, who ends what we have started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use launch::{GuardCommand, LaunchSpec, Server};
use model::{Nanos, SystemClock};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::child::Order;
use crate::counters::Counters;
use crate::tools::{self, Tool};

/// The hidden first words: this program again, as a guard (`launch::guard`) and as what runs one program (`child`).
pub(crate) const GUARD: &str = "guard-child";
/// See [`GUARD`].
pub(crate) const CHILD: &str = "run-child";

/// The bench's surroundings.
pub(crate) struct Lab<'a> {
    /// The program that is measured.
    pub(crate) longtail: PathBuf,
    /// This program, which also has `ping-pong` beside it.
    pub(crate) here: PathBuf,
    /// For files; private, and gone at the end.
    pub(crate) folder: &'a Path,
    /// Processors of the generator and of the server; `None` where there is only one.
    pub(crate) cpus: Option<(usize, usize)>,
    pub(crate) counters: Counters,
    /// A program that has not ended so long after its time is taken for stuck.
    pub(crate) patience: Nanos,
    pub(crate) clock: SystemClock,
    pub(crate) interrupt: &'a AtomicBool,
    /// The value of PATH.
    pub(crate) path: OsString,
}

impl Lab<'_> {
    /// Whether the user wants an end.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// A program on PATH, or where Debian keeps servers.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        tools::find(name, &self.path).or_else(|| tools::find(name, OsStr::new("/usr/sbin:/sbin")))
    }

    /// The program of a tool.
    pub(crate) fn program(&self, tool: Tool) -> Option<PathBuf> {
        match tool {
            Tool::Longtail => Some(self.longtail.clone()),
            Tool::Floor => Some(self.here.with_file_name("ping-pong")).filter(|file| file.is_file()),
            _ => self.find(tool.name()),
        }
    }

    /// longtail keeps its studies here: they are none that the user made.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Where it keeps them within.
    pub(crate) fn studies(&self) -> PathBuf {
        self.data().join("longtail").join("studies")
    }

    /// Starts a program as `child` does it, under guard: whatever becomes of us, it and all that it starts end with us.
    ///
    /// # Errors
    /// Why not, in a line.
    pub(crate) fn start(&self, order: &Order, argv: Vec<OsString>, env: &[(&str, &OsStr)]) -> Result<Server, String> {
        let text = serde_json::to_string(order).map_err(|why| why.to_string())?;
        let words = [self.here.clone().into_os_string(), CHILD.into(), text.into()].into_iter().chain(argv);
        let mut spec = LaunchSpec::command(words, self.folder);
        let data = self.data();
        let always = [("XDG_DATA_HOME", data.as_os_str()), ("LC_ALL", OsStr::new("C"))];
        spec.env = always.iter().chain(env).map(|(name, value)| ((*name).into(), (*value).to_owned())).collect();
        let guard = GuardCommand { program: self.here.clone(), args: vec![GUARD.into()] };
        Server::start(&spec, &guard, &self.clock).map_err(|why| why.to_string())
    }
}

/// The last processor that we may use for the generator, the first for the server: on machines with more than two they
/// are seldom of one core.
pub(crate) fn two_cpus() -> Option<(usize, usize)> {
    let mine = sched_getaffinity(None).ok()?;
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| mine.is_set(*cpu)).collect();
    match all[..] {
        [server, .., generator] => Some((generator, server)),
        _ => None,
    }
}

/// Files that a child may have open, of which it has so many for itself.
pub(crate) fn most_connections() -> u64 {
    const OWN: u64 = 64;
    getrlimit(Resource::Nofile).maximum.map_or(u64::MAX, |most| most.saturating_sub(OWN))
}

/// Makes a folder empty.
pub(crate) fn emptied(folder: &Path) -> std::io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}
