//! A queue for each worker: a connection belongs to a worker for its life, and its requests wait for that worker's
//! slots though others are free. So Puma 7.0 with keep-alive (methods.md 2.0).
//!
//! Pure: no I/O, no clock; instants are told. What stays true: nobody waits while a slot of its own worker is free,
//! requests of one worker start in the order in which they arrived, and a connection never changes its worker.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use model::Nanos;

use crate::draws::{Stream, draw};
use crate::queue::Assignment;
use crate::running::{Finished, Job, Running, Waiting};
use crate::stalls::Stalls;

#[derive(Debug)]
struct Worker<C> {
    free: u32,
    waiting: VecDeque<Waiting<C>>,
}

/// The workers, and who belongs to which.
#[derive(Debug)]
pub(crate) struct Split<C> {
    workers: Vec<Worker<C>>,
    worker_of: HashMap<C, u32>,
    assignment: Assignment,
    seed: u64,
    /// Connections so far.
    opened: u64,
    waiting: u64,
    running: Running<C>,
}

impl<C: Copy + Eq + Hash> Split<C> {
    /// `workers` x `threads` free slots; both at least 1.
    pub(crate) fn new(
        workers: u32,
        threads: u32,
        assignment: Assignment,
        seed: u64,
        stalls: Option<Stalls>,
    ) -> Split<C> {
        let worker = || Worker { free: threads, waiting: VecDeque::new() };
        Split {
            workers: (0..workers).map(|_| worker()).collect(),
            worker_of: HashMap::new(),
            assignment,
            seed,
            opened: 0,
            waiting: 0,
            running: Running::new(stalls),
        }
    }

    /// A connection comes, and gets its worker.
    pub(crate) fn open(&mut self, connection: C) {
        let workers = self.workers.len() as u64;
        let worker = match self.assignment {
            Assignment::RoundRobin => self.opened % workers,
            Assignment::Random => {
                // The draw is from (0, 1]: its complement is from [0, 1).
                let draw = 1.0 - draw(self.seed, Stream::Worker, self.opened);
                ((draw * workers as f64) as u64).min(workers - 1)
            }
        };
        self.opened += 1;
        self.worker_of.insert(connection, worker as u32);
    }

    /// A connection goes. A request of it that is in the pool stays there.
    pub(crate) fn close(&mut self, connection: C) {
        self.worker_of.remove(&connection);
    }

    /// A request comes.
    pub(crate) fn arrive(&mut self, now: Nanos, job: Job<C>) {
        let number = self.worker_of.get(&job.connection).copied().unwrap_or(0);
        let worker = &mut self.workers[number as usize];
        if worker.free > 0 {
            worker.free -= 1;
            self.running.start(now, number, job);
        } else {
            worker.waiting.push_back(Waiting { arrived: now, job });
            self.waiting += 1;
        }
    }

    /// When the next one is over.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.running.next_due()
    }

    /// The next one that is over by `now`. To be called until it gives `None`.
    pub(crate) fn finish(&mut self, now: Nanos) -> Option<Finished<C>> {
        let finished = self.running.finish(now)?;
        let worker = &mut self.workers[finished.worker as usize];
        match worker.waiting.pop_front() {
            None => worker.free += 1,
            Some(next) => {
                self.waiting -= 1;
                self.running.start(finished.due.max(next.arrived), finished.worker, next.job);
            }
        }
        Some(finished)
    }

    /// Requests that wait for a slot.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Slots in use.
    pub(crate) fn busy(&self) -> u64 {
        self.running.len()
    }
}
