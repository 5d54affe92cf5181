//! Why a formula has no answer, and the checks that refuse a parameter before a formula makes a NaN of it.

use thiserror::Error;

/// What is wrong with what a formula was given, in one line.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum QueueingError {
    /// A parameter that is none.
    #[error("{what} must be {range}, which {value} is not")]
    OutOfRange {
        /// Which parameter.
        what: &'static str,
        /// What it must be.
        range: &'static str,
        /// What it was.
        value: f64,
    },
    /// None of something of which one is needed.
    #[error("there must be at least one {0}")]
    None(&'static str),
    /// As much work arrives as can be done, or more: the queue grows for ever.
    #[error(
        "no steady state: the load is {utilisation} of what the slots can do, and the queue grows as long as it lasts"
    )]
    NoSteadyState {
        /// Offered work / slots; at least 1.
        utilisation: f64,
    },
    /// Beyond what the method is made and tested for.
    #[error("{value} {what} are more than the {limit} that this method is made for")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many were given.
        value: u32,
        /// How many there may be.
        limit: u32,
    },
    /// The objective is missed even by a server without load.
    #[error("no load keeps it: without any load it is {at_rest} already, and the limit is {limit}")]
    OutOfReach {
        /// The figure at no load.
        at_rest: f64,
        /// What it was to be.
        limit: f64,
    },
    /// What was given does not determine the answer.
    #[error("{0} do not determine the answer")]
    Undetermined(&'static str),
}

fn within(holds: bool, what: &'static str, range: &'static str, value: f64) -> Result<f64, QueueingError> {
    if holds { Ok(value) } else { Err(QueueingError::OutOfRange { what, range, value }) }
}

pub(crate) fn positive(what: &'static str, value: f64) -> Result<f64, QueueingError> {
    within(value > 0.0 && value.is_finite(), what, "a number above 0", value)
}

pub(crate) fn not_negative(what: &'static str, value: f64) -> Result<f64, QueueingError> {
    within(value >= 0.0 && value.is_finite(), what, "0 or a number above", value)
}

/// At least 0 and below 1: the quantile at 1 of an unbounded law is infinite.
pub(crate) fn share(value: f64) -> Result<f64, QueueingError> {
    within((0.0..1.0).contains(&value), "the share of a quantile", "at least 0 and below 1", value)
}

pub(crate) fn some(what: &'static str, count: u32) -> Result<u32, QueueingError> {
    if count > 0 { Ok(count) } else { Err(QueueingError::None(what)) }
}

pub(crate) fn at_most(what: &'static str, value: u32, limit: u32) -> Result<u32, QueueingError> {
    if value <= limit { Ok(value) } else { Err(QueueingError::TooMany { what, value, limit }) }
}
