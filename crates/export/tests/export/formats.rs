//! The metrics of the canonical studies as each protocol writes them, byte for byte, and that all
//! protocols carry the same figures. `UPDATE_GOLDEN=1 cargo test -p export` writes the files anew:
//! read the difference.

use std::collections::BTreeMap;
use std::path::Path;

use export::otlp::{self, RunOrigin};
use export::statsd::{ParsedLine, StatsdValues, parse};
use export::{LiveRun, MetricFamily, PointValue, live, of_load, of_sweep, text_formats};
use model::{Histogram, Judgement, LoadStudy, Nanos, Outcome, SweepStudy, Verdict};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use prost::Message as _;
use testkit::{golden, load, study};

fn expect(name: &str, text: &str) {
    golden::expect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name), text);
}

fn families(study: &SweepStudy) -> Vec<MetricFamily> {
    let runs = study.runs.iter().zip(1..);
    MetricFamily::merged(runs.flat_map(|(run, number)| of_sweep(study, run, number)))
}

/// Every single number, by its name at Prometheus and its labels.
type Figures = BTreeMap<(String, BTreeMap<String, String>), f64>;

fn figures(families: &[MetricFamily]) -> Figures {
    let mut figures = Figures::new();
    for family in families {
        let name = family.metric.name_with_unit().replace('.', "_");
        for point in &family.points {
            let labels: BTreeMap<_, _> = point
                .labels
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect();
            match &point.value {
                PointValue::Number(number) => {
                    figures.insert((name.clone(), labels), *number);
                }
                PointValue::Quantiles { quantiles, .. } => {
                    for (q, value) in quantiles {
                        let mut labels = labels.clone();
                        labels.insert("quantile".to_owned(), q.to_string());
                        figures.insert((name.clone(), labels), *value);
                    }
                }
                PointValue::Buckets { .. } => {}
            }
        }
    }
    figures
}

#[test]
fn a_scrape_of_a_watched_sweep() {
    expect("watched.prom", &text_formats::exposition(&families(&study::watched())));
}

#[test]
fn a_scrape_of_a_load_of_several_classes() {
    let families = of_load(&load::mixed());
    let of_classes = families.into_iter().filter(|it| it.metric.name.contains(".class_"));
    expect("classes.prom", &text_formats::exposition(&of_classes.collect::<Vec<_>>()));
}

#[test]
fn a_scrape_while_a_run_goes_on() {
    let sample = |of: &str, name, value| (name, of.to_owned(), value);
    let samples = vec![
        sample("", "accept_queue", 30),
        sample("", "open_connections", 10),
        sample("71", "backlog", 0),
        sample("72", "backlog", 1),
        sample("71", "busy_threads", 5),
        sample("72", "busy_threads", 5),
        sample("71", "pool_capacity", 0),
    ];
    let run = LiveRun { number: 2, connections: 40, samples };
    let scrape = text_formats::exposition(&live(5000, 1, Some(&run)));
    // The version is masked, so that a release does not change the file.
    expect("live.prom", &scrape.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    assert!(
        !text_formats::exposition(&live(5000, 1, None)).contains("longtail_now"),
        "what is not known is absent"
    );
}

#[test]
fn packets_of_a_watched_sweep() {
    let packets = text_formats::packets(&text_formats::lines(&families(&study::watched())));
    assert!(packets.iter().all(|packet| packet.len() <= text_formats::LONGEST_PACKET));
    expect("watched.statsd", &(packets.join("\n--\n") + "\n"));
}

fn of_dogstatsd(families: &[MetricFamily]) -> Figures {
    let packets = text_formats::packets(&text_formats::lines(families));
    let of = |line: &str| {
        let ParsedLine::Values(line) = parse(line.as_bytes()) else { panic!("{line}") };
        let StatsdValues::Numbers(values) = &line.values else { panic!("{line}") };
        let pairs = line.tags.iter().map(|tag| tag.split_once(':').unwrap());
        let labels = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        ((line.name.replace('.', "_"), labels), values[0])
    };
    packets.iter().flat_map(|packet| packet.lines()).map(of).collect()
}

fn of_prometheus(families: &[MetricFamily]) -> Figures {
    let text = text_formats::exposition(families);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let of = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let pairs = labels.trim_end_matches('}').split(',').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap());
        let labels = pairs
            .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
            .collect();
        ((name.to_owned(), labels), value.parse().unwrap())
    };
    // Only Prometheus has the sum and the count of a summary, and a histogram is not one number.
    let shared = |(name, _): &(String, BTreeMap<String, String>)| {
        !name.ends_with("_sum")
            && !name.ends_with("_count")
            && !name.starts_with("longtail_run_good_response_time")
    };
    lines.map(of).filter(|(series, _)| shared(series)).collect()
}

fn of_otlp(families: &[MetricFamily]) -> Figures {
    let origin = RunOrigin {
        study: "2026-01-01T00:00:00Z",
        begun: Nanos(5_000_000_000),
        ended: Nanos(7_000_000_000),
    };
    let request =
        ExportMetricsServiceRequest::decode(otlp::request(families, &origin).as_slice()).unwrap();
    let text = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => (pair.key.clone(), text.clone()),
        other => panic!("{other:?}"),
    };
    let resource = request.resource_metrics[0].resource.as_ref().unwrap();
    assert!(
        resource
            .attributes
            .iter()
            .map(text)
            .any(|pair| pair == ("service.name".to_owned(), "longtail".to_owned()))
    );
    let mut figures = Figures::new();
    for metric in &request.resource_metrics[0].scope_metrics[0].metrics {
        let suffix = match metric.unit.as_str() {
            "s" => "_seconds",
            "{request}/s" => "_per_second",
            "1" => "_ratio",
            _ => "",
        };
        let name = metric.name.replace('.', "_") + suffix;
        match metric.data.as_ref().unwrap() {
            Data::Gauge(gauge) => {
                for point in &gauge.data_points {
                    assert_eq!(
                        (point.start_time_unix_nano, point.time_unix_nano),
                        (5_000_000_000, 7_000_000_000)
                    );
                    let Some(Number::AsDouble(value)) = point.value else { panic!("{point:?}") };
                    figures
                        .insert((name.clone(), point.attributes.iter().map(text).collect()), value);
                }
            }
            Data::Histogram(histogram) => {
                for point in &histogram.data_points {
                    assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
                    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    figures
}

fn every() -> Vec<Vec<MetricFamily>> {
    let sweeps = study::every();
    let loads = load::every();
    sweeps.iter().map(families).chain(loads.iter().map(of_load)).collect()
}

#[test]
fn every_protocol_carries_the_same_figures() {
    for families in every() {
        let figures = figures(&families);
        assert_eq!(of_prometheus(&families), figures);
        assert_eq!(of_dogstatsd(&families), figures);
        assert_eq!(of_otlp(&families), figures);
    }
}

#[test]
fn the_figures_are_those_of_the_run() {
    let study = study::canonical();
    let run = &study.runs[3];
    let figures = figures(&of_sweep(&study, run, 4));
    let of = |name: &str, more: &[(&str, &str)]| {
        let found = figures.iter().find(|((other, labels), _)| {
            other == name
                && more
                    .iter()
                    .all(|(name, value)| labels.get(*name).map(String::as_str) == Some(*value))
        });
        *found.unwrap_or_else(|| panic!("no {name}")).1
    };
    let p99 = run.response_time(0.99).time().unwrap().as_secs_f64();
    let assert_is = |figure: f64, expected: f64| {
        assert!((figure - expected).abs() < 1e-12, "{figure} and not {expected}");
    };
    assert_is(
        of(
            "longtail_run_response_time_seconds",
            &[("quantile", "0.99"), ("multiple", "3"), ("workers", "4")],
        ),
        p99,
    );
    assert_is(
        of("longtail_run_completed_requests_per_second", &[("threads", "5"), ("run", "4")]),
        run.completed_rate(),
    );
    assert_is(
        of("longtail_run_planned_requests", &[("outcome", "200")]),
        run.tally.counts.total() as f64,
    );
    assert_is(of("longtail_run_connections", &[]), f64::from(run.connections));
    let shares = figures
        .iter()
        .filter(|((name, _), _)| name == "longtail_run_worker_requests")
        .map(|(_, n)| n);
    assert_is(shares.sum(), run.workers.iter().map(|share| share.requests).sum::<u64>() as f64);
}

#[test]
fn bad_responses_are_split_by_reason_and_add_up() {
    let sweep = study::failing();
    let load = load::failing();
    for (families, tally) in [
        (of_sweep(&sweep, &sweep.runs[1], 2), &sweep.runs[1].tally),
        (of_load(&load), &load.run.tally),
    ] {
        let figures = figures(&families);
        let of = |label: &str| {
            let named = |((name, labels), n): (&(String, BTreeMap<String, String>), &f64)| {
                let is_it = name == "longtail_run_bad_responses"
                    && labels.get("reason").is_some_and(|is| is == label);
                is_it.then_some(*n)
            };
            figures.iter().filter_map(named).sum::<f64>()
        };
        let [length, trailing] = [of("content_length"), of("trailing_bytes")];
        let all = tally.counts.of(Outcome::BadResponse) as f64;
        assert!(
            length > trailing && trailing > 0.0 && (length + trailing - all).abs() < 1e-9,
            "{length} {trailing}"
        );
    }
}

#[test]
fn buckets_are_exact_at_their_edges() {
    let study = study::canonical();
    let run = &study.runs[4];
    let families = of_sweep(&study, run, 5);
    let family = families
        .iter()
        .find(|family| family.metric.name == "longtail.run.good_response_time")
        .unwrap();
    let PointValue::Buckets { edges, sum, count } = &family.points[0].value else {
        panic!("{family:?}")
    };
    let times = &run.tally.response_time;
    assert_eq!(*count, run.tally.counts.good());
    assert!((sum - times.sum().as_secs_f64()).abs() < 1e-12);
    for (edge, below) in edges {
        let edge = Nanos::from_secs_f64(*edge);
        assert_eq!(Histogram::edge(edge), edge, "no bucket of the histogram straddles it");
        let above = times.at_rank(below + 1);
        assert!(above.is_none_or(|above| above > edge), "{below} at or below {edge}");
        assert!(*below == 0 || times.at_rank(*below).unwrap() <= edge);
    }
}

#[test]
fn an_invalid_run_carries_no_headline_figure() {
    let names = |families: &[MetricFamily]| {
        families.iter().map(|family| family.metric.name).collect::<Vec<_>>()
    };
    let mut study: SweepStudy = study::canonical();
    let judgement = Judgement {
        verdict: Verdict::Invalid,
        decided_by: None,
        checks: Vec::new(),
        limit: None,
        forced: false,
    };
    study.runs[0].judgement = Some(judgement.clone());
    let sweep = names(&of_sweep(&study, &study.runs[0], 1));
    let mut study: LoadStudy = load::every()[0].clone();
    study.run.judgement = Some(judgement);
    for names in [sweep, names(&of_load(&study))] {
        assert!(
            names.contains(&"longtail.run.planned_requests")
                && names.contains(&"longtail.run.verdict")
        );
        assert!(
            !names.iter().any(|name| name.contains("time") || name.contains("completed")),
            "{names:?}"
        );
    }
}

#[test]
fn what_a_receiver_rejects_is_read_from_its_response() {
    let answer = |rejected| ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: rejected,
            error_message: "full".to_owned(),
        }),
    };
    assert_eq!(otlp::rejected(&answer(3).encode_to_vec()), Some((3, "full".to_owned())));
    assert_eq!(otlp::rejected(&answer(0).encode_to_vec()), None);
    assert_eq!(otlp::rejected(b""), None);
    assert_eq!(otlp::rejected(b"\xff\xff not found"), None);
}

/// How lines are read: those on statsd's and Datadog's own pages, those of puma-plugin-statsd, and
/// some that are not statsd.
#[test]
fn lines_of_statsd_are_understood() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/statsd_lines.txt");
    golden::expect_rows(file, |line| parse(line.as_bytes()));
}
