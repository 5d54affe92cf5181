//! Comparisons of one kind, gathered: how many held, and each that did not with both its figures.

use crate::check::{Check, Evidence, Finding};
use crate::range::Range;

/// One check's comparisons.
pub(super) struct Book {
    check: Check,
    held: u64,
    failed: Vec<Evidence>,
}

impl Book {
    pub(super) fn of(check: Check) -> Book {
        Book { check, held: 0, failed: Vec::new() }
    }

    fn note(&mut self, holds: bool, what: &str, stands: f64, follows: Range) {
        if holds {
            self.held += 1;
        } else {
            self.failed.push(Evidence::Contradiction { what: what.to_owned(), stands, follows });
        }
    }

    /// A whole number that follows from others.
    pub(super) fn equal(&mut self, what: &str, stands: u64, follows: u64) {
        self.note(stands == follows, what, stands as f64, Range::exactly(follows as f64));
    }

    /// A number that follows from others by arithmetic that rounds.
    pub(super) fn near(&mut self, what: &str, stands: f64, follows: f64, error: f64) {
        let holds = (stands - follows).abs() <= error;
        self.note(holds, what, stands, Range { low: follows - error, high: follows + error });
    }

    /// A number that others leave a range for.
    pub(super) fn within(&mut self, what: &str, stands: u64, low: u64, high: u64) {
        let holds = low <= stands && stands <= high;
        self.note(holds, what, stands as f64, Range { low: low as f64, high: high as f64 });
    }

    /// As [`Book::within`], without an upper end.
    pub(super) fn at_least(&mut self, what: &str, stands: u64, low: u64) {
        self.note(stands >= low, what, stands as f64, Range { low: low as f64, high: f64::MAX });
    }

    /// What was found: nothing where nothing was compared.
    pub(super) fn findings(self) -> Vec<Finding> {
        let Book { check, held, failed } = self;
        if failed.is_empty() {
            return if held == 0 { Vec::new() } else { vec![Finding::holds(check, Evidence::Agree { figures: held })] };
        }
        failed.into_iter().map(|evidence| Finding::fails(check, evidence)).collect()
    }
}
