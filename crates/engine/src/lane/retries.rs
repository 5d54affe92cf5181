//! Open loop: requests that have failed and are sent again ([`RetryPolicy`]).
//!
//! A repeated request keeps its number and its due time, and is recorded once, as its last attempt
//! ended: who waits for it does not care how often it was sent. Attempts are counted beside it.

use std::collections::VecDeque;

use model::{Clock, Nanos, Outcome, RetryPolicy};

use super::Lane;
use super::records::RequestEnd;
use crate::connection::Outstanding;
use crate::load_spec::LoadSpec;
use crate::wire::ConnectionDriver;

/// Failed requests, in the order in which they are sent again.
pub(super) struct Retries {
    policy: Option<RetryPolicy>,
    waiting: VecDeque<FailedAttempt>,
}

/// A request that has failed and will be sent again.
struct FailedAttempt {
    slot: usize,
    request: Outstanding,
    outcome: Outcome,
    end: RequestEnd,
    bytes: u64,
    again_at: Nanos,
}

impl Retries {
    /// None, unless the load asks for them and is an open loop.
    pub(super) fn of(spec: &LoadSpec) -> Retries {
        let policy = spec.load.retry.filter(|_| spec.load.pace.is_open());
        let room = if policy.is_some() { 1024 } else { 0 };
        Retries { policy, waiting: VecDeque::with_capacity(room) }
    }

    /// How many requests wait for their next attempt.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// When the first of them is sent again.
    pub(super) fn next_at(&self) -> Option<Nanos> {
        self.waiting.front().map(|attempt| attempt.again_at)
    }

    /// Takes a request of connection `slot` that ended in `outcome`, if it is to be sent again;
    /// `false`: it is not, and has to be recorded.
    #[cold]
    pub(super) fn take(
        &mut self,
        slot: usize,
        request: &Outstanding,
        outcome: Outcome,
        end: RequestEnd,
        bytes: u64,
    ) -> bool {
        let failed = request.due.failed_attempts + 1;
        let Some(policy) = self.policy.filter(|policy| policy.repeats(outcome, failed)) else {
            return false;
        };
        let again_at = end.seen + policy.pause;
        self.waiting.push_back(FailedAttempt {
            slot,
            request: *request,
            outcome,
            end,
            bytes,
            again_at,
        });
        true
    }
}

impl<C: Clock, W: ConnectionDriver> Lane<'_, C, W> {
    /// Queues the failed requests whose pause is over.
    #[cold]
    pub(super) fn queue_retries(&mut self, now: Nanos) {
        while let Some(attempt) = self.retries.waiting.front().filter(|it| it.again_at <= now) {
            let mut due = attempt.request.due;
            due.failed_attempts += 1;
            due.possible = attempt.again_at;
            self.scheduler.queued.push_back(due);
            self.records.tally.record_retry(attempt.again_at);
            self.retries.waiting.pop_front();
        }
    }

    /// Records the failures of requests that are not sent again, because the run is over.
    #[cold]
    pub(super) fn give_up_retries(&mut self) {
        while let Some(attempt) = self.retries.waiting.pop_front() {
            let FailedAttempt { slot, request, outcome, end, bytes, .. } = attempt;
            self.records.end(slot, &request, outcome, end, bytes, |_| {});
        }
    }
}
