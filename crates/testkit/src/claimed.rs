//! Studies of runs by other generators, for tests. No generator runs: what it printed and claims is
//! in `data`.

use model::diagnostic::ClaimGrade;
use model::run::ShareSource;
use model::{Diagnostic, GeneratorClaim, LoadStudy, Nanos, Run, Stop, SweepStudy, WorkerShare};

use crate::machine::read;
use crate::{load, study};

/// wrk on 20 connections: its mean is more than Little's law allows.
pub fn wrk_claim() -> GeneratorClaim {
    GeneratorClaim {
        output: include_str!("../data/wrk.txt").into(),
        ..read(include_str!("../data/wrk.json"))
    }
}

/// hey on 20 connections: more percentiles, statuses, no version, a failure.
fn hey_claim() -> GeneratorClaim {
    read(include_str!("../data/hey.json"))
}

/// A load by wrk with a threshold, which cannot be judged because wrk's claim is impossible. The
/// audit says why.
///
/// # Panics
/// Never: the threshold is valid.
pub fn wrk_load() -> LoadStudy {
    let mut study = load::closed();
    study.command_line =
        "longtail load --generator wrk -c 20 --for 2s --warm-up 1s http://127.0.0.1:9292/".into();
    study.plan.load.connections = 20;
    study.plan.thresholds = vec!["fail if p99 > 2s".parse().expect("a threshold")];
    let found = |is, check: &str, text: &str| Diagnostic::Audited {
        by: "wrk".to_owned(),
        check: check.to_owned(),
        is,
        text: text.to_owned(),
    };
    study.run = Run {
        warnings: vec![
            found(ClaimGrade::Fails, "Little's law", "23.3 requests at once, and there can be 20."),
            found(
                ClaimGrade::Doubtful,
                "phantom samples",
                "about 18.7 % of its samples were never sent.",
            ),
            Diagnostic::Steal { share: 0.02 },
        ],
        ..Run::claimed(20, wrk_claim(), Nanos::from_millis(2010))
    };
    study
}

/// A sweep driven by hey, whose second run claims more requests than the server counted.
pub fn hey_sweep() -> SweepStudy {
    let mut study = study::canonical();
    study.plan.with = Some("hey".to_owned());
    study.plan.probe = model::Probe::None;
    study.plan.calibrate = false;
    study.plan.multiples = vec![1.0, 1.5];
    study.plan.stream.stop = Stop::RequestsPerConnection(100);
    study.command_line =
        "longtail sweep -w4 -t5:5 -d0.2 -R100 --multiples 1,1.5 --generator hey".into();
    let share = |worker: u32, requests| WorkerShare {
        worker: (4700 + worker).to_string(),
        requests,
        source: ShareSource::Stats,
    };
    study.runs.truncate(2);
    for (at, run) in study.runs.iter_mut().enumerate() {
        let (requests, counted) = if at == 1 { (3000, 2900) } else { (2000, 2000) };
        let differs = Diagnostic::ClaimDiffers {
            by: "hey".to_owned(),
            claimed: 3000,
            server: 2900,
            under_way: 60,
        };
        let claim = GeneratorClaim {
            requests: Some(requests),
            server_requests: Some(counted),
            ..hey_claim()
        };
        *run = Run {
            workers: (0..4)
                .map(|n| share(n, counted / 4 + u64::from(n == 0) * 20 - u64::from(n == 1) * 20))
                .collect(),
            forecast: run.forecast.take(),
            warnings: (at == 1).then_some(differs).into_iter().collect(),
            multiple: run.multiple,
            ..Run::claimed(run.connections, claim, Nanos::from_millis(2010))
        };
    }
    study
}
