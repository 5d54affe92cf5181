//! The table of a sweep that another generator drove, and what stands below it.

use model::run::PERCENTILES;
use model::{ClaimedRow, SweepStudy};

use super::{findings, is_doubtful, machine, made_by, word};
use crate::number::{self, or_none};
use crate::run_columns::{RunColumn, mark, widest};
use crate::tree::{ColumnBand, ListItem, ReportSection, TableCell};

/// What words of the table mean that are no column's name.
pub(crate) const MARKS: [(&str, &str); 2] = [
    ("-", "not printed by it, or not known"),
    ("!", "a number of this row may be spoiled: see the claims and warnings"),
];

/// The columns, in order.
pub(crate) fn columns(study: &SweepStudy) -> Vec<RunColumn<ClaimedRow>> {
    type C = RunColumn<ClaimedRow>;
    let times = ColumnBand {
        meaning: "as it prints them; - where it does not print that percentile",
        ..ColumnBand::new("times by the other generator, ms", "its ms")
    };
    let ideal = ColumnBand {
        meaning: "its time / ideal; ideal: all wait in one line, service time x max(1, mult)",
        ..ColumnBand::new("x ideal", "x ideal")
    };
    let count = |n: Option<u64>| n.map_or_else(|| TableCell::from(number::NONE), TableCell::count);
    let mut columns = vec![
        mark(|row: &ClaimedRow| is_doubtful(&row.run)),
        C::kept("run", 3, |row| TableCell::count(row.repeat))
            .meaning("which pass over the multiples, each on a fresh server")
            .constant(study.plan.repeat < 2),
        C::kept("mult", 5, |row| TableCell::number(Some(row.multiple), number::multiple))
            .meaning("connections / slots"),
        C::kept("conns", 5, |row| TableCell::count(row.run.connections)).meaning("connections in total"),
        C::kept("req/s", 6, |row| TableCell::number(row.run.claim.rate_per_s, number::rate))
            .meaning("requests per second, as it prints them"),
        C::ranked(1, "% max", 5, |row| TableCell::number(row.of_maximum(), number::percent))
            .meaning("req/s in % of slots / service time"),
        C::ranked(9, "mean", 5, |row| TableCell::time(row.run.claim.mean)).under(&times),
    ];
    for (quantile, rank) in PERCENTILES.into_iter().zip([12, 13, 2, 11, 8, 4, 0, 10]) {
        let cell = move |row: &ClaimedRow| TableCell::time(row.run.claim.percentile(quantile));
        columns.push(C::ranked(rank, &number::percentile(quantile), 5, cell).under(&times));
    }
    columns.extend([
        C::ranked(3, "max", 5, |row| TableCell::time(row.run.claim.max)).under(&times),
        C::ranked(5, "tail", 5, |row| TableCell::number(row.long_tail(), number::times)).meaning("max / p10"),
        C::ranked(7, "p50", 5, |row| TableCell::number(row.of_ideal(0.5), number::times)).under(&ideal),
        C::ranked(7, "p99", 5, |row| TableCell::number(row.of_ideal(0.99), number::times)).under(&ideal),
        C::ranked(14, "worker ±%", 9, |row| {
            TableCell::number(widest(&row.worker_deviations()), number::percent_tenths)
        })
        .meaning("the worker furthest from an even share, in % of that share, by the server's own statistics"),
        C::kept("claim", 10, |row| word(row.run.audit).into())
            .meaning("what longtail audit says of its figures: possible, doubtful, IMPOSSIBLE: see the claims"),
        C::ranked(6, "requests", 8, move |row| count(row.run.claim.requests)).meaning("those that it says ended"),
        C::kept("errors", 7, move |row| count(row.run.claim.failed))
            .meaning("bad statuses, errors and timeouts, as it counts them"),
        C::kept("by", 13, |row| row.run.name().into())
            .meaning("who made the load and says all that stands in this row: nothing of it was measured by longtail"),
    ]);
    columns
}

/// What a row is called elsewhere.
pub(crate) fn label(study: &SweepStudy, row: &ClaimedRow) -> String {
    let multiple = number::multiple(row.multiple);
    let pass = if study.plan.repeat > 1 { format!(" run {}", number::count(row.repeat)) } else { String::new() };
    format!("{multiple}x{pass}")
}

/// Of each row: the audit's word, both accounts, and what there is to say of the claim.
pub(crate) fn claims(study: &SweepStudy) -> Option<ReportSection> {
    let of_row = |row: &ClaimedRow| {
        let run = &row.run;
        let warm_up = run.warm_up_requests.map(|n| format!(" and {} in its warm-up", number::count(n)));
        let told = or_none(run.claim.requests, |n| number::count_of(n, "request"));
        let server = match row.server_requests {
            Some(n) => format!("the server counted {}", number::count(n)),
            None => "the server's count is not known".to_owned(),
        };
        let first =
            format!("{}: {} tells of {told}{}, {server}", word(run.audit), run.name(), warm_up.unwrap_or_default());
        let mut lines = vec![first, made_by(run)];
        lines.extend(findings(run));
        lines.extend(machine(run).into_iter().map(|(seen, hint)| format!("{seen} → {hint}")));
        ListItem { label: label(study, row), lines, hints: Vec::new() }
    };
    ReportSection::new("claims").list(study.claimed_runs.iter().map(of_row)).filled()
}
