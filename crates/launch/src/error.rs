//! Why a server was not started: the mistakes a user can fix, each as one line that says how.
//!
//! Not here: a server that started and later died is no error but a [`ServerExit`](crate::ServerExit).

use std::io;
use std::path::Path;

use thiserror::Error;

/// Why a server was not started. Every message is one line, with a hint.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// Neither a bundle with Puma, nor a checkout of it, nor `puma` on PATH. The caller may use another server.
    #[error("no puma found: run `gem install puma`, or give --puma COMMAND, or use --server builtin")]
    NoPuma,
    /// Something else that the user can do something about.
    #[error("{0}")]
    Unusable(String),
    /// The program to start is not on PATH, or not at its path, or may not be executed.
    #[error("'{program}' was not found: {hint}")]
    ProgramNotFound {
        /// As it would have been started.
        program: String,
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
    /// The user wants to end.
    #[error("interrupted before the first run")]
    Interrupted,
    /// The guard process did not start, died, or did not answer.
    #[error("the process that guards the server failed: {0}; is this longtail's own executable intact?")]
    Guard(String),
    /// The kernel refused to execute the program.
    #[error("'{program}' could not be executed: {reason}; can you start it by hand?")]
    NotExecuted {
        /// The program.
        program: String,
        /// What the kernel said.
        reason: String,
    },
}

/// Of a directory or a file that cannot be made within that one.
pub(crate) fn unwritable(within: &Path) -> impl Fn(io::Error) -> LaunchError + use<> {
    let within = within.display().to_string();
    move |error| {
        LaunchError::Unusable(format!(
            "no directory can be made in '{within}' ({error}): set TMPDIR to one that you can write"
        ))
    }
}
