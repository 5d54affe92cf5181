//! Studies as text, as Markdown, as CSV and as the file that is kept: pure functions from a study to a `String`.
//!
//! What is said of a study is gathered once, as a [`tree`] of sections; [`text`], [`markdown`] and [`csv`] lay it out. Layouts of other
//! tools (`puma`, `hey`, `wrk`, `hdr_log`) are of their own. Nothing here measures, prints, opens a file or reads a clock, and what a
//! number looks like is decided in [`number`] alone.

pub mod answer;
pub mod bodies;
mod claimed;
pub mod comparison;
pub mod csv;
mod diagnostics;
mod expectations;
mod facts;
mod far;
pub mod hdr_log;
pub mod hey;
pub mod html;
mod in_words;
mod intervals;
pub mod json;
mod kernel_view;
pub mod load;
mod load_answer;
pub mod load_facts;
mod load_picture;
mod load_times;
pub mod markdown;
mod markup;
mod measured;
mod named_runs;
pub mod next_steps;
pub mod number;
mod pivot;
mod plot;
mod puma;
mod puma_bodies;
mod repeats;
pub mod request_log;
mod run_columns;
mod sentences;
mod server_view;
mod sparkline;
pub mod summary;
pub mod sweep;
pub mod text;
mod theory;
pub mod tree;
pub mod trust;
mod verdicts;
mod width;
mod workers;
pub mod wrk;

pub use facts::hardware_in_words;
use model::Study;
use tree::ReportTree;
pub use width::{Width, broken, wrap};

/// What is said of a study.
pub fn report(study: &Study) -> ReportTree {
    match study {
        Study::Sweep(study) => sweep::report(study, Columns::Longtail),
        Study::Bodies(study) => bodies::report(study),
        Study::Compare(study) => comparison::report(study),
        Study::Load(study) => load::report(study),
    }
}

/// The columns of the text table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// All that longtail knows.
    #[default]
    Longtail,
    /// Those of Puma's scripts, character by character, to stand next to an old table.
    Puma,
}

/// How a study is laid out as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Whose columns.
    pub columns: Columns,
    /// What every line keeps to; the columns of [`Columns::Puma`] do not.
    pub width: Width,
}

impl From<Columns> for Layout {
    /// As wide as it takes.
    fn from(columns: Columns) -> Layout {
        Layout { columns, width: Width::ANY }
    }
}
