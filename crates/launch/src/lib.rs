//! Starts a server process, keeps it under guard, stops it, and knows why it did not start.
//!
//! It neither asks the server anything (`probe` does) nor decides when it is ready (`sweep` does).
//! It prints nothing and reads no clock. However longtail ends, nothing of a server that it started
//! lives on; [`guard`] says how, and what cannot be covered.

pub mod affinity;
mod bind;
mod build;
pub mod guard;
pub mod puma;
mod server_output;
mod spec;
mod start_server;

use std::io;
use std::path::Path;

use thiserror::Error;

pub use affinity::CpuRestriction;
pub use bind::{Addresses, ServerBind, TlsPair, free_address};
pub use build::{Build, InstalledGem, Revision, git_head, puma_gem};
pub use guard::{ServerExit, dies_with_us};
pub use puma::{Puma, Surroundings, check_files};
pub use server_output::ServerOutput;
pub use spec::{GuardCommand, LaunchSpec, Scratch, data_folder, find_program, remove_noted};
pub use start_server::Server;

/// Why a server was not started: a mistake that the user can fix, as one line that says how. A
/// server that started and ended later is not an error but a [`ServerExit`].
#[derive(Debug, Error)]
pub enum LaunchError {
    /// Neither a bundle with Puma, nor a checkout of it, nor `puma` on PATH. The caller may use
    /// another server.
    #[error(
        "no puma found: run `gem install puma`, or give --puma COMMAND, or use --server builtin"
    )]
    NoPuma,
    /// Something else that the user can fix.
    #[error("{0}")]
    Unusable(String),
    /// The program to start is not on PATH, or not at its path, or may not be executed.
    #[error("'{program}' {why}: {hint}")]
    ProgramNotFound {
        /// As it would have been started.
        program: String,
        /// What is wrong with it.
        why: &'static str,
        /// What to install or which flag to give.
        hint: String,
    },
    /// A command that builds a server failed.
    #[error("{command} failed ({how}): {line}")]
    BuildFailed {
        /// As a shell takes it.
        command: String,
        /// Its exit code or signal.
        how: String,
        /// Its last line.
        line: String,
    },
    /// The user interrupted.
    #[error("interrupted before the first run")]
    Interrupted,
    /// The guard process did not start, died, or did not answer.
    #[error("the process that guards the server failed: {0}")]
    Guard(String),
    /// The guard process could not be started.
    #[error("longtail cannot start itself anew, as the guard of the server: {0}")]
    NoGuard(String),
    /// The kernel refused to execute the program.
    #[error("'{program}' could not be executed: {reason}; can you start it by hand?")]
    NotExecuted {
        /// The program.
        program: String,
        /// What the kernel said.
        reason: String,
    },
}

/// The error for a directory or file that cannot be made in `within`, which is below TMPDIR.
pub(crate) fn unwritable(within: &Path) -> impl Fn(io::Error) -> LaunchError + use<> {
    not_made_in(within, "TMPDIR")
}

/// The same of longtail's data folder, where what was built is kept.
pub(crate) fn unwritable_data(within: &Path) -> impl Fn(io::Error) -> LaunchError + use<> {
    not_made_in(within, "XDG_DATA_HOME")
}

/// `variable` is the one that names another place.
fn not_made_in(within: &Path, variable: &'static str) -> impl Fn(io::Error) -> LaunchError + use<> {
    let within = within.display().to_string();
    move |error| {
        LaunchError::Unusable(format!(
            "no directory can be made in '{within}' ({error}): set {variable} to one that you can write"
        ))
    }
}
