//! A study of bodies as text, in pieces: what is said before the table, its head, a row for each run as it is done, and
//! the rest.

use std::fmt::Write as _;

use model::{BodiesStudy, BodyRun};

use super::{facts, pivot, rows, seed};
use crate::doubts::noted;
use crate::facts::Labelled;
use crate::table::{self, Column};
use crate::{Columns, number, text, verdicts};

/// What stands before the table: first the command line that repeats it, then servers, machine and load.
pub fn opening(study: &BodiesStudy) -> String {
    format!("{}\n\n{}\n", study.command_line, text::list(&facts::environment(study)))
}

/// The table's head.
pub fn table_head(study: &BodiesStudy) -> String {
    table::head(&laid_out(study))
}

/// One run's line of the table.
pub fn row(study: &BodiesStudy, run: &BodyRun) -> String {
    table::row(&laid_out(study), &rows::cells(study, run)) + "\n"
}

fn laid_out(study: &BodiesStudy) -> Vec<Column> {
    rows::of(study).into_iter().map(|shown| shown.column).collect()
}

/// The rows in the order of the plan; nothing where they were done, and so printed, in that very order.
pub fn in_order(study: &BodiesStudy) -> String {
    let sorted = study.sorted();
    if study.runs.iter().zip(&sorted).all(|(done, sorted)| done == *sorted) {
        return String::new();
    }
    let lines: String = sorted.into_iter().map(|run| row(study, run)).collect();
    format!("\nby size\n{}{lines}", table_head(study))
}

/// What stands after the tables: summaries, verdicts, errors, caveats, the words of the head, the total time.
pub fn closing(study: &BodiesStudy, columns: Columns) -> String {
    if columns == Columns::Puma {
        return format!("{}\n{}", seed::tables(study), remarks(study));
    }
    let mut parts: Vec<String> = pivot::all(study).iter().map(laid).collect();
    parts.push(remarks(study));
    if !study.runs.is_empty() {
        parts.push(text::glossary(&rows::words(study)));
    }
    parts.push(format!("total time {}\n", number::minutes(study.total_time)));
    parts.iter().filter(|part| !part.is_empty()).fold(String::new(), |text, part| text + "\n" + part)
}

/// What is missing, verdicts, errors and caveats.
fn remarks(study: &BodiesStudy) -> String {
    let runs = facts::labelled(study);
    let parts = [
        facts::missing_runs(study).map(|missing| format!("{missing}\n")).unwrap_or_default(),
        verdicts_of(&runs),
        text::watched_of(&runs),
        text::kernel_of(&runs, &study.plan.sockets),
        text::errors(&runs),
        text::caveats(&study.caveats, &noted(&runs)),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One line a run: what limited it, and the first of the evidence. All of it is in the saved study. Each remedy once.
fn verdicts_of(runs: &[Labelled<'_>]) -> String {
    let judged: Vec<_> = runs.iter().filter_map(|run| Some((&run.label, run.run.judgement.as_ref()?))).collect();
    let width = judged.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let mut remedies: Vec<&str> = Vec::new();
    for (label, judgement) in judged {
        let evidence = verdicts::evidence(judgement);
        let told = judgement.troubles().len().max(1);
        let rest = evidence.len() - told.min(evidence.len());
        let rest = if rest > 0 { "; …" } else { "" };
        let told = evidence.into_iter().take(told).collect::<Vec<_>>().join("; ");
        _ = writeln!(text, "  {label:<width$}  {}: {told}{rest}", verdicts::name(judgement.verdict));
        for remedy in verdicts::remedies(judgement) {
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
    }
    for remedy in remedies {
        _ = writeln!(text, "    → {remedy}");
    }
    if text.is_empty() { text } else { "verdicts\n".to_owned() + &text }
}

fn laid(pivot: &pivot::Pivot) -> String {
    let lines: String = pivot.lines.iter().map(|line| table::row(&pivot.columns, line) + "\n").collect();
    format!("{}\n{}{lines}", pivot.title, table::head(&pivot.columns))
}

/// The whole report.
pub fn whole(study: &BodiesStudy, columns: Columns) -> String {
    if columns == Columns::Puma {
        return closing(study, columns);
    }
    let lines: String = study.sorted().into_iter().map(|run| row(study, run)).collect();
    opening(study) + &table_head(study) + &lines + &closing(study, columns)
}
