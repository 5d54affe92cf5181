//! Figures in the two text formats: what a scrape of Prometheus is answered with, and packets of
//! `DogStatsD`.
//!
//! Prometheus' format is 0.0.4 (its documentation: "Exposition formats"). `DogStatsD` has gauges
//! with tags, in the units of their names: a distribution is its quantiles and no `…_count`, for
//! the bridge takes that for the name of a summary's own, and drops it. Gauges alone, for a
//! receiver adds counters up, and a finished run has nothing to be added to. A bridge to Prometheus
//! (`statsd_exporter`) gives each the name that our own endpoint gives it.

use std::fmt::Write as _;

use model::MetricKind;

use crate::family::{Labels, MetricFamily, MetricPoint, PointValue};
use crate::statsd::{StatsdLine, StatsdValues};

/// The content type of [`exposition`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All families as one answer. Each name may be there once: see [`MetricFamily::merged`].
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
    let mut line = |suffix: &str, beside: Option<(&'static str, String)>, value: f64| {
        let labels: Labels = labels.iter().cloned().chain(beside).collect();
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

/// A packet is no longer, so that no network cuts it in two.
pub const LONGEST_PACKET: usize = 1432;

/// Each figure as a line. Of a distribution its quantiles; buckets have no place in `DogStatsD`.
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
    // An absolute gauge has no sign; none of our figures is negative.
    let values = StatsdValues::Numbers(vec![value.max(0.0)]);
    StatsdLine { name, kind: MetricKind::Gauge, values, rate: 1.0, tags }
}

/// Without what would end a tag.
fn tag_value(text: &str) -> String {
    text.chars().map(|c| if matches!(c, ',' | '|') || c.is_control() { '_' } else { c }).collect()
}

/// Lines put together to packets of at most [`LONGEST_PACKET`] bytes; a longer line is a packet of
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
