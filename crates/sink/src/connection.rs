//! One client's connection: bytes in, requests out; a response in, bytes out. One request at a time: what a client
//! sends ahead stays in the kernel or in `ahead` until its turn, so that neither side of a connection grows without
//! bound and answers are in order.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::head::{Ending, Memo, Refusal};
use crate::request::{Progress, Reader, Request};

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
    },
    /// A response that the kernel has not taken wholly.
    Writing {
        /// What follows it.
        then: Then,
        /// Whether it answers a request of the ledger.
        counted: bool,
    },
    /// Our side is shut; what the client still sends is dropped.
    Lingering,
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
    /// To be forgotten: the client is gone.
    Gone,
}

/// How much of a response the kernel took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All that there was.
    All,
    /// A part; the rest is kept.
    Part,
    /// The client is gone.
    Gone,
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
    socket: OwnedFd,
    reader: Reader,
    /// What was read but belongs to later requests, from `ahead_from` on.
    ahead: Vec<u8>,
    ahead_from: usize,
    /// What the kernel did not take of a response.
    unsent: Vec<u8>,
    /// What it is about.
    pub(crate) phase: Phase,
    input: Input,
    /// What the ledger makes of it.
    pub(crate) booking: Booking,
    /// Whether it is registered for room to write, too.
    pub(crate) told_of_room: bool,
    /// Whether it waits for another turn already.
    pub(crate) has_turn: bool,
}

impl Connection {
    /// A connection just accepted, of which nothing is known.
    pub(crate) fn new(socket: OwnedFd) -> Connection {
        Connection {
            socket,
            reader: Reader::new(),
            ahead: Vec::new(),
            ahead_from: 0,
            unsent: Vec::new(),
            phase: Phase::Reading,
            input: Input::Drained,
            booking: Booking::New,
            told_of_room: false,
            has_turn: false,
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
            Phase::Reading if self.unsent.is_empty() => {}
            Phase::Lingering => return self.drop_input(buffer, may_receive),
            Phase::Reading | Phase::Working { .. } | Phase::Writing { .. } => return Step::Wait,
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
            Ok(0) => Step::Gone,
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

    /// Hands a response to the kernel: how many bytes it took, and what that means. The rest is kept.
    pub(crate) fn send(&mut self, response: &[u8]) -> (usize, Sent) {
        debug_assert!(self.unsent.is_empty(), "one response at a time");
        let (taken, sent) = hand_over(&self.socket, response);
        self.unsent.extend_from_slice(&response[taken..]);
        (taken, sent)
    }

    /// Hands what is left of a response to the kernel.
    pub(crate) fn send_rest(&mut self) -> (usize, Sent) {
        let (taken, sent) = hand_over(&self.socket, &self.unsent);
        self.unsent.drain(..taken);
        (taken, sent)
    }

    /// Whether something of a response is left.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether a close now would make the kernel reset the connection, and the client lose the response with it.
    pub(crate) fn may_hold_input(&self) -> bool {
        self.input != Input::Drained || self.ahead_from < self.ahead.len()
    }

    /// Says that we send no more, and drops what comes.
    pub(crate) fn linger(&mut self) {
        self.phase = Phase::Lingering;
        self.ahead = Vec::new();
        // Where it fails the client is gone, and the next read says so.
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    fn drop_input(&mut self, buffer: &mut [u8], may_receive: &mut bool) -> Step {
        match self.receive(buffer, may_receive) {
            Ok(0) => Step::Gone,
            Ok(_) if self.input != Input::Drained => Step::Again,
            Ok(_) => Step::Wait,
            Err(step) => step,
        }
    }

    /// Reads once: how many bytes, 0 at their end; or what to do instead.
    fn receive(&mut self, buffer: &mut [u8], may_receive: &mut bool) -> Result<usize, Step> {
        if self.input == Input::Drained {
            return Err(Step::Wait);
        }
        if !std::mem::take(may_receive) {
            return Err(Step::Again);
        }
        match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, received)) => {
                // A read that leaves room has emptied the socket (epoll(7)), and what comes later is a new edge. But
                // the end of the stream was told with this edge, or before it.
                if self.input == Input::Readable && received < buffer.len() {
                    self.input = Input::Drained;
                }
                Ok(received)
            }
            Err(Errno::AGAIN) => {
                self.input = Input::Drained;
                Err(Step::Wait)
            }
            Err(Errno::INTR) => Err(Step::Again),
            Err(_) => Err(Step::Gone),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
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

fn hand_over(socket: &OwnedFd, mut bytes: &[u8]) -> (usize, Sent) {
    let all = bytes.len();
    while !bytes.is_empty() {
        match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return (all - bytes.len(), Sent::Part),
            Err(_) => return (all - bytes.len(), Sent::Gone),
        }
    }
    (all, Sent::All)
}
