//! Runs of another generator (`--generator wrk`): who made them, what the audit says of them, and what it printed.

use model::{Believable, GeneratorClaim, Nanos};

use crate::named_runs::NamedRun;
use crate::number::{self, count_of, or_none};
use crate::tree::{ListItem, ReportSection};

/// The audit's word, as it stands in a column and in a title.
pub(crate) fn audit_word(audit: Believable) -> &'static str {
    match audit {
        Believable::Possible => "possible",
        Believable::Doubtful => "doubtful",
        Believable::Impossible => "IMPOSSIBLE",
        Believable::Unchecked => "unchecked",
    }
}

/// How much of the machine it took in so long, and the command that made the run.
pub(crate) fn made_by(claim: &GeneratorClaim, elapsed: Nanos) -> String {
    let used = claim.cpu.filter(|_| elapsed > Nanos::ZERO).map(|cpu| cpu.as_secs_f64() / elapsed.as_secs_f64());
    let used = used.map(|used| format!(", {} processors used", number::fixed(used, 2)));
    format!("by {}{}: {}", claim.name(), used.unwrap_or_default(), claim.command_line)
}

/// Of each run of a sweep: the audit's word, both accounts, and the command.
pub(crate) fn accounts(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let of_run = |NamedRun { name, run }: &NamedRun<'_>| {
        let claim = run.claim.as_ref()?;
        let warm_up = claim.warm_up_requests.map(|n| format!(" and {n} in its warm-up"));
        let reported = or_none(claim.requests, |n| count_of(n, "request"));
        let server = match claim.server_requests {
            Some(n) => format!("the server counted {n}"),
            None => "the server's count is not known".to_owned(),
        };
        let (word, by) = (audit_word(claim.audit), claim.name());
        let first = format!("{word}: {by} reports {reported}{}, {server}", warm_up.unwrap_or_default());
        let lines = vec![first, made_by(claim, run.elapsed)];
        Some(ListItem { label: name.clone(), lines, hints: Vec::new() })
    };
    ReportSection::new("claims").list(runs.iter().filter_map(of_run)).filled()
}

/// All that it printed of a load.
pub(crate) fn of_load(claim: &GeneratorClaim) -> ReportSection {
    let title = format!("{}: what {} printed", audit_word(claim.audit), claim.name());
    ReportSection::new(title).verbatim(&claim.output)
}
