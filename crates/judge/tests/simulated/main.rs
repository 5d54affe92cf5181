//! Random servers, without sockets: compares the limit that the judge names with the real one.
//!
//! There are 2000 servers with 1 to 40 slots, which are stated correctly or not. Service times are
//! constant, exponential, bimodal or log-normal. Inside there may be a pool, or a lock for all or
//! part of each request, in each worker or shared. A server may have I/O threads, serve in turns,
//! become slower or faster, stall, be far away, or take any number of requests at once. Half of
//! them report their busy threads. Each server's time alone is measured and its loads are run as a
//! sweep does it, and the result is judged like a sweep's study. Nothing here depends on the speed
//! of the machine.

mod play;
mod server;

use std::fmt::Write;
use std::sync::LazyLock;

use judge::next::{NextCommand, next_commands};
use judge::{Finding, ServerSeen, findings, verdict};
use model::{Limit, Nanos, Plan, Run, ServerKind, Strength, Study, SweepStudy, Threads};
use sweep::service_time::{WorkersToVisit, measure, measure_again};

use play::{Life, Load};
use server::{Chance, Server, Truth};

/// Multiples that users choose; the default is there twice, so it is twice as likely.
const MULTIPLES: [&[f64]; 5] =
    [&Plan::MULTIPLES, &Plan::MULTIPLES, &[1.0, 4.0], &[1.0, 2.0, 4.0], &[0.5, 1.0, 4.0]];

fn without_runs(study: SweepStudy) -> SweepStudy {
    SweepStudy { runs: Vec::new(), ..study }
}

fn sweep(life: &mut Life) -> SweepStudy {
    static PUMA: LazyLock<SweepStudy> = LazyLock::new(|| without_runs(testkit::study::canonical()));
    static OTHER: LazyLock<SweepStudy> =
        LazyLock::new(|| without_runs(testkit::study::unknown_server()));
    let server = life.server;
    let mut study = if server.tells_busy { PUMA.clone() } else { OTHER.clone() };
    let multiples = life.chance.one_of(&MULTIPLES);
    let length = life.chance.one_of(&[4.0, 10.0, 10.0]);
    let is_split = server.stated.is_multiple_of(server.workers);
    study.server.workers = if is_split { server.workers } else { 1 };
    study.server.threads = server.stated / study.server.workers;
    let threads = study.server.threads;
    let puma = format!("-w{} -t{threads}:{threads} -C puma.rb", server.workers);
    let other = format!("--slots {} --url http://127.0.0.1:9292 -- app", server.stated);
    let how = if server.tells_busy { puma } else { other };
    study.command_line = format!("longtail sweep --for {length}s {how}").into();
    study.plan.multiples = multiples.to_vec();
    if let ServerKind::Puma { .. } = study.plan.server.kind {
        study.plan.server.workers = Some(server.workers);
        study.plan.server.threads = Some(Threads { min: threads, max: threads });
    }
    let workers = WorkersToVisit {
        workers: if server.tells_busy && server.workers > 1 { server.workers } else { 0 },
        are_named: server.tells_busy,
        ..WorkersToVisit::default()
    };
    let Ok(known) = measure(life, workers);
    let known = known.expect("every request is answered");
    let mut warm_up = Nanos::from_secs(1);
    for multiple in multiples {
        let connections = (multiple * f64::from(server.stated)).round().max(1.0) as u32;
        let load = Load { connections, warm_up, measured: Nanos::from_secs_f64(length) };
        let mut run = life.play(&load);
        run.multiple = Some(*multiple);
        run.generator = study_generator();
        let round = f64::from(connections) / run.completed_rate().max(1.0);
        warm_up = Nanos::from_secs_f64((2.0 * round).clamp(0.1, 1.0));
        study.runs.push(run);
    }
    let lowest = &study.runs[0];
    let longest =
        known.longest_in(&lowest.tally.service_time, lowest.connections, study.server.slots());
    let Ok(again) = measure_again(life);
    let known = known.with_later(&again, longest);
    let stated = ServerSeen::stated(study.server.slots(), study.server.workers, Some(known));
    for run in &mut study.runs {
        run.judgement = Some(verdict::of_run(run, &stated));
    }
    study.service_time = Some(known);
    verdict::refine_sweep(&mut study);
    study
}

/// The facts of a generator that is not the limit.
fn study_generator() -> model::GeneratorFacts {
    static GENERATOR: LazyLock<model::GeneratorFacts> =
        LazyLock::new(|| testkit::study::canonical().runs[0].generator.clone());
    GENERATOR.clone()
}

/// How certain a sentence about a limit is.
fn strength(sentence: &str) -> Strength {
    if sentence.starts_with("The threads may be") {
        Strength::MayBe
    } else if sentence.contains("robably") {
        Strength::Probably
    } else {
        Strength::Is
    }
}

/// Whether the limit that was named is the real one, to within a tenth.
fn is_true(limit: &Limit, truth: Truth, stated: f64) -> bool {
    match limit {
        Limit::NotKnown { .. } => true,
        Limit::Threads { .. } => {
            truth.is_reached
                && (truth.is_threads || !truth.is_apart)
                && (truth.at_once / stated - 1.0).abs() <= 0.1
        }
        // From outside, fewer threads than stated look like a pool.
        Limit::InsideApp { .. } => {
            let is_lower = !truth.is_threads || truth.at_once < stated;
            truth.is_reached && (is_lower || !truth.is_apart)
        }
        // If more threads than stated are counted as busy, they exist, whether they work or wait.
        Limit::MoreThanStated { busy: Some(_), .. } => truth.threads > stated,
        Limit::MoreThanStated { is_full, .. } => {
            truth.at_once > stated && (truth.is_reached || !is_full)
        }
        Limit::Network { .. } => !truth.is_reached,
        other => panic!("{other:?} was not simulated"),
    }
}

/// Whether the real limit was named.
fn is_named(limit: Option<&Limit>, truth: Truth, stated: f64) -> bool {
    match limit {
        Some(Limit::Threads { .. }) => truth.is_threads && (truth.at_once - stated).abs() < 1e-9,
        Some(Limit::InsideApp { .. }) => !truth.is_threads || truth.at_once < stated,
        Some(Limit::MoreThanStated { .. }) => truth.at_once > stated,
        _ => false,
    }
}

/// Whether one of the commands would answer the open question. For threads or something inside the
/// app: more threads or workers, or loads in which no request waits. For a server that takes more
/// than stated: more connections.
fn settles(limit: Option<&Limit>, commands: &[NextCommand]) -> bool {
    let has = |flags: &[&str]| {
        commands.iter().any(|next| flags.iter().any(|flag| next.command.contains(flag)))
    };
    match limit {
        Some(Limit::MoreThanStated { is_full: true, .. } | Limit::Network { .. }) => true,
        Some(Limit::MoreThanStated { .. }) => has(&["--connections=", "--multiples="]),
        Some(Limit::InsideApp { .. }) => has(&[" -w", "--connections="]),
        Some(Limit::Threads { .. }) => has(&[" -t", "--multiples=0.5,1,4"]),
        // Throughput still rises, or that is unknown: loads with fewer and with more connections.
        _ => has(&["--multiples=", "--connections="]),
    }
}

#[derive(Debug, Default)]
struct Counts {
    servers: u32,
    false_is: Vec<String>,
    false_probably: Vec<String>,
    /// Servers whose runs are enough to name the limit.
    suffice: u32,
    missed: Vec<String>,
    /// Servers with an unknown limit, for which no command would find it.
    without_command: Vec<String>,
    /// A description of the last server.
    last: String,
}

/// A run in one line.
fn description_of(run: &Run) -> String {
    format!(
        "\n  {} connections, {:.1}/s, {:?}, {:?}, {:?}",
        run.connections,
        run.completed_rate(),
        run.tally.service_time.quantile(0.5),
        judge::busy_threads(run),
        run.judgement.as_ref().map(|it| it.verdict)
    )
}

impl Counts {
    fn judge(&mut self, number: u64, seed: u64) {
        let mut chance = Chance::new(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let server = Server::random(&mut chance);
        let mut life = Life::new(server, chance);
        let study = sweep(&mut life);
        let stated = f64::from(server.stated);
        let last = study.runs.last().expect("there are loads");
        let threads = life.threads();
        let truth = server.truth(threads, last.connections);
        let alone = study.service_time.expect("it was learned");
        let error = server.error([alone.answers, last.tally.counts.good()]);
        let tells_busy = judge::busy_threads(last).is_some();
        let is_steady = matches!(server.drift, server::Drift::None);
        let suffices =
            truth.is_apart && truth.is_reached && (is_steady && error <= 0.1 || tells_busy);
        let study = Study::from(study);
        let found = findings(&study);
        let commands = next_commands(&study, &found);
        let Study::Sweep(swept) = &study else { unreachable!("it is a sweep") };
        let limit = found.iter().find_map(|finding| match finding {
            Finding::Limited(it) => Some(it),
            _ => None,
        });
        let certainty = limit.map(|limit| strength(&Finding::from(limit.clone()).sentence()));
        let limit = limit.map(|limit| &limit.limit);
        let mut description = format!(
            "{number}: {server:?}\n  {truth:?} threads {threads} error {error:.3}\n  {alone:?}"
        );
        for run in &swept.runs {
            description += &description_of(run);
        }
        let _ = write!(description, "\n  {limit:?}");
        self.servers += 1;
        let holds = limit.is_none_or(|limit| is_true(limit, truth, stated));
        match certainty {
            Some(Strength::Is) if !holds => self.false_is.push(description.clone()),
            Some(Strength::Probably) if !holds => self.false_probably.push(description.clone()),
            _ => {}
        }
        let named = is_named(limit, truth, stated) && certainty != Some(Strength::MayBe);
        if suffices {
            self.suffice += 1;
            if !named {
                self.missed.push(description.clone());
            }
        }
        let is_open = matches!(certainty, None | Some(Strength::MayBe))
            || matches!(limit, Some(Limit::NotKnown { .. }));
        let is_void = swept.runs.iter().all(|run| !run.is_evidence());
        if is_open && !is_void && !settles(limit, &commands) {
            self.without_command.push(description.clone());
        }
        self.last = description;
    }

    fn summary(&self, seed: u64) -> String {
        let Counts { servers, suffice, .. } = self;
        let named = *suffice as usize - self.missed.len();
        format!(
            "seed {seed}: {servers} servers, {} judged wrongly by \"is\" and {} by \
             \"probably\"; {suffice} have enough evidence, and {named} of their limits are named ({:.1} %); {} have no command",
            self.false_is.len(),
            self.false_probably.len(),
            100.0 * named as f64 / f64::from(*suffice),
            self.without_command.len()
        )
    }
}

/// The servers of `make test`. The judge's thresholds were tuned with seeds 7, 8 and 9, so the test
/// uses another; `make soak` uses a new one each time.
const SEED: u64 = 11;
const SERVERS: u64 = 2000;
const SERVERS_OF_SOAK: u64 = 6000;
/// The largest shares of servers that may be judged wrongly.
const FALSE_IS: f64 = 0.001;
const FALSE_PROBABLY: f64 = 0.02;
/// The smallest share of limits named if the evidence is enough, and of servers with enough
/// evidence.
const NAMED: f64 = 0.95;
const SUFFICE: f64 = 0.5;

#[test]
#[expect(clippy::print_stdout, reason = "the counts are printed")]
fn hardly_any_random_server_is_judged_wrongly() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    // LONGTAIL_SEED=8 tries other servers; LONGTAIL_SERVER=101 shows a single one.
    let seed = number("LONGTAIL_SEED").unwrap_or(SEED);
    let soaks = std::env::var_os("LONGTAIL_SOAK").is_some();
    let servers = if soaks { SERVERS_OF_SOAK } else { SERVERS };
    let mut counts = Counts::default();
    if let Some(one) = number("LONGTAIL_SERVER") {
        counts.judge(one, seed);
        println!("{}", counts.last);
        return;
    }
    (0..servers).for_each(|number| counts.judge(number, seed));
    let summary = counts.summary(seed);
    println!("{summary}");
    let servers = servers as f64;
    let suffice = f64::from(counts.suffice);
    let named = suffice - counts.missed.len() as f64;
    let first = |all: &[String]| all.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    let is_at_most = |all: &[String], share: f64| {
        assert!(all.len() as f64 <= share * servers, "{summary}\n{}", first(all));
    };
    is_at_most(&counts.false_is, FALSE_IS);
    is_at_most(&counts.false_probably, FALSE_PROBABLY);
    is_at_most(&counts.without_command, 0.0);
    assert!(suffice >= SUFFICE * servers, "{summary}");
    assert!(named >= NAMED * suffice, "{summary}\n{}", first(&counts.missed));
}
