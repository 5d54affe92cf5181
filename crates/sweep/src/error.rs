//! Why a sweep could not be done: the user's mistakes and the server's failures, each in one line.

use engine::EngineError;
use launch::LaunchError;
use thiserror::Error;

/// Why a sweep could not be done, or not to its end.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The server could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The generator could not start, or connections to the server cannot be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The server was started and does not serve what is requested. No load was sent.
    #[error("{what}")]
    NotServing {
        /// What is wrong, and what to do.
        what: String,
        /// Its last lines, where they tell more.
        last_lines: Vec<String>,
    },
    /// The server ended while it was measured.
    #[error("the server ended during the run with {connections} connections ({how}); its last lines are above")]
    Died {
        /// Connections of that run.
        connections: u32,
        /// Its exit code or signal.
        how: String,
        /// Its last lines.
        last_lines: Vec<String>,
    },
    /// Something is wrong with one of several arms.
    #[error("{arm}: {why}")]
    Arm {
        /// Its name.
        arm: String,
        /// What.
        why: Box<SweepError>,
    },
    /// Something else that the user can do something about.
    #[error("{0}")]
    Unusable(String),
}

impl SweepError {
    /// Whether it is the server that failed, so that it may do better another time.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self, SweepError::NotServing { .. } | SweepError::Died { .. })
    }

    /// The server's last lines, where they tell more than we can.
    pub fn last_lines(&self) -> &[String] {
        match self {
            SweepError::NotServing { last_lines, .. } | SweepError::Died { last_lines, .. } => last_lines,
            SweepError::Arm { why, .. } => why.last_lines(),
            _ => &[],
        }
    }
}
