//! A closed loop: connections that send their next request some time after the last response, on
//! pools of threads, each with a queue and Puma's turns.

use std::collections::{BTreeMap, VecDeque};

use super::{RandomStream, Replication, Simulated, SimulationEffort, TimeLaw};
use crate::numeric::{QueueingError, some};
use crate::puma;

/// A queue with its threads: a worker, or all of them where they share one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadPool {
    /// Threads.
    pub threads: u32,
    /// Connections that belong to it.
    pub connections: u32,
    /// Requests of one connection in a row while others wait: 1 is first come, first served by
    /// request; Puma up to 6 has [`puma::TURN`].
    pub turn: u32,
    /// How long a thread waits for its connection's next request, within a turn. No meaning where a
    /// turn is 1.
    pub hold: f64,
}

impl ThreadPool {
    /// First come, first served.
    pub fn first_come(threads: u32, connections: u32) -> ThreadPool {
        ThreadPool { threads, connections, turn: 1, hold: 0.0 }
    }
}

/// How connections come to a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PoolArrivals {
    /// Each belongs to one from the start.
    Kept,
    /// Each request is a connection of its own, which goes to a pool at random. There are no turns,
    /// because no connection comes back.
    Random,
    /// The same, but each pool is a worker of Puma from 7.0.4, and accepts by itself after the
    /// delay of its throttle.
    Throttled(AcceptThrottle),
}

/// An accept throttle, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AcceptThrottle {
    /// The longest delay before an accept: `wait_for_less_busy_worker`.
    pub longest: f64,
    /// Each delay ends late, by one to three times this.
    pub late: f64,
}

impl AcceptThrottle {
    /// On a quiet machine: late by the kernel's timer slack (50 µs), and until the thread has
    /// Ruby's lock.
    pub fn quiet(longest: f64) -> AcceptThrottle {
        AcceptThrottle { longest, late: 0.000_05 }
    }

    /// On a busy one, where a thread waits for a CPU or for Ruby's lock before it accepts. More
    /// lateness than this changes little: then the worker that has responded last decides.
    pub fn busy(longest: f64) -> AcceptThrottle {
        AcceptThrottle { longest, late: 0.001 }
    }
}

/// Simulates a closed loop, which begins with all connections thinking. Pools share nothing but the
/// clock, and what `arrivals` says.
///
/// # Errors
/// Without a connection, or with a pool without a thread or a request in a turn; if no request is
/// to be simulated, or no simulated time passes.
pub fn closed(
    pools: &[ThreadPool],
    arrivals: PoolArrivals,
    thinks: TimeLaw<'_>,
    services: TimeLaw<'_>,
    effort: SimulationEffort,
) -> Result<Simulated, QueueingError> {
    effort.replicate(|replication| {
        ClosedSimulation::new(pools, arrivals, thinks, services, |stream| {
            effort.stream(replication, stream)
        })?
        .run(effort)
    })
}

/// How many connections each of `workers` accepts under this throttle, if `connections` come at
/// once and stay.
///
/// # Errors
/// Without a worker or a thread.
pub fn dealt_by_throttle(
    connections: u32,
    workers: u32,
    threads: u32,
    throttle: AcceptThrottle,
    seed: u64,
) -> Result<Vec<u32>, QueueingError> {
    let all = crate::closed_loop::dealt_evenly(connections, workers);
    let pools: Vec<_> =
        all.into_iter().map(|count| ThreadPool::first_come(threads, count)).collect();
    let effort = SimulationEffort { replications: 1, requests: 1, warm_up: 0, seed };
    // No request is answered before all connections are accepted.
    let at_once = super::constant(0.0);
    let forever = super::constant(1e9);
    let streams = |stream| effort.stream(0, stream);
    let mut simulation = ClosedSimulation::new(
        &pools,
        PoolArrivals::Throttled(throttle),
        &at_once,
        &forever,
        streams,
    )?;
    while simulation.queues.iter().map(PoolQueue::busy).sum::<u32>() < connections {
        simulation.step();
    }
    Ok(simulation.queues.iter().map(PoolQueue::busy).collect())
}

#[derive(Clone, Copy)]
enum SimulatedEvent {
    /// A connection sends its next request.
    Ready(usize),
    /// A connection's request is answered.
    Done(usize),
    /// A thread has waited for that connection for long enough, if it still is the wait with this
    /// number.
    HoldEnds(usize, u64),
    /// The delay of that pool's acceptor is over.
    Accepts(usize),
}

#[derive(Clone, Copy, Default)]
struct SimulatedClient {
    pool: usize,
    /// When its request was sent, and begun.
    ready: f64,
    begun: f64,
    /// Requests of this turn.
    turn: u32,
    /// A thread waits for its next request.
    held: bool,
    /// The number of that wait.
    holds: u64,
}

struct PoolQueue {
    pool: ThreadPool,
    idle: u32,
    waiting: VecDeque<usize>,
    /// Its acceptor sleeps before its next accept.
    accepts_later: bool,
}

impl PoolQueue {
    /// Requests that run or wait here.
    fn busy(&self) -> u32 {
        self.pool.threads - self.idle + self.waiting.len() as u32
    }
}

/// A stream of draws.
struct LawDraws<'a> {
    law: TimeLaw<'a>,
    seed: u64,
    number: u64,
}

impl LawDraws<'_> {
    fn next(&mut self) -> f64 {
        self.number += 1;
        (self.law)(self.seed, self.number - 1)
    }
}

struct ClosedSimulation<'a> {
    queues: Vec<PoolQueue>,
    clients: Vec<SimulatedClient>,
    /// By time, then in the order in which they were planned. The time is given by its bits, which
    /// have the same order for times from 0 on.
    events: BTreeMap<(u64, u64), SimulatedEvent>,
    planned: u64,
    thinks: LawDraws<'a>,
    services: LawDraws<'a>,
    arrivals: PoolArrivals,
    /// Chooses a pool, or how late an acceptor is.
    chance: LawDraws<'a>,
    /// Clients in the kernel's accept queue, if there is a throttle.
    kernel: VecDeque<usize>,
}

impl<'a> ClosedSimulation<'a> {
    fn new(
        pools: &[ThreadPool],
        arrivals: PoolArrivals,
        thinks: TimeLaw<'a>,
        services: TimeLaw<'a>,
        seed: impl Fn(RandomStream) -> u64,
    ) -> Result<ClosedSimulation<'a>, QueueingError> {
        some("connection", pools.iter().map(|pool| pool.connections).sum())?;
        for pool in pools {
            some("thread", pool.threads)?;
            some("request in a turn", pool.turn)?;
        }
        let draws = |law, stream| LawDraws { law, seed: seed(stream), number: 0 };
        let queue = |pool: &ThreadPool| PoolQueue {
            pool: *pool,
            idle: pool.threads,
            waiting: VecDeque::new(),
            accepts_later: false,
        };
        let mut simulation = ClosedSimulation {
            queues: pools.iter().map(queue).collect(),
            clients: Vec::new(),
            events: BTreeMap::new(),
            planned: 0,
            thinks: draws(thinks, RandomStream::Think),
            services: draws(services, RandomStream::Service),
            arrivals,
            chance: draws(&model::pace::uniform, RandomStream::Worker),
            kernel: VecDeque::new(),
        };
        for (pool, of) in pools.iter().enumerate() {
            for _ in 0..of.connections {
                let client = simulation.clients.len();
                simulation.clients.push(SimulatedClient { pool, ..SimulatedClient::default() });
                let think = simulation.thinks.next();
                simulation.plan(think, SimulatedEvent::Ready(client));
            }
        }
        Ok(simulation)
    }

    fn plan(&mut self, at: f64, event: SimulatedEvent) {
        self.planned += 1;
        self.events.insert((at.to_bits(), self.planned), event);
    }

    fn run(&mut self, effort: SimulationEffort) -> Result<Replication, QueueingError> {
        let mut run = Replication::default();
        let mut done = 0u32;
        let mut began = 0.0;
        let mut now = 0.0;
        while run.waits.len() < effort.requests as usize {
            let answered;
            (now, answered) = self.step();
            if let Some(client) = answered {
                done += 1;
                if done <= effort.warm_up {
                    began = now;
                } else {
                    run.record(client.begun - client.ready, now - client.ready);
                }
            }
        }
        run.finished(now - began)
    }

    /// Plays the next event. Returns its time and, if it ended a request, the client.
    fn step(&mut self) -> (f64, Option<SimulatedClient>) {
        let ((bits, _), event) =
            self.events.pop_first().expect("each connection has an event to come");
        let now = f64::from_bits(bits);
        match event {
            SimulatedEvent::Ready(client) => self.ready(now, client),
            SimulatedEvent::Accepts(pool) => self.accepts(now, pool),
            SimulatedEvent::HoldEnds(client, which) => {
                let it = &mut self.clients[client];
                if it.held && it.holds == which {
                    it.held = false;
                    let pool = it.pool;
                    self.release(now, pool);
                }
            }
            SimulatedEvent::Done(client) => {
                let answered = self.clients[client];
                self.done(now, client);
                return (now, Some(answered));
            }
        }
        (now, None)
    }

    fn ready(&mut self, now: f64, client: usize) {
        self.clients[client].ready = now;
        match self.arrivals {
            PoolArrivals::Kept if self.clients[client].held => {
                self.clients[client].held = false;
                self.clients[client].turn += 1;
                self.begin(now, client);
            }
            PoolArrivals::Kept => self.arrive(now, client),
            PoolArrivals::Random => {
                // Draws are in (0, 1].
                self.clients[client].pool =
                    ((1.0 - self.chance.next()) * self.queues.len() as f64) as usize;
                self.arrive(now, client);
            }
            PoolArrivals::Throttled(throttle) => {
                self.kernel.push_back(client);
                self.wake(now, throttle);
            }
        }
    }

    /// If clients wait, every acceptor that is not in its delay begins one.
    fn wake(&mut self, now: f64, throttle: AcceptThrottle) {
        for pool in 0..self.queues.len() {
            let queue = &mut self.queues[pool];
            if queue.accepts_later || self.kernel.is_empty() {
                continue;
            }
            queue.accepts_later = true;
            let busy = queue.busy();
            let threads = queue.pool.threads;
            let drawn = self.chance.next();
            // A worker without requests has no delay, so it is less late.
            let late = throttle.late * if busy == 0 { drawn } else { 1.0 + 2.0 * drawn };
            let delay = puma::accept_delay(throttle.longest, busy, threads);
            self.plan(now + delay + late, SimulatedEvent::Accepts(pool));
        }
    }

    /// An acceptor's delay is over: it accepts a client, unless another was faster.
    fn accepts(&mut self, now: f64, pool: usize) {
        self.queues[pool].accepts_later = false;
        if let Some(client) = self.kernel.pop_front() {
            self.clients[client].pool = pool;
            self.arrive(now, client);
        }
        if let PoolArrivals::Throttled(throttle) = self.arrivals {
            self.wake(now, throttle);
        }
    }

    /// A request comes to its pool: it begins at once, or waits for a thread.
    fn arrive(&mut self, now: f64, client: usize) {
        let it = &mut self.clients[client];
        let queue = &mut self.queues[it.pool];
        if queue.idle == 0 {
            queue.waiting.push_back(client);
        } else {
            queue.idle -= 1;
            it.turn = 1;
            self.begin(now, client);
        }
    }

    fn begin(&mut self, now: f64, client: usize) {
        self.clients[client].begun = now;
        let service = self.services.next();
        self.plan(now + service, SimulatedEvent::Done(client));
    }

    fn done(&mut self, now: f64, client: usize) {
        let think = self.thinks.next();
        let it = &mut self.clients[client];
        let pool = it.pool;
        let queue = &self.queues[it.pool];
        let has_turns = self.arrivals == PoolArrivals::Kept && queue.pool.turn > 1;
        let stays = has_turns && (it.turn < queue.pool.turn || queue.waiting.is_empty());
        if stays {
            it.held = true;
            it.holds += 1;
            let which = it.holds;
            let hold = queue.pool.hold;
            if think > hold {
                self.plan(now + hold, SimulatedEvent::HoldEnds(client, which));
            }
        }
        if think > 0.0 {
            self.plan(now + think, SimulatedEvent::Ready(client));
        } else {
            // The next request comes at once, so before the thread takes another client.
            self.ready(now, client);
        }
        if !stays {
            self.release(now, pool);
        }
    }

    /// A thread of that pool is free: it takes the next client.
    fn release(&mut self, now: f64, pool: usize) {
        let queue = &mut self.queues[pool];
        if let Some(client) = queue.waiting.pop_front() {
            self.clients[client].turn = 1;
            self.begin(now, client);
        } else {
            queue.idle += 1;
        }
    }
}
