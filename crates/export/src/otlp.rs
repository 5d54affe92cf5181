//! Metrics as an OTLP export request in binary protobuf, and the receiver's response.
//!
//! Numbers are gauges, because a finished run counts no further. The distribution of response times
//! is a cumulative histogram with explicit bounds. A quantile is an attribute of its gauge.

use model::Nanos;
use prost::Message as _;

use crate::family::{MetricFamily, MetricPoint, PointValue};

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

/// The request that carries `families`.
pub fn request(families: &[MetricFamily], origin: &RunOrigin<'_>) -> Vec<u8> {
    let resource = Resource {
        attributes: vec![
            attribute("service.name", "longtail"),
            attribute("service.version", VERSION),
            attribute("longtail.study", origin.study),
        ],
    };
    let scope = InstrumentationScope { name: "longtail".to_owned(), version: VERSION.to_owned() };
    // A distribution may have no known quantile.
    let is_empty = |metric: &OtlpMetric| metric.gauge.is_none() && metric.histogram.is_none();
    let metrics = families
        .iter()
        .map(|family| metric(family, origin))
        .filter(|metric| !is_empty(metric))
        .collect();
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics }];
    let resource_metrics = ResourceMetrics { resource: Some(resource), scope_metrics };
    ExportRequest { resource_metrics: vec![resource_metrics] }.encode_to_vec()
}

/// How many data points the receiver rejected, and why; `None` where it accepted all, or its
/// response cannot be read.
pub fn rejected(response: &[u8]) -> Option<(i64, String)> {
    let partial = ExportResponse::decode(response).ok()?.partial_success?;
    (partial.rejected_data_points > 0)
        .then_some((partial.rejected_data_points, partial.error_message))
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { string: Some(value.to_owned()) }) }
}

/// A family is one metric; its points are numbers or distributions, never both.
fn metric(family: &MetricFamily, origin: &RunOrigin<'_>) -> OtlpMetric {
    let mut numbers = Vec::new();
    let mut histograms = Vec::new();
    for MetricPoint { labels, value } in &family.points {
        let attributes: Vec<KeyValue> =
            labels.iter().map(|(name, value)| attribute(name, value)).collect();
        match value {
            PointValue::Number(value) => numbers.push(number(attributes, *value, origin)),
            PointValue::Quantiles { quantiles, .. } => {
                numbers.extend(quantiles.iter().map(|(quantile, value)| {
                    let quantile = attribute("quantile", &quantile.to_string());
                    let attributes = attributes.iter().cloned().chain([quantile]);
                    number(attributes.collect(), *value, origin)
                }));
            }
            PointValue::Buckets { edges, sum, count } => histograms.push(HistogramDataPoint {
                attributes,
                start_time_unix_nano: origin.begun.0,
                time_unix_nano: origin.ended.0,
                count: *count,
                sum: Some(*sum),
                bucket_counts: counts_of_buckets(edges.iter().map(|(_, below)| *below), *count),
                explicit_bounds: edges.iter().map(|(edge, _)| *edge).collect(),
            }),
        }
    }
    let gauge = (!numbers.is_empty()).then_some(OtlpGauge { data_points: numbers });
    let histogram = (!histograms.is_empty())
        .then_some(OtlpHistogram { data_points: histograms, aggregation_temporality: CUMULATIVE });
    OtlpMetric {
        name: family.metric.name.to_owned(),
        description: family.metric.help.to_owned(),
        unit: family.metric.unit.ucum().to_owned(),
        gauge,
        histogram,
    }
}

fn number(attributes: Vec<KeyValue>, value: f64, origin: &RunOrigin<'_>) -> NumberDataPoint {
    NumberDataPoint {
        start_time_unix_nano: origin.begun.0,
        time_unix_nano: origin.ended.0,
        as_double: Some(value),
        attributes,
    }
}

/// How many measurements are in each bucket, from how many are below each of its edges, and how many
/// there are in all; the last bucket has those above all edges.
fn counts_of_buckets(below_edges: impl Iterator<Item = u64>, all: u64) -> Vec<u64> {
    let mut counts = Vec::new();
    let mut before = 0;
    for below in below_edges.chain([all]) {
        counts.push(below - before);
        before = below;
    }
    counts
}

/// `AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;

/// Declares messages of protobuf, with a line `FIELD: TYPE = NUMBER KIND;` for each field.
macro_rules! messages {
    ($($name:ident { $($field:ident: $type:ty = $number:tt $($how:ident)+;)* })*) => {
        $(#[derive(Clone, PartialEq, prost::Message)]
        struct $name {
            $(#[prost($($how,)+ tag = $number)]
            $field: $type,)*
        })*
    };
}

// Only what is sent or read here. Numbers and types are those of `opentelemetry/proto` (metrics/v1,
// common/v1, resource/v1, collector/metrics/v1). The published crate of all messages brings an SDK
// of a dozen crates; the tests use it to decode what is encoded here. Attributes are strings, and a
// metric has either a gauge or a histogram.
messages! {
    ExportRequest { resource_metrics: Vec<ResourceMetrics> = "1" message repeated; }
    ExportResponse { partial_success: Option<PartialSuccess> = "1" message optional; }
    PartialSuccess {
        rejected_data_points: i64 = "1" int64;
        error_message: String = "2" string;
    }
    ResourceMetrics {
        resource: Option<Resource> = "1" message optional;
        scope_metrics: Vec<ScopeMetrics> = "2" message repeated;
    }
    Resource { attributes: Vec<KeyValue> = "1" message repeated; }
    ScopeMetrics {
        scope: Option<InstrumentationScope> = "1" message optional;
        metrics: Vec<OtlpMetric> = "2" message repeated;
    }
    InstrumentationScope {
        name: String = "1" string;
        version: String = "2" string;
    }
    KeyValue {
        key: String = "1" string;
        value: Option<AnyValue> = "2" message optional;
    }
    AnyValue { string: Option<String> = "1" string optional; }
    OtlpMetric {
        name: String = "1" string;
        description: String = "2" string;
        unit: String = "3" string;
        gauge: Option<OtlpGauge> = "5" message optional;
        histogram: Option<OtlpHistogram> = "9" message optional;
    }
    OtlpGauge { data_points: Vec<NumberDataPoint> = "1" message repeated; }
    NumberDataPoint {
        start_time_unix_nano: u64 = "2" fixed64;
        time_unix_nano: u64 = "3" fixed64;
        as_double: Option<f64> = "4" double optional;
        attributes: Vec<KeyValue> = "7" message repeated;
    }
    OtlpHistogram {
        data_points: Vec<HistogramDataPoint> = "1" message repeated;
        aggregation_temporality: i32 = "2" int32;
    }
    HistogramDataPoint {
        start_time_unix_nano: u64 = "2" fixed64;
        time_unix_nano: u64 = "3" fixed64;
        count: u64 = "4" fixed64;
        sum: Option<f64> = "5" double optional;
        bucket_counts: Vec<u64> = "6" fixed64 repeated;
        explicit_bounds: Vec<f64> = "7" double repeated;
        attributes: Vec<KeyValue> = "9" message repeated;
    }
}
