//! The usual way of an exchange and the general one record the same, whatever a server does, in exact simulated time.
//!
//! Whoever keeps the exchanges one by one has all of them go the general way; so one and the same load, against a server whose moods come from a seed,
//! is driven once with and once without.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::AtomicBool;

use engine::{
    ConnectionDriver, ConnectionError, ConnectionEvent, Lane, LaneEnd, LaneProgress, LoadSpec, Transport, render,
};
use model::{Clock, Nanos, Outcome, Pace, RequestOrder, Timestamps};
use proptest::prelude::*;
use rustix::event::epoll::EventFlags;
use testkit::clock::Stepped;

const NEWS: EventFlags = EventFlags::IN.union(EventFlags::OUT);
const GOODBYE: EventFlags = NEWS.union(EventFlags::RDHUP);
const WORKERS: u64 = 20;

/// What comes on a connection, and when it can be received.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    Bytes(Vec<u8>),
    End,
    Reset,
    /// It can be sent again.
    Room,
}

#[derive(Default)]
struct Socket {
    /// What came and was not received.
    inbox: VecDeque<News>,
    /// Bytes of a request that is not whole yet.
    asked: Vec<u8>,
    /// Requests and sends so far, over all of its lives: they choose the server's moods.
    requests: u64,
    sends: u64,
    /// Since when it is full, and until when.
    full_until: Nanos,
    life: u64,
    stamp: Option<Nanos>,
}

/// What comes: when, in which order, on which connection in which of its lives.
type Coming = (Nanos, u64, usize, u64, News);

/// A server that answers mostly as it should.
struct Moody {
    clock: Stepped,
    seed: u64,
    sockets: Vec<Socket>,
    coming: BinaryHeap<Reverse<Coming>>,
    order: u64,
}

impl Moody {
    fn mood(&self, what: u64, slot: usize, number: u64, of: u64) -> u64 {
        // A hash is good enough: splitmix64's finalizer, over what tells one question from another.
        let mut hash = self.seed ^ (what << 56) ^ ((slot as u64) << 40) ^ number;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (hash ^ (hash >> 31)) % of
    }

    fn comes(&mut self, after: Nanos, slot: usize, news: News) {
        self.order += 1;
        let at = self.clock.now() + after;
        self.coming.push(Reverse((at, self.order, slot, self.sockets[slot].life, news)));
    }

    /// A whole request has come on `slot`.
    fn answer(&mut self, slot: usize, to_head: bool) {
        self.sockets[slot].requests += 1;
        let number = self.sockets[slot].requests;
        // Now and then at once.
        let after = Nanos::from_micros(self.mood(1, slot, number, 900).saturating_sub(100));
        let worker = self.mood(2, slot, number / 4, WORKERS);
        let head = |status: &str, more: &str| format!("HTTP/1.1 {status}\r\nx-worker-pid: {worker}\r\n{more}\r\n");
        let content = if to_head { "" } else { "ok" };
        let usual = head("200 OK", "content-length: 2\r\n") + content;
        let bytes = |text: String| News::Bytes(text.into_bytes());
        let news = match self.mood(3, slot, number, 70) {
            0 => bytes(head("404 Not Found", "content-length: 2\r\n") + content),
            1 => bytes(head("302 Found", "content-length: 2\r\n") + content),
            2 => bytes(head("204 No Content", "")),
            3 => bytes(
                head("200 OK", "transfer-encoding: chunked\r\n") + if to_head { "" } else { "2\r\nok\r\n0\r\n\r\n" },
            ),
            4 | 18..26 => bytes(head("200 OK", "content-length: 3\r\n") + if to_head { "" } else { "oks" }),
            5 => bytes(format!("HTTP/1.1 100 Continue\r\n\r\n{usual}")),
            6 => bytes(format!("{usual}and more")),
            7 => bytes("no HTTP at all\r\n\r\n".to_owned()),
            8 => News::End,
            9 => News::Reset,
            // Never.
            10 => return,
            11 | 12 => {
                let (first, rest) = usual.split_at(1 + self.mood(4, slot, number, usual.len() as u64 - 1) as usize);
                self.comes(after, slot, bytes(first.to_owned()));
                return self.comes(after + Nanos::from_micros(30), slot, bytes(rest.to_owned()));
            }
            // The answer, and its connection is closed at once or a little later: said, or not.
            13..17 => {
                let is_said = self.mood(9, slot, number, 2) == 0;
                let said = head("200 OK", "content-length: 2\r\nconnection: close\r\n") + content;
                self.comes(after, slot, bytes(if is_said { said } else { usual }));
                let later = Nanos::from_micros(self.mood(5, slot, number, 3) * 20);
                return self.comes(after + later, slot, News::End);
            }
            // A content that HEAD must not have.
            17 => bytes(head("200 OK", "content-length: 2\r\n") + "ok"),
            _ => bytes(usual),
        };
        self.comes(after, slot, news);
    }
}

impl ConnectionDriver for Moody {
    fn open(&mut self, slot: usize) -> Result<(), ConnectionError> {
        let number = self.sockets[slot].life;
        if self.mood(6, slot, number, 10) == 0 {
            self.sockets[slot].life += 1;
            return Err(ConnectionError::Refused);
        }
        Ok(())
    }

    fn is_connected(&self, _slot: usize) -> bool {
        true
    }

    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>) {
        events.clear();
        let until = self.clock.now() + at_most;
        let next = self.coming.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at);
        // The lane is mostly woken a little late, and finds several at once.
        let late = Nanos::from_micros(20 * self.mood(10, 0, self.order, 3));
        let woken = if next < until { next + late } else { until };
        self.clock.set(woken.max(self.clock.now()));
        let now = self.clock.now();
        let wall = self.clock.wall();
        while let Some(Reverse((at, ..))) = self.coming.peek()
            && *at <= now
        {
            let Some(Reverse((at, _, slot, life, news))) = self.coming.pop() else { break };
            let socket = &mut self.sockets[slot];
            if life != socket.life {
                continue;
            }
            if matches!(news, News::Bytes(_)) {
                socket.stamp = Some(wall - (now - at));
            }
            let flags = match news {
                News::Room => EventFlags::OUT,
                News::Bytes(_) => NEWS,
                News::End | News::Reset => GOODBYE,
            };
            if news != News::Room {
                socket.inbox.push_back(news);
            }
            match events.iter_mut().find(|event| event.slot == slot as u32) {
                Some(event) => event.flags |= flags,
                None => events.push(ConnectionEvent { slot: slot as u32, flags }),
            }
        }
    }

    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, ConnectionError> {
        let inbox = &mut self.sockets[slot].inbox;
        match inbox.front() {
            None => return Err(ConnectionError::WouldBlock),
            Some(News::Reset) => return Err(ConnectionError::Reset),
            Some(News::End | News::Room) => return Ok(0),
            Some(News::Bytes(_)) => {}
        }
        let mut n = 0;
        // As of a stream: the pieces are one.
        while let Some(News::Bytes(bytes)) = inbox.front() {
            buffer[n..n + bytes.len()].copy_from_slice(bytes);
            n += bytes.len();
            inbox.pop_front();
        }
        Ok(n)
    }

    fn stamp(&self, slot: usize) -> Option<Nanos> {
        self.sockets[slot].stamp
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, ConnectionError> {
        if self.clock.now() < self.sockets[slot].full_until {
            return Err(ConnectionError::WouldBlock);
        }
        self.sockets[slot].sends += 1;
        let sends = self.sockets[slot].sends;
        let n = match self.mood(7, slot, sends, 40) {
            kind @ 0..2 => {
                let full = Nanos::from_micros(200);
                self.sockets[slot].full_until = self.clock.now() + full;
                self.comes(full, slot, News::Room);
                if kind == 0 {
                    return Err(ConnectionError::WouldBlock);
                }
                1 + self.mood(8, slot, sends, (bytes.len() as u64 - 1).max(1)) as usize
            }
            _ => bytes.len(),
        };
        self.sockets[slot].asked.extend(&bytes[..n]);
        if self.sockets[slot].asked.ends_with(b"\r\n\r\n") {
            let asked = std::mem::take(&mut self.sockets[slot].asked);
            self.answer(slot, asked.starts_with(b"HEAD"));
        }
        // What follows in the same turn is sent later, or at the same instant.
        self.clock.advance(Nanos::from_micros(self.mood(11, slot, sends, 2)));
        Ok(n)
    }

    fn close(&mut self, slot: usize) {
        let socket = &mut self.sockets[slot];
        socket.inbox.clear();
        socket.asked.clear();
        socket.full_until = Nanos::ZERO;
        socket.life += 1;
    }
}

fn shape(connections: u32, timestamps: Timestamps, heads: bool, wanted: Option<u64>, count: Option<u64>) -> LoadSpec {
    let transport = Transport::tcp(([127, 0, 0, 1], 1).into());
    let get = render("GET", "moody", "/", true);
    let requests = if heads { vec![get.clone(), render("HEAD", "moody", "/", true)] } else { vec![get.clone()] };
    LoadSpec {
        requests: requests.into(),
        order: RequestOrder::Sequential,
        pace: Pace::Closed,
        timestamps,
        timeout: Nanos::from_millis(20),
        warm_up: Nanos::from_millis(5),
        measured: count.is_none().then_some(Nanos::from_millis(100)),
        requests_total: count,
        worker_header: "x-worker-pid".to_owned(),
        body_bytes: wanted,
        ..LoadSpec::closed(transport, get, connections)
    }
}

fn run(shape: &LoadSpec, seed: u64) -> LaneEnd {
    let clock = Stepped::default();
    let sockets = (0..shape.connections).map(|_| Socket::default()).collect();
    let wire = Moody { clock: clock.clone(), seed, sockets, coming: BinaryHeap::new(), order: 0 };
    Lane::new(shape, shape.shares()[0], clock, wire, Nanos::ZERO, None)
        .run(&AtomicBool::new(false), &LaneProgress::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_usual_way_and_the_general_one_record_the_same(
        seed in any::<u64>(),
        connections in 1u32..12,
        stamped in any::<bool>(),
        heads in any::<bool>(),
        wanted in prop_oneof![Just(None), Just(Some(2))],
        count in prop_oneof![Just(None), Just(Some(0)), Just(Some(300))],
    ) {
        let timestamps = if stamped { Timestamps::Kernel } else { Timestamps::User };
        let usual = shape(connections, timestamps, heads, wanted, count);
        let general = LoadSpec { keep_exchanges: true, ..usual.clone() };
        let (usual, general) = (run(&usual, seed), run(&general, seed));
        prop_assert_eq!(&usual.tally, &general.tally);
        prop_assert_eq!(&usual.batches, &general.batches);
        prop_assert_eq!(usual.clock_steps, general.clock_steps);
        prop_assert!(usual.exchanges.is_empty());
        prop_assert_eq!(general.exchanges.len() as u64, usual.tally.all_requests());
    }
}

/// The law above would say nothing of a server without moods.
#[test]
fn the_moody_server_does_all_that_a_server_can_do() {
    let [of_any_length, all] =
        [None, Some(2)].map(|wanted| run(&shape(8, Timestamps::User, true, wanted, Some(3000)), 7).tally);
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
