//! Is this machine fit to measure on? Each question is a [`Check`] with its answer, its grade, and the mend.
//!
//! Needs no privilege, changes nothing, sends nothing but a few bytes to itself over loopback. Takes a second to look at the
//! machine at rest, half a second to measure waits, and what Puma needs to say its version. Limits and their reasons are
//! in docs/METHOD.md, "The machine".

mod activity;
mod check;
mod files;
mod network;
mod processors;
mod programs;
mod sight;
mod timers;

use model::Clock;

pub use self::check::{Check, Fitness, Grade, Group};
use self::files::Files;
pub use self::programs::Around;

/// Asks all, one after the other, so that none disturbs another.
pub fn examine(around: &Around, clock: &impl Clock) -> Vec<Check> {
    let here = Files::Here;
    let mut checks = machine(&here, clock);
    checks.extend(programs::checks(around, clock));
    checks
}

fn machine(files: &Files, clock: &impl Clock) -> Vec<Check> {
    // Looked at before we do anything ourselves; printed where it belongs.
    let now = activity::checks(files, clock);
    let timers = timers::checks(files, clock);
    [processors::checks(files), now, timers, network::checks(files), sight::checks(files, clock)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use testkit::clock::Stepped;

    /// What is tried out and not read.
    const TRIED: [&str; 4] = ["epoll_pwait2", "sleeps", "waits of a lane", "receive time stamps"];

    #[test]
    fn what_cannot_be_read_is_unknown_and_never_fine() {
        for check in machine(&files::given(&[]), &Stepped::default()) {
            assert!(check.grade == Grade::Unknown || TRIED.contains(&check.name), "{check:?}");
        }
    }

    #[test]
    fn this_machine_answers_every_question_once() {
        let checks = machine(&Files::Here, &Stepped::default());
        let names: BTreeSet<_> = checks.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), checks.len());
        for check in &checks {
            assert_eq!(check.mend.is_some(), matches!(check.grade, Grade::Warn | Grade::Bad), "{check:?}");
            assert!(!check.seen.is_empty() && !check.spoils.is_empty(), "{check:?}");
        }
    }
}
