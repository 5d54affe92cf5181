//! The report of a comparison.

mod full;

pub use self::full::report;
