//! A closed loop: connections that send their next request some time after the last answer, on pools of threads, each with a
//! queue and Puma's turns.

use std::collections::{BTreeMap, VecDeque};

use super::estimate::Sample;
use super::{Effort, Law, Simulated, Stream, stream};
use crate::{Invalid, check};

/// A queue with its threads: a worker, or all of them where they share one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool {
    /// Threads.
    pub threads: u32,
    /// Connections that belong to it.
    pub connections: u32,
    /// Requests of one connection in a row while others wait: 1 is first come, first served by request; Puma up to 6 has
    /// [`crate::polling::TURN`].
    pub turn: u32,
    /// How long a thread waits for its connection's next request, within a turn. No meaning where a turn is 1.
    pub hold: f64,
}

impl Pool {
    /// First come, first served.
    pub fn first_come(threads: u32, connections: u32) -> Pool {
        Pool { threads, connections, turn: 1, hold: 0.0 }
    }
}

/// Simulates a closed loop, which begins with all connections thinking. Pools share nothing but the clock.
///
/// # Errors
/// Without a pool, or one without a thread, connection, or request in a turn; where the effort is none, a law gives no
/// time, or time stands still.
pub fn closed(pools: &[Pool], thinks: Law<'_>, services: Law<'_>, effort: Effort) -> Result<Simulated, Invalid> {
    run(pools, Dealt::Once, thinks, services, effort)
}

/// As [`closed`], where each request is dealt to a pool at random, the larger the likelier: a connection for each request, and a
/// queue for each worker. Where a pool has turns or a hold they mean nothing here: no connection comes back.
///
/// # Errors
/// As [`closed`].
pub fn closed_dealt_anew(
    pools: &[Pool],
    thinks: Law<'_>,
    services: Law<'_>,
    effort: Effort,
) -> Result<Simulated, Invalid> {
    let pools: Vec<Pool> = pools.iter().map(|pool| Pool::first_come(pool.threads, pool.connections)).collect();
    run(&pools, Dealt::Anew, thinks, services, effort)
}

/// When a pool is chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dealt {
    /// Once for each connection.
    Once,
    /// For each request.
    Anew,
}

fn run(pools: &[Pool], dealt: Dealt, thinks: Law<'_>, services: Law<'_>, effort: Effort) -> Result<Simulated, Invalid> {
    let effort = effort.checked()?;
    check::some("pool", u32::try_from(pools.len()).unwrap_or(u32::MAX))?;
    for pool in pools {
        check::some("thread", pool.threads)?;
        check::some("request in a turn", pool.turn)?;
        check::not_negative("the hold", pool.hold)?;
    }
    check::some("connection", pools.iter().map(|pool| pool.connections).sum())?;
    let samples = (0..effort.replications).map(|replication| {
        let of = |which| stream(effort.seed, replication, which);
        let mut world = World::new(pools, (thinks, of(Stream::Think)), (services, of(Stream::Service)))?;
        world.deals = (dealt == Dealt::Anew).then(|| (of(Stream::Worker), 0));
        world.run(effort)
    });
    Ok(Simulated::new(samples.collect::<Result<_, _>>()?))
}

#[derive(Clone, Copy)]
enum Event {
    /// A connection sends its next request.
    Ready(usize),
    /// A connection's request is answered.
    Done(usize),
    /// A thread has waited for that connection for long enough, if it is still the same wait.
    HoldEnds(usize, u64),
}

#[derive(Clone, Copy, Default)]
struct Connection {
    pool: usize,
    /// When its request was sent, and begun.
    ready: f64,
    begun: f64,
    /// Requests of this turn.
    turn: u32,
    /// A thread waits for its next request.
    held: bool,
    /// Which wait it is.
    holds: u64,
}

struct Queue {
    pool: Pool,
    idle: u32,
    waiting: VecDeque<usize>,
}

/// A stream of draws.
struct Draws<'a> {
    law: Law<'a>,
    seed: u64,
    number: u64,
    what: &'static str,
}

impl Draws<'_> {
    fn next(&mut self) -> Result<f64, Invalid> {
        self.number += 1;
        check::not_negative(self.what, (self.law)(self.seed, self.number - 1))
    }
}

struct World<'a> {
    queues: Vec<Queue>,
    connections: Vec<Connection>,
    /// By time, as its bits, whose order is that of times from 0; what happens at one time happens in the order of its
    /// planning.
    events: BTreeMap<(u64, u64), Event>,
    planned: u64,
    thinks: Draws<'a>,
    services: Draws<'a>,
    /// Seed and number of the next choice of a pool, where each request is dealt anew.
    deals: Option<(u64, u64)>,
}

impl<'a> World<'a> {
    fn new(pools: &[Pool], thinks: (Law<'a>, u64), services: (Law<'a>, u64)) -> Result<World<'a>, Invalid> {
        let draws = |(law, seed), what| Draws { law, seed, number: 0, what };
        let mut world = World {
            queues: pools
                .iter()
                .map(|pool| Queue { pool: *pool, idle: pool.threads, waiting: VecDeque::new() })
                .collect(),
            connections: Vec::new(),
            events: BTreeMap::new(),
            planned: 0,
            thinks: draws(thinks, "a think time"),
            services: draws(services, "a service time"),
            deals: None,
        };
        for (pool, of) in pools.iter().enumerate() {
            for _ in 0..of.connections {
                let connection = world.connections.len();
                world.connections.push(Connection { pool, ..Connection::default() });
                let think = world.thinks.next()?;
                world.plan(think, Event::Ready(connection));
            }
        }
        Ok(world)
    }

    fn plan(&mut self, at: f64, event: Event) {
        self.planned += 1;
        self.events.insert((at.to_bits(), self.planned), event);
    }

    fn run(&mut self, effort: Effort) -> Result<Sample, Invalid> {
        let mut sample = Sample::default();
        let (mut done, mut began, mut now) = (0u32, 0.0, 0.0);
        while sample.waits.len() < effort.requests as usize {
            let Some(((bits, _), event)) = self.events.pop_first() else {
                return Err(Invalid::None("event"));
            };
            now = f64::from_bits(bits);
            match event {
                Event::Ready(connection) => self.ready(now, connection)?,
                Event::HoldEnds(connection, which) => {
                    let it = &mut self.connections[connection];
                    if it.held && it.holds == which {
                        it.held = false;
                        let pool = it.pool;
                        self.release(now, pool)?;
                    }
                }
                Event::Done(connection) => {
                    let it = self.connections[connection];
                    done += 1;
                    if done <= effort.warm_up {
                        began = now;
                    } else {
                        sample.record(it.begun - it.ready, now - it.ready);
                    }
                    self.done(now, connection)?;
                }
            }
        }
        Ok(sample.finished(check::positive("the simulated time", now - began)?))
    }

    /// A pool by dice, in proportion to the threads.
    fn dealt(&mut self) -> Option<usize> {
        let (seed, number) = self.deals?;
        self.deals = Some((seed, number + 1));
        let threads = |queue: &Queue| u64::from(queue.pool.threads);
        let all: u64 = self.queues.iter().map(threads).sum();
        let mut left = ((1.0 - model::pace::uniform(seed, number)) * all as f64) as u64;
        self.queues.iter().position(|queue| {
            let is_it = left < threads(queue);
            left = left.saturating_sub(threads(queue));
            is_it
        })
    }

    fn ready(&mut self, now: f64, connection: usize) -> Result<(), Invalid> {
        if let Some(pool) = self.dealt() {
            self.connections[connection].pool = pool;
        }
        let it = &mut self.connections[connection];
        it.ready = now;
        if it.held {
            it.held = false;
            it.turn += 1;
            return self.begin(now, connection);
        }
        let queue = &mut self.queues[it.pool];
        if queue.idle > 0 {
            queue.idle -= 1;
            it.turn = 1;
            self.begin(now, connection)
        } else {
            queue.waiting.push_back(connection);
            Ok(())
        }
    }

    fn begin(&mut self, now: f64, connection: usize) -> Result<(), Invalid> {
        self.connections[connection].begun = now;
        let service = self.services.next()?;
        self.plan(now + service, Event::Done(connection));
        Ok(())
    }

    fn done(&mut self, now: f64, connection: usize) -> Result<(), Invalid> {
        let think = self.thinks.next()?;
        let it = &mut self.connections[connection];
        let (pool, queue) = (it.pool, &self.queues[it.pool]);
        let stays = queue.pool.turn > 1 && (it.turn < queue.pool.turn || queue.waiting.is_empty());
        if stays {
            it.held = true;
            it.holds += 1;
            let (which, hold) = (it.holds, queue.pool.hold);
            if think > hold {
                self.plan(now + hold, Event::HoldEnds(connection, which));
            }
        }
        if think > 0.0 {
            self.plan(now + think, Event::Ready(connection));
        } else {
            // At once, and so before the thread looks who is next.
            self.ready(now, connection)?;
        }
        if stays { Ok(()) } else { self.release(now, pool) }
    }

    /// A thread of that pool is free: the next one's turn.
    fn release(&mut self, now: f64, pool: usize) -> Result<(), Invalid> {
        let queue = &mut self.queues[pool];
        if let Some(connection) = queue.waiting.pop_front() {
            self.connections[connection].turn = 1;
            self.begin(now, connection)
        } else {
            queue.idle += 1;
            Ok(())
        }
    }
}
