//! How the loops of a sink are asked for their counts: by messages, so that they share nothing while they serve but the
//! number of the next request.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::{SinkError, SinkLedger};

/// A query for a loop's counts: where they go, and which loop is woken then.
#[derive(Debug)]
pub(crate) struct LedgerQuery {
    counts: Sender<SinkLedger>,
    asker: Option<LoopMailbox>,
}

impl LedgerQuery {
    /// Answers it.
    pub(crate) fn answer(self, ledger: SinkLedger) {
        // Where it fails nobody waits for it any more.
        let _ = self.counts.send(ledger);
        // Before the asker looks: that all have answered is seen by nobody being left who could.
        drop(self.counts);
        self.asker.iter().for_each(LoopMailbox::wake_up);
    }
}

/// Where queries to one loop are put.
#[derive(Clone, Debug)]
pub(crate) struct LoopMailbox {
    queries: Sender<LedgerQuery>,
    /// The eventfd that says that there is something.
    pub(crate) wake: Arc<OwnedFd>,
}

impl LoopMailbox {
    /// A mailbox, and its loop's end.
    pub(crate) fn new() -> Result<(LoopMailbox, Receiver<LedgerQuery>), SinkError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = Arc::new(eventfd(0, flags).map_err(SinkError::of("open an eventfd"))?);
        let (queries, received) = channel();
        Ok((LoopMailbox { queries, wake }, received))
    }

    /// Asks these loops for their counts, for the loop `asker`. The channel ends when all that live have answered.
    pub(crate) fn ask_all(mailboxes: &[LoopMailbox], asker: Option<&LoopMailbox>) -> Receiver<SinkLedger> {
        let (counts, answers) = channel();
        for mailbox in mailboxes {
            // It fails only where the loop has ended, and then it is not waited for.
            let _ = mailbox.queries.send(LedgerQuery { counts: counts.clone(), asker: asker.cloned() });
            mailbox.wake_up();
        }
        answers
    }

    /// Has the loop look.
    pub(crate) fn wake_up(&self) {
        // Where it fails, its count is at the top and the loop runs; at the worst the wait ends after 100 ms.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}
