//! Independent arrivals: whether the number drawn is close to the rate.

use model::{Arrivals, Diagnostic, Pace, Profile, Run};

use super::{Assessment, SIGNIFICANT, by};

/// Applies to a flat rate, one request at a time.
pub(super) fn ask(run: &Run, pace: &Pace) -> Option<Diagnostic> {
    let Pace::Open {
        profile: Profile::Flat { rate }, arrivals: Arrivals::Poisson, burst: 1, ..
    } = pace
    else {
        return None;
    };
    let expected = rate.per_second() * run.measured.as_secs_f64();
    (expected > 0.0).then_some(Diagnostic::PoissonCount { due: run.tally.due(), expected })
}

/// How many standard deviations a Poisson count is off.
fn deviations(count: u64, expected: f64) -> f64 {
    (count as f64 - expected) / expected.max(1.0).sqrt()
}

/// Grade, sentence and hint.
pub(super) fn assess(due: u64, expected: f64) -> Assessment {
    let grade = by(deviations(due, expected).abs(), SIGNIFICANT, f64::INFINITY);
    let sentence = format!(
        "{due} requests were due; the rate gives {expected:.0} on average: {:+.1} standard \
            deviations",
        deviations(due, expected)
    );
    let hint = "use another --seed: this one drew an unusual number";
    Assessment::new(grade, sentence, hint)
}
