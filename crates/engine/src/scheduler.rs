//! What a lane sends next, and when: by the run's one schedule in an open loop, by a count in a
//! closed one.
//!
//! Each request has a number in the run. A lane takes every `lanes`-th of them, so all lanes
//! together follow one schedule and neither rate nor count depends on how many there are.

use std::collections::VecDeque;
use std::iter::{Peekable, Skip, StepBy};

use model::{DueTimes, DurationSummary, Nanos, Window};

use crate::load_spec::{LaneShare, LoadSpec};

/// A request that is due: its number in the run, and since when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DueRequest {
    pub(crate) number: u64,
    pub(crate) at: Nanos,
    /// When the generator could first have begun it: the due time, or when a connection became
    /// free.
    pub(crate) possible: Nanos,
    /// Whether it became due in the measured window.
    pub(crate) is_measured: bool,
    /// Attempts that have failed.
    pub(crate) failed_attempts: u8,
}

/// The requests of one lane.
pub(crate) struct Scheduler {
    start: Nanos,
    window: Window,
    lanes: u64,
    /// Open loop: due times still to come.
    schedule: Option<Peekable<StepBy<Skip<DueTimes>>>>,
    /// The next request's number.
    number: u64,
    /// The first number that is not sent any more.
    end: u64,
    /// Closed loop: measured requests that may still be begun.
    left: u64,
    /// Open loop: when the last request so far was due.
    pub(crate) last_due: Nanos,
    /// Open loop: due, and not yet begun.
    pub(crate) queued: VecDeque<DueRequest>,
    /// How many of those found no free connection when they became due.
    waiting: usize,
}

impl Scheduler {
    pub(crate) fn new(spec: &LoadSpec, share: LaneShare, start: Nanos) -> Scheduler {
        let lane = u64::from(share.lane);
        let lanes = u64::from(share.lanes);
        let load = &spec.load;
        let end = match (load.requests_total, load.pace.schedule()) {
            // The requests of the warm-up come on top of the count.
            (Some(n), Some(all)) => n + all.take_while(|due| *due < load.warm_up).count() as u64,
            (Some(_), None) | (None, _) => u64::MAX,
        };
        let left =
            load.requests_total.map_or(u64::MAX, |n| n / lanes + u64::from(lane < n % lanes));
        Scheduler {
            start,
            window: spec.window(start),
            lanes,
            schedule: load
                .pace
                .schedule()
                .map(|all| all.skip(share.lane as usize).step_by(share.lanes as usize).peekable()),
            number: lane,
            end,
            left,
            last_due: start,
            queued: VecDeque::with_capacity(1024),
            waiting: 0,
        }
    }

    /// Whether due times come from a schedule.
    pub(crate) fn is_open(&self) -> bool {
        self.schedule.is_some()
    }

    /// Open loop: when the next request becomes due; `None` after the last, and in a closed loop.
    #[inline]
    pub(crate) fn next_due(&mut self) -> Option<Nanos> {
        let due = self.start + *self.schedule.as_mut()?.peek()?;
        (due < self.window.until && self.number < self.end).then_some(due)
    }

    /// Open loop: queues all that is due by now.
    #[inline]
    pub(crate) fn queue_due(&mut self, now: Nanos) {
        while let Some(due) = self.next_due().filter(|due| *due <= now) {
            self.schedule.as_mut().and_then(Iterator::next);
            self.last_due = due;
            let is_measured = self.window.contains(due);
            self.queued.push_back(DueRequest {
                number: self.number,
                at: due,
                possible: due,
                is_measured,
                failed_attempts: 0,
            });
            self.number += self.lanes;
        }
    }

    /// Open loop: when the last request of all was due; `None` while others are to come, and in a
    /// closed loop.
    #[inline]
    pub(crate) fn ended_at(&mut self) -> Option<Nanos> {
        (self.is_open() && self.next_due().is_none()).then_some(self.last_due)
    }

    /// Open loop, after the last due time: whether it is useless to send what is queued, because at
    /// the pace so far (`begun` requests since the start) less than a tenth of it would be sent
    /// within `timeout`.
    pub(crate) fn is_hopeless(&self, begun: u64, timeout: Nanos) -> bool {
        const PART: f64 = 0.1;
        let elapsed = self.last_due.saturating_sub(self.start).as_secs_f64();
        let sendable = begun as f64 / elapsed.max(1e-9) * timeout.as_secs_f64();
        sendable < PART * self.queued.len() as f64
    }

    /// Open loop: the request that has been due longest. If it is measured and had to wait for a
    /// connection, that is added to `waits`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Nanos, waits: &mut DurationSummary) -> Option<DueRequest> {
        let mut due = self.queued.pop_front()?;
        if self.waiting > 0 {
            self.waiting -= 1;
            if due.is_measured {
                waits.record(now.saturating_sub(due.possible));
            }
            due.possible = now;
        }
        Some(due)
    }

    /// Open loop: notes that what is queued now has found no free connection.
    #[inline]
    pub(crate) fn mark_waiting(&mut self) {
        self.waiting = self.queued.len();
    }

    /// Closed loop: the next request, due then; `None` if all have been begun.
    #[inline]
    pub(crate) fn next_at(&mut self, due: Nanos) -> Option<DueRequest> {
        let is_measured = self.window.contains(due);
        if is_measured {
            self.left = self.left.checked_sub(1)?;
        }
        let number = self.number;
        self.number += self.lanes;
        Some(DueRequest { number, at: due, possible: due, is_measured, failed_attempts: 0 })
    }

    /// Whether any request has become due.
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        self.number >= self.lanes
    }

    /// Closed loop: whether the count is reached.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// Whether nothing that is measured will become due any more.
    pub(crate) fn is_over(&mut self, now: Nanos) -> bool {
        if self.is_open() {
            self.queued.is_empty() && self.next_due().is_none()
        } else {
            now >= self.window.until || self.is_exhausted()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_spec::tests::shape;
    use model::{Pace, Rate};

    /// An open loop over 64 connections.
    fn paced(lanes: u32, rate: f64) -> LoadSpec {
        shape(64, lanes).with(|load| load.pace = Pace::constant(Rate::new(rate).unwrap()))
    }

    #[test]
    fn the_lanes_together_follow_one_schedule() {
        let spec = LoadSpec { measured: Some(Nanos::from_secs(1)), ..paced(3, 1000.0) };
        let mut all = Vec::new();
        for share in spec.shares() {
            let mut scheduler = Scheduler::new(&spec, share, Nanos::ZERO);
            scheduler.queue_due(Nanos::from_secs(10));
            while let Some(due) =
                scheduler.pop(Nanos::from_secs(10), &mut DurationSummary::default())
            {
                all.push((due.number, due.at));
            }
        }
        all.sort_unstable();
        let expected: Vec<_> = (0..1000).map(|n| (n, Nanos::from_millis(n))).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn a_queue_that_no_timeout_works_off_is_given_up_and_another_is_not() {
        let spec = LoadSpec { measured: Some(Nanos::from_secs(2)), ..paced(1, 1000.0) };
        let mut scheduler = Scheduler::new(&spec, spec.shares()[0], Nanos::ZERO);
        scheduler.queue_due(Nanos::from_secs(2));
        // 2000 are queued. 10 begun in two seconds are 5/s: 150 in half a minute.
        assert!(scheduler.is_hopeless(10, Nanos::from_secs(30)));
        assert!(!scheduler.is_hopeless(10, Nanos::from_secs(60)));
        assert!(!scheduler.is_hopeless(100, Nanos::from_secs(30)));
    }

    #[test]
    fn waits_for_a_connection_in_the_warm_up_are_not_counted() {
        let warm_up = Nanos::from_millis(10);
        let measured = Some(Nanos::from_secs(1));
        let spec = LoadSpec { measured, ..paced(1, 1000.0).with(|load| load.warm_up = warm_up) };
        let mut scheduler = Scheduler::new(&spec, spec.shares()[0], Nanos::ZERO);
        scheduler.queue_due(Nanos::from_millis(12));
        scheduler.mark_waiting();
        let mut waits = DurationSummary::default();
        let popped =
            std::iter::from_fn(|| scheduler.pop(Nanos::from_millis(15), &mut waits)).count();
        assert_eq!(popped, 13);
        // Due at 10, 11 and 12 ms.
        assert_eq!((waits.count, waits.max), (3, Nanos::from_millis(5)));
    }

    #[test]
    fn a_count_is_kept_to_the_request_whatever_the_lanes_and_comes_behind_the_warm_up_of_an_open_loop()
     {
        for (n, lanes) in [(10, 4), (3, 4), (0, 2), (7, 1)] {
            let spec = shape(64, lanes).with(|load| load.requests_total = Some(n));
            let begun = |share| {
                let mut scheduler = Scheduler::new(&spec, share, Nanos::ZERO);
                std::iter::from_fn(|| scheduler.next_at(Nanos::ZERO)).count() as u64
            };
            assert_eq!(spec.shares().into_iter().map(begun).sum::<u64>(), n);
        }
        let open = paced(2, 100.0).with(|load| {
            load.warm_up = Nanos::from_secs(1);
            load.requests_total = Some(50);
        });
        let queued = |share| {
            let mut scheduler = Scheduler::new(&open, share, Nanos::ZERO);
            scheduler.queue_due(Nanos::from_secs(1000));
            scheduler.queued.len()
        };
        assert_eq!(open.shares().into_iter().map(queued).sum::<usize>(), 150);
    }
}
