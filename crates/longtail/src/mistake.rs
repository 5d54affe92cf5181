//! What a user can fix, each as one line.

use std::path::PathBuf;

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
    Transport(#[from] engine::TransportError),
    /// A server could not be prepared.
    #[error(transparent)]
    Launch(#[from] launch::LaunchError),
    /// The built-in server could not start.
    #[error(transparent)]
    Sink(#[from] sink::SinkError),
    /// Theory has no answer.
    #[error(transparent)]
    Theory(#[from] queueing::QueueingError),
    /// A file could not be written.
    #[error("'{path}' cannot be written ({why}): {hint}")]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        why: std::io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// There is no place for studies.
    #[error("no folder for studies: set XDG_DATA_HOME or HOME")]
    NoDataFolder,
    /// A study could not be read.
    #[error("'{path}' cannot be read: {why}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is no study yet.
    #[error("no study in '{0}' yet: run longtail sweep, or name a file")]
    NoStudy(PathBuf),
    /// The process cannot listen to signals.
    #[error("Ctrl-C cannot be listened to ({0}): is this an unusual sandbox?")]
    Signals(std::io::Error),
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

/// A thread that could not be had.
pub(crate) fn no_thread(error: engine::DriveError) -> Mistake {
    Mistake::Sweep(error.into())
}

/// A fault in what was asked; `text` is one line that names it and the hint.
pub(crate) fn wrong(text: impl Into<String>) -> Mistake {
    Mistake::Flags(text.into())
}
