//! Studies for tests: one with the shape of Puma's published long-tail table, and the awkward ones.
//!
//! Each is made by simulating a small queue (slots that serve first come, first served, with seeded
//! jitter) and recording its exchanges into real tallies, so every derived figure comes from the
//! real code. There is no clock and no real randomness: a study is the same on every machine.

mod play;
mod watch;

use judge::verdict;
use model::run::PERCENTILES;
use model::theory::DisciplineFit;
use model::{
    Ceiling, Diagnostic, Discipline, EndedBy, Nanos, Outcome, Plan, Probe, ProbeUsed, ServerFacts,
    ServerKind, StatsdReport, Stop, SweepStudy,
};
use queueing::discipline::{ClosedLoopServer, ConnectionDealing, ServiceOrder, theory};

use self::play::{plan, play, played};
use self::watch::{kernel_view, seen, stamped};
use crate::machine::statsd;

/// All of these studies.
pub fn every() -> [SweepStudy; 13] {
    [
        canonical(),
        with_workers(8),
        single_mode(),
        repeated(),
        failing(),
        unknown_server(),
        short(),
        interrupted(),
        empty(),
        tiny(),
        judged(),
        watched(),
        theorized(),
    ]
}

/// Five multiples of 20 slots (4 workers x 5 threads) that each hold a request for 0.2 s, with 100
/// requests per connection.
pub fn canonical() -> SweepStudy {
    let mut study = with_workers(4);
    study.runs[4].warnings = vec![Diagnostic::ConnectionsClosed {
        closed: 80,
        requests: None,
        after_answers: None,
        announced_after: None,
        announced: None,
        server: None,
    }];
    study
}

/// Two multiples with samples: requests that cannot be served wait in the accept queue.
pub fn watched() -> SweepStudy {
    let mut plan = plan(2, 5, &[1.0, 4.0]);
    plan.stream.stop = Stop::After(Nanos::from_secs(10));
    plan.stream.keep_alive = false;
    let mut study = played("-w2 -t5:5 -d0.2 -k --for 10s --multiples 1,4", plan);
    study.plan.stream.reads_app_times = true;
    let slots = study.server.slots();
    study.probed = Some(ProbeUsed { probe: Probe::Bpf, why_no_bpf: None });
    // One run has none.
    study.runs[1].kernel = Some(kernel_view(&study.runs[1]));
    for run in &mut study.runs {
        run.watch = Some(seen(u64::from(run.connections), u64::from(slots)));
        run.app_times = Some(stamped(run));
    }
    study.plan.statsd_listen = "127.0.0.1:8125".parse().ok();
    study.runs[0].statsd =
        Some(StatsdReport { before: 3, dropped_by_kernel: Some(0), ..StatsdReport::default() });
    study.runs[1].statsd = Some(statsd());
    study
}

/// Like [`canonical`], with this number of workers.
pub fn with_workers(workers: u32) -> SweepStudy {
    let words = format!("-w{workers} -t5:5 -d0.2 -R100 --multiples 1,1.5,2,3,4");
    played(&words, plan(workers, 5, &[1.0, 1.5, 2.0, 3.0, 4.0]))
}

/// A Puma without worker processes, so there are no figures by worker.
pub fn single_mode() -> SweepStudy {
    played("-w0 -t5:5 -d0.2 -R100 --multiples 1,2", plan(0, 5, &[1.0, 2.0]))
}

/// Two multiples, each three times on a fresh server; in the last run one request had no response.
pub fn repeated() -> SweepStudy {
    let mut study = played(
        "-w4 -t5:5 -d0.2 -R100 --multiples 1,2 --repeat 3",
        Plan { repeat: 3, ..plan(4, 5, &[1.0, 2.0]) },
    );
    let last = study.runs.len() - 1;
    let plan = study.plan.clone();
    study.runs[last] =
        play(&plan, &study.server, 3, 2.0, |n| (n == 1234).then_some(Outcome::TimedOut));
    study.runs[last].warnings = vec![Diagnostic::Failures { failed: 1, planned: 4000 }];
    study
}

/// Timeouts, refused connections, bad responses and 503 responses: few with as many connections as
/// slots, many beyond.
pub fn failing() -> SweepStudy {
    let mut plan = plan(4, 5, &[1.0, 4.0]);
    plan.stream.keep_alive = false;
    let mut study = played("-w4 -t5:5 -d0.2 -k -R100 --multiples 1,4", plan.clone());
    study.runs[0] =
        play(&plan, &study.server, 1, 1.0, |n| (n % 400 == 399).then_some(Outcome::Answered(503)));
    study.runs[1] = play(&plan, &study.server, 1, 4.0, |n| match n % 100 {
        7 | 61 => Some(Outcome::TimedOut),
        23 => Some(Outcome::Refused),
        41 | 83 => Some(Outcome::Answered(503)),
        59 => Some(Outcome::BadResponse),
        _ => None,
    });
    for run in &mut study.runs {
        let from =
            PERCENTILES.into_iter().find(|q| run.response_time(*q).time().is_none()).unwrap_or(1.0);
        let counts = &run.tally.counts;
        let failed = counts.failed();
        let planned = counts.total();
        let answered: u64 = run.workers.iter().map(|share| share.requests).sum();
        run.warnings = vec![
            Diagnostic::Conservation {
                worker: None,
                client: answered,
                server: answered + failed / 2,
            },
            Diagnostic::Failures { failed, planned },
            Diagnostic::QuantilesHidden { from, unanswered: failed, outcomes: counts.failures() },
        ];
    }
    study
}

/// The service time is neither given nor measured, and the server says nothing about its workers.
pub fn unknown_server() -> SweepStudy {
    let argv = vec!["ruby".to_owned(), "app.rb".to_owned(), "--port=9292".to_owned()];
    let mut study = played("-w4 -t5:5 -d0.2 -R100 --multiples 1,2", plan(4, 5, &[1.0, 2.0]));
    study.plan.stream.delay = None;
    study.service_time = None;
    study.plan.server.workers = None;
    study.plan.server.threads = None;
    study.plan.server.kind = ServerKind::Command {
        argv: argv.clone().into(),
        slots: 20,
        url: "http://127.0.0.1:9292".into(),
    };
    study.server = ServerFacts {
        name: "ruby".to_owned(),
        command_line: argv.join(" ").into(),
        url: "http://127.0.0.1:9292".into(),
        workers: 1,
        threads: 20,
        ..ServerFacts::default()
    };
    study.command_line =
        "longtail sweep -R100 --multiples 1,2 --slots 20 --url http://127.0.0.1:9292 -- ruby \
         app.rb --port=9292"
            .into();
    for run in &mut study.runs {
        run.forecast = None;
        run.workers.clear();
        run.tally.per_worker.clear();
        run.warnings =
            vec![Diagnostic::LedgerUnknown { reason: "it has no control server".to_owned() }];
    }
    study
}

/// Runs of one second, with too few responses for the high percentiles.
pub fn short() -> SweepStudy {
    let mut plan = plan(2, 5, &[0.5, 2.0]);
    plan.stream.stop = Stop::After(Nanos::from_secs(1));
    let mut study = played("-w2 -t5:5 -d0.2 --for 1s --multiples 0.5,2", plan);
    for run in &mut study.runs {
        let answers = run.tally.counts.good();
        run.warnings = vec![Diagnostic::TooFewRequests { from: 0.99, answers, worth: None }];
    }
    study.warnings = vec![Diagnostic::StillBusy {
        waited: Nanos::from_secs(10),
        what: "3 busy threads".to_owned(),
    }];
    study
}

/// A sweep that the user ended in the middle of its second run.
pub fn interrupted() -> SweepStudy {
    let mut study = canonical();
    study.runs.truncate(2);
    study.runs[1].warnings = vec![Diagnostic::Interrupted { by: EndedBy::User }];
    study.total_time = Nanos::from_secs(63);
    study.interrupted = true;
    study
}

/// A sweep without runs, from which the start of a table is printed.
pub fn empty() -> SweepStudy {
    SweepStudy { runs: Vec::new(), total_time: Nanos::ZERO, ..canonical() }
}

/// One run of a handful of requests: a study small enough to read as a file.
pub fn tiny() -> SweepStudy {
    let mut plan = plan(1, 2, &[1.5]);
    plan.stream.stop = Stop::RequestsPerConnection(3);
    let mut study = played("-w1 -t2:2 -d0.2 -R3 --multiples 1.5", plan);
    study.runs[0].warnings =
        vec![Diagnostic::TooFewRequests { from: 0.9, answers: 9, worth: None }];
    study
}

/// Like [`canonical`], but in one run the generator was too slow, and one run's figures contradict
/// each other.
pub fn judged() -> SweepStudy {
    let mut study = canonical();
    let server = verdict::server_of(&study);
    let slow = &mut study.runs[1];
    slow.generator.ceiling = Some(Ceiling { rate_per_s: 104.0 });
    slow.judgement = Some(verdict::of_run(slow, &server));
    let wrong = &mut study.runs[2];
    wrong.generator.steal = Some(0.12);
    wrong.judgement = Some(verdict::of_run(wrong, &server));
    study
}

/// Like [`canonical`], with theory for each run: all are served in one queue where turns of ten
/// were expected. The third has a shorter service time, the fourth is too short. Before them, one
/// probe saw turns of ten, and another fits no order.
pub fn theorized() -> SweepStudy {
    let mut study = canonical();
    let server = ClosedLoopServer {
        workers: study.server.workers,
        threads: study.server.threads,
        service_time: Nanos::from_millis(200),
        scatters: false,
        order: ServiceOrder {
            discipline: Some(Discipline::Turns),
            is_kept: true,
            dealing: ConnectionDealing::ByChance,
            turn: queueing::puma::TURN,
        },
        by_worker: None,
    };
    for (at, run) in study.runs.iter_mut().enumerate() {
        let service_time = if at == 2 { Nanos::from_millis(150) } else { server.service_time };
        let elapsed = run.elapsed;
        if at == 3 {
            run.elapsed = Nanos::from_secs(2);
        }
        run.theory = theory(run, &ClosedLoopServer { service_time, ..server.clone() });
        run.elapsed = elapsed;
    }
    let mut theory = study.runs[4].theory.clone();
    let probe = |keep_alive, theory| model::theory::DisciplineProbe {
        keep_alive,
        connections: 60,
        measured: Nanos::from_secs(4),
        answers: 400,
        theory,
    };
    let far = DisciplineFit { held: Nanos::from_millis(200), worst: 4.5, worst_at: Some(0.99) };
    for forecast in theory.iter_mut().flat_map(|theory| &mut theory.forecasts) {
        let worst = if forecast.discipline == Discipline::Turns { 1.0 } else { 4.5 };
        (forecast.fit, forecast.shape) = (Some(DisciplineFit { worst, ..far }), Some(far));
    }
    let mut nothing = theory.clone();
    for forecast in nothing.iter_mut().flat_map(|theory| &mut theory.forecasts) {
        (forecast.fit, forecast.shape) = (Some(far), None);
    }
    study.plan.probe_discipline = true;
    study.command_line = format!("{} --probe-discipline", study.command_line).into();
    study.probes = vec![probe(true, theory), probe(false, nothing)];
    study
}
