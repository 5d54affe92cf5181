//! `longtail load` and `longtail attack` as a user types them, against a sink or a server of the test that counts what it got.

mod endings;
mod logs;

use std::path::Path;

use model::{LoadStudy, Nanos, Outcome, ServerLocation, Study};
use sink::{Sink, SinkBody, SinkSettings};
use testkit::clock::REAL_CLOCK;

use crate::lab::{Ended, Lab};

/// A sink that answers at once.
pub(crate) fn sink(body: SinkBody) -> Sink {
    sink_at("127.0.0.1:0", body)
}

pub(crate) fn sink_at(place: &str, body: SinkBody) -> Sink {
    sink_with(place, SinkSettings { body, ..SinkSettings::default() })
}

/// A sink that takes so long for each answer: a load for a time is of fewer requests, and leaves the processors to others.
pub(crate) fn slow_sink(delay: Nanos) -> Sink {
    sink_with("127.0.0.1:0", SinkSettings { delay: delay.into(), ..SinkSettings::default() })
}

pub(crate) fn sink_with(place: &str, settings: SinkSettings) -> Sink {
    Sink::start(SinkSettings { listen: vec![place.parse().unwrap()], ..settings }, REAL_CLOCK).unwrap()
}

pub(crate) fn url(sink: &Sink) -> String {
    format!("http://{}/", sink.address())
}

/// Runs `longtail load` with these words, which may be quoted as for a shell. The generator's own limit is not of interest here.
pub(crate) fn load(lab: &Lab, words: &str) -> Ended {
    lab.run(&format!("load --no-calibrate {words}"))
}

/// The one study that was kept.
pub(crate) fn study(lab: &Lab) -> LoadStudy {
    of_load(lab.kept())
}

pub(crate) fn read(path: &Path) -> LoadStudy {
    of_load(crate::lab::read(path))
}

fn of_load(study: Study) -> LoadStudy {
    let Study::Load(study) = study else { panic!("not of a load") };
    assert_conserved(&study);
    *study
}

/// Runs it to its end with exit code 0: the study it kept.
pub(crate) fn loaded(words: &str) -> LoadStudy {
    let lab = Lab::new();
    load(&lab, words).with_code(0);
    study(&lab)
}

/// Every request of a load is in exactly one place.
pub(crate) fn assert_conserved(study: &LoadStudy) {
    let (tally, counts) = (&study.run.tally, &study.run.tally.counts);
    assert_eq!(counts.total(), counts.good() + counts.failed());
    assert_eq!(tally.per_connection.len(), study.plan.connections as usize);
    assert_eq!(tally.per_connection.iter().sum::<u64>(), counts.good());
    assert_eq!(tally.response_time.count(), counts.good());
    assert_eq!(tally.bad_responses.total(), counts.of(Outcome::BadResponse));
    if let (Some(planned), None, false) = (study.plan.requests_total, study.plan.length, study.interrupted) {
        assert_eq!(counts.total(), planned);
    }
}

/// All that was planned was answered well, and that is what the sink has counted.
pub(crate) fn assert_answered(study: &LoadStudy, sink: Sink) {
    let tally = &study.run.tally;
    assert_eq!(tally.counts.failed(), 0, "{:?}", outcomes(study));
    let ledger = sink.stop();
    // Of a server on this machine nothing but the load's own connections is wanted: the kernel says whether it listens.
    if study.server == ServerLocation::Here && study.run.generator.far.is_empty() {
        assert_eq!(ledger.connections, tally.connections_opened);
    }
    assert_eq!(ledger.bad_requests, 0);
    assert_eq!(ledger.requests, tally.all_requests());
    assert_eq!((ledger.received_bytes, ledger.sent_bytes), (tally.sent_bytes, tally.received_bytes));
}

pub(crate) fn outcomes(study: &LoadStudy) -> Vec<(Outcome, u64)> {
    study.run.tally.counts.iter().collect()
}

/// A file of the test's folder as a word.
pub(crate) fn word(path: &Path) -> String {
    path.display().to_string()
}
