//! A percentile is not printed: requests without a response could change it.

use model::{Diagnostic, Outcome, Quantile, Run, counts};

use super::{Assessment, Grade};
use crate::words::percentile;

/// Applies to the percentiles that will be printed. Without requests there is no percentile to
/// change.
pub(super) fn ask(run: &Run, percentiles: &[f64]) -> Option<Diagnostic> {
    let hidden = |q: &f64| run.response_time(*q) == Quantile::Unanswered;
    let from = percentiles.iter().copied().find(hidden)?;
    let counts = &run.tally.counts;
    (counts.total() > 0).then(|| Diagnostic::QuantilesHidden {
        from,
        unanswered: counts.failed() + run.tally.unfinished_above_all(),
        outcomes: counts.failures(),
    })
}

/// What to do about failures with these outcomes.
fn hint(outcomes: &[String]) -> &'static str {
    let occurred = |wanted: fn(Outcome) -> bool| {
        outcomes.iter().any(|name| counts::outcome(name).is_some_and(wanted))
    };
    // A client's mistake, or a response that is not HTTP, fails under any load; 429 (too many
    // requests) depends on it.
    let may_be_of_the_load = |outcome| match outcome {
        Outcome::Answered(status) => status >= 500 || status == 429,
        Outcome::BadResponse | Outcome::WrongLength => false,
        Outcome::Refused
        | Outcome::NoRoute
        | Outcome::ConnectTimedOut
        | Outcome::NoPort
        | Outcome::NoDescriptor
        | Outcome::ConnectFailed
        | Outcome::Reset
        | Outcome::Closed
        | Outcome::TimedOut
        | Outcome::InFlight
        | Outcome::Skipped
        | Outcome::NotSent => true,
    };
    if occurred(|outcome| matches!(outcome, Outcome::TimedOut | Outcome::ConnectTimedOut)) {
        "see the errors by kind: raise --timeout where they are timeouts, or lower the load"
    } else if occurred(may_be_of_the_load) {
        "see the errors by kind, or lower the load"
    } else {
        "see the errors by kind: they have to be mended first"
    }
}

/// Grade, sentence and hint.
pub(super) fn assess(from: f64, unanswered: u64, outcomes: &[String]) -> Assessment {
    let from = percentile(from);
    let what = "and above are not printed";
    // None failed: these are the slow ones that the user left without a response.
    let (sentence, hint) = if outcomes.is_empty() {
        let waited = "requests had no response yet when the run was stopped, and had waited longer";
        let sentence = format!("p{from} {what}: {unanswered} {waited} than any response took");
        (sentence, "run again to the end")
    } else {
        let why = "requests without a good response could change them";
        (format!("p{from} {what}: {unanswered} {why}"), hint(outcomes))
    };
    Assessment::new(Grade::Doubtful, sentence, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_only_what_helps_against_the_failures_that_occurred() {
        let of = |outcomes: &[&str]| {
            let outcomes: Vec<String> = outcomes.iter().map(|name| (*name).to_owned()).collect();
            hint(&outcomes)
        };
        let names = |words: &str| (words.contains("--timeout"), words.contains("lower the load"));
        assert_eq!(names(of(&["503", "timed_out", "bad_response"])), (true, true));
        for outcome in [
            "503",
            "429",
            "connect_refused",
            "reset",
            "closed_early",
            "skipped",
            "in_flight_at_end",
        ] {
            assert_eq!(names(of(&[outcome, "bad_response"])), (false, true), "{outcome}");
        }
        for outcome in ["404", "bad_response", "wrong_length"] {
            assert_eq!(names(of(&[outcome])), (false, false), "{outcome}");
        }
    }
}
