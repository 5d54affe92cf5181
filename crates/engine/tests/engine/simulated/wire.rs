//! A wire in simulated time: what a scripted server sends arrives exactly when the server says.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;

use engine::{
    ConnectionDriver, ConnectionEvent, Lane, LaneOutcome, LaneProgress, LoadSpec, RequestRecord,
};
use model::{Clock, Nanos};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use testkit::clock::Stepped;

const READABLE: EventFlags = EventFlags::IN.union(EventFlags::OUT);
const CLOSED: EventFlags = READABLE.union(EventFlags::RDHUP);

/// What comes on a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    Bytes(Vec<u8>),
    End,
    Reset,
    /// The socket takes bytes again.
    Room,
}

#[derive(Default)]
struct Socket {
    /// What came and was not received.
    inbox: VecDeque<News>,
    /// Connections that were closed on this slot. What was to come on one of them is dropped.
    life: u64,
    /// When the kernel received what was received last, by the wall clock.
    stamp: Option<Nanos>,
}

/// What is to come: when, in which order, on which connection in which of its lives.
type Coming = (Nanos, u64, usize, u64, News);

/// A server: the wire does what is common to all servers.
pub(crate) trait Server: Sized {
    fn open(_wire: &mut SimulatedWire<Self>, _slot: usize) -> Result<(), Errno> {
        Ok(())
    }

    fn send(wire: &mut SimulatedWire<Self>, slot: usize, bytes: &[u8]) -> Result<usize, Errno>;

    fn close(&mut self, _slot: usize, _now: Nanos) {}

    /// How late the lane is woken for the next news. `order` counts all news that were scheduled so
    /// far.
    fn wakes_late(&self, _order: u64) -> Nanos {
        Nanos::ZERO
    }

    /// When the lane runs first; it was to start at 0.
    fn begins(&self) -> Nanos {
        Nanos::ZERO
    }

    /// The lane has been woken.
    fn woken(&mut self, _clock: &Stepped) {}
}

pub(crate) struct SimulatedWire<S> {
    pub(crate) clock: Stepped,
    pub(crate) server: S,
    sockets: Vec<Socket>,
    coming: BinaryHeap<Reverse<Coming>>,
    order: u64,
}

impl<S> SimulatedWire<S> {
    /// Schedules `news` on `slot`, `after` this long.
    pub(crate) fn comes(&mut self, after: Nanos, slot: usize, news: News) {
        self.order += 1;
        self.coming.push(Reverse((
            self.clock.now() + after,
            self.order,
            slot,
            self.sockets[slot].life,
            news,
        )));
    }
}

impl<S: Server> ConnectionDriver for SimulatedWire<S> {
    fn open(&mut self, slot: usize) -> Result<(), Errno> {
        S::open(self, slot)
    }

    fn is_connected(&self, _slot: usize) -> bool {
        true
    }

    fn has_unasked(&self, slot: usize) -> bool {
        !self.sockets[slot].inbox.is_empty()
    }

    fn local_port(&self, slot: usize) -> Option<u16> {
        Some(1000 + slot as u16)
    }

    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>) {
        events.clear();
        let until = self.clock.now() + at_most;
        let next = self.coming.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at);
        let woken = if next < until { next + self.server.wakes_late(self.order) } else { until };
        self.clock.set(woken.max(self.clock.now()));
        self.server.woken(&self.clock);
        let now = self.clock.now();
        let wall = self.clock.wall();
        while self.coming.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((at, _, slot, life, news))) = self.coming.pop() else { break };
            let socket = &mut self.sockets[slot];
            if life != socket.life {
                continue;
            }
            let flags = match news {
                News::Room => EventFlags::OUT,
                News::Bytes(_) => READABLE,
                News::End | News::Reset => CLOSED,
            };
            if matches!(news, News::Bytes(_)) {
                socket.stamp = Some(wall - (now - at));
            }
            if news != News::Room {
                socket.inbox.push_back(news);
            }
            match events.iter_mut().find(|event| event.slot == slot as u32) {
                Some(event) => event.flags |= flags,
                None => events.push(ConnectionEvent { slot: slot as u32, flags }),
            }
        }
    }

    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, Errno> {
        let inbox = &mut self.sockets[slot].inbox;
        match inbox.front() {
            None => return Err(Errno::AGAIN),
            Some(News::Reset) => return Err(Errno::CONNRESET),
            Some(News::End | News::Room) => return Ok(0),
            Some(News::Bytes(_)) => {}
        }
        let mut n = 0;
        // A stream has no boundaries: all pieces that came are read as one.
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

    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
        S::send(self, slot, bytes)
    }

    fn close(&mut self, slot: usize) {
        self.sockets[slot].inbox.clear();
        self.sockets[slot].life += 1;
        self.server.close(slot, self.clock.now());
    }
}

/// Runs one lane on this server to its end, or interrupts it in its first turn. Returns what it
/// recorded, and its journal if that `is_kept`.
pub(crate) fn run<S: Server>(
    spec: &LoadSpec,
    server: S,
    is_kept: bool,
    interrupt: bool,
) -> (LaneOutcome, Vec<RequestRecord>) {
    let clock = Stepped::at(server.begins());
    let sockets = (0..spec.load.connections).map(|_| Socket::default()).collect();
    let wire = SimulatedWire {
        clock: clock.clone(),
        server,
        sockets,
        coming: BinaryHeap::new(),
        order: 0,
    };
    let (journal, records) = sync_channel(1000);
    let journal = is_kept.then_some(journal);
    let end = Lane::new(spec, spec.shares()[0], clock, wire, Nanos::ZERO, journal)
        .run(&AtomicBool::new(interrupt), &LaneProgress::default());
    (end, records.iter().flatten().collect())
}
