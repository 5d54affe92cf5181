//! Studies as text, as markdown and as the file that is kept: pure functions from a study to a `String`. What is here
//! is of `longtail sweep`; [`load`] and [`bodies`] have the reports of those commands.
//!
//! Nothing here measures, prints, opens a file or reads a clock. What a number looks like is decided in [`number`]
//! alone; what is said about a study is gathered in `facts` and its neighbours and in `columns`, so that text and markdown say the same.

mod anatomy;
pub mod bodies;
pub mod claimed;
mod columns;
mod doubts;
mod facts;
mod heard;
mod intervals;
pub mod json;
mod kernel;
pub mod load;
pub mod markdown;
pub mod number;
mod over_time;
mod puma;
mod shares;
mod shown;
mod summary;
mod table;
pub mod text;
mod theory;
mod verdicts;
mod watched;
mod width;

use std::fmt;
use std::str::FromStr;

pub use facts::hardware_in_words;
pub use width::{Width, broken};

/// The columns of the text table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// All that longtail knows.
    #[default]
    Longtail,
    /// Those of Puma's `long_tail_hey`, character by character, to stand next to an old table.
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

/// What a study is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For a terminal.
    #[default]
    Text,
    /// For a pull request.
    Markdown,
    /// The file format: nothing is lost.
    Json,
}

impl fmt::Display for Columns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Columns::Longtail => "longtail",
            Columns::Puma => "puma",
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Format::Text => "text",
            Format::Markdown => "markdown",
            Format::Json => "json",
        })
    }
}

/// Why a word names no choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{word}' is not one of {choices}")]
pub struct NoSuchChoice {
    word: String,
    choices: &'static str,
}

impl FromStr for Columns {
    type Err = NoSuchChoice;

    fn from_str(word: &str) -> Result<Columns, NoSuchChoice> {
        match word {
            "longtail" => Ok(Columns::Longtail),
            "puma" => Ok(Columns::Puma),
            _ => Err(NoSuchChoice { word: word.to_owned(), choices: "longtail, puma" }),
        }
    }
}

impl FromStr for Format {
    type Err = NoSuchChoice;

    fn from_str(word: &str) -> Result<Format, NoSuchChoice> {
        match word {
            "text" => Ok(Format::Text),
            "markdown" | "md" => Ok(Format::Markdown),
            "json" => Ok(Format::Json),
            _ => Err(NoSuchChoice { word: word.to_owned(), choices: "text, markdown, json" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_read_as_it_is_printed() {
        for columns in [Columns::Longtail, Columns::Puma] {
            assert_eq!(columns.to_string().parse(), Ok(columns));
        }
        for format in [Format::Text, Format::Markdown, Format::Json] {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let error = "html".parse::<Format>().unwrap_err();
        assert_eq!(error.to_string(), "'html' is not one of text, markdown, json");
    }
}
