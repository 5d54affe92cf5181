//! `longtail watch`: looks at a server that was there before us, and sends it nothing but questions
//! to its control server; to one on another machine also a connect a second, which carries nothing.
//!
//! `target` finds it; `probe::sampler` looks at it from threads of its own and tells a
//! `WatchBoard`, which keeps `series` and sums them up as `judge::watch::WatchEvidence`: the figures
//! of now, of the last seconds or since the watch began, and the only thing that a conclusion rests
//! on. That is `judge`'s; `answer` is its text and JSON, `screen` the terminal. What could not be
//! seen is absent.

mod answer;
mod board;
mod screen;
mod series;
#[cfg(test)]
mod situations;
mod target;

pub(crate) use self::answer::{AnswerLine, all_figures, answer, line, line_head, watch_json};
pub(crate) use self::board::WatchBoard;
pub(crate) use self::screen::{WatchScreen, is_a_terminal};
pub(crate) use self::target::{StatisticsSource, TargetName, WatchTarget, connect, short_path};
pub(crate) use judge::watch::WatchEvidence;

use serde::Serialize;

/// Why a watch is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WatchEnd {
    /// Its time is up.
    Time,
    /// The user ended it.
    User,
    /// The server has ended.
    Server,
}
