//! Watches a server that is already running, without load: it only queries the control server, and
//! connects once a second to a server on another machine, without a request.
//!
//! [`WatchTarget`] finds the server, [`observe()`] starts the threads that look at it, and a
//! [`WatchBoard`] collects what they see: it keeps each quantity as a series and sums them up as
//! [`WatchEvidence`], the only thing that a conclusion rests on. `judge::watch` concludes;
//! [`answer()`] lays the conclusion out as text and [`watch_json`] as JSON. What could not be seen
//! is absent.
//!
//! Nothing here prints, draws or handles a signal.

mod answer;
mod board;
mod connect;
mod figures;
mod json;
mod listening;
mod observe;
mod series;
mod signals;
#[cfg(test)]
mod situations;
mod statistics_source;
mod target;
mod timed_looks;

use serde::Serialize;
use thiserror::Error;

pub use self::answer::{AnswerLine, COLUMNS, LineKind, answer};
pub use self::board::WatchBoard;
pub use self::figures::{all_figures, in_short, sample_line, sample_line_head, stands_at};
pub use self::json::watch_json;
pub use self::observe::observe;
pub use self::signals::{signal_lines, signals_json};
pub use self::statistics_source::{StatisticsSource, short_path};
pub use self::target::{TargetName, WatchTarget};
pub use judge::watch::WatchEvidence;

/// Why a watch is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchEnd {
    /// Its time is up.
    Time,
    /// The user ended it.
    User,
    /// The server has ended.
    Server,
}

/// Why there is nothing to watch: one line that says what is wrong and what to type.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct WatchError(pub String);
