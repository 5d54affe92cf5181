//! The verdict: whether the server was measured or the generator, and which check decided.
//!
//! Invariant: a check that did not apply never counts as passed.

use model::{
    AtOnce, ClassTally, Counts, CpuUsage, Diagnostic, Histogram, Judgement, Limit, LoadPlan, Nanos,
    Outcome, Pace, Profile, Run, Strength, SweepStudy, Timing, Verdict,
};

use model::theory::{ServiceTime, UsualTime};

use crate::at_once;
use crate::checks::{self, Grade, assess, grade, machine_busy};
use crate::free_threads;
use crate::limits::{self, threads};
use crate::server_limit::{COLLAPSE, SAME_RATE, held, server_limit};
use crate::server_seen::{LoadSeen, ServerSeen};

/// How much load a run put on its server.
#[derive(Clone, Debug)]
enum LoadLevel {
    /// An open loop in which everything offered was sent and completed, so nothing was the limit.
    KeepsUp,
    /// A closed loop with fewer connections than slots, or with pauses; an open loop that did not
    /// send everything.
    Below,
    /// A closed loop with at least as many connections as slots, or without pauses; an open loop
    /// that offered more than the server completed.
    Saturated {
        /// The limit, if the server's threads are it.
        threads: Option<Limit>,
    },
}

/// Judges a single run in closed loop. `server`: its slots, processes, and what a request takes
/// alone; its loads are ignored.
pub fn of_run(run: &Run, server: &ServerSeen) -> Judgement {
    of_highest_load(run, &[], server)
}

/// Judges a run in closed loop that follows others with fewer connections, which may refute what it
/// alone would show.
pub fn of_highest_load(run: &Run, lower: &[Run], server: &ServerSeen) -> Judgement {
    // With as many connections as slots, every free slot is taken at once.
    let level = if run.connections >= server.slots {
        let usable = lower.iter().filter(|run| !has_many_failures(run));
        let loads = usable.chain([run]).map(|run| load_seen(run, server.alone.as_ref())).collect();
        let seen = ServerSeen { loads, ..server.clone() };
        let limit = of_loads(run, &seen)
            .filter(|limit| !rests_on_throughput(limit) || !is_below_best(run, &seen, COLLAPSE));
        let threads = limit.unwrap_or_else(|| not_known(run, Some(server)));
        LoadLevel::Saturated { threads: Some(threads) }
    } else {
        LoadLevel::Below
    };
    judged(run, checks::of_sweep(run), level)
}

/// What was seen of the server in a run.
fn load_seen(run: &Run, alone: Option<&ServiceTime>) -> LoadSeen {
    let times = &run.tally.service_time;
    let mean = times.mean().unwrap_or_default().as_secs_f64();
    let deviation = times.standard_deviation().unwrap_or_default().as_secs_f64();
    let variation = if mean > 0.0 { deviation / mean } else { 0.0 };
    let never_served = run.connections_never_served();
    LoadSeen {
        never_served,
        // A connection that is never served has no request inside and takes no thread.
        connections: run.connections - never_served,
        rate: run.completed_rate(),
        responses: run.tally.counts.good(),
        usual: alone.and_then(|alone| UsualTime::capped(times, alone.usual?.cap)),
        variation,
        busy: crate::busy_threads::of(run),
    }
}

/// The limit if CPUs, network and accept queue are not it.
fn of_loads(run: &Run, server: &ServerSeen) -> Option<Limit> {
    let at_once =
        server.alone.and_then(|alone| at_once::of_run(run, &alone, &server.classes_alone));
    if let Some(refusals) = limits::refusals::of(run, at_once) {
        return Some(refusals);
    }
    if has_many_failures(run) {
        return None;
    }
    let limit = server_limit(server);
    // Where all connections are one worker's, or some are never served, threads are idle although
    // requests wait: what is done at once tells nothing of the app.
    let is_partial = run.has_idle_worker() || run.connections_never_served() > 0;
    if is_partial && matches!(limit, Some(Limit::InsideApp { .. })) {
        return None;
    }
    let has_free_threads =
        server.alone.is_some_and(|alone| free_threads::inside(run, &alone, server.slots).is_some());
    match limit {
        // Requests that wait for a CPU are not held up inside the app; nor are those that take no
        // longer inside than alone.
        Some(Limit::InsideApp { .. })
            if has_free_threads || limits::cpus::are_waited_for(run, server.slots) =>
        {
            None
        }
        Some(Limit::Threads { busy, .. })
            if has_free_threads && !busy.is_some_and(|it| threads::are_busy(it, server.slots)) =>
        {
            None
        }
        limit => limit.map(|limit| limits::cpus::or_ruby_lock(limit, run)),
    }
}

/// What was seen, if no limit is known. `server`: of a sweep, with what one request takes alone. In
/// a load whose user said how long each request takes (`--service`), an overload shows how many are
/// worked on at a time.
fn not_known(run: &Run, server: Option<&ServerSeen>) -> Limit {
    let known = server.filter(|_| !has_many_failures(run));
    let at_once = known
        .and_then(|server| at_once::of_run(run, server.alone.as_ref()?, &server.classes_alone));
    Limit::NotKnown {
        cpu: CpuUsage::of(&run.generator),
        at_once: at_once.or_else(|| worked_on_in_overload(run)),
        busy: server.and_then(|_| crate::busy_threads::of(run)),
    }
}

/// A failed request may have held a thread as long as a good one, or longer, so with many of them
/// the rate of good ones says little about the threads.
fn has_many_failures(run: &Run) -> bool {
    run.tally.counts.failed() as f64 > MANY_FAILURES * run.tally.counts.total() as f64
}

const MANY_FAILURES: f64 = 0.01;

/// What is known about a sweep's server, without its loads.
pub fn server_of(study: &SweepStudy) -> ServerSeen {
    let classes_alone = study.classes_alone.clone();
    let seen = ServerSeen::of(&study.server, study.plan.stream.keep_alive, study.service_time);
    ServerSeen { classes_alone, ..seen }
}

/// Judges the runs of a sweep again when all loads are known: one load may refute what another
/// seemed to show.
pub fn refine_sweep(study: &mut SweepStudy) {
    let server = seen_in_all_loads(study);
    let evidence = study.runs.iter().filter(|run| run.is_evidence() && run.claim.is_none());
    let Some(last) = evidence.max_by_key(|run| run.connections) else { return };
    let at_highest = of_loads(last, &server);
    let highest = last.connections;
    let seen = ServerSeen { alone: held(&server), ..server.clone() };
    let takes_more = matches!(at_highest, Some(Limit::MoreThanStated { .. }));
    let ignores_rate = at_highest.as_ref().is_some_and(|limit| !rests_on_throughput(limit));
    for run in &mut study.runs {
        run.warnings.retain(|warning| {
            !checks::is_above_maximum_explained(warning, server.alone.as_ref(), takes_more)
        });
    }
    let ours = study.runs.iter_mut().filter(|run| run.claim.is_none());
    for run in ours.filter(|run| is_bound_by_threads(run)) {
        let connections = run.connections;
        let nothing_known = not_known(run, Some(&seen));
        // What the highest load shows is also this run's limit if the throughput is about the best.
        // For the highest load itself only a collapse of its throughput refutes that, and not even
        // a collapse if the limit does not rest on throughput.
        let is_highest = connections == highest;
        let lower = if is_highest { COLLAPSE } else { SAME_RATE };
        let is_full = !is_below_best(run, &server, lower) || ignores_rate && is_highest;
        let Some(judgement) = run.judgement.as_mut() else { continue };
        judgement.limit = match (&at_highest, is_full) {
            (Some(limit), true) => Some(with_connections(limit.clone(), connections)),
            // Below the limit of a higher load, no limit is known.
            (Some(_), false) | (None, _) => Some(nothing_known),
        };
    }
}

/// Whether a limit rests on throughput alone, not on how much the server takes at once, a count of
/// busy threads, or requests that take longer than alone already at a lower load.
fn rests_on_throughput(limit: &Limit) -> bool {
    !matches!(
        limit,
        Limit::MoreThanStated { .. }
            | Limit::Threads { busy: Some(_), .. }
            | Limit::InsideApp { hindered: Some(_), .. }
    )
}

/// Whether the throughput of this run is below the best of all loads by more than this share, beyond
/// chance.
fn is_below_best(run: &Run, server: &ServerSeen, by: f64) -> bool {
    let Some(best) = server.loads.iter().max_by(|a, b| a.rate.total_cmp(&b.rate)) else {
        return false;
    };
    let here = server.scatter(run.tally.counts.good());
    let scatter = here.hypot(server.scatter(best.responses));
    run.completed_rate() < (1.0 - by - scatter) * best.rate
}

/// A sweep's server as all its loads show it, the lowest first.
fn seen_in_all_loads(study: &SweepStudy) -> ServerSeen {
    let server = server_of(study);
    let evidence = study
        .runs
        .iter()
        .filter(|run| run.is_evidence() && run.claim.is_none() && !has_many_failures(run));
    let mut loads: Vec<LoadSeen> =
        evidence.map(|run| load_seen(run, server.alone.as_ref())).collect();
    loads.sort_by_key(|load| load.connections);
    ServerSeen { loads, ..server }
}

/// Whether the server was the limit of a run, by its threads or by what is behind them.
fn is_bound_by_threads(run: &Run) -> bool {
    let Some(judgement) = &run.judgement else { return false };
    let is_about_threads = matches!(
        judgement.limit,
        Some(
            Limit::Threads { .. }
                | Limit::InsideApp { .. }
                | Limit::MoreThanStated { .. }
                | Limit::NotKnown { .. }
        )
    );
    judgement.verdict == Verdict::ServerBound && is_about_threads
}

/// The same limit at another load.
fn with_connections(limit: Limit, here: u32) -> Limit {
    match limit {
        Limit::Threads { slots, at_once, busy, unhindered, strength, computes, .. } => {
            let connections = here;
            Limit::Threads { slots, connections, at_once, busy, unhindered, strength, computes }
        }
        limit => limit,
    }
}

/// Judges a load.
pub fn of_load(run: &Run, plan: &LoadPlan) -> Judgement {
    if plan.load.pace.is_open() {
        return of_open_loop(run, &plan.load.pace, plan.load.timing);
    }
    // Without think time a connection only ever waits for the server.
    let level = if plan.load.think == Nanos::ZERO {
        LoadLevel::Saturated { threads: None }
    } else {
        LoadLevel::Below
    };
    judged(run, checks::of_closed_load(run, plan), level)
}

/// Judges a load in open loop, whether or not longtail started its server.
pub fn of_open_loop(run: &Run, pace: &Pace, timing: Timing) -> Judgement {
    let is_behind = run.tally.queued.count > 0 || is_behind(run, pace);
    // An overload never settles, and a ramp is not meant to.
    let is_settling = !is_behind && is_flat(pace);
    let checks = checks::of_open_loop(run, pace, timing, is_settling);
    let is_in_time = |check: &Diagnostic| {
        matches!(check, Diagnostic::SentInTime { .. }) && grade(check) == Grade::Passed
    };
    let level = match is_behind {
        true => LoadLevel::Saturated { threads: threads_in_overload(run) },
        false if checks.iter().any(is_in_time) => LoadLevel::KeepsUp,
        false => LoadLevel::Below,
    };
    judged(run, checks, level)
}

/// The threads of a server on this machine, if an overload shows that all of them are busy: each
/// request holds one for as long as the user says, or else for as long as the fastest took, which found
/// one free.
fn threads_in_overload(run: &Run) -> Option<Limit> {
    let overload = run.overload.as_ref().filter(|overload| overload.doubt.is_none())?;
    let slots = run.generator.server.as_ref()?.threads?;
    let by_the_fastest = || {
        let fastest = run.tally.service_time.quantile(FASTEST)?;
        let mean = overload.answered * fastest.as_secs_f64();
        Some(AtOnce { mean, low: mean, high: Some(mean) })
    };
    let at_once = worked_on_in_overload(run).or_else(by_the_fastest)?;
    threads::is_that_number(&at_once, slots).then_some(Limit::Threads {
        slots,
        connections: run.connections,
        at_once: Some(at_once),
        busy: None,
        unhindered: None,
        strength: Strength::Probably,
        computes: None,
    })
}

/// The share of requests that are the fastest ones.
pub(crate) const FASTEST: f64 = 0.001;

/// How many requests an overload shows to be worked on at a time, where the user said how long each
/// takes (`--service`).
fn worked_on_in_overload(run: &Run) -> Option<AtOnce> {
    let overload = run.overload.as_ref().filter(|overload| overload.doubt.is_none())?;
    let service = overload.service_time?;
    // Responses were counted; what their times say of the capacity is only an inference.
    let mean = overload.answered * service.as_secs_f64();
    let inferred = overload.slots?;
    Some(AtOnce {
        mean,
        low: mean.min(inferred.value - inferred.half_width),
        high: Some(mean.max(inferred.value + inferred.half_width)),
    })
}

/// Open loop: whether the server fell behind what became due, or some requests failed. At a
/// constant rate the backlog shows it; requests that are still in flight at the end of the window
/// don't.
fn is_behind(run: &Run, pace: &Pace) -> bool {
    let counts = &run.tally.counts;
    let statistics = run.statistics.as_ref();
    match statistics.and_then(|statistics| statistics.backlog) {
        Some(backlog) if is_flat(pace) => {
            let left = counts.of(Outcome::InFlight) + counts.of(Outcome::NotSent);
            let lost = counts.failed() - left - failed_without_load(run);
            backlog.grows()
                || run.is_overload()
                || left_at_end(run).is_some()
                || lost as f64 > 0.02 * counts.total() as f64
        }
        _ => run.completed_rate() < 0.98 * run.offered_rate(pace).unwrap_or_default(),
    }
}

/// Requests that failed for another reason than a server that is too slow: all of a class of which
/// none succeeds, and those whose response came about as soon as a good one of their class. A 503 or
/// 429 is how a server says that it has too much to do.
fn failed_without_load(run: &Run) -> u64 {
    let tally = &run.tally;
    if tally.counts.good() == 0 {
        return 0;
    } else if tally.classes.is_empty() {
        return errors_as_soon(&tally.counts, &tally.response_time, &tally.failed_response_time);
    }
    let of = |class: &ClassTally| {
        errors_as_soon(&class.counts, &class.response_time, &class.failed_response_time)
    };
    tally.classes.iter().map(of).sum()
}

/// How many errors came about as soon as these good responses; all of them if there is no good one.
fn errors_as_soon(counts: &Counts, good: &Histogram, failed: &Histogram) -> u64 {
    let errors = counts.sum_of(Outcome::is_error);
    let refused = counts.sum_of(Outcome::is_refusal);
    let Some(usual) = good.quantile(0.5) else { return errors };
    let soon = failed.buckets().filter(|(time, _)| *time <= usual * SOON);
    let soon: u64 = soon.map(|(_, requests)| requests).sum();
    // A server refuses at once, so the soonest are the refused ones.
    errors.min(soon.saturating_sub(refused))
}

/// A failure comes soon if it takes at most this many times as long as half of the good responses.
const SOON: u64 = 2;

/// How many requests had no response when a load at a constant rate ended, if notably fewer were
/// completed than offered and these are many more than are usually in flight. The trend of such a
/// backlog may be too rough to be beyond chance, and still the server did not keep up, or some
/// requests take very long.
pub(crate) fn left_at_end(run: &Run) -> Option<u64> {
    let backlog = run.statistics.as_ref()?.backlog?;
    let usual = run.tally.response_time.quantile(0.5)?.as_secs_f64() * backlog.offered;
    let are_many = backlog.at_end as f64 > MANY_LEFT * usual.max(1.0) + FEW_LEFT;
    let offered = backlog.offered * backlog.over.as_secs_f64();
    let is_notable = backlog.at_end as f64 > NOTABLY_LEFT * offered;
    (are_many && is_notable).then_some(backlog.at_end)
}

/// So many times as many requests as are usually in flight are many, and more than so few.
const MANY_LEFT: f64 = 10.0;
const FEW_LEFT: f64 = 10.0;
/// This share of all requests, if left at the end, is notable.
const NOTABLY_LEFT: f64 = 0.01;

fn is_flat(pace: &Pace) -> bool {
    matches!(pace, Pace::Closed | Pace::Open { profile: Profile::Flat { .. }, .. })
}

fn judged(run: &Run, checks: Vec<Diagnostic>, level: LoadLevel) -> Judgement {
    let facts = &run.generator;
    let keeps_up = matches!(level, LoadLevel::KeepsUp);
    let on_cpus = limits::cpus::of(facts);
    let is_shared = matches!(on_cpus, Some(Limit::SharedCpus(_)));
    // A generator thread that waits for a CPU stands still for that reason: it was not stopped.
    let only_waited = facts.lanes.iter().all(|lane| lane.stood_still <= lane.run_queue);
    let failed: Vec<&Diagnostic> =
        checks.iter().filter(|check| grade(check) == Grade::Failed).collect();
    // If the generator kept its rate, its CPU use does not matter; nor does its wait for a CPU if
    // the server waits for the same CPUs.
    let implicates = |check: &Diagnostic| match check {
        Diagnostic::Headroom { .. } | Diagnostic::LaneCpu { .. } if keeps_up => false,
        Diagnostic::LaneRunQueue { .. } if keeps_up || is_shared => false,
        Diagnostic::Standstill { .. } if is_shared && only_waited => false,
        check => assess(check).implicates_generator,
    };
    let is_unsteady = |check: &Diagnostic| matches!(check, Diagnostic::Steadiness { .. });
    let voids = |check: &Diagnostic| !assess(check).implicates_generator && !is_unsteady(check);
    let first = |decides: &dyn Fn(&Diagnostic) -> bool| {
        failed.iter().find(|check| decides(check)).map(|check| (*check).clone())
    };
    let (verdict, limit, decided_by) = if let Some(check) = first(&voids) {
        (Verdict::Invalid, None, Some(check))
    } else if let Some(check) = first(&implicates) {
        // A generator that stumbles makes a run unsteady, not the other way round.
        let has_own_limit = failed
            .iter()
            .any(|check| matches!(check, Diagnostic::Headroom { .. } | Diagnostic::LaneCpu { .. }));
        let busy = checks.iter().find(|it| matches!(it, Diagnostic::MachineBusy { .. }));
        let check = busy.filter(|_| machine_busy::is_delay(&check)).cloned().unwrap_or(check);
        let shared = on_cpus.filter(|_| is_shared && !has_own_limit);
        let limit = shared.unwrap_or(Limit::Generator { check: check.clone() });
        (Verdict::GeneratorBound, Some(limit), Some(check))
    } else if let Some(check) = first(&is_unsteady) {
        (Verdict::Invalid, None, Some(check))
    } else {
        let (verdict, limit) = of_the_server(run, level, on_cpus);
        (verdict, limit, None)
    };
    Judgement { verdict, decided_by, limit, checks, forced: false }
}

/// Verdict and limit of a run that passed its checks.
fn of_the_server(run: &Run, level: LoadLevel, on_cpus: Option<Limit>) -> (Verdict, Option<Limit>) {
    let is_shared = matches!(on_cpus, Some(Limit::SharedCpus(_)));
    // Drops by a full accept queue also cause retransmissions, and the network is not to blame.
    let accept_queue = limits::accept_queue::of(run);
    let network = limits::network::of(&run.tally).filter(|_| accept_queue.is_none());
    match level {
        LoadLevel::KeepsUp => (Verdict::Unloaded, None),
        LoadLevel::Below if on_cpus.is_none() => (Verdict::Unloaded, None),
        LoadLevel::Below | LoadLevel::Saturated { .. } if network.is_some() => {
            (Verdict::NetworkBound, network)
        }
        // A server that sheds load uses its CPUs for that; they are not its limit.
        LoadLevel::Saturated { threads: Some(refuses @ Limit::Refusals { .. }) } => {
            (Verdict::ServerBound, Some(refuses))
        }
        LoadLevel::Below | LoadLevel::Saturated { .. } if is_shared => {
            (Verdict::SharedCpus, on_cpus)
        }
        LoadLevel::Below => (Verdict::ServerBound, on_cpus),
        LoadLevel::Saturated { threads } => {
            let seen = on_cpus.or(accept_queue).or(threads);
            let limit = seen.unwrap_or_else(|| not_known(run, None));
            (Verdict::ServerBound, Some(limit))
        }
    }
}

/// Adds a check that makes the run invalid if it failed.
#[must_use]
pub fn with_check(mut judgement: Judgement, check: Diagnostic) -> Judgement {
    if grade(&check) == Grade::Failed {
        if judgement.verdict != Verdict::Invalid {
            judgement.decided_by = Some(check.clone());
        }
        judgement.verdict = Verdict::Invalid;
        judgement.limit = None;
    }
    judgement.checks.push(check);
    judgement
}

/// A check's grade within its run: if no check decided the verdict, a failed one is only doubtful.
pub fn grade_in(judgement: &Judgement, check: &Diagnostic) -> Grade {
    let decides = matches!(judgement.verdict, Verdict::GeneratorBound | Verdict::Invalid);
    if decides { grade(check) } else { grade(check).min(Grade::Doubtful) }
}

/// The checks that were not passed: the one that decided first, then the worst first.
pub fn troubles(judgement: &Judgement) -> Vec<&Diagnostic> {
    let mut troubles: Vec<&Diagnostic> =
        judgement.checks.iter().filter(|check| grade(check) > Grade::Passed).collect();
    let is_decider = |check: &Diagnostic| judgement.decided_by.as_ref() == Some(check);
    troubles
        .sort_by_key(|check| std::cmp::Reverse((is_decider(check), grade_in(judgement, check))));
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{
        ClassTally, Exchange, GeneratorFacts, LaneFacts, ProcessCpu, ServerCpu, Tally, Window,
    };

    fn verdict(checks: &[Diagnostic], is_saturated: bool) -> Verdict {
        let level =
            if is_saturated { LoadLevel::Saturated { threads: None } } else { LoadLevel::Below };
        judged(&nothing(), checks.to_vec(), level).verdict
    }

    fn nothing() -> Run {
        Run::recorded(1, Tally::default(), Nanos::ZERO, Nanos::ZERO)
    }

    #[test]
    fn failures_of_a_server_that_is_not_too_slow_are_no_overload() {
        let run = |status, of_class: bool, failed_ms: u64| {
            let mut run = nothing();
            let window = Window { from: Nanos::ZERO, until: Nanos::MAX };
            run.tally = Tally::new(window, 1);
            let mut classes = ["/posts", "boom"].map(ClassTally::new);
            for n in 0..100_u64 {
                let is_failure = n % 20 == 0;
                let ended = Nanos::from_millis(if is_failure { failed_ms } else { 10 });
                let outcome = Outcome::Answered(if is_failure { status } else { 200 });
                let [due, sent] = [Nanos::ZERO; 2];
                let exchange = Exchange { due, sent, ended, received_bytes: 1, outcome };
                let class = &mut classes[usize::from(is_failure && of_class)];
                run.tally.record_of(Some(class), &exchange, 0);
            }
            run.tally.add_classes(&classes);
            run.tally.classes = classes.to_vec();
            run
        };
        let count = |run: &Run| failed_without_load(run);
        assert_eq!(count(&run(500, true, 500)), 5, "a class that always fails");
        assert_eq!(count(&run(500, false, 15)), 5, "soon");
        assert_eq!(count(&run(500, false, 500)), 0, "after a wait, as for a pool");
        assert_eq!(count(&run(503, true, 1)), 0, "refused");
    }

    #[test]
    fn a_mean_that_contradicts_littles_law_like_wrks_is_invalid() {
        // wrk printed a mean of 41.30 ms for 32 connections and 2937 req/s.
        let check =
            Diagnostic::LittlesLaw { in_flight: 2937.14 * 0.0413, connections: 32, tolerance: 0.0 };
        assert_eq!(verdict(&[check], true), Verdict::Invalid);
    }

    #[test]
    fn the_generator_is_blamed_before_the_server() {
        let tight = Diagnostic::Headroom { ceiling_per_s: 1000.0, times: 1.05 };
        assert_eq!(verdict(&[tight], true), Verdict::GeneratorBound);
        let nothing_due = Diagnostic::Failures { failed: 0, planned: 0 };
        assert_eq!(verdict(&[nothing_due], true), Verdict::Invalid, "no server was measured");
        assert_eq!(verdict(&[], true), Verdict::ServerBound);
        assert_eq!(verdict(&[], false), Verdict::Unloaded);
    }

    /// Puma with a hello app, 50 connections and two CPUs: the lane waited for a CPU 42 % of the
    /// time.
    fn on_shared_cpus() -> GeneratorFacts {
        let second = Nanos::from_secs(1);
        let ms = Nanos::from_millis;
        let server = ServerCpu {
            children: Nanos::ZERO,
            processes: vec![ProcessCpu { pid: 1, cpu: ms(1400), run_queue: ms(300) }],
            elapsed: second,
            requests: 16_000,
            of: 2.0,
            by_quota: false,
            is_shared: true,
            busy: Some(1.98),
            idle: Some(0.0),
            is_ruby: true,
            threads: None,
        };
        let lane =
            LaneFacts { cpu: ms(500), run_queue: ms(420), elapsed: second, ..LaneFacts::default() };
        GeneratorFacts { lanes: vec![lane], server: Some(server), ..GeneratorFacts::default() }
    }

    #[test]
    fn shared_cpus_are_neither_the_servers_nor_the_generators_limit() {
        let run = Run { generator: on_shared_cpus(), ..nothing() };
        let judge = |checks: &[Diagnostic], keeps_up| {
            let level =
                if keeps_up { LoadLevel::KeepsUp } else { LoadLevel::Saturated { threads: None } };
            judged(&run, checks.to_vec(), level)
        };
        let wait = || Diagnostic::LaneRunQueue { share: 0.42 };
        let rate = |times| Diagnostic::Headroom { ceiling_per_s: 16_000.0 * times, times };
        // If the generator was late, the times are not the server's, whatever used the CPU.
        let late =
            || Diagnostic::GeneratorLag { p99: Nanos::from_millis(9), of_response_time: 0.3 };
        let busy = || Diagnostic::LaneCpu { share: 0.97 };
        for (checks, keeps_up, verdict, limit) in [
            (vec![wait(), rate(9.9)], false, Verdict::SharedCpus, Some("shared CPUs")),
            (vec![wait(), late()], false, Verdict::GeneratorBound, Some("shared CPUs")),
            (vec![wait(), busy()], false, Verdict::GeneratorBound, Some("generator")),
            // The whole load was sent, though a lane was busy.
            (vec![wait(), busy(), rate(1.1)], true, Verdict::Unloaded, None),
        ] {
            let judged = judge(&checks, keeps_up);
            assert_eq!(
                (judged.verdict, judged.limit.as_ref().map(limits::name)),
                (verdict, limit),
                "{checks:?}"
            );
            assert!(
                verdict != Verdict::SharedCpus || grade_in(&judged, &wait()) == Grade::Doubtful,
                "it did not decide"
            );
        }
        assert_eq!(judge(&[late()], true).verdict, Verdict::GeneratorBound);
    }
}
