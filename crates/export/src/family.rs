//! A metric as all protocols print it ([`MetricFamily`]): name, unit, help, and a value for each
//! set of labels.
//!
//! Base units only: seconds, requests a second, ratios, counts.

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// One quantity: the same at every receiver.
#[derive(Debug, PartialEq)]
pub struct ExportedMetric {
    /// Its name without its unit, in parts: `longtail.run.response_time`.
    pub name: &'static str,
    /// Of its values.
    pub unit: MetricUnit,
    /// Whether it only rises while the program lives; else it can fall, or is of a run that is
    /// over.
    pub is_counter: bool,
    /// What it is, in a sentence without a full stop.
    pub help: &'static str,
}

/// A table of quantities: `NAME = "name" Unit, "help";`, with `counter` before the name of what
/// only rises.
macro_rules! metrics {
    (@is_counter) => { false };
    (@is_counter counter) => { true };
    ($($metric:ident = $($counter:ident)? $name:literal $unit:ident, $help:literal;)*) => {
        $(static $metric: $crate::family::ExportedMetric = $crate::family::ExportedMetric {
            name: $name,
            unit: $crate::family::MetricUnit::$unit,
            is_counter: metrics!(@is_counter $($counter)?),
            help: $help,
        };)*
    };
}
pub(crate) use metrics;

/// A quantity and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// What it is.
    pub metric: &'static ExportedMetric,
    /// Its values.
    pub points: Vec<MetricPoint>,
}

/// A value and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// Whose.
    pub labels: Labels,
    /// The value.
    pub value: PointValue,
}

/// What a point says.
#[derive(Clone, Debug, PartialEq)]
pub enum PointValue {
    /// One number.
    Number(f64),
    /// Some quantiles of a distribution.
    Quantiles {
        /// Quantile, 0 to 1, and value.
        quantiles: Vec<(f64, f64)>,
        /// Sum of what was measured.
        sum: f64,
        /// How many were.
        count: u64,
    },
    /// A distribution.
    Buckets {
        /// Rising: an edge, and how many are at or below it.
        edges: Vec<(f64, u64)>,
        /// Sum of what was measured.
        sum: f64,
        /// How many were.
        count: u64,
    },
}

/// Units of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// Seconds.
    Seconds,
    /// Requests per second.
    RequestsPerSecond,
    /// A share: 1 is all.
    Ratio,
    /// Requests.
    Requests,
    /// Connections.
    Connections,
    /// Threads of the server.
    Threads,
    /// None, or what is counted has its name in the family's.
    None,
}

impl MetricUnit {
    /// What Prometheus appends to a name (what is counted stands in the name), and the unit as the
    /// Unified Code for Units of Measure has it, what is counted in braces: OTLP's way. By
    /// OpenTelemetry's rules for Prometheus the second comes to the first.
    pub(crate) fn suffix_and_ucum(self) -> (&'static str, &'static str) {
        match self {
            MetricUnit::Seconds => ("_seconds", "s"),
            MetricUnit::RequestsPerSecond => ("_per_second", "{request}/s"),
            MetricUnit::Ratio => ("_ratio", "1"),
            MetricUnit::Requests => ("", "{request}"),
            MetricUnit::Connections => ("", "{connection}"),
            MetricUnit::Threads => ("", "{thread}"),
            MetricUnit::None => ("", ""),
        }
    }
}

impl ExportedMetric {
    /// The name with its unit last, and `_total` behind what only rises.
    pub fn name_with_unit(&self) -> String {
        let total = if self.is_counter { "_total" } else { "" };
        format!("{}{}{total}", self.name, self.unit.suffix_and_ucum().0)
    }
}

impl MetricFamily {
    /// Adds a point to the family of `metric`, each of which is in `families` once.
    pub(crate) fn add(
        families: &mut Vec<MetricFamily>,
        metric: &'static ExportedMetric,
        point: MetricPoint,
    ) {
        match families.iter_mut().find(|family| family.metric == metric) {
            Some(family) => family.points.push(point),
            None => families.push(MetricFamily { metric, points: vec![point] }),
        }
    }

    /// The families of all of `families`, each name once, its points together in the order in which
    /// they came.
    pub fn merged(families: impl IntoIterator<Item = MetricFamily>) -> Vec<MetricFamily> {
        let mut merged = Vec::new();
        for MetricFamily { metric, points } in families {
            for point in points {
                MetricFamily::add(&mut merged, metric, point);
            }
        }
        merged
    }
}
