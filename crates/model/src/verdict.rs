//! Judges a run: was it the server that was measured, or the generator? Little's law, conservation
//! of requests and the other checks are asked here, graded, and make the verdict.
//!
//! What stays true: no check that was not looked at is counted as passed.

use crate::limit;
use crate::statistics::{LagSlope, Steadiness};
use crate::{
    Arrivals, CpuUsage, Diagnostic, Grade, Judgement, LaneFacts, Limit, LoadPlan, Nanos, Outcome,
    Pace, Profile, Run, Tally, Timing, Verdict, generator,
};

/// Checks that every run has. With `timing` on the spot a lane polls on purpose.
fn common(run: &Run, timing: Timing) -> Vec<Diagnostic> {
    let (tally, facts, rate) = (&run.tally, &run.generator, run.completed_rate());
    // A generator that is lost explains most of what follows.
    let mut checks = generator::far_checks(&facts.far);
    let counts = &tally.counts;
    checks.push(Diagnostic::Failures { failed: counts.failed(), planned: counts.total() });
    if counts.attempted() > 0 {
        checks.push(Diagnostic::Exhausted { connects: tally.exhausted });
    }
    // A run above its ceiling has disproved it: it was measured in a worse moment.
    let ceiling = facts.ceiling.filter(|ceiling| rate > 0.0 && rate <= 1.1 * ceiling.rate_per_s);
    if let Some(ceiling) = ceiling {
        checks.push(Diagnostic::Headroom {
            ceiling_per_s: ceiling.rate_per_s,
            times: ceiling.rate_per_s / rate,
        });
    }
    if let Some(response) = tally.response_time.quantile(0.99) {
        let share = |time: Nanos| time.0 as f64 / (response.0 as f64).max(1.0);
        let own = tally.generator_lag.quantile(0.99);
        checks
            .extend(own.map(|p99| Diagnostic::GeneratorLag { p99, of_response_time: share(p99) }));
        let read = tally.read_lag.quantile(0.99);
        checks.extend(read.map(|p99| Diagnostic::ReadLag { p99, of_response_time: share(p99) }));
    }
    checks.extend(bracket(run));
    checks.extend(facts.clock_steps.map(|steps| Diagnostic::ClockStep { steps }));
    let most = |part: fn(&LaneFacts) -> Nanos| {
        let shares = facts.lanes.iter().filter(|lane| lane.elapsed > Nanos::ZERO);
        shares.map(|lane| part(lane).0 as f64 / lane.elapsed.0 as f64).reduce(f64::max)
    };
    let work = most(LaneFacts::work).filter(|_| timing != Timing::Spin);
    checks.extend(work.map(|share| Diagnostic::LaneCpu { share }));
    checks.extend(most(|lane| lane.run_queue).map(|share| Diagnostic::LaneRunQueue { share }));
    let longest = facts.lanes.iter().map(|lane| lane.longest_standstill).max().unwrap_or_default();
    checks.extend(
        most(|lane| lane.stood_still).map(|share| Diagnostic::Standstill { share, longest }),
    );
    // The kernel counts for the whole machine: where all our connects were fast, what it dropped
    // was others'.
    let is_ours = |n: &u64| *n == 0 || has_stalled(tally);
    let (_, longest) = connects(tally);
    checks.extend(
        facts
            .listen_overflows
            .filter(is_ours)
            .map(|dropped| Diagnostic::ListenOverflows { dropped }),
    );
    checks.extend(
        facts
            .syn_retransmits
            .filter(is_ours)
            .map(|retried| Diagnostic::ConnectStalls { retried, longest }),
    );
    checks.extend(facts.steal.map(|share| Diagnostic::Steal { share }));
    checks
}

/// How much the generator may have added to the highest percentile that has an interval, up to p99.
fn bracket(run: &Run) -> Option<Diagnostic> {
    let known = run
        .statistics
        .as_ref()?
        .intervals
        .iter()
        .rev()
        .filter(|interval| interval.quantile <= 0.99);
    known.into_iter().find_map(|interval| {
        let time = run.tally.response_time_at(interval.quantile).time()?;
        let width = time.saturating_sub(interval.without_generator?);
        let half_interval = interval.high?.saturating_sub(interval.low?) / 2;
        let of_response_time = width.0 as f64 / (time.0 as f64).max(1.0);
        Some(Diagnostic::Bracket {
            quantile: interval.quantile,
            width,
            half_interval,
            of_response_time,
        })
    })
}

fn steadiness(run: &Run, is_claimed: bool) -> Option<Diagnostic> {
    let Steadiness { settled_after, shift, shift_in_errors, .. } =
        run.statistics.as_ref()?.steadiness?;
    Some(Diagnostic::Steadiness { settled_after, shift, shift_in_errors, is_claimed })
}

/// Little's law of a closed loop without think time: the mean over the requests due in the window,
/// times the rate of those that ended in it. What the window cuts off at either end is at most the
/// longest request, or what a lane that stood still did not read.
fn littles_law(run: &Run, connections: u32) -> Option<Diagnostic> {
    let (tally, rate, measured) = (&run.tally, run.completed_rate(), run.measured);
    // A failed request holds its connection too, and its time is not in the mean.
    if tally.counts.failed() > 0 || measured == Nanos::ZERO {
        return None;
    }
    // An answer that waits to be read keeps its connection, and by the kernel's stamps that wait is
    // not in the mean.
    let (response, unread) = (&tally.response_time, &tally.read_lag);
    let mean = response.sum().saturating_add(unread.sum()).as_secs_f64() / response.count() as f64;
    let stood_still =
        run.generator.lanes.iter().map(|lane| lane.longest_standstill).max().unwrap_or_default();
    let longest = response.max()? + unread.max().unwrap_or_default();
    let longest = longest.max(stood_still);
    let tolerance = longest.0 as f64 / measured.0 as f64;
    Some(Diagnostic::LittlesLaw { in_flight: mean * rate, connections, tolerance })
}

/// Where this share of the connects had to be tried again, the accept queue is what limits.
const RETRIED: f64 = 0.01;

/// How much a run asked of its server.
#[derive(Clone, Debug)]
enum LoadLevel {
    /// An open loop: what was offered was sent and completed. Then nothing is the limit.
    KeepsUp,
    /// Fewer connections than slots, or pauses; an open loop that did not send all.
    Below,
    /// As many connections as slots, or nobody who waits but for the server; an open loop: more was
    /// offered than it did.
    Saturated {
        /// The server's threads, where they would be the limit.
        threads: Option<Limit>,
    },
}

fn judged(run: &Run, checks: Vec<Diagnostic>, level: LoadLevel) -> Judgement {
    let facts = &run.generator;
    let keeps_up = matches!(level, LoadLevel::KeepsUp);
    let on_cpus = limit::of_cpus(facts);
    let is_shared = matches!(on_cpus, Some(Limit::SharedCpus(_)));
    // Where a lane stood still it waited for a CPU: nobody had stopped it.
    let waited = facts.lanes.iter().all(|lane| lane.stood_still <= lane.run_queue);
    let failed = || checks.iter().filter(|check| check.grade() == Grade::Failed);
    // Of one that kept its rate the share of a CPU says nothing; nor does the wait for one, where
    // the server waits as well.
    let convicts = |check: &&Diagnostic| match check {
        Diagnostic::Headroom { .. } | Diagnostic::LaneCpu { .. } if keeps_up => false,
        Diagnostic::LaneRunQueue { .. } if keeps_up || is_shared => false,
        Diagnostic::Standstill { .. } if is_shared && waited => false,
        check => check.blames_the_generator(),
    };
    let is_unsteady = |check: &Diagnostic| matches!(check, Diagnostic::Steadiness { .. });
    let convicted = failed().find(convicts).cloned();
    let (verdict, limit) = if failed()
        .any(|check| !check.blames_the_generator() && !is_unsteady(check))
    {
        (Verdict::Invalid, None)
    } else if let Some(check) = convicted {
        // A generator that stumbles makes a run unsteady, and not the other way round.
        let has_its_own = failed()
            .any(|check| matches!(check, Diagnostic::Headroom { .. } | Diagnostic::LaneCpu { .. }));
        let shared = on_cpus.filter(|_| is_shared && !has_its_own);
        (Verdict::GeneratorBound, Some(shared.unwrap_or(Limit::Generator { check })))
    } else if failed().any(is_unsteady) {
        (Verdict::Invalid, None)
    } else {
        // What a full accept queue drops is sent again too, and no network has lost it.
        let network = || limit::of_network(&run.tally).filter(|_| accept_queue(run).is_none());
        match level {
            LoadLevel::KeepsUp => (Verdict::Unloaded, None),
            LoadLevel::Below if on_cpus.is_none() => (Verdict::Unloaded, None),
            LoadLevel::Below | LoadLevel::Saturated { .. } if network().is_some() => {
                (Verdict::NetworkBound, network())
            }
            LoadLevel::Below | LoadLevel::Saturated { .. } if is_shared => {
                (Verdict::SharedCpus, on_cpus)
            }
            LoadLevel::Below => (Verdict::ServerBound, on_cpus),
            LoadLevel::Saturated { threads } => {
                let of_server = on_cpus.or_else(|| accept_queue(run)).or(threads);
                (
                    Verdict::ServerBound,
                    Some(of_server.unwrap_or(Limit::NotKnown { cpu: CpuUsage::of(facts) })),
                )
            }
        }
    };
    Judgement { verdict, limit, checks, forced: false }
}

fn accept_queue(run: &Run) -> Option<Limit> {
    let (dropped, retried) = (run.generator.listen_overflows?, run.generator.syn_retransmits?);
    let (connects, longest) = connects(&run.tally);
    let is_it = has_stalled(&run.tally)
        && dropped > 0
        && retried > 0
        && retried as f64 >= RETRIED * connects as f64;
    is_it.then_some(Limit::AcceptQueue { dropped, retried, longest })
}

/// The kernel tries a connect that nobody answered again after a second (RFC 6298, 2.1), so a
/// shorter one was answered at once.
const CONNECT_RETRY: Nanos = Nanos::from_millis(900);

/// Whether one of our connects was tried again.
fn has_stalled(tally: &Tally) -> bool {
    connects(tally).1 >= CONNECT_RETRY || tally.counts.of(Outcome::ConnectTimedOut) > 0
}

fn connects(tally: &Tally) -> (u64, Nanos) {
    (
        tally.phases.connect.count,
        if tally.phases.connect.count > 0 { tally.phases.connect.max } else { Nanos::ZERO },
    )
}

/// Threads are the limit where they do about what they can at the most; where they do less,
/// something behind them is.
const BUSY: f64 = 0.8;

/// Judges a run in closed loop on a server of `slots` slots.
pub fn of_run(run: &Run, slots: u32) -> Judgement {
    let mut checks = common(run, Timing::default());
    // Where a count ends the run, the connections end one after the other: load and response time
    // fall, and the law does not hold to the end.
    if run.tally.window.until != Nanos::MAX {
        checks.extend(steadiness(run, false));
        checks.extend(littles_law(run, run.connections));
    }
    // With as many connections as slots every slot is taken as soon as it is free.
    let is_saturated = run.connections >= slots;
    let of_maximum = run.of_maximum().filter(|share| *share >= BUSY);
    let threads = of_maximum.map(|of_maximum| Limit::Threads {
        slots,
        connections: run.connections,
        of_maximum,
    });
    judged(
        run,
        checks,
        if is_saturated { LoadLevel::Saturated { threads } } else { LoadLevel::Below },
    )
}

/// Judges a load.
pub fn of_load(run: &Run, plan: &LoadPlan) -> Judgement {
    if plan.pace.is_open() {
        return of_open_loop(run, &plan.pace, plan.timing);
    }
    let mut checks = common(run, plan.timing);
    checks.extend(steadiness(run, false));
    // Without think time nobody waits but for the server.
    let never_pauses = plan.think == Nanos::ZERO;
    if never_pauses && plan.length.is_some() && plan.requests_total.is_none() {
        checks.extend(littles_law(run, plan.connections * plan.pipeline.max(1)));
    }
    judged(
        run,
        checks,
        if never_pauses { LoadLevel::Saturated { threads: None } } else { LoadLevel::Below },
    )
}

/// Judges a load in open loop, whoever has started its server.
pub fn of_open_loop(run: &Run, pace: &Pace, timing: Timing) -> Judgement {
    let (counts, statistics) = (&run.tally.counts, run.statistics.as_ref());
    let mut checks = common(run, timing);
    // A request that waits for a connection, or is skipped for want of one, waits for the server.
    let unsent = counts.total() - counts.attempted() + run.tally.unfinished.not_sent;
    if run.tally.queued.count == 0 && unsent == 0 && run.tally.due() > 0 {
        checks
            .push(Diagnostic::SentInTime { sent: run.tally.sent_in_window, due: run.tally.due() });
    }
    if let Some(LagSlope { slope, in_errors, grown }) =
        statistics.and_then(|statistics| statistics.lag_slope)
    {
        checks.push(Diagnostic::LagSlope { slope, in_errors, grown });
    }
    checks.extend(poisson_count(run, pace));
    let is_behind = run.tally.queued.count > 0 || is_behind(run, pace);
    // What is offered more than it can do never settles, and a ramp is not meant to.
    if !is_behind && is_flat(pace) {
        checks.extend(steadiness(run, true));
    }
    let is_in_time = |check: &Diagnostic| {
        matches!(check, Diagnostic::SentInTime { .. }) && check.grade() == Grade::Passed
    };
    let level = match is_behind {
        true => LoadLevel::Saturated { threads: None },
        false if checks.iter().any(is_in_time) => LoadLevel::KeepsUp,
        false => LoadLevel::Below,
    };
    judged(run, checks, level)
}

/// Open loop: whether the server did not keep up with what became due, or not answer all of it
/// well. At one rate the backlog tells: what is under way at the end of the window is no lack.
fn is_behind(run: &Run, pace: &Pace) -> bool {
    let (counts, statistics) = (&run.tally.counts, run.statistics.as_ref());
    match statistics.and_then(|statistics| Some((statistics, statistics.backlog?))) {
        Some((statistics, backlog)) if is_flat(pace) => {
            let left = counts.of(Outcome::InFlight) + counts.of(Outcome::NotSent);
            let lost = counts.failed() - left;
            backlog.grows()
                || statistics.is_overload(&run.tally)
                || lost as f64 > 0.02 * counts.total() as f64
        }
        _ => run.completed_rate() < 0.98 * run.offered_rate(pace).unwrap_or_default(),
    }
}

fn is_flat(pace: &Pace) -> bool {
    matches!(pace, Pace::Closed | Pace::Open { profile: Profile::Flat { .. }, .. })
}

/// Whether the draw of independent arrivals came near the rate; asked of a flat rate, one at a
/// time.
fn poisson_count(run: &Run, pace: &Pace) -> Option<Diagnostic> {
    match pace {
        Pace::Open {
            profile: Profile::Flat { rate },
            arrivals: Arrivals::Poisson,
            burst: 1,
            ..
        } => {
            let expected = rate.per_second() * run.measured.as_secs_f64();
            (expected > 0.0).then_some(Diagnostic::PoissonCount { due: run.tally.due(), expected })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixtures::exchange;
    use crate::{GeneratorFacts, ProcessCpu, ServerCpu, Window};

    fn verdict(checks: &[Diagnostic], is_saturated: bool) -> Verdict {
        let level =
            if is_saturated { LoadLevel::Saturated { threads: None } } else { LoadLevel::Below };
        judged(&nothing(), checks.to_vec(), level).verdict
    }

    fn nothing() -> Run {
        Run::recorded(1, Tally::default(), Nanos::ZERO, Nanos::ZERO)
    }

    #[test]
    fn wrks_arithmetic_would_be_invalid_here() {
        // Seed 001: 32 connections, 2937 req/s, a printed mean of 41.30 ms.
        let check =
            Diagnostic::LittlesLaw { in_flight: 2937.14 * 0.0413, connections: 32, tolerance: 0.0 };
        assert_eq!(verdict(&[check], true), Verdict::Invalid);
    }

    #[test]
    fn a_lane_that_stood_still_as_the_window_began_breaks_no_law() {
        let ms = Nanos::from_millis;
        // It reads an answer of the warm-up 400 ms late, then sixty of 10 ms come in the second
        // that is measured.
        for (stood_still, grade) in [(ms(400), Grade::Passed), (ms(0), Grade::Failed)] {
            let mut tally = Tally::new(Window { from: ms(1000), until: ms(2000) }, 1);
            for due in (0..60).map(|n| 1400 + 10 * n) {
                tally.record(&exchange(due, due, due + 10), 0);
            }
            let mut run = Run::recorded(1, tally, ms(1000), ms(2000));
            run.generator.lanes =
                vec![LaneFacts { longest_standstill: stood_still, ..LaneFacts::default() }];
            assert_eq!(littles_law(&run, 1).map(|law| law.grade()), Some(grade));
        }
    }

    #[test]
    fn the_generator_is_named_before_the_server() {
        let tight = Diagnostic::Headroom { ceiling_per_s: 1000.0, times: 1.05 };
        assert_eq!(verdict(&[tight], true), Verdict::GeneratorBound);
        let nothing_due = Diagnostic::Failures { failed: 0, planned: 0 };
        assert_eq!(verdict(&[nothing_due], true), Verdict::Invalid, "no server was measured");
        assert_eq!(verdict(&[], true), Verdict::ServerBound);
        assert_eq!(verdict(&[], false), Verdict::Unloaded);
    }

    /// Puma, hello app, 50 connections, two CPUs: the lane waited 42 % of the time for one.
    fn on_shared_cpus() -> GeneratorFacts {
        let (second, ms) = (Nanos::from_secs(1), Nanos::from_millis);
        let server = ServerCpu {
            processes: vec![ProcessCpu { pid: 1, cpu: ms(1400), run_queue: ms(300) }],
            elapsed: second,
            requests: 16_000,
            of: 2.0,
            is_shared: true,
            busy: Some(1.98),
            idle: Some(0.0),
            is_ruby: true,
        };
        let lane =
            LaneFacts { cpu: ms(500), run_queue: ms(420), elapsed: second, ..LaneFacts::default() };
        GeneratorFacts { lanes: vec![lane], server: Some(server), ..GeneratorFacts::default() }
    }

    #[test]
    fn cpus_that_server_and_generator_share_are_neithers_limit() {
        let run = Run { generator: on_shared_cpus(), ..nothing() };
        let judge = |checks: &[Diagnostic], keeps_up| {
            let level =
                if keeps_up { LoadLevel::KeepsUp } else { LoadLevel::Saturated { threads: None } };
            judged(&run, checks.to_vec(), level)
        };
        let wait = || Diagnostic::LaneRunQueue { share: 0.42 };
        let rate = |times| Diagnostic::Headroom { ceiling_per_s: 16_000.0 * times, times };
        // Times that are the generator's are no server's, whoever had the CPU.
        let late =
            || Diagnostic::GeneratorLag { p99: Nanos::from_millis(9), of_response_time: 0.3 };
        let busy = || Diagnostic::LaneCpu { share: 0.97 };
        for (checks, keeps_up, verdict, limit) in [
            (vec![wait(), rate(9.9)], false, Verdict::SharedCpus, Some("shared CPUs")),
            (vec![wait(), late()], false, Verdict::GeneratorBound, Some("shared CPUs")),
            (vec![wait(), busy()], false, Verdict::GeneratorBound, Some("generator")),
            // All that was asked is kept, with a lane that is busy.
            (vec![wait(), busy(), rate(1.1)], true, Verdict::Unloaded, None),
        ] {
            let judged = judge(&checks, keeps_up);
            assert_eq!(
                (judged.verdict, judged.limit.as_ref().map(Limit::name)),
                (verdict, limit),
                "{checks:?}"
            );
            assert!(
                verdict != Verdict::SharedCpus || judged.grade(&wait()) == Grade::Doubtful,
                "it did not decide"
            );
        }
        assert_eq!(judge(&[late()], true).verdict, Verdict::GeneratorBound);
    }
}
