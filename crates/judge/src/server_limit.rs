//! What limits a server, from all loads that were tried: the threads, something inside the app, or
//! more at once than was stated.
//!
//! The CPUs, Ruby's lock, the network and the accept queue come before, from what the kernel says of
//! one run (`limits`); this is about what is left. It knows no studies and no sockets, so that
//! simulated servers can be put through it.

use model::theory::ServiceTime;
use model::{Limit, Nanos};

use crate::at_once::{self, Beside};
use crate::limits::threads;

/// One load as the client saw it, and what the server said meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSeen {
    /// Connections, each with a request out all the time.
    pub connections: u32,
    /// Good responses per second.
    pub rate: f64,
    /// How many there were.
    pub responses: u64,
    /// Threads that the server itself said are busy, on average; `None` where it did not say.
    pub busy: Option<f64>,
}

/// A server under some loads.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSeen {
    /// Requests at a time, as stated.
    pub slots: u32,
    /// Processes that serve.
    pub workers: u32,
    /// What one request takes alone, where that was measured or stated.
    pub alone: Option<ServiceTime>,
    /// The loads, the lowest first.
    pub loads: Vec<LoadSeen>,
}

impl ServerSeen {
    /// A server that was not loaded yet.
    pub fn stated(slots: u32, workers: u32, alone: Option<ServiceTime>) -> ServerSeen {
        ServerSeen { slots, workers: workers.max(1), alone, loads: Vec::new() }
    }
}

/// Loads that differ by less than this factor do not show whether throughput still rises.
pub(crate) const NEXT_LOAD: f64 = 1.5;
/// Rates within this part of each other count as equal.
pub(crate) const SAME_RATE: f64 = 0.05;
/// So many times the stated threads cannot be busy.
const MORE: f64 = 1.05;
/// Requests wait where so many times more are out than are served at once.
const WAITING: f64 = 1.2;

/// Whether more connections bring no more: the rate at `high` is about that at `low`, though half as
/// many more or more requests are out.
pub(crate) fn is_flat(low: &LoadSeen, high: &LoadSeen) -> bool {
    f64::from(high.connections) >= NEXT_LOAD * f64::from(low.connections)
        && high.rate < (1.0 + SAME_RATE) * low.rate
}

/// The limit at the highest load; `None` where no limit is seen, or none that is known.
pub fn server_limit(server: &ServerSeen) -> Option<Limit> {
    let (last, lower) = server.loads.split_last()?;
    let slots = f64::from(server.slots);
    // More busy threads than were stated are more threads than were stated.
    let has_more = last.busy.is_some_and(|busy| busy > MORE * slots);
    let busy = last.busy.filter(|busy| !has_more && threads::are_busy(*busy, server.slots));
    let alone = server.alone.map(|alone| no_longer_than_under_load(alone, &server.loads));
    let at_once = alone.and_then(|alone| at_once::of(last.rate, last.responses, &alone));
    let threads = |at_once| Limit::Threads {
        slots: server.slots,
        connections: last.connections,
        at_once,
        busy: last.busy,
    };
    let Some(at_once) = at_once else {
        return (busy.is_some() && last.connections >= server.slots).then(|| threads(None));
    };
    let waits = f64::from(last.connections) >= WAITING * at_once.mean;
    let is_flat = lower.iter().any(|low| is_flat(low, last));
    // With one load, requests that wait are all that shows a limit.
    let is_shown = is_flat || lower.is_empty();
    match at_once::beside(&at_once, slots) {
        // An interval that is wide by chance is refuted by threads that are counted: all, and no more.
        Beside::Above if waits && busy.is_some() && !at_once::is_narrow(&at_once) => {
            Some(threads(Some(at_once)))
        }
        Beside::Above => Some(Limit::MoreThanStated {
            stated: server.slots,
            at_once,
            connections: last.connections,
            waits,
            is_full: waits && is_flat,
        }),
        Beside::Equal | Beside::Unclear if has_more => None,
        Beside::Equal if waits && (is_shown || busy.is_some()) => Some(threads(Some(at_once))),
        Beside::Unclear if waits && busy.is_some() => Some(threads(Some(at_once))),
        Beside::Below if waits && is_shown && !is_slower_at_a_low_load(server) => {
            Some(Limit::InsideApp {
                slots: server.slots,
                workers: server.workers,
                at_once: Some(at_once),
                held: Some(Nanos::from_secs_f64(1.0 / last.rate)),
                locked: None,
            })
        }
        Beside::Equal | Beside::Unclear | Beside::Below => None,
    }
}

/// A request takes no longer alone than among others. Where it did, it was measured alone at a bad
/// moment (others on the CPUs, a cold cache), and the shortest mean under a load is nearer to it.
pub(crate) fn no_longer_than_under_load(alone: ServiceTime, loads: &[LoadSeen]) -> ServiceTime {
    // By Little's law: each connection has one request out.
    let mean = |load: &LoadSeen| Nanos::from_secs_f64(f64::from(load.connections) / load.rate);
    let shortest = loads.iter().filter(|load| load.rate > 0.0).map(mean).min();
    let Some(shortest) = shortest.filter(|shortest| *shortest < alone.mean) else { return alone };
    ServiceTime { mean: shortest, low: alone.low.min(shortest), ..alone }
}

/// Whether requests take longer than alone already where hardly any other is there: then the app
/// itself becomes slower under load, whatever the reason, and nothing holds a fixed number back.
fn is_slower_at_a_low_load(server: &ServerSeen) -> bool {
    let Some(alone) = server.alone.filter(|alone| alone.high != Nanos::MAX) else { return false };
    let last_rate = server.loads.last().map_or(0.0, |last| last.rate);
    server.loads.iter().any(|load| {
        // Of so few connections none would wait behind what limits the highest load.
        let room = last_rate * alone.low.as_secs_f64();
        let mean = f64::from(load.connections) / load.rate.max(1e-9);
        load.connections >= 2
            && f64::from(load.connections) <= 0.5 * room
            && mean > WAITING * alone.high.as_secs_f64()
    })
}
