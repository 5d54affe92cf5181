//! Figures in the protocols that operators use: statsd and `DogStatsD`, Prometheus' text, OTLP.
//!
//! Pure functions and the types between them: bytes in, figures out, and the other way round. Sockets are elsewhere
//! (`sweep`, `longtail/src/outlets`). One list of [`MetricFamily`]s is made of a run, and every protocol prints that list, so that
//! a figure has the same name, unit and value wherever it arrives.

pub mod dogstatsd;
mod family;
mod figures;
mod live;
pub mod otlp;
pub mod prometheus;
pub mod statsd;

pub use family::{ExportedMetric, Labels, MetricFamily, MetricPoint, MetricUnit, PointValue};
pub use figures::{of_load, of_sweep};
pub use live::{LiveRun, live};
