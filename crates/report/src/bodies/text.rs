//! A study of bodies as text, in pieces: what is said before the table, its head, a row for each run as it is done, and
//! the rest.

use model::{BodiesStudy, BodyRun};

use super::{facts, pivot, rows, seed};
use crate::doubts::noted;
use crate::facts::Labelled;
use crate::table::{self, Column};
use crate::width::{self, Width, columns_of, wrap};
use crate::{Columns, Layout, number, text, verdicts};

/// What stands before the table: first the command line that repeats it, then servers, machine and load.
pub fn opening(study: &BodiesStudy, width: Width) -> String {
    let environment = text::list(&facts::environment(study), width);
    format!("{}\n{environment}\n", width::command(&study.command_line, width))
}

/// The table's head.
pub fn table_head(study: &BodiesStudy, width: Width) -> String {
    table::head(&laid_out(rows::fitting(study, width).0))
}

/// One run's line of the table.
pub fn row(study: &BodiesStudy, run: &BodyRun, width: Width) -> String {
    let (columns, _) = rows::fitting(study, width);
    let cells = rows::cells(&columns, run);
    table::row(&laid_out(columns), &cells) + "\n"
}

fn laid_out(columns: Vec<rows::BodyColumn>) -> Vec<Column> {
    columns.into_iter().map(|shown| shown.column).collect()
}

/// The rows in the order of the plan; nothing where they were done, and so printed, in that very order.
pub fn in_order(study: &BodiesStudy, width: Width) -> String {
    let sorted = study.sorted();
    if study.runs.iter().zip(&sorted).all(|(done, sorted)| done == *sorted) {
        return String::new();
    }
    let lines: String = sorted.into_iter().map(|run| row(study, run, width)).collect();
    format!("\nby size\n{}{lines}", table_head(study, width))
}

/// What stands after the tables: summaries, verdicts, errors, warnings, the words of the head, the total time.
pub fn closing(study: &BodiesStudy, layout: Layout) -> String {
    let width = layout.width;
    if layout.columns == Columns::Puma {
        return format!("{}\n{}", seed::tables(study), remarks(study, width));
    }
    let (_, left_out) = rows::fitting(study, width);
    let names: Vec<&str> = left_out.iter().map(|shown| shown.markdown).collect();
    let mut parts = vec![text::said_of_left_out(&names, width)];
    parts.extend(pivot::all(study).iter().map(|pivot| laid(pivot, width)));
    parts.push(remarks(study, width));
    if !study.runs.is_empty() {
        parts.push(text::glossary(&rows::words(study, &left_out), width));
    }
    parts.push(format!("total time {}\n", number::minutes(study.total_time)));
    parts.iter().filter(|part| !part.is_empty()).fold(String::new(), |text, part| text + "\n" + part)
}

/// What is missing, verdicts, errors and warnings, and the server meanwhile.
fn remarks(study: &BodiesStudy, width: Width) -> String {
    let runs = facts::labelled(study);
    let parts = [
        facts::missing_runs(study).map(|missing| format!("{missing}\n")).unwrap_or_default(),
        verdicts_of(&runs, width),
        text::errors(&runs, width),
        text::warnings(&study.warnings, &noted(&runs), width),
        text::watched_of(&runs, width),
        text::kernel_of(&runs, &study.plan.sockets, width),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// One line a run: what limited it, and the first of the evidence. All of it is in the saved study. Each remedy once.
fn verdicts_of(runs: &[Labelled<'_>], width: Width) -> String {
    let judged: Vec<_> = runs.iter().filter_map(|run| Some((&run.label, run.run.judgement.as_ref()?))).collect();
    let labels = judged.iter().map(|(label, _)| columns_of(label)).max().unwrap_or(0);
    let mut text = String::new();
    let mut remedies: Vec<&str> = Vec::new();
    for (label, judgement) in judged {
        let evidence = verdicts::evidence(judgement);
        let told = (judgement.troubles().len() + usize::from(verdicts::limit(judgement).is_some())).max(1);
        let rest = evidence.len() - told.min(evidence.len());
        let rest = if rest > 0 { "; …" } else { "" };
        let told = evidence.into_iter().take(told).collect::<Vec<_>>().join("; ");
        let line = format!("{}: {told}{rest}", verdicts::name(judgement.verdict));
        wrap(&mut text, width, &format!("  {label:<labels$}  "), &line);
        for remedy in verdicts::hints(judgement) {
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
    }
    for remedy in remedies {
        wrap(&mut text, width, "", &format!("    → {remedy}"));
    }
    if text.is_empty() { text } else { "verdicts\n".to_owned() + &text }
}

/// A summary, in parts of whole bands one below the other where it is too wide.
fn laid(pivot: &pivot::Pivot, width: Width) -> String {
    let parts = table::parts(&pivot.columns, width);
    let part = |part: &Vec<usize>| {
        let columns: Vec<Column> = part.iter().map(|at| pivot.columns[*at].clone()).collect();
        let cells = |line: &Vec<String>| part.iter().map(|at| line[*at].clone()).collect::<Vec<_>>();
        let lines: String = pivot.lines.iter().map(|line| table::row(&columns, &cells(line)) + "\n").collect();
        table::head(&columns) + &lines
    };
    format!("{}\n{}", pivot.title, parts.iter().map(part).collect::<String>())
}

/// The whole report.
pub fn whole(study: &BodiesStudy, layout: Layout) -> String {
    if layout.columns == Columns::Puma {
        return closing(study, layout);
    }
    let width = layout.width;
    let lines: String = study.sorted().into_iter().map(|run| row(study, run, width)).collect();
    opening(study, width) + &table_head(study, width) + &lines + &closing(study, layout)
}
