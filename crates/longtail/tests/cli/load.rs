//! `longtail load` and `longtail attack` as a user types them, against a sink or a recording server
//! of the test.

use std::path::Path;

use model::{LoadStudy, Outcome, ServerLocation, Study};
use sink::{Sink, SinkBody, SinkSettings};
use testkit::clock::REAL_CLOCK;
use testkit::http::Receiver;

use crate::lab::{Ended, Lab};

/// A sink that responds at once.
pub(crate) fn sink(body: SinkBody) -> Sink {
    sink_at("127.0.0.1:0", body)
}

pub(crate) fn sink_at(place: &str, body: SinkBody) -> Sink {
    sink_with(place, SinkSettings { body, ..SinkSettings::default() })
}

pub(crate) fn sink_with(place: &str, settings: SinkSettings) -> Sink {
    Sink::start(SinkSettings { listen: vec![place.parse().unwrap()], ..settings }, REAL_CLOCK)
        .unwrap()
}

pub(crate) fn url(sink: &Sink) -> String {
    format!("http://{}/", sink.address())
}

/// Runs `longtail load` with these arguments, which may be quoted as for a shell, without measuring
/// the generator's ceiling.
pub(crate) fn load(lab: &Lab, words: &str) -> Ended {
    lab.run(&format!("load --no-calibrate {words}"))
}

/// The one study that was kept.
pub(crate) fn study(lab: &Lab) -> LoadStudy {
    of_load(lab.kept())
}

fn of_load(study: Study) -> LoadStudy {
    crate::scenarios::laws::assert_sound(&study);
    let Study::Load(study) = study else { panic!("not a load") };
    *study
}

/// Checks that all planned requests had good responses, and that the sink counted the same.
pub(crate) fn assert_answered(study: &LoadStudy, sink: Sink) {
    let tally = &study.run.tally;
    assert_eq!(tally.counts.failed(), 0, "{:?}", outcomes(study));
    let ledger = sink.stop();
    // A server on this machine sees no connections but the load's: whether it listens is asked of
    // the kernel, not by a connect.
    if study.server == ServerLocation::Here && study.run.generator.far.is_empty() {
        assert_eq!(ledger.connections, tally.connections_opened);
    }
    assert_eq!(ledger.bad_requests, 0);
    assert_eq!(ledger.requests, tally.all_requests());
    assert_eq!(
        (ledger.received_bytes, ledger.sent_bytes),
        (tally.sent_bytes, tally.received_bytes)
    );
}

pub(crate) fn outcomes(study: &LoadStudy) -> Vec<(Outcome, u64)> {
    study.run.tally.counts.iter().collect()
}

/// A path as an argument.
pub(crate) fn word(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn every_listed_request_arrives_once_and_in_order_on_one_connection() {
    let expected: Vec<String> = (0..300).map(|n| format!("/{n}")).collect();
    for words in ["-c 1", "-c 20 --threads 3"] {
        let lab = Lab::new();
        let receiver = Receiver::start();
        lab.write("numbers", &expected.join("\n"));
        load(
            &lab,
            &format!("--rate 600/s --for 500ms {words} --requests numbers {}", receiver.url()),
        )
        .with_code(0);
        let mut targets = receiver.targets();
        if words != "-c 1" {
            targets.sort_by_key(|target| target[1..].parse::<usize>().unwrap());
        }
        assert_eq!(targets, expected, "none twice, none missing");
        assert_eq!(study(&lab).run.tally.counts.good(), 300);
    }
}
