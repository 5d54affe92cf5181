//! The accept queue: it was full, so the kernel dropped connects, and clients retried a second
//! later or more.

use model::{Limit, Nanos, Run};

use crate::connects;
use crate::words::{brief, count_of};

/// If at least this share of the connects had to be retried, the accept queue is the limit.
const RETRIED: f64 = 0.01;

/// The limit, if the accept queue is it.
pub(crate) fn of(run: &Run) -> Option<Limit> {
    let dropped = run.generator.listen_overflows?;
    let retried = run.generator.syn_retransmits?;
    let connects = run.tally.phases.connect.count;
    let is_it = connects::has_measured_stall(&run.tally)
        && dropped > 0
        && retried > 0
        && retried as f64 >= RETRIED * connects as f64;
    let longest = connects::longest_measured(&run.tally);
    is_it.then_some(Limit::AcceptQueue { dropped, retried, longest })
}

pub(super) fn evidence(dropped: u64, retried: u64, longest: Nanos) -> String {
    format!(
        "{dropped} connects dropped, {retried} retried, the longest {:.2} s",
        longest.as_secs_f64()
    )
}

pub(super) fn sentence(dropped: u64, longest: Nanos) -> String {
    format!(
        "The accept queue is the limit: it was full, the kernel dropped {}, and the longest took \
         {} to connect.",
        count_of(dropped, "connect"),
        brief(longest)
    )
}
