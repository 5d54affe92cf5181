//! Which figures raise which warning, and that each has a sentence and a hint.

use model::{Exchange, Forecast, GeneratorFacts, LaneFacts, Outcome, Rate, Tally, Window};
use strum::IntoEnumIterator as _;

use super::*;

/// A window without an end.
const ENDLESS: Window = Window { from: Nanos::ZERO, until: Nanos::MAX };

/// A good response; times in ms.
fn exchange(due: u64, sent: u64, ended: u64) -> Exchange {
    let [due, sent, ended] = [due, sent, ended].map(Nanos::from_millis);
    Exchange { due, sent, ended, received_bytes: 1, outcome: Outcome::Answered(200) }
}

const KEPT: RunSetting<'_> = RunSetting { keep_alive: true, placement: None, ended_by: None };

fn tally(good: u64, timed_out: u64) -> Tally {
    let mut tally = Tally::new(ENDLESS, 2);
    for n in 0..good + timed_out {
        let outcome = if n < good { Outcome::Answered(200) } else { Outcome::TimedOut };
        tally.record(&Exchange { outcome, ..exchange(0, 0, 100) }, usize::from(n % 10 == 0));
    }
    tally
}

fn run(good: u64, timed_out: u64) -> Run {
    let length = Nanos::from_secs(10);
    Run {
        forecast: Some(Forecast {
            service_time: Nanos::from_millis(100),
            maximum_rate: 20.0,
            ideal_response_time: Nanos::from_millis(100),
        }),
        ..Run::recorded(2, tally(good, timed_out), length, length)
    }
}

fn of(run: &Run) -> Vec<Diagnostic> {
    warnings_of_run(run, KEPT)
}

#[test]
fn a_run_is_doubted_by_its_counts() {
    let outcomes = vec!["timed_out".to_owned()];
    let hidden = Diagnostic::QuantilesHidden { from: 0.99, unanswered: 2, outcomes };
    let too_few = Diagnostic::TooFewRequests { from: 0.999, answers: 150, worth: None };
    let unfair =
        |warnings: &[Diagnostic]| warnings.iter().any(|it| matches!(it, Diagnostic::Unfair { .. }));
    let above = |warnings: &[Diagnostic]| {
        warnings.iter().any(|it| matches!(it, Diagnostic::AboveMaximum { .. }))
    };
    let timed_out = of(&run(198, 2));
    let few = of(&run(150, 0));
    let many = of(&run(300, 0));
    assert!(
        timed_out.contains(&Diagnostic::Failures { failed: 2, planned: 200 })
            && timed_out.contains(&hidden)
    );
    assert!(few.contains(&too_few), "{few:?}");
    assert!(unfair(&few), "one connection gets nine tenths");
    assert_eq!((above(&few), above(&many)), (false, true), "the maximum is 20 a second for 10 s");
}

#[test]
fn responses_without_a_kernel_stamp_raise_a_warning_if_stamps_were_requested() {
    let mut run = run(150, 0);
    let unstamped = Diagnostic::Unstamped { answers: 2, of: 150 };
    run.generator.clock_steps = Some(0);
    (0..148).for_each(|_| run.tally.read_lag.record(Nanos(5_000)));
    assert!(of(&run).contains(&unstamped));
    run.generator.clock_steps = None;
    assert!(!of(&run).contains(&unstamped));
}

#[test]
fn the_lanes_share_of_the_servers_cpus_raises_a_warning() {
    let lane = |percent| LaneFacts {
        cpu: Nanos::from_millis(10 * percent + 500),
        spun: Nanos::from_millis(500),
        elapsed: Nanos::from_secs(1),
        run_queue: Nanos::ZERO,
        ..LaneFacts::default()
    };
    let doubt = |server: &str, lanes: &str, percents: &[u64]| {
        let placement =
            Placement { server: server.parse().unwrap(), lanes: lanes.parse().unwrap() };
        let facts = GeneratorFacts {
            lanes: percents.iter().copied().map(lane).collect(),
            ..Default::default()
        };
        shared_cpus::ask(&facts, Some(&placement))
    };
    let taken = |cpus: &str, taken: f64| {
        Some(Diagnostic::SharedCpus { cpus: cpus.parse().unwrap(), taken })
    };
    assert_eq!(doubt("0-1", "0-1", &[50]), taken("0-1", 0.25), "busy polling is no work");
    assert_eq!(doubt("0-1", "0-1", &[50, 150]), taken("0-1", 1.0));
    assert_eq!(doubt("0-1", "0-1", &[1]), None);
    assert_eq!(doubt("0", "1", &[100, 90]), None);
    // Two lanes on three CPUs, one of them the server's.
    assert_eq!(
        (doubt("0", "0-2", &[100, 100]), doubt("0", "0-1", &[75, 75])),
        (None, taken("0", 0.5))
    );
    assert_eq!(shared_cpus::ask(&GeneratorFacts::default(), None), None);
    let grade = |taken| shared_cpus::assess(&"0-1".parse().unwrap(), taken).grade;
    assert_eq!([0.01, 0.049, 0.05].map(grade), [Grade::Note, Grade::Note, Grade::Doubtful]);
}

#[test]
fn a_server_that_takes_no_connections_for_a_while_is_not_the_generators_lag() {
    let mut load = Run::recorded(2, tally(422, 0), Nanos::from_secs(9), Nanos::from_secs(9));
    load.tally.sent_in_window = 422;
    let pace = Pace::constant(Rate::new(50.0).unwrap());
    let is_late = |load: &Run| {
        let named = warnings_of_load(load, &pace, KEPT);
        named.iter().any(|warning| matches!(warning, Diagnostic::SentInTime { .. }))
    };
    (0..28).for_each(|_| load.tally.counts.record(Outcome::Refused));
    assert!(!is_late(&load));
    (0..28).for_each(|_| load.tally.counts.record(Outcome::NotSent));
    assert!(is_late(&load), "those that it could have sent count");
}

#[test]
fn a_generator_that_did_not_keep_up_raises_warnings() {
    let mut load = Run::recorded(2, tally(1000, 0), Nanos::from_secs(1), Nanos::from_secs(2));
    load.tally.sent_in_window = 980;
    load.tally.queued.record(Nanos::from_millis(7));
    let pace = Pace::constant(Rate::new(1000.0).unwrap());
    let late = Diagnostic::SentInTime { sent: 980, due: 1000 };
    let named = warnings_of_load(&load, &pace, KEPT);
    let longest = Nanos::from_millis(7);
    for warning in [&late, &Diagnostic::QueuedInGenerator { requests: 1, longest }] {
        assert!(named.contains(warning), "{named:?}");
    }
    assert!(!warnings_of_load(&load, &Pace::Closed, KEPT).contains(&late));
    // The others waited for the server, which kept all connections busy.
    (0..19).for_each(|_| load.tally.queued.record(Nanos::from_millis(7)));
    assert!(!warnings_of_load(&load, &pace, KEPT).contains(&late));
}

#[test]
fn waiting_for_delayed_acknowledgements_raises_a_warning() {
    let of = |milliseconds: [u64; 3], bytes: u64| {
        let mut tally = Tally::new(ENDLESS, 1);
        for ms in milliseconds {
            tally.phases.read.record(Nanos::from_millis(ms));
        }
        tally.received_bytes = 3 * bytes;
        delayed_ack::of(&tally)
    };
    // uvicorn with an app of 10 ms: 40 to 48 ms between head and body of each response.
    assert_eq!(
        of([40, 42, 44], 158),
        Some(Diagnostic::DelayedAck { waited: Nanos::from_millis(42) })
    );
    assert_eq!(of([0, 0, 1], 158), None, "head and body almost in one piece");
    assert_eq!(of([40, 42, 44], 1 << 20), None, "a megabyte takes its time");
    assert_eq!(of([300, 300, 300], 158), None, "an app that streams");
}

#[test]
fn each_diagnostic_has_a_sentence_and_a_hint_and_survives_json() {
    let of_no_cpu = |diagnostic: &Diagnostic| matches!(diagnostic, Diagnostic::SharedCpus { .. });
    for diagnostic in Diagnostic::iter().filter(|diagnostic| !of_no_cpu(diagnostic)) {
        let assessment = assess(&diagnostic);
        assert!(!assessment.sentence.is_empty() && !assessment.hint.is_empty(), "{diagnostic:?}");
        let file = serde_json::to_string(&diagnostic).unwrap();
        assert_eq!(serde_json::from_str::<Diagnostic>(&file).unwrap(), diagnostic, "{file}");
    }
}
