//! The server's model: c slots that belong to workers, and one first-come-first-served queue before them.
//!
//! Pure: no I/O, no clock; instants are told. What stays true: nobody waits while a slot is free, requests start in
//! the order in which they arrived, and each holds its slot for exactly its service time. A slot's next request starts
//! when the slot became free, not when we came to look: lateness of the loop does not add up along the queue.

use std::collections::VecDeque;

use model::Nanos;

use crate::running::{Finished, Job, Running, Waiting, freest};
use crate::stalls::Stalls;

/// The slots and their queue.
#[derive(Debug)]
pub(crate) struct Shared<C> {
    /// Free slots by worker.
    free: Vec<u32>,
    /// Their sum.
    total_free: u64,
    /// The worker at which the next search begins, so that ties go round.
    next_worker: usize,
    waiting: VecDeque<Waiting<C>>,
    running: Running<C>,
}

impl<C> Shared<C> {
    /// `workers` x `threads` free slots; both at least 1.
    pub(crate) fn new(workers: u32, threads: u32, stalls: Option<Stalls>) -> Shared<C> {
        Shared {
            free: vec![threads; workers as usize],
            total_free: u64::from(workers) * u64::from(threads),
            next_worker: 0,
            waiting: VecDeque::new(),
            running: Running::new(stalls),
        }
    }

    /// A request comes. Instants must not fall from call to call.
    pub(crate) fn arrive(&mut self, now: Nanos, job: Job<C>) {
        if self.total_free > 0 {
            self.start(now, job);
        } else {
            self.waiting.push_back(Waiting { arrived: now, job });
        }
    }

    /// Whether a request that takes no time and starts `now` ends now.
    #[inline]
    pub(crate) fn ends_at_once(&self, now: Nanos) -> bool {
        self.running.ends_at_once(now)
    }

    /// A request comes that takes no time: the worker that has a slot for it, if one has.
    pub(crate) fn pass(&mut self) -> Option<u32> {
        if self.total_free == 0 {
            return None;
        }
        let worker = freest(&self.free, self.next_worker);
        self.next_worker = (worker + 1) % self.free.len();
        Some(worker as u32)
    }

    /// When the next one is over; `None` while all slots are free.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.running.next_due()
    }

    /// The next one that is over by `now`, in the order of due times. To be called until it gives `None`.
    pub(crate) fn finish(&mut self, now: Nanos) -> Option<Finished<C>> {
        let finished = self.running.finish(now)?;
        self.free[finished.worker as usize] += 1;
        self.total_free += 1;
        if let Some(next) = self.waiting.pop_front() {
            self.start(finished.due.max(next.arrived), next.job);
        }
        Some(finished)
    }

    /// Requests that wait for a slot.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Slots in use.
    pub(crate) fn busy(&self) -> u64 {
        self.running.len()
    }

    fn start(&mut self, at: Nanos, job: Job<C>) {
        let worker = freest(&self.free, self.next_worker);
        self.free[worker] -= 1;
        self.total_free -= 1;
        self.next_worker = (worker + 1) % self.free.len();
        self.running.start(at, worker as u32, job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job(connection: usize, service: u64) -> Job<usize> {
        Job { connection, number: connection as u64, service: Nanos(service), last: false }
    }

    /// When each of `requests` (arrival, service), in order of arrival, is over; and by which worker. Time goes from
    /// event to event, as it would in a loop that is never late.
    fn simulate(workers: u32, threads: u32, requests: &[(u64, u64)]) -> Vec<(u64, u32)> {
        let mut slots = Shared::new(workers, threads, None);
        let mut ends = vec![(0, 0); requests.len()];
        let mut settle = |slots: &mut Shared<usize>, until: Nanos| {
            while let Some(finished) = slots.next_due().filter(|due| *due <= until).and_then(|due| slots.finish(due)) {
                ends[finished.job.connection] = (finished.due.0, finished.worker);
            }
        };
        for (number, (arrival, service)) in requests.iter().enumerate() {
            settle(&mut slots, Nanos(*arrival));
            slots.arrive(Nanos(*arrival), job(number, *service));
        }
        settle(&mut slots, Nanos::MAX);
        assert_eq!((slots.waiting(), slots.busy()), (0, 0));
        ends
    }

    /// The recursion of Kiefer and Wolfowitz (1955): each request in turn takes the slot that is free first.
    fn oracle(slots: u32, requests: &[(u64, u64)]) -> Vec<u64> {
        let mut free_at = vec![0; slots as usize];
        let end = |(arrival, service): &(u64, u64)| {
            let first = free_at.iter_mut().min().unwrap();
            *first = (*first).max(*arrival) + service;
            *first
        };
        requests.iter().map(end).collect()
    }

    fn any_requests() -> impl Strategy<Value = Vec<(u64, u64)>> {
        prop::collection::vec((0u64..50, 0u64..200), 1..120).prop_map(|gaps| {
            let mut arrival = 0;
            gaps.into_iter()
                .map(|(gap, service)| {
                    arrival += gap;
                    (arrival, service)
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn a_burst_is_served_in_full_rounds(n in 1u64..300, workers in 1u32..6, threads in 1u32..6, s in 0u64..1_000_000) {
            let c = u64::from(workers * threads);
            let ends = simulate(workers, threads, &vec![(0, s); n as usize]);
            for (k, (end, _)) in (1..=n).zip(ends) {
                prop_assert_eq!(end, s * k.div_ceil(c));
            }
        }

        #[test]
        fn a_paced_overload_climbs_a_staircase(
            n in 1u64..200, workers in 1u32..5, threads in 1u32..5, delta in 0u64..1000, excess in 0u64..10_000,
        ) {
            let c = u64::from(workers * threads);
            let s = c * delta + excess;
            let arrivals: Vec<_> = (0..n).map(|k| (k * delta, s)).collect();
            for (k, (end, _)) in (1..=n).zip(simulate(workers, threads, &arrivals)) {
                prop_assert_eq!(end - (k - 1) * delta, s + (k - 1) / c * (s - c * delta));
            }
        }

        #[test]
        fn any_arrivals_agree_with_the_recursion(requests in any_requests(), workers in 1u32..5, threads in 1u32..5) {
            let ends: Vec<_> = simulate(workers, threads, &requests).into_iter().map(|(end, _)| end).collect();
            prop_assert_eq!(ends, oracle(workers * threads, &requests));
        }

        #[test]
        fn a_late_loop_delays_nobody_for_longer_than_itself(
            requests in any_requests(), late in 0u64..500, workers in 1u32..4, threads in 1u32..4,
        ) {
            // All arrivals are told in time, but nobody looks after the slots until they are all in.
            let mut slots = Shared::new(workers, threads, None);
            for (number, (arrival, service)) in requests.iter().enumerate() {
                slots.arrive(Nanos(*arrival), job(number, *service));
            }
            let expected = oracle(workers * threads, &requests);
            let now = Nanos(expected.iter().max().unwrap() + late);
            let mut finished = Vec::new();
            while let Some(one) = slots.finish(now) {
                prop_assert_eq!(one.due.0, expected[one.job.connection]);
                finished.push(one.due);
            }
            prop_assert_eq!(finished.len(), requests.len());
            prop_assert!(finished.is_sorted());
        }

        #[test]
        fn nothing_is_lost_and_nobody_waits_beside_a_free_slot(
            requests in any_requests(), workers in 1u32..4, threads in 1u32..4,
        ) {
            let mut slots = Shared::new(workers, threads, None);
            let mut finished = 0;
            for (number, (arrival, service)) in requests.iter().enumerate() {
                slots.arrive(Nanos(*arrival), job(number, *service));
                while slots.finish(Nanos(*arrival)).is_some() {
                    finished += 1;
                }
                prop_assert_eq!(finished + slots.waiting() + slots.busy(), number as u64 + 1);
                prop_assert!(slots.waiting() == 0 || slots.busy() == u64::from(workers * threads));
            }
        }
    }

    #[test]
    fn requests_spread_over_the_workers() {
        let workers: Vec<_> = simulate(3, 2, &[(0, 9); 6]).into_iter().map(|(_, worker)| worker).collect();
        assert_eq!(workers, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn the_worker_with_most_total_free_is_taken() {
        // Worker 1 is the first to have both its slots free again, though it is not its turn.
        let workers: Vec<_> = simulate(3, 2, &[(0, 90), (0, 5), (0, 90), (0, 90), (0, 5), (0, 90), (6, 1), (6, 1)])
            .into_iter()
            .map(|(_, worker)| worker)
            .collect();
        assert_eq!(workers[6..], [1, 1]);
    }

    #[test]
    fn no_time_at_all_still_passes_the_pool() {
        assert_eq!(simulate(1, 1, &[(5, 7), (5, 0), (5, 0)]).iter().map(|(end, _)| *end).collect::<Vec<_>>(), [12; 3]);
    }
}
