//! The fast path of an exchange and the slow one record the same, whatever a server does, in exact
//! simulated time.
//!
//! A load with a journal takes the slow path throughout. So the same load is driven twice
//! against a server whose moods come from a seed: once without a journal, and once with one.

use engine::{LaneOutcome, LoadSpec, RequestRecord, Transport, render};
use model::{Clock, Nanos, Outcome, Pace, Request, RequestMix, Tally, Timestamps};
use proptest::prelude::*;
use rustix::io::Errno;

use super::wire::{News, Server, SimulatedWire, run};

const WORKERS: u64 = 20;

/// One connection as the server sees it.
#[derive(Clone, Default)]
struct Client {
    /// Bytes of a request that is not whole yet.
    asked: Vec<u8>,
    /// Requests, sends and connects so far: they choose the server's moods.
    requests: u64,
    sends: u64,
    connects: u64,
    /// Until when its socket takes no bytes.
    full_until: Nanos,
}

/// A server that answers mostly as it should.
struct Moody {
    seed: u64,
    clients: Vec<Client>,
}

impl Moody {
    /// A number below `of` that depends only on the seed and the other arguments.
    fn mood(&self, what: u64, slot: usize, number: u64, of: u64) -> u64 {
        // splitmix64's finalizer: a hash is random enough here.
        let mut hash = self.seed ^ (what << 56) ^ ((slot as u64) << 40) ^ number;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) % of
    }
}

/// Answers the request that has just arrived whole on `slot`.
fn answer(wire: &mut SimulatedWire<Moody>, slot: usize, to_head: bool) {
    wire.server.clients[slot].requests += 1;
    let number = wire.server.clients[slot].requests;
    // One in nine at once.
    let after = Nanos::from_micros(wire.server.mood(1, slot, number, 900).saturating_sub(100));
    let worker = wire.server.mood(2, slot, number / 4, WORKERS);
    let head = |status: &str, more: &str| {
        format!("HTTP/1.1 {status}\r\nx-worker-pid: {worker}\r\n{more}\r\n")
    };
    let content = if to_head { "" } else { "ok" };
    let ordinary = head("200 OK", "content-length: 2\r\n") + content;
    let bytes = |text: String| News::Bytes(text.into_bytes());
    let news = match wire.server.mood(3, slot, number, 70) {
        0 => bytes(head("404 Not Found", "content-length: 2\r\n") + content),
        1 => bytes(head("302 Found", "content-length: 2\r\n") + content),
        2 => bytes(head("204 No Content", "")),
        3 => bytes(
            head("200 OK", "transfer-encoding: chunked\r\n")
                + if to_head { "" } else { "2\r\nok\r\n0\r\n\r\n" },
        ),
        4 | 18..26 => {
            bytes(head("200 OK", "content-length: 3\r\n") + if to_head { "" } else { "oks" })
        }
        5 => bytes(format!("HTTP/1.1 100 Continue\r\n\r\n{ordinary}")),
        6 => bytes(format!("{ordinary}and more")),
        7 => bytes("no HTTP at all\r\n\r\n".to_owned()),
        8 => News::End,
        9 => News::Reset,
        // No response at all.
        10 => return,
        11 | 12 => {
            let (first, rest) = ordinary.split_at(
                1 + wire.server.mood(4, slot, number, ordinary.len() as u64 - 1) as usize,
            );
            wire.comes(after, slot, bytes(first.to_owned()));
            return wire.comes(after + Nanos::from_micros(30), slot, bytes(rest.to_owned()));
        }
        // The response, then a close: said in its head or not, and at once or a little later.
        13..17 => {
            let is_said = wire.server.mood(9, slot, number, 2) == 0;
            let said = head("200 OK", "content-length: 2\r\nconnection: close\r\n") + content;
            wire.comes(after, slot, bytes(if is_said { said } else { ordinary }));
            let later = Nanos::from_micros(wire.server.mood(5, slot, number, 3) * 20);
            return wire.comes(after + later, slot, News::End);
        }
        // A body, which a response to HEAD must not have.
        17 => bytes(head("200 OK", "content-length: 2\r\n") + "ok"),
        _ => bytes(ordinary),
    };
    wire.comes(after, slot, news);
}

impl Server for Moody {
    fn open(wire: &mut SimulatedWire<Moody>, slot: usize) -> Result<(), Errno> {
        wire.server.clients[slot].connects += 1;
        let number = wire.server.clients[slot].connects;
        if wire.server.mood(6, slot, number, 10) == 0 { Err(Errno::CONNREFUSED) } else { Ok(()) }
    }

    fn send(wire: &mut SimulatedWire<Moody>, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
        let now = wire.clock.now();
        let client = &mut wire.server.clients[slot];
        if now < client.full_until {
            return Err(Errno::AGAIN);
        }
        client.sends += 1;
        let sends = client.sends;
        let n = match wire.server.mood(7, slot, sends, 40) {
            kind @ 0..2 => {
                let full = Nanos::from_micros(200);
                wire.server.clients[slot].full_until = now + full;
                wire.comes(full, slot, News::Room);
                if kind == 0 {
                    return Err(Errno::AGAIN);
                }
                1 + wire.server.mood(8, slot, sends, (bytes.len() as u64 - 1).max(1)) as usize
            }
            _ => bytes.len(),
        };
        let asked = &mut wire.server.clients[slot].asked;
        asked.extend(&bytes[..n]);
        if asked.ends_with(b"\r\n\r\n") {
            let asked = std::mem::take(asked);
            answer(wire, slot, asked.starts_with(b"HEAD"));
        }
        // What the lane sends next in this turn is sent at the same instant, or a little later.
        wire.clock.advance(Nanos::from_micros(wire.server.mood(11, slot, sends, 2)));
        Ok(n)
    }

    fn close(&mut self, slot: usize, _now: Nanos) {
        self.clients[slot].asked.clear();
        self.clients[slot].full_until = Nanos::ZERO;
    }

    /// Mostly wakes the lane a little late, so that several events are ready at once.
    fn wakes_late(&self, order: u64) -> Nanos {
        Nanos::from_micros(20 * self.mood(10, 0, order, 3))
    }
}

fn spec(
    connections: u32,
    timestamps: Timestamps,
    heads: bool,
    wanted: Option<u64>,
    count: Option<u64>,
) -> LoadSpec {
    let get = render("GET", "moody", "/", &[], true);
    let requests = if heads {
        vec![get.clone(), render("HEAD", "moody", "/", &[], true)]
    } else {
        vec![get.clone()]
    };
    LoadSpec {
        requests: RequestMix::in_order(requests).into(),
        measured: count.is_none().then_some(Nanos::from_millis(100)),
        worker_header: "x-worker-pid".to_owned(),
        body_bytes: wanted,
        ..LoadSpec::closed(Transport::tcp(([127, 0, 0, 1], 1).into()), get, connections).with(
            |load| {
                load.pace = Pace::Closed;
                load.timestamps = timestamps;
                load.timeout = Nanos::from_millis(20);
                load.warm_up = Nanos::from_millis(5);
                load.requests_total = count;
            },
        )
    }
}

fn moody(spec: &LoadSpec, seed: u64, is_kept: bool) -> (LaneOutcome, Vec<RequestRecord>) {
    run(
        spec,
        Moody { seed, clients: vec![Client::default(); spec.load.connections as usize] },
        is_kept,
        false,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_fast_path_and_the_slow_path_record_the_same(
        seed in any::<u64>(),
        connections in 1u32..12,
        stamped in any::<bool>(),
        heads in any::<bool>(),
        classes in any::<bool>(),
        wanted in prop_oneof![Just(None), Just(Some(2))],
        count in prop_oneof![Just(None), Just(Some(0)), Just(Some(300))],
    ) {
        let timestamps = if stamped { Timestamps::Kernel } else { Timestamps::User };
        let spec = spec(connections, timestamps, heads, wanted, count);
        let spec = if classes { in_three_classes(spec) } else { spec };
        let (fast, none) = moody(&spec, seed, false);
        let (slow, records) = moody(&spec, seed, true);
        prop_assert_eq!(&fast.tally, &slow.tally);
        prop_assert_eq!(&fast.batches, &slow.batches);
        prop_assert_eq!(fast.clock_steps, slow.clock_steps);
        prop_assert!(none.is_empty());
        prop_assert_eq!(records.len() as u64, fast.tally.all_requests());
    }

    /// No request is lost, or counted twice, because it is counted by its class.
    #[test]
    fn a_load_of_classes_records_the_same_and_each_request_in_its_class(
        seed in any::<u64>(),
        connections in 1u32..12,
        is_kept in any::<bool>(),
        count in prop_oneof![Just(None), Just(Some(300))],
    ) {
        let spec = spec(connections, Timestamps::User, false, Some(2), count);
        let (alike, _) = moody(&spec, seed, is_kept);
        let spec = in_three_classes(spec);
        let (told_apart, records) = moody(&spec, seed, true);
        let classes = &told_apart.tally.classes;
        let whole = Tally { classes: Vec::new(), ..told_apart.tally.clone() };
        prop_assert_eq!(&whole, &alike.tally);
        let mut sum = Tally::new(whole.window, connections as usize);
        sum.add_classes(classes);
        prop_assert_eq!(&sum.counts, &whole.counts);
        prop_assert_eq!(&sum.unmeasured, &whole.unmeasured);
        prop_assert_eq!(&sum.response_time, &whole.response_time);
        prop_assert_eq!(&sum.failed_response_time, &whole.failed_response_time);
        for (number, class) in classes.iter().enumerate() {
            let is_of_it = |record: &&RequestRecord| {
                usize::from(spec.requests.class_of(record.number)) == number
            };
            prop_assert_eq!(class.all_requests(), records.iter().filter(is_of_it).count() as u64);
        }
    }
}

/// The same load with each request in three copies, of a class each.
fn in_three_classes(spec: LoadSpec) -> LoadSpec {
    let copies = |request: &Request| [0, 1, 2].map(|class| Request { class, ..request.clone() });
    let requests = spec.requests.requests().iter().flat_map(copies).collect();
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    let requests = RequestMix::in_order(requests).with_classes(names).into();
    LoadSpec { requests, ..spec }
}

/// The properties above would show nothing with a server that always answers well.
#[test]
fn the_moody_server_does_all_that_a_server_can_do() {
    let [of_any_length, all] = [None, Some(2)].map(|wanted| {
        moody(&spec(8, Timestamps::User, true, wanted, Some(3000)), 7, false).0.tally
    });
    for outcome in [
        Outcome::Answered(200),
        Outcome::Answered(302),
        Outcome::Answered(404),
        Outcome::Refused,
        Outcome::Reset,
        Outcome::Closed,
        Outcome::TimedOut,
        Outcome::BadResponse,
        Outcome::WrongLength,
    ] {
        assert!(all.counts.of(outcome) > 0, "{outcome:?}");
    }
    assert!(of_any_length.counts.of(Outcome::Answered(204)) > 0);
    assert_eq!(all.counts.total(), 3000);
    assert_eq!(all.per_worker.len() as u64, WORKERS);
}
