//! These runs measured something other than the server.

use model::{Diagnostic, Judgement, Run, SweepStudy, Verdict};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::checks::assess;
use crate::words::listed;

/// These runs measured something other than the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// Their names, such as `3x`; empty if there is only one run.
    pub runs: Vec<String>,
    /// [`Verdict::GeneratorBound`] or [`Verdict::Invalid`].
    pub verdict: Verdict,
    /// The check that decided.
    pub check: Option<Diagnostic>,
}

/// Groups the runs that say nothing about the server by verdict.
pub(super) fn of_sweep(study: &SweepStudy) -> Vec<Finding> {
    let of = |verdict: Verdict| {
        let has_it = |run: &&Run| run.judgement.as_ref().is_some_and(|it| it.verdict == verdict);
        let runs: Vec<&Run> = study.runs.iter().filter(has_it).collect();
        let judgement = runs.first()?.judgement.as_ref()?;
        let is_one = study.runs.len() == 1;
        let names = runs.iter().filter(|_| !is_one).map(|run| run.in_multiples()).collect();
        Some(NotMeasured { runs: names, verdict, check: decider(judgement) }.into())
    };
    [Verdict::Invalid, Verdict::GeneratorBound].into_iter().filter_map(of).collect()
}

/// Judges a load.
pub(super) fn of_load(run: &Run) -> Option<Finding> {
    let judgement = run.judgement.as_ref().filter(|_| !run.is_evidence())?;
    let verdict = judgement.verdict;
    let check = decider(judgement);
    Some(NotMeasured { runs: Vec::new(), verdict, check }.into())
}

fn decider(judgement: &Judgement) -> Option<Diagnostic> {
    crate::verdict::troubles(judgement).first().map(|check| (*check).clone())
}

fn not_measured(runs: &[String], verdict: Verdict, check: Option<&Diagnostic>) -> String {
    let at = if runs.is_empty() { String::new() } else { format!(" at {}", listed(runs)) };
    let is_late = matches!(
        check,
        Some(
            Diagnostic::MachineBusy { .. }
                | Diagnostic::GeneratorLag { .. }
                | Diagnostic::ReadLag { .. }
                | Diagnostic::Bracket { .. }
        )
    );
    let check = check.map(|check| assess(check).sentence).unwrap_or_default();
    if is_late && verdict == Verdict::GeneratorBound {
        return format!(
            "GENERATOR-BOUND{at}: longtail was late, so the figures do not describe the server; {check}."
        );
    }
    if verdict == Verdict::GeneratorBound {
        format!(
            "GENERATOR-BOUND{at}: longtail was the limit, so the figures do not describe the server; {check}."
        )
    } else {
        format!("INVALID{at}: {check}. No conclusions are drawn.")
    }
}

impl NotMeasured {
    pub(super) fn sentence(&self) -> String {
        let NotMeasured { runs, verdict, check } = self;

        not_measured(runs, *verdict, check.as_ref())
    }
}
