//! The doubts of a study and of its runs, the same ones told once.

use std::mem::discriminant;

use model::{Diagnostic, Run, SweepStudy};

use crate::claimed::rows;
use crate::facts::{Labelled, labelled};

/// A run's name and its doubts.
pub(crate) type Noted<'a> = (String, &'a [Diagnostic]);

/// The doubts of each of these runs.
pub(crate) fn noted<'a>(runs: &[Labelled<'a>]) -> Vec<Noted<'a>> {
    runs.iter().map(|labelled| (labelled.label.clone(), &*labelled.run.warnings)).collect()
}

/// The doubts of each run of a sweep, of another generator's too.
pub(crate) fn noted_of(study: &SweepStudy) -> Vec<Noted<'_>> {
    let claimed = study.claimed_runs.iter().map(|row| (rows::label(study, row), &*row.run.warnings));
    noted(&labelled(study)).into_iter().chain(claimed).collect()
}

/// Whether something was seen that may have spoiled a number of the run's row. A number that is left out, or that
/// nothing confirms, has a warning too but no mark: it would stand on every row and mean nothing.
pub(crate) fn is_doubtful(run: &Run) -> bool {
    run.warnings.iter().any(spoils)
}

fn spoils(warning: &Diagnostic) -> bool {
    !matches!(
        warning,
        Diagnostic::TooFewRequests { .. }
            | Diagnostic::LedgerUnknown { .. }
            | Diagnostic::KernelUnjoined { .. }
            | Diagnostic::KernelIncomplete { .. }
    )
}

/// Doubts of one kind and one remedy: what was seen, and of which runs.
pub(crate) struct Doubt {
    pub(crate) seen: Vec<Seen>,
    pub(crate) remedy: &'static str,
}

/// What was seen, of one run or in the same words of several.
pub(crate) struct Seen {
    labels: Vec<String>,
    pub(crate) text: String,
}

impl Seen {
    /// The runs' names, or that it is all of them.
    pub(crate) fn of(&self, noted: &[Noted<'_>]) -> String {
        let all = noted.len() > 1 && noted.iter().all(|(label, _)| self.labels.contains(label));
        if all { "every run".to_owned() } else { self.labels.join(", ") }
    }
}

/// All warnings, of the study and of its runs, each once a run, by kind: first those that set a mark, then the others, in the
/// order in which the kinds first come up.
pub(crate) fn by_kind(of_study: &[Diagnostic], noted: &[Noted<'_>]) -> Vec<Doubt> {
    let of_study = of_study.iter().map(|warning| ("study".to_owned(), warning));
    let of_runs = noted.iter().flat_map(|(label, warnings)| warnings.iter().map(|warning| (label.clone(), warning)));
    let mut kinds = Vec::new();
    let mut doubts: Vec<Doubt> = Vec::new();
    let mut all: Vec<(String, &Diagnostic)> = of_study.chain(of_runs).collect();
    all.sort_by_key(|(_, warning)| !spoils(warning));
    for (label, warning) in all {
        let kind = (discriminant(warning), warning.remedy());
        let at = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            kinds.push(kind);
            doubts.push(Doubt { seen: Vec::new(), remedy: kind.1 });
            kinds.len() - 1
        });
        let seen = &mut doubts[at].seen;
        let text = warning.text();
        match seen.iter_mut().find(|seen| seen.text == text) {
            Some(seen) if seen.labels.contains(&label) => {}
            Some(seen) => seen.labels.push(label),
            None => seen.push(Seen { labels: vec![label], text }),
        }
    }
    doubts
}
