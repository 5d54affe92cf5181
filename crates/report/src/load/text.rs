//! The report for a terminal, at most [`WIDTH`] columns wide; only a word that has no space to break at is wider.

use std::fmt::Write as _;

use model::LoadStudy;

use super::part::{self, Body, Part, Row};
use super::words;

/// Columns of a line, but for the first: a command line is pasted and not wrapped.
pub const WIDTH: usize = 110;

/// The whole report. Its first line is the command line that repeats it.
pub fn whole(study: &LoadStudy) -> String {
    let mut text = format!("{}\n\n", study.command_line);
    for (what, lines) in words::opening(study) {
        for (at, line) in lines.iter().enumerate() {
            wrap(&mut text, &format!("{:<9}", if at == 0 { what } else { "" }), line);
        }
    }
    for part in part::all(study) {
        text.push('\n');
        lay_out(&mut text, &part);
    }
    _ = writeln!(text, "\n{}", words::total_time(study));
    text
}

pub(crate) fn lay_out(text: &mut String, part: &Part) {
    text.push_str(&part.title);
    text.push('\n');
    for body in &part.bodies {
        match body {
            Body::Table(head, rows) => text.push_str(&table(head, rows)),
            Body::Lines(lines) => lines.iter().for_each(|line| wrap(text, "  ", line)),
            Body::Drawn(drawn) => drawn.lines().for_each(|line| _ = writeln!(text, "  {line}")),
        }
    }
}

/// Columns two apart, the first aligned left, the others right; the notes beside them.
fn table(head: &[String], rows: &[Row]) -> String {
    let cells = || std::iter::once(head).chain(rows.iter().map(|row| row.cells.as_slice()));
    let width = |column: usize| cells().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let notes = std::iter::once("").chain(rows.iter().map(|row| row.note.as_str()));
    for (line, note) in cells().zip(notes) {
        let mut shown = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            _ = if column == 0 { write!(shown, "  {cell:<width$}") } else { write!(shown, "  {cell:>width$}") };
        }
        _ = write!(shown, "  {note}");
        // A head without names says nothing.
        if !shown.trim().is_empty() {
            text.push_str(shown.trim_end());
            text.push('\n');
        }
    }
    text
}

/// `line` after `before`, broken at spaces at [`WIDTH`].
pub(crate) fn wrap(text: &mut String, before: &str, line: &str) {
    wrap_at(text, WIDTH, before, line);
}

/// `line` after `before`, broken at spaces; what follows is indented as far as the line itself is.
pub(crate) fn wrap_at(text: &mut String, width: usize, before: &str, line: &str) {
    let own = line.len() - line.trim_start().len();
    let mut shown = format!("{before}{}", &line[..own]);
    let indent = shown.chars().count() + if own > 0 { 2 } else { 0 };
    let mut is_first = true;
    for word in line.split_whitespace() {
        if !is_first && shown.chars().count() + 1 + word.chars().count() > width {
            text.push_str(shown.trim_end());
            text.push('\n');
            shown = " ".repeat(indent);
            is_first = true;
        }
        if !is_first {
            shown.push(' ');
        }
        shown.push_str(word);
        is_first = false;
    }
    text.push_str(shown.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_at_spaces_and_indented() {
        let mut text = String::new();
        wrap(&mut text, "load     ", &"0123456789 ".repeat(11));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].len() <= WIDTH && lines[1].starts_with("         0123456789"));
    }

    #[test]
    fn a_word_that_is_too_long_stays_whole() {
        let mut text = String::new();
        wrap(&mut text, "  ", &format!("at {}", "x".repeat(200)));
        assert_eq!(text, format!("  at\n  {}\n", "x".repeat(200)));
    }
}
