//! The doubts of a study and of its runs, the same ones told once.

use model::{Diagnostic, Grade, Run, SweepStudy};

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
/// nothing confirms, has a note and no mark: it would stand on every row and mean nothing.
pub(crate) fn is_doubtful(run: &Run) -> bool {
    run.warnings.iter().any(|warning| warning.grade() != Grade::Note)
}

/// Diagnostics that one hint answers: what was said, and of which runs.
pub(crate) struct Doubt {
    pub(crate) seen: Vec<Seen>,
    pub(crate) hint: &'static str,
}

/// What was said of one run, or in the same words of several.
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

    /// It, behind the runs' names.
    pub(crate) fn line(&self) -> String {
        format!("{}: {}", self.labels.join(", "), self.text)
    }
}

/// Diagnostics and what is said of them, by the runs of these names; together what one hint answers, in the order in which the hints
/// first come up.
pub(crate) fn by_hint<'a>(all: impl Iterator<Item = (String, &'a Diagnostic, String)>) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = Vec::new();
    for (label, diagnostic, text) in all {
        let hint = diagnostic.hint();
        let at = doubts.iter().position(|doubt| doubt.hint == hint).unwrap_or_else(|| {
            doubts.push(Doubt { seen: Vec::new(), hint });
            doubts.len() - 1
        });
        let seen = &mut doubts[at].seen;
        match seen.iter_mut().find(|seen| seen.text == text) {
            Some(seen) if seen.labels.contains(&label) => {}
            Some(seen) => seen.labels.push(label),
            None => seen.push(Seen { labels: vec![label], text }),
        }
    }
    doubts
}

/// All warnings, of the study and of its runs: first those that set a mark, then the notes.
pub(crate) fn by_kind(of_study: &[Diagnostic], noted: &[Noted<'_>]) -> Vec<Doubt> {
    let of_study = of_study.iter().map(|warning| ("study".to_owned(), warning));
    let of_runs = noted.iter().flat_map(|(label, warnings)| warnings.iter().map(|warning| (label.clone(), warning)));
    let mut all: Vec<(String, &Diagnostic)> = of_study.chain(of_runs).collect();
    all.sort_by_key(|(_, warning)| warning.grade() == Grade::Note);
    by_hint(all.into_iter().map(|(label, warning)| (label, warning, warning.to_string())))
}
