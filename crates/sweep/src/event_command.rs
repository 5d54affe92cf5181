//! The command of an event (`--during 'bin/deploy@20s'`): it runs in a shell and a process group of
//! its own, and never outlives longtail, even if longtail is killed.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};

use model::secret::MaskedText;
use model::{Clock, Nanos};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a command has to end after SIGTERM.
const GRACE: Nanos = Nanos::from_secs(2);
const STEP: Nanos = Nanos::from_millis(20);
/// How much of the end of its output is read, in bytes.
const MOST_OUTPUT: u64 = 64 << 10;

/// Runs the command and, beside it, a watcher that reads from longtail's pipe. The kernel closes
/// that pipe when longtail is gone, in whatever way; then the watcher kills the process group. The
/// outer shell survives a SIGTERM to the group: it waits for the command and exits with its code.
const SHELL: &str = r#"
exec 3<&0 </dev/null
trap : TERM
(trap '' TERM INT HUP; read gone; kill -9 0) <&3 >/dev/null 2>&1 &
/bin/sh -c "$1" 3<&-
code=$?
kill -9 $!
exit $code
"#;

/// A command that was started.
pub(crate) struct RunningCommand {
    /// The shell, with a pipe to its watcher.
    shell: Child,
    output: Option<File>,
}

impl RunningCommand {
    /// Starts it.
    ///
    /// # Errors
    /// If there is no shell.
    pub(crate) fn start(text: &str) -> Result<RunningCommand, String> {
        // Not a pipe: a server that the command starts keeps it as its output, and must be able to
        // write when we have gone.
        let output = memfd_create("event", MemfdFlags::CLOEXEC).ok().map(File::from);
        let copy = || {
            let file = output.as_ref().and_then(|file| file.try_clone().ok());
            file.map_or_else(Stdio::null, Stdio::from)
        };
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SHELL, "sh", text]).stdin(Stdio::piped()).stdout(copy()).stderr(copy());
        let shell = shell.process_group(0).spawn();
        let shell = shell.map_err(|error| format!("/bin/sh cannot be started: {error}"))?;
        Ok(RunningCommand { shell, output })
    }

    /// The id of its first process.
    pub(crate) fn pid(&self) -> u32 {
        self.shell.id()
    }

    /// How it ended; `None` while it runs.
    pub(crate) fn exit(&mut self) -> Option<ExitStatus> {
        self.shell.try_wait().ok()?
    }

    /// Frees the memory of its output, except for the end: a command may write without limit.
    pub(crate) fn forget_old_output(&self) {
        let Some(file) = &self.output else { return };
        let length = file.metadata().map_or(0, |data| data.len());
        if length > 2 * MOST_OUTPUT {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(file, hole, 0, length - MOST_OUTPUT);
        }
    }

    /// Ends it, and what it started in its process group: by SIGTERM, or after a while by SIGKILL.
    pub(crate) fn end(&mut self, clock: &dyn Clock) {
        let Some(group) = i32::try_from(self.shell.id()).ok().and_then(Pid::from_raw) else {
            return;
        };
        if self.exit().is_some() {
            return;
        }
        let _ = kill_process_group(group, Signal::TERM);
        let until = clock.now() + GRACE;
        while clock.now() < until && self.exit().is_none() {
            clock.sleep(STEP);
        }
        // What the command has started may not heed SIGTERM.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.shell.wait();
    }

    /// The last line that it wrote, without secrets.
    pub(crate) fn last_line(&mut self) -> Option<String> {
        let file = self.output.as_mut()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MOST_OUTPUT))).ok()?;
        let mut bytes = Vec::new();
        file.take(MOST_OUTPUT).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().rfind(|line| !line.trim().is_empty())?;
        Some(MaskedText::from(line).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    use model::SystemClock;
    use rustix::process::test_kill_process_group;

    fn exit_of(command: &mut RunningCommand) -> ExitStatus {
        loop {
            if let Some(exit) = command.exit() {
                return exit;
            }
        }
    }

    #[test]
    fn a_command_tells_its_exit_code_and_its_last_line() {
        let mut command = RunningCommand::start("echo one; echo two >&2; exit 3").unwrap();
        assert_eq!(exit_of(&mut command).code(), Some(3));
        assert_eq!(command.last_line().as_deref(), Some("two"));
    }

    #[test]
    fn of_a_long_output_only_the_end_is_kept_in_memory() {
        let text = "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo last";
        let mut command = RunningCommand::start(text).unwrap();
        exit_of(&mut command);
        command.forget_old_output();
        let kept = command.output.as_ref().unwrap().metadata().unwrap().blocks() * 512;
        assert!(kept <= 2 * MOST_OUTPUT, "{kept}");
        assert_eq!(command.last_line().as_deref(), Some("last"));
    }

    #[test]
    fn a_command_that_does_not_heed_sigterm_is_killed_with_what_it_started() {
        let clock = SystemClock::start();
        let mut command =
            RunningCommand::start("trap '' TERM; sleep 600 & echo $!; sleep 600").unwrap();
        while command.last_line().is_none() {
            clock.sleep(STEP);
        }
        let group = Pid::from_raw(command.pid().cast_signed()).unwrap();
        command.end(&clock);
        while test_kill_process_group(group).is_ok() {
            clock.sleep(STEP);
        }
    }

    /// As when longtail is killed: the kernel closes its end of the pipe.
    #[test]
    fn a_command_dies_when_nobody_holds_its_pipe_any_more() {
        let mut command = RunningCommand::start("sleep 600 & sleep 600").unwrap();
        drop(command.shell.stdin.take());
        assert_eq!(exit_of(&mut command).code(), None, "killed by a signal");
    }
}
