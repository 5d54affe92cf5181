//! Findings: conclusions of a study about the server, each with its evidence.
//!
//! The rules stand in `finding/rules.rs`, the sentences in `report`.

mod rules;

use serde::{Deserialize, Serialize};

pub use self::rules::findings;
use crate::histogram::TwoGroups;
use crate::{Believable, Diagnostic, Limit, Nanos, PercentileTime, Verdict};

/// A conclusion and its evidence. `multiple` is connections / slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Finding {
    /// No figure of these runs is the server's.
    NotMeasured {
        /// Which: `3x`, `4x`; none where there is only one run.
        runs: Vec<String>,
        /// [`Verdict::GeneratorBound`] or [`Verdict::Invalid`].
        verdict: Verdict,
        /// The check that decided.
        check: Option<Diagnostic>,
    },
    /// From this load on the server completes no more, however many connections wait.
    Saturated {
        /// The fewest connections that were tried at which it does.
        connections: u32,
        /// Whether no fewer were tried.
        is_lowest: bool,
        /// Whether no other load was tried.
        is_only: bool,
        /// What it completes, in requests per second.
        rate_per_s: f64,
        /// The CPUs are shared with the generator: on its own it would do more.
        on_shared_cpus: bool,
    },
    /// It completes more the more connections there are, up to the highest load that was tried.
    StillRising {
        /// The most connections that were tried.
        connections: u32,
        /// What it completes there, in requests per second.
        rate_per_s: f64,
    },
    /// One load was tried, and the server is not seen to be at a limit: whether it does more under
    /// another is not known.
    OneLoad {
        /// Connections.
        connections: u32,
        /// What it completes, in requests per second.
        rate_per_s: f64,
    },
    /// It completes less at the highest load than at a lower one.
    Collapsing {
        /// Connections at the best rate.
        best_connections: u32,
        /// That rate, in requests per second.
        best_per_s: f64,
        /// The most connections that were tried.
        connections: u32,
        /// The rate there, in requests per second.
        rate_per_s: f64,
        /// How many more CPUs other processes used there: then it is not known whether the server
        /// itself does less.
        more_cpus_of_others: Option<f64>,
    },
    /// A few requests wait many times as long as the others, and not for the app.
    Unfair {
        /// At which load.
        multiple: f64,
        /// Connections there.
        connections: u32,
        /// The two kinds of requests.
        groups: TwoGroups,
        /// What each would take if all were served first come, first served: connections /
        /// throughput (Little's law).
        #[serde(rename = "first_come_first_served_ns")]
        in_order: Nanos,
    },
    /// All requests take about as long as they would first come, first served.
    InOrder {
        /// At which load.
        multiple: f64,
        /// Connections there.
        connections: u32,
        /// The median.
        #[serde(rename = "p50_ns")]
        p50: Nanos,
        /// The 95th percentile.
        #[serde(rename = "p95_ns")]
        p95: Nanos,
        /// Connections / throughput.
        #[serde(rename = "first_come_first_served_ns")]
        in_order: Nanos,
    },
    /// Response times are spread, and the figures do not say whether server or app spreads them.
    Spread {
        /// At which load.
        multiple: f64,
        /// Connections there.
        connections: u32,
        /// The median.
        #[serde(rename = "p50_ns")]
        p50: Nanos,
        /// The 95th percentile.
        #[serde(rename = "p95_ns")]
        p95: Nanos,
        /// Connections / throughput.
        #[serde(rename = "first_come_first_served_ns")]
        in_order: Nanos,
    },
    /// There are two kinds of requests, and no run without waiting says whether the app makes them.
    Undecided {
        /// Connections.
        connections: u32,
        /// The two kinds of requests.
        groups: TwoGroups,
        /// Connections / throughput.
        #[serde(rename = "first_come_first_served_ns")]
        in_order: Nanos,
    },
    /// Some requests take the app many times longer than most, also where none waits for another.
    AppVaries {
        /// Connections of the run in which none waits.
        connections: u32,
        /// The two kinds of requests there.
        groups: TwoGroups,
    },
    /// Closed loop: what came back over connections that never pause.
    ClosedLoop {
        /// Connections.
        connections: u32,
        /// Requests per second.
        rate_per_s: f64,
        /// Which percentile is the highest that the answers bear, 0 to 1, and what it is.
        highest: Option<PercentileTime>,
        /// Each connection pauses between two requests.
        pauses: bool,
    },
    /// Open loop: all that was offered was sent and completed.
    KeepsUp {
        /// Requests per second; `None` of a rate that changes.
        offered_per_s: Option<f64>,
        /// The highest percentile that the answers bear.
        highest: Option<PercentileTime>,
    },
    /// Open loop: more was offered than the server can do.
    Overloaded {
        /// Requests per second.
        offered_per_s: f64,
        /// What it completes, in requests per second.
        completed_per_s: f64,
        /// Growth of the backlog, in requests a second.
        backlog_growth_per_s: f64,
        /// Growth of the mean response time, in seconds per second; `None` where it does not grow
        /// all along.
        growth: Option<f64>,
        /// Where some requests do not wait at all: the two kinds of requests.
        groups: Option<TwoGroups>,
    },
    /// Open loop of a rate that changes: more was offered than the server can do.
    Peaked {
        /// The most that it completed over some seconds, in requests per second.
        completed_per_s: f64,
    },
    /// Open loop: less was completed than was offered, and it is not known why.
    FallsBehind {
        /// Requests per second.
        offered_per_s: f64,
        /// Completed, in requests per second.
        completed_per_s: f64,
        /// Requests under way when the last one became due.
        under_way: Option<u64>,
    },
    /// Bodies: which is the slowest to serve, and which the fastest.
    BodyRange {
        /// Socket and body of the lowest rate.
        slowest: String,
        /// That rate, in requests per second.
        slowest_per_s: f64,
        /// Socket and body of the highest rate.
        fastest: String,
        /// That rate, in requests per second.
        fastest_per_s: f64,
    },
    /// Another generator made the runs: the figures are its own.
    Claimed {
        /// Its name and version.
        by: String,
        /// What its figures, held against each other, leave of its claim; of several runs the
        /// worst.
        audit: Believable,
    },
    /// Requests failed.
    Failed {
        /// Which runs; none where there is only one.
        runs: Vec<String>,
        /// How many, in all of these.
        failed: u64,
        /// Of so many.
        planned: u64,
        /// How many of each kind, the most frequent first.
        kinds: Vec<FailureCount>,
        /// How long an answer was waited for.
        #[serde(rename = "timeout_ns")]
        timeout: Nanos,
    },
    /// What keeps the server from doing more.
    Limited {
        /// By name, with its evidence.
        limit: Limit,
        /// How many requests the server can process at a time; `None` where that is not known.
        slots: Option<u32>,
        /// Runs with this limit.
        runs: u32,
    },
    /// The server serves one connection several times before it takes the next.
    ServedInTurns {
        /// Responses in a row for one connection: the least and the most of the runs.
        least: f64,
        /// As `least`.
        most: f64,
        /// Connections that wait meanwhile, at the highest load.
        waiting: u32,
        /// It is a Puma before version 7.
        is_old_puma: bool,
    },
    /// Where requests wait before a thread of the server takes them.
    WaitInAcceptQueue {
        /// At which load.
        multiple: f64,
        /// The mean wait there, by the queue's length (Little's law).
        #[serde(rename = "wait_ns")]
        wait: Nanos,
        /// The mean response time.
        #[serde(rename = "mean_ns")]
        mean: Nanos,
    },
    /// The workers do not have equal parts.
    UnevenWorkers {
        /// At which load.
        multiple: f64,
        /// The furthest from an even share, as a part of it.
        deviation: f64,
    },
}

/// How many requests failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// The outcome, [by name](crate::counts::name).
    pub outcome: String,
    /// How many.
    pub requests: u64,
}

/// Whether a finding is the answer, or what explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingRole {
    /// It answers what was asked.
    Conclusion,
    /// It says why.
    Reason,
}

impl Finding {
    /// Whether it answers, or explains.
    pub fn role(&self) -> FindingRole {
        match self {
            Finding::Limited { .. }
            | Finding::ServedInTurns { .. }
            | Finding::WaitInAcceptQueue { .. }
            | Finding::UnevenWorkers { .. } => FindingRole::Reason,
            _ => FindingRole::Conclusion,
        }
    }
}
