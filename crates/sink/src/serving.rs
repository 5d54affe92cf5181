//! A loop: a poller, the pool and the connections, in one thread. One turn waits, answers what is due, reads what came,
//! and answers again; each request of a turn arrives at the instant at which the clock was last looked at.
//!
//! It starts no thread and decides nothing about HTTP. What stays true: a connection is registered once, nothing is
//! allocated per request, no client can make a turn longer than one read of each connection, and loops share nothing
//! but the number of the next request.

mod accepting;
mod answering;

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Receiver;

use model::{Clock, Nanos};
use poller::{Event, EventFlags, Poller};
use rustix::fd::OwnedFd;
use rustix::thread::set_current_timer_slack;
use rustls::ServerConfig;

use crate::connection::{Connection, Phase};
use crate::connections::{Connections, Key};
use crate::delay::DelayLaw;
use crate::faults::Faults;
use crate::head::{Ending, Memo};
use crate::listen::Listen;
use crate::listener::Listener;
use crate::mail::{Letter, Mailbox};
use crate::response::Answers;
use crate::slots::SlotPool;
use crate::{SinkError, SinkLedger, SinkSettings, tls};

/// The longest wait of a turn: how often the stop flag is looked at, and accepting tried again.
const LONGEST_WAIT: Nanos = Nanos::from_millis(100);
/// How long requests that are in the pool when the sink is stopped may still take.
const GRACE: Nanos = Nanos::from_secs(2);
/// How long a client that was refused may take to read why.
const LINGER: Nanos = Nanos::from_secs(1);
/// Events a turn.
const EVENTS: usize = 1024;
/// Connections accepted a turn.
const ACCEPTS: usize = 256;
/// The one buffer that all connections are read into.
const BUFFER_BYTES: usize = 64 * 1024;

/// The name of the eventfd that ends a wait, among the events. The listeners' are below it, by their places. No
/// connection's key is as high: it would be nearly the 2^32th of its place.
const WAKE: u64 = u64::MAX;
/// Listeners, at most.
const MOST_LISTENERS: u64 = 1 << 16;

/// A listener as a loop has it.
#[derive(Debug)]
struct Listening {
    listener: Listener,
    /// It may have more: edges are told once.
    may_accept: bool,
    /// For a listener that speaks TLS.
    tls: Option<Arc<ServerConfig>>,
}

/// A client that waits for the ledger of all loops.
#[derive(Debug)]
struct Inquiry {
    number: u64,
    key: Key,
    ending: Ending,
    bodiless: bool,
    /// Loops that have not answered.
    missing: usize,
    sum: SinkLedger,
}

/// A loop that listens, and serves while it is run.
#[derive(Debug)]
pub(crate) struct Serving<C> {
    clock: C,
    /// When the sink started, by the clock.
    started: Nanos,
    /// What the start was on the clock that processes share.
    shared: Nanos,
    /// When the clock was last looked at, since the start.
    now: Nanos,
    /// Requests that came at `now`, and are not in the ledger's arrivals.
    arrived: u64,
    /// This loop among all, from 0.
    number: u32,
    loops: u32,
    /// The number of the next request.
    requests: Arc<AtomicU64>,
    seed: u64,
    delay: DelayLaw,
    /// Those that hit requests, if any does.
    faults: Option<Faults>,
    close_after: Option<u32>,
    spin: Nanos,
    /// Time between two accepts.
    accept_gap: Nanos,
    next_accept: Nanos,
    poller: Poller,
    wake: Arc<OwnedFd>,
    mailbox: Mailbox,
    letters: Receiver<Letter>,
    has_mail: bool,
    peers: Vec<Mailbox>,
    inquiries: Vec<Inquiry>,
    inquiries_made: u64,
    /// None once the sink stops.
    listeners: Vec<Listening>,
    next_listener: usize,
    stopping: bool,
    /// The kernel could not accept: another try at once would fail, too.
    cannot_accept: bool,
    connections: Connections,
    pool: SlotPool,
    answers: Answers,
    ledger: SinkLedger,
    memo: Memo,
    buffer: Box<[u8]>,
    /// Connections that may have more to read.
    again: Vec<Key>,
    /// Room for the next turn's.
    again_room: Vec<Key>,
    /// Connections that are closed at an instant, in its order.
    leaving: VecDeque<(Nanos, Key)>,
}

/// All loops of a sink, and where it listens, with the ports that it really has.
pub(crate) type Opened<C> = (Vec<Serving<C>>, Vec<Listen>);

impl<C: Clock + Clone> Serving<C> {
    /// Listens, for all loops. What cannot work later is tried here, so that [`Serving::run`] has no errors.
    pub(crate) fn open_all(settings: &SinkSettings, clock: &C) -> Result<Opened<C>, SinkError> {
        settings.check()?;
        let speaks_tls = settings.listen.iter().any(|listen| listen.tls);
        let tls = speaks_tls.then(|| tls::configure(settings.pem.as_ref(), settings.names())).transpose()?;
        let requests = Arc::new(AtomicU64::new(0));
        let started = clock.now();
        let mut loops: Vec<Serving<C>> = (0..settings.loops)
            .map(|number| Serving::open(settings, clock.clone(), started, number, Arc::clone(&requests)))
            .collect::<Result<_, _>>()?;
        let mut places = Vec::new();
        for listen in &settings.listen {
            let listeners = Listener::open_all(listen, settings.backlog, settings.loops)?;
            places.extend(listeners.first().map(|listener| listener.at().clone()));
            for (serving, listener) in loops.iter_mut().zip(listeners) {
                serving.listen(listener, tls.as_ref().filter(|_| listen.tls))?;
            }
        }
        let mailboxes: Vec<_> = loops.iter().map(|serving| serving.mailbox.clone()).collect();
        for (number, serving) in loops.iter_mut().enumerate() {
            let others = mailboxes.iter().enumerate().filter(|(other, _)| *other != number);
            serving.peers = others.map(|(_, mailbox)| mailbox.clone()).collect();
        }
        Ok((loops, places))
    }

    fn open(
        settings: &SinkSettings,
        clock: C,
        started: Nanos,
        number: u32,
        requests: Arc<AtomicU64>,
    ) -> Result<Serving<C>, SinkError> {
        let loops = settings.loops;
        let failed = SinkError::of("wait for connections");
        let poller = Poller::new().map_err(&failed)?;
        let (mailbox, letters, wake) = Mailbox::new()?;
        poller.add(&wake, WAKE, EventFlags::IN | EventFlags::ET).map_err(&failed)?;
        // Each loop accepts its part of the rate, and they take turns.
        let gap = settings.accept_rate.map_or(0.0, |rate| f64::from(loops) / rate.per_second());
        let accept_gap = Nanos::from_secs_f64(gap);
        let workers = if loops > 1 { number..number + 1 } else { 0..settings.workers() };
        let shared = shared(&clock, started);
        Ok(Serving {
            clock,
            started,
            shared,
            now: Nanos::ZERO,
            arrived: 0,
            number,
            loops,
            requests,
            seed: settings.seed,
            delay: settings.delay,
            faults: settings.faults.hit_requests().then(|| settings.faults.clone()),
            close_after: settings.faults.close_after,
            spin: settings.spin,
            accept_gap,
            next_accept: accept_gap / u64::from(loops) * u64::from(number),
            poller,
            wake,
            mailbox,
            letters,
            has_mail: false,
            peers: Vec::new(),
            inquiries: Vec::new(),
            inquiries_made: 0,
            listeners: Vec::new(),
            next_listener: 0,
            stopping: false,
            cannot_accept: false,
            connections: Connections::default(),
            pool: SlotPool::new(settings, number),
            answers: Answers::render(settings, workers),
            ledger: SinkLedger::new(settings.workers()),
            memo: Memo::default(),
            buffer: vec![0; BUFFER_BYTES].into(),
            again: Vec::new(),
            again_room: Vec::new(),
            leaving: VecDeque::new(),
        })
    }

    /// Where letters to this loop are put.
    pub(crate) fn mailbox(&self) -> Mailbox {
        self.mailbox.clone()
    }

    /// The counts of this loop now.
    fn ledger(&self) -> SinkLedger {
        let mut ledger = SinkLedger { waiting: self.pool.waiting(), busy: self.pool.busy(), ..self.ledger.clone() };
        ledger.arrivals.record(self.now, self.arrived);
        ledger.of_thread(self.number, self.loops)
    }

    /// Serves until `should_stop`, which is asked every turn and thus at least every 100 ms; then until what is in the
    /// pool is answered, or two seconds. Gives the counts of this loop at the end.
    pub(crate) fn run(mut self, should_stop: impl Fn() -> bool) -> SinkLedger {
        // The default slack lets the kernel end a wait 50 us late. Where this fails, answers are that much later.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let mut events = Vec::with_capacity(EVENTS);
        while !should_stop() {
            self.turn(&mut events, Nanos::MAX);
        }
        self.close_the_idle();
        let end = self.time().saturating_add(GRACE);
        while self.owes_answers(end) && self.now < end {
            self.turn(&mut events, end);
        }
        let _ = set_current_timer_slack(None);
        self.ledger()
    }

    /// Time since the start.
    fn time(&self) -> Nanos {
        self.clock.now().saturating_sub(self.started)
    }

    /// One wait, not beyond `end`, and all that it brought.
    fn turn(&mut self, events: &mut Vec<Event>, end: Nanos) {
        let wait = self.wait_for(end);
        self.poller.wait(wait, events);
        self.look_at_the_clock();
        self.answer_the_due();
        let room = std::mem::take(&mut self.again_room);
        let mut again = std::mem::replace(&mut self.again, room);
        for key in again.drain(..) {
            if let Some(connection) = self.connections.at(key) {
                connection.has_turn = false;
                self.advance(key, true);
                self.keep_up();
            }
        }
        self.again_room = again;
        for event in events {
            self.heed(event.data.u64(), event.flags);
            self.keep_up();
        }
        self.accept();
        self.answer_the_due();
        self.see_off_the_leaving();
        if std::mem::take(&mut self.has_mail) {
            self.read_mail();
        }
    }

    /// In a long turn, answers what has become due meanwhile. Where nothing is held, the clock is not looked at.
    fn keep_up(&mut self) {
        if self.pool.next_due().is_some() {
            self.look_at_the_clock();
            self.answer_the_due();
        }
    }

    fn look_at_the_clock(&mut self) {
        self.ledger.arrivals.record(self.now, std::mem::take(&mut self.arrived));
        self.now = self.time();
    }

    /// How long this turn may wait.
    fn wait_for(&self, end: Nanos) -> Nanos {
        let may_accept = self.may_accept();
        if !self.again.is_empty() || (may_accept && self.accept_gap == Nanos::ZERO) {
            return Nanos::ZERO;
        }
        let awake_from = self.pool.next_due().map(|due| due.saturating_sub(self.spin));
        let leaves = self.leaving.front().map(|(at, _)| *at);
        let accepts = may_accept.then_some(self.next_accept);
        let next = [awake_from, leaves, accepts, Some(end)].into_iter().flatten().min().unwrap_or(end);
        let wait = if next == Nanos::MAX { LONGEST_WAIT } else { next.saturating_sub(self.time()) };
        wait.min(LONGEST_WAIT)
    }

    /// One event.
    fn heed(&mut self, name: u64, flags: EventFlags) {
        if name == WAKE {
            // It says nothing but that the wait is over; read, so that the next write is an edge again.
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
            self.has_mail = true;
        } else if name >= WAKE - MOST_LISTENERS {
            if let Some(listening) = self.listeners.get_mut((WAKE - 1 - name) as usize) {
                listening.may_accept = true;
            }
        } else {
            self.heed_connection(Key::of(name), flags);
        }
    }

    fn heed_connection(&mut self, key: Key, flags: EventFlags) {
        let Some(connection) = self.connections.at(key) else { return };
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            return self.close(key);
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP) {
            connection.note_readable(flags.contains(EventFlags::RDHUP));
        }
        if flags.contains(EventFlags::OUT) && connection.has_unsent() {
            let (bytes, sent) = connection.send_rest();
            if !self.has_sent(key, bytes, sent) {
                return;
            }
        }
        self.advance(key, true);
    }

    fn read_mail(&mut self) {
        while let Ok(letter) = self.letters.try_recv() {
            match letter {
                // Where it fails nobody waits for it any more.
                Letter::Owner(owner) => drop(owner.send(self.ledger())),
                Letter::Peer(peer, inquiry) => drop(peer.put(Letter::Counts(inquiry, Box::new(self.ledger())))),
                Letter::Counts(inquiry, counts) => self.hear(inquiry, &counts),
            }
        }
    }

    fn see_off_the_leaving(&mut self) {
        while let Some((_, key)) = self.leaving.front().copied().filter(|(at, _)| *at <= self.now) {
            self.leaving.pop_front();
            self.close(key);
        }
    }

    /// No more connections and no more requests.
    fn close_the_idle(&mut self) {
        self.stopping = true;
        self.listeners.clear();
        let idle =
            |connection: &Connection| matches!(connection.phase, Phase::Reading | Phase::Asking | Phase::Lingering);
        let keys: Vec<_> = self.connections.iter().filter(|(_, c)| idle(c)).map(|(key, _)| key).collect();
        for key in keys {
            self.close(key);
        }
    }

    /// Whether a request in the pool is due by `end`, or a response is not wholly sent.
    fn owes_answers(&self, end: Nanos) -> bool {
        let writes = |connection: &Connection| matches!(connection.phase, Phase::Writing { .. });
        let due = self.pool.busy() > 0 && self.pool.next_due().is_some_and(|due| due <= end);
        due || self.connections.iter().any(|(_, connection)| writes(connection))
    }
}

/// What every connection is registered for, once and for all.
fn watched() -> EventFlags {
    EventFlags::IN | EventFlags::RDHUP | EventFlags::ET
}

/// What `instant` of the clock is on the one that processes share: by the quickest of some comparisons.
fn shared(clock: &impl Clock, instant: Nanos) -> Nanos {
    let compare = |_| {
        let (before, shared, after) = (clock.now(), clock.shared(), clock.now());
        let within = after.saturating_sub(before);
        (within, shared.saturating_sub(before + within / 2))
    };
    (0..32).map(compare).min().map_or(instant, |(_, lead)| lead + instant)
}
