//! Studies of runs that other generators made, for tests: no generator is run, its output is written down here.

use model::diagnostic::FindingGrade;
use model::run::ShareSource;
use model::{
    Believable, Diagnostic, GeneratorClaim, LoadStudy, Nanos, PercentileTime, Run, Stop, SweepStudy, WorkerShare,
};

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

/// wrk on 20 connections: its mean is more than Little's law allows.
pub fn wrk_claim() -> GeneratorClaim {
    let percentile = |quantile, us| PercentileTime { quantile, time: Nanos::from_micros(us) };
    GeneratorClaim {
        by: "wrk".to_owned(),
        version: Some("4.1.0".to_owned()),
        command_line: "/usr/bin/wrk -t1 -c20 --latency --timeout 30s -d 2s http://127.0.0.1:9292/".to_owned(),
        requests: Some(190),
        failed: Some(0),
        rate_per_s: Some(94.87),
        duration: Some(Nanos::from_secs(2)),
        mean: Some(Nanos(245_330_000)),
        stdev: Some(Nanos::from_millis(300)),
        max: Some(Nanos::from_millis(1410)),
        percentiles: vec![
            percentile(0.5, 101_000),
            percentile(0.75, 101_500),
            percentile(0.9, 863_000),
            percentile(0.99, 1_310_000),
        ],
        received_bytes: Some(20_480.0),
        output: WRK.to_owned(),
        warm_up_requests: Some(90),
        audit: Believable::Impossible,
        cpu: Some(Nanos::from_millis(20)),
        ..GeneratorClaim::default()
    }
}

/// hey on 20 connections: more percentiles, statuses, no version, a failure.
fn hey_claim() -> GeneratorClaim {
    let percentile = |quantile| PercentileTime { quantile, time: Nanos::from_secs_f64(0.2 + quantile / 100.0) };
    GeneratorClaim {
        by: "hey".to_owned(),
        version: None,
        command_line: "/usr/bin/hey -cpus 1 -c 20 -t 30 -disable-redirects -n 2000 http://127.0.0.1:9292/".to_owned(),
        requests: Some(2000),
        failed: Some(3),
        rate_per_s: Some(97.04),
        mean: Some(Nanos::from_millis(205)),
        min: Some(Nanos::from_millis(200)),
        max: Some(Nanos::from_millis(260)),
        percentiles: [0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99].map(percentile).to_vec(),
        statuses: [("200".to_owned(), 1997), ("503".to_owned(), 3)].into(),
        output: "\nSummary:\n  Total:\t20.61 secs\n".to_owned(),
        audit: Believable::Possible,
        cpu: Some(Nanos::from_millis(20)),
        ..GeneratorClaim::default()
    }
}

/// A load that wrk made, with a threshold that an impossible claim cannot keep; the audit says why.
///
/// # Panics
/// Never: the threshold is one.
pub fn wrk_load() -> LoadStudy {
    let mut study = load::closed();
    "longtail load --generator wrk -c 20 --for 2s --warm-up 1s http://127.0.0.1:9292/"
        .clone_into(&mut study.command_line);
    study.plan.connections = 20;
    study.plan.thresholds = vec!["fail if p99 > 2s".parse().expect("a threshold")];
    let found = |is, check: &str, text: &str| Diagnostic::Audited {
        by: "wrk".to_owned(),
        check: check.to_owned(),
        is,
        text: text.to_owned(),
    };
    study.run = Run {
        warnings: vec![
            found(FindingGrade::Fails, "Little's law", "23.3 requests at once, and there can be 20."),
            found(FindingGrade::Doubtful, "phantom samples", "about 18.7 % of its samples were never sent."),
            Diagnostic::Steal { share: 0.02 },
        ],
        ..Run::claimed(20, wrk_claim(), Nanos::from_millis(2010))
    };
    study
}

/// A sweep that hey drove, its second run with requests that the server does not know.
pub fn hey_sweep() -> SweepStudy {
    let mut study = study::canonical();
    study.plan.with = Some("hey".to_owned());
    study.plan.probe = model::Probe::None;
    study.plan.calibrate = false;
    study.plan.multiples = vec![1.0, 1.5];
    study.plan.stream.stop = Stop::RequestsPerConnection(100);
    study.command_line = "longtail sweep -w4 -t5:5 -d0.2 -R100 --multiples 1,1.5 --generator hey".into();
    let share = |worker: u32, requests| WorkerShare {
        worker: (4700 + worker).to_string(),
        requests,
        source: ShareSource::Stats,
    };
    study.runs.truncate(2);
    for (at, run) in study.runs.iter_mut().enumerate() {
        let (requests, counted) = if at == 1 { (3000, 2900) } else { (2000, 2000) };
        let differs = Diagnostic::ClaimDiffers { by: "hey".to_owned(), claimed: 3000, server: 2900, under_way: 60 };
        let claim = GeneratorClaim { requests: Some(requests), server_requests: Some(counted), ..hey_claim() };
        *run = Run {
            workers: (0..4).map(|n| share(n, counted / 4 + u64::from(n == 0) * 20 - u64::from(n == 1) * 20)).collect(),
            forecast: run.forecast.take(),
            warnings: (at == 1).then_some(differs).into_iter().collect(),
            multiple: run.multiple,
            ..Run::claimed(run.connections, claim, Nanos::from_millis(2010))
        };
    }
    study
}
