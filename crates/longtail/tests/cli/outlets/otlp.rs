//! `--otlp`: what a receiver gets is, byte for byte, what `export` makes of the study; its tests decode that with the messages of
//! `opentelemetry-proto`, and hold each figure against the run.

use std::net::SocketAddr;

use export::of_sweep;
use export::otlp::{RunOrigin, request};
use model::Nanos;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
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

#[test]
fn every_figure_of_a_sweep_is_that_of_its_study() {
    let fine = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
    let (lab, receiver) = (Lab::new(), receiver(fine));
    let words = "sweep --server builtin -w2 -t2:2 -d0.005 --for 1s --warm-up 100ms --multiples 1,3 --no-calibrate";
    let ended = lab.run(&format!("{words} --otlp http://{}", receiver.address)).with_code(0);
    assert!(!ended.stderr.contains("--otlp"), "{}", ended.stderr);
    let (study, posts) = (lab.study(), receiver.kept());
    assert_eq!((posts.len(), study.runs.len()), (2, 2));
    for ((post, run), number) in posts.iter().zip(&study.runs).zip(1..) {
        assert!(post.head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", post.head);
        let decoded = ExportMetricsServiceRequest::decode(post.body.as_slice()).unwrap();
        let metrics = &decoded.resource_metrics[0].scope_metrics[0].metrics;
        let Some(Data::Gauge(gauge)) = &metrics[0].data else { panic!("{:?}", metrics[0]) };
        // The clock's time of a run is in no study.
        let [begun, ended] =
            [gauge.data_points[0].start_time_unix_nano, gauge.data_points[0].time_unix_nano].map(Nanos);
        assert!(Nanos(0) < begun && begun + run.measured <= ended, "{begun} to {ended}");
        let origin = RunOrigin { version: env!("CARGO_PKG_VERSION"), study: &study.started_at, begun, ended };
        assert_eq!(post.body, request(&of_sweep(&study, run, number), &origin));
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
