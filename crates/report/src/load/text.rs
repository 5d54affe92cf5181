//! The report for a terminal, at most [`WIDTH`] columns wide; only a word that has no space to break at is wider.

use std::fmt::Write as _;

use model::LoadStudy;

use super::part::{self, Body, Part};
use super::words;
use crate::table::Fitted;
use crate::width::{self, Width, broken, wrap};

/// Columns of a line, but for the first: a command line is pasted and broken only where fewer columns are asked for.
pub const WIDTH: usize = 110;

/// The whole report. It begins with the command line that repeats it.
pub fn whole(study: &LoadStudy, width: Width) -> String {
    let mut text = opening(&study.command_line, &words::opening(study), width);
    for part in part::all(study) {
        text.push('\n');
        lay_out(&mut text, &part, width);
    }
    _ = writeln!(text, "\n{}", words::total_time(study));
    text
}

/// The command line, and what stands before the first part.
pub(crate) fn opening(command_line: &str, named: &[(&str, Vec<String>)], width: Width) -> String {
    width::command(command_line, width) + "\n" + &crate::text::list(named, width.at_most(WIDTH))
}

pub(crate) fn lay_out(text: &mut String, part: &Part, width: Width) {
    let width = width.at_most(WIDTH);
    text.push_str(&broken(&part.title, width));
    for body in &part.bodies {
        match body {
            Body::Table(head, rows) => {
                let lines: Vec<_> = std::iter::once(head).chain(rows.iter().map(|row| &row.cells)).cloned().collect();
                let notes: Vec<_> =
                    std::iter::once(String::new()).chain(rows.iter().map(|row| row.note.clone())).collect();
                text.push_str(&Fitted { indent: 2, notes: &notes, ..Fitted::new(&lines) }.text(width));
            }
            Body::Lines(lines) => lines.iter().for_each(|line| wrap(text, width, "  ", line)),
            Body::Drawn(drawn) => drawn.lines().for_each(|line| _ = writeln!(text, "  {line}")),
        }
    }
}
