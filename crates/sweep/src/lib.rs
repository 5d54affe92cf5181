//! Conducts one study: starts the server, waits until it is ready, drives one run a multiple, asks the server and the
//! kernel what they saw, and puts each run's theory and doubts beside it.
//!
//! This is where the other crates meet. It prints nothing and writes no file: an [`Observer`] is told what happens.

mod conduct;
mod error;
mod idle;
mod ledger;
mod observer;
mod ready;
mod subject;

pub use conduct::{Tools, conduct};
pub use error::SweepError;
pub use observer::{Observer, Phase};
pub use probe::machine::environment;
