//! Figures as an OTLP export request of metrics, in binary protobuf, and the receiver's answer.
//!
//! Each figure is a gauge, for a run that is over counts no further; the distribution
//! is a cumulative histogram with explicit bounds. A quantile is an attribute of its gauge.

mod messages;

use model::Nanos;
use prost::Message as _;

use crate::family::{MetricFamily, MetricPoint, PointValue};
use messages::{
    AnyValue, CUMULATIVE, ExportRequest, ExportResponse, HistogramDataPoint, InstrumentationScope, KeyValue,
    NumberDataPoint, OtlpGauge, OtlpHistogram, OtlpMetric, Resource, ResourceMetrics, ScopeMetrics,
};

/// The content type of a request and its answer.
pub const CONTENT_TYPE: &str = "application/x-protobuf";

/// Whose figures they are.
#[derive(Clone, Debug)]
pub struct RunOrigin<'a> {
    /// Our version.
    pub version: &'a str,
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
            attribute("service.version", origin.version),
            attribute("longtail.study", origin.study),
        ],
    };
    let scope = InstrumentationScope { name: "longtail".to_owned(), version: origin.version.to_owned() };
    let metrics = families.iter().flat_map(|family| metrics(family, origin)).collect();
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics }];
    let resource_metrics = ResourceMetrics { resource: Some(resource), scope_metrics };
    ExportRequest { resource_metrics: vec![resource_metrics] }.encode_to_vec()
}

/// Data points that the receiver took, but could not use, and why; `None` where it has used all, or the answer cannot be read.
pub fn rejected(answer: &[u8]) -> Option<(i64, String)> {
    let partial = ExportResponse::decode(answer).ok()?.partial_success?;
    (partial.rejected_data_points > 0).then_some((partial.rejected_data_points, partial.error_message))
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { string: Some(value.to_owned()) }) }
}

/// A family is one metric; its points are numbers or distributions, never both.
fn metrics(family: &MetricFamily, origin: &RunOrigin<'_>) -> Vec<OtlpMetric> {
    let (mut numbers, mut histograms) = (Vec::new(), Vec::new());
    for MetricPoint { labels, value } in &family.points {
        let attributes = || labels.iter().map(|(name, value)| attribute(name, value)).collect::<Vec<_>>();
        let number = |attributes, value| NumberDataPoint {
            attributes,
            start_time_unix_nano: origin.begun.0,
            time_unix_nano: origin.ended.0,
            as_double: Some(value),
        };
        match value {
            PointValue::Number(value) => numbers.push(number(attributes(), *value)),
            PointValue::Quantiles { quantiles, .. } => {
                for (quantile, value) in quantiles {
                    let mut attributes = attributes();
                    attributes.push(attribute("quantile", &quantile.to_string()));
                    numbers.push(number(attributes, *value));
                }
            }
            PointValue::Buckets { edges, sum, count } => {
                let below = edges.iter().map(|(_, below)| *below).chain([*count]);
                let before = std::iter::once(0).chain(edges.iter().map(|(_, below)| *below));
                histograms.push(HistogramDataPoint {
                    attributes: attributes(),
                    start_time_unix_nano: origin.begun.0,
                    time_unix_nano: origin.ended.0,
                    count: *count,
                    sum: Some(*sum),
                    bucket_counts: below.zip(before).map(|(below, before)| below - before).collect(),
                    explicit_bounds: edges.iter().map(|(edge, _)| *edge).collect(),
                });
            }
        }
    }
    let metric = || OtlpMetric {
        name: family.metric.name.to_owned(),
        description: family.metric.help.to_owned(),
        unit: family.metric.unit.suffix_and_ucum().1.to_owned(),
        ..OtlpMetric::default()
    };
    let mut metrics = Vec::new();
    if !numbers.is_empty() {
        metrics.push(OtlpMetric { gauge: Some(OtlpGauge { data_points: numbers }), ..metric() });
    }
    if !histograms.is_empty() {
        let histogram = OtlpHistogram { data_points: histograms, aggregation_temporality: CUMULATIVE };
        metrics.push(OtlpMetric { histogram: Some(histogram), ..metric() });
    }
    metrics
}
