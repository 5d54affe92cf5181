//! The loop of a lane: wait, receive, send; and what becomes due or times out meanwhile.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{Clock, LaneFacts, LatePolicy, Nanos, Outcome, Timing};

use super::Lane;
use super::records::LaneOutcome;
use crate::connection::ConnectionState;
use crate::kernel_timestamps::WallClock;
use crate::progress::{LaneProgress, LastResponses};
use crate::scheduler::DueRequest;
use crate::thread::{CpuAccount, NOTABLE};
use crate::waiting::{BusyPoll, LONGEST_WAKE_DELAY};
use crate::wire::{ConnectionDriver, ConnectionEvent};

/// The longest wait in one go: how late a lane may notice a timeout or the user's interruption.
const LONGEST_WAIT: Nanos = Nanos::from_millis(100);
/// Before a due time, how long a lane polls for it ([`Timing::Spin`]).
const SPIN: Nanos = LONGEST_WAKE_DELAY;
/// What a lane that coalesces rounds its waits up to ([`Timing::Coalesce`]).
const COALESCED: Nanos = Nanos::from_millis(1);

impl<C: Clock, W: ConnectionDriver> Lane<'_, C, W> {
    /// Runs to the end: all planned requests ended, or `interrupt` was set. `progress` is where
    /// others see how far this lane is.
    pub fn run(self, interrupt: &AtomicBool, progress: &LaneProgress) -> LaneOutcome {
        // Compiled twice, so that a load without classes pays nothing for them.
        if self.records.tells_classes() {
            self.run_loop::<true>(interrupt, progress)
        } else {
            self.run_loop::<false>(interrupt, progress)
        }
    }

    #[inline(never)]
    fn run_loop<const CLASSES: bool>(
        mut self,
        interrupt: &AtomicBool,
        progress: &LaneProgress,
    ) -> LaneOutcome {
        let mut events = Vec::with_capacity(1024);
        let mut now = self.wait_for_start(&mut events);
        self.wall = self.spec.is_stamped().then(|| WallClock::new(&self.clock));
        let may_poll = self.spec.busy_polls && !self.scheduler.is_open();
        self.busy_poll = may_poll.then(|| BusyPoll::new(self.spec.load.lanes)).flatten();
        self.send_what_is_due(now);
        let mut interrupted_at = None;
        let began_at = now;
        let account = CpuAccount::begin();
        self.standstill.read_cpu_time();
        while !self.is_over(now) {
            now = self.wait_for_news(now, &mut events);
            if !self.unread.is_empty() {
                self.receive_the_unread(now);
            }
            for event in &events {
                self.handle::<CLASSES>(*event, now);
            }
            if now >= self.next_scan {
                self.expire_timeouts(now);
                self.show_last_responses(now, progress);
            }
            while let Some(Reverse((until, slot))) = self.pausing.peek().copied()
                && until <= now
            {
                self.pausing.pop();
                self.free.push(slot);
            }
            self.send_what_is_due(now);
            if let Some(journal) = &mut self.records.journal {
                journal.age(now);
            }
            progress.show(self.records.ended, || self.records.tally());
            if interrupt.load(Ordering::Relaxed) {
                interrupted_at = Some(now);
                break;
            }
        }
        progress.show(self.records.ended, || self.records.tally());
        progress.show_last_responses(LastResponses::default());
        let elapsed = now.saturating_sub(began_at);
        let facts = account.and_then(|account| self.facts(account, elapsed));
        self.finish(interrupted_at, facts)
    }

    /// Waits until the run starts, and returns the time then.
    fn wait_for_start(&mut self, events: &mut Vec<ConnectionEvent>) -> Nanos {
        let mut now = self.clock.now();
        while now < self.start {
            self.wire.wait((self.start - now).min(LONGEST_WAIT), events);
            now = self.clock.now();
        }
        now
    }

    /// Waits for news, or until something is due, and returns the time then.
    #[inline(always)]
    fn wait_for_news(&mut self, before: Nanos, events: &mut Vec<ConnectionEvent>) -> Nanos {
        let mut now = before;
        if self.scheduler.is_open() {
            // The wait is counted from now on: sending has taken time since `before`.
            now = self.clock.now();
            if now >= self.backlog.next() {
                self.sample_the_backlog(now);
            }
        }
        let at_most = self.longest_wait(now);
        let until = now + at_most;
        let has_slept = self.wait(at_most, events);
        now = self.clock.now();
        if now.saturating_sub(before) > at_most + NOTABLE {
            self.standstill.was_late(before + at_most, now);
            self.records.response_clock.was_away(now);
        }
        if has_slept {
            self.wake_delay.woke(until, now);
        }
        now
    }

    /// What this thread used of the CPU, and how long it stood still.
    fn facts(&self, mut account: CpuAccount, elapsed: Nanos) -> Option<LaneFacts> {
        let [cpu, run_queue] = account.used()?;
        Some(LaneFacts {
            cpu,
            run_queue,
            elapsed,
            spun: self.busy_poll.as_ref().map_or(Nanos::ZERO, BusyPoll::spent),
            stood_still: self.standstill.sum,
            longest_standstill: self.standstill.longest,
        })
    }

    /// Waits for news, `at_most` this long, and says whether the lane slept to the end of that.
    /// Where it pays, polls before it sleeps; but not if the last news (still in `events`) was only
    /// pieces of responses: while the lane sleeps, more bytes collect for each read.
    #[inline]
    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>) -> bool {
        if self.scheduler.next_due().is_some() && self.unread_responses.may_wait(at_most) {
            // Responses stay in the kernel until the lane wakes up to send the next request.
            self.unread_responses.until = self.clock.now() + at_most;
            self.clock.sleep(at_most);
            self.wire.wait(Nanos::ZERO, events);
            return true;
        }
        let ended_before = std::mem::replace(&mut self.ended_before, self.records.ended);
        let were_pieces = !events.is_empty() && self.records.ended == ended_before;
        match &mut self.busy_poll {
            Some(busy_poll) if at_most > Nanos::ZERO && !were_pieces => {
                busy_poll.wait(
                    &self.clock,
                    |at_most, events| self.wire.wait(at_most, events),
                    at_most,
                    self.busy,
                    events,
                );
            }
            _ => self.wire.wait(at_most, events),
        }
        at_most > Nanos::ZERO && events.is_empty()
    }

    /// Open loop: notes how many requests are due and unanswered, among them those that timed out.
    /// After the last due time there is no load any more, and so no backlog.
    #[cold]
    fn sample_the_backlog(&mut self, now: Nanos) {
        let unanswered = self.records.timed_out();
        let waiting = (self.busy + self.scheduler.queued.len() + self.retries.len()) as u64;
        let ended_at = self.scheduler.ended_at();
        self.backlog.take(ended_at.map_or(now, |last_due| now.min(last_due)), waiting + unanswered);
        if let Some(last_due) = ended_at {
            self.backlog.end(last_due);
        }
    }

    /// When an open loop ends, even if requests are in flight or queued: 1.1 timeouts after its
    /// last due time, so that a request that began a little late has its whole timeout.
    fn latest_end(&mut self) -> Option<Nanos> {
        Some(self.scheduler.ended_at()? + self.spec.load.timeout + self.spec.load.timeout / 10)
    }

    /// Whether nothing is left to do, or no time is left.
    fn is_over(&mut self, now: Nanos) -> bool {
        if self.latest_end().is_some_and(|end| now >= end) {
            return true;
        }
        // No measured request is left: the others get this long to end.
        if let Some(drain) = self.spec.drain
            && self.busy_measured == 0
            && !self.scheduler.is_open()
            && self.scheduler.is_over(now)
        {
            return self.busy == 0 || now >= *self.drains_until.get_or_insert(now + drain);
        }
        self.busy == 0
            && self.retries.len() == 0
            && (self.scheduler.is_over(now)
                || !self.scheduler.is_open()
                    && self.connections.iter().all(|c| c.state == ConnectionState::Finished))
    }

    /// How long the lane may sleep: until something is due.
    fn longest_wait(&mut self, now: Nanos) -> Nanos {
        let is_free = !self.scheduler.is_open() && !self.free.is_empty();
        if !self.unread.is_empty()
            || is_free && self.keeps_loading(now) && !self.scheduler.is_exhausted()
        {
            return Nanos::ZERO;
        }
        let mut until = self.next_scan.min(now + LONGEST_WAIT);
        if let Some(end) = self.latest_end() {
            until = until.min(end.max(now));
        }
        if let Some(due) = self.scheduler.next_due() {
            until = until.min(match self.spec.load.timing {
                Timing::Precise => due.saturating_sub(self.wake_delay.expected()).max(now),
                Timing::Spin => due.saturating_sub(SPIN).max(now),
                Timing::Coalesce => Nanos(due.0.div_ceil(COALESCED.0) * COALESCED.0),
            });
        }
        if let Some(Reverse((pause_end, _))) = self.pausing.peek() {
            until = until.min(*pause_end);
        }
        if let Some(again_at) = self.retries.next_at() {
            until = until.min(again_at.max(now));
        }
        until.saturating_sub(now)
    }

    /// Begins the requests that are due: in a closed loop one on each free connection, in an open
    /// loop those of the schedule for which a connection is free.
    #[inline]
    fn send_what_is_due(&mut self, now: Nanos) {
        if self.scheduler.is_open() {
            self.scheduler.queue_due(now);
            if self.retries.len() > 0 {
                self.queue_retries(now);
            }
            while !self.scheduler.queued.is_empty()
                && let Some(slot) = self.free.pop()
                && let Some(due) = self.scheduler.pop(now, &mut self.records.tally.queued)
            {
                self.begin(slot as usize, due, now);
            }
            if !self.scheduler.queued.is_empty() {
                match self.spec.load.late {
                    LatePolicy::Queue => self.scheduler.mark_waiting(),
                    LatePolicy::Skip => self.drop_queued(now, Outcome::Skipped),
                }
                if self.scheduler.ended_at().is_some() {
                    self.give_up_a_hopeless_queue(now);
                }
            }
        } else if !self.free.is_empty() && self.keeps_loading(now) {
            // A connection whose request fails at once is free again, and waits for the next turn.
            std::mem::swap(&mut self.free, &mut self.freed_before);
            let mut slots = std::mem::take(&mut self.freed_before);
            for slot in slots.drain(..) {
                let due = self.connections[slot as usize].next_due;
                match self.scheduler.next_at(due) {
                    Some(due) => self.begin(slot as usize, due, now),
                    None => self.retire(slot as usize),
                }
            }
            self.freed_before = slots;
        } else {
            // The load is over. A server may hold a thread for each connection that is left open,
            // while others wait for their last response.
            while let Some(slot) = self.free.pop() {
                self.retire(slot as usize);
            }
        }
    }

    /// Closed loop: whether free connections make another request. They go on after the window,
    /// unmeasured, until the last measured request has ended; otherwise the last requests would
    /// meet a less loaded server than all before. Each connection's first request is due at the
    /// start, and is made however late the lane wakes up.
    #[inline]
    fn keeps_loading(&self, now: Nanos) -> bool {
        now < self.window.until || self.busy_measured > 0 || !self.scheduler.has_begun()
    }

    /// Open loop, after the last due time: where the server has not kept up, queued requests are
    /// still sent, late, for one timeout. If only a small part of them could be sent in that time,
    /// none is: waiting would tell nothing more.
    #[cold]
    fn give_up_a_hopeless_queue(&mut self, now: Nanos) {
        if std::mem::replace(&mut self.has_judged_queue, true) {
            return;
        }
        let begun = self.records.ended + self.busy as u64;
        if self.scheduler.is_hopeless(begun, self.spec.load.timeout) {
            self.drop_queued(now, Outcome::NotSent);
        }
    }

    /// Open loop: gives up the requests that are due and have found no connection. `Skipped` ones
    /// end at their due time. `NotSent` ones end now: the run is over, or their queue hopeless.
    #[cold]
    fn drop_queued(&mut self, now: Nanos, outcome: Outcome) {
        while let Some(DueRequest { number, at: due, .. }) =
            self.scheduler.pop(now, &mut self.records.tally.queued)
        {
            let ended = if outcome == Outcome::Skipped { due } else { now.max(due) };
            let class = self.spec.requests.class_of(number);
            self.records.unsent(number, class, due, ended, outcome);
        }
    }

    /// Ends the requests that have taken longer than the timeout.
    fn expire_timeouts(&mut self, now: Nanos) {
        if let Some(wall) = &mut self.wall {
            wall.check(&self.clock, now);
        }
        let timeout = self.spec.load.timeout;
        let connect_timeout = self.spec.load.connect_timeout.unwrap_or(timeout).min(timeout);
        let step = (connect_timeout / 20).clamp(Nanos::from_millis(1), LONGEST_WAIT);
        self.next_scan = now + step;
        self.standstill.read_cpu_time();
        for slot in 0..self.connections.len() {
            let connection = &self.connections[slot];
            let is_connected = connection.state == ConnectionState::Open;
            let longest = if is_connected { timeout } else { connect_timeout };
            if let Some(request) = &connection.outstanding
                && now.saturating_sub(request.begun) >= longest
            {
                self.make_no_further_request(slot, now);
                let outcome =
                    if is_connected { Outcome::TimedOut } else { Outcome::ConnectTimedOut };
                self.end(slot, outcome, now, None);
            }
        }
    }

    /// If the load is over, lets no further request be made in place of the one of `slot`, which has
    /// timed out. (Its end subtracts it from those left, if it is measured.)
    #[cold]
    pub(super) fn make_no_further_request(&mut self, slot: usize, now: Nanos) {
        if now >= self.window.until && !self.scheduler.is_open() {
            let connection = &mut self.connections[slot];
            connection.requests_left = u64::from(connection.has_measured_request());
        }
    }

    /// Shows how many responses are still waited for, once the window or the count is over.
    fn show_last_responses(&mut self, now: Nanos, progress: &LaneProgress) {
        if now >= self.window.until || self.scheduler.is_over(now) {
            let queued = self.scheduler.queued.len() as u64;
            progress.show_last_responses(LastResponses { out: self.busy_measured as u64, queued });
        }
    }

    /// Records the requests that have not ended, and returns all that the lane has recorded.
    fn finish(mut self, interrupted_at: Option<Nanos>, facts: Option<LaneFacts>) -> LaneOutcome {
        // Not the time of the last turn, which may have sent something since it read the clock.
        let now = self.clock.now();
        if let Some(wall) = &mut self.wall {
            wall.check_now(&self.clock);
        }
        if interrupted_at.is_some() {
            for slot in 0..self.connections.len() {
                self.stop(slot, now);
            }
            while let Some(due) = self.scheduler.pop(now, &mut self.records.tally.queued) {
                let class = self.spec.requests.class_of(due.number);
                self.records.stopped_unsent(due.number, class, due.at, now);
            }
        } else {
            self.expire_timeouts(now);
            for slot in 0..self.connections.len() {
                self.end(slot, Outcome::InFlight, now, None);
            }
            self.drop_queued(now, Outcome::NotSent);
        }
        self.give_up_retries();
        let clock_steps = self.wall.map(|wall| wall.steps());
        let backlog = self.scheduler.is_open().then(|| {
            self.backlog.end(self.scheduler.last_due);
            self.backlog
        });
        let lanes = facts.into_iter().collect();
        LaneOutcome {
            interrupted_at,
            lanes,
            clock_steps,
            backlog,
            ..self.records.finish(&self.heads)
        }
    }
}
