//! Slow clients beside a load: they send a request a few bytes at a time and read its response as
//! slowly, each on a connection of its own, and then open the next one.
//!
//! One thread drives all of them, apart from the lanes; they are in none of the lanes' figures. A
//! client has a turn every tenth of a second, or less often where its rate is below ten bytes a
//! second, and sends or reads no more in a turn than its rate allows. What it does not read stays
//! in the kernel's buffers, which are kept small on our side so that a server with a long response
//! notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use model::{Clock, Nanos, Outcome, RequestMix, SlowClientCounts, SlowClients, SystemClock};
use rustix::io::Errno;

use crate::EngineError;
use crate::head::HeadCache;
use crate::response::ResponseReader;
use crate::thread::ensure_descriptors;
use crate::transport::Transport;
use crate::wire::{ConnectionDriver, ConnectionEvent, SocketDriver, would_block};
use crate::wire_tls::TlsDriver;

/// A client's turn, unless its rate is below one byte in that time.
const TURN: Nanos = Nanos::from_millis(100);
/// Before the load starts, the clients have this long to open their connections: a server that does
/// not accept them by then is loaded all the same.
const LONGEST_START: Nanos = Nanos::from_secs(2);
/// After a connect that failed, a client waits this long.
const PAUSE: Nanos = Nanos::from_secs(1);
/// The longest wait before the end of the load is noticed.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);
/// Bytes received in one go.
const BUFFER: usize = 16 * 1024;
/// Our receive buffer in the kernel, in bytes. (The kernel doubles it, and has a least size.)
const RECEIVE_BUFFER: usize = 4096;

/// The slow clients of a load, with nothing left to decide.
#[derive(Clone, Debug)]
pub struct SlowLoad {
    /// How many, and how slow.
    pub settings: SlowClients,
    /// Where to connect.
    pub transport: Transport,
    /// What they send, one after the other; never empty.
    pub requests: Arc<RequestMix>,
}

impl SlowLoad {
    /// Drives the clients until `over` is raised. `in_place` is told once all of them have opened
    /// their connection, or were given the time for it. `others` is how many connections the load
    /// has besides.
    ///
    /// # Errors
    /// If the limit of open files is too low, or the kernel gives no epoll instance.
    pub fn drive(
        &self,
        clock: &SystemClock,
        others: u32,
        in_place: &Sender<()>,
        over: &AtomicBool,
    ) -> Result<SlowClientCounts, EngineError> {
        let clients = self.settings.clients;
        ensure_descriptors(u64::from(clients) + u64::from(others))?;
        let sockets =
            SocketDriver::new(&self.transport, 0, clients as usize, model::Timestamps::User)
                .map_err(|errno| EngineError(format!("slow clients cannot be set up: {errno}")))?
                .with_receive_buffer(RECEIVE_BUFFER);
        Ok(match self.transport.tls.clone() {
            Some(tls) => Crowd::new(self, *clock, TlsDriver::new(sockets, tls)).run(in_place, over),
            None => Crowd::new(self, *clock, sockets).run(in_place, over),
        })
    }
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowStage {
    /// It opens a connection at its next turn.
    Away,
    /// It sends, and has sent this many bytes; none before the connection is open.
    Sending(usize),
    /// It reads the response.
    Reading,
}

struct SlowClient {
    stage: SlowStage,
    /// When its next turn is.
    turn: Nanos,
    /// Which of the requests it sends.
    request: usize,
    reader: ResponseReader,
    /// Whether it has opened its first connection, or failed to.
    has_begun: bool,
}

/// How a connection ended.
#[derive(Clone, Copy)]
enum SlowEnd {
    Response(u16),
    Closed,
    NotHttp,
}

/// All slow clients of a load, over one wire.
struct Crowd<'a, C, W> {
    load: &'a SlowLoad,
    clock: C,
    wire: W,
    clients: Vec<SlowClient>,
    heads: HeadCache,
    /// Connections so far, opened or not.
    begun: usize,
    counts: SlowClientCounts,
    /// News of the connections, which nobody looks at: clients try in their turns.
    events: Vec<ConnectionEvent>,
    buffer: Vec<u8>,
}

impl<'a, C: Clock, W: ConnectionDriver> Crowd<'a, C, W> {
    fn new(load: &'a SlowLoad, clock: C, wire: W) -> Self {
        let now = clock.now();
        let number = u64::from(load.settings.clients);
        let client = |n: u64| SlowClient {
            stage: SlowStage::Away,
            // Spread, so that they do not all have their turn at once.
            turn: now + TURN * n / number,
            request: 0,
            reader: ResponseReader::default(),
            has_begun: false,
        };
        Crowd {
            load,
            clock,
            wire,
            clients: (0..number).map(client).collect(),
            heads: HeadCache::new(""),
            begun: 0,
            counts: SlowClientCounts::default(),
            events: Vec::new(),
            buffer: vec![0; BUFFER],
        }
    }

    fn run(mut self, in_place: &Sender<()>, over: &AtomicBool) -> SlowClientCounts {
        let latest_start = self.clock.now() + LONGEST_START;
        let mut is_in_place = false;
        while !over.load(Ordering::Relaxed) {
            self.take_turns();
            if !is_in_place && (self.all_have_begun() || self.clock.now() >= latest_start) {
                is_in_place = true;
                // If the receiver is gone, the load could not start.
                let _ = in_place.send(());
            }
        }
        self.finish()
    }

    /// Gives a turn to each client whose time has come, and waits for the next one's.
    fn take_turns(&mut self) {
        let now = self.clock.now();
        for slot in 0..self.clients.len() {
            if self.clients[slot].turn <= now {
                self.take_turn(slot, now);
            }
        }
        let next = self.clients.iter().map(|client| client.turn).min().unwrap_or(Nanos::MAX);
        let at_most = next.saturating_sub(self.clock.now()).min(POLL_INTERVAL);
        self.wire.wait(at_most, &mut self.events);
    }

    /// Whether each client has opened its first connection, or failed to.
    fn all_have_begun(&self) -> bool {
        self.clients.iter().all(|client| client.has_begun)
    }

    /// Closes what is still open, and says what became of all connections.
    fn finish(mut self) -> SlowClientCounts {
        for slot in 0..self.clients.len() {
            if self.is_open(slot) {
                self.counts.unfinished += 1;
            }
            self.wire.close(slot);
        }
        self.counts
    }

    fn is_open(&self, slot: usize) -> bool {
        !matches!(self.clients[slot].stage, SlowStage::Away | SlowStage::Sending(0))
    }

    fn take_turn(&mut self, slot: usize, now: Nanos) {
        let SlowClients { upload, read, .. } = self.load.settings;
        let rate = match self.clients[slot].stage {
            SlowStage::Away => {
                self.open(slot, now);
                upload
            }
            SlowStage::Sending(_) => {
                self.send(slot, now);
                upload
            }
            SlowStage::Reading => {
                self.read(slot);
                read
            }
        };
        let client = &mut self.clients[slot];
        // A client that pauses after a failed connect has set its turn itself.
        client.turn = client.turn.max(now + turn_of(rate));
    }

    fn open(&mut self, slot: usize, now: Nanos) {
        let client = &mut self.clients[slot];
        client.request = self.load.requests.index(self.begun as u64);
        client.reader.reset();
        client.reader.expect(self.load.requests.request(client.request).is_head);
        client.stage = SlowStage::Sending(0);
        self.begun += 1;
        match self.wire.open(slot) {
            Ok(()) => self.send(slot, now),
            Err(_) => self.not_opened(slot, now),
        }
    }

    fn not_opened(&mut self, slot: usize, now: Nanos) {
        self.wire.close(slot);
        self.counts.not_opened += 1;
        let client = &mut self.clients[slot];
        client.has_begun = true;
        client.stage = SlowStage::Away;
        client.turn = now + PAUSE;
    }

    /// Sends as much as the rate allows in a turn. A server may respond before it has everything,
    /// or close.
    fn send(&mut self, slot: usize, now: Nanos) {
        let SlowStage::Sending(sent) = self.clients[slot].stage else { return };
        if sent > 0 && self.has_ended_early(slot) {
            return;
        }
        let bytes = &self.load.requests.request(self.clients[slot].request).bytes;
        let until = bytes.len().min(sent + in_turn(self.load.settings.upload));
        match self.wire.send(slot, &bytes[sent..until]) {
            Ok(n) => {
                let client = &mut self.clients[slot];
                self.counts.opened += u64::from(sent == 0);
                self.counts.sent_bytes += n as u64;
                client.has_begun = true;
                let is_whole = sent + n == bytes.len();
                client.stage =
                    if is_whole { SlowStage::Reading } else { SlowStage::Sending(sent + n) };
            }
            Err(errno) if would_block(errno) => {}
            Err(_) if sent == 0 => self.not_opened(slot, now),
            // What the server sent before it closed may still be there.
            Err(_) => {
                if !self.has_ended_early(slot) {
                    self.end(slot, SlowEnd::Closed);
                }
            }
        }
    }

    /// Whether the connection has ended before the whole request was sent: all that has come by
    /// now is read.
    fn has_ended_early(&mut self, slot: usize) -> bool {
        while let Some(went_on) = self.receive(slot, BUFFER) {
            if !went_on {
                return true;
            }
        }
        false
    }

    /// Reads as much as the rate allows in a turn.
    fn read(&mut self, slot: usize) {
        let mut left = in_turn(self.load.settings.read);
        while left > 0 {
            let before = self.counts.received_bytes;
            if self.receive(slot, left) != Some(true) {
                return;
            }
            left = left.saturating_sub((self.counts.received_bytes - before) as usize);
        }
    }

    /// Receives `at_most` this many bytes; whether the connection goes on, or `None` if nothing has
    /// come.
    fn receive(&mut self, slot: usize, at_most: usize) -> Option<bool> {
        let length = at_most.min(BUFFER);
        let received = match self.wire.receive(slot, &mut self.buffer[..length]) {
            Ok(0) => Ok(self.clients[slot].reader.end().map(|response| response.head.status)),
            Ok(n) => {
                self.counts.received_bytes += n as u64;
                let reader = &mut self.clients[slot].reader;
                match reader.feed(&self.buffer[..n], &mut self.heads) {
                    Ok(None) => return Some(true),
                    Ok(Some((response, _))) => Ok(Some(response.head.status)),
                    Err(_) => Err(SlowEnd::NotHttp),
                }
            }
            Err(errno) if would_block(errno) => return None,
            Err(Errno::PROTO) => Err(SlowEnd::NotHttp),
            Err(_) => Ok(None),
        };
        let end = match received {
            Ok(Some(status)) => SlowEnd::Response(status),
            Ok(None) => SlowEnd::Closed,
            Err(end) => end,
        };
        self.end(slot, end);
        Some(false)
    }

    /// The connection has ended, and is closed; the client opens the next one at its next turn.
    fn end(&mut self, slot: usize, end: SlowEnd) {
        let is_sent = self.clients[slot].stage == SlowStage::Reading;
        match end {
            SlowEnd::Response(status) => self.counts.responses.record(Outcome::Answered(status)),
            SlowEnd::Closed if is_sent => self.counts.closed_during_response += 1,
            SlowEnd::Closed => self.counts.closed_during_request += 1,
            SlowEnd::NotHttp => self.counts.not_http += 1,
        }
        self.wire.close(slot);
        self.clients[slot].stage = SlowStage::Away;
    }
}

/// How long a turn is at a rate of bytes per second.
fn turn_of(rate: u64) -> Nanos {
    TURN.max(Nanos::from_secs(1) / rate.max(1))
}

/// Bytes that the rate allows in a turn; at least one.
fn in_turn(rate: u64) -> usize {
    let bytes = rate as f64 * turn_of(rate).as_secs_f64();
    (bytes.round() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use model::{Counts, Request};
    use testkit::clock::Stepped;

    use super::*;

    /// What a scripted server does with a connection.
    #[derive(Clone)]
    enum Script {
        /// It responds with these bytes once it has the whole request.
        Responds(Vec<u8>),
        /// It responds with these bytes and closes after this many bytes of the request.
        Interrupts(usize, Vec<u8>),
        Refuses,
    }

    /// Every connection in turn is treated by the next script; the last one stays.
    struct ScriptedWire {
        clock: Stepped,
        scripts: Vec<Script>,
        request_length: usize,
        opened: usize,
        connections: Vec<Connection>,
        /// When how many bytes went which way.
        moved: Rc<RefCell<Vec<Moved>>>,
        over: Rc<Cell<bool>>,
        ends_at: Nanos,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Moved {
        Sent(u64, usize),
        Read(u64, usize),
    }

    #[derive(Default)]
    struct Connection {
        script: usize,
        taken: usize,
        read: usize,
    }

    impl ScriptedWire {
        fn script(&self, slot: usize) -> &Script {
            &self.scripts[self.connections[slot].script.min(self.scripts.len() - 1)]
        }

        fn millis(&self) -> u64 {
            self.clock.now().0 / 1_000_000
        }
    }

    impl ConnectionDriver for ScriptedWire {
        fn open(&mut self, slot: usize) -> Result<(), Errno> {
            self.connections[slot] = Connection { script: self.opened, ..Connection::default() };
            self.opened += 1;
            if matches!(self.script(slot), Script::Refuses) {
                Err(Errno::CONNREFUSED)
            } else {
                Ok(())
            }
        }

        fn is_connected(&self, _slot: usize) -> bool {
            true
        }

        fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>) {
            events.clear();
            self.clock.advance(at_most);
            self.over.set(self.clock.now() >= self.ends_at);
        }

        fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, Errno> {
            let taken = self.connections[slot].taken;
            let (response, closes) = match self.script(slot).clone() {
                Script::Responds(bytes) if taken == self.request_length => (bytes, false),
                Script::Interrupts(after, bytes) if taken >= after => (bytes, true),
                _ => return Err(Errno::AGAIN),
            };
            let left = &response[self.connections[slot].read..];
            let n = left.len().min(buffer.len());
            if n == 0 {
                return if closes { Ok(0) } else { Err(Errno::AGAIN) };
            }
            buffer[..n].copy_from_slice(&left[..n]);
            self.connections[slot].read += n;
            let moved = Moved::Read(self.millis(), n);
            self.moved.borrow_mut().push(moved);
            Ok(n)
        }

        fn stamp(&self, _slot: usize) -> Option<Nanos> {
            None
        }

        fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
            self.connections[slot].taken += bytes.len();
            let moved = Moved::Sent(self.millis(), bytes.len());
            self.moved.borrow_mut().push(moved);
            Ok(bytes.len())
        }

        fn close(&mut self, _slot: usize) {}
    }

    fn request(length: usize) -> Request {
        Request::new(vec![b'x'; length], false)
    }

    fn response(status: u16, body: usize) -> Vec<u8> {
        let mut bytes =
            format!("HTTP/1.1 {status} X\r\nContent-Length: {body}\r\n\r\n").into_bytes();
        bytes.resize(bytes.len() + body, b'.');
        bytes
    }

    /// What became of one client's connections on this server in `seconds`, and what was sent
    /// and read when.
    fn driven(
        settings: &str,
        length: usize,
        scripts: &[Script],
        seconds: u64,
    ) -> (SlowClientCounts, Vec<Moved>) {
        let load = SlowLoad {
            settings: settings.parse().unwrap(),
            transport: Transport::tcp(([127, 0, 0, 1], 1).into()),
            requests: RequestMix::of_one(request(length)).into(),
        };
        let clock = Stepped::at(Nanos::ZERO);
        let moved = Rc::new(RefCell::new(Vec::new()));
        let ends = Rc::new(Cell::new(false));
        let clients = load.settings.clients as usize;
        let wire = ScriptedWire {
            clock: clock.clone(),
            scripts: scripts.to_vec(),
            request_length: length,
            opened: 0,
            connections: (0..clients).map(|_| Connection::default()).collect(),
            moved: Rc::clone(&moved),
            over: Rc::clone(&ends),
            ends_at: Nanos::from_secs(seconds),
        };
        let mut crowd = Crowd::new(&load, clock, wire);
        while !ends.get() {
            crowd.take_turns();
        }
        let counts = crowd.finish();
        assert_eq!(counts.accounted(), counts.opened, "{counts:?}");
        let moved = moved.borrow().clone();
        (counts, moved)
    }

    #[test]
    fn a_client_sends_and_reads_no_faster_than_its_rates() {
        let script = [Script::Responds(response(200, 2000))];
        let (counts, moved) = driven("1:upload=1kB/s,read=10kB/s", 250, &script, 1);
        let head = response(200, 2000).len() - 2000;
        let first = [
            Moved::Sent(0, 100),
            Moved::Sent(100, 100),
            Moved::Sent(200, 50),
            Moved::Read(300, 1000),
            Moved::Read(400, 1000),
            Moved::Read(500, head),
            // The next connection.
            Moved::Sent(600, 100),
        ];
        assert_eq!(moved[..7], first);
        assert_eq!((counts.opened, counts.completed(), counts.unfinished), (2, 1, 1));
        // Less than ten bytes a second: one byte at a time.
        let (_, moved) = driven("1:upload=4B/s", 3, &script, 1);
        assert_eq!(moved[..3], [Moved::Sent(0, 1), Moved::Sent(250, 1), Moved::Sent(500, 1)]);
    }

    #[test]
    fn every_connection_is_counted_once_however_it_ends() {
        let scripts = [
            Script::Refuses,
            Script::Responds(response(200, 10)),
            Script::Responds(response(503, 10)),
            Script::Interrupts(200, response(408, 0)),
            Script::Interrupts(100, Vec::new()),
            Script::Interrupts(300, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_vec()),
            Script::Responds(b"SSH-2.0-x\r\n\r\n".to_vec()),
            Script::Responds(Vec::new()),
        ];
        let (counts, _) = driven("1:upload=1kB/s,read=10kB/s", 300, &scripts, 60);
        let mut responses = Counts::default();
        for status in [200, 408, 503] {
            responses.record(Outcome::Answered(status));
        }
        let expected = SlowClientCounts {
            opened: 7,
            responses,
            closed_during_request: 1,
            closed_during_response: 1,
            not_http: 1,
            unfinished: 1,
            not_opened: 1,
            ..SlowClientCounts::default()
        };
        let bytes = SlowClientCounts { sent_bytes: 0, received_bytes: 0, ..counts };
        assert_eq!(bytes, expected);
    }
}
