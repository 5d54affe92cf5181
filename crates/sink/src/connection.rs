//! One client's connection: bytes in, requests out; a response in, bytes out. One request at a time: what a client
//! sends ahead stays in the kernel or in `ahead` until its turn, so that neither side of a connection grows without
//! bound and answers are in order.

use rustix::fd::{AsFd, BorrowedFd};

use crate::head::{Ending, Memo, Refusal};
use crate::request::{Progress, Reader, Request};
use crate::wire::{Received, Sent, Wire};

/// What follows a response once the kernel has all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The next request.
    Read,
    /// The end.
    Close,
    /// The end, in a way that lets a client read the response though it still sends.
    Linger,
}

/// What the connection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A request, or the wait for one.
    Reading,
    /// A request is in the pool.
    Working {
        /// What follows its answer.
        ending: Ending,
        /// Whether the answer has no body.
        bodiless: bool,
        /// Whether the answer says when the slot was taken and given back.
        stamped: bool,
    },
    /// A request for the ledger waits for what the other loops have.
    Asking,
    /// A response that the kernel has not taken wholly.
    Writing {
        /// What follows it.
        then: Then,
        /// What it is to the ledger.
        says: Says,
    },
    /// There is nothing more to say; what the client still sends is dropped.
    Lingering,
}

/// What a response is to the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// The answer to a request.
    Answer,
    /// A part of one, cut on purpose and counted so: its bytes are still to be counted.
    Cut,
    /// Nothing: a refusal, or the ledger itself.
    Nothing,
}

/// What the connection needs next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing until an event.
    Wait,
    /// Another turn: there may be more to read.
    Again,
    /// This request served.
    Serve(Request),
    /// The client told to go on.
    Continue,
    /// The client told that this is no request.
    Refuse(Refusal),
    /// The wire has something to say, and no room for it.
    NeedRoom,
    /// To be forgotten: the client is gone.
    Gone,
    /// To be forgotten: the client does not speak TLS.
    Broken,
}

/// What the kernel may have for us. Edges are told once, so it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Nothing; an event will tell.
    Drained,
    /// Bytes.
    Readable,
    /// Bytes, and after them their end.
    Ending,
}

/// What the ledger makes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Booking {
    /// Counted; it has asked for nothing yet.
    New,
    /// Counted; it has sent a request that is.
    Client,
    /// Not counted; it has asked for nothing but the ledger.
    Onlooker,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    wire: Wire,
    reader: Reader,
    /// What was read but belongs to later requests, from `ahead_from` on.
    ahead: Vec<u8>,
    ahead_from: usize,
    /// What it is about.
    pub(crate) phase: Phase,
    input: Input,
    /// What the ledger makes of it.
    pub(crate) booking: Booking,
    /// Whether it is registered for room to write, too.
    pub(crate) told_of_room: bool,
    /// Whether it waits for another turn already.
    pub(crate) has_turn: bool,
    /// Answers so far.
    pub(crate) answers: u32,
}

impl Connection {
    /// A connection just accepted, of which nothing is known.
    pub(crate) fn new(wire: Wire) -> Connection {
        Connection {
            wire,
            reader: Reader::new(),
            ahead: Vec::new(),
            ahead_from: 0,
            phase: Phase::Reading,
            input: Input::Drained,
            booking: Booking::New,
            told_of_room: false,
            has_turn: false,
            answers: 0,
        }
    }

    /// The kernel has bytes, or the end of them.
    pub(crate) fn note_readable(&mut self, half_closed: bool) {
        if half_closed {
            self.input = Input::Ending;
        } else if self.input == Input::Drained {
            self.input = Input::Readable;
        }
    }

    /// What to do next. Reads from the kernel at most once, into `buffer`, and only if `may_receive`: one client that
    /// sends without end must not keep the others waiting.
    pub(crate) fn step(&mut self, buffer: &mut [u8], memo: &mut Memo, may_receive: &mut bool) -> Step {
        match self.phase {
            Phase::Reading if !self.wire.has_unsent() => {}
            Phase::Lingering => return self.drop_input(buffer, may_receive),
            Phase::Reading | Phase::Working { .. } | Phase::Asking | Phase::Writing { .. } => return Step::Wait,
        }
        if self.ahead_from < self.ahead.len() {
            let (taken, progress) = self.reader.feed(&self.ahead[self.ahead_from..], memo);
            self.ahead_from += taken;
            if self.ahead_from == self.ahead.len() {
                self.ahead_from = 0;
                self.ahead = Vec::new();
            }
            match progress {
                Progress::Unfinished => {}
                other => return needs(other),
            }
        }
        match self.receive(buffer, may_receive) {
            Ok(received) => {
                let (taken, progress) = self.reader.feed(&buffer[..received], memo);
                if taken < received && !matches!(progress, Progress::Refused(_)) {
                    self.ahead.extend_from_slice(&buffer[taken..received]);
                }
                match progress {
                    Progress::Unfinished if self.input != Input::Drained => Step::Again,
                    other => needs(other),
                }
            }
            Err(step) => step,
        }
    }

    /// Hands a response to the kernel, the `last` one or not: how many bytes it took, and what that means. The rest is
    /// kept.
    pub(crate) fn send(&mut self, response: &[u8], last: bool) -> (usize, Sent) {
        self.wire.send(response, last)
    }

    /// Hands what is left of a response to the kernel.
    pub(crate) fn send_rest(&mut self) -> (usize, Sent) {
        self.wire.send_rest()
    }

    /// Whether something of a response is left.
    pub(crate) fn has_unsent(&self) -> bool {
        self.wire.has_unsent()
    }

    /// Lets the close that follows be a reset.
    pub(crate) fn reset_on_close(&self) {
        self.wire.reset_on_close();
    }

    /// Whether a close now would make the kernel reset the connection, and the client lose the response with it.
    pub(crate) fn may_hold_input(&self) -> bool {
        self.input != Input::Drained || self.ahead_from < self.ahead.len()
    }

    /// Says that we send no more, and drops what comes.
    pub(crate) fn linger(&mut self) {
        self.be_silent();
        self.wire.end();
    }

    /// Says nothing any more, and drops what comes.
    pub(crate) fn be_silent(&mut self) {
        self.phase = Phase::Lingering;
        self.ahead = Vec::new();
        self.ahead_from = 0;
    }

    fn drop_input(&mut self, buffer: &mut [u8], may_receive: &mut bool) -> Step {
        match self.receive(buffer, may_receive) {
            Ok(_) if self.input != Input::Drained => Step::Again,
            Ok(_) => Step::Wait,
            Err(step) => step,
        }
    }

    /// Reads once: how many bytes; or what to do instead.
    fn receive(&mut self, buffer: &mut [u8], may_receive: &mut bool) -> Result<usize, Step> {
        if self.input == Input::Drained {
            return Err(Step::Wait);
        }
        if !std::mem::take(may_receive) {
            return Err(Step::Again);
        }
        match self.wire.receive(buffer) {
            Received::Bytes(bytes, emptied) => {
                // What comes later is a new edge. But the end of the stream was told with this edge, or before it.
                if emptied && self.input == Input::Readable {
                    self.input = Input::Drained;
                }
                if bytes > 0 {
                    return Ok(bytes);
                }
                Err(match (self.wire.has_unsent(), self.input) {
                    (true, _) => Step::NeedRoom,
                    (false, Input::Drained) => Step::Wait,
                    (false, Input::Readable | Input::Ending) => Step::Again,
                })
            }
            Received::Nothing => {
                self.input = Input::Drained;
                Err(Step::Wait)
            }
            Received::Interrupted => Err(Step::Again),
            Received::End | Received::Gone => Err(Step::Gone),
            Received::Broken => Err(Step::Broken),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

fn needs(progress: Progress) -> Step {
    match progress {
        Progress::Unfinished => Step::Wait,
        Progress::WantsContinue => Step::Continue,
        Progress::Whole(request) => Step::Serve(request),
        Progress::Refused(refusal) => Step::Refuse(refusal),
    }
}
