//! How long the rest of a study will take: the planned length of its runs, and between two of them
//! as long as it took between the runs so far.
//!
//! The time left never grows from one run to the next without a reason. If a new estimate is a
//! little longer than the one before, the old one stands; if it is much longer, the user is told
//! why.

use std::collections::BTreeMap;

use model::{Clock as _, Nanos, Study, SystemClock, number};

use crate::context::{Observer, Phase, TimeLeft};

/// A new estimate may be longer than the one before by this much, or by 1 / [`SLACK_PART`] of the
/// time left, without a reason being given.
const SLACK: Nanos = Nanos::from_secs(5);
const SLACK_PART: u64 = 20;

/// What takes the time of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StudyActivity {
    Run,
    Starting,
    Stopping,
    CoolingDown,
    Reconciling,
    /// Before a server's first run: its service time, the generator's limit, and the like.
    Preparing,
}

/// An observer that adds to each run how long the rest of the study will take.
pub(crate) struct TimedObserver<'a> {
    observer: &'a mut dyn Observer,
    clock: SystemClock,
    times: StudyTimes,
}

impl<'a> TimedObserver<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer, clock: SystemClock) -> TimedObserver<'a> {
        TimedObserver { observer, clock, times: StudyTimes::default() }
    }
}

impl Observer for TimedObserver<'_> {
    fn phase(&mut self, phase: &Phase) {
        let mut phase = phase.clone();
        let estimate = self.times.begin(&phase, self.clock.now());
        if let Phase::Running { left, .. } = &mut phase {
            *left = estimate;
        }
        self.observer.phase(&phase);
    }

    fn remark(&mut self, text: &str) {
        self.observer.remark(text);
    }

    fn run_done(&mut self, study: &Study, provisional: &Study) {
        self.observer.run_done(study, provisional);
    }

    fn judged(&mut self, study: &Study) {
        self.observer.judged(study);
    }
}

/// A number of times, and their sum.
#[derive(Clone, Copy, Default)]
struct TimeSum {
    count: u64,
    sum: Nanos,
}

impl TimeSum {
    fn add(&mut self, time: Nanos) {
        self.count += 1;
        self.sum += time;
    }

    fn mean(self) -> Nanos {
        if self.count == 0 { Nanos::ZERO } else { self.sum / self.count }
    }
}

/// A run that began.
#[derive(Clone, Copy)]
struct BegunRun {
    number: usize,
    of: usize,
    connections: u32,
    /// `None` if a count of requests ends it.
    length: Option<Nanos>,
}

/// What took how long so far.
#[derive(Default)]
struct StudyTimes {
    /// What goes on, and since when.
    current: Option<(StudyActivity, Nanos)>,
    /// What took how long since the last run ended.
    gap: BTreeMap<StudyActivity, Nanos>,
    /// All activities so far, and the gaps between two runs.
    activities: BTreeMap<StudyActivity, TimeSum>,
    gaps: TimeSum,
    /// The last run, and how long it took.
    last: Option<(BegunRun, Nanos)>,
    /// By how much runs took longer than their length.
    overruns: TimeSum,
    /// When the study will end by what was said last.
    promised_end: Option<Nanos>,
}

impl StudyTimes {
    /// Notes that a phase begins. Returns the time left if it is a run.
    fn begin(&mut self, phase: &Phase, now: Nanos) -> Option<TimeLeft> {
        let expected_gap = self.expected_gap();
        let expected_run = self.last.and_then(|(run, _)| Some(run.length? + self.overruns.mean()));
        self.end_current(now);
        let Phase::Running { number, of, connections, length, later_connections, .. } = phase
        else {
            self.current = Some((activity(phase), now));
            return None;
        };
        self.current = Some((StudyActivity::Run, now));
        let run = BegunRun { number: *number, of: *of, connections: *connections, length: *length };
        // After the trials of a comparison its blocks begin, which are counted anew.
        let before = self.last.filter(|(last, _)| last.number < run.number);
        let gap = std::mem::take(&mut self.gap);
        let gap_length: Nanos = gap.values().copied().sum();
        if before.is_some() {
            // A comparison waits for the server's own count once for each arm, and not after that.
            let counting = gap.get(&StudyActivity::Reconciling).copied().unwrap_or_default();
            self.gaps.add(gap_length.saturating_sub(counting));
        } else {
            self.promised_end = None;
        }
        let left = self.estimate(&run, *later_connections);
        self.last = Some((run, Nanos::ZERO));
        let end = now + left?;
        let promised = self.promised_end.unwrap_or(end);
        let is_longer = end > promised + SLACK.max(left? / SLACK_PART);
        let why_longer = before.filter(|_| is_longer).map(|(last, took)| {
            let over_run = expected_run.map_or(Nanos::ZERO, |run| took.saturating_sub(run));
            let over_gap = gap_length.saturating_sub(expected_gap);
            let cause = if run.of > last.of {
                "a run is done once more".to_owned()
            } else if over_run >= over_gap {
                format!("the last run took {}", number::elapsed(took))
            } else {
                cause_of_gap(&gap)
            };
            format!("{} more than said: {cause}", number::minutes(end - promised))
        });
        let end = if is_longer { end } else { end.min(promised) };
        self.promised_end = Some(end);
        Some(TimeLeft {
            time: end.saturating_sub(now).max(run.length.unwrap_or(Nanos::ZERO)),
            is_at_most: matches!(phase, Phase::Running { may_end_early: true, .. }),
            why_longer,
        })
    }

    /// Notes how long the phase took that ends now.
    fn end_current(&mut self, now: Nanos) {
        let Some((activity, since)) = self.current.take() else { return };
        let took = now - since;
        self.activities.entry(activity).or_default().add(took);
        if activity != StudyActivity::Run {
            *self.gap.entry(activity).or_default() += took;
            return;
        }
        self.gap.clear();
        if let Some((run, time)) = &mut self.last {
            *time = took;
            if let Some(length) = run.length {
                self.overruns.add(took.saturating_sub(length));
            }
        }
    }

    /// How long this run and those after it will take; `None` if nothing is known of that yet.
    fn estimate(&self, run: &BegunRun, later_connections: u64) -> Option<Nanos> {
        let later = (run.of - run.number) as u64;
        let runs = if let Some(length) = run.length {
            (length + self.overruns.mean()) * (later + 1)
        } else {
            // Each connection has its number of requests to send, so the time grows with them.
            let (last, took) = self.last.filter(|(_, took)| *took > Nanos::ZERO)?;
            let each = took.as_secs_f64() / f64::from(last.connections.max(1));
            Nanos::from_secs_f64(each * (u64::from(run.connections) + later_connections) as f64)
        };
        Some(runs + self.expected_gap() * later)
    }

    /// The time expected between two runs: the mean of those so far. As long as there are none, but
    /// several servers have been started, the mean time of a start and a stop.
    fn expected_gap(&self) -> Nanos {
        if self.gaps.count > 0 {
            return self.gaps.mean();
        }
        let of = |activity| self.activities.get(&activity).copied().unwrap_or_default();
        if of(StudyActivity::Starting).count > 1 {
            of(StudyActivity::Starting).mean() + of(StudyActivity::Stopping).mean()
        } else {
            Nanos::ZERO
        }
    }
}

fn activity(phase: &Phase) -> StudyActivity {
    match phase {
        Phase::Running { .. } => StudyActivity::Run,
        Phase::Starting => StudyActivity::Starting,
        Phase::Stopping => StudyActivity::Stopping,
        Phase::CoolingDown => StudyActivity::CoolingDown,
        Phase::Reconciling => StudyActivity::Reconciling,
        Phase::Calibrating
        | Phase::MeasuringServiceTime { .. }
        | Phase::RepeatingFirstLoad { .. }
        | Phase::Probing
        | Phase::WarmingUp => StudyActivity::Preparing,
    }
}

/// What took longest between two runs.
fn cause_of_gap(gap: &BTreeMap<StudyActivity, Nanos>) -> String {
    let longest = gap.iter().max_by_key(|(_, time)| **time);
    let Some((activity, time)) = longest else { return "the runs take longer".to_owned() };
    let time = number::elapsed(*time);
    match activity {
        StudyActivity::Run => format!("the last run took {time}"),
        StudyActivity::Starting => format!("the server took {time} to start"),
        StudyActivity::Stopping => format!("the server took {time} to stop"),
        StudyActivity::CoolingDown => format!("the server took {time} to become idle"),
        StudyActivity::Reconciling => format!("the server's own count took {time}"),
        StudyActivity::Preparing => format!("measuring between the runs took {time}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn run(number: usize, of: usize, connections: u32, seconds: Option<u64>) -> Phase {
        Phase::Running {
            number,
            of,
            what: String::new(),
            connections,
            length: seconds.map(Nanos::from_secs),
            later_connections: u64::from(connections) * (of - number) as u64,
            left: None,
            may_end_early: false,
            progress: None,
            live: Arc::default(),
        }
    }

    /// What is left, in seconds, at each run of phases that begin at these seconds.
    fn left(phases: &[(u64, Phase)]) -> Vec<(u64, Option<String>)> {
        let mut times = StudyTimes::default();
        let left =
            phases.iter().filter_map(|(at, phase)| times.begin(phase, Nanos::from_secs(*at)));
        left.map(|left| (left.time.as_secs_f64().round() as u64, left.why_longer)).collect()
    }

    #[test]
    fn what_came_before_the_first_run_is_not_expected_again() {
        let phases = [
            (0, Phase::Starting),
            (20, Phase::Calibrating),
            (30, run(1, 3, 4, Some(10))),
            (40, Phase::CoolingDown),
            (42, run(2, 3, 8, Some(10))),
            (52, Phase::CoolingDown),
            (54, run(3, 3, 12, Some(10))),
        ];
        // 2 s of cooling down were not known of before, and are too little to speak of.
        assert_eq!(left(&phases), [(30, None), (18, None), (10, None)]);
    }

    #[test]
    fn time_left_grows_only_with_a_reason() {
        let phases = [
            (0, run(1, 4, 4, Some(10))),
            (10, Phase::CoolingDown),
            (40, run(2, 4, 8, Some(10))),
            (50, Phase::CoolingDown),
            (51, run(3, 4, 12, Some(10))),
            (85, Phase::CoolingDown),
            (86, run(4, 4, 12, Some(10))),
        ];
        let why = |text: &str| Some(text.to_owned());
        assert_eq!(
            left(&phases),
            [
                (40, None),
                (90, why("1:30 more than said: the server took 30.0 s to become idle")),
                (36, None),
                (18, why("0:17 more than said: the last run took 34.0 s")),
            ]
        );
    }

    #[test]
    fn runs_that_a_count_ends_take_as_long_as_they_have_connections() {
        let counted = |number, connections, later_connections| {
            let mut phase = run(number, 3, connections, None);
            if let Phase::Running { later_connections: later, .. } = &mut phase {
                *later = later_connections;
            }
            phase
        };
        let phases = [(0, counted(1, 5, 25)), (10, counted(2, 10, 15)), (30, counted(3, 15, 0))];
        assert_eq!(left(&phases), [(50, None), (30, None)]);
    }

    #[test]
    fn the_first_block_counts_the_starts_that_the_trials_took() {
        let phases = [
            (0, Phase::Starting),
            (3, Phase::Stopping),
            (4, Phase::Starting),
            (9, Phase::Stopping),
            (10, Phase::Starting),
            (13, run(1, 4, 10, Some(5))),
        ];
        // Four runs of 5 s, and three times a stop of 1 s and a start of 3, 5 or 3 s.
        assert_eq!(left(&phases), [(34, None)]);
    }
}
