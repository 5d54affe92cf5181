//! A metric as every protocol writes it ([`MetricFamily`]): name, unit, help, and a value for each
//! set of labels. Units are base units: seconds, requests per second, ratios, counts.

/// Labels: names and values.
pub type Labels = Vec<(&'static str, String)>;

/// A metric, the same for every receiver.
#[derive(Debug, PartialEq)]
pub struct ExportedMetric {
    /// Its name without the unit: `longtail.run.response_time`.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: MetricUnit,
    /// Whether it is a counter, which only rises while the program runs. All others are gauges.
    pub is_counter: bool,
    /// A sentence that explains it, without a full stop.
    pub help: &'static str,
}

/// Declares metrics, one a line: `NAME = "name" Unit, "help";`, with `counter` before the name of a
/// counter.
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

/// A metric and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// The metric.
    pub metric: &'static ExportedMetric,
    /// Its values.
    pub points: Vec<MetricPoint>,
}

/// A value of a metric and its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// Which of the metric's values this is.
    pub labels: Labels,
    /// The value.
    pub value: PointValue,
}

/// The value of a point: a number or a distribution.
#[derive(Clone, Debug, PartialEq)]
pub enum PointValue {
    /// One number.
    Number(f64),
    /// A distribution by some of its quantiles.
    Quantiles {
        /// Quantiles, from 0 to 1, and their values.
        quantiles: Vec<(f64, f64)>,
        /// Sum of all measurements.
        sum: f64,
        /// Number of measurements.
        count: u64,
    },
    /// A distribution by buckets.
    Buckets {
        /// Upper bounds, in rising order, and how many measurements are at or below each.
        edges: Vec<(f64, u64)>,
        /// Sum of all measurements.
        sum: f64,
        /// Number of measurements.
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
    /// A ratio from 0 to 1.
    Ratio,
    /// Requests.
    Requests,
    /// Connections.
    Connections,
    /// Threads of the server.
    Threads,
    /// No unit, or the metric's name says what is counted.
    None,
}

impl MetricUnit {
    /// The suffix that Prometheus wants on a name. It is what OpenTelemetry's rules for Prometheus
    /// make of [`MetricUnit::ucum`].
    fn prometheus_suffix(self) -> &'static str {
        match self {
            MetricUnit::Seconds => "_seconds",
            MetricUnit::RequestsPerSecond => "_per_second",
            MetricUnit::Ratio => "_ratio",
            MetricUnit::Requests
            | MetricUnit::Connections
            | MetricUnit::Threads
            | MetricUnit::None => "",
        }
    }

    /// The unit in OTLP: as in the Unified Code for Units of Measure, with what is counted in
    /// braces.
    pub(crate) fn ucum(self) -> &'static str {
        match self {
            MetricUnit::Seconds => "s",
            MetricUnit::RequestsPerSecond => "{request}/s",
            MetricUnit::Ratio => "1",
            MetricUnit::Requests => "{request}",
            MetricUnit::Connections => "{connection}",
            MetricUnit::Threads => "{thread}",
            MetricUnit::None => "",
        }
    }
}

impl ExportedMetric {
    /// The name with its unit at the end, followed by `_total` for a counter.
    pub fn name_with_unit(&self) -> String {
        let total = if self.is_counter { "_total" } else { "" };
        format!("{}{}{total}", self.name, self.unit.prometheus_suffix())
    }
}

impl MetricFamily {
    /// Adds a point to the family of `metric`; `families` has each metric once.
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

    /// The same families with each metric once, and all its points together in their order.
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
