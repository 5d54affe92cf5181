//! What a loop does with requests: into the pool, out of it, and to the client.

use std::sync::atomic::Ordering;

use model::Clock;
use poller::EventFlags;
use rustix::fd::AsFd;

use super::{Inquiry, LINGER, Serving, watched};
use crate::SinkLedger;
use crate::connection::{Booking, Phase, Says, Step, Then};
use crate::connections::Key;
use crate::faults::Fault;
use crate::head::{Ending, Refusal};
use crate::mail::Letter;
use crate::request::Request;
use crate::response::{self, Extent};
use crate::routes::Route;
use crate::slots::{FinishedRequest, SlotRequest};
use crate::wire::Sent;

impl<C: Clock + Clone> Serving<C> {
    /// Does all that a connection needs. Reads from the kernel only if `may_receive`.
    pub(super) fn advance(&mut self, key: Key, mut may_receive: bool) {
        while let Some(connection) = self.connections.at(key) {
            match connection.step(&mut self.buffer, &mut self.memo, &mut may_receive) {
                Step::Wait => return,
                Step::Again => {
                    if !std::mem::replace(&mut connection.has_turn, true) {
                        self.again.push(key);
                    }
                    return;
                }
                Step::NeedRoom => return self.watch_for_room(key),
                Step::Gone => return self.close(key),
                Step::Broken => {
                    self.ledger.failed_handshakes += 1;
                    return self.close(key);
                }
                Step::Continue => {
                    let (bytes, sent) = connection.send(response::CONTINUE, false);
                    self.ledger.sent_bytes += bytes as u64;
                    match sent {
                        Sent::All => {}
                        Sent::Part => self.watch_for_room(key),
                        Sent::Gone => return self.close(key),
                    }
                }
                Step::Refuse(refusal) => return self.refuse(key, refusal),
                Step::Serve(request) => {
                    if !self.serve(key, request) {
                        return;
                    }
                }
            }
        }
    }

    /// Takes a request: into the pool, or answers it at once. Whether the connection may go on to its next.
    fn serve(&mut self, key: Key, request: Request) -> bool {
        let Request { head, bytes } = request;
        if head.route == Route::Ledger {
            return self.ask_for_ledger(key, head.ending, head.bodiless_answer);
        }
        let Some(connection) = self.connections.at(key) else { return false };
        if std::mem::replace(&mut connection.booking, Booking::Client) == Booking::Onlooker {
            self.ledger.connections += 1;
            self.ledger.open_connections += 1;
        }
        let stamped = head.asks_for_stamps;
        connection.phase = Phase::Working { ending: head.ending, bodiless: head.bodiless_answer, stamped };
        self.ledger.requests += 1;
        self.ledger.received_bytes += bytes;
        self.arrived += 1;
        // Relaxed: a number is taken once, and nothing else hangs on the order of takers.
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let service = match head.route {
            Route::Sleep(duration) => duration,
            Route::Usual | Route::Ledger => self.delay.of(self.seed, number),
        };
        if stamped {
            // It came after this turn's time was read, and its stamp shall not say otherwise.
            self.look_at_the_clock();
        }
        let request = SlotRequest { connection: key, number, service, last: head.ending == Ending::Close };
        match self.pool.arrive(self.now, request) {
            Some(finished) => self.answer(finished),
            None => false,
        }
    }

    /// Answers a request for the ledger, which leaves no trace in it. Whether the connection may go on to its next.
    fn ask_for_ledger(&mut self, key: Key, ending: Ending, bodiless: bool) -> bool {
        let Some(connection) = self.connections.at(key) else { return false };
        if connection.booking == Booking::New {
            connection.booking = Booking::Onlooker;
            self.ledger.connections -= 1;
            self.ledger.open_connections -= 1;
        }
        let number = self.inquiries_made;
        self.inquiries_made += 1;
        // A loop that has ended is not waited for.
        let put = |peer: &&crate::mail::Mailbox| peer.put(Letter::Peer(self.mailbox.clone(), number));
        let missing = self.peers.iter().filter(put).count();
        if missing == 0 {
            return self.show_ledger(key, ending, bodiless, &self.ledger());
        }
        let Some(connection) = self.connections.at(key) else { return false };
        connection.phase = Phase::Asking;
        self.inquiries.push(Inquiry { number, key, ending, bodiless, missing, sum: SinkLedger::default() });
        false
    }

    /// Another loop's counts.
    pub(super) fn hear(&mut self, number: u64, counts: &SinkLedger) {
        let Some(place) = self.inquiries.iter().position(|inquiry| inquiry.number == number) else { return };
        let inquiry = &mut self.inquiries[place];
        inquiry.sum.add(counts);
        inquiry.missing -= 1;
        if inquiry.missing > 0 {
            return;
        }
        let Inquiry { key, ending, bodiless, mut sum, .. } = self.inquiries.swap_remove(place);
        sum.add(&self.ledger());
        if self.connections.at(key).is_some() && self.show_ledger(key, ending, bodiless, &sum) {
            self.advance(key, false);
        }
    }

    fn show_ledger(&mut self, key: Key, ending: Ending, bodiless: bool, ledger: &SinkLedger) -> bool {
        let Some(connection) = self.connections.at(key) else { return false };
        let response = response::of_ledger(ledger, ending, bodiless);
        let then = if ending == Ending::Close { Then::Close } else { Then::Read };
        connection.phase = Phase::Writing { then, says: Says::Nothing };
        let (bytes, sent) = connection.send(&response, then == Then::Close);
        self.has_sent(key, bytes, sent)
    }

    fn refuse(&mut self, key: Key, refusal: Refusal) {
        let Some(connection) = self.connections.at(key) else { return };
        self.ledger.bad_requests += 1;
        self.leaving.push_back((self.now.saturating_add(LINGER), key));
        connection.phase = Phase::Writing { then: Then::Linger, says: Says::Nothing };
        let (bytes, sent) = connection.send(&response::of_refusal(refusal), true);
        if self.has_sent(key, bytes, sent) {
            self.advance(key, false);
        }
    }

    /// Answers all that is due by now, and what its connections sent ahead.
    pub(super) fn answer_the_due(&mut self) {
        while let Some(finished) = self.pool.finish(self.now) {
            let key = finished.request.connection;
            // As it goes out, and not as this turn began.
            self.ledger.lateness.record(self.time().saturating_sub(finished.due));
            if self.answer(finished) {
                self.advance(key, false);
            }
        }
    }

    /// Answers a request, or does to it what its fault is. Whether the connection goes on.
    fn answer(&mut self, finished: FinishedRequest) -> bool {
        let FinishedRequest { request: SlotRequest { connection: key, number, .. }, worker, started, due, crowded } =
            finished;
        self.ledger.per_worker[worker as usize] += 1;
        let fault = self.faults.as_ref().and_then(|faults| faults.of(self.seed, number));
        let makes_room = crowded && self.has_pending_clients();
        let Some(connection) = self.connections.at(key) else {
            self.ledger.abandoned += 1;
            return false;
        };
        let Phase::Working { ending: asked, bodiless, stamped } = connection.phase else {
            unreachable!("a connection that is still open waits for its answer")
        };
        connection.answers += 1;
        let is_full = self.close_after.is_some_and(|most| connection.answers >= most);
        let ending = if self.stopping || makes_room || is_full { Ending::Close } else { asked };
        let mut extent = if bodiless { Extent::Head } else { Extent::Whole };
        let (mut then, mut says) = (if ending == Ending::Close { Then::Close } else { Then::Read }, Says::Answer);
        let mut status = 0;
        match fault {
            None => {}
            Some(Fault::Status { place, code }) => {
                status = place + 1;
                *self.ledger.faults.by_status.entry(code).or_default() += 1;
            }
            Some(Fault::Truncate) => {
                extent = Extent::Cut { bodiless };
                (then, says) = (Then::Close, Says::Cut);
                self.ledger.faults.truncated += 1;
            }
            Some(Fault::Reset) => {
                self.ledger.faults.reset += 1;
                connection.reset_on_close();
                self.close(key);
                return false;
            }
            Some(Fault::NoAnswer) => {
                self.ledger.faults.unanswered += 1;
                if self.stopping {
                    self.close(key);
                    return false;
                }
                connection.be_silent();
                return true;
            }
        }
        self.ledger.faults.closed += u64::from(is_full && asked != Ending::Close && says == Says::Answer);
        connection.phase = Phase::Writing { then, says };
        let mut answer = self.answers.of(status, worker, ending, extent, number);
        let with_stamps;
        if stamped && says == Says::Answer {
            with_stamps = response::stamped(answer, [started, due].map(|instant| self.shared + instant));
            answer = &with_stamps;
        }
        // A cut answer's end is not announced: that it is cut must be seen in TLS, too.
        let (bytes, sent) = connection.send(answer, then == Then::Close && says == Says::Answer);
        self.has_sent(key, bytes, sent)
    }

    /// Books what the kernel took of a response. Whether the connection goes on.
    pub(super) fn has_sent(&mut self, key: Key, bytes: usize, sent: Sent) -> bool {
        let Some(connection) = self.connections.at(key) else { return false };
        let Phase::Writing { then, says } = connection.phase else {
            // An interim response, late.
            self.ledger.sent_bytes += bytes as u64;
            if sent == Sent::Gone {
                self.close(key);
            }
            return sent == Sent::All;
        };
        if says != Says::Nothing {
            self.ledger.sent_bytes += bytes as u64;
        }
        match sent {
            Sent::All => {
                self.ledger.answers += u64::from(says == Says::Answer);
                self.after_response(key, then)
            }
            Sent::Part => {
                self.watch_for_room(key);
                false
            }
            Sent::Gone => {
                self.close(key);
                false
            }
        }
    }

    /// What follows a response. Whether the connection goes on.
    fn after_response(&mut self, key: Key, then: Then) -> bool {
        let stopping = self.stopping;
        let Some(connection) = self.connections.at(key) else { return false };
        connection.phase = Phase::Reading;
        match then {
            Then::Read if !stopping => true,
            Then::Read | Then::Close if !connection.may_hold_input() => {
                self.close(key);
                false
            }
            Then::Read | Then::Close => {
                connection.linger();
                self.leaving.push_back((self.now.saturating_add(LINGER), key));
                true
            }
            Then::Linger => {
                connection.linger();
                true
            }
        }
    }

    /// The kernel took a part only: it is to say when it takes more.
    fn watch_for_room(&mut self, key: Key) {
        let Some(connection) = self.connections.at(key) else { return };
        if std::mem::replace(&mut connection.told_of_room, true) {
            return;
        }
        self.ledger.stalled += 1;
        if self.poller.modify(connection.as_fd(), key.number(), watched() | EventFlags::OUT).is_err() {
            self.close(key);
        }
    }
}
