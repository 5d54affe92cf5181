//! `--otlp`: a receiver decodes what comes with the messages of `opentelemetry-proto`, and finds every figure in the study.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use model::counts::name;
use model::watch::WatchCurve;
use model::{Nanos, Run, SweepStudy, Verdict};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint};
use prost::Message as _;
use sink::SinkBody;
use testkit::http::Receiver;

use crate::lab::{Lab, free_port};
use crate::load::{load, sink, study, url};

fn receiver(answer: &'static [u8]) -> Receiver {
    Receiver::by(move |request| {
        assert_eq!(request.field("content-type"), Some("application/x-protobuf"));
        answer.to_vec()
    })
}

const FINE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";

fn text(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let of = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => (pair.key.clone(), text.clone()),
        other => panic!("{other:?}"),
    };
    attributes.iter().map(of).collect()
}

fn number(point: &NumberDataPoint) -> f64 {
    match point.value {
        Some(Number::AsDouble(value)) => value,
        ref other => panic!("{other:?}"),
    }
}

#[track_caller]
fn same(figure: f64, expected: f64, what: &str) {
    assert!((figure - expected).abs() <= 1e-9 * expected.abs(), "{what}: {figure} and not {expected}");
}

/// What the study says of a figure, by the study alone.
fn expected(run: &Run, metric: &str, labels: &BTreeMap<String, String>) -> f64 {
    let seconds = |time: Option<Nanos>| time.unwrap().as_secs_f64();
    let quantile = || labels["quantile"].parse().unwrap();
    let curve = |name: &'static str| run.watch.as_ref().unwrap().curve(name).unwrap();
    let mean = |name: &'static str| {
        let (track, curve) = curve(name);
        track.mean(curve, run.measured).unwrap()
    };
    match metric {
        "longtail.run.verdict" => 1.0,
        "longtail.run.caveats" => run.warnings.len() as f64,
        "longtail.run.connections" => f64::from(run.connections),
        "longtail.run.measured" => run.measured.as_secs_f64(),
        "longtail.run.planned_requests" => {
            run.tally.counts.iter().find(|(outcome, _)| name(*outcome) == labels["outcome"]).unwrap().1 as f64
        }
        "longtail.run.bad_responses" => {
            run.tally.bad_responses.iter().find(|(reason, _)| reason.name() == labels["reason"]).unwrap().1 as f64
        }
        "longtail.run.worker_requests" => {
            run.workers.iter().find(|share| share.worker == labels["worker"]).unwrap().requests as f64
        }
        "longtail.run.accept_queue_mean_connections" => mean("accept_queue"),
        "longtail.run.accept_queue_most_connections" => WatchCurve::most(curve("accept_queue").1).unwrap() as f64,
        "longtail.run.open_mean_connections" => mean("open_connections"),
        "longtail.run.accept_queue_wait" => seconds(run.accept_queue_wait()),
        "longtail.run.completed_requests" => run.tally.completed_in_window as f64 / run.measured.as_secs_f64(),
        "longtail.run.completed_of_maximum" => run.completed_rate() / run.forecast.as_ref().unwrap().maximum_rate,
        "longtail.run.response_time" => seconds(run.response_time(quantile()).time()),
        "longtail.run.service_time" => seconds(run.tally.service_time_at(quantile()).time()),
        "longtail.run.good_requests" => run.tally.counts.good() as f64,
        "longtail.run.longest_response_time" => seconds(run.tally.response_time.max()),
        // Where the kernel lets us listen.
        "longtail.run.kernel_wait" => {
            let mut processes = run.kernel.as_ref().unwrap().processes.iter();
            let process = processes.find(|process| process.pid.to_string() == labels["worker"]).unwrap();
            let waits = match labels["place"].as_str() {
                "accept_queue" => &process.accept_queue,
                "receive_queue" => &process.receive_queue,
                "in_server" => &process.in_server,
                _ => &process.run_queue,
            };
            seconds(waits.quantile(quantile()))
        }
        other => panic!("nobody knows what {other} is"),
    }
}

fn assert_is_of(metric: &Metric, run: &Run, study: &SweepStudy) -> usize {
    let labels_of = |attributes: &[KeyValue]| {
        let labels = text(attributes);
        assert_eq!(labels["connections"], run.connections.to_string());
        assert_eq!(labels["multiple"], run.multiple.unwrap().to_string());
        assert_eq!(
            (&labels["workers"], &labels["threads"]),
            (&study.server.workers.to_string(), &study.server.threads.to_string())
        );
        labels
    };
    match metric.data.as_ref().unwrap() {
        Data::Gauge(gauge) => {
            for point in &gauge.data_points {
                let labels = labels_of(&point.attributes);
                same(number(point), expected(run, &metric.name, &labels), &format!("{} {labels:?}", metric.name));
                assert!(point.start_time_unix_nano <= point.time_unix_nano && point.start_time_unix_nano > 0);
            }
            gauge.data_points.len()
        }
        Data::Histogram(histogram) => {
            assert_eq!((metric.name.as_str(), metric.unit.as_str()), ("longtail.run.good_response_time", "s"));
            let [point] = histogram.data_points.as_slice() else { panic!("{histogram:?}") };
            labels_of(&point.attributes);
            let times = &run.tally.response_time;
            assert_eq!(point.count, times.count());
            same(point.sum.unwrap(), times.sum().as_secs_f64(), "sum");
            let mut below = 0;
            for (edge, count) in point.explicit_bounds.iter().zip(&point.bucket_counts) {
                below += count;
                let edge = Nanos::from_secs_f64(*edge);
                let expected: u64 = times.buckets().filter(|(highest, _)| *highest <= edge).map(|(_, n)| n).sum();
                assert_eq!(below, expected, "at or below {edge}");
            }
            point.bucket_counts.len()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_figure_of_a_sweep_is_that_of_its_study() {
    let (lab, receiver) = (Lab::new(), receiver(FINE));
    let words = format!(
        "sweep --server builtin -w2 -t2:2 -d0.005 --for 1s --warm-up 100ms --multiples 1,3 --no-calibrate --otlp http://{}",
        receiver.address
    );
    let ended = lab.run(&words).with_code(0);
    assert!(!ended.stderr.contains("--otlp"), "{}", ended.stderr);
    let study = lab.study();
    let posts = receiver.kept();
    assert_eq!((posts.len(), study.runs.len()), (2, 2));
    for (post, run) in posts.iter().zip(&study.runs) {
        assert!(post.head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", post.head);
        let request = ExportMetricsServiceRequest::decode(post.body.as_slice()).unwrap();
        let [resource] = request.resource_metrics.as_slice() else { panic!("{request:?}") };
        let labels = text(&resource.resource.as_ref().unwrap().attributes);
        assert_eq!((labels["service.name"].as_str(), &labels["longtail.study"]), ("longtail", &study.started_at));
        let metrics = &resource.scope_metrics[0].metrics;
        let names: BTreeSet<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names.len(), metrics.len(), "each name once");
        let points: usize = metrics.iter().map(|metric| assert_is_of(metric, run, &study)).sum();
        // Of each time the quantiles that so many answers have, 18 edges and what is beyond, the rest one by one. A machine that spoils
        // the run hides the times.
        let is_invalid = run.judgement.as_ref().is_some_and(|judgement| judgement.verdict == Verdict::Invalid);
        let known = model::run::PERCENTILES.into_iter().filter(|q| run.response_time(*q).time().is_some()).count();
        let of_times = if is_invalid { 0 } else { known + 19 };
        assert!(points > 5 + of_times, "only {points} figures of {known} quantiles: {metrics:?}");
    }
}

#[test]
fn a_receiver_that_takes_nothing_is_named_and_the_run_stands() {
    let refusing = receiver(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").address;
    // partial_success { rejected_data_points: 3, error_message: "full" }
    let rejecting = receiver(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n\x0a\x08\x08\x03\x12\x04full").address;
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let cases = [
        (refusing, "it answered 503 Service Unavailable"),
        (rejecting, "took the figures but for 3 (full)"),
        (nobody, "Connection refused"),
    ];
    for (to, why) in cases {
        let (lab, sink) = (Lab::new(), sink(SinkBody::default()));
        let ended = load(&lab, &format!("-n 50 -c 2 --otlp http://{to}/base {}", url(&sink))).with_code(0);
        let said: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("--otlp")).collect();
        assert!(said.len() == 1 && said[0].contains(why) && said[0].contains("/base/v1/metrics"), "{}", ended.stderr);
        assert_eq!(study(&lab).run.tally.counts.good(), 50);
    }
}
