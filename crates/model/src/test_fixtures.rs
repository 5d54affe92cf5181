//! Fixtures for the tests of several files.

use crate::pace::uniform;
use crate::{
    App, AppTime, Exchange, Nanos, Outcome, Run, ServerKind, ServerPlan, Socket, Stop, StreamPlan,
    Tally, Threads, Timestamps, Window,
};

/// A window without an end.
pub(crate) const ENDLESS: Window = Window { from: Nanos::ZERO, until: Nanos::MAX };

/// A run of a second over four connections, from the outcome and the time in ms of each request.
pub(crate) fn run(outcomes: &[(Outcome, u64)]) -> Run {
    let mut tally = Tally::new(ENDLESS, 4);
    for (n, (outcome, millis)) in outcomes.iter().enumerate() {
        tally.record(&Exchange { outcome: *outcome, ..exchange(0, 0, *millis) }, n % 4);
    }
    Run::recorded(4, tally, Nanos::from_secs(1), Nanos::from_secs(1))
}

/// Puma with two workers of five threads.
pub(crate) fn puma(app: App) -> ServerPlan {
    ServerPlan {
        kind: ServerKind::Puma { command: None },
        workers: Some(2),
        threads: Some(Threads { min: 5, max: 5 }),
        rackup: None,
        app,
        config: None,
        yjit: false,
        socket: Socket::Tcp4,
        cpus: None,
        address: None,
    }
}

/// Runs of this many seconds, over kept-alive connections.
pub(crate) fn stream(seconds: u64, delay: Option<Nanos>) -> StreamPlan {
    StreamPlan {
        delay,
        path: None,
        body: None,
        mix: None,
        keep_alive: true,
        stop: Stop::After(Nanos::from_secs(seconds)),
        warm_up: Nanos::from_secs(1),
        timeout: Nanos::from_secs(30),
        lanes: 1,
        timestamps: Timestamps::User,
        worker_header: "x-worker-pid".to_owned(),
        reads_app_times: false,
        from: Vec::new(),
    }
}

/// A good response; times in ms.
pub(crate) fn exchange(due: u64, sent: u64, ended: u64) -> Exchange {
    let [due, sent, ended] = [due, sent, ended].map(Nanos::from_millis);
    Exchange { due, sent, ended, received_bytes: 1, outcome: Outcome::Answered(200) }
}

/// An app's stamps, in ms.
pub(crate) fn stamps(started: u64, ended: u64) -> AppTime {
    AppTime::Stamps { started: Nanos::from_millis(started), ended: Nanos::from_millis(ended) }
}

/// A standard normal random number (Box and Muller).
pub(crate) fn normal(seed: u64, number: u64) -> f64 {
    let [radius, turn] = [uniform(seed, 2 * number), uniform(seed, 2 * number + 1)];
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}

/// Pearson's chi-square of counts that should be equally likely.
pub(crate) fn chi_square(counts: &[u32]) -> f64 {
    let even = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts.iter().map(|n| (f64::from(*n) - even).powi(2) / even).sum()
}
