//! Studies of runs that other generators made, for tests: no generator is run, its output is written down here.

use std::collections::BTreeMap;

use model::claimed::{Believable, ClaimFinding, ClaimedFigures, ClaimedPercentile, FindingGrade};
use model::run::ShareSource;
use model::study::SCHEMA;
use model::{ClaimedLoadStudy, ClaimedRow, ClaimedRun, Diagnostic, Nanos, Stop, SweepStudy, WorkerShare};

use crate::{load, study};

const WRK: &str = "\
Running 2s test @ http://127.0.0.1:9292/
  1 threads and 20 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   245.33ms  300.00ms   1.41s    80.00%
    Req/Sec   100.00     20.00   120.00     70.00%
  Latency Distribution
     50%  101.00ms
     75%  101.50ms
     90%  863.00ms
     99%    1.31s
  190 requests in 2.00s, 20.00KB read
Requests/sec:     94.87
Transfer/sec:     10.00KB
";

/// wrk on 20 connections: its mean is more than Little's law allows, and the audit says why.
pub fn wrk_run() -> ClaimedRun {
    let percentile = |quantile, ms| ClaimedPercentile { quantile, time: Nanos::from_micros(ms) };
    let finding = |is, check: &str, text: &str| ClaimFinding { check: check.to_owned(), is, text: text.to_owned() };
    ClaimedRun {
        by: "wrk".to_owned(),
        version: Some("4.1.0".to_owned()),
        command_line: "/usr/bin/wrk -t1 -c20 --latency --timeout 30s -d 2s http://127.0.0.1:9292/".to_owned(),
        connections: 20,
        claim: ClaimedFigures {
            requests: Some(190),
            failed: Some(0),
            rate_per_s: Some(94.87),
            duration: Some(Nanos::from_secs(2)),
            mean: Some(Nanos(245_330_000)),
            stdev: Some(Nanos::from_millis(300)),
            min: None,
            max: Some(Nanos::from_millis(1410)),
            percentiles: vec![
                percentile(0.5, 101_000),
                percentile(0.75, 101_500),
                percentile(0.9, 863_000),
                percentile(0.99, 1_310_000),
            ],
            statuses: BTreeMap::new(),
            received_bytes: Some(20_480.0),
        },
        output: WRK.to_owned(),
        warm_up_requests: Some(90),
        audit: Believable::Impossible,
        findings: vec![
            finding(FindingGrade::Fails, "Little's law", "23.3 requests at once, and there can be 20."),
            finding(FindingGrade::Doubtful, "phantom samples", "about 18.7 % of its samples were never sent."),
        ],
        cpu: Some(Nanos::from_millis(20)),
        elapsed: Nanos::from_millis(2010),
        steal: Some(0.02),
        listen_overflows: Some(0),
        warnings: Vec::new(),
    }
}

/// hey on 20 connections: more percentiles, statuses, no version, a failure.
fn hey_run() -> ClaimedRun {
    let percentile = |quantile| ClaimedPercentile { quantile, time: Nanos::from_secs_f64(0.2 + quantile / 100.0) };
    ClaimedRun {
        by: "hey".to_owned(),
        version: None,
        command_line: "/usr/bin/hey -cpus 1 -c 20 -t 30 -disable-redirects -n 2000 http://127.0.0.1:9292/".to_owned(),
        claim: ClaimedFigures {
            requests: Some(2000),
            failed: Some(3),
            rate_per_s: Some(97.04),
            mean: Some(Nanos::from_millis(205)),
            min: Some(Nanos::from_millis(200)),
            max: Some(Nanos::from_millis(260)),
            percentiles: [0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99].map(percentile).to_vec(),
            statuses: BTreeMap::from([("200".to_owned(), 1997), ("503".to_owned(), 3)]),
            ..ClaimedFigures::default()
        },
        output: "\nSummary:\n  Total:\t20.61 secs\n".to_owned(),
        warm_up_requests: None,
        audit: Believable::Possible,
        findings: Vec::new(),
        steal: None,
        ..wrk_run()
    }
}

/// A load that wrk made, with an objective that an impossible claim cannot keep.
///
/// # Panics
/// Never: the objective is one.
pub fn wrk_load() -> ClaimedLoadStudy {
    let ours = load::closed();
    let mut plan = ours.plan;
    plan.connections = 20;
    plan.fail_if = vec!["p99 > 2s".parse().expect("an objective")];
    ClaimedLoadStudy {
        schema: SCHEMA,
        started_at: ours.started_at,
        command_line: "longtail load --generator wrk -c 20 --for 2s --warm-up 1s http://127.0.0.1:9292/".to_owned(),
        plan,
        environment: ours.environment,
        placement: ours.placement,
        run: wrk_run(),
        missed: vec!["p99 > 2s: not known, for what wrk claims cannot be".to_owned()],
    }
}

/// A sweep that hey drove, its second run with requests that the server does not know.
pub fn hey_sweep() -> SweepStudy {
    let mut study = study::canonical();
    study.plan.with = Some("hey".to_owned());
    study.plan.probe = model::Probe::None;
    study.plan.calibrate = false;
    study.plan.multiples = vec![1.0, 1.5];
    study.plan.stream.stop = Stop::RequestsPerConnection(100);
    study.command_line = study.plan.command_line();
    let share = |worker: u32, requests| WorkerShare {
        worker: (4700 + worker).to_string(),
        requests,
        source: ShareSource::Stats,
    };
    let ours: Vec<_> = study.runs.drain(..).take(2).collect();
    for (at, ours) in ours.into_iter().enumerate() {
        let mut run = hey_run();
        run.connections = ours.connections;
        if at == 1 {
            run.claim.requests = Some(3000);
            run.warnings =
                vec![Diagnostic::ClaimDiffers { by: "hey".to_owned(), claimed: 3000, server: 2900, under_way: 60 }];
        }
        let counted = if at == 1 { 2900 } else { 2000 };
        study.claimed_runs.push(ClaimedRow {
            repeat: 1,
            multiple: ours.multiple,
            run,
            server_requests: Some(counted),
            workers: (0..4).map(|n| share(n, counted / 4 + u64::from(n == 0) * 20 - u64::from(n == 1) * 20)).collect(),
            readings: ours.readings,
            forecast: ours.forecast,
        });
    }
    study
}
