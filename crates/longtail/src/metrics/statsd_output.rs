//! Sends the figures of runs as `DogStatsD` (`--statsd-to`), and live figures once a second, from a
//! thread of its own.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use export::{MetricFamily, text_formats};
use model::{Clock as _, Nanos, SystemClock};

use super::deliveries::Deliveries;
use super::live_board::{LiveBoard, locked};

/// How often live figures are sent.
const PERIOD: Nanos = Nanos::from_secs(1);

/// Sends `DogStatsD` from a thread of its own.
pub(super) struct StatsdSender {
    to: SocketAddr,
    figures: Sender<Vec<MetricFamily>>,
    thread: JoinHandle<Deliveries>,
}

impl StatsdSender {
    /// Starts to send live figures.
    ///
    /// # Errors
    /// If the system has no socket, or no thread.
    pub(super) fn start(
        to: SocketAddr,
        board: Arc<LiveBoard>,
        clock: SystemClock,
    ) -> io::Result<StatsdSender> {
        let own: SocketAddr = if to.is_ipv6() {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(own)?;
        // Connected, it learns if nobody listens.
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let (figures, received) = channel();
        let thread = std::thread::Builder::new().name("statsd-to".to_owned());
        let thread = thread.spawn(move || send_statsd(&socket, &received, &board, clock))?;
        Ok(StatsdSender { to, figures, thread })
    }

    /// Sends these figures.
    pub(super) fn send(&self, families: &[MetricFamily]) {
        // It fails only if the thread has panicked, and then the end says so.
        let _ = self.figures.send(families.to_vec());
    }

    /// Sends no more, and returns a sentence on what could not be sent.
    pub(super) fn end(self) -> Option<String> {
        drop(self.figures);
        let Deliveries { tried, failed, why } =
            self.thread.join().expect("the thread never panics");
        let why = why?;
        Some(format!(
            "--statsd-to: {failed} of {tried} packets to {} could not be sent ({why}); does anything listen there?",
            self.to
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
                // If one was late, the next ones do not catch up.
                next = (next + PERIOD).max(clock.now());
                locked(board).now()
            }
            Err(RecvTimeoutError::Disconnected) => return deliveries,
        };
        for packet in text_formats::packets(&text_formats::lines(&families)) {
            deliveries.note(socket.send(packet.as_bytes()));
        }
    }
}
