//! Conducts one study: starts the server, waits until it is ready, drives one run a multiple (or a body), asks the server and the
//! kernel what they saw, and puts each run's theory and doubts beside it.
//!
//! This is where the other crates meet. It prints nothing and writes no file: an [`Observer`] is told what happens.

mod bodies;
mod calibrate;
mod conduct;
mod error;
mod hear;
mod idle;
mod join;
mod kernel;
mod ledger;
mod observer;
mod overhead;
mod probe_discipline;
mod ready;
mod session;
mod subject;
mod theory;
mod tools;
mod turns;
mod watch;
mod with;
mod witnesses;

pub use bodies::conduct_bodies;
pub use calibrate::{Ceilings, Workshop, ceilings};
pub use conduct::{conduct, planned_slots};
pub use error::SweepError;
pub use hear::Hearing;
pub use observer::{Observer, Phase};
pub use overhead::{Arm, Overhead, OverheadPlan, Sample, conduct_overhead};
pub use probe::StatsdSocket;
pub use probe::host::HostCounters;
pub use probe::machine::environment;
pub use tools::Tools;
pub use watch::LiveReadings;
pub use with::{OtherGenerator, Task};
