//! Generators on other machines (`--from 'ssh box2'`): the conductor stays where the server is, and the load comes from elsewhere.
//!
//! `conductor.rs` starts `ssh box2 longtail generate` for each, and drives a run with them as `engine::drive` does with lanes of its own;
//! `generator.rs` is the other end: it drives its part of the run with `engine::drive_part`. `wire.rs` is what they say to each other.
//! The lanes of all generators are numbered through the run, and all of them begin at the same instant of the conductor's clock, which
//! each generator knows by the least round trip of some exchanges. So what they recorded is merged as that of a single generator's lanes. Where no pipe leads to a generator, its part is a file (`part.rs`).

pub(crate) mod conductor;
mod generator;
mod part;
mod wire;

pub use conductor::FarGenerators;
pub use generator::serve;
pub use part::{LoadPart, NamedPart, drive_load_part, merge_parts};
pub use wire::FarHost;
