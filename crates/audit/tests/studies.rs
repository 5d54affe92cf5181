//! longtail's own studies: an honest one is never called impossible, and a number that was changed is found out.

use audit::{Audited, Check, Verdict};
use model::{LoadStudy, Study, SweepStudy};
use report::json;
use serde_json::{Value, json};
use testkit::{claimed, load, study};

fn text(study: impl Into<Study>) -> String {
    json::write(&study.into())
}

fn audited(text: &str) -> Vec<Audited> {
    audit::study(text).expect("it is a study").expect("it is whole")
}

fn is_impossible(one: &Audited) -> bool {
    matches!(one.verdict, Verdict::Impossible { .. })
}

/// Studies whose figures were all made by playing a load, but for their warnings, which were set for show.
fn sweeps() -> Vec<SweepStudy> {
    let mut all = vec![
        study::canonical(),
        study::with_workers(8),
        study::single_mode(),
        study::failing(),
        study::short(),
        study::tiny(),
        study::judged(),
        watched(),
    ];
    for study in &mut all {
        study.runs.iter_mut().for_each(|run| run.warnings.clear());
        // Of those whose runs were replaced by longer ones.
        study.total_time = study.total_time.max(study.runs.iter().map(|run| run.elapsed).sum());
    }
    all
}

/// The one that was looked at, whose send lags were made without those of its load: half of each.
fn watched() -> SweepStudy {
    let mut study = study::watched();
    for anatomy in study.runs.iter_mut().filter_map(|run| run.anatomy.as_mut()) {
        for parts in anatomy.slowest.iter_mut().chain([&mut anatomy.all]) {
            let half = parts.send_lag / 2;
            parts.send_lag = parts.send_lag - half;
            parts.before_app = parts.before_app.map(|before| before + half);
        }
    }
    study
}

fn loads() -> Vec<LoadStudy> {
    let mut all = vec![
        load::closed(),
        load::closed_counted(),
        load::open_poisson(),
        load::overloaded(),
        load::failing(),
        load::refused(),
        load::skipped(),
        load::tiny(),
    ];
    for study in &mut all {
        study.run.warnings.clear();
    }
    all
}

#[test]
fn honest_studies_are_possible() {
    let sweeps = sweeps().into_iter().map(text);
    for text in sweeps.chain(loads().into_iter().map(text)) {
        let all = audited(&text);
        assert!(!all.is_empty() && !all.iter().any(is_impossible), "{}", audit::text(&all));
    }
}

/// Every number in the value, as a JSON pointer.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at.to_owned()),
        Value::Array(all) => all.iter().enumerate().for_each(|(n, one)| numbers(one, &format!("{at}/{n}"), found)),
        Value::Object(all) => all.iter().for_each(|(key, one)| numbers(one, &format!("{at}/{key}"), found)),
        _ => {}
    }
}

/// Another number of the same kind: half as much again, and some more.
fn changed(number: &Value) -> Value {
    match number.as_u64() {
        Some(n) => json!(n + n / 2 + 3),
        None => json!(number.as_f64().unwrap() * 1.5 + 0.1),
    }
}

/// The numbers that can be changed, one at a time, without the audit finding out.
fn undetected(text: &str) -> Vec<String> {
    let honest: Value = serde_json::from_str(text).unwrap();
    let mut all = Vec::new();
    numbers(&honest, "", &mut all);
    let hides = |at: &String| {
        let mut study = honest.clone();
        let number = study.pointer_mut(at).unwrap();
        *number = changed(number);
        match audit::study(&study.to_string()) {
            None | Some(Err(_)) => false,
            Some(Ok(all)) => !all.iter().any(is_impossible),
        }
    };
    all.into_iter().filter(hides).collect()
}

/// What was asked for and leaves no trace in the counts, what only one source knows, and when a request was due.
const ON_ITS_OWN: [&str; 32] = [
    "/environment/",
    "/plan/repeat",
    "/plan/server/",
    "/plan/stream/delay_ns",
    "/plan/stream/lanes",
    "/plan/stream/timeout_ns",
    "/plan/stream/warm_up_ns",
    "/plan/lanes",
    "/lanes_by/",
    "/plan/pace/",
    "/plan/pipeline",
    "/plan/think_ns",
    "/plan/timeout_ns",
    "/plan/warm_up_ns",
    "/generator/ceiling/cpu_per_request_ns",
    "/generator/ceiling/floor_",
    "/readings/",
    "/log_dropped",
    "/elapsed_ns",
    "/total_time_ns",
    "/tally/closed_by_server",
    "/tally/closed_for_unasked",
    "/tally/connections_opened",
    "/tally/network/",
    // The evidence of a limit: what it follows from is judged, and not kept twice.
    "/judgement/limit/",
    "/tally/received_bytes",
    "/tally/body_bytes",
    "/tally/sent_bytes",
    "/due_ns",
    // A shortest or longest of 3 ns is less than the sum of many can tell.
    "/tally/phases/",
    // An interval's ends leave a range for its percentile, and of failures nobody can tell it.
    "/statistics/intervals/",
    // It was read meanwhile, and nobody else knows it.
    "/statistics/backlog/",
];

fn assert_found_out(text: &str) {
    let mut hidden = undetected(text);
    hidden.retain(|at| !ON_ITS_OWN.iter().any(|known| at.contains(known)));
    assert!(hidden.is_empty(), "changed, and nobody saw it: {hidden:#?}");
}

#[test]
fn every_number_of_a_sweep_that_follows_from_others_is_found_out() {
    let mut study = study::tiny();
    study.runs[0].warnings.clear();
    assert_found_out(&text(study));
}

#[test]
fn every_number_of_a_load_that_follows_from_others_is_found_out() {
    let mut study = load::tiny();
    study.run.warnings.clear();
    assert_found_out(&text(study));
}

/// What the audit finds where these numbers are changed, each alone.
#[track_caller]
fn found_by(text: &str, changes: &[(&str, Check)]) {
    let honest: Value = serde_json::from_str(text).unwrap();
    for (at, check) in changes {
        let mut study = honest.clone();
        let number = study.pointer_mut(at).unwrap_or_else(|| panic!("no {at}"));
        *number = changed(number);
        let all = audited(&study.to_string());
        let found = all.iter().any(|one| match &one.verdict {
            Verdict::Impossible { by } => by.contains(check),
            _ => false,
        });
        assert!(found, "{at} is not found out by {check:?}: {}", audit::text(&all));
    }
}

#[test]
fn each_check_finds_its_own_number() {
    let mut study = study::judged();
    study.runs.iter_mut().for_each(|run| run.warnings.clear());
    let gates = &study.runs[0].judgement.as_ref().unwrap().gates;
    let headroom = gates.iter().position(|gate| matches!(gate, model::Gate::Headroom { .. })).unwrap();
    let gate = format!("/runs/0/judgement/gates/{headroom}/times");
    found_by(
        &text(study),
        &[
            ("/runs/0/tally/counts/200", Check::OutcomesAddUp),
            ("/runs/0/tally/response_time/buckets/0/1", Check::HistogramAddsUp),
            ("/runs/0/tally/send_lag/sum_ns", Check::LagAndService),
            ("/runs/0/tally/series/0/completed", Check::SecondsAddUp),
            ("/runs/0/tally/slowest/0/response_time_ns", Check::SlowestRequests),
            ("/runs/0/tally/per_connection/0", Check::ConnectionsAddUp),
            ("/runs/0/workers/0/requests", Check::WorkersAddUp),
            ("/runs/0/tally/completed_in_window", Check::Window),
            ("/runs/0/measured_ns", Check::Window),
            ("/runs/0/forecast/maximum_rate_per_s", Check::Theory),
            ("/runs/0/connections", Check::Theory),
            ("/runs/0/multiple", Check::Runs),
            (&gate, Check::Judgement),
        ],
    );
}

#[test]
fn what_was_seen_meanwhile_must_be_one_story() {
    let mut study = watched();
    study.runs.iter_mut().for_each(|run| run.warnings.clear());
    let watch = study.runs[1].watch.as_mut().unwrap();
    // Half of the connections have something unread, and a capacity stands beside the busy threads.
    let sockets = watch.tracks.iter_mut().find(|track| track.source == "sock_diag").unwrap();
    let open = sockets.curves.iter().find(|curve| curve.name == "open_connections").unwrap().clone();
    let unread = model::watch::Curve { name: "unread_connections".to_owned(), ..open };
    sockets.curves.push(unread);
    let stats = watch.tracks.iter_mut().find(|track| track.source == "puma stats").unwrap();
    let busy = stats.curves.iter().find(|curve| curve.name == "busy_threads").unwrap().clone();
    stats.curves.push(model::watch::Curve { name: "pool_capacity".to_owned(), ..busy });
    let text = text(study);
    let at = |rest: &str| format!("/runs/1/watch/tracks/{rest}");
    let of = |rest: &str| format!("/runs/1/anatomy/{rest}");
    let seen = [
        // Times of looks, and what counts up: the first is 0.
        at("0/at_ns/100"),
        at("1/at_ns/3"),
        at("1/curves/0/values/0"),
        at("1/curves/0/values/20"),
        at("1/curves/1/values/39"),
        at("1/curves/3/values/5"),
        at("0/curves/3/values/12"),
        at("2/curves/1/values/4"),
        at("2/curves/4/values/4"),
    ];
    let dissected = [
        of("silent"),
        of("impossible"),
        of("all/requests"),
        of("all/response_time_sum_ns"),
        of("all/before_app_sum_ns"),
        of("slowest/requests"),
        of("slowest/response_time_sum_ns"),
        of("slowest/before_app_sum_ns"),
    ];
    let seen = seen.iter().map(|at| (at.as_str(), Check::Watch));
    let all: Vec<(&str, Check)> = seen.chain(dissected.iter().map(|at| (at.as_str(), Check::Anatomy))).collect();
    assert!(!audited(&text).iter().any(is_impossible), "{}", audit::text(&audited(&text)));
    found_by(&text, &all);
    // A curve that lacks a look.
    let mut short: Value = serde_json::from_str(&text).unwrap();
    short.pointer_mut(&at("1/curves/0/values")).unwrap().as_array_mut().unwrap().pop();
    assert!(audited(&short.to_string()).iter().any(is_impossible));
}

#[test]
fn a_warning_must_say_what_the_figures_say() {
    let mut study = study::tiny();
    study.runs[0].warnings = vec![model::Diagnostic::TooFewRequests { from: 0.99, answers: 9, worth: None }];
    assert!(!audited(&text(study.clone())).iter().any(is_impossible));
    study.runs[0].warnings = vec![model::Diagnostic::TooFewRequests { from: 0.99, answers: 8, worth: None }];
    assert!(audited(&text(study)).iter().any(is_impossible));
}

#[test]
fn what_is_no_study_is_left_to_the_others() {
    for text in ["", "{}", "[1]", "Running 1s test @ http://x", r#"{"schema": 1}"#] {
        assert!(audit::study(text).is_none(), "{text}");
    }
    for text in [r#"{"schema": 1, "command": "load"}"#, r#"{"schema": 99, "command": "load"}"#] {
        assert!(audit::study(text).is_some_and(|read| read.is_err()), "{text}");
    }
}

#[test]
fn no_number_makes_it_panic() {
    for text in [text(study::tiny()), text(load::tiny()), text(claimed::wrk_load()), text(claimed::hey_sweep())] {
        let honest: Value = serde_json::from_str(&text).unwrap();
        let mut all = Vec::new();
        numbers(&honest, "", &mut all);
        for at in all {
            for value in [json!(u64::MAX), json!(0), json!(-1), json!(1e300)] {
                let mut study = honest.clone();
                *study.pointer_mut(&at).unwrap() = value;
                if let Some(Ok(all)) = audit::study(&study.to_string()) {
                    audit::text(&all);
                }
            }
        }
    }
    // All of them at once.
    let largest = text(study::tiny());
    let mut study: Value = serde_json::from_str(&largest).unwrap();
    let mut all = Vec::new();
    numbers(&study["runs"], "/runs", &mut all);
    for at in all {
        *study.pointer_mut(&at).unwrap() = json!(u64::MAX);
    }
    assert!(audited(&study.to_string()).iter().any(is_impossible));
}

#[test]
fn a_figure_of_another_generator_must_be_that_of_its_output() {
    let mut study = claimed::wrk_load();
    let found = |study: &model::ClaimedLoadStudy| match &audited(&text(study.clone()))[0].verdict {
        Verdict::Impossible { by } => by.contains(&Check::KeptFigures),
        _ => false,
    };
    assert!(!found(&study), "{}", audit::text(&audited(&text(study))));
    study.run.claim.percentiles[3].time = model::Nanos::from_millis(1);
    assert!(found(&study));
}

#[test]
fn each_bad_response_has_a_reason_and_an_older_file_says_none() {
    let mut study = load::failing();
    study.run.warnings.clear();
    let text = text(study);
    found_by(&text, &[("/run/tally/bad_responses/content_length", Check::OutcomesAddUp)]);
    let mut older: Value = serde_json::from_str(&text).unwrap();
    assert!(older["run"]["tally"]["counts"]["bad_response"].as_u64() > Some(1));
    older["run"]["tally"]["bad_responses"] = serde_json::json!({});
    assert!(audited(&older.to_string()).iter().any(is_impossible), "they are missing where they are counted");
    let tally = older["run"]["tally"].as_object_mut().unwrap();
    tally.remove("bad_responses");
    tally.remove("wrong_lengths");
    assert!(!audited(&older.to_string()).iter().any(is_impossible));
}

#[test]
fn answers_of_a_wrong_length_are_counted_and_are_of_another() {
    let with = |wanted, shortest, longest, counted: bool| {
        let mut study = load::failing();
        study.run.warnings.clear();
        study.run.tally.wrong_lengths =
            Some(model::WrongLengths { wanted_bytes: wanted, shortest_bytes: shortest, longest_bytes: longest });
        let text = text(study);
        let text = if counted { text.replace("\"closed_early\"", "\"wrong_length\"") } else { text };
        let all = audited(&text);
        all.iter().any(is_impossible)
    };
    assert!(!with(100, 0, 99, true) && !with(100, 0, 101, true));
    assert!(with(100, 0, 99, false), "none is counted");
    assert!(with(100, 99, 0, true) && with(100, 100, 100, true) && with(100, 99, 100, true));
}
