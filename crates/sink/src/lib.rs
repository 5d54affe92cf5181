//! The test server inside longtail: a load sink that answers any request at once, faster than a
//! generator can ask; or a server with workers x threads slots behind a queue, where each request
//! holds a slot by a law. It stands in for Puma, and proves the generator honest.
//!
//! It does no work for a request but to hold its slot, reads no clock but the one it is given, and
//! prints nothing. What is random is a pure function of the seed and the request's number, which
//! the default response carries: so a client can say of each request what should have become of it.
//! What stays true: a request waits only while its queue lets it, a response is never sent before
//! it is due, and every request is in one place of the [`SinkLedger`].

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

/// A sink that serves, on a thread of its own for each loop, until it is stopped. Dropped, it stops
/// in the same way.
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
    /// Where the settings cannot be served, an address cannot be had or the kernel lacks what the
    /// sink needs.
    pub fn start(
        settings: SinkSettings,
        clock: impl Clock + Clone + Send + 'static,
    ) -> Result<Sink, SinkError> {
        Sink::start_until(settings, clock, Arc::default())
    }

    /// As [`Sink::start`]; `stop` ends it too, within 50 ms.
    ///
    /// # Errors
    /// As [`Sink::start`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "who starts a sink is done with its settings"
    )]
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
            // Where it fails, dropping the sink stops those that were started.
            sink.threads.push(thread.map_err(|error| {
                SinkError(format!(
                    "cannot start the sink's thread: {error}; is the machine out of memory, threads or network?"
                ))
            })?);
        }
        Ok(sink)
    }

    /// When it started, by its clock: pauses and arrivals are counted from here.
    pub fn started(&self) -> Nanos {
        self.started
    }

    /// Where it listens, in the order of the settings, with the ports that it really has.
    pub fn places(&self) -> &[Listen] {
        &self.places
    }

    /// The first TCP address that it listens at, with the port that it really has.
    ///
    /// # Panics
    /// If it listens at no TCP address: who asks for one has given one.
    pub fn address(&self) -> SocketAddr {
        self.places
            .iter()
            .find_map(|listen| listen.place.tcp())
            .expect("the sink listens at a TCP address")
    }

    /// The counts now: they include every response that any client has received before this is
    /// called.
    pub fn ledger(&self) -> SinkLedger {
        SinkLedger::sum(&self.ledgers)
    }

    /// Stops: takes no more requests, answers those that are in the pool within two seconds, and
    /// gives the counts.
    ///
    /// # Panics
    /// If a thread of the sink died: a bug of the sink.
    pub fn stop(self) -> SinkLedger {
        self.stop.store(true, Ordering::Release);
        self.wait()
    }

    /// Waits until its flag is raised, then ends as [`Sink::stop`].
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
        // Whether a thread died is for `stop` to say: a drop must not panic.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
