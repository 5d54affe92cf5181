//! What theory expected of a run, with its inputs named; and what an overload in open loop says of the server: its capacity, and
//! with a known service time its slots.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Where the service time of a forecast comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceTimeSource {
    /// The user's delay (`-d`).
    #[default]
    Given,
    /// The median over a single connection, before the sweep.
    Measured,
}

/// How long a slot is held by one request, and how that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceTime {
    /// The time.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    /// Where it comes from.
    pub source: ServiceTimeSource,
    /// Of that: on a CPU, where it was measured.
    #[serde(rename = "cpu_ns")]
    pub cpu: Option<Nanos>,
}

/// The expectation for one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// How long a slot is held by one request.
    #[serde(rename = "service_time_ns")]
    pub service_time: Nanos,
    /// The highest possible rate, in requests per second: slots / service time.
    #[serde(rename = "maximum_rate_per_s")]
    pub maximum_rate: f64,
    /// What every request would take if all waited their turn in one line: service time x max(1, connections / slots).
    #[serde(rename = "ideal_response_time_ns")]
    pub ideal_response_time: Nanos,
}

/// A figure, and how far off chance may have put it (95 %).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// How far off it may be.
    pub half_width: f64,
}

/// What an overload at one rate says of the server: response times that grew all along, or else the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// What was due, in requests per second.
    #[serde(rename = "offered_per_s")]
    pub offered: f64,
    /// Growth of the response time, in seconds per second of due time; `None` where only some got slower.
    pub growth: Option<f64>,
    /// Growth of the backlog, in requests a second.
    #[serde(rename = "backlog_growth_per_s")]
    pub backlog_growth: f64,
    /// The backlog when the last request became due.
    pub backlog_at_end: u64,
    /// What the server does, in requests per second: offered / (1 + growth), or offered - growth of the backlog.
    #[serde(rename = "capacity_per_s")]
    pub capacity: Estimate,
    /// What was answered, in requests per second: the same by counting.
    #[serde(rename = "answered_per_s")]
    pub answered: f64,
    /// For how long a request holds a slot, by the user's word (`--service`).
    #[serde(rename = "service_time_ns")]
    pub service_time: Option<Nanos>,
    /// Capacity x service time.
    pub slots: Option<Estimate>,
    /// Why these figures are not to be trusted; `None` where nothing speaks against them.
    pub doubt: Option<OverloadDoubt>,
}

/// What speaks against an inferred capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverloadDoubt {
    /// Requests have no good answer, and so no response time that could have grown.
    Failures,
    /// What was counted is another figure: response times did not grow along a line.
    Disagreement,
}
