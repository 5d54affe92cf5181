//! A generator as a child process: what it printed, and what it used of the CPU.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use model::Nanos;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::calibrate::generator::Words;

/// A child that makes load. Dropping it kills it.
pub(crate) struct Load {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Load {
    /// Starts it, with its output into files: no pipe can be full, and nobody need read while it runs.
    ///
    /// # Errors
    /// Where it cannot be executed.
    pub(crate) fn start(argv: &[std::ffi::OsString], words: &Words, folder: &Path) -> io::Result<Load> {
        let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).envs(words.env.iter().cloned()).stdin(Stdio::null());
        command.stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        Ok(Load { child: command.spawn()?, stdout, stderr })
    }

    /// Its end, once it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// What it has printed.
    pub(crate) fn printed(&self) -> String {
        text(&self.stdout)
    }

    /// The last line of what it has complained about, for one line of ours.
    pub(crate) fn complaint(&self) -> Option<String> {
        let (said, printed) = (text(&self.stderr), text(&self.stdout));
        let last = |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(|l| l.trim().to_owned());
        last(&said).or_else(|| last(&printed))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Of one that has ended both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
}

/// CPU time of all children that have been waited for, and theirs: user and system. Between two readings only one
/// child ends here.
pub(crate) fn used_by_children() -> Option<(Nanos, Nanos)> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    Some((nanos(usage.user_time()), nanos(usage.system_time())))
}

fn nanos(time: TimeVal) -> Nanos {
    Nanos((time.tv_sec() as u64) * 1_000_000_000 + (time.tv_usec() as u64) * 1000)
}
