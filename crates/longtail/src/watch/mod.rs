//! `longtail watch`: looks at a server that was there before us, and sends it nothing but questions to its control server; to one on
//! another machine also a connect a second, which carries nothing.
//!
//! `target` finds it, `statistics` its control server; `probe::sampler` looks at it from threads of its own and tells a `WatchBoard`,
//! which is plain arithmetic. `evidence` is what a conclusion may rest on, `diagnosis` the conclusion, `answer` its text, the same in a pipe
//! and on a terminal (`screen`); `figures` has all figures, `json` both.

mod answer;
mod board;
#[cfg(test)]
mod board_tests;
mod diagnosis;
#[cfg(test)]
mod diagnosis_tests;
mod evidence;
mod figures;
mod json;
mod screen;
mod series;
mod statistics;
mod target;
mod waiting;

pub(crate) use self::answer::{AnswerLine, answer};
pub(crate) use self::board::WatchBoard;
pub(crate) use self::evidence::WatchEvidence;
pub(crate) use self::figures::{all_figures, line, line_head};
pub(crate) use self::json::watch_json;
pub(crate) use self::screen::{WatchScreen, is_a_terminal};
pub(crate) use self::statistics::{StatisticsSource, short_path};
pub(crate) use self::target::{TargetName, WatchTarget};

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::{Endpoint, reach};
use model::{Clock, Nanos};
use probe::sampler::Observation;
use serde::Serialize;

/// A connect to another machine may take so long: two retransmissions of its first segment, after 1 and 3 s.
const LONGEST_CONNECT: Duration = Duration::from_secs(4);
/// Another machine is not connected to more often.
const CONNECT_PERIOD: Nanos = Nanos::from_secs(1);

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

/// Connects to a server on another machine once a period until `over`, and closes at once: all of its state that is seen from here.
pub(crate) fn connect(
    to: SocketAddr,
    clock: &impl Clock,
    every: Nanos,
    over: &AtomicBool,
    tell: impl Fn(Observation) -> bool,
) {
    let mut next = clock.now();
    while clock.sleep_until(next, over) {
        let began = clock.now();
        let made = reach(&Endpoint::Tcp(to), LONGEST_CONNECT);
        let at = clock.now();
        let took = made.map(|()| at - began).map_err(|unreachable| unreachable.to_string());
        if !tell(Observation::Connected { at, took }) {
            return;
        }
        next = (next + every.max(CONNECT_PERIOD)).max(at);
    }
}
