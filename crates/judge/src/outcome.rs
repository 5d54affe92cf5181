//! What a study comes to for a script that runs it ([`StudyOutcome`]): the exit code follows from
//! that.

use model::comparison::ComparisonFindings;
use model::{CapacityExpectation, Run, SearchEnd, Study, Verdict};

use crate::cut_short::is_interrupted;
use crate::expectations::{ThresholdShown, is_shown};
use crate::response_checks::response_checks;

/// What a study comes to. Several may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StudyOutcome {
    /// The user interrupted it. Always false for a load, whose command knows whether the user or a
    /// condition (`--stop-if`) ended it.
    pub is_interrupted: bool,
    /// No figure is the server's: all runs are invalid, or one with a threshold is, or the server
    /// ended.
    pub is_invalid: bool,
    /// A threshold is not shown to hold, a check of the responses fails, or an arm of a comparison is
    /// worse.
    pub is_missed: bool,
}

impl StudyOutcome {
    /// What a study comes to. `is_strict`: whether an arm that may be worse counts as worse.
    pub fn of(study: &Study, is_strict: bool) -> StudyOutcome {
        let runs = study.runs();
        let held = study.held_runs();
        let thresholds: Vec<ThresholdShown> =
            study.thresholds().iter().map(|threshold| is_shown(study, threshold, &held)).collect();
        StudyOutcome {
            is_interrupted: is_interrupted(study),
            is_invalid: has_no_figures(study, &runs)
                || thresholds.contains(&ThresholdShown::OfInvalidRun),
            is_missed: is_worse(study, is_strict)
                || thresholds.contains(&ThresholdShown::NotShown)
                || !response_checks(study).iter().all(|check| check.holds),
        }
    }
}

/// Whether an arm is worse than the base, or the capacity less than was expected.
fn is_worse(study: &Study, is_strict: bool) -> bool {
    match study {
        Study::Compare(study) => {
            let found = ComparisonFindings::of(&study.plan, &study.runs);
            found.is_worse() || is_strict && found.cannot_tell()
        }
        Study::Capacity(study) => {
            let is_met =
                |expected: &CapacityExpectation| expected.holds_for(study.bracket) == Some(true);
            !study.plan.expected.iter().all(is_met)
        }
        Study::Sweep(_) | Study::Bodies(_) | Study::Load(_) => false,
    }
}

fn has_no_figures(study: &Study, runs: &[&Run]) -> bool {
    // A trial of a search may fail in ways that make a run INVALID, such as all of its requests
    // timing out.
    if let Study::Capacity(search) = study {
        return search.end == Some(SearchEnd::ServerEnded);
    }
    let is_invalid = |run: &&Run| {
        run.judgement.as_ref().is_some_and(|judgement| judgement.verdict == Verdict::Invalid)
    };
    !runs.is_empty() && runs.iter().all(is_invalid)
}
