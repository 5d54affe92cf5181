//! What the app and its server said of themselves over statsd while a run went on: one series for each metric and its tags.
//!
//! The figures of a series are of every value that came in the run's measured window.

use serde::{Deserialize, Serialize};
use strum::{EnumMessage, IntoStaticStr, VariantArray};

use crate::Nanos;

/// What was received during a run's measured window and the wait for its last answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatsdReport {
    /// By metric, tags and type, rising.
    pub series: Vec<StatsdMetric>,
    /// Packets that came in the window.
    pub packets: u64,
    /// Lines of them that were understood.
    pub lines: u64,
    /// Lines that are no statsd.
    pub malformed: u64,
    /// The first of those, shortened.
    pub first_malformed: Option<String>,
    /// `DogStatsD`'s events and service checks: they have no value.
    pub no_metrics: u64,
    /// Lines that came before the window, since the run before: they are in no figure.
    pub before: u64,
    /// Lines left out because there were too many series already.
    pub left_out: u64,
    /// Packets that the kernel dropped because we read too slowly; `None` where it does not say.
    pub dropped_by_kernel: Option<u64>,
    /// CPU time that the listening took of this machine.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
}

/// One metric with its tags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsdMetric {
    /// As it was sent: `puma.backlog`.
    pub metric: String,
    /// As they were sent, sorted: `grouping:web`, `canary`.
    pub tags: Vec<String>,
    /// What its values are.
    pub kind: MetricKind,
    /// Values that came.
    pub values: u64,
    /// How many they stand for: each value once for each that the sender left out by its sample rate.
    pub stands_for: f64,
    /// The figures of the values; `None` of a set, whose values are names.
    pub figures: Option<StatsdFigures>,
}

/// What the values of a series come to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsdFigures {
    /// Sum of the values, each as often as it stands for; of a counter, what it counted.
    pub sum: f64,
    /// `sum` over what they stand for; of a gauge the mean of what was reported, and not over time.
    pub mean: f64,
    /// The value that came last.
    pub last: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// The types of statsd and `DogStatsD`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, EnumMessage, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// `c`: each value is added.
    #[strum(serialize = "c", message = "counter")]
    Counter,
    /// `g`: each value replaces the one before.
    #[strum(serialize = "g", message = "gauge")]
    Gauge,
    /// `ms`: a time in milliseconds.
    #[strum(serialize = "ms", message = "timer, ms")]
    Timer,
    /// `h`: one observation.
    #[strum(serialize = "h", message = "histogram")]
    Histogram,
    /// `d`: one observation, to be put together on the server.
    #[strum(serialize = "d", message = "distribution")]
    Distribution,
    /// `s`: a name, of which the different ones count.
    #[strum(serialize = "s", message = "set")]
    Set,
}

impl MetricKind {
    /// All of them.
    pub const ALL: &[MetricKind] = MetricKind::VARIANTS;

    /// As a line spells it.
    pub fn letter(self) -> &'static str {
        self.into()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }
}

impl StatsdReport {
    /// The first series of that metric.
    pub fn of(&self, metric: &str) -> Option<&StatsdMetric> {
        self.series.iter().find(|series| series.metric == metric)
    }
}
