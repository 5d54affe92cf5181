//! Parameters, refused before a formula makes a NaN of them.

use crate::Invalid;

pub(crate) fn positive(what: &'static str, value: f64) -> Result<f64, Invalid> {
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(Invalid::NotPositive { what, value }) }
}

pub(crate) fn not_negative(what: &'static str, value: f64) -> Result<f64, Invalid> {
    if value >= 0.0 && value.is_finite() { Ok(value) } else { Err(Invalid::Negative { what, value }) }
}

/// At least 0 and below 1: the quantile at 1 of an unbounded law is infinite.
pub(crate) fn share(value: f64) -> Result<f64, Invalid> {
    if (0.0..1.0).contains(&value) { Ok(value) } else { Err(Invalid::NotAShare(value)) }
}

pub(crate) fn some(what: &'static str, count: u32) -> Result<u32, Invalid> {
    if count > 0 { Ok(count) } else { Err(Invalid::None(what)) }
}

pub(crate) fn at_most(what: &'static str, value: u32, limit: u32) -> Result<u32, Invalid> {
    if value <= limit {
        Ok(value)
    } else {
        Err(Invalid::TooMany { what, value: u64::from(value), limit: u64::from(limit) })
    }
}
