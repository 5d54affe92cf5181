//! From this percentile on none is printed: too few requests.

use model::{Diagnostic, Quantile, Run};

use super::{Assessment, Grade};
use crate::words::{counted, percentile};

/// Applies to the percentiles that will be printed.
pub(super) fn ask(run: &Run, percentiles: &[f64]) -> Option<Diagnostic> {
    let lacks_answers = |q: &f64| run.response_time(*q) == Quantile::TooFew;
    let from = percentiles.iter().copied().find(lacks_answers)?;
    let answers = run.tally.counts.good();
    let interval = run.statistics.as_ref().and_then(|statistics| statistics.interval(from));
    let dependent = interval.filter(|interval| interval.inflation > Some(1.1));
    let worth = dependent.and_then(|interval| interval.effective(answers)).map(|n| n as u64);
    Some(Diagnostic::TooFewRequests { from, answers, worth })
}

/// Grade, sentence and hint.
pub(super) fn assess(from: f64, answers: u64, worth: Option<u64>) -> Assessment {
    let grade = Grade::Note;
    let sentence = format!(
        "p{} and above have no number, at most a range: they need more than {}{}",
        percentile(from),
        counted(answers, "response"),
        worth.map(|worth| format!(" (worth {worth} independent ones)")).unwrap_or_default()
    );
    let hint = "run longer (--for), or send more requests (load: -n; sweep: -R)";
    Assessment::new(grade, sentence, hint)
}
