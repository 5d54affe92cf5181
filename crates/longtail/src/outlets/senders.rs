//! What sends figures: `DogStatsD` when a run is over and once a second how things stand, without ever waiting for
//! anybody; OTLP over HTTP between runs, once for each run, where a receiver that does not answer costs a few seconds and no
//! figure.

use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use export::otlp::{CONTENT_TYPE, RunOrigin, rejected, request};
use export::{MetricFamily, dogstatsd};
use model::{Clock as _, Endpoint, Nanos, SystemClock};
use probe::http::{self, HttpAnswer};

use super::LiveBoard;
use crate::args::OtlpUrl;

/// Between two accounts of how things stand.
const PERIOD: Nanos = Nanos::from_secs(1);
/// For OTLP's connect, and for each piece that is sent or received.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What became of all that was sent to one receiver.
#[derive(Default)]
struct Deliveries {
    tried: u64,
    failed: u64,
    /// Why the first failed.
    why: Option<String>,
}

impl Deliveries {
    fn note<T>(&mut self, delivered: Result<T, impl Display>) -> Option<T> {
        self.tried += 1;
        delivered
            .map_err(|why| {
                self.failed += 1;
                self.why.get_or_insert_with(|| why.to_string());
            })
            .ok()
    }
}

/// Sends `DogStatsD` from a thread of its own.
pub(super) struct StatsdSender {
    to: SocketAddr,
    figures: Sender<Vec<MetricFamily>>,
    thread: JoinHandle<Deliveries>,
}

impl StatsdSender {
    /// Begins to send how things stand.
    ///
    /// # Errors
    /// Where the system has no socket, or no thread.
    pub(super) fn start(to: SocketAddr, board: Arc<LiveBoard>, clock: SystemClock) -> io::Result<StatsdSender> {
        let own: SocketAddr =
            if to.is_ipv6() { (Ipv6Addr::UNSPECIFIED, 0).into() } else { (Ipv4Addr::UNSPECIFIED, 0).into() };
        let socket = UdpSocket::bind(own)?;
        // Connected, it learns where nobody listens.
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let (figures, received) = channel();
        let thread = std::thread::Builder::new().name("statsd-to".to_owned());
        let thread = thread.spawn(move || send_statsd(&socket, &received, &board, clock))?;
        Ok(StatsdSender { to, figures, thread })
    }

    /// Sends these figures.
    pub(super) fn send(&self, families: &[MetricFamily]) {
        // It fails only where the thread has panicked, and then the end says so.
        let _ = self.figures.send(families.to_vec());
    }

    /// Sends no more; what could not be sent, in a sentence.
    pub(super) fn end(self) -> Option<String> {
        drop(self.figures);
        let Deliveries { tried, failed, why } = self.thread.join().expect("the thread never panics");
        Some(format!(
            "--statsd-to: {failed} of {tried} packets to {} could not be sent ({}); does anything listen there?",
            self.to, why?
        ))
    }
}

fn send_statsd(
    socket: &UdpSocket,
    figures: &Receiver<Vec<MetricFamily>>,
    board: &LiveBoard,
    clock: SystemClock,
) -> Deliveries {
    let mut deliveries = Deliveries::default();
    let mut next = clock.now() + PERIOD;
    loop {
        let families = match figures.recv_timeout(next.saturating_sub(clock.now()).into()) {
            Ok(families) => families,
            Err(RecvTimeoutError::Timeout) => {
                // One that came late is not made up for.
                next = (next + PERIOD).max(clock.now());
                board.now()
            }
            Err(RecvTimeoutError::Disconnected) => return deliveries,
        };
        for packet in dogstatsd::packets(&dogstatsd::lines(&families)) {
            deliveries.note(socket.send(packet.as_bytes()));
        }
    }
}

/// Posts OTLP.
pub(super) struct OtlpSender {
    address: SocketAddr,
    to: OtlpUrl,
    deliveries: Deliveries,
    /// Data points that the receiver took and could not use, and why the first.
    rejected: i64,
    why_rejected: Option<String>,
}

impl OtlpSender {
    /// To that receiver, which was found at `address`.
    pub(super) fn new(address: SocketAddr, to: OtlpUrl) -> OtlpSender {
        OtlpSender { address, to, deliveries: Deliveries::default(), rejected: 0, why_rejected: None }
    }

    /// Sends a run's figures.
    pub(super) fn send(&mut self, families: &[MetricFamily], origin: &RunOrigin<'_>) {
        let answer = post(self.address, &self.to, &request(families, origin)).map_err(|error| error.to_string());
        if let Some(Some((points, why))) = self.deliveries.note(answer.and_then(|answer| accepted(&answer))) {
            self.rejected += points;
            self.why_rejected.get_or_insert(why);
        }
    }

    /// What was not taken, in a sentence.
    pub(super) fn end(self) -> Option<String> {
        let OtlpSender { to, deliveries: Deliveries { tried, failed, why }, rejected, why_rejected, .. } = self;
        match (why, why_rejected) {
            (Some(why), _) => Some(format!(
                "--otlp: the figures of {failed} of {tried} runs could not be delivered to {to} ({why}); is it an OTLP receiver?"
            )),
            (None, Some(why)) => Some(format!("--otlp: {to} took the figures but for {rejected} ({why})")),
            (None, None) => None,
        }
    }
}

/// The answer to a POST of `body`.
fn post(address: SocketAddr, to: &OtlpUrl, body: &[u8]) -> io::Result<HttpAnswer> {
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: longtail/{}\r\nContent-Type: {CONTENT_TYPE}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        to.path,
        to.place,
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    http::exchange(&Endpoint::Tcp(address), &[head.as_bytes(), body].concat(), TIMEOUT)
}

/// What the receiver could not use, if anything.
///
/// # Errors
/// Where it did not take the request.
fn accepted(answer: &HttpAnswer) -> Result<Option<(i64, String)>, String> {
    if answer.is_ok() { Ok(rejected(&answer.body)) } else { Err(format!("it answered {}", answer.status)) }
}
