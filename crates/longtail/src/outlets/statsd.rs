//! Sends `DogStatsD`: each run's figures when it is over, and once a second how things stand. Never waits for anybody.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use export::{Family, dogstatsd};
use model::{Clock, Nanos};

use crate::clock::SystemClock;
use crate::outlets::board::Board;

/// Between two accounts of how things stand.
const PERIOD: Nanos = Nanos::from_secs(1);
/// How soon the end is noticed.
const GLANCE: Nanos = Nanos::from_millis(50);

/// Sends, and counts what it could not send.
pub(crate) struct Sender {
    line: Arc<Line>,
    over: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
}

struct Line {
    socket: UdpSocket,
    to: SocketAddr,
    sent: AtomicU64,
    failed: AtomicU64,
    why: Mutex<Option<std::io::Error>>,
}

impl Sender {
    /// Begins to send how things stand.
    ///
    /// # Errors
    /// Where the system has no socket, or no thread.
    pub(crate) fn start(to: SocketAddr, board: Arc<Board>, clock: SystemClock) -> std::io::Result<Sender> {
        let own: SocketAddr =
            if to.is_ipv6() { (Ipv6Addr::UNSPECIFIED, 0).into() } else { (Ipv4Addr::UNSPECIFIED, 0).into() };
        let socket = UdpSocket::bind(own)?;
        // Connected, it is told where nobody listens.
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let line =
            Arc::new(Line { socket, to, sent: AtomicU64::new(0), failed: AtomicU64::new(0), why: Mutex::default() });
        let over = Arc::new(AtomicBool::new(false));
        let ticker = std::thread::Builder::new().name("statsd-to".to_owned()).spawn({
            let (line, over) = (Arc::clone(&line), Arc::clone(&over));
            move || tick(&line, &board, clock, &over)
        })?;
        Ok(Sender { line, over, ticker: Some(ticker) })
    }

    /// Sends these figures.
    pub(crate) fn send(&self, families: &[Family]) {
        self.line.send(families);
    }

    /// Sends no more; what could not be sent, in a sentence.
    pub(crate) fn end(mut self) -> Option<String> {
        self.over.store(true, Ordering::Relaxed);
        if let Some(ticker) = self.ticker.take() {
            ticker.join().expect("the ticker never panics");
        }
        let (sent, failed) = (self.line.sent.load(Ordering::Relaxed), self.line.failed.load(Ordering::Relaxed));
        let why = self.line.why.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let all = sent + failed;
        Some(format!(
            "--statsd-to: {failed} of {all} packets to {} could not be sent ({why}); does anything listen there?",
            self.line.to
        ))
    }
}

fn tick(line: &Line, board: &Board, clock: SystemClock, over: &AtomicBool) {
    let mut next = clock.now() + PERIOD;
    while !over.load(Ordering::Relaxed) {
        if clock.now() >= next {
            // One that came late is not made up for.
            next = (next + PERIOD).max(clock.now());
            line.send(&board.now());
        }
        clock.sleep(GLANCE);
    }
}

impl Line {
    fn send(&self, families: &[Family]) {
        for packet in dogstatsd::packets(&dogstatsd::lines(families)) {
            match self.socket.send(packet.as_bytes()) {
                Ok(_) => {
                    self.sent.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    self.failed.fetch_add(1, Ordering::Relaxed);
                    self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
    }
}
