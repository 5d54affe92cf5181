//! Studies as text, as Markdown, as HTML, as CSV and as the file that is kept: pure functions from
//! a study to a `String`.
//!
//! What a study comes to is gathered once, as a [`summary`]; everything beside it once, as a tree
//! of sections (`details`). [`answer`], [`full()`], [`html`] and [`csv()`] lay them out. Layouts of
//! other tools (`puma`, `hey`, `wrk`, `logs`) are of their own. Nothing here measures, prints,
//! opens a file or reads a clock, and what a number looks like is decided in [`number`] alone.

pub mod answer;
pub mod comparison;
mod details;
pub mod hey;
pub mod html;
pub mod json;
pub mod labels;
mod load;
mod load_answer;
pub mod logs;
mod markdown;
mod measured;

pub use model::number;
mod plot;
pub mod prediction;
mod puma;
mod run_column;
mod run_columns;
mod run_summary;
mod run_tables;

mod server_view;
pub mod summary;
pub mod text;
mod theory;
mod time_breakdown;
pub mod tree;

mod two_studies;
pub mod wrk;

use details::details;
use model::Study;
pub use run_tables::csv;
pub use text::{Width, broken, wrap};
use tree::NamedFact;
pub use two_studies::{StudyFile, side_by_side};

/// Everything that is known of a study: the command line that repeats it, the answer with all its
/// doubts, and the details.
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

/// The same with the table of Puma's scripts in place of ours, character by character, to stand
/// next to an old one.
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
        // Their scripts had no such table.
        Study::Load(_) | Study::Compare(_) => full(study, saved, width),
    }
}
