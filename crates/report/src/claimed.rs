//! Runs of another generator (`--generator wrk`): what is said of them in a sweep beside its table, and in the report of a load.
//!
//! Each figure is marked as the generator's own: what it printed, and a dash for what it did not.

use model::{Believable, GeneratorClaim, LoadStudy, Nanos};

use crate::facts::beside_the_server;
use crate::named_runs::NamedRun;
use crate::number::{self, NONE, or_none};
use crate::tree::{DataTable, ListItem, NamedFact, ReportSection, TableCell, TableRow};

/// The audit's word, as it stands in a column and in a title.
pub(crate) fn word(audit: Believable) -> &'static str {
    match audit {
        Believable::Possible => "possible",
        Believable::Doubtful => "doubtful",
        Believable::Impossible => "IMPOSSIBLE",
        Believable::Unchecked => "unchecked",
    }
}

/// How much of the machine it took in so long, and the command that made the run.
fn made_by(claim: &GeneratorClaim, elapsed: Nanos) -> String {
    let used = claim.cpu.filter(|_| elapsed > Nanos::ZERO).map(|cpu| cpu.as_secs_f64() / elapsed.as_secs_f64());
    let used = used.map(|used| format!(", {} processors used", number::fixed(used, 2)));
    format!("by {}{}: {}", claim.name(), used.unwrap_or_default(), claim.command_line)
}

/// Of each run of a sweep: the audit's word, both accounts, and the command.
pub(crate) fn accounts(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let of_run = |NamedRun { name, run }: &NamedRun<'_>| {
        let claim = run.claim.as_ref()?;
        let warm_up = claim.warm_up_requests.map(|n| format!(" and {} in its warm-up", number::count(n)));
        let reported = or_none(claim.requests, |n| number::count_of(n, "request"));
        let server = match claim.server_requests {
            Some(n) => format!("the server counted {}", number::count(n)),
            None => "the server's count is not known".to_owned(),
        };
        let (word, by) = (word(claim.audit), claim.name());
        let first = format!("{word}: {by} reports {reported}{}, {server}", warm_up.unwrap_or_default());
        let lines = vec![first, made_by(claim, run.elapsed)];
        Some(ListItem { label: name.clone(), lines, hints: Vec::new() })
    };
    ReportSection::new("claims").list(runs.iter().filter_map(of_run)).filled()
}

/// Who made a load, and where.
pub(crate) fn maker(study: &LoadStudy) -> Option<NamedFact> {
    let claim = study.run.claim.as_ref()?;
    let placed = study.placement.as_ref().map(|placement| beside_the_server(claim.name(), Some(placement)));
    Some(NamedFact::key("made", std::iter::once(made_by(claim, study.run.elapsed)).chain(placed)))
}

/// The figures of a load.
pub(crate) fn figures(claim: &GeneratorClaim) -> Vec<ReportSection> {
    let name = claim.name();
    let count = |n: Option<u64>| n.map_or_else(|| TableCell::from(NONE), TableCell::count);
    let row = |name: &str, cell: TableCell| TableRow::new([name.into(), cell]);
    let warm_up = claim.warm_up_requests.map(|n| row("in its warm-up", TableCell::count(n)).noted("thrown away"));
    let rates = [
        row("requests", count(claim.requests)),
        row("failed", count(claim.failed)).noted("bad statuses, errors and timeouts, as it counts them"),
        row("per second", TableCell::number(claim.rate_per_s, number::rate)),
        row("duration", or_none(claim.duration, number::length).into()),
    ];
    // Only what it printed.
    let ends = |name: &str, time: Option<Nanos>| Some((name.to_owned(), time?));
    let moments = [ends("mean", claim.mean), ends("std deviation", claim.stdev), ends("shortest", claim.min)];
    let percentiles = claim.percentiles.iter().map(|one| Some((number::percentile(one.quantile), one.time)));
    let times = moments.into_iter().chain(percentiles).chain([ends("longest", claim.max)]).flatten();
    let times = times.map(|(name, time)| row(&name, TableCell::time(Some(time))));
    let statuses = claim.statuses.iter().map(|(status, n)| row(status, TableCell::count(*n)));
    let is = match claim.audit {
        Believable::Possible => ", its figures, as far as they can be held against each other, agree",
        Believable::Unchecked => ", its figures cannot be held against each other",
        Believable::Doubtful | Believable::Impossible => ", see the warnings",
    };
    let all = [
        Some(ReportSection::new(format!("claim of {name}: {}{is}", word(claim.audit)))),
        Some(
            ReportSection::new(format!("rates, by {name}"))
                .table(DataTable::new(["", ""], rates.into_iter().chain(warm_up))),
        ),
        ReportSection::new(format!("times, by {name}")).table(DataTable::new(["", "ms"], times)).filled(),
        ReportSection::new(format!("status codes, by {name}"))
            .table(DataTable::new(["", "answers"], statuses))
            .filled(),
    ];
    all.into_iter().flatten().collect()
}

/// All that it printed.
pub(crate) fn output(claim: &GeneratorClaim) -> ReportSection {
    ReportSection::detail(format!("what {} printed", claim.name())).verbatim(&claim.output)
}
