//! Figures in the protocols that operators use: statsd and `DogStatsD`, Prometheus' text, OTLP.
//!
//! Pure functions and the types between them: bytes in, figures out, and the other way round.
//! Sockets are elsewhere (`sweep`, `longtail/src/metrics.rs`). One list of [`MetricFamily`]s is
//! made of a run, and every protocol prints that list, so that a figure has the same name, unit and
//! value wherever it arrives.

mod family;
mod figures;
pub mod otlp;
pub mod statsd;
pub mod text_formats;

pub use family::{ExportedMetric, Labels, MetricFamily, MetricPoint, MetricUnit, PointValue};
pub use figures::{LiveRun, live, of_load, of_sweep};
