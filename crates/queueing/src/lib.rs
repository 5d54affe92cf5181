//! What ought to be: queueing theory as pure functions, each with its formula, source and range of validity.
//!
//! Nothing here measures. Times are [`model::Nanos`], rates are requests per second.

pub mod closed;
