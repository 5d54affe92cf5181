//! One program, run in a process of its own between the guard and it: pinned to a processor, its output in files, and
//! at its end the kernel's account of it alone.
//!
//! A process can only be told the resources of *all* its children together (`getrusage(2)`, `RUSAGE_CHILDREN`). This
//! one has a single child, so they are the program's own, with all that it has started and waited for.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// Would send the load to a proxy.
const PROXIES: [&str; 6] = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// What is to be run, and how; as JSON it is this program's second word.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The only processor that it may run on; `None`: any.
    pub(crate) cpu: Option<usize>,
    /// The process itself becomes the program, and there is no account: for servers.
    pub(crate) becomes: bool,
    /// A folder for `stdout`, `stderr` and `account.json`.
    pub(crate) folder: PathBuf,
}

/// What the kernel says of a program that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// CPU time in user mode, ns; the kernel tells it in µs.
    pub(crate) user_ns: u64,
    /// CPU time in the kernel, ns.
    pub(crate) system_ns: u64,
    /// The most memory that it had at once, bytes (`ru_maxrss`). At least what this process had when it started it.
    pub(crate) peak_bytes: u64,
}

impl Order {
    /// Where the account stands.
    pub(crate) fn account(folder: &Path) -> PathBuf {
        folder.join("account.json")
    }
}

/// Runs the program; `words` are the order and its command. Gives the exit code: its own.
pub(crate) fn run(words: impl IntoIterator<Item = OsString>) -> i32 {
    let mut words = words.into_iter();
    let order = words.next().and_then(|text| serde_json::from_str(&text.to_string_lossy()).ok());
    let argv: Vec<OsString> = words.collect();
    let (Some(order), Some((program, arguments))) = (order, argv.split_first()) else { return 2 };
    execute(&order, program, arguments).unwrap_or_else(|error| {
        // Read by whoever waits for us.
        let _ = fs::write(order.folder.join("stderr"), format!("{}: {error}\n", program.to_string_lossy()));
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
