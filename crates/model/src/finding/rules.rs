//! Draws findings from the figures of the runs. Where the figures do not decide, the finding says
//! so. A run that failed its checks is no evidence for anything but that.

use super::{FailureCount, Finding};
use crate::{
    BodiesStudy, BodyRun, CpuUsage, Diagnostic, Judgement, Limit, LoadPlan, Nanos, Pace,
    PercentileTime, Run, Study, SweepStudy, Verdict,
};

/// Throughput within this part of the best is no other.
const SAME_RATE: f64 = 0.05;
/// It is worth a word where throughput at the highest load is this part lower than the best.
const COLLAPSE: f64 = 0.15;
/// Other processes disturb a comparison of two loads where they have this part of the CPUs more at
/// one than at the other.
const DISTURBED: f64 = 0.10;
/// Loads that differ by less than this factor do not show whether throughput still rises.
const NEXT_LOAD: f64 = 1.2;
/// Unfair: the fast group takes at most this part of what each would take in order,
const FAST: f64 = 0.75;
/// and the slow group at least so many times that.
const SLOW: f64 = 1.5;
/// Of the slow share, at most this part may be there when no request waits for another.
const OF_THE_APP: f64 = 0.25;
/// In order: median and 95th percentile are within these parts of connections / throughput.
const ORDERLY: [f64; 2] = [0.67, 1.5];
/// A worker's part differs from an even share by more than this, and by more than chance.
const UNEVEN: f64 = 0.10;
/// Standard errors: beyond chance.
const BEYOND_CHANCE: f64 = 5.0;
/// Seconds over which a peak is taken: fewer are noise.
const PEAK: usize = 3;
/// The accept queue is worth a word from this part of the response time on.
const QUEUE_PART: f64 = 0.1;

/// The findings of a study, the most important first.
pub fn findings(study: &Study) -> Vec<Finding> {
    match study {
        study if study.is_claimed() => claimed(study).into_iter().collect(),
        Study::Sweep(study) => of_sweep(study),
        Study::Load(study) => of_load(&study.run, &study.plan),
        Study::Bodies(study) => bodies(study).into_iter().collect(),
        // Its conclusions are its estimates, in `comparison`.
        Study::Compare(_) => Vec::new(),
    }
}

/// From the slowest body to the fastest.
fn bodies(study: &BodiesStudy) -> Option<Finding> {
    let good = study.sorted().into_iter().filter(|row| row.run.is_evidence());
    let runs: Vec<&BodyRun> = good.collect();
    let by_rate =
        |a: &&&BodyRun, b: &&&BodyRun| a.run.completed_rate().total_cmp(&b.run.completed_rate());
    let (slowest, fastest) = (runs.iter().min_by(by_rate)?, runs.iter().max_by(by_rate)?);
    let name = |row: &BodyRun| format!("{} {}", row.socket, row.body);
    (runs.len() > 1).then(|| Finding::BodyRange {
        slowest: name(slowest),
        slowest_per_s: slowest.run.completed_rate(),
        fastest: name(fastest),
        fastest_per_s: fastest.run.completed_rate(),
    })
}

/// What another generator's figures are worth.
fn claimed(study: &Study) -> Option<Finding> {
    let runs = study.runs();
    let claims = runs.iter().filter_map(|run| run.claim.as_deref());
    let worst = claims.max_by_key(|claim| claim.audit)?;
    Some(Finding::Claimed { by: worst.name(), audit: worst.audit })
}

/// Of one load: the run whose rate is the median of its repeats.
struct SweepPoint<'a> {
    run: &'a Run,
    multiple: f64,
    rate: f64,
}

impl SweepPoint<'_> {
    /// Connections / throughput: by Little's law the mean response time of a closed loop that never
    /// pauses, and in order everybody's.
    fn in_order(&self) -> Nanos {
        Nanos::from_secs_f64(f64::from(self.run.connections) / self.rate)
    }

    fn limit(&self) -> Option<&Limit> {
        self.run.judgement.as_ref()?.limit.as_ref()
    }
}

fn points(study: &SweepStudy) -> Vec<SweepPoint<'_>> {
    let mut loads: Vec<u32> = study.runs.iter().map(|run| run.connections).collect();
    loads.sort_unstable();
    loads.dedup();
    let median = |connections: &u32| {
        let is_good = |run: &&Run| {
            run.connections == *connections && run.is_evidence() && run.completed_rate() > 0.0
        };
        let mut runs: Vec<&Run> = study.runs.iter().filter(is_good).collect();
        runs.sort_by(|a, b| a.completed_rate().total_cmp(&b.completed_rate()));
        let run = *runs.get(runs.len() / 2)?;
        Some(SweepPoint { run, multiple: run.multiple?, rate: run.completed_rate() })
    };
    loads.iter().filter_map(median).collect()
}

fn of_sweep(study: &SweepStudy) -> Vec<Finding> {
    let points = points(study);
    let slots = study.server.slots();
    let mut findings = not_measured(study);
    findings.extend(throughput(&points));
    findings.extend(order_of_service(&points, slots));
    findings.extend(failures(study));
    if let Some(limit) =
        points.iter().rev().find_map(|point| point.limit()).filter(|limit| says_something(limit))
    {
        let alike =
            |point: &&SweepPoint<'_>| point.limit().is_some_and(|it| it.name() == limit.name());
        let runs = points.iter().filter(alike).count() as u32;
        findings.push(Finding::Limited { limit: limit.clone(), slots: Some(slots), runs });
    }
    findings.extend(turns(study, &points));
    findings.extend(points.iter().rev().find_map(accept_queue));
    findings.extend(points.iter().rev().find_map(uneven_workers));
    findings
}

/// Of a limit that is not known, and where nothing was read of the server, there is nothing to say.
fn says_something(limit: &Limit) -> bool {
    !matches!(limit, Limit::NotKnown { cpu: None })
}

/// The runs that say nothing of the server, by verdict.
fn not_measured(study: &SweepStudy) -> Vec<Finding> {
    let of = |verdict: Verdict| {
        let runs = || {
            study
                .runs
                .iter()
                .filter(move |run| run.judgement.as_ref().is_some_and(|it| it.verdict == verdict))
        };
        let judgement = runs().next()?.judgement.as_ref()?;
        let is_one = study.runs.len() == 1;
        let names = runs().filter(|_| !is_one).map(Run::in_multiples).collect();
        Some(Finding::NotMeasured { runs: names, verdict, check: decider(judgement) })
    };
    [Verdict::Invalid, Verdict::GeneratorBound].into_iter().filter_map(of).collect()
}

fn decider(judgement: &Judgement) -> Option<Diagnostic> {
    judgement.troubles().first().map(|check| (*check).clone())
}

fn throughput(points: &[SweepPoint<'_>]) -> Option<Finding> {
    let best = points.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))?;
    let (last, first) = (points.last()?, points.first()?);
    let (connections, rate_per_s) = (last.run.connections, last.rate);
    if last.rate < (1.0 - COLLAPSE) * best.rate {
        let (best_connections, best_per_s) = (best.run.connections, best.rate);
        let [at_best, at_last] = [best, last].map(|point| CpuUsage::of(&point.run.generator));
        let more_cpus_of_others = at_best.zip(at_last).and_then(|(best, last)| {
            let more = last.others? - best.others?;
            (more > DISTURBED * last.of).then_some(more)
        });
        return Some(Finding::Collapsing {
            best_connections,
            best_per_s,
            connections,
            rate_per_s,
            more_cpus_of_others,
        });
    }
    let reached = points.iter().find(|point| point.rate >= (1.0 - SAME_RATE) * best.rate)?;
    let is_flat = f64::from(connections) >= NEXT_LOAD * f64::from(reached.run.connections);
    let has_limit = reached.limit().is_some_and(|limit| !matches!(limit, Limit::NotKnown { .. }));
    if points.len() == 1 && !has_limit {
        return Some(Finding::OneLoad { connections, rate_per_s });
    }
    if !is_flat && !has_limit {
        return Some(Finding::StillRising { connections, rate_per_s });
    }
    Some(Finding::Saturated {
        connections: reached.run.connections,
        is_lowest: reached.run.connections == first.run.connections,
        is_only: points.len() == 1,
        rate_per_s: best.rate,
        on_shared_cpus: matches!(last.limit(), Some(Limit::SharedCpus(_))),
    })
}

/// How long requests wait at the highest load, beside how long they would wait in order.
fn order_of_service(points: &[SweepPoint<'_>], slots: u32) -> Option<Finding> {
    let last = points.last().filter(|point| point.run.connections > slots)?;
    // What the network or a dropped connect delays says nothing about the order of service.
    if matches!(last.limit(), Some(Limit::Network { .. } | Limit::AcceptQueue { .. })) {
        return None;
    }
    let (multiple, connections, in_order) = (last.multiple, last.run.connections, last.in_order());
    let times = &last.run.tally.response_time;
    let has_turns =
        last.run.warnings.iter().any(|warning| matches!(warning, Diagnostic::ServedInTurns { .. }));
    let alone = points.iter().rev().find(|point| point.run.connections <= slots);
    if let Some(groups) = times.two_groups().filter(|_| last.run.tally.counts.censored() == 0) {
        let by_app = alone
            .map(|alone| alone.run.tally.response_time.share_above(groups.cut) / groups.slow_share);
        // Turns that were seen explain the slow ones where no run without waiting was made.
        let by_app = by_app.or(has_turns.then_some(0.0));
        let is_unfair = groups.fast_mean.0 as f64 <= FAST * in_order.0 as f64
            && groups.slow_mean.0 as f64 >= SLOW * in_order.0 as f64;
        return match (by_app, alone) {
            (Some(part), _) if part < OF_THE_APP && is_unfair => {
                Some(Finding::Unfair { multiple, connections, groups, in_order })
            }
            (Some(part), Some(alone)) if part >= OF_THE_APP => {
                let groups = alone.run.tally.response_time.two_groups();
                groups
                    .map(|groups| Finding::AppVaries { connections: alone.run.connections, groups })
            }
            (None, _) => Some(Finding::Undecided { connections, groups, in_order }),
            _ => spread(last),
        };
    }
    spread(last)
}

/// In order, or not, of a run whose requests are of one kind.
fn spread(point: &SweepPoint<'_>) -> Option<Finding> {
    let (multiple, connections, in_order) =
        (point.multiple, point.run.connections, point.in_order());
    let [p50, p95] = [0.50, 0.95].map(|q| point.run.response_time(q).time());
    let (p50, p95) = (p50?, p95?);
    let part = |time: Nanos| time.0 as f64 / in_order.0 as f64;
    if part(p50) >= ORDERLY[0] && part(p95) <= ORDERLY[1] {
        Some(Finding::InOrder { multiple, connections, p50, p95, in_order })
    } else {
        Some(Finding::Spread { multiple, connections, p50, p95, in_order })
    }
}

fn failures(study: &SweepStudy) -> Option<Finding> {
    let runs: Vec<&Run> = study.runs.iter().filter(|run| run.tally.counts.failed() > 0).collect();
    let names =
        runs.iter().filter(|_| study.runs.len() > 1).map(|run| run.in_multiples()).collect();
    failed(names, runs.iter().map(|run| &run.tally.counts), study.plan.stream.timeout)
}

fn failed<'a>(
    runs: Vec<String>,
    counts: impl Iterator<Item = &'a crate::Counts>,
    timeout: Nanos,
) -> Option<Finding> {
    let mut sum = crate::Counts::default();
    counts.for_each(|counts| sum.merge(counts));
    let bad = sum.iter().filter(|(outcome, _)| !outcome.is_good());
    let mut kinds: Vec<FailureCount> = bad
        .map(|(outcome, requests)| FailureCount { outcome: crate::counts::name(outcome), requests })
        .collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.requests));
    (sum.failed() > 0).then(|| Finding::Failed {
        runs,
        failed: sum.failed(),
        planned: sum.total(),
        kinds,
        timeout,
    })
}

fn turns(study: &SweepStudy, points: &[SweepPoint<'_>]) -> Option<Finding> {
    let seen = |point: &SweepPoint<'_>| {
        point.run.warnings.iter().find_map(|warning| match warning {
            Diagnostic::ServedInTurns { answers_a_turn, waiting } => {
                Some((*answers_a_turn, *waiting))
            }
            _ => None,
        })
    };
    let seen: Vec<(f64, u32)> = points.iter().filter_map(seen).collect();
    let waiting = seen.last()?.1;
    let (least, most) = seen
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), (n, _)| (least.min(*n), most.max(*n)));
    let major = study
        .server
        .version
        .as_ref()
        .and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let is_old_puma = study.server.name == "Puma" && major.is_some_and(|major| major < 7);
    Some(Finding::ServedInTurns { least, most, waiting, is_old_puma })
}

fn accept_queue(point: &SweepPoint<'_>) -> Option<Finding> {
    let (wait, mean) = (point.run.accept_queue_wait()?, point.run.tally.response_time.mean()?);
    let is_much = wait <= mean && wait.0 as f64 >= QUEUE_PART * mean.0 as f64;
    is_much.then_some(Finding::WaitInAcceptQueue { multiple: point.multiple, wait, mean })
}

fn uneven_workers(point: &SweepPoint<'_>) -> Option<Finding> {
    let (workers, deviations) = (&point.run.workers, point.run.worker_deviations());
    let deviation = *deviations.iter().max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    let even =
        workers.iter().map(|worker| worker.requests).sum::<u64>() as f64 / workers.len() as f64;
    // Of requests that choose their worker by chance a share varies by its square root.
    let is_uneven = deviation.abs() > UNEVEN && deviation.abs() * even.sqrt() > BEYOND_CHANCE;
    (workers.len() > 1 && is_uneven)
        .then_some(Finding::UnevenWorkers { multiple: point.multiple, deviation })
}

fn of_load(run: &Run, plan: &LoadPlan) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(judgement) = run.judgement.as_ref().filter(|_| !run.is_evidence()) {
        let (verdict, check) = (judgement.verdict, decider(judgement));
        findings.push(Finding::NotMeasured { runs: Vec::new(), verdict, check });
    } else if run.tally.counts.good() > 0 {
        findings.push(of_pace(run, plan));
        findings.extend(of_groups(run, plan));
        let limit = run
            .judgement
            .as_ref()
            .and_then(|judgement| judgement.limit.clone())
            .filter(says_something);
        findings.extend(limit.map(|limit| Finding::Limited { limit, slots: None, runs: 1 }));
    }
    findings.extend(failed(Vec::new(), std::iter::once(&run.tally.counts), plan.timeout));
    findings
}

fn of_pace(run: &Run, plan: &LoadPlan) -> Finding {
    let highest = [0.99, 0.95, 0.9, 0.5].into_iter().find_map(|quantile| {
        run.response_time(quantile).time().map(|time| PercentileTime { quantile, time })
    });
    let Pace::Open { profile, .. } = &plan.pace else {
        let (connections, rate_per_s) = (plan.connections, run.completed_rate());
        return Finding::ClosedLoop {
            connections,
            rate_per_s,
            highest,
            pauses: plan.think > Nanos::ZERO,
        };
    };
    let offered = run.offered_rate(&plan.pace).unwrap_or_default();
    let backlog = run.statistics.as_ref().and_then(|statistics| statistics.backlog);
    let is_overload =
        run.statistics.as_ref().is_some_and(|statistics| statistics.is_overload(&run.tally));
    let keeps_up =
        run.judgement.as_ref().is_none_or(|judgement| judgement.verdict == Verdict::Unloaded);
    let is_flat = matches!(profile, crate::Profile::Flat { .. });
    match backlog {
        Some(_) if is_overload && !is_flat => Finding::Peaked { completed_per_s: peak(run) },
        Some(backlog) if is_overload => {
            let growth = run.statistics.as_ref().and_then(crate::Statistics::growth);
            let completed_per_s = run
                .overload
                .as_ref()
                .map_or(run.completed_under_load(), |overload| overload.capacity.value);
            let groups = run.tally.response_time.two_groups();
            let backlog_growth_per_s = backlog.growth;
            Finding::Overloaded {
                offered_per_s: offered,
                completed_per_s,
                backlog_growth_per_s,
                growth,
                groups,
            }
        }
        _ if keeps_up => Finding::KeepsUp { offered_per_s: is_flat.then_some(offered), highest },
        _ => Finding::FallsBehind {
            offered_per_s: offered,
            completed_per_s: run.completed_under_load(),
            under_way: backlog.filter(crate::Backlog::grows).map(|backlog| backlog.at_end),
        },
    }
}

/// The most good answers a second over [`PEAK`] seconds in a row.
fn peak(run: &Run) -> f64 {
    let completed: Vec<u64> =
        run.tally.series.seconds.iter().map(|second| second.completed).collect();
    let most = completed.windows(PEAK).map(|seconds| seconds.iter().sum::<u64>()).max();
    most.map_or(run.completed_rate(), |most| most as f64 / PEAK as f64)
}

/// Two kinds of requests in a closed loop: one load does not say who makes them.
fn of_groups(run: &Run, plan: &LoadPlan) -> Option<Finding> {
    let is_closed =
        plan.pace == Pace::Closed && plan.think == Nanos::ZERO && run.tally.counts.censored() == 0;
    let groups = run.tally.response_time.two_groups().filter(|_| is_closed)?;
    let in_order = Nanos::from_secs_f64(
        f64::from(plan.connections * plan.pipeline.max(1)) / run.completed_rate().max(1e-9),
    );
    Some(Finding::Undecided { connections: plan.connections, groups, in_order })
}
