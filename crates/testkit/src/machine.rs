//! What the studies share: the machine, a generator at ease on it, and what its lanes note of themselves.

use model::{
    App, BadResponse, Batches, Ceiling, Environment, Exchange, GeneratorFacts, LaneFacts, Nanos, Outcome, PumaSettings,
    ServerFacts, ServerKind, ServerPlan, Socket, Stop, StreamPlan, Tally, Threads, Timestamps,
};

/// A Puma on so many workers and threads, its own app, over IPv4.
pub fn puma(workers: impl Into<Option<u32>>, threads: impl Into<Option<u32>>) -> ServerPlan {
    ServerPlan {
        kind: ServerKind::Puma { command: None },
        workers: workers.into(),
        threads: threads.into().map(|threads| Threads { min: threads, max: threads }),
        rackup: None,
        app: App::Sleep,
        config: None,
        yjit: false,
        socket: Socket::Tcp4,
        cpus: None,
        address: None,
    }
}

/// Requests over kept connections by one lane.
pub(crate) fn stream(stop: Stop, warm_up: Nanos, timeout: Nanos) -> StreamPlan {
    StreamPlan {
        delay: None,
        path: None,
        body: None,
        keep_alive: true,
        stop,
        warm_up,
        timeout,
        lanes: 1,
        timestamps: Timestamps::Kernel,
        worker_header: "x-worker-pid".to_owned(),
        anatomy: false,
        from: Vec::new(),
    }
}

/// A Puma in cluster mode of so many workers and threads.
pub(crate) fn puma_facts(workers: u32, threads: u32) -> ServerFacts {
    ServerFacts {
        name: "Puma".to_owned(),
        version: Some("6.5.0".to_owned()),
        url: "http://127.0.0.1:40001".to_owned(),
        workers,
        threads,
        cluster: true,
        settings: Some(PumaSettings::default()),
        ..ServerFacts::default()
    }
}

pub(crate) fn environment() -> Environment {
    Environment {
        longtail_version: "0.1.0".to_owned(),
        os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        kernel: "6.1.0-18-amd64".to_owned(),
        cpu: "AMD EPYC 7B13".to_owned(),
        cores: 2,
        memory_bytes: 4 << 30,
    }
}

/// A generator with room to spare, on a machine of its own.
pub(crate) fn at_ease(elapsed: Nanos) -> GeneratorFacts {
    let lane =
        LaneFacts { cpu: elapsed / 50, run_queue: elapsed / 1000, elapsed, spun: Nanos::ZERO, ..LaneFacts::default() };
    let ceiling = Ceiling { rate_per_s: 41_000.0 };
    GeneratorFacts {
        lanes: vec![lane],
        clock_steps: Some(0),
        ceiling: Some(ceiling),
        steal: Some(0.001),
        listen_overflows: Some(0),
        syn_retransmits: Some(0),
        server: None,
        far: Vec::new(),
    }
}

/// Why this answer was bad, where it was, the `nth` of its kind. Three in four for one reason, the fourth for another.
pub(crate) fn note_reason(tally: &mut Tally, exchange: &Exchange, nth: u64) {
    if exchange.outcome == Outcome::BadResponse && tally.measures(exchange.due) {
        tally.record_reason(if nth % 4 == 3 { BadResponse::TrailingBytes } else { BadResponse::ContentLength }, 1);
    }
}

/// What a lane notes of its own part beside an exchange that was sent.
pub(crate) fn note_lags(
    tally: &mut Tally,
    batches: &mut Batches,
    exchange: &Exchange,
    lag: Nanos,
    timestamps: Timestamps,
) {
    if !tally.measures(exchange.due) {
        return;
    }
    tally.generator_lag.record(lag);
    if timestamps == Timestamps::Kernel && matches!(exchange.outcome, Outcome::Answered(_)) {
        tally.read_lag.record(Nanos(3_000 + exchange.ended.0 % 20_000));
    }
    if exchange.outcome.is_good() {
        batches.record(exchange.due, exchange.response_time(), lag);
    }
}
