//! The doubts of a study and of its runs, the same ones told once.

use std::mem::discriminant;

use model::{Caveat, Run, SweepStudy};

use crate::claimed::rows;
use crate::facts::{Labelled, labelled};

/// A run's name and its doubts.
pub(crate) type Noted<'a> = (String, &'a [Caveat]);

/// The doubts of each of these runs.
pub(crate) fn noted<'a>(runs: &[Labelled<'a>]) -> Vec<Noted<'a>> {
    runs.iter().map(|labelled| (labelled.label.clone(), &*labelled.run.caveats)).collect()
}

/// The doubts of each run of a sweep, of another generator's too.
pub(crate) fn noted_of(study: &SweepStudy) -> Vec<Noted<'_>> {
    let claimed = study.claimed_runs.iter().map(|row| (rows::label(study, row), &*row.run.caveats));
    noted(&labelled(study)).into_iter().chain(claimed).collect()
}

/// Whether something was seen that may have spoiled a number of the run's row. A number that is left out, or that
/// nothing confirms, has a caveat too but no mark: it would stand on every row and mean nothing.
pub(crate) fn is_doubtful(run: &Run) -> bool {
    run.caveats.iter().any(spoils)
}

fn spoils(caveat: &Caveat) -> bool {
    !matches!(
        caveat,
        Caveat::TooFewRequests { .. }
            | Caveat::LedgerUnknown { .. }
            | Caveat::KernelUnjoined { .. }
            | Caveat::KernelIncomplete { .. }
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

/// All caveats, of the study and of its runs, each once a run, by kind: first those that set a mark, then the others, in the
/// order in which the kinds first come up.
pub(crate) fn by_kind(of_study: &[Caveat], noted: &[Noted<'_>]) -> Vec<Doubt> {
    let of_study = of_study.iter().map(|caveat| ("study".to_owned(), caveat));
    let of_runs = noted.iter().flat_map(|(label, caveats)| caveats.iter().map(|caveat| (label.clone(), caveat)));
    let mut kinds = Vec::new();
    let mut doubts: Vec<Doubt> = Vec::new();
    let mut all: Vec<(String, &Caveat)> = of_study.chain(of_runs).collect();
    all.sort_by_key(|(_, caveat)| !spoils(caveat));
    for (label, caveat) in all {
        let kind = (discriminant(caveat), caveat.remedy());
        let at = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            kinds.push(kind);
            doubts.push(Doubt { seen: Vec::new(), remedy: kind.1 });
            kinds.len() - 1
        });
        let seen = &mut doubts[at].seen;
        let text = caveat.text();
        match seen.iter_mut().find(|seen| seen.text == text) {
            Some(seen) if seen.labels.contains(&label) => {}
            Some(seen) => seen.labels.push(label),
            None => seen.push(Seen { labels: vec![label], text }),
        }
    }
    doubts
}
