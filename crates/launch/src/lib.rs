//! Starts a server process, keeps it under guard, stops it, and knows why it did not start.
//!
//! It neither asks the server anything (that is `probe`) nor decides when it is ready (that is `sweep`). It prints
//! nothing and reads no clock. What stays true: however longtail ends, nothing of a server that it started lives on;
//! [`guard`] says how, and what cannot be covered.

pub mod affinity;
mod app;
pub mod bind;
mod build;
pub mod error;
pub mod facts;
pub mod guard;
pub mod output;
mod protocol;
pub mod puma;
mod scratch;
pub mod server;
pub mod spec;
mod sys;

pub use affinity::CpuRestriction;
pub use bind::{ServerBind, TlsPair};
pub use build::{Build, InstalledGem, Revision, puma_gem};
pub use error::LaunchError;
pub use output::ServerOutput;
pub use protocol::ServerExit;
pub use puma::{Addresses, Puma, Surroundings};
pub use scratch::Scratch;
pub use server::Server;
pub use spec::{GuardCommand, LaunchSpec, find_program};
pub use sys::dies_with_us;
