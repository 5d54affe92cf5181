//! Metrics as an OTLP export request in binary protobuf, and the receiver's response.
//!
//! Numbers are gauges, because a finished run counts no further. The distribution of response times
//! is a cumulative histogram with explicit bounds. A quantile is an attribute of its gauge.

use model::Nanos;

use crate::family::{MetricFamily, MetricPoint, PointValue};
use crate::protobuf::{FieldValue, ProtobufMessage, fields};

/// The content type of a request and of its response.
pub const CONTENT_TYPE: &str = "application/x-protobuf";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The run that the metrics are of.
#[derive(Clone, Debug)]
pub struct RunOrigin<'a> {
    /// When the study began, as RFC 3339. It identifies the study.
    pub study: &'a str,
    /// When the run began, since 1970.
    pub begun: Nanos,
    /// When the run ended, since 1970.
    pub ended: Nanos,
}

/// The numbers that `opentelemetry/proto` gives the fields that are written or read here:
/// metrics/v1, common/v1, resource/v1, collector/metrics/v1. The published crate of all its
/// messages brings an SDK of a dozen crates; the tests use it to decode what is encoded here.
mod field {
    /// `ExportMetricsServiceRequest` and `ExportMetricsServiceResponse`.
    pub(super) const RESOURCE_METRICS: u64 = 1;
    pub(super) const PARTIAL_SUCCESS: u64 = 1;
    /// `ExportMetricsPartialSuccess`.
    pub(super) const REJECTED_DATA_POINTS: u64 = 1;
    pub(super) const ERROR_MESSAGE: u64 = 2;
    /// `ResourceMetrics` and `Resource`.
    pub(super) const RESOURCE: u64 = 1;
    pub(super) const SCOPE_METRICS: u64 = 2;
    pub(super) const RESOURCE_ATTRIBUTES: u64 = 1;
    /// `ScopeMetrics` and `InstrumentationScope`.
    pub(super) const SCOPE: u64 = 1;
    pub(super) const METRICS: u64 = 2;
    pub(super) const SCOPE_NAME: u64 = 1;
    pub(super) const SCOPE_VERSION: u64 = 2;
    /// `KeyValue` and `AnyValue`.
    pub(super) const KEY: u64 = 1;
    pub(super) const VALUE: u64 = 2;
    pub(super) const STRING_VALUE: u64 = 1;
    /// `Metric`.
    pub(super) const NAME: u64 = 1;
    pub(super) const DESCRIPTION: u64 = 2;
    pub(super) const UNIT: u64 = 3;
    pub(super) const GAUGE: u64 = 5;
    pub(super) const HISTOGRAM: u64 = 9;
    /// `Gauge` and `Histogram`.
    pub(super) const DATA_POINTS: u64 = 1;
    pub(super) const AGGREGATION_TEMPORALITY: u64 = 2;
    /// `NumberDataPoint` and `HistogramDataPoint`.
    pub(super) const START_TIME_UNIX_NANO: u64 = 2;
    pub(super) const TIME_UNIX_NANO: u64 = 3;
    /// `NumberDataPoint`.
    pub(super) const AS_DOUBLE: u64 = 4;
    pub(super) const NUMBER_ATTRIBUTES: u64 = 7;
    /// `HistogramDataPoint`.
    pub(super) const COUNT: u64 = 4;
    pub(super) const SUM: u64 = 5;
    pub(super) const BUCKET_COUNTS: u64 = 6;
    pub(super) const EXPLICIT_BOUNDS: u64 = 7;
    pub(super) const HISTOGRAM_ATTRIBUTES: u64 = 9;
}

/// `AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u64 = 2;

/// The request that carries `families`.
pub fn request(families: &[MetricFamily], origin: &RunOrigin<'_>) -> Vec<u8> {
    let mut resource = ProtobufMessage::default();
    for (key, value) in [
        ("service.name", "longtail"),
        ("service.version", VERSION),
        ("longtail.study", origin.study),
    ] {
        resource.message(field::RESOURCE_ATTRIBUTES, &attribute(key, value));
    }
    let mut scope = ProtobufMessage::default();
    scope.text(field::SCOPE_NAME, "longtail");
    scope.text(field::SCOPE_VERSION, VERSION);
    let mut scope_metrics = ProtobufMessage::default();
    scope_metrics.message(field::SCOPE, &scope);
    for metric in families.iter().filter_map(|family| metric(family, origin)) {
        scope_metrics.message(field::METRICS, &metric);
    }
    let mut resource_metrics = ProtobufMessage::default();
    resource_metrics.message(field::RESOURCE, &resource);
    resource_metrics.message(field::SCOPE_METRICS, &scope_metrics);
    let mut request = ProtobufMessage::default();
    request.message(field::RESOURCE_METRICS, &resource_metrics);
    request.into_bytes()
}

/// How many data points the receiver rejected, and why; `None` if it accepted all, or its
/// response cannot be read.
pub fn rejected(response: &[u8]) -> Option<(i64, String)> {
    let partial_success = fields(response)?.into_iter().rev().find_map(|field| match field {
        (field::PARTIAL_SUCCESS, FieldValue::Bytes(message)) => Some(message),
        _ => None,
    })?;
    let mut rejected = 0;
    let mut why = "";
    for field in fields(partial_success)? {
        match field {
            (field::REJECTED_DATA_POINTS, FieldValue::Number(points)) => {
                rejected = points.cast_signed();
            }
            (field::ERROR_MESSAGE, FieldValue::Bytes(text)) => why = str::from_utf8(text).ok()?,
            _ => {}
        }
    }
    (rejected > 0).then(|| (rejected, why.to_owned()))
}

/// Attributes are strings here.
fn attribute(key: &str, value: &str) -> ProtobufMessage {
    let mut any_value = ProtobufMessage::default();
    any_value.text(field::STRING_VALUE, value);
    let mut pair = ProtobufMessage::default();
    pair.text(field::KEY, key);
    pair.message(field::VALUE, &any_value);
    pair
}

/// A family is one metric; its points are numbers or distributions, never both. A distribution may
/// have no known quantile: `None` if there is no point at all.
fn metric(family: &MetricFamily, origin: &RunOrigin<'_>) -> Option<ProtobufMessage> {
    let mut numbers = Vec::new();
    let mut histograms = Vec::new();
    for MetricPoint { labels, value } in &family.points {
        let attributes: Vec<_> =
            labels.iter().map(|(name, value)| attribute(name, value)).collect();
        match value {
            PointValue::Number(value) => numbers.push(number(&attributes, *value, origin)),
            PointValue::Quantiles { quantiles, .. } => {
                numbers.extend(quantiles.iter().map(|(quantile, value)| {
                    let quantile = attribute("quantile", &quantile.to_string());
                    let attributes: Vec<_> = attributes.iter().cloned().chain([quantile]).collect();
                    number(&attributes, *value, origin)
                }));
            }
            PointValue::Buckets { edges, sum, count } => {
                let (bounds, below): (Vec<f64>, Vec<u64>) = edges.iter().copied().unzip();
                let distribution = distribution(&attributes, &bounds, &below, *sum, *count, origin);
                histograms.push(distribution);
            }
        }
    }
    let mut metric = ProtobufMessage::default();
    metric.text(field::NAME, family.metric.name);
    metric.text(field::DESCRIPTION, family.metric.help);
    metric.text(field::UNIT, family.metric.unit.ucum());
    let is_histogram = !histograms.is_empty();
    let points = if is_histogram { histograms } else { numbers };
    if points.is_empty() {
        return None;
    }
    let mut data = ProtobufMessage::default();
    for point in &points {
        data.message(field::DATA_POINTS, point);
    }
    if is_histogram {
        data.varint(field::AGGREGATION_TEMPORALITY, CUMULATIVE);
        metric.message(field::HISTOGRAM, &data);
    } else {
        metric.message(field::GAUGE, &data);
    }
    Some(metric)
}

/// A point of either kind, with its times.
fn point(origin: &RunOrigin<'_>) -> ProtobufMessage {
    let mut point = ProtobufMessage::default();
    point.fixed64(field::START_TIME_UNIX_NANO, origin.begun.0);
    point.fixed64(field::TIME_UNIX_NANO, origin.ended.0);
    point
}

fn number(attributes: &[ProtobufMessage], value: f64, origin: &RunOrigin<'_>) -> ProtobufMessage {
    let mut number = point(origin);
    number.double(field::AS_DOUBLE, value);
    for attribute in attributes {
        number.message(field::NUMBER_ATTRIBUTES, attribute);
    }
    number
}

/// `below[i]` measurements are below the upper bound `bounds[i]`.
fn distribution(
    attributes: &[ProtobufMessage],
    bounds: &[f64],
    below: &[u64],
    sum: f64,
    count: u64,
    origin: &RunOrigin<'_>,
) -> ProtobufMessage {
    let counts = counts_of_buckets(below.iter().copied(), count);
    let mut distribution = point(origin);
    distribution.fixed64(field::COUNT, count);
    distribution.double(field::SUM, sum);
    distribution.packed(field::BUCKET_COUNTS, counts.into_iter());
    distribution.packed(field::EXPLICIT_BOUNDS, bounds.iter().map(|bound| bound.to_bits()));
    for attribute in attributes {
        distribution.message(field::HISTOGRAM_ATTRIBUTES, attribute);
    }
    distribution
}

/// How many measurements are in each bucket, from how many are below each of its edges, and how
/// many there are in all; the last bucket has those above all edges.
fn counts_of_buckets(below_edges: impl Iterator<Item = u64>, all: u64) -> Vec<u64> {
    let mut counts = Vec::new();
    let mut before = 0;
    for below in below_edges.chain([all]) {
        counts.push(below - before);
        before = below;
    }
    counts
}
