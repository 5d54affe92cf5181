//! The two ways to run a sink: on threads of its own, or on the caller's until a flag is set. The work is in
//! `serving.rs`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use model::Clock;

use crate::listen::{Listen, ListenAddress};
use crate::mail::{Letter, Mailbox};
use crate::serving::Serving;
use crate::{SinkError, SinkLedger, SinkSettings};

/// A sink that serves on threads of its own, until it is stopped. Dropped, it stops in the same way.
#[derive(Debug)]
pub struct Sink {
    places: Vec<Listen>,
    stop: Arc<AtomicBool>,
    mailboxes: Vec<Mailbox>,
    threads: Vec<JoinHandle<SinkLedger>>,
}

impl Sink {
    /// Listens, and starts to serve.
    ///
    /// # Errors
    /// Where the settings cannot be served, an address cannot be had or the kernel lacks what the sink needs.
    #[expect(clippy::needless_pass_by_value, reason = "who starts a sink is done with its settings")]
    pub fn start(settings: SinkSettings, clock: impl Clock + Clone + Send + 'static) -> Result<Sink, SinkError> {
        let (loops, places) = Serving::open_all(&settings, &clock)?;
        let mut sink = Sink { places, stop: Arc::default(), mailboxes: Vec::new(), threads: Vec::new() };
        for serving in loops {
            let mailbox = serving.mailbox();
            let stop = Arc::clone(&sink.stop);
            let run = move || serving.run(|| stop.load(Ordering::Acquire));
            // Where it fails, dropping the sink stops those that were started.
            let thread = std::thread::Builder::new().name("sink".to_owned()).spawn(run).map_err(no_thread)?;
            sink.threads.push(thread);
            sink.mailboxes.push(mailbox);
        }
        Ok(sink)
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
        let tcp = |listen: &Listen| if let ListenAddress::Tcp(address) = listen.place { Some(address) } else { None };
        self.places.iter().find_map(tcp).expect("the sink listens at a TCP address")
    }

    /// The counts now: they include every answer that any client has received before this is called.
    ///
    /// # Panics
    /// If a thread of the sink died: a bug of the sink.
    pub fn ledger(&self) -> SinkLedger {
        let answers: Vec<_> = self
            .mailboxes
            .iter()
            .map(|mailbox| {
                let (answer, answered) = channel();
                // It fails only where the thread is gone, and then the answer fails.
                mailbox.put(Letter::Owner(answer));
                answered
            })
            .collect();
        let alive = "the sink's threads live until the sink is stopped";
        SinkLedger::sum(answers.into_iter().map(|answered| answered.recv().expect(alive)))
    }

    /// Stops: takes no more requests, answers those that are in the pool within two seconds, and gives the counts.
    ///
    /// # Panics
    /// If a thread of the sink died: a bug of the sink.
    pub fn stop(mut self) -> SinkLedger {
        let alive = "the sink's threads live until the sink is stopped";
        SinkLedger::sum(self.join().into_iter().map(|ended| ended.expect(alive)))
    }

    fn join(&mut self) -> Vec<std::thread::Result<SinkLedger>> {
        self.stop.store(true, Ordering::Release);
        self.mailboxes.iter().for_each(Mailbox::wake_up);
        self.threads.drain(..).map(JoinHandle::join).collect()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Whether a thread died is for `stop` to say: a drop must not panic.
        drop(self.join());
    }
}

/// Serves until `stop` is set, which is noticed within 100 ms; then answers what is in the pool within two seconds, and
/// gives the counts. One loop serves on this thread and the others on threads of their own. `on_listening` is told where
/// it listens, with the ports that it really has, before the first request.
///
/// # Errors
/// Where the settings cannot be served, an address cannot be had or the kernel lacks what the sink needs.
///
/// # Panics
/// If a thread of the sink died: a bug of the sink.
#[expect(clippy::needless_pass_by_value, reason = "who starts a sink is done with its settings")]
pub fn serve(
    settings: SinkSettings,
    clock: impl Clock + Clone + Send,
    stop: &AtomicBool,
    on_listening: impl FnOnce(&[Listen]),
) -> Result<SinkLedger, SinkError> {
    let (mut loops, places) = Serving::open_all(&settings, &clock)?;
    let give_up = AtomicBool::new(false);
    let should_stop = || stop.load(Ordering::Acquire) || give_up.load(Ordering::Acquire);
    let mine = loops.remove(0);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for serving in loops {
            let run = || serving.run(should_stop);
            match std::thread::Builder::new().name("sink".to_owned()).spawn_scoped(scope, run) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    give_up.store(true, Ordering::Release);
                    return Err(no_thread(source));
                }
            }
        }
        on_listening(&places);
        let mine = mine.run(should_stop);
        let others = threads.into_iter().map(|thread| thread.join().expect("a loop has no way to fail"));
        Ok(SinkLedger::sum([mine].into_iter().chain(others)))
    })
}

fn no_thread(source: std::io::Error) -> SinkError {
    SinkError::Kernel { what: "start the sink's thread", source }
}
