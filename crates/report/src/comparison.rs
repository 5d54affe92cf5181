//! What a comparison says: its figures, its conclusions in sentences, its table, whether it can be trusted, and everything else, each in
//! a module of its own.

mod figures;
mod forest;
mod tables;
mod trust;
pub(crate) mod words;

use model::ComparisonStudy;

pub use self::figures::{SummaryArm, SummaryComparison};
pub(crate) use self::forest::figure as forest;
pub(crate) use self::tables::{legend, table};
pub(crate) use self::trust::{measured, sound_runs, trust};
pub(crate) use self::words::sentence;

/// What a comparison came to, and what else must be known.
pub(crate) fn summary(study: &ComparisonStudy) -> SummaryComparison {
    let figures = SummaryComparison::of(study);
    SummaryComparison { reasons: words::reasons(study, &figures), ..figures }
}
