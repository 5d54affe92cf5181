//! Figures as an OTLP export request of metrics, in binary protobuf, and the receiver's answer.
//!
//! Each figure is a gauge, for a run that is over counts no further; the distribution
//! is a cumulative histogram with explicit bounds. A quantile is an attribute of its gauge.

use model::Nanos;
use prost::Message as _;

use crate::family::{MetricFamily, MetricPoint, PointValue};

/// The content type of a request and its answer.
pub const CONTENT_TYPE: &str = "application/x-protobuf";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whose figures they are.
#[derive(Clone, Debug)]
pub struct RunOrigin<'a> {
    /// When the study began, as RFC 3339: it tells this study from others.
    pub study: &'a str,
    /// When the run began, since 1970.
    pub begun: Nanos,
    /// When it was over.
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
    // A distribution may have no quantile that is known.
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

/// Data points that the receiver took, but could not use, and why; `None` where it has used all, or
/// the answer cannot be read.
pub fn rejected(answer: &[u8]) -> Option<(i64, String)> {
    let partial = ExportResponse::decode(answer).ok()?.partial_success?;
    (partial.rejected_data_points > 0)
        .then_some((partial.rejected_data_points, partial.error_message))
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { string: Some(value.to_owned()) }) }
}

/// A family is one metric; its points are numbers or distributions, never both.
fn metric(family: &MetricFamily, origin: &RunOrigin<'_>) -> OtlpMetric {
    let (mut numbers, mut histograms) = (Vec::new(), Vec::new());
    let (start_time_unix_nano, time_unix_nano) = (origin.begun.0, origin.ended.0);
    for MetricPoint { labels, value } in &family.points {
        let attributes: Vec<KeyValue> =
            labels.iter().map(|(name, value)| attribute(name, value)).collect();
        let number = |attributes: Vec<KeyValue>, value: f64| {
            let as_double = Some(value);
            NumberDataPoint { start_time_unix_nano, time_unix_nano, as_double, attributes }
        };
        match value {
            PointValue::Number(value) => numbers.push(number(attributes, *value)),
            PointValue::Quantiles { quantiles, .. } => {
                numbers.extend(quantiles.iter().map(|(quantile, value)| {
                    let quantile = attribute("quantile", &quantile.to_string());
                    number(attributes.iter().cloned().chain([quantile]).collect(), *value)
                }));
            }
            PointValue::Buckets { edges, sum, count } => {
                let below = edges.iter().map(|(_, below)| *below).chain([*count]);
                let before = std::iter::once(0).chain(edges.iter().map(|(_, below)| *below));
                histograms.push(HistogramDataPoint {
                    attributes,
                    start_time_unix_nano,
                    time_unix_nano,
                    count: *count,
                    sum: Some(*sum),
                    bucket_counts: below
                        .zip(before)
                        .map(|(below, before)| below - before)
                        .collect(),
                    explicit_bounds: edges.iter().map(|(edge, _)| *edge).collect(),
                });
            }
        }
    }
    let (has_numbers, has_histograms) = (!numbers.is_empty(), !histograms.is_empty());
    let histogram = OtlpHistogram { data_points: histograms, aggregation_temporality: CUMULATIVE };
    OtlpMetric {
        name: family.metric.name.to_owned(),
        description: family.metric.help.to_owned(),
        unit: family.metric.unit.suffix_and_ucum().1.to_owned(),
        gauge: has_numbers.then_some(OtlpGauge { data_points: numbers }),
        histogram: has_histograms.then_some(histogram),
    }
}

/// `AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;

/// Messages of protobuf, `FIELD: TYPE = NUMBER HOW;` each field.
macro_rules! messages {
    ($($name:ident { $($field:ident: $type:ty = $number:tt $($how:ident)+;)* })*) => {
        $(#[derive(Clone, PartialEq, prost::Message)]
        struct $name {
            $(#[prost($($how,)+ tag = $number)]
            $field: $type,)*
        })*
    };
}

// As far as they are sent or read here: numbers and types as in `opentelemetry/proto` (metrics/v1,
// common/v1, resource/v1, collector/metrics/v1). The published crate of all messages brings an SDK
// with it, which is a dozen crates more; tests decode with that crate what is encoded here. A value
// is only ever a string, and a metric has one of gauge and histogram.
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
