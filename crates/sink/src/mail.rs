//! How loops are asked for their ledgers, by each other and by the sink's owner: messages, so that a loop shares nothing
//! with another while it serves but the number of the next request.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::{SinkError, SinkLedger};

/// What a loop is told.
#[derive(Debug)]
pub(crate) enum Letter {
    /// The owner wants the counts.
    Owner(Sender<SinkLedger>),
    /// Another loop wants them, for its inquiry of that number.
    Peer(Mailbox, u64),
    /// Another loop's counts, for this loop's inquiry of that number.
    Counts(u64, Box<SinkLedger>),
}

/// Where letters to one loop are put.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox {
    letters: Sender<Letter>,
    wake: Arc<OwnedFd>,
}

impl Mailbox {
    /// A mailbox; its loop's end; and the eventfd that says that there is something.
    pub(crate) fn new() -> Result<(Mailbox, Receiver<Letter>, Arc<OwnedFd>), SinkError> {
        let wake =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(SinkError::of("open an eventfd"))?;
        let wake = Arc::new(wake);
        let (letters, received) = channel();
        Ok((Mailbox { letters, wake: Arc::clone(&wake) }, received, wake))
    }

    /// Whether the loop lives to read it.
    pub(crate) fn put(&self, letter: Letter) -> bool {
        let put = self.letters.send(letter).is_ok();
        self.wake_up();
        put
    }

    /// Ends the loop's wait.
    pub(crate) fn wake_up(&self) {
        // Where it fails, its count is at the top and the loop is awake; at the worst the wait ends after 100 ms.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}
