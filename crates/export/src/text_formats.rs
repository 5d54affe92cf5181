//! Metrics in the two text formats: the response to a scrape by Prometheus, and packets of
//! `DogStatsD`.
//!
//! Prometheus' format is 0.0.4 (its documentation: "Exposition formats"). In `DogStatsD` every
//! metric is a gauge with tags, because a receiver would add counters up and a finished run has
//! nothing to be added to. A distribution is sent as its quantiles, without a `…_count`: the bridge
//! to Prometheus (`statsd_exporter`) takes that name for a summary's own and drops it. Through the
//! bridge each metric has the same name as at our own endpoint.

use std::fmt::Write as _;

use model::MetricKind;

use crate::family::{Labels, MetricFamily, MetricPoint, PointValue};
use crate::statsd::{StatsdLine, StatsdValues};

/// The content type of [`exposition`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All families as one response. Each name may be there only once: see [`MetricFamily::merged`].
pub fn exposition(families: &[MetricFamily]) -> String {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.points.is_empty()) {
        let name = family.metric.name_with_unit().replace('.', "_");
        _ = writeln!(
            text,
            "# HELP {name} {}",
            family.metric.help.replace('\\', "\\\\").replace('\n', "\\n")
        );
        _ = writeln!(text, "# TYPE {name} {}", type_of(family));
        for MetricPoint { labels, value } in &family.points {
            write_point(&mut text, &name, labels, value);
        }
    }
    text
}

fn type_of(family: &MetricFamily) -> &'static str {
    match family.points.first().map(|point| &point.value) {
        Some(PointValue::Quantiles { .. }) => "summary",
        Some(PointValue::Buckets { .. }) => "histogram",
        _ if family.metric.is_counter => "counter",
        _ => "gauge",
    }
}

fn write_point(text: &mut String, name: &str, labels: &Labels, value: &PointValue) {
    let mut line = |suffix: &str, extra: Option<(&'static str, String)>, value: f64| {
        let labels: Labels = labels.iter().cloned().chain(extra).collect();
        _ = writeln!(text, "{name}{suffix}{} {value}", shown(&labels));
    };
    let (sum, count) = match value {
        PointValue::Number(number) => return line("", None, *number),
        PointValue::Quantiles { quantiles, sum, count } => {
            for (quantile, time) in quantiles {
                line("", Some(("quantile", quantile.to_string())), *time);
            }
            (*sum, *count as f64)
        }
        PointValue::Buckets { edges, sum, count } => {
            for (edge, below) in edges {
                line("_bucket", Some(("le", edge.to_string())), *below as f64);
            }
            line("_bucket", Some(("le", "+Inf".to_owned())), *count as f64);
            (*sum, *count as f64)
        }
    };
    line("_sum", None, sum);
    line("_count", None, count);
}

fn shown(labels: &Labels) -> String {
    let pairs: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The longest packet in bytes, so that no network splits it.
pub const LONGEST_PACKET: usize = 1432;

/// A line for each value, and for each quantile of a distribution. `DogStatsD` has no buckets.
pub fn lines(families: &[MetricFamily]) -> Vec<StatsdLine> {
    let mut lines = Vec::new();
    for family in families {
        let name = family.metric.name_with_unit();
        for MetricPoint { labels, value } in &family.points {
            match value {
                PointValue::Number(number) => {
                    lines.push(gauge(name.clone(), labels, None, *number));
                }
                PointValue::Quantiles { quantiles, .. } => {
                    let of =
                        |(q, value): &(f64, f64)| gauge(name.clone(), labels, Some(*q), *value);
                    lines.extend(quantiles.iter().map(of));
                }
                PointValue::Buckets { .. } => {}
            }
        }
    }
    lines
}

fn gauge(name: String, labels: &Labels, quantile: Option<f64>, value: f64) -> StatsdLine {
    let tag = |name: &str, value: &str| format!("{name}:{}", tag_value(value));
    let mut tags: Vec<String> = labels.iter().map(|(name, value)| tag(name, value)).collect();
    tags.extend(quantile.map(|q| tag("quantile", &q.to_string())));
    tags.sort_unstable();
    // With a sign it would change the receiver's value, not set it. None of our values is negative.
    let values = StatsdValues::Numbers(vec![value.max(0.0)]);
    StatsdLine { name, kind: MetricKind::Gauge, values, rate: 1.0, tags }
}

/// A tag's value without the characters that would end the tag.
fn tag_value(text: &str) -> String {
    text.chars().map(|c| if matches!(c, ',' | '|') || c.is_control() { '_' } else { c }).collect()
}

/// Lines joined into packets of at most [`LONGEST_PACKET`] bytes. A longer line gets a packet of
/// its own.
pub fn packets(lines: &[StatsdLine]) -> Vec<String> {
    let mut packets: Vec<String> = Vec::new();
    for line in lines {
        let line = line.to_string();
        match packets.last_mut() {
            Some(packet) if packet.len() + 1 + line.len() <= LONGEST_PACKET => {
                packet.push('\n');
                packet.push_str(&line);
            }
            _ => packets.push(line),
        }
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{ExportedMetric, MetricUnit};

    #[test]
    fn labels_are_escaped_and_units_stand_last() {
        static METRIC: ExportedMetric = ExportedMetric {
            name: "longtail.run.x",
            unit: MetricUnit::Seconds,
            is_counter: true,
            help: "What\nit is",
        };
        let point = MetricPoint {
            labels: vec![("worker", "a\"b\\c\nd".to_owned())],
            value: PointValue::Number(0.5),
        };
        let family = MetricFamily { metric: &METRIC, points: vec![point] };
        let expected = "# HELP longtail_run_x_seconds_total What\\nit is\n# TYPE longtail_run_x_seconds_total counter\n\
                    longtail_run_x_seconds_total{worker=\"a\\\"b\\\\c\\nd\"} 0.5\n";
        assert_eq!(exposition(&[family]), expected);
    }
}
