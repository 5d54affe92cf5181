//! One server with every fault, drawn at random from a fixed seed: no request is lost, in whatever
//! order the faults come.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::LoadSpec;
use model::pace::uniform;
use model::{Nanos, Outcome, Pace, Rate};

use super::{play, servers};
use crate::kit::{GOOD, Server, driven, shape};

const CONNECTIONS: u32 = 64;
const EACH: u64 = 20;

/// A server that treats each connection well, in one of the good ways for a few requests, or badly.
fn chaos(seed: u64) -> (Server, Arc<AtomicU64>) {
    let chaos = servers("").filter_map(|(said, steps)| Some((said.strip_prefix("chaos ")?, steps)));
    let (good, faults): (Vec<_>, Vec<_>) =
        chaos.partition(|(ending, _)| *ending == "Answered(200)");
    let answers = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&answers);
    let server = Server::start(move |stream: &mut TcpStream, number| {
        let draw = |which: u64, below: usize| {
            (uniform(seed + which, number) * below as f64).ceil() as usize - 1
        };
        // A few good responses first, then, on most connections, what is wrong with this one.
        for _ in 0..draw(0, 6) {
            play(stream, "read; {answer}")?;
            counted.fetch_add(1, Ordering::Relaxed);
        }
        let ways = if draw(1, 5) == 0 { &good } else { &faults };
        play(stream, ways[draw(2, ways.len())].1)
    });
    (server, answers)
}

/// Timeouts to try, one after the other, until every kind of outcome has come up: on a busy machine
/// the short ones may leave no time for any response.
const TIMEOUTS: [Nanos; 3] = [Nanos::from_millis(200), Nanos::from_secs(1), Nanos::from_secs(5)];

fn survives(seed: u64, change: impl Fn(LoadSpec) -> LoadSpec) {
    assert!(
        TIMEOUTS.into_iter().any(|timeout| survives_with(seed, timeout, &change)),
        "not every kind of outcome"
    );
}

/// Asserts that no request was lost. Returns whether every kind of outcome came up, and no connect
/// was too slow.
fn survives_with(seed: u64, timeout: Nanos, change: impl Fn(LoadSpec) -> LoadSpec) -> bool {
    let (server, answers) = chaos(seed);
    let spec = shape(server.address).with(|load| {
        load.connections = CONNECTIONS;
        load.lanes = 3;
        load.timeout = timeout;
    });
    let spec = change(spec);
    let done = driven(&spec);
    let counts = &done.tally.counts;
    assert_eq!(counts.total(), u64::from(CONNECTIONS) * EACH, "{counts:?}");
    if counts.of(Outcome::ConnectTimedOut) > 0 {
        // The machine was too busy to accept in time.
        server.stop();
        return false;
    }
    let mut known =
        vec![GOOD, Outcome::Reset, Outcome::Closed, Outcome::TimedOut, Outcome::BadResponse];
    // A closed loop must meet every kind; how many connections an open loop uses varies.
    let wanted = if spec.load.pace.is_open() { 2 } else { known.len() };
    if spec.load.pace.is_open() {
        // Requests that found no connection in time.
        known.extend([Outcome::InFlight, Outcome::NotSent]);
    }
    for (outcome, n) in counts.iter() {
        assert!(known.contains(&outcome) && n > 0, "{outcome:?} in {counts:?}");
    }
    assert_eq!(server.stop(), done.tally.connections_opened);
    // Some faults answer well first; `answers` does not count these responses.
    counts.iter().count() >= wanted && answers.load(Ordering::Relaxed) > 0 && counts.good() > 0
}

#[test]
fn nothing_is_lost_in_a_closed_loop_on_a_server_with_every_fault() {
    for seed in [1, 2] {
        survives(seed, |shape| LoadSpec {
            requests_per_connection: Some(EACH),
            ..shape.with(|load| load.requests_total = None)
        });
    }
}

#[test]
fn nothing_is_lost_in_an_open_loop_on_a_server_with_every_fault() {
    survives(3, |shape| {
        shape.with(|load| {
            load.requests_total = Some(u64::from(CONNECTIONS) * EACH);
            load.pace = Pace::constant(Rate::new(2000.0).unwrap());
        })
    });
}
