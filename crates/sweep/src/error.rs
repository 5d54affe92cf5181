//! Why a sweep could not be done: the user's mistakes and the server's failures, each in one line.

use engine::{DriveError, LimitError, TransportError};
use launch::LaunchError;
use thiserror::Error;

/// Why a sweep could not be done, or not to its end.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The server could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Too few file descriptors for the largest run.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The generator could not start.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// Connections to it cannot be made.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// There is no place for an app's packets.
    #[error("a UDP socket on loopback for the app's packets cannot be had ({0}): leave out the arm statsd")]
    NoReceiver(std::io::Error),
    /// Its workers fail, one after the other, and their master goes on.
    #[error("Puma cannot start its workers: what they said is above, and with -w0 it says more; no load was sent")]
    NoWorker {
        /// What it wrote.
        last_lines: Vec<String>,
    },
    /// It was started and has ended before it was ready.
    #[error("the server ended during its start ({how}); its last lines are above: no load was sent")]
    DiedAtBoot {
        /// Its exit code or signal.
        how: String,
        /// Its last lines.
        last_lines: Vec<String>,
    },
    /// It was started and did not become ready.
    #[error(
        "the server was not ready after {seconds} s ({what}); its last lines are above: raise --boot-timeout, or fix it"
    )]
    NotReady {
        /// How long we waited.
        seconds: u64,
        /// What was missing.
        what: String,
        /// Its last lines.
        last_lines: Vec<String>,
    },
    /// The app does not serve what is requested.
    #[error("GET {path} is answered {status}, so there is nothing to measure: {}", ask_of(*status))]
    BadAnswer {
        /// What was requested.
        path: String,
        /// The status of the answer.
        status: u16,
        /// The server's last lines, where the fault is its own (5xx).
        last_lines: Vec<String>,
    },
    /// The app serves another body than is asked for.
    #[error(
        "GET {path} (Body-Conf: {body}) is answered with {bytes} bytes of content and not with {expected}: does the app of -r go by that header?"
    )]
    WrongLength {
        /// What was requested.
        path: String,
        /// The body that was asked for.
        body: String,
        /// Bytes of content that came.
        bytes: u64,
        /// Bytes that it should have been.
        expected: u64,
    },
    /// A single request, to see whether the app serves what will be asked for, was not answered.
    #[error("GET {path} is not answered: {how}")]
    NoAnswer {
        /// What was requested.
        path: String,
        /// How it ended.
        how: String,
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
    /// The generator's own limit could not be measured.
    #[error(
        "the built-in server that the generator is calibrated with did not start ({how}): --no-calibrate goes without"
    )]
    NoCalibration {
        /// What was seen.
        how: String,
    },
    /// Something is wrong with one of several arms.
    #[error("{arm}: {why}")]
    Arm {
        /// Its name.
        arm: String,
        /// What.
        why: Box<SweepError>,
    },
    /// A share is asked for, of what is not known.
    #[error(
        "no request was answered well, so what it can do at most is not known: look at the server, or give --rate or -c"
    )]
    NoMaximum,
    /// Another generator failed.
    #[error("{by} failed with {connections} connections: {why}")]
    Other {
        /// Its name.
        by: String,
        /// Connections of that run.
        connections: u32,
        /// What is known of it.
        why: String,
    },
    /// The URL cannot be used.
    #[error("'{url}' cannot be used as --url: {why}")]
    BadUrl {
        /// As given.
        url: String,
        /// Why.
        why: String,
    },
}

impl SweepError {
    /// Whether it is the server that failed, so that it may do better another time.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(
            self,
            SweepError::DiedAtBoot { .. }
                | SweepError::NoWorker { .. }
                | SweepError::NotReady { .. }
                | SweepError::NoAnswer { .. }
                | SweepError::BadAnswer { .. }
                | SweepError::Died { .. }
        )
    }

    /// The server's last lines, where they tell more than we can.
    pub fn last_lines(&self) -> &[String] {
        match self {
            SweepError::DiedAtBoot { last_lines, .. }
            | SweepError::NoWorker { last_lines }
            | SweepError::NotReady { last_lines, .. }
            | SweepError::BadAnswer { last_lines, .. }
            | SweepError::Died { last_lines, .. } => last_lines,
            SweepError::Arm { why, .. } => why.last_lines(),
            _ => &[],
        }
    }
}

/// What an answer that is none raises: is the request wrong, or the app?
fn ask_of(status: u16) -> &'static str {
    if status >= 500 {
        "does the app work? (--path, -r) The server's last lines are above"
    } else {
        "is the path right? (--path, -r)"
    }
}
