//! Simulates a load with two queues, in the generator for a free connection and in the server for a
//! free slot; both are first come, first served. Only a Poisson pace uses logarithms, which may
//! differ in their last bit between machines and so move a due time by at most a nanosecond.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::pace::uniform;
use model::{
    ClassTally, Exchange, LatePolicy, LoadPlan, Nanos, Outcome, StepTallies, Tally, Window,
};

use crate::machine::Recorder;

/// The simulated server.
pub(super) struct Server {
    /// 0 if it does not name its workers.
    pub(super) workers: u32,
    pub(super) slots: u32,
    pub(super) delay: Nanos,
    /// The classes of requests, if they are told apart; they have delays of their own.
    pub(super) classes: &'static [SimulatedClass],
}

/// A class of requests: its name, its delay, and how many of twenty requests are of it.
pub(super) struct SimulatedClass {
    pub(super) name: &'static str,
    pub(super) delay: Nanos,
    pub(super) of_twenty: u64,
}

pub(super) const PUMA: Server =
    Server { workers: 2, slots: 20, delay: Nanos::from_millis(5), classes: &[] };

impl Server {
    /// The class of the `n`-th request; 0 if they are not told apart.
    fn class_of(&self, n: u64) -> usize {
        let mut last = 0;
        let class = self.classes.iter().position(|class| {
            last += class.of_twenty;
            // Neighbours are of different classes.
            n * 7 % 20 < last
        });
        class.unwrap_or(0)
    }

    fn delay_of(&self, n: u64) -> Nanos {
        self.classes.get(self.class_of(n)).map_or(self.delay, |class| class.delay)
    }
}

// The random streams.
const LAG: u64 = 11;
const SERVICE: u64 = 12;
const STALLS: u64 = 13;
const CONNECT: u64 = 14;

/// Simulates the load. `fault` says how the `n`-th sent request fails, if it does.
pub(super) fn play(
    plan: &LoadPlan,
    server: &Server,
    fault: impl Fn(u64) -> Option<Outcome>,
) -> (Recorder, Vec<(Nanos, Nanos)>) {
    let until = plan.measured().map_or(Nanos::MAX, |length| plan.load.warm_up + length);
    let window = Window { from: plan.load.warm_up, until };
    let mut recorder = Recorder::new(window, plan.load.connections, plan.load.timestamps);
    recorder.steps = StepTallies::new(&plan.load.pace, Nanos::ZERO, window);
    let mut simulated = SimulatedLoad {
        plan,
        server,
        recorder,
        slot_free: vec![Nanos::ZERO; server.slots as usize],
        opened: vec![false; plan.load.connections as usize],
        number: 0,
    };
    let classes = server.classes.iter().map(|class| ClassTally::new(class.name));
    simulated.recorder.classes = classes.collect();
    let mut times = Vec::new();
    let mut schedule = plan.load.pace.schedule();
    // (free from, connection), the earliest first
    let mut free: BinaryHeap<_> = (0..plan.load.connections)
        .map(|c| Reverse((Nanos::from_micros(50) * u64::from(c), c)))
        .collect();
    let mut measured = 0;
    while let Some(Reverse((free_at, connection))) = free.pop() {
        let number = simulated.number;
        let due = match &mut schedule {
            Some(schedule) => schedule.next().unwrap_or(Nanos::MAX),
            None if number < u64::from(plan.load.connections) => free_at,
            None => free_at + plan.load.think,
        };
        if due >= until || plan.load.requests_total == Some(measured) {
            break;
        }
        let tally = &mut simulated.recorder.tally;
        measured += u64::from(tally.measures(due));
        // The connections of an open loop are free from the start.
        let is_open = simulated.opened[connection as usize];
        let waits = schedule.is_some() && is_open && free_at > due;
        if waits && plan.load.late == LatePolicy::Skip {
            tally.record(&skipped(due), connection as usize);
            if let Some(steps) = &mut simulated.recorder.steps {
                steps.record(&skipped(due));
            }
            free.push(Reverse((free_at, connection)));
            continue;
        }
        if waits && tally.measures(due) {
            tally.queued.record(free_at - due);
        }
        let begins = if waits { free_at } else { due };
        let outcome = fault(number).unwrap_or(Outcome::Answered(200));
        let exchange = simulated.exchange(connection, due, begins, outcome);
        times.push((due, exchange.ended));
        free.push(Reverse((exchange.ended, connection)));
    }
    (simulated.recorder, times)
}

/// A request that was due while no connection was free.
fn skipped(due: Nanos) -> Exchange {
    Exchange { due, sent: due, ended: due, received_bytes: 0, outcome: Outcome::Skipped }
}

/// The state of a simulated load.
struct SimulatedLoad<'a> {
    plan: &'a LoadPlan,
    server: &'a Server,
    recorder: Recorder,
    /// When each slot becomes free.
    slot_free: Vec<Nanos>,
    /// Whether each connection has been opened.
    opened: Vec<bool>,
    /// How many requests were sent.
    number: u64,
}

impl SimulatedLoad<'_> {
    /// Sends a request that was due at `due` and gets its connection at `begins`, and records its
    /// exchange.
    fn exchange(
        &mut self,
        connection: u32,
        due: Nanos,
        begins: Nanos,
        outcome: Outcome,
    ) -> Exchange {
        let lag = Nanos::from_secs_f64(4e-6 + 30e-6 * sixth(uniform(LAG, self.number)));
        let exchange = if outcome == Outcome::Refused {
            let ended = begins + Nanos::from_micros(90);
            Exchange { due, sent: ended, ended, received_bytes: 0, outcome }
        } else {
            self.served(connection, due, begins + lag, outcome)
        };
        self.recorder.class = self.server.class_of(self.number);
        self.recorder.record(&exchange, connection, lag);
        self.recorder.note_reason(&exchange, self.number / 200);
        self.number += 1;
        exchange
    }

    /// An exchange over a connection that is opened if necessary. `begins` includes the send lag.
    fn served(&mut self, connection: u32, due: Nanos, begins: Nanos, outcome: Outcome) -> Exchange {
        let number = self.number;
        let opens = !self.opened[connection as usize] || !self.plan.load.keep_alive;
        self.opened[connection as usize] = true;
        let opening = opens.then(|| Opening::simulated(self.plan, number));
        let sent = begins + opening.map_or(Nanos::ZERO, Opening::length);
        let slot = (0..self.slot_free.len()).min_by_key(|slot| self.slot_free[*slot]).unwrap_or(0);
        let ended = match outcome {
            Outcome::TimedOut => sent + self.plan.load.timeout,
            Outcome::Answered(200) => {
                sent.max(self.slot_free[slot]) + held(self.server.delay_of(number), number)
            }
            _ => sent + Nanos::from_secs_f64(0.000_4 + 0.002 * uniform(SERVICE, number)),
        };
        // A head of 108 bytes and a body of 12.
        let [received_bytes, body_bytes] =
            if matches!(outcome, Outcome::Answered(_)) { [120, 12] } else { [0, 0] };
        let exchange = Exchange { due, sent, ended, received_bytes, outcome };
        let tally = &mut self.recorder.tally;
        tally.connections_opened += u64::from(opens);
        tally.sent_bytes += 64;
        tally.received_bytes += u64::from(received_bytes);
        tally.body_bytes += u64::from(body_bytes);
        if outcome == Outcome::Answered(200) {
            self.slot_free[slot] = ended;
            note_good_response(tally, &exchange, opening);
            let Server { workers, slots, .. } = *self.server;
            if workers > 0 {
                let worker = (slot as u32 * workers / slots * 4 + 162_895).to_string();
                let count = tally.per_worker.entry(worker).or_default();
                count.all += 1;
                count.measured += u64::from(due >= self.plan.load.warm_up);
            }
        }
        exchange
    }
}

/// Records the phases of a good response. `opening`: of its connection, if it was opened for this
/// request.
fn note_good_response(tally: &mut Tally, exchange: &Exchange, opening: Option<Opening>) {
    if !tally.measures(exchange.due) {
        return;
    }
    if let Some(Opening { connect, handshake }) = opening {
        tally.phases.connect.record(connect);
        if let Some(handshake) = handshake {
            tally.phases.handshake.record(handshake);
        }
    }
    let read = Nanos(2_000 + exchange.ended.0 % 9_000);
    tally.phases.write.record(Nanos::ZERO);
    tally.phases.first_byte.record(exchange.service_time().saturating_sub(read));
    tally.phases.read.record(read);
}

/// How long it takes to open a connection.
#[derive(Clone, Copy)]
struct Opening {
    connect: Nanos,
    /// `None` without TLS.
    handshake: Option<Nanos>,
}

impl Opening {
    /// For the `number`-th request.
    fn simulated(plan: &LoadPlan, number: u64) -> Opening {
        let connect = Nanos::from_secs_f64(40e-6 + 90e-6 * uniform(CONNECT, number));
        let handshake = plan.tls.then(|| Nanos::from_micros(1_400) + connect * 3);
        Opening { connect, handshake }
    }

    fn length(self) -> Nanos {
        self.connect + self.handshake.unwrap_or_default()
    }
}

/// How long a slot is held: the delay, a little jitter, and a stall now and then.
fn held(delay: Nanos, number: u64) -> Nanos {
    // Products only: a logarithm may differ in its last bit from one machine to another.
    let jitter = 0.000_2 + 0.004 * sixth(uniform(SERVICE, number));
    let stall = if uniform(STALLS, number) < 0.002 { delay.as_secs_f64() * 3.0 } else { 0.0 };
    delay + Nanos::from_secs_f64(jitter + stall)
}

/// A distribution with most values near 0. Multiplied out, because the last bit of `powi` is not
/// guaranteed.
fn sixth(chance: f64) -> f64 {
    let cube = chance * chance * chance;
    cube * cube
}
