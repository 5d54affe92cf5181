//! Longtail's builtin test server: either a load sink that answers any request at once, faster than
//! a generator can send, or a server with workers x threads slots behind a queue, where each
//! request holds a slot for a time from a distribution. It stands in for Puma and is used to check
//! the generator.
//!
//! It does nothing for a request except holding its slot, reads only the clock that it is given,
//! and prints nothing. Random choices are a pure function of the seed and the request's number,
//! which the default response contains, so a client knows what should have happened to each
//! request. Invariants: a request waits only as long as its queue requires, a response is never
//! sent before it is due, and every request counts in one place of the [`SinkLedger`].

mod connection;
mod laws;
mod ledger;
mod listener;
mod request;
mod response;
mod serving;
mod settings;
mod slots;
#[cfg(test)]
mod slots_tests;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use model::{Clock, Nanos};

pub use laws::{Fault, FaultLaw, StallLaw};
pub use ledger::{FaultCounts, SinkLedger};
pub use model::{DelayLaw, RequestShare};
pub use settings::{Listen, PemPair, SinkBody, SinkError, SinkSettings, SlotQueue};

use crate::ledger::LoopLedger;
use crate::listener::{ListeningSocket, tls_config};
use crate::serving::ServingLoop;

/// A running sink, with a thread for each loop. It serves until it is stopped or dropped.
#[derive(Debug)]
pub struct Sink {
    started: Nanos,
    places: Vec<Listen>,
    stop: Arc<AtomicBool>,
    ledgers: Arc<[LoopLedger]>,
    threads: Vec<JoinHandle<()>>,
}

impl Sink {
    /// Listens, and starts to serve.
    ///
    /// # Errors
    /// If the settings can't be served, an address is not available, or the kernel lacks a feature.
    pub fn start(
        settings: SinkSettings,
        clock: impl Clock + Clone + Send + 'static,
    ) -> Result<Sink, SinkError> {
        Sink::start_until(settings, clock, Arc::default())
    }

    /// Like [`Sink::start`]; raising `stop` also ends it, within 50 ms.
    ///
    /// # Errors
    /// Like [`Sink::start`].
    #[expect(clippy::needless_pass_by_value, reason = "the caller no longer needs the settings")]
    pub fn start_until(
        settings: SinkSettings,
        clock: impl Clock + Clone + Send + 'static,
        stop: Arc<AtomicBool>,
    ) -> Result<Sink, SinkError> {
        settings.check()?;
        let started = clock.now();
        let speaks_tls = settings.listen.iter().any(|listen| listen.tls);
        let tls =
            speaks_tls.then(|| tls_config(settings.pem.as_ref(), settings.names())).transpose()?;
        let requests = Arc::new(AtomicU64::new(0));
        let ledgers: Arc<[LoopLedger]> = (0..settings.loops)
            .map(|_| LoopLedger::new(SinkLedger::new(settings.workers())))
            .collect();
        let open = |number| {
            ServingLoop::new(
                &settings,
                clock.clone(),
                started,
                number,
                Arc::clone(&requests),
                Arc::clone(&ledgers),
            )
        };
        let mut loops: Vec<_> = (0..settings.loops).map(open).collect::<Result<_, _>>()?;
        let mut places = Vec::new();
        for listen in &settings.listen {
            let listeners = ListeningSocket::open_all(listen, settings.backlog, settings.loops)?;
            places.extend(listeners.first().map(|listener| listener.at.clone()));
            for (serving, mut listener) in loops.iter_mut().zip(listeners) {
                listener.tls = tls.clone().filter(|_| listen.tls);
                serving.listen(listener)?;
            }
        }
        let mut sink = Sink { started, places, stop, ledgers, threads: Vec::new() };
        for serving in loops {
            let stop = Arc::clone(&sink.stop);
            let thread = std::thread::Builder::new()
                .name("sink".to_owned())
                .spawn(move || serving.run(&stop));
            // If this fails, dropping the sink stops the threads that were started.
            sink.threads.push(thread.map_err(|error| {
                SinkError(format!(
                    "cannot start the sink's thread: {error}; is the machine out of memory, \
                     threads or network?"
                ))
            })?);
        }
        Ok(sink)
    }

    /// When it started, by its clock: its stop-the-world pauses and arrivals are counted from then.
    pub fn started(&self) -> Nanos {
        self.started
    }

    /// Where it listens, in the order of the settings, with the actual ports.
    pub fn places(&self) -> &[Listen] {
        &self.places
    }

    /// The first TCP address that it listens at, with the actual port.
    ///
    /// # Panics
    /// If it doesn't listen at a TCP address.
    pub fn address(&self) -> SocketAddr {
        self.places
            .iter()
            .find_map(|listen| listen.place.tcp())
            .expect("the sink listens at a TCP address")
    }

    /// The current counts. They include every response that any client received before this call.
    pub fn ledger(&self) -> SinkLedger {
        SinkLedger::sum(&self.ledgers)
    }

    /// Stops the sink: takes no more requests, answers those that it has, which it gives at most
    /// two seconds, and returns the counts.
    ///
    /// # Panics
    /// If a thread of the sink died: a bug of the sink.
    pub fn stop(self) -> SinkLedger {
        self.stop.store(true, Ordering::Release);
        self.wait()
    }

    /// Waits until its stop flag is raised, then ends like [`Sink::stop`].
    ///
    /// # Panics
    /// If a thread of the sink died: a bug of the sink.
    pub fn wait(mut self) -> SinkLedger {
        self.threads.drain(..).for_each(|thread| thread.join().expect("a loop has no way to fail"));
        self.ledger()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Only `stop` reports a panic of a thread: a drop must not panic.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
