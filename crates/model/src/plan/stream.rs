//! The stream of requests of each run: what is sent, over which connections, until when, and the flags that ask for it.

use serde::{Deserialize, Serialize};

use crate::anatomy::STAMPS;
use crate::{Body, Nanos};

/// The stream of requests of each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// `-d`: how long the app is asked to hold a thread; the theory's service time. `None`: unknown, measured first.
    #[serde(rename = "delay_ns")]
    pub delay: Option<Nanos>,
    /// `--path`: what is requested; `None` is `/sleep<delay>`, or the body's.
    pub path: Option<String>,
    /// `--body`: what every answer is to carry; `None`: whatever the path brings.
    pub body: Option<Body>,
    /// Not `-k`: whether a connection carries more than one request.
    pub keep_alive: bool,
    /// When a run ends.
    pub stop: Stop,
    /// Load before the measured window, not measured.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Nanos,
    /// An answer that takes longer is given up and counted as timed out.
    #[serde(rename = "timeout_ns")]
    pub timeout: Nanos,
    /// Threads of the generator.
    pub lanes: u32,
    /// Whose clock says when an answer came.
    pub timestamps: Timestamps,
    /// The response header in which a worker names itself.
    pub worker_header: String,
    /// `--inspect app`: whether the app is asked when it began and ended.
    pub anatomy: bool,
    /// `--from`: the commands that lead to the generators on other machines; none: the generator is this process.
    pub from: Vec<String>,
}

impl StreamPlan {
    /// What is requested.
    pub fn target_path(&self) -> String {
        match (&self.path, self.body, self.delay) {
            (Some(path), _, _) => path.clone(),
            (None, Some(body), _) => format!("/{body}"),
            (None, None, Some(delay)) => format!("/sleep{}", delay.as_secs_f64()),
            (None, None, None) => "/".to_owned(),
        }
    }

    /// Header lines that go with it: a body and its delay are asked for as Puma's own apps understand it too.
    pub fn headers(&self) -> Vec<String> {
        let ask = self.anatomy.then(|| format!("{STAMPS}: 1"));
        let Some(body) = self.body else { return ask.into_iter().collect() };
        let delay = self.delay.filter(|delay| *delay > Nanos::ZERO);
        let delay = delay.map(|delay| format!("dly: {}", delay.as_secs_f64()));
        std::iter::once(format!("body-conf: {body}")).chain(delay).chain(ask).collect()
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// No request becomes due after this time (warm-up not included); those out are waited for.
    #[serde(rename = "after_ns")]
    After(Nanos),
    /// Each connection makes this many requests (warm-up not included).
    RequestsPerConnection(u64),
}

/// What becomes of a request that is due while all connections are busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatePolicy {
    /// It waits for a connection, and its due time stays: the wait is part of its response time.
    #[default]
    Queue,
    /// It is counted and not sent.
    Skip,
}

/// How a lane waits for the next due time: precision costs wake-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// Wakes at whole milliseconds and sends what has become due: least CPU, up to 1 ms late.
    Coalesce,
    /// Wakes for each due time, by the nanosecond timer, early by what wake-ups are usually late: a few microseconds late.
    #[default]
    Precise,
    /// As precise, and busy polling for the last 50 µs before each due time: below a microsecond late on a free core.
    Spin,
}

/// Whose clock says when an answer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Timestamps {
    /// The kernel's: when the last segment of it came in. What the lane adds before it reads (read lag) is measured, and
    /// not in the times.
    Kernel,
    /// The lane's, when it reads: what it adds is in the times, and unknown.
    #[default]
    User,
}
