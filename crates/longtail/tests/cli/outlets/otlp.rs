//! `--otlp`: what a receiver gets is, byte for byte, what `export` makes of the study; its tests decode that with the messages of
//! `opentelemetry-proto`, and hold each figure against the run.

use export::of_sweep;
use export::otlp::{RunOrigin, request};
use model::Nanos;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message as _;
use testkit::http::Receiver;

use crate::lab::Lab;

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
    let ended = lab.run(&format!("{words} --otlp http://{}", receiver.address));
    assert!(!ended.stderr.contains("--otlp"), "{}", ended.stderr);
    let _ = ended.measured(&lab.kept());
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
        let origin = RunOrigin { study: &study.started_at, begun, ended };
        assert_eq!(post.body, request(&of_sweep(&study, run, number), &origin));
    }
}
