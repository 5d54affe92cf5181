//! The report of a comparison.

mod full;

pub(crate) use self::full::label;
pub use self::full::report;
