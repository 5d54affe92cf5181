//! Two checks whose expected result only the test itself knows; the others are in `situations`.

use std::io::Write as _;
use std::net::TcpListener;

use judge::Grade;
use model::{Arrivals, Clock as _, Diagnostic, Judgement, LoadStudy, Nanos, Pace, Profile, Rate};
use rustix::process::Signal;
use sink::SinkBody;
use testkit::clock::{REAL_CLOCK, eventually};
use testkit::http::KeptRequest;

use crate::lab::{Lab, PATIENCE};
use crate::load::{load, sink, study, url};

fn judgement(study: &LoadStudy) -> &Judgement {
    study.run.judgement.as_ref().unwrap()
}

/// The grade of the check that `is` selects; `None` if it didn't apply.
fn grade(judgement: &Judgement, is: impl Fn(&Diagnostic) -> bool) -> Option<Grade> {
    judgement.checks.iter().find(|check| is(check)).map(judge::grade)
}

/// A load of one request. The generator is stopped when the request has arrived, and only then does
/// the server respond. Also returns half of the time for which the response was certainly unread.
fn read_late(words: &str) -> (LoadStudy, Nanos) {
    let lab = Lab::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let begun = REAL_CLOCK.now();
    let words =
        format!("load --no-calibrate -n 1 -c 1 {words} http://{}/", listener.local_addr().unwrap());
    let running = lab.start(&words);
    let (mut stream, _) =
        eventually(PATIENCE, || "no connection".to_owned(), || listener.accept().ok());
    stream.set_nonblocking(false).unwrap();
    KeptRequest::read(&mut stream).unwrap();
    running.send(Signal::STOP);
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    let answered = REAL_CLOCK.now();
    // Wait at least as long as everything took until now, so that the delay is clear however slow
    // the machine is.
    REAL_CLOCK.sleep(Nanos::from_secs(1) + (answered - begun));
    let unread = REAL_CLOCK.now() - answered;
    running.send(Signal::CONT);
    running.end().with_code(0);
    (study(&lab), unread / 2)
}

#[test]
fn time_in_which_the_generator_was_stopped_is_not_in_times_by_kernel_stamps() {
    let (user, unread) = read_late("--timestamps user");
    assert!(
        user.run.tally.response_time.max() > Some(unread),
        "without kernel stamps the delay is in the times"
    );
    let (study, unread) = read_late("--timestamps kernel");
    let tally = &study.run.tally;
    assert!(tally.read_lag.max() > Some(unread), "{:?} of {unread}", tally.read_lag.max());
    assert!(tally.response_time.max() < tally.read_lag.max(), "{:?}", tally.response_time.max());
    let judgement = judgement(&study);
    assert_eq!(
        grade(judgement, |check| matches!(check, Diagnostic::ReadLag { .. })),
        Some(Grade::Failed),
        "{judgement:?}"
    );
}

#[test]
fn an_unusual_number_of_random_arrivals_raises_a_warning() {
    let due = |seed| {
        let profile = Profile::Flat { rate: Rate::new(100.0).unwrap() };
        let pace = Pace::Open { profile, arrivals: Arrivals::Poisson, seed, burst: 1 };
        pace.schedule().unwrap().take_while(|due| *due < Nanos::from_secs(1)).count()
    };
    // About one seed in a few hundred.
    let rare = (1..100_000).find(|seed| due(*seed).abs_diff(100) > 30).unwrap();
    let sink = sink(SinkBody::Ok);
    for (seed, expected) in [(rare, Grade::Doubtful), (1, Grade::Passed)] {
        let lab = Lab::new();
        load(
            &lab,
            &format!("--rate 100/s --arrivals poisson --seed {seed} --for 1s {}", url(&sink)),
        )
        .with_code(0);
        let study = study(&lab);
        assert_eq!(study.run.tally.counts.total(), due(seed) as u64);
        assert_eq!(
            grade(judgement(&study), |check| matches!(check, Diagnostic::PoissonCount { .. })),
            Some(expected)
        );
    }
}
