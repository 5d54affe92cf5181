//! A loop: a poller, the pool and the connections, in one thread. One turn waits, sends the
//! responses that are due, reads what arrived, and sends again. Each request of a turn arrives at
//! the instant at which the clock was last read.
//!
//! It starts no thread and decides nothing about HTTP. Invariants: a connection is registered once,
//! nothing is allocated per request, no client can make a turn longer than one read of each
//! connection, and loops share only the number of the next request. A loop's ledger is locked
//! during a turn and available between turns, so a reader finds everything that was sent before.

mod answering;

use std::collections::VecDeque;
use std::mem;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use model::{Clock, Nanos};
use poller::{Event, EventFlags, Poller};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;
use rustls::{ServerConfig, ServerConnection};

use crate::connection::{
    Booking, ConnectionKey, ConnectionPhase, ConnectionTable, ResponseKind, SinkConnection,
};
use crate::ledger::LoopLedger;
use crate::listener::ListeningSocket;
use crate::request::{HeadMemo, RequestHead};
use crate::response::ResponseTable;
use crate::slots::SlotPool;
use crate::wire::ClientSocket;
use crate::{SinkError, SinkLedger, SinkSettings};

/// The longest wait of a turn; after it, the stop flag is checked and accepting retried.
const LONGEST_WAIT: Nanos = Nanos::from_millis(50);
/// How long requests in the pool may still take when the sink is stopped.
const GRACE: Nanos = Nanos::from_secs(2);
/// How long a refused client may take to read the reason.
const LINGER: Nanos = Nanos::from_secs(1);
/// Events per turn.
const EVENTS: usize = 1024;
/// Connections accepted per turn.
const ACCEPTS: usize = 256;
/// The buffer that all connections are read into.
const BUFFER_BYTES: usize = 64 * 1024;

/// The event id of the first listener; the others count down from it. No connection's key is that
/// high: its place in the table would have to be reused nearly 2^32 times.
const FIRST_LISTENER: u64 = u64::MAX;
/// Listeners, at most.
const MOST_LISTENERS: u64 = 1 << 16;

/// A loop that listens, and serves while it runs.
#[derive(Debug)]
pub(crate) struct ServingLoop<C> {
    clock: C,
    /// When the sink started, by the clock.
    started: Nanos,
    /// The start on the clock that all processes share.
    shared: Nanos,
    /// When the clock was last read, since the start.
    now: Nanos,
    /// Requests that arrived at `now` and are not in the ledger's arrivals yet.
    arrived: u64,
    /// The number of the next request.
    requests: Arc<AtomicU64>,
    settings: SinkSettings,
    /// Time between two accepts.
    accept_gap: Nanos,
    next_accept: Nanos,
    poller: Poller,
    /// The clients that wait for the sum of all ledgers.
    inquiries: Vec<(ConnectionKey, RequestHead)>,
    /// Empty once the sink is stopping.
    listeners: Vec<ListeningSocket>,
    next_listener: usize,
    stopping: bool,
    /// The kernel could not accept; an immediate retry would fail, too.
    cannot_accept: bool,
    connections: ConnectionTable,
    pool: SlotPool,
    responses: ResponseTable,
    /// Its own ledger during a turn; between turns it is in `ledgers`.
    ledger: SinkLedger,
    /// Which of the loops this is.
    number: usize,
    /// All loops' ledgers.
    ledgers: Arc<[LoopLedger]>,
    memo: HeadMemo,
    buffer: Box<[u8]>,
    /// Connections that may have more to read.
    again: Vec<ConnectionKey>,
    /// Connections to close at an instant, in order of time.
    leaving: VecDeque<(Nanos, ConnectionKey)>,
}

impl<C: Clock + Clone> ServingLoop<C> {
    /// The loop with this number, which doesn't listen yet. Everything that could fail happens here
    /// and in [`ServingLoop::listen`], so [`ServingLoop::run`] has no errors.
    pub(crate) fn new(
        settings: &SinkSettings,
        clock: C,
        started: Nanos,
        number: u32,
        requests: Arc<AtomicU64>,
        ledgers: Arc<[LoopLedger]>,
    ) -> Result<ServingLoop<C>, SinkError> {
        let loops = settings.loops;
        // Each loop accepts its share of the rate, in turn.
        let gap = settings.accept_rate.map_or(0.0, |rate| f64::from(loops) / rate.per_second());
        let accept_gap = Nanos::from_secs_f64(gap);
        let workers = if loops > 1 { number..number + 1 } else { 0..settings.workers() };
        let shared = started + clock.shared_ahead();
        Ok(ServingLoop {
            clock,
            started,
            shared,
            now: Nanos::ZERO,
            arrived: 0,
            requests,
            settings: settings.clone(),
            accept_gap,
            next_accept: accept_gap / u64::from(loops) * u64::from(number),
            poller: Poller::new().map_err(SinkError::of("wait for connections"))?,
            inquiries: Vec::new(),
            listeners: Vec::new(),
            next_listener: 0,
            stopping: false,
            cannot_accept: false,
            connections: ConnectionTable::default(),
            pool: SlotPool::new(settings, number),
            responses: ResponseTable::render(settings, workers),
            ledger: SinkLedger::default(),
            number: number as usize,
            ledgers,
            memo: HeadMemo::default(),
            buffer: vec![0; BUFFER_BYTES].into(),
            again: Vec::new(),
            leaving: VecDeque::new(),
        })
    }

    /// Serves until `stop` is set, which is checked every turn and so at least every 50 ms; then
    /// until the pool is empty, for at most two seconds.
    pub(crate) fn run(mut self, stop: &AtomicBool) {
        // With the default timer slack the kernel may end a wait 50 us late. If this fails,
        // responses are that much later.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let mut events = Vec::with_capacity(EVENTS);
        while !stop.load(Ordering::Acquire) {
            self.turn(&mut events, Nanos::MAX);
        }
        self.with_ledger(Self::close_the_idle);
        let end = self.time().saturating_add(GRACE);
        while self.owes_responses(end) && self.now < end {
            self.turn(&mut events, end);
        }
    }

    /// Does something while holding this loop's ledger.
    fn with_ledger(&mut self, act: impl FnOnce(&mut Self)) {
        let ledgers = Arc::clone(&self.ledgers);
        let mut shared = ledgers[self.number].lock().unwrap_or_else(PoisonError::into_inner);
        mem::swap(&mut self.ledger, &mut *shared);
        act(self);
        self.ledger.record_arrivals(self.now, mem::take(&mut self.arrived));
        self.ledger.waiting = self.pool.waiting();
        self.ledger.busy = self.pool.busy();
        mem::swap(&mut self.ledger, &mut *shared);
    }

    /// Time since the start.
    fn time(&self) -> Nanos {
        self.clock.now().saturating_sub(self.started)
    }

    /// Waits, at most until `end`, and handles all events.
    fn turn(&mut self, events: &mut Vec<Event>, end: Nanos) {
        let wait = self.wait_for(end);
        self.poller.wait(wait, events);
        let inquiries = mem::take(&mut self.inquiries);
        // Don't wait for another loop's ledger while holding our own.
        let sum = (!inquiries.is_empty()).then(|| SinkLedger::sum(&self.ledgers));
        self.with_ledger(|serving| {
            for (key, head) in inquiries {
                if sum.as_ref().is_some_and(|sum| serving.show_ledger(key, &head, sum)) {
                    serving.advance(key, false);
                }
            }
            serving.serve_turn(events);
        });
    }

    fn serve_turn(&mut self, events: &mut Vec<Event>) {
        self.look_at_the_clock();
        self.answer_the_due();
        // Connections that are added meanwhile wait for the next turn.
        let waiting = self.again.len();
        for at in 0..waiting {
            let key = self.again[at];
            if let Some(connection) = self.connections.at(key) {
                connection.has_turn = false;
                self.advance(key, true);
                self.keep_up();
            }
        }
        self.again.drain(..waiting);
        for event in events {
            self.handle_event(event.data.u64(), event.flags);
            self.keep_up();
        }
        self.accept();
        self.answer_the_due();
        self.close_the_lingering();
    }

    /// In a long turn, sends what has become due meanwhile. If nothing is held, the clock is not
    /// read.
    fn keep_up(&mut self) {
        if self.pool.next_due().is_some() {
            self.look_at_the_clock();
            self.answer_the_due();
        }
    }

    fn look_at_the_clock(&mut self) {
        self.ledger.record_arrivals(self.now, mem::take(&mut self.arrived));
        self.now = self.time();
    }

    /// How long this turn may wait.
    fn wait_for(&self, end: Nanos) -> Nanos {
        let may_accept = self.may_accept();
        if !self.again.is_empty()
            || !self.inquiries.is_empty()
            || (may_accept && self.accept_gap == Nanos::ZERO)
        {
            return Nanos::ZERO;
        }
        let spins_from = self.pool.next_due().map(|due| due.saturating_sub(self.settings.spin));
        let leaves = self.leaving.front().map(|(at, _)| *at);
        let accepts = may_accept.then_some(self.next_accept);
        let next =
            [spins_from, leaves, accepts, Some(end)].into_iter().flatten().min().unwrap_or(end);
        let wait = if next == Nanos::MAX { LONGEST_WAIT } else { next.saturating_sub(self.time()) };
        wait.min(LONGEST_WAIT)
    }

    /// One event, of a listener or of a connection.
    fn handle_event(&mut self, name: u64, flags: EventFlags) {
        if name > FIRST_LISTENER - MOST_LISTENERS {
            if let Some(listening) = self.listeners.get_mut((FIRST_LISTENER - name) as usize) {
                listening.may_accept = true;
            }
            return;
        }
        let key = ConnectionKey(name);
        let Some(connection) = self.connections.at(key) else { return };
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            return self.close(key);
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP) {
            connection.note_readable(flags.contains(EventFlags::RDHUP));
        }
        if flags.contains(EventFlags::OUT) && connection.socket.has_unsent() {
            let (bytes, sent) = connection.socket.send_rest();
            if !self.has_sent(key, bytes, sent) {
                return;
            }
        }
        self.advance(key, true);
    }

    fn close_the_lingering(&mut self) {
        while let Some((_, key)) = self.leaving.front().copied().filter(|(at, _)| *at <= self.now) {
            self.leaving.pop_front();
            self.close(key);
        }
    }

    /// No more connections and no more requests.
    fn close_the_idle(&mut self) {
        self.stopping = true;
        self.listeners.clear();
        let idle = |connection: &SinkConnection| {
            matches!(connection.phase, ConnectionPhase::Reading | ConnectionPhase::Lingering)
        };
        let keys: Vec<_> =
            self.connections.iter().filter(|(_, c)| idle(c)).map(|(key, _)| key).collect();
        for key in keys {
            self.close(key);
        }
    }

    /// Whether a request in the pool is due by `end`, or a response is not sent completely.
    fn owes_responses(&self, end: Nanos) -> bool {
        let writes =
            |connection: &SinkConnection| matches!(connection.phase, ConnectionPhase::Writing(..));
        let due = self.pool.busy() > 0 && self.pool.next_due().is_some_and(|due| due <= end);
        due || self.connections.iter().any(|(_, connection)| writes(connection))
    }

    /// Adds a listener.
    pub(crate) fn listen(&mut self, listener: ListeningSocket) -> Result<(), SinkError> {
        let mut flags = EventFlags::IN | EventFlags::ET;
        if listener.shared {
            flags |= EventFlags::EXCLUSIVE;
        }
        let place = self.listeners.len() as u64;
        assert!(place < MOST_LISTENERS, "there are fewer descriptors than that");
        self.poller
            .add(&listener, FIRST_LISTENER - place, flags)
            .map_err(SinkError::of("wait for connections"))?;
        self.listeners.push(listener);
        Ok(())
    }

    /// Whether a listener may have a connection that the loop would accept, now or when the rate
    /// allows.
    fn may_accept(&self) -> bool {
        !self.cannot_accept
            && self.listeners.iter().any(|listening| listening.may_accept)
            && self.pool.has_room()
    }

    /// Accepts pending connections, up to a limit.
    fn accept(&mut self) {
        self.cannot_accept = false;
        for _ in 0..ACCEPTS {
            if self.next_accept > self.now || !self.may_accept() {
                return;
            }
            // Take one from each listener in turn, so that none waits behind a busy one.
            let places = self.listeners.len();
            let turn = (0..places).map(|step| (self.next_listener + step) % places);
            let Some(place) = turn.into_iter().find(|place| self.listeners[*place].may_accept)
            else {
                return;
            };
            self.next_listener = (place + 1) % places;
            let listening = &mut self.listeners[place];
            match listening.accept() {
                Ok(socket) => {
                    let tls = listening.tls.clone();
                    // Count from the schedule, not from now, because a late turn must not lower the
                    // rate; but don't catch up on missed time.
                    let earliest = self.now.saturating_sub(self.accept_gap);
                    self.next_accept = self.next_accept.max(earliest) + self.accept_gap;
                    self.take_in(socket, tls);
                }
                Err(Errno::AGAIN) => listening.may_accept = false,
                Err(_) => {
                    self.ledger.accept_failures += 1;
                    self.cannot_accept = true;
                    return;
                }
            }
        }
    }

    fn take_in(&mut self, socket: OwnedFd, tls: Option<Arc<ServerConfig>>) {
        // TLS or the poller fail only without memory.
        let Ok(tls) = tls.map(ServerConnection::new).transpose() else {
            self.ledger.accept_failures += 1;
            return;
        };
        let key = self.connections.insert(SinkConnection::new(ClientSocket::new(socket, tls)));
        let socket = self.connections.at(key).map(|connection| &connection.socket);
        if socket.is_none_or(|socket| self.poller.add(socket, key.0, watched()).is_err()) {
            self.connections.remove(key);
            self.ledger.accept_failures += 1;
            return;
        }
        self.ledger.connections += 1;
        self.ledger.open_connections += 1;
        self.pool.open(key);
        if self.pool.limits_accepts() {
            // Its request may already be there and take the slot that the next connection would
            // need.
            if let Some(connection) = self.connections.at(key) {
                connection.note_readable(false);
            }
            self.advance(key, true);
        }
    }

    /// Whether a client waits to be accepted.
    fn has_pending_clients(&self) -> bool {
        self.listeners.iter().any(ListeningSocket::has_pending)
    }

    /// Removes a connection. Its request in the pool, if any, stays there.
    fn close(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.remove(key) else { return };
        self.pool.close(self.now, key);
        self.ledger.open_connections -= u64::from(connection.booking != Booking::Onlooker);
        if let ConnectionPhase::Writing(_, ResponseKind::Whole) = connection.phase {
            self.ledger.abandoned += 1;
        }
    }
}

/// The events that every connection is registered for.
fn watched() -> EventFlags {
    EventFlags::IN | EventFlags::RDHUP | EventFlags::ET
}
