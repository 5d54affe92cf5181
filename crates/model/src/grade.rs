//! Grades a diagnostic: how bad it is, whom it blames and what helps. The limits are those of
//! docs/METHOD.md, "The verdict" and "Warnings".

use strum::EnumMessage as _;

use crate::diagnostic::{FindingGrade, deviations};
use crate::generator::{LARGEST_CLOCK_ERROR, LATEST_START};
use crate::{Diagnostic, EndedBy, Nanos, Outcome, counts};

/// How a diagnostic comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Says what is missing from a row, and puts no number in doubt.
    Note,
    /// As it should be.
    Passed,
    /// Worth a look; does not change the verdict.
    Doubtful,
    /// Decides the verdict.
    Failed,
}

/// Lags up to this are small, whatever they are compared with.
const SMALL: Nanos = Nanos::from_micros(200);
/// A stretch that is worth a word, however long the run was: it may be the longest response time.
const STRETCH: Nanos = Nanos::from_millis(100);
/// Standard errors: an accident once in some hundred runs.
const SIGNIFICANT: f64 = 3.0;

impl Diagnostic {
    /// How it comes out. A warning is doubtful as soon as it is raised, or a note.
    pub fn grade(&self) -> Grade {
        let by = |value: f64, pass: f64, fail: f64| match value {
            v if v <= pass => Grade::Passed,
            v if v <= fail => Grade::Doubtful,
            _ => Grade::Failed,
        };
        let by_length = |longest| if longest > STRETCH { Grade::Doubtful } else { Grade::Passed };
        let if_none = |n: u64, otherwise: Grade| if n == 0 { Grade::Passed } else { otherwise };
        match *self {
            Diagnostic::Headroom { times, .. } => by(1.0 / times.max(1e-9), 1.0 / 3.0, 1.0 / 1.2),
            Diagnostic::SentInTime { sent, due } => {
                by(1.0 - sent as f64 / (due as f64).max(1.0), 0.005, 0.02)
            }
            Diagnostic::GeneratorLag { p99, .. } | Diagnostic::ReadLag { p99, .. }
                if p99 <= SMALL =>
            {
                Grade::Passed
            }
            Diagnostic::GeneratorLag { of_response_time, .. }
            | Diagnostic::ReadLag { of_response_time, .. } => by(of_response_time, 0.05, 0.20),
            Diagnostic::LaneCpu { share } => by(share, 0.70, 0.90),
            Diagnostic::LaneRunQueue { share } => by(share, 0.02, 0.10),
            Diagnostic::Standstill { share, longest } => {
                by(share, 0.01, 0.10).max(by_length(longest))
            }
            Diagnostic::LittlesLaw { in_flight, connections, tolerance } => by(
                (in_flight / f64::from(connections.max(1)) - 1.0).abs(),
                0.01 + tolerance,
                0.05 + tolerance,
            ),
            Diagnostic::Conservation { client, server, .. } => {
                if_none(client.abs_diff(server), Grade::Failed)
            }
            Diagnostic::ListenOverflows { dropped: n }
            | Diagnostic::ConnectStalls { retried: n, .. } => if_none(n, Grade::Doubtful),
            Diagnostic::Exhausted { connects } => if_none(connects, Grade::Failed),
            // Of nothing at all nothing is known.
            Diagnostic::Failures { failed, planned } if failed == planned => Grade::Failed,
            Diagnostic::Failures { failed, planned } => {
                by(failed as f64 / planned as f64, 0.005, 1.0)
            }
            Diagnostic::LagSlope { in_errors, grown, .. }
                if in_errors < SIGNIFICANT || grown <= SMALL =>
            {
                Grade::Passed
            }
            Diagnostic::LagSlope { slope, .. } => by(slope, 0.0, 0.001),
            Diagnostic::Bracket { width, half_interval, .. }
                if width <= half_interval.max(SMALL) =>
            {
                Grade::Passed
            }
            Diagnostic::Bracket { width, half_interval, of_response_time, .. } => {
                // Within two intervals it is the sample that is the limit.
                let worst = if width.0 > 2 * half_interval.0 { 0.20 } else { 1.0 };
                by(of_response_time, 0.05, worst)
            }
            Diagnostic::Steadiness { settled_after: Some(_), .. } => Grade::Passed,
            Diagnostic::Steadiness { shift, .. } if shift.abs() < 0.05 => Grade::Passed,
            Diagnostic::Steadiness { shift, shift_in_errors, is_claimed, .. } => {
                let is_other = shift.abs() >= 0.25 && shift_in_errors.abs() >= SIGNIFICANT;
                if is_claimed && is_other { Grade::Failed } else { Grade::Doubtful }
            }
            Diagnostic::PoissonCount { due, expected } => {
                by(deviations(due, expected).abs(), SIGNIFICANT, f64::INFINITY)
            }
            Diagnostic::ClockStep { steps } => if_none(steps.into(), Grade::Failed),
            Diagnostic::GeneratorLost { .. }
            | Diagnostic::Audited { is: FindingGrade::Fails, .. } => Grade::Failed,
            Diagnostic::LateStart { late, .. } => {
                by(late.as_millis_f64(), LATEST_START.as_millis_f64(), 100.0)
            }
            Diagnostic::ClockError { error, .. } if error <= LARGEST_CLOCK_ERROR => Grade::Passed,
            Diagnostic::Steal { share } => by(share, 0.01, 0.05),
            Diagnostic::Audited { is: FindingGrade::Explains, .. }
            | Diagnostic::TooFewRequests { .. }
            | Diagnostic::LedgerUnknown { .. }
            | Diagnostic::KernelUnjoined { .. }
            | Diagnostic::KernelIncomplete { .. } => Grade::Note,
            _ => Grade::Doubtful,
        }
    }

    /// Whether a failure of it means that the generator was the limit; else it means that the
    /// figures are worth nothing.
    pub(crate) fn blames_the_generator(&self) -> bool {
        matches!(
            self,
            Diagnostic::Headroom { .. }
                | Diagnostic::SentInTime { .. }
                | Diagnostic::GeneratorLag { .. }
                | Diagnostic::LaneCpu { .. }
                | Diagnostic::LaneRunQueue { .. }
                | Diagnostic::Standstill { .. }
                | Diagnostic::Exhausted { .. }
                | Diagnostic::ReadLag { .. }
                | Diagnostic::LagSlope { .. }
                | Diagnostic::Bracket { .. }
        )
    }

    /// What to do, or to type, where it is not passed.
    pub fn hint(&self) -> &'static str {
        match self {
            Diagnostic::Failures { planned: 0, .. }
            | Diagnostic::Interrupted { by: EndedBy::User } => "run again to the end",
            Diagnostic::Interrupted { by: EndedBy::Server } => {
                "the server's last lines and its log may say why; the figures are of the part before and of its end"
            }
            Diagnostic::QuantilesHidden { outcomes, .. } => hint_for_failures(outcomes),
            _ => self.get_message().unwrap_or_default(),
        }
    }
}

/// What may be done about failures, of which these outcomes occurred.
fn hint_for_failures(outcomes: &[String]) -> &'static str {
    let occurred = |wanted: fn(Outcome) -> bool| {
        outcomes.iter().any(|name| counts::outcome(name).is_some_and(wanted))
    };
    // What a client got wrong, or what is no HTTP, is so under any load; too many requests (429)
    // are not.
    let may_be_of_the_load = |outcome| match outcome {
        Outcome::Answered(status) => status >= 500 || status == 429,
        Outcome::BadResponse | Outcome::WrongLength => false,
        _ => true,
    };
    if occurred(|outcome| matches!(outcome, Outcome::TimedOut | Outcome::ConnectTimedOut)) {
        "see the errors by kind: raise --timeout where they are timeouts, or lower the load"
    } else if occurred(may_be_of_the_load) {
        "see the errors by kind, or lower the load"
    } else {
        "see the errors by kind: what they say comes first"
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn each_says_what_is_and_what_to_do_and_survives_its_file() {
        let of_no_cpu =
            |diagnostic: &Diagnostic| matches!(diagnostic, Diagnostic::SharedCpus { .. });
        for diagnostic in Diagnostic::iter().filter(|diagnostic| !of_no_cpu(diagnostic)) {
            assert!(
                !diagnostic.to_string().is_empty() && !diagnostic.hint().is_empty(),
                "{diagnostic:?}"
            );
            let file = serde_json::to_string(&diagnostic).unwrap();
            assert_eq!(serde_json::from_str::<Diagnostic>(&file).unwrap(), diagnostic, "{file}");
        }
    }

    #[test]
    fn a_hint_names_only_what_helps_against_the_failures_that_occurred() {
        let hint = |outcomes: &[&str]| {
            let outcomes = outcomes.iter().map(|name| (*name).to_owned()).collect();
            Diagnostic::QuantilesHidden { from: 0.5, unanswered: 1, outcomes }.hint()
        };
        let names = |words: &str| (words.contains("--timeout"), words.contains("lower the load"));
        assert_eq!(names(hint(&["503", "timed_out", "bad_response"])), (true, true));
        for outcome in [
            "503",
            "429",
            "connect_refused",
            "reset",
            "closed_early",
            "skipped",
            "in_flight_at_end",
        ] {
            assert_eq!(names(hint(&[outcome, "bad_response"])), (false, true), "{outcome}");
        }
        for outcome in ["404", "bad_response", "wrong_length"] {
            assert_eq!(names(hint(&[outcome])), (false, false), "{outcome}");
        }
    }
}
