//! The loop: epoll, the pool and the connections, in one thread. One turn waits, answers what is due, reads what came,
//! and answers again; each request of a turn arrives at the instant at which the wait ended.
//!
//! It starts no thread and decides nothing about HTTP. What stays true: a connection is registered once, nothing is
//! allocated per request, and no client can make a turn longer than one read of each connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use model::{Clock, Nanos};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

use crate::connection::{Booking, Connection, Phase, Sent, Step, Then};
use crate::connections::{Connections, Key};
use crate::head::{Ending, Memo, Refusal};
use crate::listener::{Accepted, Listener};
use crate::request::Request;
use crate::response::{self, Answers};
use crate::routes::Route;
use crate::slots::{Finished, Slots};
use crate::{Ledger, Settings, SinkError};

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

/// The listener's name among the events. No connection's key is as high: it would be the 2^32th of its place.
const LISTENER: u64 = u64::MAX;
/// The name of the eventfd that ends a wait.
const WAKE: u64 = u64::MAX - 1;

/// A sink that listens, and serves while it is run.
#[derive(Debug)]
pub(crate) struct Serving<C> {
    clock: C,
    /// The instant of this turn.
    now: Nanos,
    delay: Nanos,
    epoll: OwnedFd,
    wake: OwnedFd,
    address: SocketAddr,
    /// Gone once the sink stops.
    listener: Option<Listener>,
    /// The listener may have more: edges are told once.
    may_accept: bool,
    /// The kernel could not accept: another try at once would fail, too.
    cannot_accept: bool,
    connections: Connections,
    slots: Slots<Key>,
    answers: Answers,
    ledger: Ledger,
    memo: Memo,
    buffer: Box<[u8]>,
    /// Connections that may have more to read.
    again: Vec<Key>,
    /// Room for the next turn's.
    again_room: Vec<Key>,
    /// Connections that are closed at an instant, in its order.
    leaving: VecDeque<(Nanos, Key)>,
}

impl<C: Clock> Serving<C> {
    /// Listens. What cannot work later is tried here, so that [`Serving::run`] has no errors.
    pub(crate) fn open(settings: Settings, clock: C) -> Result<Serving<C>, SinkError> {
        settings.check()?;
        let Settings { listen, workers, threads, delay, worker_header } = settings;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(SinkError::of("open an epoll set"))?;
        let wake =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(SinkError::of("open an eventfd"))?;
        let listener = Listener::open(listen)?;
        let failed = SinkError::of("wait for connections");
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), edges).map_err(&failed)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), edges).map_err(&failed)?;
        let mut events = Vec::with_capacity(1);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&at_once)).map_err(&failed)?;
        Ok(Serving {
            now: clock.now(),
            clock,
            delay,
            epoll,
            wake,
            address: listener.address(),
            listener: Some(listener),
            may_accept: true,
            cannot_accept: false,
            connections: Connections::default(),
            slots: Slots::new(workers, threads),
            answers: Answers::render(workers, &worker_header),
            ledger: Ledger::new(workers),
            memo: Memo::default(),
            buffer: vec![0; BUFFER_BYTES].into(),
            again: Vec::new(),
            again_room: Vec::new(),
            leaving: VecDeque::new(),
        })
    }

    /// Where it listens, with the port that it really has.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// An eventfd: written to, it ends the wait of [`Serving::run`].
    pub(crate) fn wake(&self) -> Result<OwnedFd, SinkError> {
        rustix::io::fcntl_dupfd_cloexec(&self.wake, 0).map_err(SinkError::of("copy an eventfd"))
    }

    /// The counts now.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger { waiting: self.slots.waiting(), busy: self.slots.busy(), ..self.ledger.clone() }
    }

    /// Serves until `should_stop`, which is asked every turn and thus at least every 100 ms; then until what is in the
    /// pool is answered, or two seconds. Gives the counts at the end. `each_turn` is told the sink after every turn.
    pub(crate) fn run(mut self, should_stop: impl Fn() -> bool, each_turn: impl Fn(&Serving<C>)) -> Ledger {
        // The default slack lets the kernel end a wait 50 us late. Where this fails, answers are that much later.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let mut events = Vec::with_capacity(EVENTS);
        while !should_stop() {
            self.turn(&mut events, Nanos::MAX);
            each_turn(&self);
        }
        self.close_the_idle();
        let end = self.clock.now().saturating_add(GRACE);
        while self.owes_answers(end) && self.now < end {
            self.turn(&mut events, end);
            each_turn(&self);
        }
        let _ = set_current_timer_slack(None);
        self.ledger()
    }

    /// One wait, not beyond `end`, and all that it brought.
    fn turn(&mut self, events: &mut Vec<epoll::Event>, end: Nanos) {
        let wait = self.wait_for(end);
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => panic!("epoll_pwait2 worked when the sink was opened, and now: {errno}"),
        }
        self.now = self.clock.now();
        self.answer_the_due();
        let room = std::mem::take(&mut self.again_room);
        let mut again = std::mem::replace(&mut self.again, room);
        for key in again.drain(..) {
            if let Some(connection) = self.connections.at(key) {
                connection.has_turn = false;
                self.advance(key, true);
            }
        }
        self.again_room = again;
        for event in events {
            self.heed(event.data.u64(), event.flags);
        }
        self.accept();
        self.answer_the_due();
        self.see_off_the_leaving();
    }

    /// How long this turn may wait.
    fn wait_for(&self, end: Nanos) -> Timespec {
        let more_to_do = !self.again.is_empty() || (self.may_accept && !self.cannot_accept);
        if more_to_do {
            return Timespec { tv_sec: 0, tv_nsec: 0 };
        }
        let leaves = self.leaving.front().map(|(at, _)| *at);
        let next = [self.slots.next_due(), leaves, Some(end)].into_iter().flatten().min().unwrap_or(end);
        let wait = if next == Nanos::MAX { LONGEST_WAIT } else { next.saturating_sub(self.clock.now()) };
        let wait = Duration::from(wait.min(LONGEST_WAIT));
        // Less than a second.
        Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) }
    }

    /// One event.
    fn heed(&mut self, name: u64, flags: epoll::EventFlags) {
        match name {
            LISTENER => self.may_accept = true,
            WAKE => {
                // It says nothing but that the wait is over; read, so that the next write is an edge again.
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
            }
            number => self.heed_connection(Key::of(number), flags),
        }
    }

    fn heed_connection(&mut self, key: Key, flags: epoll::EventFlags) {
        let Some(connection) = self.connections.at(key) else { return };
        if flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP) {
            return self.close(key);
        }
        if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::RDHUP) {
            connection.note_readable(flags.contains(epoll::EventFlags::RDHUP));
        }
        if flags.contains(epoll::EventFlags::OUT) && connection.has_unsent() {
            let (bytes, sent) = connection.send_rest();
            if !self.has_sent(key, bytes, sent) {
                return;
            }
        }
        self.advance(key, true);
    }

    /// Accepts what is there, up to a limit.
    fn accept(&mut self) {
        let Some(listener) = self.listener.as_ref().filter(|_| self.may_accept) else { return };
        self.cannot_accept = false;
        for _ in 0..ACCEPTS {
            match listener.accept() {
                Accepted::Connection(socket) => {
                    let data = epoll::EventData::new_u64(self.connections.next_key().number());
                    if epoll::add(&self.epoll, &socket, data, watched()).is_err() {
                        self.ledger.accept_failures += 1;
                        continue;
                    }
                    self.connections.insert(Connection::new(socket));
                    self.ledger.connections += 1;
                    self.ledger.open_connections += 1;
                }
                Accepted::Nobody => {
                    self.may_accept = false;
                    return;
                }
                Accepted::Failed => {
                    self.ledger.accept_failures += 1;
                    self.cannot_accept = true;
                    return;
                }
            }
        }
    }

    /// Does all that a connection needs. Reads from the kernel only if `may_receive`.
    fn advance(&mut self, key: Key, mut may_receive: bool) {
        while let Some(connection) = self.connections.at(key) {
            match connection.step(&mut self.buffer, &mut self.memo, &mut may_receive) {
                Step::Wait => return,
                Step::Again => {
                    if !std::mem::replace(&mut connection.has_turn, true) {
                        self.again.push(key);
                    }
                    return;
                }
                Step::Gone => return self.close(key),
                Step::Continue => {
                    let (bytes, sent) = connection.send(response::CONTINUE);
                    self.ledger.sent_bytes += bytes as u64;
                    match sent {
                        Sent::All => {}
                        Sent::Part => self.watch_for_room(key),
                        Sent::Gone => return self.close(key),
                    }
                }
                Step::Refuse(refusal) => return self.refuse(key, refusal),
                Step::Serve(request) => {
                    if !self.serve(key, request) {
                        return;
                    }
                }
            }
        }
    }

    /// Takes a request: into the pool, or answers it at once. Whether the connection may go on to its next.
    fn serve(&mut self, key: Key, request: Request) -> bool {
        let Request { head, bytes } = request;
        let Some(connection) = self.connections.at(key) else { return false };
        let service = match head.route {
            Route::Ledger => return self.show_ledger(key, head.ending, head.bodiless_answer),
            Route::Sleep(duration) => duration,
            Route::Usual => self.delay,
        };
        if std::mem::replace(&mut connection.booking, Booking::Client) == Booking::Onlooker {
            self.ledger.connections += 1;
            self.ledger.open_connections += 1;
        }
        connection.phase = Phase::Working { ending: head.ending, bodiless: head.bodiless_answer };
        self.ledger.requests += 1;
        self.ledger.received_bytes += bytes;
        self.slots.arrive(self.now, key, service);
        false
    }

    /// Answers a request for the ledger, which leaves no trace in it.
    fn show_ledger(&mut self, key: Key, ending: Ending, bodiless: bool) -> bool {
        let Some(connection) = self.connections.at(key) else { return false };
        if connection.booking == Booking::New {
            connection.booking = Booking::Onlooker;
            self.ledger.connections -= 1;
            self.ledger.open_connections -= 1;
        }
        let response = response::of_ledger(&self.ledger(), ending, bodiless);
        let Some(connection) = self.connections.at(key) else { return false };
        let then = if ending == Ending::Close { Then::Close } else { Then::Read };
        connection.phase = Phase::Writing { then, counted: false };
        let (bytes, sent) = connection.send(&response);
        self.has_sent(key, bytes, sent)
    }

    fn refuse(&mut self, key: Key, refusal: Refusal) {
        let Some(connection) = self.connections.at(key) else { return };
        self.ledger.bad_requests += 1;
        self.leaving.push_back((self.now.saturating_add(LINGER), key));
        connection.phase = Phase::Writing { then: Then::Linger, counted: false };
        let (bytes, sent) = connection.send(&response::of_refusal(refusal));
        if self.has_sent(key, bytes, sent) {
            self.advance(key, false);
        }
    }

    /// Answers all that is due by now, and what its connections sent ahead.
    fn answer_the_due(&mut self) {
        while let Some(finished) = self.slots.finish(self.now) {
            self.answer(finished);
        }
    }

    fn answer(&mut self, finished: Finished<Key>) {
        let Finished { request: key, worker, .. } = finished;
        self.ledger.per_worker[worker as usize] += 1;
        let Some(connection) = self.connections.at(key) else {
            self.ledger.abandoned += 1;
            return;
        };
        let Phase::Working { ending, bodiless } = connection.phase else {
            unreachable!("a connection that is still open waits for its answer")
        };
        let ending = if self.listener.is_some() { ending } else { Ending::Close };
        let then = if ending == Ending::Close { Then::Close } else { Then::Read };
        connection.phase = Phase::Writing { then, counted: true };
        let (bytes, sent) = connection.send(self.answers.of(worker, ending, bodiless));
        if self.has_sent(key, bytes, sent) {
            self.advance(key, false);
        }
    }

    /// Books what the kernel took of a response. Whether the connection goes on.
    fn has_sent(&mut self, key: Key, bytes: usize, sent: Sent) -> bool {
        let Some(connection) = self.connections.at(key) else { return false };
        let Phase::Writing { then, counted } = connection.phase else {
            // An interim response, late.
            self.ledger.sent_bytes += bytes as u64;
            if sent == Sent::Gone {
                self.close(key);
            }
            return sent == Sent::All;
        };
        if counted {
            self.ledger.sent_bytes += bytes as u64;
        }
        match sent {
            Sent::All => {
                self.ledger.answers += u64::from(counted);
                self.after_response(key, then)
            }
            Sent::Part => {
                self.watch_for_room(key);
                false
            }
            Sent::Gone => {
                self.close(key);
                false
            }
        }
    }

    /// What follows a response. Whether the connection goes on.
    fn after_response(&mut self, key: Key, then: Then) -> bool {
        let stopping = self.listener.is_none();
        let Some(connection) = self.connections.at(key) else { return false };
        connection.phase = Phase::Reading;
        match then {
            Then::Read if !stopping => true,
            Then::Read | Then::Close if !connection.may_hold_input() => {
                self.close(key);
                false
            }
            Then::Read | Then::Close => {
                connection.linger();
                self.leaving.push_back((self.now.saturating_add(LINGER), key));
                true
            }
            Then::Linger => {
                connection.linger();
                true
            }
        }
    }

    /// The kernel took a part only: it is to say when it takes more.
    fn watch_for_room(&mut self, key: Key) {
        let Some(connection) = self.connections.at(key) else { return };
        if std::mem::replace(&mut connection.told_of_room, true) {
            return;
        }
        self.ledger.stalled += 1;
        let data = epoll::EventData::new_u64(key.number());
        if epoll::modify(&self.epoll, connection.as_fd(), data, watched() | epoll::EventFlags::OUT).is_err() {
            self.close(key);
        }
    }

    /// Forgets a connection. A request of it that is in the pool stays there.
    fn close(&mut self, key: Key) {
        let Some(connection) = self.connections.remove(key) else { return };
        self.ledger.open_connections -= u64::from(connection.booking != Booking::Onlooker);
        if let Phase::Writing { counted: true, .. } = connection.phase {
            self.ledger.abandoned += 1;
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
        self.listener = None;
        self.may_accept = false;
        let idle = |connection: &Connection| connection.phase == Phase::Reading;
        let keys: Vec<_> = self.connections.iter().filter(|(_, c)| idle(c)).map(|(key, _)| key).collect();
        for key in keys {
            self.close(key);
        }
    }

    /// Whether a request in the pool is due by `end`, or a response is not wholly sent.
    fn owes_answers(&self, end: Nanos) -> bool {
        let writes = |connection: &Connection| matches!(connection.phase, Phase::Writing { .. });
        self.slots.next_due().is_some_and(|due| due <= end)
            || self.connections.iter().any(|(_, connection)| writes(connection))
    }
}

/// What every connection is registered for, once and for all.
fn watched() -> epoll::EventFlags {
    epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET
}
