//! Plays a load. The queue has two lines: in the generator for a free connection, and in the server
//! for a free slot; both serve whoever came first. Only a Poisson pace takes logarithms, which may
//! differ in their last bit from one machine to another: it moves a due time by a nanosecond at the
//! most.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::pace::uniform;
use model::{Exchange, LatePolicy, LoadPlan, Nanos, Outcome, Tally, Window};

use crate::machine::Recorder;

/// The server that the load is played against.
pub(super) struct Server {
    /// 0 where it does not name its workers.
    pub(super) workers: u32,
    pub(super) slots: u32,
    pub(super) delay: Nanos,
}

pub(super) const PUMA: Server = Server { workers: 2, slots: 20, delay: Nanos::from_millis(5) };

// The streams of chance.
const LAG: u64 = 11;
const SERVICE: u64 = 12;
const STALLS: u64 = 13;
const CONNECT: u64 = 14;

/// Plays the load, and says of each request when it was due and ended; `fault` says how the `n`-th
/// request that is sent ends instead of well.
pub(super) fn play(
    plan: &LoadPlan,
    server: &Server,
    fault: impl Fn(u64) -> Option<Outcome>,
) -> (Recorder, Vec<(Nanos, Nanos)>) {
    let until = plan.measured().map_or(Nanos::MAX, |length| plan.load.warm_up + length);
    let mut recorder = Recorder::new(
        Window { from: plan.load.warm_up, until },
        plan.load.connections,
        plan.load.timestamps,
    );
    let mut times = Vec::new();
    let mut schedule = plan.load.pace.schedule();
    // (free from, connection), the earliest first
    let mut free: BinaryHeap<_> = (0..plan.load.connections)
        .map(|c| Reverse((Nanos::from_micros(50) * u64::from(c), c)))
        .collect();
    let mut slot_free = vec![Nanos::ZERO; server.slots as usize];
    let mut opened = vec![false; plan.load.connections as usize];
    let mut number = 0;
    let mut measured = 0;
    while let Some(Reverse((free_at, connection))) = free.pop() {
        let due = match &mut schedule {
            Some(schedule) => schedule.next().unwrap_or(Nanos::MAX),
            None => {
                free_at
                    + if number < u64::from(plan.load.connections) {
                        Nanos::ZERO
                    } else {
                        plan.load.think
                    }
            }
        };
        if due >= until || plan.load.requests_total == Some(measured) {
            break;
        }
        let tally = &mut recorder.tally;
        measured += u64::from(tally.measures(due));
        // A connection of an open loop is free from the start.
        let waits = schedule.is_some() && opened[connection as usize] && free_at > due;
        if waits && plan.load.late == LatePolicy::Skip {
            let skipped = Exchange {
                due,
                sent: due,
                ended: due,
                received_bytes: 0,
                outcome: Outcome::Skipped,
            };
            tally.record(&skipped, connection as usize);
            free.push(Reverse((free_at, connection)));
            continue;
        }
        if waits && tally.measures(due) {
            tally.queued.record(free_at - due);
        }
        let begins = if waits { free_at } else { due };
        let outcome = fault(number).unwrap_or(Outcome::Answered(200));
        let opens = !opened[connection as usize] || !plan.load.keep_alive;
        let connect = if opens { opening(plan, number) } else { [Nanos::ZERO; 2] };
        let lag = Nanos::from_secs_f64(4e-6 + 30e-6 * sixth(uniform(LAG, number)));
        let sent = begins + connect[0] + connect[1] + lag;
        let exchange = if outcome == Outcome::Refused {
            let ended = begins + Nanos::from_micros(90);
            Exchange { due, sent: ended, ended, received_bytes: 0, outcome }
        } else {
            opened[connection as usize] = true;
            tally.connections_opened += u64::from(opens);
            tally.sent_bytes += 64;
            let slot = (0..slot_free.len()).min_by_key(|slot| slot_free[*slot]).unwrap_or(0);
            let ended = match outcome {
                Outcome::TimedOut => sent + plan.load.timeout,
                Outcome::Answered(200) => sent.max(slot_free[slot]) + held(server.delay, number),
                _ => sent + Nanos::from_secs_f64(0.000_4 + 0.002 * uniform(SERVICE, number)),
            };
            if outcome == Outcome::Answered(200) {
                slot_free[slot] = ended;
            }
            let received_bytes = if matches!(outcome, Outcome::Answered(_)) { 120 } else { 0 };
            let exchange = Exchange { due, sent, ended, received_bytes, outcome };
            tally.received_bytes += u64::from(received_bytes);
            if outcome == Outcome::Answered(200) {
                note_good_answer(tally, &exchange, opens.then_some((connect, plan.tls)));
                if server.workers > 0 {
                    let worker =
                        (slot as u32 * server.workers / server.slots * 4 + 162_895).to_string();
                    let count = tally.per_worker.entry(worker).or_default();
                    count.all += 1;
                    count.measured += u64::from(exchange.due >= plan.load.warm_up);
                }
            }
            exchange
        };
        times.push((due, exchange.ended));
        recorder.record(&exchange, connection, lag);
        recorder.note_reason(&exchange, number / 200);
        free.push(Reverse((exchange.ended, connection)));
        number += 1;
    }
    (recorder, times)
}

/// The phases of a good answer; `opened` holds the times of the connect and the handshake before
/// it.
fn note_good_answer(tally: &mut Tally, exchange: &Exchange, opened: Option<([Nanos; 2], bool)>) {
    if !tally.measures(exchange.due) {
        return;
    }
    if let Some(([connect, handshake], tls)) = opened {
        tally.phases.connect.record(connect);
        if tls {
            tally.phases.handshake.record(handshake);
        }
    }
    let read = Nanos(2_000 + exchange.ended.0 % 9_000);
    tally.phases.write.record(Nanos::ZERO);
    tally.phases.first_byte.record(exchange.service_time().saturating_sub(read));
    tally.phases.read.record(read);
}

/// Connect and TLS handshake.
fn opening(plan: &LoadPlan, number: u64) -> [Nanos; 2] {
    let connect = Nanos::from_secs_f64(40e-6 + 90e-6 * uniform(CONNECT, number));
    [connect, if plan.tls { Nanos::from_micros(1_400) + connect * 3 } else { Nanos::ZERO }]
}

/// How long a slot is held: the delay, a little jitter, and a stall now and then.
fn held(delay: Nanos, number: u64) -> Nanos {
    // Products only: a logarithm may differ in its last bit from one machine to another.
    let jitter = 0.000_2 + 0.004 * sixth(uniform(SERVICE, number));
    let stall = if uniform(STALLS, number) < 0.002 { delay.as_secs_f64() * 3.0 } else { 0.0 };
    delay + Nanos::from_secs_f64(jitter + stall)
}

/// Most of it near 0. By products: `powi` promises no last bit either.
fn sixth(chance: f64) -> f64 {
    let cube = chance * chance * chance;
    cube * cube
}
