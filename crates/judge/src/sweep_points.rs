//! A sweep as findings see it: one point for each load.

use model::{Limit, Nanos, Run, SweepStudy};

use crate::server_limit::{NEXT_LOAD, SAME_RATE};

/// Of one load: the run whose rate is the median of its repeats.
pub(crate) struct SweepPoint<'a> {
    pub(crate) run: &'a Run,
    /// Connections / slots.
    pub(crate) multiple: f64,
    /// Good responses per second.
    pub(crate) rate: f64,
}

impl SweepPoint<'_> {
    /// Connections / throughput: by Little's law the mean response time of a closed loop that never
    /// pauses, and in order everybody's.
    pub(crate) fn in_order(&self) -> Nanos {
        Nanos::from_secs_f64(f64::from(self.run.connections) / self.rate)
    }

    pub(crate) fn limit(&self) -> Option<&Limit> {
        self.run.judgement.as_ref()?.limit.as_ref()
    }
}

/// The loads of a sweep whose runs are evidence, the lowest first.
pub(crate) fn of(study: &SweepStudy) -> Vec<SweepPoint<'_>> {
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

/// How much the times of single requests vary (coefficient of variation): the larger of what was
/// seen alone, and in the lowest load. A long request once in 200 is met by hardly any of those that
/// were made alone, and by some of the load's; where these wait for each other, the figure is too
/// large, and what is concluded from it too careful.
pub(crate) fn variation(study: &SweepStudy, points: &[SweepPoint<'_>]) -> f64 {
    let alone = study.service_time.map_or(0.0, |known| known.variation);
    let lowest = points.first().and_then(|point| {
        let times = &point.run.tally.response_time;
        Some(times.standard_deviation()?.as_secs_f64() / times.mean()?.as_secs_f64().max(1e-9))
    });
    lowest.unwrap_or(0.0).max(alone)
}

/// The load of the highest throughput.
pub(crate) fn best<'p, 'a>(points: &'p [SweepPoint<'a>]) -> Option<&'p SweepPoint<'a>> {
    points.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))
}

/// The lowest load whose throughput is about the highest.
pub(crate) fn reached<'p, 'a>(points: &'p [SweepPoint<'a>]) -> Option<&'p SweepPoint<'a>> {
    let best = best(points)?.rate;
    points.iter().find(|point| point.rate >= (1.0 - SAME_RATE) * best)
}

/// The lowest load from which on more connections bring no more, with a load of half as many more
/// or more to show it. The lowest or the highest load alone never shows it.
pub(crate) fn saturation<'p, 'a>(points: &'p [SweepPoint<'a>]) -> Option<&'p SweepPoint<'a>> {
    points.iter().enumerate().find_map(|(at, point)| {
        let higher = &points[at + 1..];
        let is_shown = higher.iter().any(|other| {
            f64::from(other.run.connections) >= NEXT_LOAD * f64::from(point.run.connections)
        });
        let none_more = higher.iter().all(|other| other.rate < (1.0 + SAME_RATE) * point.rate);
        (is_shown && none_more).then_some(point)
    })
}

/// What is known to keep the server from doing more at its best throughput.
pub(crate) fn known_limit<'a>(points: &[SweepPoint<'a>]) -> Option<&'a Limit> {
    let limit = reached(points)?.run.judgement.as_ref()?.limit.as_ref()?;
    let is_limit = match limit {
        Limit::NotKnown { .. } => false,
        Limit::MoreThanStated { is_full, .. } => *is_full,
        Limit::Threads { .. }
        | Limit::InsideApp { .. }
        | Limit::Refusals { .. }
        | Limit::Cpu(_)
        | Limit::RubyLock { .. }
        | Limit::OneCpuEach { .. }
        | Limit::AcceptQueue { .. }
        | Limit::Network { .. }
        | Limit::Generator { .. }
        | Limit::SharedCpus(_) => true,
    };
    is_limit.then_some(limit)
}
