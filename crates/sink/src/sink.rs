//! A sink on threads of its own, a loop on each (`serving.rs`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use model::{Clock, Nanos};

use crate::ledger::LoopLedger;
use crate::listen::Listen;
use crate::serving::{OpenedLoops, ServingLoop};
use crate::{SinkError, SinkLedger, SinkSettings};

/// A sink that serves until it is stopped. Dropped, it stops in the same way.
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
    /// Where the settings cannot be served, an address cannot be had or the kernel lacks what the sink needs.
    pub fn start(settings: SinkSettings, clock: impl Clock + Clone + Send + 'static) -> Result<Sink, SinkError> {
        Sink::start_until(settings, clock, Arc::default())
    }

    /// As [`Sink::start`]; `stop` ends it too, within 50 ms.
    ///
    /// # Errors
    /// As [`Sink::start`].
    #[expect(clippy::needless_pass_by_value, reason = "who starts a sink is done with its settings")]
    pub fn start_until(
        settings: SinkSettings,
        clock: impl Clock + Clone + Send + 'static,
        stop: Arc<AtomicBool>,
    ) -> Result<Sink, SinkError> {
        let started = clock.now();
        let OpenedLoops { loops, places, ledgers } = ServingLoop::open_all(&settings, &clock, started)?;
        let mut sink = Sink { started, places, stop, ledgers, threads: Vec::new() };
        for serving in loops {
            let stop = Arc::clone(&sink.stop);
            let run = move || serving.run(&stop);
            let no_thread = |error| {
                SinkError(format!(
                    "cannot start the sink's thread: {error}; is the machine out of memory, threads or network?"
                ))
            };
            // Where it fails, dropping the sink stops those that were started.
            sink.threads.push(std::thread::Builder::new().name("sink".to_owned()).spawn(run).map_err(no_thread)?);
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
        self.places.iter().find_map(|listen| listen.place.tcp()).expect("the sink listens at a TCP address")
    }

    /// The counts now: they include every answer that any client has received before this is called.
    pub fn ledger(&self) -> SinkLedger {
        SinkLedger::sum(&self.ledgers)
    }

    /// Stops: takes no more requests, answers those that are in the pool within two seconds, and gives the counts.
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
