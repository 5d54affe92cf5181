//! The runs of other generators (`--generator`): a sweep's rows and what is said of them (`rows`), a load's report (`load`).
//!
//! Each figure is marked as the generator's own: what it printed, and a dash for what it did not.

pub(crate) mod load;
pub(crate) mod rows;

use model::claimed::{Believable, FindingGrade};
use model::{ClaimedRun, Diagnostic};

use crate::number;

pub use load::report;

/// The audit's word, as it stands in a column and in a title.
fn word(audit: Believable) -> &'static str {
    match audit {
        Believable::Possible => "possible",
        Believable::Doubtful => "doubtful",
        Believable::Impossible => "IMPOSSIBLE",
        Believable::Unchecked => "unchecked",
    }
}

/// The findings of the audit, a line each.
fn findings(run: &ClaimedRun) -> Vec<String> {
    let mark = |is| match is {
        FindingGrade::Fails => "FAILS",
        FindingGrade::Doubtful => "doubtful",
        FindingGrade::Explains => "why",
    };
    run.findings.iter().map(|found| format!("{}: {}: {}", mark(found.is), found.check, found.text)).collect()
}

/// How much of the machine it took, and the command that made the run.
fn made_by(run: &ClaimedRun) -> String {
    let used = run.processors_used().map(|used| format!(", {} processors used", number::fixed(used, 2)));
    format!("by {}{}: {}", run.name(), used.unwrap_or_default(), run.command_line)
}

/// What the machine spoiled meanwhile, with the remedy.
fn machine(run: &ClaimedRun) -> Vec<(String, &'static str)> {
    run.machine_troubles().iter().map(|check| (check.to_string(), check.hint())).collect()
}

/// Whether something may have spoiled a figure of it.
fn is_doubtful(run: &ClaimedRun) -> bool {
    let spoils = |warning: &Diagnostic| !matches!(warning, Diagnostic::LedgerUnknown { .. });
    let failed = run.claim.failed.is_some_and(|failed| failed > 0);
    matches!(run.audit, Believable::Doubtful | Believable::Impossible)
        || failed
        || run.warnings.iter().any(spoils)
        || !run.machine_troubles().is_empty()
}
