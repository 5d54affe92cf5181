//! Whether response times and rate settled (MSER-5).

use model::{Diagnostic, Nanos, Run, Steadiness};

use super::{Assessment, Grade, SIGNIFICANT};

/// Applies to a run that was sampled.
pub(super) fn ask(run: &Run, is_claimed: bool) -> Option<Diagnostic> {
    let Steadiness { settled_after, shift, shift_in_errors, .. } =
        run.statistics.as_ref()?.steadiness?;
    Some(Diagnostic::Steadiness { settled_after, shift, shift_in_errors, is_claimed })
}

/// A shift below 5 % passes; one of 25 % or more, beyond chance, contradicts a server that keeps
/// up.
fn grade(
    settled_after: Option<Nanos>,
    shift: f64,
    shift_in_errors: f64,
    is_claimed: bool,
) -> Grade {
    if settled_after.is_some() || shift.abs() < 0.05 {
        return Grade::Passed;
    }
    let is_beyond_chance = shift.abs() >= 0.25 && shift_in_errors.abs() >= SIGNIFICANT;
    if is_claimed && is_beyond_chance { Grade::Failed } else { Grade::Doubtful }
}

fn sentence(settled_after: Option<Nanos>, shift: f64) -> String {
    match settled_after {
        Some(Nanos::ZERO) => "response times were steady from the start".to_owned(),
        Some(after) => format!("response times were steady after {:.2} s", after.as_secs_f64()),
        None => {
            format!(
                "response times did not settle: the second half differs from the first by {:+.1} %",
                of_first_half(shift) * 100.0
            )
        }
    }
}

/// By how much the second half differs from the first, as a share of the first. `shift` is the same
/// difference as a share of the mean of both, which is more than 1 if a time falls to a third.
fn of_first_half(shift: f64) -> f64 {
    (1.0 + shift / 2.0) / (1.0 - shift / 2.0) - 1.0
}

/// Grade, sentence and hint.
pub(super) fn assess(
    settled_after: Option<Nanos>,
    shift: f64,
    shift_in_errors: f64,
    is_claimed: bool,
) -> Assessment {
    let grade = grade(settled_after, shift, shift_in_errors, is_claimed);
    let sentence = sentence(settled_after, shift);
    let hint = "use a longer --warm-up, or a longer run";
    Assessment::new(grade, sentence, hint)
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn the_second_half_is_compared_with_the_first() {
        // 300 ms, then 100: the difference is the mean of both.
        let falls = sentence(None, -1.0);
        assert!(falls.ends_with("differs from the first by -66.7 %"), "{falls}");
        let rises = sentence(None, 1.0);
        assert!(rises.ends_with("differs from the first by +200.0 %"), "{rises}");
    }
}
