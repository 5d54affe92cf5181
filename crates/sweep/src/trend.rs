//! Tells whether the runs of a server differ in a way that load does not explain, such as a leak or
//! a slow warm-up. If they do, the sweep repeats its first load at the end, to separate the effect
//! of time from that of load.

use model::theory::ServiceTime;
use model::{Nanos, Run};

/// Throughputs and response times that differ by a smaller share are no trend.
const NOTABLE: f64 = 0.1;
/// Two halves of a run differ if they are this many standard errors apart.
const BEYOND_CHANCE: f64 = 6.0;

/// Whether the runs of one server, in their order, show such a trend. Connections beyond `slots`
/// wait, so they are not expected to add throughput.
pub(crate) fn has_trend(runs: &[&Run], slots: u32, known: Option<ServiceTime>) -> bool {
    let has_changed = known.and_then(|known| known.again).is_some_and(|again| again.differs);
    let pairs = || {
        runs.iter()
            .enumerate()
            .flat_map(|(at, early)| runs[at + 1..].iter().map(move |late| RunPair { early, late }))
    };
    has_changed
        || runs.iter().any(|run| drifts(run))
        || pairs().any(|pair| pair.falls() || pair.gets_faster(slots))
}

/// Whether response times differ between the halves of a run.
fn drifts(run: &Run) -> bool {
    run.statistics.as_ref().and_then(|statistics| statistics.steadiness).is_some_and(|steadiness| {
        steadiness.shift.abs() >= NOTABLE && steadiness.shift_in_errors.abs() >= BEYOND_CHANCE
    })
}

/// Two runs, one after the other.
struct RunPair<'a> {
    early: &'a Run,
    late: &'a Run,
}

impl RunPair<'_> {
    /// Whether throughput fell with as many connections, or more.
    fn falls(&self) -> bool {
        let expected = self.early.completed_rate() * (1.0 - NOTABLE);
        self.late.connections >= self.early.connections && self.late.completed_rate() < expected
    }

    /// Whether response times got shorter with as many connections, or more, though all slots were
    /// busy before.
    fn gets_faster(&self, slots: u32) -> bool {
        let mean = |run: &Run| run.tally.response_time.mean().unwrap_or(Nanos::ZERO).as_secs_f64();
        self.early.connections >= slots
            && self.late.connections >= self.early.connections
            && self.late.tally.response_time.count() > 0
            && mean(self.late) < mean(self.early) * (1.0 - NOTABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Histogram, Steadiness};

    /// A run over this many connections, with this rate and response time.
    fn run(connections: u64, rate: u64, ms: u64) -> Run {
        let mut run = testkit::study::canonical().runs.remove(0);
        run.connections = connections as u32;
        run.measured = Nanos::from_secs(10);
        run.tally.completed_in_window = rate * 10;
        run.tally.response_time = Histogram::default();
        run.tally.response_time.record(Nanos::from_millis(ms));
        run.statistics = None;
        run
    }

    #[test]
    fn a_difference_that_load_explains_is_no_trend() {
        for (case, early, late, expected) in [
            ("saturated", [10, 100, 100], [40, 100, 400], false),
            ("below the slots", [2, 20, 100], [10, 100, 100], false),
            ("no limit of slots", [10, 100, 100], [40, 400, 100], false),
            ("it leaks", [10, 100, 100], [40, 80, 500], true),
            ("fewer connections", [40, 100, 400], [5, 50, 100], false),
            ("it became warm", [10, 50, 200], [40, 250, 160], true),
            ("the same load, faster", [10, 50, 200], [10, 80, 125], true),
        ] {
            let runs =
                [early, late].map(|[connections, rate, ms]| Box::new(run(connections, rate, ms)));
            let runs: Vec<&Run> = runs.iter().map(AsRef::as_ref).collect();
            assert_eq!(has_trend(&runs, 10, None), expected, "{case}");
        }
    }

    #[test]
    fn a_run_that_drifts_and_a_service_time_that_changed_are_trends() {
        let steady = Steadiness {
            settled_after: None,
            shift: 0.5,
            shift_in_errors: 20.0,
            growth: 0.0,
            growth_in_errors: 0.0,
        };
        let mut drifting = run(10, 100, 100);
        drifting.statistics = testkit::study::canonical().runs[0].statistics.clone();
        let statistics = drifting.statistics.as_mut().unwrap();
        statistics.steadiness = Some(steady);
        assert!(has_trend(&[&drifting], 10, None));
        drifting.statistics.as_mut().unwrap().steadiness =
            Some(Steadiness { shift_in_errors: 2.0, ..steady });
        assert!(!has_trend(&[&drifting], 10, None));
        let again = |differs| model::theory::MeanAgain { mean: Nanos(5), answers: 20, differs };
        let known = |differs| ServiceTime { again: Some(again(differs)), ..ServiceTime::default() };
        assert!(has_trend(&[], 10, Some(known(true))) && !has_trend(&[], 10, Some(known(false))));
    }
}
