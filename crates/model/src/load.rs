//! What `longtail load` was asked, every default made explicit.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{LatePolicy, Nanos, Objective, Pace, Threshold, Timestamps, Timing};

/// What `longtail load` was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// The URL that requests go to, without credentials.
    pub url: String,
    /// The socket behind it, in words: `127.0.0.1:3000`, `unix /run/app.sock`, `unix @app`; several where a name has
    /// several addresses.
    pub endpoints: Vec<String>,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// What is sent, in words: `GET`, `POST with 120 bytes`, `17 requests in order`.
    pub requests: String,
    /// When requests are due.
    pub pace: Pace,
    /// Closed loop: a pause between an answer and the connection's next request.
    #[serde(rename = "think_ns")]
    pub think: Nanos,
    /// Connections: exactly so many in a closed loop, at most so many in an open one.
    pub connections: u32,
    /// Open loop: what becomes of a request that is due while all connections are busy.
    pub late: LatePolicy,
    /// Length of the measured window; `None` where only a count ends the run.
    #[serde(rename = "length_ns")]
    pub length: Option<Nanos>,
    /// Requests in total; `None` where only time ends the run.
    pub requests_total: Option<u64>,
    /// Load before the measured window.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Nanos,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// Requests after which a connection is closed and opened anew; `None` for no limit.
    pub requests_per_connection: Option<u64>,
    /// Requests that a connection has out at once.
    pub pipeline: u32,
    /// An answer that takes longer is given up.
    #[serde(rename = "timeout_ns")]
    pub timeout: Nanos,
    /// Threads of the generator.
    pub lanes: u32,
    /// How a lane waits for the next due time.
    pub timing: Timing,
    /// Whose clock says when an answer came.
    pub timestamps: Timestamps,
    /// `--expect` and `--fail-if`: what the run must keep.
    pub thresholds: Vec<Threshold>,
    /// The run ends early when one of these holds.
    pub stop_if: Vec<Objective>,
    /// Where one line a request was written.
    pub log: Option<PathBuf>,
    /// `--service`: for how long a request holds a slot of the server, to tell its slots by.
    #[serde(rename = "service_time_ns")]
    pub service_time: Option<Nanos>,
    /// `--statsd-listen`: where statsd was listened to.
    pub statsd_listen: Option<SocketAddr>,
    /// `--from`: the commands that lead to the generators on other machines; none: the generator is this process.
    pub from: Vec<String>,
}
