//! What each run needs: the programs, the CPUs of generator and server, and the guard that ends
//! everything that we start. Between the guard and a program is a process of ours ([`run_child`])
//! that pins it to a CPU, writes its output to files, and saves what it used when it ends.
//!
//! The kernel reports only the sum over *all* children of a process (`getrusage(2)`,
//! `RUSAGE_CHILDREN`). That process has a single child, so the sum is the program's own, with
//! everything that the program started and waited for.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use launch::{GuardCommand, LaunchSpec, Server};
use model::{Nanos, SystemClock};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::tools::{self, Tool};

/// The hidden first argument that makes this program a guard (`launch::guard`).
pub(crate) const GUARD: &str = "guard-child";
/// The hidden first argument that makes this program run and measure another ([`run_child`]).
pub(crate) const CHILD: &str = "run-child";

/// The environment of the bench.
pub(crate) struct Lab<'a> {
    /// The program that is measured.
    pub(crate) longtail: PathBuf,
    /// This program; `ping-pong` is in the same folder.
    pub(crate) here: PathBuf,
    /// A private folder for files, removed at the end.
    pub(crate) folder: &'a Path,
    /// The CPUs of the generator and of the server; `None` if there is only one.
    pub(crate) cpus: Option<(usize, usize)>,
    pub(crate) counters: Counters,
    /// A program that has not ended this long after it should have counts as stuck.
    pub(crate) patience: Nanos,
    pub(crate) clock: SystemClock,
    pub(crate) interrupt: &'a AtomicBool,
    /// The value of PATH.
    pub(crate) path: OsString,
}

impl Lab<'_> {
    /// Whether the user pressed Ctrl-C.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// A program on PATH, or in Debian's folder for servers.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        tools::find(name, &self.path).or_else(|| tools::find(name, OsStr::new("/usr/sbin:/sbin")))
    }

    /// The program of a tool.
    pub(crate) fn program(&self, tool: Tool) -> Option<PathBuf> {
        match tool {
            Tool::LONGTAIL => Some(self.longtail.clone()),
            Tool::Floor => {
                Some(self.here.with_file_name("ping-pong")).filter(|file| file.is_file())
            }
            Tool::Load(_) => self.find(tool.name()),
        }
    }

    /// Longtail's data folder for the bench, apart from the user's own.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The folder of its studies.
    pub(crate) fn studies(&self) -> PathBuf {
        self.data().join("longtail").join("studies")
    }

    /// Starts a program under guard and through [`run_child`]: it and its children are killed when
    /// we end, however that happens.
    ///
    /// # Errors
    /// Why it can't be started, in one line.
    pub(crate) fn start(
        &self,
        order: &Order,
        argv: Vec<OsString>,
        env: &[(&str, &OsStr)],
    ) -> Result<Server, String> {
        let text = serde_json::to_string(order).map_err(|why| why.to_string())?;
        let words =
            [self.here.clone().into_os_string(), CHILD.into(), text.into()].into_iter().chain(argv);
        let mut spec = LaunchSpec::command(words, self.folder);
        let data = self.data();
        let always = [("XDG_DATA_HOME", data.as_os_str()), ("LC_ALL", OsStr::new("C"))];
        spec.env = always
            .iter()
            .chain(env)
            .map(|(name, value)| ((*name).into(), (*value).to_owned()))
            .collect();
        let guard = GuardCommand { program: self.here.clone(), args: vec![GUARD.into()] };
        Server::start(&spec, &guard, &self.clock).map_err(|why| why.to_string())
    }
}

/// The last CPU that we may use for the generator, and the first for the server: with more than two
/// CPUs, they rarely share a core.
pub(crate) fn two_cpus() -> Option<(usize, usize)> {
    let allowed = sched_getaffinity(None).ok()?;
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    match all[..] {
        [server, .., generator] => Some((generator, server)),
        _ => None,
    }
}

/// How many connections a child may have open, given its limit of open files.
pub(crate) fn most_connections() -> u64 {
    const OTHER_FILES: u64 = 64;
    getrlimit(Resource::Nofile).maximum.map_or(u64::MAX, |most| most.saturating_sub(OTHER_FILES))
}

/// Creates or empties a folder.
pub(crate) fn emptied(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}

/// Environment variables that would send the load to a proxy.
const PROXIES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// How to run a program; passed as JSON in this program's second argument.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The only CPU that it may run on; `None` means any.
    pub(crate) cpu: Option<usize>,
    /// Whether this process execs the program, which leaves no account; servers run like this.
    pub(crate) becomes: bool,
    /// A folder for `stdout`, `stderr` and `account.json`.
    pub(crate) folder: PathBuf,
}

/// What a program used until it ended, as the kernel counts it (`getrusage(2)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// CPU time in user mode, ns, with a resolution of 1 µs.
    pub(crate) user_ns: u64,
    /// CPU time in the kernel, ns.
    pub(crate) system_ns: u64,
    /// Peak memory in bytes (`ru_maxrss`); at least what this process had when it started the
    /// program.
    pub(crate) peak_bytes: u64,
}

impl Order {
    /// The file of the account.
    pub(crate) fn account(folder: &Path) -> PathBuf {
        folder.join("account.json")
    }
}

/// Runs a program; `words` are its [`Order`] as JSON, then its command line. Returns its exit code.
pub(crate) fn run_child(words: impl IntoIterator<Item = OsString>) -> i32 {
    let mut words = words.into_iter();
    let order = words.next().and_then(|text| serde_json::from_str(&text.to_string_lossy()).ok());
    let argv: Vec<OsString> = words.collect();
    let (Some(order), Some((program, arguments))) = (order, argv.split_first()) else { return 2 };
    execute(&order, program, arguments).unwrap_or_else(|error| {
        // The parent reads this.
        let _ = fs::write(
            order.folder.join("stderr"),
            format!("{}: {error}\n", program.to_string_lossy()),
        );
        127
    })
}

fn execute(order: &Order, program: &OsString, arguments: &[OsString]) -> io::Result<i32> {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })?;
    if let Some(cpu) = order.cpu {
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only)?;
    }
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(File::create(order.folder.join("stdout"))?);
    for name in PROXIES {
        command.env_remove(name);
    }
    command.stderr(File::create(order.folder.join("stderr"))?);
    if order.becomes {
        return Err(command.exec());
    }
    let status = command.status()?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let account = Account {
        user_ns: nanos(usage.user_time()),
        system_ns: nanos(usage.system_time()),
        peak_bytes: usage.max_rss().cast_unsigned() * 1024,
    };
    fs::write(Order::account(&order.folder), serde_json::to_string(&account)?)?;
    Ok(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1))
}

fn nanos(time: TimeVal) -> u64 {
    (time.tv_sec() as u64) * 1_000_000_000 + (time.tv_usec() as u64) * 1000
}
