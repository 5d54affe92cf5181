//! A column of a table: how it stands in text and in markdown, and what it shows of a row.

use crate::number::NONE;
use crate::table::{self, Band, Column};
use crate::width::Width;

/// One column of a table whose rows are `R`.
pub(crate) struct Shown<R> {
    pub(crate) column: Column,
    /// The name where there is no band above.
    pub(crate) markdown: &'static str,
    /// Whether it is shown of an invalid run too: what was asked, and that it failed.
    of_any_run: bool,
    cell: fn(&R) -> String,
}

impl<R> Shown<R> {
    /// One that stays in a narrow table: whose run it is, whether to trust it, and what the table is for.
    pub(crate) const fn kept(name: &'static str, width: usize, cell: fn(&R) -> String) -> Shown<R> {
        Shown::ranked(0, (name, width), None, name, cell)
    }

    /// One that goes when its `rank` is the highest and there is no room (0: it stays).
    pub(crate) const fn ranked(
        rank: u8,
        (name, width): (&'static str, usize),
        band: Option<Band>,
        markdown: &'static str,
        cell: fn(&R) -> String,
    ) -> Shown<R> {
        Shown { column: Column { name, width, band, rank }, markdown, of_any_run: false, cell }
    }

    /// The same, shown of an invalid run too.
    pub(crate) const fn of_any_run(mut self) -> Shown<R> {
        self.of_any_run = true;
        self
    }
}

/// The cells of a row, of these columns; of an invalid run, which has no headline figure, those that every run has.
pub(crate) fn cells<R>(columns: &[Shown<R>], row: &R, is_invalid: bool) -> Vec<String> {
    let cell = |shown: &Shown<R>| if is_invalid && !shown.of_any_run { NONE.to_owned() } else { (shown.cell)(row) };
    columns.iter().map(cell).collect()
}

/// The columns that there is room for, and those that are left out.
pub(crate) fn fitting<R>(columns: Vec<Shown<R>>, width: Width) -> (Vec<Shown<R>>, Vec<Shown<R>>) {
    table::fitting(columns, |shown| &shown.column, width)
}
