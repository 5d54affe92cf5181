//! `longtail load` and `longtail attack` as a user types them, against a sink or a server of the test that counts what it got.

mod endings;
mod examples;
mod judging;
mod logs;
mod mistakes;
mod other_tools;
mod pace;

use std::path::Path;

use model::{LoadStudy, Outcome, Study};
use sink::{Sink, SinkBody, SinkSettings};

use crate::clock::SteadyClock;
use crate::lab::{Ended, Lab, Running};

/// A sink that answers at once.
pub(crate) fn sink(body: SinkBody) -> Sink {
    sink_at("127.0.0.1:0", body)
}

pub(crate) fn sink_at(place: &str, body: SinkBody) -> Sink {
    let place = place.parse().unwrap();
    Sink::start(SinkSettings { listen: vec![place], body, ..SinkSettings::default() }, SteadyClock).unwrap()
}

pub(crate) fn url(sink: &Sink) -> String {
    format!("http://{}/", sink.address())
}

/// Runs `longtail load` with these words, which may be quoted as for a shell. The generator's own limit is not of interest here.
pub(crate) fn load(lab: &Lab, words: &str) -> Ended {
    Running::start(&mut lab.longtail_of(split(&format!("load --no-calibrate {words}")))).end()
}

/// The words of a command line, single quotes as in a shell.
pub(crate) fn split(words: &str) -> Vec<String> {
    let mut found = vec![];
    let mut word: Option<String> = None;
    for (part, text) in words.split('\'').enumerate() {
        if part % 2 == 1 {
            word.get_or_insert_default().push_str(text);
            continue;
        }
        for char in text.chars() {
            if char.is_whitespace() {
                found.extend(word.take());
            } else {
                word.get_or_insert_default().push(char);
            }
        }
    }
    found.extend(word);
    found
}

/// The one study that was kept.
pub(crate) fn study(lab: &Lab) -> LoadStudy {
    let studies = lab.studies();
    assert_eq!(studies.len(), 1, "{studies:?}");
    read(&studies[0])
}

pub(crate) fn read(path: &Path) -> LoadStudy {
    let Study::Load(study) = report::json::read(&std::fs::read_to_string(path).unwrap()).unwrap() else {
        panic!("not of a load: {}", path.display())
    };
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
    assert_eq!((ledger.requests, ledger.bad_requests), (tally.all_requests(), 0));
    assert_eq!((ledger.received_bytes, ledger.sent_bytes), (tally.sent_bytes, tally.received_bytes));
}

pub(crate) fn outcomes(study: &LoadStudy) -> Vec<(Outcome, u64)> {
    study.run.tally.counts.iter().collect()
}

/// A file of the test's folder as a word.
pub(crate) fn word(path: &Path) -> String {
    path.display().to_string()
}
