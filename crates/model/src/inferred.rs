//! Which order of service the runs of a sweep look like, all together.

use crate::theory::{Discipline, NotJudged, Resemblance};
use crate::{Run, Verdict};

/// What the runs of a study say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredDiscipline {
    /// Runs that were judged, with more connections than slots.
    pub runs: usize,
    /// Orders of service that fit all of them; empty: no model fits.
    pub disciplines: Vec<Discipline>,
    /// Whether at least one run fits by its shape alone.
    pub by_shape: bool,
}

/// Which order of service the runs with more connections than `slots` look like; `None` without such a run.
pub fn inferred(runs: &[Run], slots: u32) -> Option<InferredDiscipline> {
    let theories = runs.iter().filter(|run| run.connections > slots).filter_map(|run| run.theory.as_ref());
    let mut inferred = InferredDiscipline { runs: 0, disciplines: Discipline::ALL.to_vec(), by_shape: false };
    for theory in theories {
        let fitting = match theory.resemblance() {
            Resemblance::Unknown(_) => continue,
            Resemblance::Nothing => Vec::new(),
            Resemblance::These(these) => these,
            Resemblance::ShapeOf(these) => {
                inferred.by_shape = true;
                these
            }
        };
        inferred.runs += 1;
        inferred.disciplines.retain(|discipline| fitting.contains(discipline));
    }
    (inferred.runs > 0).then_some(inferred)
}

/// Why the figures of a run say nothing about the server's order of service, if they do not.
pub fn not_the_servers(run: &Run) -> Option<NotJudged> {
    let judgement = run.judgement.as_ref()?;
    match judgement.verdict {
        Verdict::GeneratorBound | Verdict::Invalid => Some(NotJudged::NotTheServers),
        _ => judgement.limit.as_ref().filter(|limit| limit.is_computing()).map(|_| NotJudged::Computes),
    }
}
