//! A closed loop: connections that send their next request some time after the last answer, on pools of threads, each with a
//! queue and Puma's turns. How connections come to a pool is said by [`Dealt`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::estimate::Sample;
use super::{Effort, Law, Simulated, Stream, stream};
use crate::{Invalid, check, throttle};

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

/// As [`closed_dealt_anew`], where each pool is a worker of Puma from 7.0.4 that accepts by itself, after the delay of its throttle
/// ([`crate::throttle`]).
///
/// # Errors
/// As [`closed`], and where a time of the throttle is negative.
pub fn closed_throttled(
    pools: &[Pool],
    throttle: Throttle,
    services: Law<'_>,
    effort: Effort,
) -> Result<Simulated, Invalid> {
    throttle.check()?;
    run(pools, Dealt::Throttled { throttle, is_kept: false }, &|_, _| RECONNECT, services, effort)
}

/// How many of `connections` that come at once, and stay, each of `workers` accepts by that throttle.
///
/// # Errors
/// As [`closed_throttled`].
pub fn dealt_by_throttle(
    connections: u32,
    workers: u32,
    threads: u32,
    throttle: Throttle,
    seed: u64,
) -> Result<Vec<u32>, Invalid> {
    check::some("worker", workers)?;
    throttle.check()?;
    let pools: Vec<Pool> = (0..workers)
        .map(|worker| Pool::first_come(threads, connections / workers + u32::from(worker < connections % workers)))
        .collect();
    let of = |which| stream(seed, 0, which);
    // Nobody is answered before all are accepted.
    let forever = |_, _| 1e9;
    let mut world = World::new(&pools, (&|_, _| 0.0, of(Stream::Think)), (&forever, of(Stream::Service)))?;
    world.deals = Deals::Throttled(Throttled::new(throttle, true, workers as usize, of(Stream::Worker)));
    while world.queues.iter().map(Queue::busy).sum::<u32>() < connections {
        let Some(((bits, _), event)) = world.events.pop_first() else { return Err(Invalid::None("event")) };
        match event {
            Event::Ready(connection) => world.ready(f64::from_bits(bits), connection)?,
            Event::Accepts(worker) => world.accepts(f64::from_bits(bits), worker)?,
            Event::Done(_) | Event::HoldEnds(..) => {}
        }
    }
    Ok(world.queues.iter().map(Queue::busy).collect())
}

/// An accept throttle, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttle {
    /// The longest delay before an accept: `wait_for_less_busy_worker`.
    pub longest: f64,
    /// A delay ends late by between so much and thrice that.
    pub late: f64,
}

impl Throttle {
    /// On a quiet machine: the kernel's timer slack (50 µs), and Ruby's thread comes to its lock.
    pub fn quiet(longest: f64) -> Throttle {
        Throttle { longest, late: 0.000_05 }
    }

    /// On a busy one, where a thread waits for a CPU or for Ruby's lock before it accepts. Lateness beyond this changes little: what
    /// decides then is who has answered last.
    pub fn busy(longest: f64) -> Throttle {
        Throttle { longest, late: 0.001 }
    }

    fn check(self) -> Result<(), Invalid> {
        check::not_negative("the longest delay", self.longest)?;
        check::not_negative("the lateness", self.late).map(|_| ())
    }
}

/// From an answer to the client's next connection, in seconds.
const RECONNECT: f64 = 0.000_1;

/// How connections come to a pool.
#[derive(Clone, Copy, PartialEq)]
enum Dealt {
    /// Each belongs to one from the start.
    Once,
    /// By dice, for each request.
    Anew,
    /// Each pool accepts when its throttle lets it: all requests, or the first of each connection.
    Throttled { throttle: Throttle, is_kept: bool },
}

/// The state of that.
enum Deals {
    Once,
    /// Seed and number of the next draw.
    Anew(u64, u64),
    Throttled(Throttled),
}

/// Acceptors that share the kernel's queue.
struct Throttled {
    throttle: Throttle,
    is_kept: bool,
    /// Who waits to be accepted.
    kernel: VecDeque<usize>,
    /// Whether each pool's acceptor sleeps before its next accept.
    sleeps: Vec<bool>,
    /// Who was accepted and is kept.
    accepted: BTreeSet<usize>,
    seed: u64,
    number: u64,
}

impl Throttled {
    fn new(throttle: Throttle, is_kept: bool, pools: usize, seed: u64) -> Throttled {
        let (kernel, accepted) = (VecDeque::new(), BTreeSet::new());
        Throttled { throttle, is_kept, kernel, sleeps: vec![false; pools], accepted, seed, number: 0 }
    }

    /// How late an accept is: where nothing runs there is no sleep before it.
    fn late(&mut self, busy: u32) -> f64 {
        self.number += 1;
        let drawn = model::pace::uniform(self.seed, self.number);
        self.throttle.late * if busy == 0 { drawn } else { 1.0 + 2.0 * drawn }
    }
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
        world.deals = match dealt {
            Dealt::Once => Deals::Once,
            Dealt::Anew => Deals::Anew(of(Stream::Worker), 0),
            Dealt::Throttled { throttle, is_kept } => {
                Deals::Throttled(Throttled::new(throttle, is_kept, pools.len(), of(Stream::Worker)))
            }
        };
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
    /// The acceptor of that pool has slept.
    Accepts(usize),
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

impl Queue {
    /// Requests that run or wait here.
    fn busy(&self) -> u32 {
        self.pool.threads - self.idle + self.waiting.len() as u32
    }
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
    deals: Deals,
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
            deals: Deals::Once,
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
                Event::Accepts(pool) => self.accepts(now, pool)?,
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
        let Deals::Anew(seed, number) = self.deals else { return None };
        self.deals = Deals::Anew(seed, number + 1);
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
        if let Deals::Throttled(throttled) = &mut self.deals
            && !throttled.accepted.contains(&connection)
        {
            throttled.kernel.push_back(connection);
            return self.wake(now);
        }
        self.arrive(now, connection)
    }

    /// Every acceptor that does not sleep sees that somebody waits.
    fn wake(&mut self, now: f64) -> Result<(), Invalid> {
        let busy: Vec<(u32, u32)> = self.queues.iter().map(|queue| (queue.busy(), queue.pool.threads)).collect();
        let Deals::Throttled(throttled) = &mut self.deals else { return Ok(()) };
        let mut planned = Vec::new();
        for (pool, (busy, threads)) in busy.into_iter().enumerate() {
            if !throttled.sleeps[pool] && !throttled.kernel.is_empty() {
                throttled.sleeps[pool] = true;
                let delay = throttle::delay_of(throttled.throttle.longest, f64::from(busy), threads)?;
                planned.push((pool, now + delay + throttled.late(busy)));
            }
        }
        for (pool, at) in planned {
            self.plan(at, Event::Accepts(pool));
        }
        Ok(())
    }

    /// That acceptor has slept, and takes one where another was not faster.
    fn accepts(&mut self, now: f64, pool: usize) -> Result<(), Invalid> {
        let Deals::Throttled(throttled) = &mut self.deals else { return Ok(()) };
        throttled.sleeps[pool] = false;
        if let Some(connection) = throttled.kernel.pop_front() {
            if throttled.is_kept {
                throttled.accepted.insert(connection);
            }
            self.connections[connection].pool = pool;
            self.arrive(now, connection)?;
        }
        self.wake(now)
    }

    /// A request is in its pool.
    fn arrive(&mut self, now: f64, connection: usize) -> Result<(), Invalid> {
        let it = &mut self.connections[connection];
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
