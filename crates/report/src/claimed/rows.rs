//! The table of a sweep that another generator drove, and what stands below it.

use model::run::PERCENTILES;
use model::{ClaimedRow, SweepStudy};

use super::{count, findings, is_doubtful, machine, made_by, word};
use crate::columns::widest;
use crate::load::text::WIDTH;
use crate::number::{self, or_none};
use crate::shown::{self, Shown};
use crate::table::{self, Band, Column};
use crate::width::{Width, wrap};
use crate::{Columns, Layout, puma};

/// One column of this table.
pub(crate) type ClaimedColumn = Shown<ClaimedRow>;

const TIMES: Option<Band> = Some(Band { title: "times by the other generator, ms", short: "its ms" });
const IDEAL: Option<Band> = Some(Band::of("x ideal"));

/// The `I`-th percentile of the table, where it was printed.
fn percentile<const I: usize>(row: &ClaimedRow) -> String {
    or_none(row.run.claim.percentile(PERCENTILES[I]), number::milliseconds)
}

/// The columns, in order. The first is the mark of a doubt.
pub(crate) fn columns(study: &SweepStudy) -> Vec<ClaimedColumn> {
    let mut columns = vec![ClaimedColumn::kept("", 1, |row| if is_doubtful(&row.run) { "!" } else { "" }.to_owned())];
    if study.plan.repeat > 1 {
        columns.push(ClaimedColumn::kept("run", 3, |row| number::count(row.repeat)));
    }
    columns.extend([
        ClaimedColumn::kept("mult", 5, |row| number::multiple(row.multiple)),
        ClaimedColumn::kept("conns", 5, |row| number::count(row.run.connections)),
        ClaimedColumn::kept("req/s", 6, |row| or_none(row.run.claim.rate_per_s, number::rate)),
        ClaimedColumn::ranked(1, ("% max", 5), None, "% max", |row| or_none(row.of_maximum(), number::percent)),
        ClaimedColumn::ranked(9, ("mean", 5), TIMES, "mean, ms", |row| {
            or_none(row.run.claim.mean, number::milliseconds)
        }),
        ClaimedColumn::ranked(12, ("p10", 5), TIMES, "p10, ms", percentile::<0>),
        ClaimedColumn::ranked(13, ("p25", 5), TIMES, "p25", percentile::<1>),
        ClaimedColumn::ranked(2, ("p50", 5), TIMES, "p50", percentile::<2>),
        ClaimedColumn::ranked(11, ("p75", 5), TIMES, "p75", percentile::<3>),
        ClaimedColumn::ranked(8, ("p90", 5), TIMES, "p90", percentile::<4>),
        ClaimedColumn::ranked(4, ("p95", 5), TIMES, "p95", percentile::<5>),
        ClaimedColumn::ranked(0, ("p99", 5), TIMES, "p99", percentile::<6>),
        ClaimedColumn::ranked(10, ("p99.9", 5), TIMES, "p99.9", percentile::<7>),
        ClaimedColumn::ranked(3, ("max", 5), TIMES, "max, ms", |row| or_none(row.run.claim.max, number::milliseconds)),
        ClaimedColumn::ranked(5, ("tail", 5), None, "tail", |row| or_none(row.long_tail(), number::times)),
        ClaimedColumn::ranked(7, ("p50", 5), IDEAL, "p50 x ideal", |row| or_none(row.of_ideal(0.5), number::times)),
        ClaimedColumn::ranked(7, ("p99", 5), IDEAL, "p99 x ideal", |row| or_none(row.of_ideal(0.99), number::times)),
        ClaimedColumn::ranked(14, ("worker ±%", 9), None, "worker ±%", |row| {
            or_none(widest(&row.worker_deviations()), number::percent_tenths)
        }),
        ClaimedColumn::kept("claim", 10, |row| word(row.run.audit).to_owned()),
        ClaimedColumn::ranked(6, ("requests", 8), None, "requests", |row| count(row.run.claim.requests)),
        ClaimedColumn::kept("errors", 7, |row| count(row.run.claim.failed)),
        ClaimedColumn::kept("by", 13, |row| row.run.name()),
    ]);
    columns
}

/// The columns that there is room for, and those that are left out.
pub(crate) fn fitting(study: &SweepStudy, width: Width) -> (Vec<ClaimedColumn>, Vec<ClaimedColumn>) {
    shown::fitting(columns(study), width)
}

/// What the words of the head mean; `left_out` of them are not explained.
pub(crate) fn words(study: &SweepStudy, left_out: &[ClaimedColumn]) -> Vec<(&'static str, &'static str)> {
    let has = |name: &str| left_out.iter().all(|shown| shown.markdown != name);
    let run = (study.plan.repeat > 1).then_some(("run", "which pass over the multiples, each on a fresh server"));
    let rate = if has("% max") {
        "requests per second, as it prints them; % max: in % of slots / service time"
    } else {
        "requests per second, as it prints them"
    };
    let times = match (has("mean, ms"), has("p50")) {
        (true, _) => "mean to max",
        (false, true) => "p50 to max",
        (false, false) => "p99",
    };
    let requests = if has("requests") {
        ("requests", "those that it says ended; errors: bad statuses, errors and timeouts, as it counts them")
    } else {
        ("errors", "bad statuses, errors and timeouts, as it counts them")
    };
    let words = [
        (
            true,
            ("by", "who made the load and says all that stands in this row: nothing of it was measured by longtail"),
        ),
        (true, ("mult", "connections / slots; conns: connections in total")),
        (true, ("req/s", rate)),
        (true, (times, "its times, as it prints them; - where it does not print that percentile")),
        (has("tail"), ("tail", "max / p10")),
        (has("p99 x ideal"), ("x ideal", "its time / ideal; ideal: all wait in one line, service time x max(1, mult)")),
        (
            has("worker ±%"),
            ("worker ±%", "the worker furthest from an even share, in % of that share, by the server's own statistics"),
        ),
        (true, ("claim", "what longtail audit says of its figures: possible, doubtful, IMPOSSIBLE: see the claims")),
        (true, requests),
        (true, ("!", "a number of this row may be spoiled: see the claims and warnings")),
    ];
    words.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, word)| word).chain(run).collect()
}

pub(crate) fn cells(columns: &[ClaimedColumn], row: &ClaimedRow) -> Vec<String> {
    shown::cells(columns, row, false)
}

/// One run's line of the table.
pub fn row(study: &SweepStudy, row: &ClaimedRow, layout: Layout) -> String {
    if layout.columns == Columns::Puma {
        return puma::claimed_row(study, row) + "\n";
    }
    let (columns, _) = fitting(study, layout.width);
    let cells = cells(&columns, row);
    let laid_out: Vec<Column> = columns.into_iter().map(|shown| shown.column).collect();
    table::row(&laid_out, &cells) + "\n"
}

/// What a row is called elsewhere.
pub(crate) fn label(study: &SweepStudy, row: &ClaimedRow) -> String {
    let multiple = number::multiple(row.multiple);
    let pass = if study.plan.repeat > 1 { format!(" run {}", number::count(row.repeat)) } else { String::new() };
    format!("{multiple}x{pass}")
}

/// Of each row: the audit's word, both accounts, and what there is to say of the claim; each with the lines that belong
/// to it.
pub(crate) fn claims(study: &SweepStudy) -> Vec<(String, Vec<String>)> {
    let of_row = |row: &ClaimedRow| {
        let run = &row.run;
        let warm_up = run.warm_up_requests.map(|n| format!(" and {} in its warm-up", number::count(n)));
        let told = or_none(run.claim.requests, |n| number::count_of(n, "request"));
        let server = match row.server_requests {
            Some(n) => format!("the server counted {}", number::count(n)),
            None => "the server's count is not known".to_owned(),
        };
        let first = format!(
            "{} {}: {} tells of {told}{}, {server}",
            label(study, row),
            word(run.audit),
            run.name(),
            warm_up.unwrap_or_default()
        );
        let mut lines = vec![made_by(run)];
        lines.extend(findings(run));
        lines.extend(machine(run).into_iter().map(|(seen, remedy)| format!("{seen} → {remedy}")));
        (first, lines)
    };
    study.claimed_runs.iter().map(of_row).collect()
}

/// [`claims`] as text.
pub(crate) fn claims_text(study: &SweepStudy, width: Width) -> String {
    let mut text = String::new();
    for (first, lines) in claims(study) {
        wrap(&mut text, width, "", &format!("  {first}"));
        for line in lines {
            wrap(&mut text, width.at_most(WIDTH), "        ", &line);
        }
    }
    if text.is_empty() { text } else { "claims\n".to_owned() + &text }
}
