//! What theory expected of a run, with its inputs and its assumptions named.

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
    #[serde(default, rename = "cpu_ns", skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Nanos>,
}

/// The expectation for one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// What was computed, in a few words.
    pub model: String,
    /// How long a slot is held by one request.
    #[serde(rename = "service_time_ns")]
    pub service_time: Nanos,
    /// Where that comes from.
    pub service_time_source: ServiceTimeSource,
    /// The highest possible rate, in requests per second: slots / service time.
    #[serde(rename = "maximum_rate_per_s")]
    pub maximum_rate: f64,
    /// What every request would take if all waited their turn in one line: service time x max(1, connections / slots).
    #[serde(rename = "ideal_response_time_ns")]
    pub ideal_response_time: Nanos,
}
