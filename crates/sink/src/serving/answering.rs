//! Answers the requests of one loop: puts them into the slot pool, and sends the responses.

use std::sync::atomic::Ordering;

use model::Clock;
use poller::EventFlags;

use super::{LINGER, ServingLoop, watched};
use crate::SinkLedger;
use crate::connection::{
    AfterResponse, Booking, ConnectionKey, ConnectionPhase, ConnectionStep, ResponseKind,
};
use crate::laws::{Fault, fault_of};
use crate::request::{ConnectionFate, ReadProgress, Refusal, RequestHead, RequestRoute};
use crate::response::{self, OK, ResponseExtent};
use crate::slots::{FinishedRequest, SlotRequest};
use crate::wire::WriteOutcome;

/// The response to a request, and what happens after it.
struct PlannedResponse {
    status: u16,
    extent: ResponseExtent,
    then: AfterResponse,
    kind: ResponseKind,
}

impl PlannedResponse {
    /// The response with this fault; a `bodiless` one has no body in any case.
    fn of(fault: Option<Fault>, fate: ConnectionFate, bodiless: bool) -> PlannedResponse {
        if let Some(Fault::Truncate) = fault {
            return PlannedResponse {
                status: OK,
                extent: ResponseExtent::Cut { bodiless },
                then: AfterResponse::Close,
                kind: ResponseKind::Part,
            };
        }
        PlannedResponse {
            status: if let Some(Fault::Status(code)) = fault { code } else { OK },
            extent: if bodiless { ResponseExtent::Head } else { ResponseExtent::Whole },
            then: match fate {
                ConnectionFate::Close => AfterResponse::Close,
                ConnectionFate::KeepAlive | ConnectionFate::KeepAliveSaid => AfterResponse::Read,
            },
            kind: ResponseKind::Whole,
        }
    }
}

impl<C: Clock + Clone> ServingLoop<C> {
    /// Advances a connection until it has to wait. Reads from the kernel only if `may_receive`.
    pub(super) fn advance(&mut self, key: ConnectionKey, mut may_receive: bool) {
        while let Some(connection) = self.connections.at(key) {
            let goes_on = match connection.step(&mut self.buffer, &mut self.memo, &mut may_receive)
            {
                ConnectionStep::Wait => return,
                ConnectionStep::Again => {
                    if !std::mem::replace(&mut connection.has_turn, true) {
                        self.again.push(key);
                    }
                    return;
                }
                ConnectionStep::NeedRoom => return self.watch_for_room(key),
                ConnectionStep::Gone => return self.close(key),
                ConnectionStep::Broken => {
                    self.ledger.failed_handshakes += 1;
                    return self.close(key);
                }
                ConnectionStep::Read(ReadProgress::WantsContinue) => {
                    let (bytes, sent) = connection.socket.send(response::CONTINUE, false);
                    self.has_sent(key, bytes, sent)
                }
                ConnectionStep::Read(ReadProgress::Refused(refusal)) => self.refuse(key, refusal),
                ConnectionStep::Read(ReadProgress::Whole(head, bytes)) => {
                    self.serve(key, head, bytes)
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Puts a request into the pool, or answers it at once. Returns whether the connection may
    /// continue with its next request.
    fn serve(&mut self, key: ConnectionKey, head: RequestHead, bytes: u64) -> bool {
        if head.route == RequestRoute::Ledger {
            return self.ask_for_ledger(key, head);
        }
        let Some(connection) = self.connections.at(key) else { return false };
        if std::mem::replace(&mut connection.booking, Booking::Client) == Booking::Onlooker {
            self.ledger.connections += 1;
            self.ledger.open_connections += 1;
        }
        connection.phase = ConnectionPhase::Working(head);
        self.ledger.requests += 1;
        self.ledger.received_bytes += bytes;
        self.arrived += 1;
        // Relaxed is enough: each number is taken once, and nothing depends on the order.
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let service = match head.route {
            RequestRoute::Sleep(duration) => duration,
            RequestRoute::Content | RequestRoute::Ledger => {
                self.settings.delay.of(self.settings.seed, number)
            }
        };
        if head.asks_for_stamps {
            // Read the clock again: the request arrived after the time of this turn, and its stamp
            // must not be earlier than that.
            self.look_at_the_clock();
        }
        let last = head.fate == ConnectionFate::Close;
        match self.pool.arrive(self.now, SlotRequest { connection: key, number, service, last }) {
            Some(finished) => self.answer(finished),
            None => false,
        }
    }

    /// Takes a request for the ledger. It isn't counted and is answered in the next turn, when the
    /// ledgers of all loops can be read. Returns whether the connection may continue with its next
    /// request.
    fn ask_for_ledger(&mut self, key: ConnectionKey, head: RequestHead) -> bool {
        let Some(connection) = self.connections.at(key) else { return false };
        if connection.booking == Booking::New {
            connection.booking = Booking::Onlooker;
            self.ledger.connections -= 1;
            self.ledger.open_connections -= 1;
        }
        connection.phase = ConnectionPhase::Working(head);
        self.inquiries.push((key, head));
        false
    }

    pub(super) fn show_ledger(
        &mut self,
        key: ConnectionKey,
        head: &RequestHead,
        ledger: &SinkLedger,
    ) -> bool {
        let response = response::of_ledger(ledger, head.fate, head.bodiless_response);
        let then = if head.fate == ConnectionFate::Close {
            AfterResponse::Close
        } else {
            AfterResponse::Read
        };
        self.respond_uncounted(key, &response, then)
    }

    fn refuse(&mut self, key: ConnectionKey, refusal: Refusal) -> bool {
        self.ledger.bad_requests += 1;
        self.leaving.push_back((self.now.saturating_add(LINGER), key));
        self.respond_uncounted(key, &response::of_refusal(refusal), AfterResponse::Linger)
    }

    fn respond_uncounted(
        &mut self,
        key: ConnectionKey,
        response: &[u8],
        then: AfterResponse,
    ) -> bool {
        let Some(connection) = self.connections.at(key) else { return false };
        connection.phase = ConnectionPhase::Writing(then, ResponseKind::Uncounted);
        let (bytes, sent) = connection.socket.send(response, then != AfterResponse::Read);
        self.has_sent(key, bytes, sent)
    }

    /// Sends all responses that are due, then serves the requests that their connections pipelined.
    pub(super) fn answer_the_due(&mut self) {
        while let Some(finished) = self.pool.finish(self.now) {
            let key = finished.request.connection;
            // Use the time at which it is sent, not the start of this turn.
            self.ledger.lateness.record(self.time().saturating_sub(finished.due));
            if self.answer(finished) {
                self.advance(key, false);
            }
        }
    }

    /// Answers a request, or applies its fault. Returns whether the connection continues.
    fn answer(&mut self, finished: FinishedRequest) -> bool {
        let FinishedRequest {
            request: SlotRequest { connection: key, number, .. },
            worker,
            started,
            due,
            crowded,
        } = finished;
        self.ledger.per_worker[worker as usize] += 1;
        let fault = fault_of(&self.settings.faults, self.settings.seed, number);
        let makes_room = crowded && self.has_pending_clients();
        let Some(connection) = self.connections.at(key) else {
            self.ledger.abandoned += 1;
            return false;
        };
        let ConnectionPhase::Working(head) = connection.phase else {
            unreachable!("a connection that is still open waits for its response")
        };
        connection.responses += 1;
        let is_at_limit =
            self.settings.close_after.is_some_and(|most| connection.responses >= most);
        let fate = if self.stopping || makes_room || is_at_limit {
            ConnectionFate::Close
        } else {
            head.fate
        };
        match fault {
            None => {}
            Some(Fault::Status(code)) => {
                *self.ledger.faults.by_status.entry(code).or_default() += 1;
            }
            Some(Fault::Truncate) => self.ledger.faults.truncated += 1,
            Some(Fault::Reset) => return self.reset(key),
            Some(Fault::NoAnswer) => return self.leave_unanswered(key),
        }
        let PlannedResponse { status, extent, then, kind } =
            PlannedResponse::of(fault, fate, head.bodiless_response);
        let is_whole = kind == ResponseKind::Whole;
        self.ledger.faults.closed +=
            u64::from(is_at_limit && head.fate != ConnectionFate::Close && is_whole);
        connection.phase = ConnectionPhase::Writing(then, kind);
        let mut response = self.responses.of(status, worker, fate, extent, number);
        let with_stamps;
        if head.asks_for_stamps && is_whole {
            with_stamps =
                response::stamped(response, [started, due].map(|instant| self.shared + instant));
            response = &with_stamps;
        }
        // Don't announce the end of a cut response: it must look cut in TLS, too.
        let is_last = then == AfterResponse::Close && is_whole;
        let (bytes, sent) = connection.socket.send(response, is_last);
        self.has_sent(key, bytes, sent)
    }

    /// Resets the connection in place of a response.
    fn reset(&mut self, key: ConnectionKey) -> bool {
        self.ledger.faults.reset += 1;
        if let Some(connection) = self.connections.at(key) {
            connection.socket.reset_on_close();
        }
        self.close(key);
        false
    }

    /// Sends no response, and reads no further request. Returns whether the connection stays open.
    fn leave_unanswered(&mut self, key: ConnectionKey) -> bool {
        self.ledger.faults.unanswered += 1;
        if self.stopping {
            self.close(key);
            return false;
        }
        if let Some(connection) = self.connections.at(key) {
            connection.be_silent();
        }
        true
    }

    /// Counts what the kernel took of a response. Returns whether the connection continues.
    pub(super) fn has_sent(
        &mut self,
        key: ConnectionKey,
        bytes: usize,
        sent: WriteOutcome,
    ) -> bool {
        let Some(connection) = self.connections.at(key) else { return false };
        // In any other phase it is an interim response.
        let (then, kind) = match connection.phase {
            ConnectionPhase::Writing(then, kind) => (Some(then), kind),
            _ => (None, ResponseKind::Part),
        };
        if kind != ResponseKind::Uncounted {
            self.ledger.sent_bytes += bytes as u64;
        }
        match sent {
            WriteOutcome::All => {
                self.ledger.answers += u64::from(kind == ResponseKind::Whole);
                then.is_none_or(|then| self.after_response(key, then))
            }
            WriteOutcome::Part => {
                self.watch_for_room(key);
                false
            }
            WriteOutcome::Gone => {
                self.close(key);
                false
            }
        }
    }

    /// Does what follows a response. Returns whether the connection continues.
    fn after_response(&mut self, key: ConnectionKey, then: AfterResponse) -> bool {
        let stopping = self.stopping;
        let Some(connection) = self.connections.at(key) else { return false };
        connection.phase = ConnectionPhase::Reading;
        match then {
            AfterResponse::Read if !stopping => true,
            AfterResponse::Read | AfterResponse::Close if !connection.may_hold_input() => {
                self.close(key);
                false
            }
            AfterResponse::Read | AfterResponse::Close => {
                connection.linger();
                self.leaving.push_back((self.now.saturating_add(LINGER), key));
                true
            }
            AfterResponse::Linger => {
                connection.linger();
                true
            }
        }
    }

    /// The kernel took only a part: ask for an event when there is room again.
    fn watch_for_room(&mut self, key: ConnectionKey) {
        let Some(connection) = self.connections.at(key) else { return };
        if std::mem::replace(&mut connection.watches_room, true) {
            return;
        }
        self.ledger.stalled += 1;
        if self.poller.modify(&connection.socket, key.0, watched() | EventFlags::OUT).is_err() {
            self.close(key);
        }
    }
}
