//! Between which rates a load with steps, or a ramp, breaks a threshold.
//!
//! One percentile over several rates says nothing about any of them. So a threshold on response
//! times or on the share of failures is held against each step as if that were a run of its own. A
//! step with too few responses to tell does not spoil the result if a faster one is shown to meet
//! the threshold.

use model::objective::{Compare, ObjectiveFigure};
use model::{LoadStudy, Run, StepRecord, Study, Threshold, number};

use crate::thresholds::{ThresholdDoubt, ThresholdResult, held_against};

/// A step and its result.
pub(crate) struct HeldStep<'a> {
    pub(crate) step: &'a StepRecord,
    /// The step as a run.
    pub(crate) run: Run,
    pub(crate) result: ThresholdResult,
}

impl HeldStep<'_> {
    fn is_missed(&self) -> bool {
        !self.result.is_met && self.result.doubt.is_none()
    }
}

/// The results of a threshold in the steps of a load; none where it is one of the whole run.
pub(crate) fn held<'a>(study: &'a Study, threshold: &Threshold) -> Vec<HeldStep<'a>> {
    match study {
        Study::Load(study) if is_of_each_step(threshold) => held_in_load(study, threshold),
        Study::Load(_)
        | Study::Sweep(_)
        | Study::Bodies(_)
        | Study::Compare(_)
        | Study::Capacity(_) => Vec::new(),
    }
}

fn held_in_load<'a>(study: &'a LoadStudy, threshold: &Threshold) -> Vec<HeldStep<'a>> {
    let hold = |step: &'a StepRecord| {
        let run = study.run.of_step(step);
        let result = held_against(&run, threshold)?;
        Some(HeldStep { step, run, result })
    };
    study.run.steps.iter().filter_map(hold).collect()
}

/// Whether the threshold is an upper limit on a figure that each step has. A throughput, or a
/// number of failures, is a matter of the whole run; so is a class of requests.
fn is_of_each_step(threshold: &Threshold) -> bool {
    let Threshold { class, condition, is_expected } = threshold;
    let is_upper_limit = match condition.compare {
        Compare::Below => *is_expected,
        Compare::Above => !*is_expected,
    };
    let is_of_step = match condition.figure {
        ObjectiveFigure::ResponseTime(_)
        | ObjectiveFigure::ServiceTime(_)
        | ObjectiveFigure::Mean
        | ObjectiveFigure::Max
        | ObjectiveFigure::ErrorShare => true,
        ObjectiveFigure::Errors | ObjectiveFigure::SentShare | ObjectiveFigure::Completed => false,
    };
    is_upper_limit && is_of_step && condition.part.is_none() && class.is_none()
}

/// What the steps together say of a threshold.
pub(crate) struct StepsResult<'a> {
    /// The fastest step that is shown to meet it, if no slower one missed it.
    pub(crate) holds_at: Option<&'a HeldStep<'a>>,
    /// The slowest step that missed it.
    pub(crate) breaks_at: Option<&'a HeldStep<'a>>,
    /// Steps between these two, which cannot tell.
    between: usize,
    /// The fastest step that is shown to meet it, if it is faster than `breaks_at`.
    holds_above: Option<&'a HeldStep<'a>>,
    /// The fastest step.
    pub(crate) fastest: &'a HeldStep<'a>,
    /// The slowest step.
    slowest: &'a HeldStep<'a>,
}

impl<'a> StepsResult<'a> {
    /// `None` without steps.
    pub(crate) fn of(steps: &'a [HeldStep<'a>]) -> Option<StepsResult<'a>> {
        let mut by_rate: Vec<&HeldStep<'_>> = steps.iter().collect();
        by_rate.sort_by(|a, b| a.step.highest_rate().total_cmp(&b.step.highest_rate()));
        let breaks_at = by_rate.iter().position(|step| step.is_missed());
        let (slower, faster) = by_rate.split_at(breaks_at.unwrap_or(by_rate.len()));
        let is_shown = |step: &&&HeldStep<'_>| step.result.is_shown();
        let holds_at = slower.iter().rposition(|step| step.result.is_shown());
        Some(StepsResult {
            holds_at: holds_at.map(|number| slower[number]),
            between: slower.len() - holds_at.map_or(0, |number| number + 1),
            breaks_at: faster.first().copied(),
            holds_above: faster.iter().rfind(is_shown).copied(),
            fastest: by_rate.last()?,
            slowest: by_rate.first()?,
        })
    }

    /// Whether it is shown at the highest rate, and missed nowhere.
    pub(crate) fn is_shown(&self) -> bool {
        self.breaks_at.is_none() && self.fastest.result.is_shown()
    }

    /// Whether the run's figures are worthless.
    pub(crate) fn is_of_invalid_run(&self) -> bool {
        self.fastest.result.doubt == Some(ThresholdDoubt::Invalid)
    }

    /// Between which rates it breaks: the highest one at which it is shown to hold, and the lowest
    /// one at which it is missed. Within a step of a ramp the rate grows: what holds over all of it
    /// holds where it begins, and what breaks in it has broken where it ends.
    pub(crate) fn bracket(&self) -> [Option<f64>; 2] {
        if self.holds_above.is_some() {
            return [None, None];
        }
        let low = self.holds_at.map(|held| held.step.lowest_rate());
        let high = self.breaks_at.map(|held| held.step.highest_rate());
        [low, high]
    }

    /// `p99 passes 300 ms between 70 and 80/s`. `figure` and `limit`: `p99` and `300 ms`.
    pub(crate) fn in_words(&self, figure: &str, limit: &str) -> String {
        let rate = number::rate_in_words;
        let fastest = self.fastest.step.in_words();
        if let (Some(broken), Some(above)) = (self.breaks_at, self.holds_above) {
            return format!(
                "{figure} is above {limit} at {}, but not at {}: the rate alone does not decide \
                 it (a stall, or what a step before has left)",
                broken.step.in_words(),
                above.step.in_words()
            );
        }
        match (self.holds_at, self.breaks_at) {
            (Some(held), Some(broken)) => {
                let undecided = match self.between {
                    0 => String::new(),
                    steps => format!(
                        " ({} between them cannot tell)",
                        number::count_of(steps as u64, "step")
                    ),
                };
                format!(
                    "{figure} passes {limit} between {} and {}/s{undecided}",
                    rate(held.step.lowest_rate()),
                    rate(broken.step.highest_rate())
                )
            }
            (None, Some(broken)) if std::ptr::eq(broken, self.slowest) => {
                format!("{figure} is above {limit} already at {}", broken.step.in_words())
            }
            (None, Some(broken)) => format!(
                "{figure} is above {limit} at {}; slower steps cannot tell",
                broken.step.in_words()
            ),
            (Some(_), None) if self.is_shown() => {
                format!("{figure} stays below {limit} up to {fastest}")
            }
            (Some(held), None) => format!(
                "{figure} stays below {limit} up to {}; faster steps, up to {fastest}, cannot tell",
                held.step.in_words()
            ),
            (None, None) => format!("no step can tell whether {figure} stays below {limit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Study;

    use crate::expectations::{ThresholdShown, is_shown, results};
    use crate::named_runs::named_runs;

    /// 50, 100, 150 and 200 requests per second for 5 s each, on a server of 20 slots and 200 ms,
    /// which does not quite complete a hundred per second.
    fn told(threshold: &str) -> (String, Option<[Option<f64>; 2]>, ThresholdShown) {
        let mut study = testkit::load::overloaded();
        study.plan.thresholds = vec![threshold.parse().unwrap()];
        let study = Study::from(study);
        let result = results(&study, &named_runs(&study)).remove(0);
        let shown = is_shown(&study, &study.thresholds()[0], &study.runs());
        (result.sentence, result.between_per_s, shown)
    }

    #[test]
    fn the_rates_between_which_a_percentile_passes_its_limit_are_named() {
        let (sentence, between, shown) = told("p50 < 300ms");
        assert!(sentence.contains("p50 passes 300 ms between 50 and 100/s"), "{sentence}");
        assert!(sentence.starts_with("FAIL p50 < 300ms: "), "{sentence}");
        assert_eq!(between, Some([Some(50.0), Some(100.0)]));
        assert_eq!(shown, ThresholdShown::NotShown);
        let (sentence, between, _) = told("fail if p50 > 300ms");
        assert!(sentence.contains("FAIL --fail-if 'p50 > 300ms': p50 passes"), "{sentence}");
        assert_eq!(between, Some([Some(50.0), Some(100.0)]));
    }

    #[test]
    fn a_limit_that_all_steps_keep_or_miss_has_one_rate() {
        let (sentence, between, shown) = told("failed < 1%");
        assert!(sentence.contains("stays below 1.0 % up to 200/s"), "{sentence}");
        assert_eq!((between, shown), (Some([Some(200.0), None]), ThresholdShown::Shown));
        let (sentence, between, _) = told("p50 < 100ms");
        assert!(sentence.contains("p50 is above 100 ms already at 50/s"), "{sentence}");
        assert_eq!(between, Some([None, Some(50.0)]));
    }

    #[test]
    fn a_throughput_is_one_of_the_whole_run() {
        let (sentence, between, shown) = told("throughput > 80/s");
        assert!(sentence.contains("PASS throughput > 80/s: it is 8"), "{sentence}");
        assert_eq!((between, shown), (None, ThresholdShown::Shown));
    }
}
