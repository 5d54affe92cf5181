//! Metrics in the protocols that operators use: statsd and `DogStatsD`, Prometheus' text format,
//! OTLP.
//!
//! These are pure functions and the types between them; sockets are elsewhere (`sweep`,
//! `longtail/src/metrics`). Each run becomes one list of [`MetricFamily`]s, and every protocol
//! writes that list, so a metric has the same name, unit and value wherever it arrives.

mod family;
mod figures;
mod finished_runs;
pub mod otlp;
mod protobuf;
pub mod statsd;
pub mod text_formats;

pub use family::{ExportedMetric, Labels, MetricFamily, MetricPoint, MetricUnit, PointValue};
pub use figures::{LiveRun, live, of_load, of_sweep};
pub use finished_runs::FinishedRuns;
