//! The two ways to run a sink: on a thread of its own, or on the caller's until a flag is set. The work is in
//! `serving.rs`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use model::Clock;
use rustix::fd::OwnedFd;

use crate::serving::Serving;
use crate::{Ledger, Settings, SinkError};

/// A sink that serves on a thread of its own, until it is stopped. Dropped, it stops in the same way.
#[derive(Debug)]
pub struct Sink {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    wake: OwnedFd,
    /// Who wants the counts.
    asks: Sender<Sender<Ledger>>,
    thread: Option<JoinHandle<Ledger>>,
}

impl Sink {
    /// Listens, and starts to serve.
    ///
    /// # Errors
    /// Where the settings cannot be served, the address cannot be had or the kernel lacks what the sink needs.
    pub fn start(settings: Settings, clock: impl Clock + Clone + Send + 'static) -> Result<Sink, SinkError> {
        let serving = Serving::open(settings, clock)?;
        let address = serving.address();
        let wake = serving.wake()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (asks, asked) = channel::<Sender<Ledger>>();
        let stopped = Arc::clone(&stop);
        let run = move || {
            serving.run(
                || stopped.load(Ordering::Acquire),
                |serving| {
                    for ask in asked.try_iter() {
                        // Where it fails nobody waits for it any more.
                        let _ = ask.send(serving.ledger());
                    }
                },
            )
        };
        let what = "start the sink's thread";
        let thread = std::thread::Builder::new()
            .name("sink".to_owned())
            .spawn(run)
            .map_err(|source| SinkError::Kernel { what, source })?;
        Ok(Sink { address, stop, wake, asks, thread: Some(thread) })
    }

    /// Where it listens, with the port that it really has.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counts now: they include every answer that any client has received before this is called.
    ///
    /// # Panics
    /// If the sink's thread died: a bug of the sink.
    pub fn ledger(&self) -> Ledger {
        let (answer, answered) = channel();
        // A send fails only where the thread is gone, and then the answer fails.
        let _ = self.asks.send(answer);
        self.wake_up();
        answered.recv().expect("the sink's thread lives until the sink is stopped")
    }

    /// Stops: takes no more requests, answers those that are in the pool within two seconds, and gives the counts.
    ///
    /// # Panics
    /// If the sink's thread died: a bug of the sink.
    pub fn stop(mut self) -> Ledger {
        self.join().expect("a sink is stopped once").expect("the sink's thread lives until the sink is stopped")
    }

    fn join(&mut self) -> Option<std::thread::Result<Ledger>> {
        self.stop.store(true, Ordering::Release);
        self.wake_up();
        self.thread.take().map(JoinHandle::join)
    }

    fn wake_up(&self) {
        // Where it fails, its count is at the top and the sink is awake; at the worst the wait ends after 100 ms.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Whether the thread died is for `stop` to say: a drop must not panic.
        let _ = self.join();
    }
}

/// Serves on this thread until `stop` is set, which is noticed within 100 ms; then answers what is in the pool within
/// two seconds, and gives the counts. `on_listening` is told where it listens, before the first request.
///
/// # Errors
/// Where the settings cannot be served, the address cannot be had or the kernel lacks what the sink needs.
pub fn serve(
    settings: Settings,
    clock: impl Clock,
    stop: &AtomicBool,
    on_listening: impl FnOnce(SocketAddr),
) -> Result<Ledger, SinkError> {
    let serving = Serving::open(settings, clock)?;
    on_listening(serving.address());
    Ok(serving.run(|| stop.load(Ordering::Acquire), |_| ()))
}
