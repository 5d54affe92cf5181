//! What puma-plugin-statsd and an app would have said during a run.

use model::{MetricKind, Nanos, StatsdFigures, StatsdMetric, StatsdReport};

/// What puma-plugin-statsd and an app with one timer would have said, and a line that is none.
pub(crate) fn statsd() -> StatsdReport {
    let series = |metric: &str, tags: &[&str], kind, values: &[f64], rate: f64| {
        let sum = values.iter().sum::<f64>();
        let least = |least: f64, value: &f64| least.min(*value);
        let most = |most: f64, value: &f64| most.max(*value);
        StatsdMetric {
            metric: metric.to_owned(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            kind,
            values: values.len() as u64,
            stands_for: values.len() as f64 / rate,
            figures: Some(StatsdFigures {
                sum: sum / rate,
                mean: sum / values.len() as f64,
                last: values.last().copied().unwrap_or(0.0),
                min: values.iter().fold(f64::MAX, least),
                max: values.iter().fold(0.0, most),
            }),
        }
    };
    let mut statsd = StatsdReport {
        series: vec![
            series("app.jobs", &[], MetricKind::Counter, &[3.0, 2.0], 0.5),
            series("app.rack", &["route:/|a"], MetricKind::Timer, &[201.5, 0.0004, 1e12], 1.0),
            series("puma.backlog", &["grouping:web"], MetricKind::Histogram, &[0.0, 0.0, 1.0, 0.0], 1.0),
            series("puma.workers", &["grouping:web"], MetricKind::Gauge, &[2.0; 4], 1.0),
        ],
        packets: 14,
        lines: 14,
        malformed: 1,
        first_malformed: Some("puma.backlog".to_owned()),
        no_metrics: 0,
        before: 3,
        left_out: 5,
        dropped_by_kernel: Some(2),
        cpu: Nanos::from_millis(1200),
    };
    let names = StatsdMetric { figures: None, ..series("app.users", &[], MetricKind::Set, &[], 1.0) };
    statsd.series.insert(2, StatsdMetric { values: 1, stands_for: 1.0, ..names });
    statsd
}
