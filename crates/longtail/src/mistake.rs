//! What a user can fix, each as one line.

use std::path::{Path, PathBuf};

use sweep::SweepError;
use thiserror::Error;

use crate::exit::Exit;

/// Why an invocation did nothing, or not all that was asked.
#[derive(Debug, Error)]
pub(crate) enum Mistake {
    /// The flags cannot be understood.
    #[error("{0}")]
    Flags(String),
    /// The sweep could not be done.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// What to send cannot be made of the flags or the file.
    #[error(transparent)]
    Requests(#[from] requests::RequestError),
    /// Where to send it cannot be reached in principle.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// A server could not be prepared.
    #[error(transparent)]
    Launch(#[from] launch::LaunchError),
    /// The built-in server could not start.
    #[error(transparent)]
    Sink(#[from] sink::SinkError),
    /// Theory has no answer.
    #[error(transparent)]
    Theory(#[from] queueing::QueueingError),
    /// A study could not be read.
    #[error("'{path}' cannot be read: {why}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Mistake {
    /// What the exit code says of it.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Mistake::Sweep(SweepError::Died { .. }) => Exit::Invalid,
            _ => Exit::Mistake,
        }
    }

    /// Lines of somebody else (a server) that say more than ours.
    pub(crate) fn last_lines(&self) -> &[String] {
        match self {
            Mistake::Sweep(error) => error.last_lines(),
            _ => &[],
        }
    }
}

/// A file or folder that cannot be written, and what to do.
pub(crate) fn unwritable(path: &Path, why: &std::io::Error, hint: &str) -> Mistake {
    wrong(format!("'{}' cannot be written ({why}): {hint}", path.display()))
}

/// A thread that could not be had.
pub(crate) fn no_thread(error: engine::EngineError) -> Mistake {
    Mistake::Sweep(error.into())
}

/// A fault in what was asked; `text` is one line that names it and the hint.
pub(crate) fn wrong(text: impl Into<String>) -> Mistake {
    Mistake::Flags(text.into())
}
