//! Prometheus' text format 0.0.4 (its documentation: "Exposition formats"): what a scrape is answered with.

use std::fmt::Write as _;

use crate::family::{Labels, MetricFamily, MetricPoint, PointValue};

/// The content type of [`exposition`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All families as one answer. Each name may be there once: see [`MetricFamily::merged`].
pub fn exposition(families: &[MetricFamily]) -> String {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.points.is_empty()) {
        let name = family.metric.name_with_unit().replace('.', "_");
        _ = writeln!(text, "# HELP {name} {}", family.metric.help.replace('\\', "\\\\").replace('\n', "\\n"));
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
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{ExportedMetric, MetricUnit};

    #[test]
    fn labels_are_escaped_and_units_stand_last() {
        static METRIC: ExportedMetric =
            ExportedMetric { name: "longtail.run.x", unit: MetricUnit::Seconds, is_counter: true, help: "What\nit is" };
        let point = MetricPoint { labels: vec![("worker", "a\"b\\c\nd".to_owned())], value: PointValue::Number(0.5) };
        let family = MetricFamily { metric: &METRIC, points: vec![point] };
        let expected = "# HELP longtail_run_x_seconds_total What\\nit is\n# TYPE longtail_run_x_seconds_total counter\n\
                        longtail_run_x_seconds_total{worker=\"a\\\"b\\\\c\\nd\"} 0.5\n";
        assert_eq!(exposition(&[family]), expected);
    }
}
