//! How many lanes a run has: what was asked, or what this machine was seen to do (`longtail calibrate`), or a rule.
//!
//! The choice itself is [`model::lanes`]; here is what it needs of the world.

use std::num::NonZero;
use std::thread::available_parallelism;

use launch::affinity;
use model::lanes::Room;
use model::{Environment, LaneLimits, Lanes, Nanos, Placement, ServerPlan, StreamPlan};

use crate::store::LaneFile;

/// What was measured on this machine, by this version; `None` where nothing was.
pub(crate) fn limits() -> Option<LaneLimits> {
    LaneFile::open().known(&machine(&sweep::environment(env!("CARGO_PKG_VERSION"))))
}

/// By what limits are remembered: who measured, and on what.
pub(crate) fn machine(environment: &Environment) -> String {
    let Environment { longtail_version, cpu, memory_bytes, kernel, .. } = environment;
    let cpus = affinity::ours().map(|ours| ours.to_string()).unwrap_or_default();
    format!("{longtail_version} {cpu} cpus={cpus} memory={memory_bytes} {kernel}")
}

/// Processors that we may use at once.
pub(crate) fn cpus() -> u32 {
    available_parallelism().map_or(1, NonZero::get) as u32
}

/// The lanes of a load.
pub(crate) fn of_load(
    asked: Option<u32>,
    highest_rate: Option<f64>,
    connections: u32,
    placement: Option<&Placement>,
) -> Lanes {
    let limits = limits();
    Room { cpus: cpus(), placement, connections, limits: limits.as_ref() }.of_load(asked, highest_rate)
}

/// The lanes of a closed loop of so many connections on a server that we start.
pub(crate) fn of_server(asked: Option<u32>, server: &ServerPlan, stream: &StreamPlan, connections: u32) -> Lanes {
    let delay = stream.delay.filter(|delay| *delay > Nanos::ZERO);
    let highest_rate =
        sweep::planned_slots(server).zip(delay).map(|(slots, delay)| f64::from(slots) / delay.as_secs_f64());
    let placement = server.cpus.clone().zip(affinity::ours()).map(|(theirs, ours)| Placement::beside(theirs, &ours));
    let limits = limits();
    let room = Room { cpus: cpus(), placement: placement.as_ref(), connections, limits: limits.as_ref() };
    room.of_server(asked, highest_rate)
}
