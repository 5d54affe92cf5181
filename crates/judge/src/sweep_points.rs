//! A sweep as findings see it: one point for each load.

use model::{Limit, Nanos, Run, SweepStudy};

use crate::cut_short::is_shorter;
use crate::server_limit::{NEXT_LOAD, SAME_RATE};

/// One load of a sweep, represented by the run with the median rate of its repeats.
pub(crate) struct SweepPoint<'a> {
    pub(crate) run: &'a Run,
    /// Connections / slots.
    pub(crate) multiple: f64,
    /// Good responses per second.
    pub(crate) rate: f64,
}

impl SweepPoint<'_> {
    /// Connections / throughput: by Little's law the mean response time of a closed loop that never
    /// pauses, and every request's if they are served in order.
    pub(crate) fn in_order(&self) -> Nanos {
        Nanos::from_secs_f64(f64::from(self.run.connections) / self.rate)
    }

    pub(crate) fn limit(&self) -> Option<&Limit> {
        self.run.limit()
    }
}

/// The loads of a sweep that have a valid run, the lowest first. A run that was cut short to less than
/// half of a whole one is left out: a second of it would be compared with the length of the others.
pub(crate) fn of(study: &SweepStudy) -> Vec<SweepPoint<'_>> {
    let whole = study.runs.iter().filter(|run| !is_shorter(run)).map(|run| run.measured).max();
    let is_too_short =
        |run: &Run| is_shorter(run) && whole.is_some_and(|whole| run.measured * 2 < whole);
    let mut loads: Vec<u32> = study.runs.iter().map(|run| run.connections).collect();
    loads.sort_unstable();
    loads.dedup();
    let median = |connections: &u32| {
        let is_good = |run: &&Run| {
            run.connections == *connections
                && run.is_evidence()
                && run.completed_rate() > 0.0
                && !is_too_short(run)
        };
        let mut runs: Vec<&Run> = study.runs.iter().filter(is_good).collect();
        runs.sort_by(|a, b| a.completed_rate().total_cmp(&b.completed_rate()));
        let run = *runs.get(runs.len() / 2)?;
        Some(SweepPoint { run, multiple: run.multiple?, rate: run.completed_rate() })
    };
    loads.iter().filter_map(median).collect()
}

/// How much the times of single requests vary (coefficient of variation): alone or at the lowest
/// load, whichever is larger. If one request in 200 is long, there is hardly one among those that
/// ran alone, but some in the load. If requests of the load wait for each other, the figure is too
/// large, and the conclusions are only more cautious.
pub(crate) fn variation(study: &SweepStudy, points: &[SweepPoint<'_>]) -> f64 {
    let alone = study.service_time.map_or(0.0, |known| known.variation);
    let lowest = points.first().and_then(|point| {
        let times = &point.run.tally.response_time;
        Some(times.standard_deviation()?.as_secs_f64() / times.mean()?.as_secs_f64().max(1e-9))
    });
    lowest.unwrap_or(0.0).max(alone)
}

/// The load with the highest throughput.
pub(crate) fn best<'p, 'a>(points: &'p [SweepPoint<'a>]) -> Option<&'p SweepPoint<'a>> {
    points.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))
}

/// The lowest load with about the highest throughput.
pub(crate) fn reached<'p, 'a>(points: &'p [SweepPoint<'a>]) -> Option<&'p SweepPoint<'a>> {
    let best = best(points)?.rate;
    points.iter().find(|point| point.rate >= (1.0 - SAME_RATE) * best)
}

/// The lowest load beyond which more connections bring no more throughput, as shown by a load with
/// at least 1.5 times as many. A single load never shows it.
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

/// The known limit of the server at its best throughput.
pub(crate) fn known_limit<'a>(points: &[SweepPoint<'a>]) -> Option<&'a Limit> {
    let limit = reached(points)?.run.limit()?;
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
