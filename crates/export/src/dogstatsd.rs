//! Figures as `DogStatsD` packets: gauges with tags, in the units of their names.
//!
//! A distribution is its quantiles and no `…_count`: the bridge takes that for the name of a summary's own, and drops it.
//! Gauges alone, for a receiver adds counters up, and a finished run has nothing to be added to. A bridge to Prometheus
//! (`statsd_exporter`) gives each the name that our own endpoint gives it.

use model::MetricKind;

use crate::family::{Labels, MetricFamily, MetricPoint, PointValue};
use crate::statsd::{StatsdLine, StatsdValues};

/// A packet is no longer, so that no network cuts it in two.
pub const LONGEST_PACKET: usize = 1432;

/// Each figure as a line. Of a distribution its quantiles; buckets have no place in `DogStatsD`.
pub fn lines(families: &[MetricFamily]) -> Vec<StatsdLine> {
    let mut lines = Vec::new();
    for family in families {
        let name = family.metric.name_with_unit();
        for MetricPoint { labels, value } in &family.points {
            match value {
                PointValue::Number(number) => lines.push(line(name.clone(), labels, None, *number)),
                PointValue::Quantiles { quantiles, .. } => {
                    let of = |(q, value): &(f64, f64)| line(name.clone(), labels, Some(*q), *value);
                    lines.extend(quantiles.iter().map(of));
                }
                PointValue::Buckets { .. } => {}
            }
        }
    }
    lines
}

fn line(name: String, labels: &Labels, quantile: Option<f64>, value: f64) -> StatsdLine {
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

/// Lines put together to packets of at most [`LONGEST_PACKET`] bytes; a longer line is a packet of its own.
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
