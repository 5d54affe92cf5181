//! What `longtail load` was asked, every default made explicit, and what came of it.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::forecast::Overload;
use crate::{
    Diagnostic, GeneratorClaim, GeneratorFacts, Judgement, Nanos, Objective, Pace, Quantile, Statistics, StatsdReport,
    Tally, Threshold,
};

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
    #[serde(default)]
    pub timestamps: Timestamps,
    /// `--expect` and `--fail-if`: what the run must keep.
    pub thresholds: Vec<Threshold>,
    /// The run ends early when one of these holds.
    pub stop_if: Vec<Objective>,
    /// Where one line a request was written.
    pub log: Option<PathBuf>,
    /// `--service`: for how long a request holds a slot of the server, to tell its slots by.
    #[serde(rename = "service_time_ns", default, skip_serializing_if = "Option::is_none")]
    pub service_time: Option<Nanos>,
    /// `--statsd-listen`: where statsd was listened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statsd_listen: Option<SocketAddr>,
    /// `--from`: the commands that lead to the generators on other machines; none: the generator is this process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamps {
    /// The kernel's: when the last segment of it came in. What the lane adds before it reads (read lag) is measured, and
    /// not in the times.
    Kernel,
    /// The lane's, when it reads: what it adds is in the times, and unknown.
    #[default]
    User,
}

impl std::fmt::Display for Timestamps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Timestamps::Kernel => "kernel",
            Timestamps::User => "user",
        })
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRun {
    /// What was recorded; nothing of a run that another generator made.
    #[serde(default, skip_serializing_if = "Tally::is_nothing")]
    pub tally: Tally,
    /// What another generator says of the run that it made; `None` of our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Box<GeneratorClaim>>,
    /// Length of the measured window, from which rates are computed.
    #[serde(rename = "measured_ns")]
    pub measured: Nanos,
    /// From the first due time to the end of the last request, warm-up and drain included.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Nanos,
    /// Time of the one name resolution before the start; `None` where the host is an address.
    #[serde(rename = "name_resolution_ns")]
    pub name_resolution: Option<Nanos>,
    /// What the checks of the answers found, one line each.
    pub checks: Vec<String>,
    /// Lines of the log that were dropped because the disk was too slow.
    pub log_dropped: u64,
    /// How well the percentiles are known, and whether the run was steady; `None` of a run that was not looked at.
    #[serde(default)]
    pub statistics: Option<Statistics>,
    /// What an overload in open loop says of the server; `None` where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
    /// What the app said over statsd meanwhile; `None` where nobody listened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statsd: Option<StatsdReport>,
    /// What the generator and its machine did.
    #[serde(default)]
    pub generator: GeneratorFacts,
    /// What limited the run; `None` of a run that has not been judged.
    pub judgement: Option<Judgement>,
    /// What is doubtful.
    pub warnings: Vec<Diagnostic>,
}

impl LoadRun {
    /// A run of which nothing is known but what its lanes recorded.
    pub fn recorded(tally: Tally, measured: Nanos, elapsed: Nanos) -> LoadRun {
        LoadRun {
            tally,
            claim: None,
            measured,
            elapsed,
            name_resolution: None,
            checks: Vec::new(),
            log_dropped: 0,
            statistics: None,
            overload: None,
            statsd: None,
            generator: GeneratorFacts::default(),
            judgement: None,
            warnings: Vec::new(),
        }
    }

    /// A run that another generator made: all that is known of it is what it says.
    pub fn claimed(claim: GeneratorClaim, elapsed: Nanos) -> LoadRun {
        let measured = claim.duration.unwrap_or(elapsed);
        LoadRun { claim: Some(Box::new(claim)), ..LoadRun::recorded(Tally::default(), measured, elapsed) }
    }

    /// Good answers per second of the measured window; 0 where it has no length.
    pub fn completed_rate(&self) -> f64 {
        per_second(self.tally.completed_in_window, self.measured)
    }

    /// Requests per second that were sent in the measured window; 0 where it has no length.
    pub fn sent_rate(&self) -> f64 {
        per_second(self.tally.sent_in_window, self.measured)
    }

    /// The response time at quantile `q`, as [`Tally::response_time_at`], where so many independent answers support it.
    pub fn response_time(&self, q: f64) -> Quantile {
        match &self.claim {
            Some(claim) => Quantile::printed(claim.percentile(q)),
            None => self.tally.response_time_at(q).supported(self.statistics.as_ref(), q, &self.tally),
        }
    }

    /// The service time at quantile `q`, likewise.
    pub fn service_time(&self, q: f64) -> Quantile {
        self.tally.service_time_at(q).supported(self.statistics.as_ref(), q, &self.tally)
    }

    /// Requests per second that became due; `None` in a closed loop.
    pub fn offered_rate(&self, pace: &Pace) -> Option<f64> {
        match pace {
            Pace::Closed => None,
            Pace::Open { .. } => {
                let over =
                    self.statistics.as_ref().and_then(|statistics| statistics.backlog).map(|backlog| backlog.over);
                // Where a count ends the run, more time passes until the last answer than requests become due in.
                Some(per_second(self.tally.counts.total(), over.unwrap_or(self.measured)))
            }
        }
    }

    /// Good answers a second while requests became due. Where a count ended the run the answers that came after the last of them are left
    /// out, as far as whole seconds tell.
    pub fn completed_under_load(&self) -> f64 {
        let over = self.statistics.as_ref().and_then(|statistics| statistics.backlog).map(|backlog| backlog.over);
        match over.map(|over| (over.as_secs_f64() + 1e-3) as usize) {
            Some(seconds @ 1..) if self.tally.window.until == Nanos::MAX => {
                let completed =
                    self.tally.series.seconds.iter().take(seconds).map(|second| second.completed).sum::<u64>();
                completed as f64 / seconds as f64
            }
            _ => self.completed_rate(),
        }
    }
}

fn per_second(count: u64, time: Nanos) -> f64 {
    if time == Nanos::ZERO { 0.0 } else { count as f64 / time.as_secs_f64() }
}
