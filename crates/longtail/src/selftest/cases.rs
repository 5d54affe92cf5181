//! The laws that the engine is held against, how each is run, and what came of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::{DriveResult, LoadSpec, RunProgress, Transport, drive, render};
use model::{Arrivals, Clock, Nanos, Pace, Profile, Rate, Timestamps};
use serde::Serialize;
use sink::{DelayLaw, RequestShare, Sink, SinkSettings, SlotQueue, Stalls};

use crate::clock::SystemClock;
use crate::mistake::Mistake;
use crate::selftest::balance::{Balance, balances};
use crate::selftest::truth::{self, Figures};

/// Of arrivals and delays: the same seed, the same numbers.
const SEED: u64 = 1;

/// What the right times follow from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Truth {
    /// The sink's own draws: nobody waits.
    Draws,
    /// The draws and the pauses.
    Stalls(Stalls),
    /// Due times and slots.
    FirstCome {
        /// How many at once.
        slots: u32,
        /// Whether the steady state is known too.
        steady_state: bool,
    },
}

/// One law.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Its name in the table.
    pub(crate) name: &'static str,
    delay: DelayLaw,
    truth: Truth,
    rate: f64,
    arrivals: Arrivals,
    /// When the last request is due.
    length: Nanos,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    /// The law.
    pub(crate) case: &'static str,
    /// Requests that the schedule holds.
    pub(crate) planned: u64,
    /// Response times of the steady state, where theory knows them.
    pub(crate) steady_state: Option<Figures>,
    /// Response times that exactly these requests should have had.
    pub(crate) expected: Figures,
    /// As the engine has measured them, from the due time.
    pub(crate) measured: Option<Figures>,
    /// Measured - expected, in the order mean, p50, p99, p99.9.
    pub(crate) error_ns: Option<[i64; 4]>,
    /// Of laws that tell the time of each single request: how far the worst of them was off.
    #[serde(rename = "worst_error_ns")]
    pub(crate) worst_error: Option<Nanos>,
    /// Requests per second that the schedule asks for.
    pub(crate) offered_per_s: f64,
    /// Requests per second that were sent in the same time.
    pub(crate) sent_per_s: f64,
    /// How late requests were sent.
    pub(crate) send_lag: Lag,
    /// How late the sink itself was with its answers: a part of the error that is not the engine's.
    pub(crate) sink_lateness: Lag,
    /// How long the engine's lane stood in the kernel's run queue, where the kernel says: time that others had.
    #[serde(rename = "run_queue_ns")]
    pub(crate) run_queue: Option<Nanos>,
    /// What must be equal.
    pub(crate) balances: Vec<Balance>,
    /// Whether all of it is.
    pub(crate) conserved: bool,
}

/// How late something was.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Lag {
    #[serde(rename = "p50_ns")]
    pub(crate) p50: Option<Nanos>,
    #[serde(rename = "p99_ns")]
    pub(crate) p99: Option<Nanos>,
}

impl Lag {
    fn of(times: &model::Histogram) -> Lag {
        Lag { p50: times.quantile(0.5), p99: times.quantile(0.99) }
    }
}

/// All laws, each for a while: 5 s in all where it shall be quick.
pub(crate) fn all(quick: bool) -> Vec<Case> {
    let ms = Nanos::from_millis;
    let length = |usual, short| ms(if quick { short } else { usual });
    let paced = |name, delay, length| {
        let (rate, arrivals) = (1000.0, Arrivals::Constant);
        Case { name, delay, truth: Truth::Draws, rate, arrivals, length }
    };
    let share = RequestShare::new(0.02).expect("a share");
    let stalls = Stalls::new(ms(1000), ms(100)).expect("shorter than what is between");
    let slots = |steady_state| Truth::FirstCome { slots: 5, steady_state };
    vec![
        paced("constant 1ms", ms(1).into(), length(3000, 300)),
        paced("exp:5ms", DelayLaw::Exponential { mean: ms(5) }, length(3000, 300)),
        paced("bimodal:1ms:50ms:0.02", DelayLaw::Bimodal { usual: ms(1), other: ms(50), share }, length(3000, 300)),
        Case { truth: Truth::Stalls(stalls), ..paced("stalls 1s:100ms", ms(1).into(), length(3500, 1200)) },
        // Twice what five slots of 100 ms can do.
        Case { truth: slots(false), rate: 100.0, ..paced("D/D/5 at twice", ms(100).into(), length(1000, 300)) },
        // 5 slots of 10 ms at 0.8.
        Case {
            truth: slots(true),
            rate: 400.0,
            arrivals: Arrivals::Poisson,
            ..paced("M/D/5 at 0.8", ms(10).into(), length(10_000, 700))
        },
        paced("rate 1000/s", Nanos::ZERO.into(), length(3000, 500)),
    ]
}

impl Case {
    /// When each request is due, from the start.
    fn due(&self) -> Vec<Nanos> {
        let schedule = self.pace().schedule().into_iter().flatten();
        schedule.take_while(|due| *due < self.length).collect()
    }

    fn pace(&self) -> Pace {
        let rate = Rate::new(self.rate).expect("a rate");
        Pace::Open { profile: Profile::Flat { rate }, arrivals: self.arrivals, seed: SEED, burst: 1 }
    }

    fn settings(&self) -> SinkSettings {
        let (queue, threads) = match self.truth {
            Truth::FirstCome { slots, .. } => (SlotQueue::Shared, slots),
            _ => (SlotQueue::Unlimited, 1),
        };
        let stalls = if let Truth::Stalls(stalls) = self.truth { Some(stalls) } else { None };
        let listen = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()];
        SinkSettings { listen, queue, threads, delay: self.delay, stalls, seed: SEED, ..SinkSettings::default() }
    }

    /// What each request should take, had it been sent when it was due. `offset` is from the sink's start to the run's.
    fn expected(&self, due: &[Nanos], offset: Nanos) -> Vec<Nanos> {
        match self.truth {
            Truth::Draws => truth::draws(&self.delay, SEED, due.len() as u64),
            Truth::Stalls(stalls) => truth::stalled(due, offset, self.delay.mean(), stalls),
            Truth::FirstCome { slots, .. } => truth::first_come(due, slots, self.delay.mean()),
        }
    }

    /// Runs it; `None` where the user interrupts.
    ///
    /// # Errors
    /// Where the sink or the engine cannot start.
    pub(crate) fn run(&self, clock: SystemClock, interrupt: &AtomicBool) -> Result<Option<Outcome>, Mistake> {
        let first_look = FirstLook { clock, at: Arc::new(AtomicU64::new(u64::MAX)) };
        let sink = Sink::start(self.settings(), first_look.clone())?;
        let due = self.due();
        let planned = due.len() as u64;
        let (host, transport) = (sink.address().to_string(), Transport::tcp(sink.address()));
        // As many as there are requests: none waits for a connection.
        let shape = LoadSpec {
            pace: self.pace(),
            measured: Some(self.length),
            keep_exchanges: true,
            // As a load does by itself.
            timestamps: if engine::can_stamp() { Timestamps::Kernel } else { Timestamps::User },
            ..LoadSpec::closed(transport, render("GET", &host, "/", true), due.len() as u32)
        };
        let done = drive(&shape, &clock, interrupt, &RunProgress::new(1), None);
        let done = done.map_err(|error| Mistake::Sweep(error.into()))?;
        let ledger = sink.stop();
        if done.interrupted {
            return Ok(None);
        }
        let offset = done.start.saturating_sub(first_look.seen());
        Ok(Some(self.outcome(planned, &self.expected(&due, offset), &done, &ledger)))
    }

    /// Of each request that has an answer, how far its time was from its own; `None` of laws that deal their draws to
    /// whichever request comes first.
    fn worst_error(&self, times: &[Nanos], done: &DriveResult) -> Option<Nanos> {
        if self.truth == Truth::Draws {
            return None;
        }
        let mut exchanges: Vec<_> = done.exchanges.iter().filter(|exchange| exchange.outcome.is_good()).collect();
        exchanges.sort_by_key(|exchange| exchange.due);
        let off = exchanges.iter().zip(times).map(|(one, time)| one.response_time().0.abs_diff(time.0));
        off.max().map(Nanos)
    }

    fn outcome(&self, planned: u64, times: &[Nanos], done: &DriveResult, ledger: &sink::SinkLedger) -> Outcome {
        let balances = balances(planned, done, ledger);
        let expected = Figures::exactly(times).unwrap_or_default();
        let measured = Figures::of(&done.tally.response_time);
        let less = |(a, b): (Nanos, Nanos)| a.0.cast_signed() - b.0.cast_signed();
        let error = |measured: Figures| {
            let (a, b) = (measured.all(), expected.all());
            std::array::from_fn(|at| less((a[at], b[at])))
        };
        let steady = matches!(self.truth, Truth::FirstCome { steady_state: true, .. });
        let per_second = |count: u64| count as f64 / self.length.as_secs_f64();
        Outcome {
            case: self.name,
            planned,
            steady_state: steady.then(|| truth::steady_state(self.delay.mean())),
            expected,
            measured,
            error_ns: measured.map(error),
            worst_error: self.worst_error(times, done),
            offered_per_s: per_second(planned),
            sent_per_s: per_second(done.tally.sent_in_window),
            send_lag: Lag::of(&done.tally.send_lag),
            sink_lateness: Lag::of(&ledger.lateness),
            run_queue: done.lanes.iter().map(|lane| lane.run_queue).reduce(|a, b| a + b),
            conserved: balances.iter().all(|balance| balance.holds()),
            balances,
        }
    }
}

/// The sink's clock, which remembers its first reading: the instant that the sink counts its pauses from.
#[derive(Clone)]
struct FirstLook {
    clock: SystemClock,
    at: Arc<AtomicU64>,
}

impl FirstLook {
    fn seen(&self) -> Nanos {
        Nanos(self.at.load(Ordering::Relaxed))
    }
}

impl Clock for FirstLook {
    fn now(&self) -> Nanos {
        let now = self.clock.now();
        if self.at.load(Ordering::Relaxed) == u64::MAX {
            self.at.store(now.0, Ordering::Relaxed);
        }
        now
    }

    fn sleep(&self, duration: Nanos) {
        self.clock.sleep(duration);
    }

    fn wall(&self) -> Nanos {
        self.clock.wall()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_laws_take_less_than_their_time() {
        let length = |quick| all(quick).iter().map(|case| case.length).sum::<Nanos>();
        assert!(length(true) <= Nanos::from_secs(4), "{}", length(true));
        assert!(length(false) <= Nanos::from_secs(28), "{}", length(false));
    }

    #[test]
    fn a_constant_pace_is_planned_to_the_request() {
        let planned = |name| all(false).iter().find(|case| case.name == name).unwrap().due().len();
        assert_eq!([planned("rate 1000/s"), planned("D/D/5 at twice")], [3000, 100]);
    }
}
