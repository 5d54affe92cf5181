//! `longtail doctor --self-test`: the laws that the engine is held against, how each is run, and what came of it. The right answers are
//! in `truth`, the table in `text`.

mod text;
mod truth;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;

use engine::{DriveResult, LoadSpec, RunProgress, Transport, drive, render};
use model::{Arrivals, Exchange, Nanos, Pace, Profile, Rate, SystemClock, Timestamps};
use serde::Serialize;
use sink::{DelayLaw, RequestShare, Sink, SinkLedger, SinkSettings, SlotQueue, StallLaw};

pub(crate) use self::text::{machine, table};
use self::truth::ResponseFigures;
use crate::mistake::Mistake;

/// Of arrivals and delays: the same seed, the same numbers.
const SEED: u64 = 1;

/// One law.
#[derive(Clone, Debug)]
pub(crate) struct SelftestCase {
    /// Its name in the table.
    pub(crate) name: &'static str,
    delay: DelayLaw,
    /// How many requests the sink serves at once, the first that came first; `None`: all.
    slots: Option<u32>,
    stalls: Option<StallLaw>,
    rate: f64,
    arrivals: Arrivals,
    /// When the last request is due.
    length: Nanos,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CaseResult {
    /// The law.
    pub(crate) case: &'static str,
    /// Requests that the schedule holds.
    pub(crate) planned: u64,
    /// Response times that exactly these requests should have had.
    pub(crate) expected: ResponseFigures,
    /// As the engine has measured them, from the due time.
    pub(crate) measured: Option<ResponseFigures>,
    /// Of laws that tell the time of each single request: how far the worst of them was off.
    #[serde(rename = "worst_error_ns")]
    pub(crate) worst_error: Option<Nanos>,
    /// How late requests were sent, at the 99th percentile.
    #[serde(rename = "send_lag_p99_ns")]
    pub(crate) send_lag: Option<Nanos>,
    /// How late the sink itself was with its answers, likewise: a part of the error that is not the engine's.
    #[serde(rename = "sink_lateness_p99_ns")]
    pub(crate) sink_lateness: Option<Nanos>,
    /// How long the engine's lane stood in the kernel's run queue, where the kernel says: time that others had.
    #[serde(rename = "run_queue_ns")]
    pub(crate) run_queue: Option<Nanos>,
    /// What must be equal, whatever the machine does.
    pub(crate) balances: Vec<CountBalance>,
}

impl CaseResult {
    /// Whether all that must be equal is.
    pub(crate) fn is_conserved(&self) -> bool {
        self.balances.iter().all(|balance| balance.holds())
    }
}

/// One count from two sides: the plan, the engine's ledger or the sink's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CountBalance {
    /// What is counted.
    pub(crate) what: &'static str,
    /// As it should be.
    pub(crate) expected: u64,
    /// As it was found.
    pub(crate) found: u64,
}

impl CountBalance {
    /// Whether the two agree.
    pub(crate) fn holds(self) -> bool {
        self.expected == self.found
    }
}

/// All that is counted of a run that was not interrupted: `planned` requests are due, and the sink answers all.
fn balances(planned: u64, done: &DriveResult, ledger: &SinkLedger) -> Vec<CountBalance> {
    let (tally, good) = (&done.tally, done.tally.counts.good());
    let balances = [
        ("requests planned, and ended in one way or another", planned, tally.counts.total()),
        ("requests planned, and answered well", planned, good),
        ("answers, and response times recorded", good, tally.response_time.count()),
        ("answers, and those of each connection", good, tally.per_connection.iter().sum()),
        ("requests sent, and received by the sink", tally.all_requests(), ledger.requests),
        ("answers received, and sent by the sink", tally.all_answers(), ledger.answers),
        ("requests of the sink, and its arrivals by second", ledger.requests, ledger.arrivals.iter().sum()),
        ("bytes sent, and received by the sink", tally.sent_bytes, ledger.received_bytes),
        ("bytes received, and sent by the sink", tally.received_bytes, ledger.sent_bytes),
        ("connections opened, and accepted by the sink", tally.connections_opened, ledger.connections),
    ];
    balances.map(|(what, expected, found)| CountBalance { what, expected, found }).into()
}

/// All laws, each for a while: 5 s in all where it shall be quick.
pub(crate) fn all(quick: bool) -> Vec<SelftestCase> {
    let ms = Nanos::from_millis;
    let case = |name, delay, common, short| SelftestCase {
        name,
        delay,
        slots: None,
        stalls: None,
        rate: 1000.0,
        arrivals: Arrivals::Constant,
        length: ms(if quick { short } else { common }),
    };
    let share = RequestShare::new(0.02).expect("a share");
    let stalls = StallLaw::new(ms(1000), ms(100));
    let bimodal = DelayLaw::Bimodal { common: ms(1), other: ms(50), share };
    // Twice what five slots of 100 ms can do; and 5 slots of 10 ms at 0.8.
    let (twice, loaded) =
        (case("D/D/5 at twice", ms(100).into(), 1000, 300), case("M/D/5 at 0.8", ms(10).into(), 10_000, 700));
    vec![
        case("constant 1ms", ms(1).into(), 3000, 300),
        case("exp:5ms", DelayLaw::Exponential { mean: ms(5) }, 3000, 300),
        case("bimodal:1ms:50ms:0.02", bimodal, 3000, 300),
        SelftestCase { stalls, ..case("stalls 1s:100ms", ms(1).into(), 3500, 1200) },
        SelftestCase { slots: Some(5), rate: 100.0, ..twice },
        SelftestCase { slots: Some(5), rate: 400.0, arrivals: Arrivals::Poisson, ..loaded },
        case("rate 1000/s", Nanos::ZERO.into(), 3000, 500),
    ]
}

impl SelftestCase {
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
        let (delay, stalls, seed) = (self.delay, self.stalls, SEED);
        let listen = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()];
        let queue = if self.slots.is_some() { SlotQueue::Shared } else { SlotQueue::Unlimited };
        SinkSettings { listen, queue, threads: self.slots.unwrap_or(1), delay, stalls, seed, ..SinkSettings::default() }
    }

    /// What each request should take, had it been sent when it was due. `offset` is from the sink's start to the run's.
    fn expected(&self, due: &[Nanos], offset: Nanos) -> Vec<Nanos> {
        match (self.slots, self.stalls) {
            (Some(slots), _) => truth::first_come(due, slots, self.delay.mean()),
            (None, Some(stalls)) => truth::stalled(due, offset, self.delay.mean(), stalls),
            (None, None) => truth::draws(&self.delay, SEED, due.len() as u64),
        }
    }

    /// Runs it; `None` where the user interrupts.
    ///
    /// # Errors
    /// Where the sink or the engine cannot start.
    pub(crate) fn run(&self, clock: SystemClock, interrupt: &AtomicBool) -> Result<Option<CaseResult>, Mistake> {
        let sink = Sink::start(self.settings(), clock)?;
        let due = self.due();
        let (host, transport) = (sink.address().to_string(), Transport::tcp(sink.address()));
        let spec = LoadSpec {
            pace: self.pace(),
            measured: Some(self.length),
            // As a load does by itself.
            timestamps: if engine::can_stamp() { Timestamps::Kernel } else { Timestamps::User },
            // As many connections as there are requests: none waits for one.
            ..LoadSpec::closed(transport, render("GET", &host, "/", &[], true), due.len() as u32)
        };
        let (journal, records) = sync_channel(due.len());
        let done = drive(&spec, &clock, interrupt, &RunProgress::new(1), Some(&journal));
        let done = done.map_err(|error| Mistake::Sweep(error.into()))?;
        let offset = done.start.saturating_sub(sink.started());
        let ledger = sink.stop();
        if done.interrupted {
            return Ok(None);
        }
        drop(journal);
        let exchanges = records.iter().flatten().map(|record| record.exchange).collect();
        Ok(Some(self.result(&self.expected(&due, offset), exchanges, &done, &ledger)))
    }

    fn result(
        &self,
        times: &[Nanos],
        mut exchanges: Vec<Exchange>,
        done: &DriveResult,
        ledger: &SinkLedger,
    ) -> CaseResult {
        let planned = times.len() as u64;
        exchanges.retain(|exchange| exchange.outcome.is_good());
        exchanges.sort_by_key(|exchange| exchange.due);
        let off = exchanges.iter().zip(times).map(|(one, time)| Nanos(one.response_time().0.abs_diff(time.0)));
        // Laws without slots and pauses deal their draws to whichever request comes first.
        let tells_each = self.slots.is_some() || self.stalls.is_some();
        CaseResult {
            case: self.name,
            planned,
            expected: ResponseFigures::exactly(times).unwrap_or_default(),
            measured: ResponseFigures::of(&done.tally.response_time),
            worst_error: off.max().filter(|_| tells_each),
            send_lag: done.tally.send_lag.quantile(0.99),
            sink_lateness: ledger.lateness.quantile(0.99),
            run_queue: done.lanes.iter().map(|lane| lane.run_queue).reduce(|a, b| a + b),
            balances: balances(planned, done, ledger),
        }
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
}
