//! One server with every fault, drawn by chance from a fixed seed: nothing is lost whatever comes after what.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::LoadSpec;
use model::pace::uniform;
use model::{Nanos, Outcome, Pace, Rate};

use super::{closing, early, framing, heads, slow};
use crate::kit::{ANSWER, GOOD, Serve, Server, driven, read_request, shape};

const CONNECTIONS: u32 = 64;
const EACH: u64 = 20;

const FAULTS: &[Serve] = &[
    closing::before_the_head,
    closing::in_the_head,
    closing::behind_the_head,
    closing::in_the_body,
    closing::with_the_answer,
    closing::after_the_answer,
    closing::half_after_the_answer,
    closing::half_before_the_answer,
    closing::reset_at_once,
    closing::reset_in_the_body,
    closing::with_the_request_unread,
    early::before_the_request,
    framing::more_than_it_says,
    framing::less_than_it_says,
    framing::less_than_it_says_and_waits,
    framing::a_chunk_that_overflows,
    framing::garbage_for_a_chunk,
    framing::no_last_chunk,
    framing::garbage_behind_the_answer,
    heads::endless_fields,
    heads::a_line_of_100_megabytes,
    heads::a_thousand_fields,
    heads::ssh,
    heads::tls_alert,
    slow::never_answers,
    slow::a_byte_a_second,
    slow::endless_body,
    slow::endless_interim_responses,
];

/// A server that treats each connection well, in one of the good ways for a few requests, or badly.
fn chaos(seed: u64) -> (Server, Arc<AtomicU64>) {
    let answers = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&answers);
    let server = Server::start(move |stream: &mut TcpStream, number| {
        let draw = |stream: u64, below: usize| (uniform(seed + stream, number) * below as f64).ceil() as usize - 1;
        // A few good answers first, then, on most connections, what is wrong with this one.
        for _ in 0..draw(0, 6) {
            read_request(stream)?;
            std::io::Write::write_all(stream, ANSWER)?;
            counted.fetch_add(1, Ordering::Relaxed);
        }
        match draw(1, 10) {
            0 => framing::good_chunks(stream),
            1 => slow::byte_by_byte(stream),
            _ => FAULTS[draw(2, FAULTS.len())](stream),
        }
    });
    (server, answers)
}

/// So long an answer is waited for, one after the other until every kind of outcome came up: a busy machine may be too slow for any
/// answer.
const TIMEOUTS: [Nanos; 3] = [Nanos::from_millis(200), Nanos::from_secs(1), Nanos::from_secs(5)];

fn survives(seed: u64, change: impl Fn(LoadSpec) -> LoadSpec) {
    assert!(TIMEOUTS.into_iter().any(|timeout| survives_with(seed, timeout, &change)), "not every kind of outcome");
}

/// Whether every kind of outcome came up; nothing was lost.
fn survives_with(seed: u64, timeout: Nanos, change: impl Fn(LoadSpec) -> LoadSpec) -> bool {
    let (server, answers) = chaos(seed);
    let load = LoadSpec { connections: CONNECTIONS, lanes: 3, timeout, ..shape(server.address) };
    let load = change(load);
    let done = driven(&load);
    let counts = &done.tally.counts;
    assert_eq!(counts.total(), u64::from(CONNECTIONS) * EACH, "{counts:?}");
    let mut known = vec![GOOD, Outcome::Reset, Outcome::Closed, Outcome::TimedOut, Outcome::BadResponse];
    // Every kind of trouble in a closed loop; how many connections an open loop uses is a matter of its luck.
    let wanted = if load.pace.is_open() { 2 } else { known.len() };
    if load.pace.is_open() {
        // Those that found no connection in time.
        known.push(Outcome::InFlight);
    }
    for (outcome, n) in counts.iter() {
        assert!(known.contains(&outcome) && n > 0, "{outcome:?} in {counts:?}");
    }
    assert_eq!(server.stop(), done.tally.connections_opened);
    // What a fault answers well, or nearly, comes on top of these.
    counts.iter().count() >= wanted && answers.load(Ordering::Relaxed) > 0 && counts.good() > 0
}

#[test]
fn nothing_is_lost_in_a_closed_loop_on_a_server_with_every_fault() {
    for seed in [1, 2] {
        survives(seed, |shape| LoadSpec { requests_total: None, requests_per_connection: Some(EACH), ..shape });
    }
}

#[test]
fn nothing_is_lost_in_an_open_loop_on_a_server_with_every_fault() {
    survives(3, |shape| LoadSpec {
        requests_total: Some(u64::from(CONNECTIONS) * EACH),
        pace: Pace::constant(Rate::new(2000.0).unwrap()),
        ..shape
    });
}
