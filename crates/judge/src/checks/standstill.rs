//! How long a lane stood still: it was not running, and neither waiting for events nor its work
//! explains that.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, Grade, busiest_lane, by};
use crate::words::percent;

/// A stretch this long is reported however long the run was: it may be the longest response time.
const STRETCH: Nanos = Nanos::from_millis(100);

/// Applies to each run.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let lanes = &run.generator.lanes;
    let longest = lanes.iter().map(|lane| lane.longest_standstill).max().unwrap_or_default();
    let share = busiest_lane(run, |lane| lane.stood_still)?;
    Some(Diagnostic::Standstill { share, longest })
}

fn sentence(share: f64, longest: Nanos) -> String {
    match longest {
        Nanos::ZERO => "no generator thread stood still".to_owned(),
        _ => format!(
            "a generator thread stood still for {} of the time, up to {:.2} s in one stretch",
            percent(share),
            longest.as_secs_f64()
        ),
    }
}

/// Grade, sentence and hint.
pub(super) fn assess(share: f64, longest: Nanos) -> Assessment {
    let grade =
        by(share, 0.01, 0.10).max(if longest > STRETCH { Grade::Doubtful } else { Grade::Passed });
    let sentence = sentence(share, longest);
    let hint = "was it stopped (Ctrl-Z, a debugger, a CPU quota), or the machine too busy? \
            Run again: what was measured in that time says nothing about the server";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
