//! Studies as text, Markdown, HTML, CSV and JSON: pure functions from a study to a `String`.
//!
//! The [`summary`] of a study has its verdict, conclusions and runs; a tree of sections (`details`)
//! has everything else. [`answer`] and [`full()`] lay them out; `formats` has a file for each format
//! and layout. `run_columns` declares each column of a run once, for all of them. Nothing here
//! measures, prints, opens a file or reads a clock, and numbers become text in [`number`] alone.

pub mod answer;
pub mod capacity;
mod class_table;
mod classes;
pub mod comparison;
mod details;
mod event;
mod formats;
mod json_object;
pub mod labels;
mod load;
mod load_answer;
mod measured;
pub mod prediction;
pub mod repro;
mod run_column;
mod run_columns;
mod run_summary;
mod run_tables;
mod server_view;
mod signals;
mod step_table;
mod steps;
pub mod summary;
mod theory;
mod time_breakdown;
pub mod tree;
mod two_studies;

use details::details;
pub use formats::csv::csv;
pub use formats::{
    ToolLayout, hey, html, json, request_logs, text, with_valid_figures, with_verdict_first, wrk,
};
pub(crate) use formats::{markdown, plot, puma};
use model::Study;
pub use model::number;
pub use signals::{SignalsHead, SignalsSummary, signals_text};
pub use text::{Width, broken, command_lines, wrap};
use tree::NamedFact;
pub use two_studies::{StudyFile, side_by_side};

/// The full report of a study: the command line that repeats it, the answer with all its doubts,
/// and the details.
pub fn full(study: &Study, saved: Option<&str>, width: Width) -> String {
    let tree = details(study);
    let table =
        if tree.table.rows.is_empty() { String::new() } else { text::table(&tree.table, 0, width) };
    let total = format!("total time {}\n", number::elapsed(tree.total_time));
    text::joined([
        text::command(&tree.command_line, width),
        answer::in_full(study, saved, width),
        text::facts(&tree.facts, width),
        table,
        text::sections(&tree.sections, width),
        text::glossary(&tree, width),
        total,
    ])
}

/// The full report with the same table as Puma's scripts print, character by character, so that it
/// can be compared with old reports.
pub fn puma(study: &Study, saved: Option<&str>, width: Width) -> String {
    let tree = details(study);
    let ending = answer::conclusion(study, saved, width);
    let sections = text::sections(&tree.sections, width);
    match study {
        Study::Bodies(bodies) => text::joined([puma::of_bodies(bodies), ending, sections]),
        Study::Sweep(sweep) => text::joined([
            text::command(&tree.command_line, width),
            text::facts(&tree.facts, width),
            puma::table(sweep),
            ending,
            sections,
            text::words(
                puma::words(sweep)
                    .into_iter()
                    .map(|(word, meaning)| NamedFact::word(word, meaning)),
                width,
            ),
            format!("{:>5} Total Time\n", number::minutes(tree.total_time)),
        ]),
        // Puma's scripts have no such table.
        Study::Load(_) | Study::Compare(_) | Study::Capacity(_) => full(study, saved, width),
    }
}
