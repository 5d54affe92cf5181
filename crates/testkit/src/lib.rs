//! What tests of every crate share: a clock that a test steps, studies that are the same on every machine, golden files, and what other
//! generators print.
//!
//! A dev-dependency only: no product code may know it. It knows `model`, and `queueing` for theory beside a study, so whatever
//! it builds went through the real types.

pub mod bodies;
pub mod claimed;
pub mod clock;
pub mod golden;
pub mod http;
pub mod load;
pub mod machine;
pub mod network;
pub mod output;
pub mod study;

mod statsd;
