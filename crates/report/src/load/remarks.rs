//! What is said about the numbers: checks, objectives, doubts with their remedies, and what the words mean.

use model::{Diagnostic, Grade, LoadStudy};

use super::part::{Body, Part};
use crate::number;
use crate::verdicts;

/// Where one line a request stands.
pub(crate) fn log(study: &LoadStudy) -> Option<Part> {
    let log = study.plan.log.as_ref()?;
    Some(Part::detail("log, one line a request", vec![Body::Lines(vec![log.display().to_string()])]))
}

/// What limited the run, with the evidence.
pub(crate) fn verdict(study: &LoadStudy) -> Option<Part> {
    let judgement = study.run.judgement.as_ref()?;
    let mut lines = vec![verdicts::evidence(judgement).join("; ")];
    lines.extend(verdicts::hints(judgement).iter().map(|remedy| format!("  → {remedy}")));
    let counts = &study.run.tally.counts;
    let failures = Diagnostic::Failures { failed: counts.failed(), planned: counts.total() };
    // Whose limit it was is not all that there is to say of a server that answers only some.
    let failed = match failures.grade() {
        Grade::Doubtful => {
            format!(", {} % of requests failed", number::percent_tenths(counts.failed() as f64 / counts.total() as f64))
        }
        _ => String::new(),
    };
    let title = format!("verdict: {}{failed}", verdicts::name(judgement.verdict));
    Some(Part::new(title, vec![Body::Lines(lines)]))
}

pub(crate) fn checks(study: &LoadStudy) -> Option<Part> {
    let checks = &study.run.checks;
    (!checks.is_empty()).then(|| Part::new("checks of the answers", vec![Body::Lines(checks.clone())]))
}

/// Those that were missed, or that none was.
pub(crate) fn objectives(study: &LoadStudy) -> Option<Part> {
    let missed = &study.run.missed;
    if !missed.is_empty() {
        return Some(Part::new("objectives missed", vec![Body::Lines(missed.clone())]));
    }
    let asked: Vec<String> = study.plan.fail_if.iter().map(ToString::to_string).collect();
    (!asked.is_empty()).then(|| Part::new("objectives kept: none of these holds", vec![Body::Lines(asked)]))
}

/// Each doubt with its remedy, a remedy once.
pub(crate) fn warnings(study: &LoadStudy) -> Option<Part> {
    let warnings = &study.run.warnings;
    let mut lines: Vec<String> = Vec::new();
    for (at, warning) in warnings.iter().enumerate() {
        lines.push(warning.to_string());
        if warnings.get(at + 1).map(model::Diagnostic::hint) != Some(warning.hint()) {
            lines.push(format!("  → {}", warning.hint()));
        }
    }
    (!lines.is_empty()).then(|| Part::new("warnings", vec![Body::Lines(lines)]))
}

/// What the words of the report mean.
pub(crate) fn words(study: &LoadStudy) -> Option<Part> {
    if study.run.tally.counts.total() == 0 {
        return None;
    }
    let words = [
        "response time: from when a request was due to its last byte back: what a user waits",
        "service time: from its first byte sent to its last byte back: what server and network take",
        "send lag: from due to first byte sent: what the generator adds, the wait for a connection included",
        "offered: requests that were due; completed: good answers (2xx, 3xx); % of all: of those that were due",
        "submit failures: never sent; wait failures: sent, and no good answer came",
        "95 % interval: where the percentile of many such runs would be; answers near in time are not independent, and count for less",
        "of it ours: what the generator's own lateness may have added to it, at most",
        "read lag: from an answer's arrival in the kernel until the generator read it",
        "above: how many answers were slower; with few of them the percentile is a matter of chance",
        "a dash: not known, or too few answers to tell, or requests without a good answer could change it",
    ];
    Some(Part::detail("words", vec![Body::Lines(words.map(str::to_owned).to_vec())]))
}
