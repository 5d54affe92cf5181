//! Prometheus' text format 0.0.4 (its documentation: "Exposition formats"): what a scrape is answered with.

use std::fmt::Write as _;

use crate::family::{Family, Kind, Labels, Point, Value};

/// The content type of [`exposition`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All families as one answer. Each name may be there once: see [`Family::merged`].
pub fn exposition(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.points.is_empty()) {
        let name = metric_name(family);
        _ = writeln!(text, "# HELP {name} {}", family.help.replace('\\', "\\\\").replace('\n', "\\n"));
        _ = writeln!(text, "# TYPE {name} {}", type_of(family));
        for Point { labels, value } in &family.points {
            write_point(&mut text, &name, labels, value);
        }
    }
    text
}

/// The name with its unit last, and `_total` behind what only rises.
pub fn metric_name(family: &Family) -> String {
    let total = if family.kind == Kind::Counter { "_total" } else { "" };
    format!("{}{}{total}", family.name.replace('.', "_"), family.unit.suffix())
}

fn type_of(family: &Family) -> &'static str {
    match family.points.first().map(|point| &point.value) {
        Some(Value::Quantiles { .. }) => "summary",
        Some(Value::Buckets { .. }) => "histogram",
        _ if family.kind == Kind::Counter => "counter",
        _ => "gauge",
    }
}

fn write_point(text: &mut String, name: &str, labels: &Labels, value: &Value) {
    let mut line = |suffix: &str, beside: Option<(&str, String)>, value: f64| {
        _ = writeln!(text, "{name}{suffix}{} {value}", shown(labels, beside.as_ref()));
    };
    match value {
        Value::Number(number) => line("", None, *number),
        Value::Quantiles { quantiles, sum, count } => {
            for (quantile, time) in quantiles {
                line("", Some(("quantile", quantile.to_string())), *time);
            }
            line("_sum", None, *sum);
            line("_count", None, *count as f64);
        }
        Value::Buckets { edges, sum, count } => {
            for (edge, below) in edges {
                line("_bucket", Some(("le", edge.to_string())), *below as f64);
            }
            line("_bucket", Some(("le", "+Inf".to_owned())), *count as f64);
            line("_sum", None, *sum);
            line("_count", None, *count as f64);
        }
    }
}

fn shown(labels: &Labels, beside: Option<&(&str, String)>) -> String {
    let own = labels.iter().map(|(name, value)| (*name, value.as_str()));
    let all = own.chain(beside.map(|(name, value)| (*name, value.as_str())));
    let pairs: Vec<String> = all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Unit;

    #[test]
    fn labels_are_escaped_and_units_stand_last() {
        let labels = vec![("worker", "a\"b\\c\nd".to_owned())];
        let family =
            Family::one(("longtail.run.x", Unit::Seconds, Kind::Counter), "What\nit is", labels, Value::Number(0.5));
        let expected = "# HELP longtail_run_x_seconds_total What\\nit is\n# TYPE longtail_run_x_seconds_total counter\n\
                        longtail_run_x_seconds_total{worker=\"a\\\"b\\\\c\\nd\"} 0.5\n";
        assert_eq!(exposition(&[family]), expected);
    }
}
