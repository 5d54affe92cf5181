//! What tests of every crate share: a clock that a test steps, and studies that are the same on every machine.
//!
//! A dev-dependency only: no product code may know it. It knows `model` and nothing else, so whatever it builds went
//! through the real types.

pub mod bodies;
pub mod claimed;
pub mod clock;
pub mod load;
mod machine;
mod statsd;
pub mod study;
