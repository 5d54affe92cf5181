//! What the studies share: the machine, a generator that is not the limit, and the recording of
//! exchanges. Constant parts are in `data`, as JSON of a study file.

use model::{
    BadResponse, Batches, Ceiling, ClassTally, Environment, Exchange, GeneratorFacts, LaneFacts,
    Nanos, Outcome, PumaSettings, Run, ServerFacts, ServerPlan, Statistics, StatsdReport,
    StepTallies, Stop, StreamPlan, Tally, Threads, Timestamps, Window,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The common base of a kind of study, by its name in `data/base.json`.
pub(crate) fn base<T: DeserializeOwned>(name: &str) -> T {
    let all: Value = read(include_str!("../data/base.json"));
    serde_json::from_value(all[name].clone())
        .unwrap_or_else(|error| panic!("{name} of base.json: {error}"))
}

/// A file of `data`.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).expect("the files are valid parts of studies")
}

pub(crate) fn environment() -> Environment {
    base("environment")
}

/// A Puma with these workers and threads and longtail's app, over IPv4.
pub fn puma(workers: impl Into<Option<u32>>, threads: impl Into<Option<u32>>) -> ServerPlan {
    let threads = threads.into().map(|threads| Threads { min: threads, max: threads });
    ServerPlan { workers: workers.into(), threads, ..base("puma") }
}

/// Requests over kept-alive connections by one lane.
pub(crate) fn stream(stop: Stop, warm_up: Nanos) -> StreamPlan {
    StreamPlan { stop, warm_up, timeout: Nanos::from_secs(30), ..base("stream") }
}

/// What puma-plugin-statsd and an app with one timer would have sent, and an invalid line.
pub(crate) fn statsd() -> StatsdReport {
    read(include_str!("../data/statsd.json"))
}

/// The facts of a Puma in cluster mode with these workers and threads.
pub(crate) fn puma_facts(workers: u32, threads: u32) -> ServerFacts {
    ServerFacts {
        name: "Puma".to_owned(),
        version: Some("6.5.0".to_owned()),
        url: "http://127.0.0.1:40001".into(),
        workers,
        threads,
        cluster: true,
        settings: Some(PumaSettings::default()),
        ..ServerFacts::default()
    }
}

/// A generator that is far from its limit, on its own machine.
pub(crate) fn at_ease(elapsed: Nanos) -> GeneratorFacts {
    let lane = LaneFacts {
        cpu: elapsed / 50,
        run_queue: elapsed / 1000,
        elapsed,
        spun: Nanos::ZERO,
        ..LaneFacts::default()
    };
    let ceiling = Ceiling { rate_per_s: 41_000.0 };
    GeneratorFacts {
        lanes: vec![lane],
        clock_steps: Some(0),
        ceiling: Some(ceiling),
        steal: Some(0.001),
        listen_overflows: Some(0),
        syn_retransmits: Some(0),
        other_clients: None,
        server: None,
        far: Vec::new(),
    }
}

/// Records the exchanges of a run as a lane does.
pub(crate) struct Recorder {
    pub(crate) tally: Tally,
    /// Empty where requests are not told apart.
    pub(crate) classes: Vec<ClassTally>,
    /// The class of the next exchange.
    pub(crate) class: usize,
    batches: Batches,
    timestamps: Timestamps,
    /// Of a load whose rate changes by plan.
    pub(crate) steps: Option<StepTallies>,
}

impl Recorder {
    pub(crate) fn new(window: Window, connections: u32, timestamps: Timestamps) -> Recorder {
        Recorder {
            tally: Tally::new(window, connections as usize),
            classes: Vec::new(),
            class: 0,
            batches: Batches::new(window),
            timestamps,
            steps: None,
        }
    }

    /// Records an exchange that was sent. `lag`: the generator's own lag.
    pub(crate) fn record(&mut self, exchange: &Exchange, connection: u32, lag: Nanos) {
        let Recorder { tally, classes, class, batches, timestamps, steps } = self;
        tally.record_of(classes.get_mut(*class), exchange, connection as usize);
        if let Some(steps) = steps {
            steps.record(exchange);
        }
        if !tally.measures(exchange.due) {
            return;
        }
        tally.generator_lag.record(lag);
        if *timestamps == Timestamps::Kernel && matches!(exchange.outcome, Outcome::Answered(_)) {
            tally.read_lag.record(Nanos(3_000 + exchange.ended.0 % 20_000));
        }
        if exchange.outcome.is_good() {
            batches.record(exchange.due, exchange.response_time(), lag);
        }
    }

    /// Records why the `nth` bad response was bad: three in four for one reason, the fourth for
    /// another.
    pub(crate) fn note_reason(&mut self, exchange: &Exchange, nth: u64) {
        if exchange.outcome == Outcome::BadResponse && self.tally.measures(exchange.due) {
            let reason =
                if nth % 4 == 3 { BadResponse::TrailingBytes } else { BadResponse::ContentLength };
            self.tally.record_reason(reason, 1);
        }
    }

    /// The finished run, by a generator that is not the limit. `measured`: its length after the
    /// warm-up.
    pub(crate) fn run(mut self, percentiles: &[f64], measured: Nanos, elapsed: Nanos) -> Run {
        self.tally.add_classes(&self.classes);
        let statistics = Some(Statistics::of(&self.tally, &self.batches, percentiles));
        let connections = self.tally.per_connection.len() as u32;
        let steps = self.steps.map(|steps| steps.finish(measured, false, percentiles));
        Run {
            statistics,
            steps: steps.unwrap_or_default(),
            generator: at_ease(elapsed),
            ..Run::recorded(connections, self.tally, measured, elapsed)
        }
    }
}

/// Simulates connections that send again as soon as they have a response, on a server where no
/// request waits. `answer` completes the exchange of each request, given its number from 0.
pub(crate) fn answered_at_once(
    connections: u32,
    window: Window,
    timestamps: Timestamps,
    mut answer: impl FnMut(&mut Tally, u64, &mut Exchange),
) -> Recorder {
    let mut recorder = Recorder::new(window, connections, timestamps);
    let mut number = 0;
    for connection in 0..connections {
        let mut due = Nanos::from_micros(20) * u64::from(connection);
        while due < window.until {
            let sent = due + Nanos::from_micros(5);
            let mut exchange = Exchange {
                due,
                sent,
                ended: sent,
                received_bytes: 0,
                outcome: Outcome::Answered(200),
            };
            answer(&mut recorder.tally, number, &mut exchange);
            recorder.record(&exchange, connection, sent - due);
            number += 1;
            due = exchange.ended;
        }
    }
    recorder.tally.connections_opened = u64::from(connections);
    recorder
}
