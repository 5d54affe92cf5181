//! Studies of `longtail capacity` for tests. The runs of their trials are those of loads; what was
//! counted in them, and the bracket, are set as a search would have left them.

use model::study::SCHEMA;
use model::{
    BeyondRun, CapacityBracket, CapacityForecast, CapacityPlan, CapacityStudy, CapacityTarget,
    CapacityTheory, CapacityTrial, EndOfBeyond, LateRequests, Nanos, Run, SearchEnd, SizeSearch,
    TrialPurpose, TrialResult,
};

use crate::load;
use crate::machine::environment;

/// A search that found a bracket: two rates failed, the one below them passed and was confirmed.
///
/// # Panics
/// Never: the conditions are constants.
pub fn found() -> CapacityStudy {
    let kept = load::open_poisson();
    let broken = load::overloaded().run;
    let failed = TrialResult::Failed { objective: 0 };
    let trials = vec![
        trial(TrialPurpose::Scout, 540.0, TrialResult::Undecided, 11, &kept.run),
        trial(TrialPurpose::Narrow, 572.0, failed, 412, &broken),
        trial(TrialPurpose::Narrow, 500.0, TrialResult::Passed, 48, &kept.run),
        trial(TrialPurpose::Narrow, 545.0, failed, 260, &broken),
        trial(TrialPurpose::Confirm, 500.0, TrialResult::Undecided, 60, &kept.run),
        trial(TrialPurpose::FromAbove, 500.0, TrialResult::Undecided, 71, &kept.run),
    ];
    CapacityStudy {
        schema: SCHEMA,
        started_at: "2026-11-25T12:00:00Z".to_owned(),
        command_line: "longtail capacity --objective 'p99 < 200ms' http://127.0.0.1:9292/".into(),
        plan: CapacityPlan {
            target: CapacityTarget::Running(Box::new(kept.plan)),
            objectives: vec!["p99 < 200ms".parse().expect("a condition")],
            precision: 0.05,
            budget: Nanos::from_secs(900),
            seed: 1,
            expected: vec!["capacity > 450/s".parse().expect("a condition")],
            beyond: vec![2.0],
            sizes: Vec::new(),
            retry: Some("3:200ms".parse().expect("a policy")),
        },
        environment: environment(),
        server: None,
        closed_loop: Some(Box::new(load::closed().run)),
        trials,
        bracket: CapacityBracket { low: 500.0, high: Some(572.0) },
        seems: CapacityBracket { low: 540.0, high: Some(545.0) },
        confirmations: 2,
        is_monotone: true,
        end: Some(SearchEnd::Budget),
        server_end: None,
        theory: Some(CapacityTheory { constant: 561.0, exponential: 533.0 }),
        forecast: Some(CapacityForecast {
            width: Some(0.13),
            both_ends_after: Some(Nanos::from_secs(900)),
            precise_after: Some(Nanos::from_secs(3600)),
        }),
        beyond: vec![beyond(broken)],
        sizes: Vec::new(),
        total_time: Nanos::from_secs(871),
        interrupted: false,
    }
}

/// What happened at twice the capacity: most responses came late, and after 14 s it had recovered.
fn beyond(run: Run) -> BeyondRun {
    BeyondRun {
        times: 2.0,
        rate: 1000.0,
        length: Nanos::from_secs(10),
        requests: 10_000,
        in_time: 310,
        failed: 0,
        p99: Some(Nanos::from_millis(4_300)),
        rate_after: 250.0,
        watched: Nanos::from_secs(30),
        recovered_after: Some(Nanos::from_millis(14_250)),
        backlog: 4_020,
        retries: 7_311,
        at_end: Some(EndOfBeyond {
            length: Nanos::from_secs(10),
            requests: 2_504,
            late: 2,
            retries: 0,
        }),
        run,
    }
}

/// A search that the user stopped before any rate had passed or failed.
///
/// # Panics
/// Never, as [`found`].
pub fn stopped() -> CapacityStudy {
    let mut study = found();
    study.trials.truncate(1);
    study.trials[0].result = TrialResult::BrokenOff;
    study.plan.expected.clear();
    study.bracket = CapacityBracket::default();
    study.seems = CapacityBracket { low: 540.0, high: None };
    study.confirmations = 0;
    study.beyond.clear();
    study.forecast = None;
    study.end = Some(SearchEnd::User);
    study.interrupted = true;
    study
}

/// Searches of three sizes, of which the last takes the most.
///
/// # Panics
/// Never, as [`found`].
pub fn sizes() -> CapacityStudy {
    let brackets = [("2x1", 58.0, 66.0), ("2x3", 180.0, 199.0), ("2x5", 301.0, 330.0)];
    let sweep = crate::study::canonical();
    let mut study = stopped();
    study.command_line = "longtail capacity --try 2x1,2x3,2x5 -r config.ru --budget 15m".into();
    study.plan.target = CapacityTarget::Started {
        server: Box::new(sweep.plan.server.clone()),
        stream: Box::new(sweep.plan.stream.clone()),
    };
    study.trials.clear();
    study.closed_loop = None;
    study.theory = None;
    study.end = None;
    study.interrupted = false;
    study.seems = CapacityBracket::default();
    study.plan.beyond.clear();
    study.plan.retry = None;
    for (size, low, high) in brackets {
        let mut search = found();
        search.plan.target = study.plan.target.clone();
        search.server = Some(sweep.server.clone());
        search.plan.expected.clear();
        search.plan.beyond.clear();
        search.plan.retry = None;
        search.beyond.clear();
        search.bracket = CapacityBracket { low, high: Some(high) };
        search.seems = search.bracket;
        for trial in &mut search.trials {
            trial.rate *= low / 500.0;
        }
        let size = size.parse().expect("a size");
        study.plan.sizes.push(size);
        study.sizes.push(SizeSearch { size, search });
    }
    study
}

/// Each of them.
///
/// # Panics
/// Never, as [`found`].
pub fn every() -> Vec<CapacityStudy> {
    vec![found(), stopped(), sizes()]
}

fn trial(
    purpose: TrialPurpose,
    rate: f64,
    result: TrialResult,
    late: u64,
    run: &Run,
) -> CapacityTrial {
    let requests = (rate * 15.0) as u64;
    let late = LateRequests { requests, late, allowed: 0.01, inflation: 4.0 };
    let at = Nanos::from_secs(5);
    CapacityTrial { purpose, rate, seed: 1, at, result, late: vec![late], run: run.clone() }
}
