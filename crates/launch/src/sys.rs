//! The one unsafe act of this crate: what a child does between fork and exec. Nothing else belongs here.

#![expect(unsafe_code, reason = "std gives no safe way to ask for the parent-death signal before exec")]

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

/// Has the kernel kill the command's process as soon as the *thread* that spawns it ends (prctl(2),
/// `PR_SET_PDEATHSIG`). `parent` is the process that spawns it.
pub(crate) fn die_with(command: &mut Command, parent: Pid) {
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. These two are bare system calls, which
    // neither allocate nor lock, and an `Errno` becomes an `io::Error` without allocating.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before that call; then nobody would send the signal any more.
            if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
        });
    }
}

/// Has the kernel kill the command's process when the thread that spawns it ends, however that comes about: the main thread, or the
/// process goes with it later than it should.
pub fn dies_with_us(command: &mut Command) {
    die_with(command, rustix::process::getpid());
}
