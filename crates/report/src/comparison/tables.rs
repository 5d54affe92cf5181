//! The table of a comparison: a row a metric where two arms are compared, a row an arm where there are more.

use model::comparison::{ComparedMetric, ComparisonDoubt, ComparisonQuestion, Difference, Metric};

use super::figures::SummaryComparison;
use super::words;
use crate::number;
use crate::tree::{ColumnBand, DataTable, TableColumn, TableRow};

/// The table.
pub(crate) fn table(summary: &SummaryComparison) -> DataTable {
    if summary.question == ComparisonQuestion::Change && summary.compared().count() == 2 {
        by_metric(summary)
    } else {
        by_arm(summary)
    }
}

/// Said where a reader who divides the medians comes to another change.
pub(crate) fn legend(summary: &SummaryComparison) -> Option<&'static str> {
    let is_other = |row: &ComparedMetric| {
        row.differences.iter().any(|it| match (row.median(&it.base), row.median(&it.arm), it.estimate) {
            (Some(base), Some(arm), Some(estimate)) if row.unit != "%" => {
                (arm / base - 1.0 - estimate).abs() > summary.margin
            }
            _ => false,
        })
    };
    let differs = summary.metrics.iter().any(is_other);
    differs.then_some("change is the typical ratio of two runs of one block, not the ratio of the medians of all")
}

/// A metric with its unit: `p99, ms`; one that decides has a star.
fn titled(row: &ComparedMetric) -> String {
    let star = if row.decides { " *" } else { "" };
    format!("{}, {}{star}", words::name(row.metric), row.unit)
}

fn figure(row: &ComparedMetric, letter: &str) -> String {
    number::or_none(row.median(letter), |value| number::or_zero(value, number::significant))
}

/// The change and its interval.
fn change(difference: &Difference) -> [String; 2] {
    [words::estimate_of(difference), words::interval_of(difference)].map(|cell| number::or_none(cell, |text| text))
}

fn by_metric(summary: &SummaryComparison) -> DataTable {
    let [base, arm] = [0, 1].map(|at| summary.arms[at].letter.as_str());
    let has_control = summary.metrics.iter().any(|row| row.control.is_some());
    let against = ColumnBand::new("B against A", "B against A");
    let control = ColumnBand::new("A against A", "A against A");
    let interval = || TableColumn::new("interval, %");
    let mut columns: Vec<TableColumn> = ["", base, arm].map(TableColumn::new).into();
    columns.extend([TableColumn::new("change"), interval()].map(|column| column.under(&against)));
    columns.extend(has_control.then(|| interval().under(&control)));
    let rows = summary.metrics.iter().map(|row| {
        let mut cells = vec![titled(row), figure(row, base), figure(row, arm)];
        let Some(difference) = row.difference(base, arm) else { return TableRow::new(cells) };
        cells.extend(change(difference));
        cells.extend(row.control.as_ref().map(|control| change(control)[1].clone()));
        TableRow::new(cells).noted(match difference.doubt {
            Some(ComparisonDoubt::FewBlocks { least }) => format!("needs {least} blocks"),
            _ => words::verdict(difference.verdict).to_owned(),
        })
    });
    DataTable::of_columns(columns, rows)
}

/// The columns of a row an arm: what decides first, then what a person asks for.
fn columns_of_arms(summary: &SummaryComparison) -> Vec<&ComparedMetric> {
    const ASKED: [Metric; 6] =
        [Metric::Throughput, Metric::Failed, Metric::Mean, Metric::P50, Metric::P99, Metric::Cpu];
    let is_shown = |row: &&ComparedMetric| row.decides || ASKED.contains(&row.metric);
    summary.metrics.iter().filter(is_shown).collect()
}

fn by_arm(summary: &SummaryComparison) -> DataTable {
    let rows = columns_of_arms(summary);
    let times = ColumnBand::new("response time, ms", "ms");
    let column = |row: &&ComparedMetric| match row.metric {
        Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 => {
            let star = if row.decides { " *" } else { "" };
            TableColumn::new(format!("{}{star}", words::name(row.metric))).under(&times)
        }
        Metric::Cpu => TableColumn::new(if row.decides { "CPU ms *" } else { "CPU ms" }),
        _ => TableColumn::new(titled(row)),
    };
    let deciding = summary.deciding().next();
    let base = summary.ranking.as_ref().map_or(summary.arms[0].letter.as_str(), |ranking| ranking.best.as_str());
    let against = deciding.map_or_else(String::new, |row| format!("{} against {base}", words::name(row.metric)));
    let against = ColumnBand::new(against, "");
    let columns = ["", ""].map(TableColumn::new).into_iter().chain(rows.iter().map(column));
    let columns = columns.chain(["change", "interval, %"].map(|name| TableColumn::new(name).under(&against)));
    let lines = summary.compared().map(|arm| {
        let figures = rows.iter().map(|row| figure(row, &arm.letter));
        let cells = [arm.letter.clone(), shortened(&arm.name)].into_iter().chain(figures);
        let is_best = summary.ranking.as_ref().is_some_and(|it| it.is_decided() && it.best == arm.letter);
        match deciding.and_then(|row| row.seen_from(base, &arm.letter)) {
            Some(difference) => {
                TableRow::new(cells.chain(change(&difference))).noted(words::verdict(difference.verdict))
            }
            None if is_best => TableRow::new(cells.chain(["", ""].map(str::to_owned))).noted("best"),
            None => TableRow::new(cells),
        }
    });
    DataTable { lead: 2, ..DataTable::of_columns(columns, lines) }
}

/// A name that leaves room for figures.
fn shortened(name: &str) -> String {
    const MOST: usize = 20;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}
