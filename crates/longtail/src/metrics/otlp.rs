//! Posts the figures of runs by OTLP, from a thread of its own: a receiver that is slow, or never
//! answers, holds up nobody.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use export::MetricFamily;
use export::otlp::{self, RunOrigin};
use model::{Clock as _, Endpoint, Nanos, SystemClock};
use probe::http::{self, HttpError, HttpResponse, LONGEST_EXCHANGE};

use super::POLL_INTERVAL;
use super::deliveries::Deliveries;
use crate::args::OtlpUrl;

/// Once everything is measured and printed, a receiver gets so long for all that it has not taken.
const LAST_DELIVERIES: Nanos = Nanos::from_secs(5);
/// The same where the user has pressed Ctrl-C.
const HASTY_DELIVERIES: Nanos = Nanos::from_secs(1);
/// How much is printed of what a receiver says, in characters.
const LONGEST_REASON: usize = 200;

/// Hands figures to the thread that posts them.
pub(super) struct OtlpSender {
    requests: Sender<Vec<u8>>,
    to: OtlpUrl,
    /// Set when what has not arrived is given up.
    over: Arc<AtomicBool>,
    thread: JoinHandle<OtlpDeliveries>,
}

/// What became of the figures.
#[derive(Default)]
struct OtlpDeliveries {
    runs: Deliveries,
    /// Data points that the receiver took and could not use, and why the first.
    rejected: Option<(i64, String)>,
}

impl OtlpSender {
    /// Begins to wait for figures.
    ///
    /// # Errors
    /// If the system has no thread.
    pub(super) fn start(to: OtlpUrl, address: SocketAddr) -> io::Result<OtlpSender> {
        let (requests, received) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let receiver = OtlpReceiver {
            address: Endpoint::Tcp(address),
            url: to.clone(),
            over: Arc::clone(&over),
        };
        let thread = std::thread::Builder::new().name("otlp".to_owned());
        let thread = thread.spawn(move || receiver.post_all(&received))?;
        Ok(OtlpSender { requests, to, over, thread })
    }

    /// Has a run's figures sent.
    pub(super) fn send(&self, families: &[MetricFamily], origin: &RunOrigin<'_>) {
        // It fails only if the thread has panicked, and that ends longtail.
        let _ = self.requests.send(otlp::request(families, origin));
    }

    /// Waits for what is not delivered yet, for a while or until `interrupt`; returns a sentence on
    /// what did not arrive.
    pub(super) fn end(self, clock: &SystemClock, interrupt: &AtomicBool) -> Option<String> {
        let OtlpSender { requests, to, over, thread } = self;
        drop(requests);
        let was_interrupted = interrupt.load(Ordering::Relaxed);
        let time = if was_interrupted { HASTY_DELIVERIES } else { LAST_DELIVERIES };
        let until = clock.now() + time;
        let is_ended = || !was_interrupted && interrupt.load(Ordering::Relaxed);
        while !thread.is_finished() && clock.now() < until && !is_ended() {
            clock.sleep(POLL_INTERVAL);
        }
        over.store(true, Ordering::Relaxed);
        let OtlpDeliveries { runs, rejected } = thread.join().expect("the thread never panics");
        let Deliveries { tried, failed, why } = runs;
        if let Some(why) = why {
            return Some(format!(
                "--otlp: {to} did not confirm the figures of {failed} of {tried} runs ({why}); is it an OTLP receiver?"
            ));
        }
        rejected
            .map(|(points, why)| format!("--otlp: {to} took the figures but for {points} ({why})"))
    }
}

/// Who is posted to.
struct OtlpReceiver {
    address: Endpoint,
    url: OtlpUrl,
    over: Arc<AtomicBool>,
}

impl OtlpReceiver {
    /// Posts each request, one after the other.
    fn post_all(&self, requests: &Receiver<Vec<u8>>) -> OtlpDeliveries {
        let mut deliveries = OtlpDeliveries::default();
        for request in requests {
            let response = self.post(&request).map_err(|error| error.to_string());
            let taken = response.and_then(|response| {
                if response.is_ok() {
                    Ok(otlp::rejected(&response.body))
                } else {
                    Err(format!("it answered {}", response.status))
                }
            });
            if let Some(Some((points, why))) = deliveries.runs.note(taken) {
                let why = why.chars().take(LONGEST_REASON).collect();
                let rejected = deliveries.rejected.get_or_insert((0, why));
                rejected.0 = rejected.0.saturating_add(points);
            }
        }
        deliveries
    }

    /// The answer to a POST of `body`.
    fn post(&self, body: &[u8]) -> Result<HttpResponse, HttpError> {
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: longtail/{}\r\nContent-Type: {}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.url.path,
            self.url.place,
            env!("CARGO_PKG_VERSION"),
            otlp::CONTENT_TYPE,
            body.len()
        );
        let request = [head.as_bytes(), body].concat();
        http::exchange(&self.address, &request, LONGEST_EXCHANGE, &self.over)
    }
}
