//! A generator as a child process: what it printed, and what it used of the CPU.
//!
//! It runs under the guard that servers run under, so that it and all that it starts die with us, whatever happens.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use launch::{Exit, GuardCommand, LaunchError, Scratch, Server, Spec};
use model::Nanos;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::clock::SystemClock;
use crate::generators::Words;

/// Sends the two streams into files, so that no pipe can be full and neither is lost in the other, takes away what would
/// send the load to a proxy, and becomes the generator.
const INTO_FILES: &str = r#"out=$1 err=$2; shift 2
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
exec "$@" >"$out" 2>"$err" </dev/null"#;

/// A child that makes load. Dropping it kills it and all that it has started.
pub(crate) struct Load {
    server: Server,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Load {
    /// Starts it under `guard`, with its output into files of `scratch`, which goes with us where we are killed.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub(crate) fn start(
        argv: &[OsString],
        words: &Words,
        scratch: &Arc<Scratch>,
        (guard, clock): (&GuardCommand, &SystemClock),
    ) -> Result<Load, LaunchError> {
        let folder = scratch.path();
        let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
        let shell = ["/bin/sh", "-c", INTO_FILES, "longtail"].map(OsString::from);
        let files = [&stdout, &stderr].map(|file| file.as_os_str().to_owned());
        let all = shell.into_iter().chain(files).chain(argv.iter().cloned());
        let mut spec = Spec::command(all, &std::env::current_dir().unwrap_or_else(|_| folder.to_owned()));
        spec.env = words.env.iter().map(|(name, value)| (OsString::from(name), value.clone())).collect();
        spec.scratch = Some(Arc::clone(scratch));
        for file in [&stdout, &stderr] {
            // What the one before has left is not its.
            let _ = fs::remove_file(file);
        }
        Ok(Load { server: Server::start(&spec, guard, clock)?, stdout, stderr })
    }

    /// Its end, once it has ended.
    pub(crate) fn ended(&self) -> Option<Exit> {
        self.server.exited()
    }

    /// What it has printed.
    pub(crate) fn printed(&self) -> String {
        text(self.stdout.as_os_str())
    }

    /// The last line of what it has complained about, for one line of ours.
    pub(crate) fn complaint(&self) -> Option<String> {
        let last = |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(|l| l.trim().to_owned());
        last(&text(self.stderr.as_os_str())).or_else(|| last(&self.printed()))
    }
}

fn text(file: &OsStr) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
}

/// CPU time of all children that have been waited for, and theirs: user and system. Between two readings only one
/// child ends here, with its guard, which takes about a millisecond for itself.
pub(crate) fn used_by_children() -> Option<(Nanos, Nanos)> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    Some((nanos(usage.user_time()), nanos(usage.system_time())))
}

fn nanos(time: TimeVal) -> Nanos {
    Nanos((time.tv_sec() as u64) * 1_000_000_000 + (time.tv_usec() as u64) * 1000)
}
