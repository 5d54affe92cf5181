//! What a load says of its server where it offered more than that can do.

use model::forecast::{Estimate, Overload, OverloadDoubt};
use model::{LoadPlan, Nanos, Pace, Profile, Run};

/// Two ways to the same capacity may differ by this part.
const AGREE: f64 = 0.05;
/// Standard errors on both sides of a mean of fifteen increments (Student's t).
const IN_95_PERCENT: f64 = 2.14;

/// The capacity, by how fast response times grew, or else the backlog; `None` where the rate was not one number, or it was no overload.
///
/// The slots are told with a service time that the user gives. The shortest service time of the run is none: requests that
/// waited are all that an overload has.
pub(crate) fn overload(run: &Run, plan: &LoadPlan) -> Option<Overload> {
    if !matches!(plan.pace, Pace::Open { profile: Profile::Flat { .. }, .. }) {
        return None;
    }
    let statistics = run.statistics.as_ref().filter(|statistics| statistics.is_overload(&run.tally))?;
    let (backlog, offered) = (statistics.backlog?, run.offered_rate(&plan.pace)?);
    // Times that do not grow alike for all say nothing of the capacity: the backlog does.
    let agrees = |growth: &f64| (offered / (1.0 + growth) / (offered - backlog.growth) - 1.0).abs() <= AGREE;
    let growth = statistics.growth().filter(agrees);
    let capacity = if let Some((growth, steadiness)) = growth.zip(statistics.steadiness) {
        queueing::open_loop::capacity(offered, growth, steadiness.growth / steadiness.growth_in_errors).ok()?
    } else {
        Estimate { value: offered - backlog.growth, half_width: IN_95_PERCENT * backlog.error }
    };
    let answered = run.completed_under_load();
    Some(Overload {
        offered,
        growth,
        backlog_growth: backlog.growth,
        backlog_at_end: backlog.at_end,
        capacity,
        answered,
        service_time: plan.service_time,
        slots: plan.service_time.map(|time| slots(capacity, time.as_secs_f64(), run)),
        doubt: doubt(run, capacity.value, answered),
    })
}

/// Capacity x service time. What a request costs beside the time that was given holds its slot too. As the first of a run wait for
/// nobody, the shortest response time tells how much that is at the most; where even that waited, it tells nothing.
fn slots(capacity: Estimate, service: f64, run: &Run) -> Estimate {
    let beside = run.tally.response_time.min().map(|least| least.as_secs_f64() / service - 1.0);
    let beside = beside.filter(|part| (0.0..BESIDE).contains(part)).unwrap_or(0.0);
    let value = capacity.value * service;
    Estimate { value, half_width: capacity.half_width * service + value * beside }
}

/// A request that costs more than this part of its time beside it has waited.
const BESIDE: f64 = 0.1;

fn doubt(run: &Run, capacity: f64, answered: f64) -> Option<OverloadDoubt> {
    if run.tally.counts.failed() > 0 {
        return Some(OverloadDoubt::Failures);
    }
    // Until the first answers come nothing can be counted.
    let first = run.tally.response_time.min().unwrap_or(Nanos::ZERO);
    let begin = first.as_secs_f64() / run.measured.as_secs_f64().max(1e-9);
    let differs = (capacity / answered.max(1e-9) - 1.0).abs() > AGREE + 2.0 * begin;
    differs.then_some(OverloadDoubt::Disagreement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Batches, Exchange, Outcome, Statistics, Tally, Window, warnings};

    /// So many requests a second, each of which holds a slot for so many ms.
    fn plan(rate: f64, service_ms: Option<u64>) -> LoadPlan {
        let pace = Pace::constant(model::Rate::new(rate).unwrap());
        LoadPlan { pace, service_time: service_ms.map(Nanos::from_millis), ..testkit::load::closed().plan }
    }

    /// So many requests a second at an even pace; the `n`-th, due then, ends when `end` says, and well unless it is `failing`.
    fn recorded(rate: u64, seconds: u64, failing: Option<u64>, mut end: impl FnMut(u64, Nanos) -> Nanos) -> Run {
        let window = Window { from: Nanos::ZERO, until: Nanos::from_secs(seconds) };
        let (mut tally, mut batches, mut times) = (Tally::new(window, 1), Batches::new(window), Vec::new());
        for n in 0..rate * seconds {
            let due = Nanos(n * 1_000_000_000 / rate);
            let outcome = Outcome::Answered(if failing == Some(n) { 503 } else { 200 });
            let exchange = Exchange { due, sent: due, ended: end(n, due), received_bytes: 0, outcome };
            tally.record(&exchange, 0);
            batches.record(due, exchange.response_time(), Nanos::ZERO);
            times.push((due, exchange.ended));
        }
        let statistics = Statistics::of(&tally, &batches, &warnings::LOAD_PERCENTILES);
        let statistics = statistics.with_backlog(testkit::load::backlog(window, &times));
        Run { statistics: Some(statistics), ..Run::recorded(1, tally, window.until, window.until) }
    }

    /// On slots of 0.1 s: the `n`-th request takes the slot that is free first.
    fn run(rate: u64, slots: u64, seconds: u64, fails: bool) -> Run {
        let mut free = vec![Nanos::ZERO; slots as usize];
        recorded(rate, seconds, fails.then_some(7), |n, due| {
            let slot = &mut free[(n % slots) as usize];
            *slot = due.max(*slot) + Nanos::from_millis(100);
            *slot
        })
    }

    /// 60 requests a second for 9 s, of which the `n`-th takes so long.
    fn taking(time: impl Fn(u64) -> Nanos) -> Run {
        recorded(60, 9, None, |n, due| due + time(n))
    }

    #[test]
    fn five_slots_are_told_by_the_slope_alone() {
        let seen = overload(&run(60, 5, 20, false), &plan(60.0, Some(100))).unwrap();
        assert!((seen.growth.unwrap() - 0.2).abs() < 0.01 && seen.doubt.is_none(), "{seen:?}");
        assert!((seen.capacity.value - 50.0).abs() < 0.5 && (seen.answered - 50.0).abs() < 1.0, "{seen:?}");
        let slots = seen.slots.unwrap();
        assert!((slots.value - 5.0).abs() < 0.05 && slots.half_width < 0.1, "{seen:?}");
        assert_eq!(overload(&run(60, 5, 20, false), &plan(60.0, None)).unwrap().slots, None);
    }

    #[test]
    fn an_overload_that_no_median_shows_is_told_by_the_backlog() {
        let (ms, plan) = (Nanos::from_millis, plan(60.0, Some(100)));
        // Every third waits for three quarters of all that has passed, as on kept connections of Puma before 7.
        let run = taking(|n| if n % 3 == 0 { ms(100 + 3 * n * 1000 / 60) } else { ms(100) });
        let seen = overload(&run, &plan).expect("an overload");
        assert_eq!(seen.growth, None);
        assert!((14.0..16.0).contains(&seen.backlog_growth), "{seen:?}");
        assert!((seen.capacity.value - 45.0).abs() < seen.capacity.half_width + 0.5, "{seen:?}");
        assert!((seen.slots.unwrap().value - 4.5).abs() < 0.2, "{seen:?}");
        assert_eq!(seen.doubt, None, "the answers counted agree");
        assert_eq!(run.response_time(0.5), model::Quantile::Growing);
    }

    #[test]
    fn requests_that_take_longer_than_the_run_are_no_overload_that_is_known() {
        let (ms, plan) = (Nanos::from_millis, plan(60.0, None));
        for (what, slow, is_named) in [("longer than the run", 20_000, true), ("a second", 1_000, false)] {
            let run = taking(|n| if n % 20 == 0 { ms(slow) } else { ms(20) });
            assert_eq!(overload(&run, &plan), None, "{what}");
            let warnings = warnings::of_load(&run, &plan.pace, true, None, None);
            let is_unexplained =
                |warning: &model::Diagnostic| matches!(warning, model::Diagnostic::BacklogUnexplained { .. });
            assert_eq!(warnings.iter().any(is_unexplained), is_named, "{what}: {warnings:?}");
            assert!(run.response_time(0.5).time().is_some(), "{what}");
        }
    }

    #[test]
    fn what_a_request_costs_beside_its_time_widens_the_slots() {
        // The requests hold a slot for 100 ms, and 99 were said: 4.95 slots, and five are not ruled out.
        let seen = overload(&run(60, 5, 20, false), &plan(60.0, Some(99))).unwrap();
        let slots = seen.slots.unwrap();
        assert!((slots.value - 4.95).abs() < 0.05 && slots.value + slots.half_width >= 5.0 - 1e-3, "{seen:?}");
        let exact = overload(&run(60, 5, 20, false), &plan(60.0, Some(100))).unwrap();
        assert!(exact.slots.unwrap().half_width < slots.half_width, "{exact:?}");
    }

    #[test]
    fn what_is_no_overload_at_one_rate_tells_nothing() {
        let rate = |per_second| model::Rate::new(per_second).unwrap();
        let profile = Profile::Ramp { from: rate(50.0), to: rate(70.0), over: Nanos::from_secs(20) };
        let steady = plan(60.0, None);
        let Pace::Open { arrivals, seed, burst, .. } = steady.pace else { panic!("an open loop") };
        let ramp = LoadPlan { pace: Pace::Open { profile, arrivals, seed, burst }, ..plan(60.0, None) };
        assert_eq!(overload(&run(40, 5, 20, false), &plan(40.0, None)), None, "below the capacity");
        assert_eq!(overload(&run(60, 5, 20, false), &ramp), None);
        assert_eq!(overload(&run(60, 5, 20, false), &testkit::load::closed().plan), None);
    }

    #[test]
    fn what_speaks_against_it_is_said() {
        let plan = plan(60.0, None);
        assert_eq!(overload(&run(60, 5, 20, true), &plan).unwrap().doubt, Some(OverloadDoubt::Failures));
        let mut other = run(60, 5, 20, false);
        other.tally.completed_in_window = other.tally.completed_in_window * 8 / 10;
        assert_eq!(overload(&other, &plan).unwrap().doubt, Some(OverloadDoubt::Disagreement));
    }
}
