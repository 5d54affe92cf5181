//! Tests longtail itself: loads sinks whose right figures are known, and says how far off the
//! measured times were (`longtail doctor --self-test`). The right figures are computed from the
//! seed and the due times alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;

use engine::{LaneOutcome, LoadSpec, RunProgress, Transport, drive, render};
use model::histogram::rank;
use model::{
    Arrivals, Environment, Exchange, Histogram, LoadSettings, Nanos, Pace, Profile, Rate,
    SystemClock, Timestamps,
};
use report::number;
use report::tree::{ColumnBand, DataTable, ReportSection, TableColumn, TableRow};
use report::{Width, text};
use serde::Serialize;
use sink::{DelayLaw, RequestShare, Sink, SinkLedger, SinkSettings, SlotQueue, StallLaw};
use thiserror::Error;

const COLUMNS: usize = 100;

/// Why a case could not be run.
#[derive(Debug, Error)]
pub enum SelftestError {
    /// The sink could not start.
    #[error(transparent)]
    Sink(#[from] sink::SinkError),
    /// The engine could not start.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
}

/// The seed of arrivals and delays.
const SEED: u64 = 1;

/// A load against a sink with known delays.
#[derive(Clone, Debug)]
pub struct SelftestCase {
    /// Its name in the table.
    pub name: &'static str,
    delay: DelayLaw,
    /// How many requests the sink serves at once, first come, first served; `None`: all.
    slots: Option<u32>,
    stalls: Option<StallLaw>,
    rate: f64,
    arrivals: Arrivals,
    /// Requests are due before this time, counted from the start.
    length: Nanos,
}

/// The result of a case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseResult {
    /// The name of the case.
    pub case: &'static str,
    /// Requests in the schedule.
    pub planned: u64,
    /// Response times that exactly these requests should have had.
    pub expected: ResponseFigures,
    /// The response times that the engine measured, from the due time.
    pub measured: Option<ResponseFigures>,
    /// If the time of each single request is known: the largest error of one.
    pub worst_error_ns: Option<Nanos>,
    /// How late requests were sent, at the 99th percentile.
    pub send_lag_p99_ns: Option<Nanos>,
    /// How late the sink was with its responses, at the 99th percentile: a part of the error that
    /// is not the engine's.
    pub sink_lateness_p99_ns: Option<Nanos>,
    /// How long the engine's lane waited for a CPU, if the kernel says.
    pub run_queue_ns: Option<Nanos>,
    /// Counts that must be equal, whatever the machine does.
    pub balances: Vec<CountBalance>,
}

impl CaseResult {
    /// Whether all counts are as they must be.
    pub fn is_conserved(&self) -> bool {
        self.balances.iter().all(|balance| balance.expected == balance.found)
    }
}

/// One count from two sides: the plan, the engine's ledger or the sink's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CountBalance {
    /// What is counted.
    pub what: &'static str,
    /// As it should be.
    pub expected: u64,
    /// As it was found.
    pub found: u64,
}

/// The counts of a run that was not interrupted: `planned` requests are due, and the sink answers
/// all of them.
fn balances(planned: u64, done: &LaneOutcome, ledger: &SinkLedger) -> Vec<CountBalance> {
    let tally = &done.tally;
    let good = tally.counts.good();
    let balances = [
        ("requests planned, and ended in one way or another", planned, tally.counts.total()),
        ("requests planned, and answered well", planned, good),
        ("responses, and response times recorded", good, tally.response_time.count()),
        ("responses, and those of each connection", good, tally.per_connection.iter().sum()),
        ("requests sent, and received by the sink", tally.all_requests(), ledger.requests),
        ("responses received, and sent by the sink", tally.all_responses(), ledger.answers),
        (
            "requests of the sink, and its arrivals by second",
            ledger.requests,
            ledger.arrivals.iter().sum(),
        ),
        ("bytes sent, and received by the sink", tally.sent_bytes, ledger.received_bytes),
        ("bytes received, and sent by the sink", tally.received_bytes, ledger.sent_bytes),
        (
            "connections opened, and accepted by the sink",
            tally.connections_opened,
            ledger.connections,
        ),
    ];
    balances.map(|(what, expected, found)| CountBalance { what, expected, found }).into()
}

/// All cases; `quick` makes them take 5 s in total.
pub fn all(quick: bool) -> Vec<SelftestCase> {
    let ms = Nanos::from_millis;
    let case = |name, delay, usual, short| SelftestCase {
        name,
        delay,
        slots: None,
        stalls: None,
        rate: 1000.0,
        arrivals: Arrivals::Constant,
        length: ms(if quick { short } else { usual }),
    };
    let share = two_percent();
    let stalls = StallLaw::new(ms(1000), ms(100));
    let bimodal = DelayLaw::Bimodal { common: ms(1), other: ms(50), share };
    // Five slots of 100 ms at twice what they can do.
    let twice = case("D/D/5 at twice", ms(100).into(), 1000, 300);
    // Five slots of 10 ms at a utilisation of 0.8.
    let loaded = case("M/D/5 at 0.8", ms(10).into(), 10_000, 700);
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

fn two_percent() -> RequestShare {
    RequestShare::new(0.02).expect("it is between 0 and 1")
}

impl SelftestCase {
    /// When each request is due, from the start.
    fn due(&self) -> Vec<Nanos> {
        let schedule = self.pace().schedule().into_iter().flatten();
        schedule.take_while(|due| *due < self.length).collect()
    }

    fn pace(&self) -> Pace {
        let rate = Rate::new(self.rate).expect("a rate");
        Pace::Open {
            profile: Profile::Flat { rate },
            arrivals: self.arrivals,
            seed: SEED,
            burst: 1,
        }
    }

    fn settings(&self) -> SinkSettings {
        let listen = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()];
        let queue = if self.slots.is_some() { SlotQueue::Shared } else { SlotQueue::Unlimited };
        SinkSettings {
            listen,
            queue,
            threads: self.slots.unwrap_or(1),
            delay: self.delay,
            stalls: self.stalls,
            seed: SEED,
            ..SinkSettings::default()
        }
    }

    /// What each request should take, had it been sent when it was due. `offset` is from the sink's
    /// start to the run's.
    fn expected(&self, due: &[Nanos], offset: Nanos) -> Vec<Nanos> {
        match (self.slots, self.stalls) {
            (Some(slots), _) => first_come(due, slots, self.delay.mean()),
            (None, Some(stalls)) => stalled(due, offset, self.delay.mean(), stalls),
            // The same delays that the sink draws, whichever connection gets which.
            (None, None) => {
                (0..due.len() as u64).map(|number| self.delay.of(SEED, number)).collect()
            }
        }
    }

    /// Runs it; `None` if the user interrupts.
    ///
    /// # Errors
    /// If the sink or the engine cannot start.
    pub fn run(
        &self,
        clock: SystemClock,
        interrupt: &AtomicBool,
    ) -> Result<Option<CaseResult>, SelftestError> {
        let sink = Sink::start(self.settings(), clock)?;
        let due = self.due();
        let host = sink.address().to_string();
        let transport = Transport::tcp(sink.address());
        // One connection for each request, so that no request waits for a connection.
        let connections = due.len() as u32;
        let load = LoadSettings {
            pace: self.pace(),
            // The default of a load.
            timestamps: if engine::can_stamp() { Timestamps::Kernel } else { Timestamps::User },
            ..LoadSettings::closed(connections)
        };
        let request = render("GET", &host, "/", &[], true);
        let spec = LoadSpec {
            load,
            measured: Some(self.length),
            ..LoadSpec::closed(transport, request, connections)
        };
        let (journal, records) = sync_channel(due.len());
        let done = drive(&spec, &clock, interrupt, &RunProgress::new(1), Some(&journal))?;
        let offset = done.start.saturating_sub(sink.started());
        let done = done.outcome;
        let ledger = sink.stop();
        if done.interrupted_at.is_some() {
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
        done: &LaneOutcome,
        ledger: &SinkLedger,
    ) -> CaseResult {
        let planned = times.len() as u64;
        exchanges.retain(|exchange| exchange.outcome.is_good());
        exchanges.sort_by_key(|exchange| exchange.due);
        let errors = exchanges
            .iter()
            .zip(times)
            .map(|(one, time)| Nanos(one.response_time().0.abs_diff(time.0)));
        // Without slots or pauses the sink draws a delay for whichever request comes first, so
        // nobody knows which request has which delay.
        let is_each_known = self.slots.is_some() || self.stalls.is_some();
        CaseResult {
            case: self.name,
            planned,
            expected: ResponseFigures::exactly(times).unwrap_or_default(),
            measured: ResponseFigures::of(&done.tally.response_time),
            worst_error_ns: errors.max().filter(|_| is_each_known),
            send_lag_p99_ns: done.tally.send_lag.quantile(0.99),
            sink_lateness_p99_ns: ledger.lateness.quantile(0.99),
            run_queue_ns: done.lanes.iter().map(|lane| lane.run_queue).reduce(|a, b| a + b),
            balances: balances(planned, done, ledger),
        }
    }
}

/// The results, case by case, as text.
pub fn table(results: &[CaseResult], environment: &Environment, width: Width) -> String {
    let expected = ColumnBand::new("expected, ms", "");
    let error = ColumnBand::new("error, ms", "");
    let late = ColumnBand::new("late, µs", "");
    let mut columns = vec![TableColumn::new("law")];
    columns.extend(["mean", "p99"].map(|name| TableColumn::new(name).under(&expected)));
    columns
        .extend(["mean", "p50", "p99", "p99.9"].map(|name| TableColumn::new(name).under(&error)));
    columns.extend(["send", "sink"].map(|name| TableColumn::new(name).under(&late)));
    let sections = [
        ReportSection::new("").table(DataTable::of_columns(columns, results.iter().map(row))),
        ReportSection::new("").lines(ledgers(results)),
        ReportSection::new("").lines([
            "Expected: of exactly these seeded arrivals and delays. Error: measured from the due time, less expected; \
             in it are the network, the machine's wake-ups, the sink's own lateness and up to 0.1 % of the histogram. \
             Late: p99 of the sends and of the sink's responses. Times are printed and never fail the test; counts do."
                .to_owned(),
            report::labels::longtail_and_machine(environment),
        ]),
    ];
    text::sections(&sections, width.at_most(COLUMNS))
}

fn row(result: &CaseResult) -> TableRow {
    let micros =
        |time: Option<Nanos>| number::or_none(time, |time| number::fixed(time.0 as f64 / 1e3, 0));
    let error = |measured: Nanos, expected: Nanos| {
        format!("{:+.3}", measured.as_millis_f64() - expected.as_millis_f64())
    };
    let mut cells = vec![
        result.case.to_owned(),
        number::milliseconds(result.expected.mean),
        number::milliseconds(result.expected.p99),
    ];
    let measured = result.measured.map(|measured| measured.all().map(Some)).unwrap_or_default();
    let errors = measured.into_iter().zip(result.expected.all());
    cells.extend(errors.map(|(measured, expected)| {
        number::or_none(measured, |measured| error(measured, expected))
    }));
    cells.extend([result.send_lag_p99_ns, result.sink_lateness_p99_ns].map(micros));
    TableRow::new(cells)
}

/// Whether all counts agree, and what else there is to say about the times.
fn ledgers(results: &[CaseResult]) -> Vec<String> {
    let balances = results
        .iter()
        .flat_map(|result| result.balances.iter().map(move |balance| (result.case, balance)));
    let lost = balances.filter(|(_, balance)| balance.expected != balance.found);
    let mut lines: Vec<String> = lost
        .map(|(case, CountBalance { what, expected, found })| {
            format!("NOT CONSERVED {case}: {what}: {expected} and {found}")
        })
        .collect();
    if lines.is_empty() {
        let requests: u64 = results.iter().map(|result| result.planned).sum();
        let counts = results.first().map_or(0, |result| result.balances.len());
        lines.push(format!(
            "All {requests} requests are in both ledgers, with their responses, bytes and \
             connections ({counts} counts a case)."
        ));
    }
    lines.extend(results.iter().filter_map(|result| {
        let worst = number::time(result.worst_error_ns?);
        Some(format!(
            "{}: the time of each request is known; the worst is {worst} off.",
            result.case
        ))
    }));
    let waits = results.iter().filter_map(|result| Some((result.run_queue_ns?, result.case)));
    if let Some((most, case)) = waits.clone().max() {
        let sum: Nanos = waits.map(|(wait, _)| wait).sum();
        lines.push(format!(
            "The engine waited {} for a CPU that others had, {} of it in {case}.",
            number::time(sum),
            number::time(most)
        ));
    }
    lines
}

/// The figures of a distribution that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResponseFigures {
    /// The mean.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// The median.
    #[serde(rename = "p50_ns")]
    pub p50: Nanos,
    /// The 99th percentile.
    #[serde(rename = "p99_ns")]
    pub p99: Nanos,
    /// The 99.9th percentile.
    #[serde(rename = "p999_ns")]
    pub p999: Nanos,
}

impl ResponseFigures {
    /// Of exact times, by nearest rank; `None` if there are none.
    fn exactly(times: &[Nanos]) -> Option<ResponseFigures> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let count = sorted.len() as u64;
        let at = |q| sorted.get(rank(q, count) as usize - 1).copied();
        let mean = Nanos(sorted.iter().copied().sum::<Nanos>().0.checked_div(count)?);
        Some(ResponseFigures { mean, p50: at(0.5)?, p99: at(0.99)?, p999: at(0.999)? })
    }

    /// Of a histogram; `None` if it is empty.
    fn of(times: &Histogram) -> Option<ResponseFigures> {
        let at = |q| times.quantile(q);
        Some(ResponseFigures {
            mean: times.mean()?,
            p50: at(0.5)?,
            p99: at(0.99)?,
            p999: at(0.999)?,
        })
    }

    /// In the order they are printed.
    fn all(self) -> [Nanos; 4] {
        [self.mean, self.p50, self.p99, self.p999]
    }
}

/// Response times of requests that are due at `due` and take `service` each. A response that would
/// leave during a pause leaves at its end. Due times are counted from `offset` after the sink's
/// start.
fn stalled(due: &[Nanos], offset: Nanos, service: Nanos, stalls: StallLaw) -> Vec<Nanos> {
    due.iter().map(|due| stalls.release(offset + *due + service) - (offset + *due)).collect()
}

/// First come, first served by `slots` slots, each request holding one for `service`: Kiefer and
/// Wolfowitz's recursion (1955). Request k starts when it came or when a slot is free, whichever is
/// later.
fn first_come(due: &[Nanos], slots: u32, service: Nanos) -> Vec<Nanos> {
    let mut free: BinaryHeap<Reverse<Nanos>> = (0..slots).map(|_| Reverse(Nanos::ZERO)).collect();
    let serve = |due: &Nanos| {
        let start = free.pop().map_or(*due, |Reverse(free)| free.max(*due));
        free.push(Reverse(start + service));
        start + service - *due
    };
    due.iter().map(serve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_cases_take_less_than_their_time() {
        let length = |quick| all(quick).iter().map(|case| case.length).sum::<Nanos>();
        assert!(length(true) <= Nanos::from_secs(4), "{}", length(true));
        assert!(length(false) <= Nanos::from_secs(28), "{}", length(false));
    }

    #[test]
    fn a_request_in_one_ledger_only_is_named_with_both_counts() {
        let table_of = |found| {
            let balances = vec![CountBalance {
                what: "requests sent, and received by the sink",
                expected: 7,
                found,
            }];
            let result = CaseResult {
                case: "bimodal:1ms:50ms:0.02",
                planned: 7,
                expected: ResponseFigures { mean: Nanos(1_000_000), ..ResponseFigures::default() },
                measured: Some(ResponseFigures {
                    p999: Nanos::from_secs(1234),
                    ..ResponseFigures::default()
                }),
                worst_error_ns: None,
                send_lag_p99_ns: None,
                sink_lateness_p99_ns: None,
                run_queue_ns: None,
                balances,
            };
            let text = table(&[result], &Environment::default(), Width::ANY);
            assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
            text
        };
        let lost = table_of(6);
        let whole = table_of(7);
        let named =
            "NOT CONSERVED bimodal:1ms:50ms:0.02: requests sent, and received by the sink: 7 and 6";
        assert!(lost.contains(named) && !lost.contains("in both ledgers"), "{lost}");
        assert!(
            whole.contains("All 7 requests are in both ledgers")
                && !whole.contains("NOT CONSERVED"),
            "{whole}"
        );
    }

    /// M/D/5 at a load of 0.8 in its steady state: mean, p50, p99 and p99.9 of the wait, in service
    /// times. The mean is by Crommelin's series, the others by Franx (2001). A response time is the
    /// wait plus one.
    const MD5_WAIT: [f64; 4] = [0.289_060_007_263, 0.051_470_91, 1.937_438_8, 3.006_321_8];

    #[test]
    fn a_long_path_of_random_arrivals_comes_to_the_steady_state() {
        let service = Nanos::from_millis(10);
        let rate = Rate::new(400.0).unwrap();
        let pace = Pace::Open {
            profile: Profile::Flat { rate },
            arrivals: Arrivals::Poisson,
            seed: 1,
            burst: 1,
        };
        let due: Vec<Nanos> = pace.schedule().unwrap().take(2_000_000).collect();
        let path = ResponseFigures::exactly(&first_come(&due, 5, service)).unwrap();
        let ratio = |(time, wait): (Nanos, f64)| time.0 as f64 / (service.0 as f64 * (wait + 1.0));
        let ratios: Vec<f64> = path.all().into_iter().zip(MD5_WAIT).map(ratio).collect();
        // Requests that come soon after each other wait together, so two million of them determine
        // p99.9 only to within about 2 %.
        assert!(ratios.iter().all(|ratio| (ratio - 1.0).abs() < 0.03), "{ratios:?}");
    }

    #[test]
    fn a_pause_delays_what_would_end_in_it() {
        let stalls: StallLaw = "1s:100ms".parse().unwrap();
        let due = [0, 949, 998, 1097, 1098].map(Nanos::from_millis);
        let times = stalled(&due, Nanos::from_millis(1), Nanos::from_millis(1), stalls);
        assert_eq!(
            times.iter().map(|time| time.0 / 1_000_000).collect::<Vec<_>>(),
            [1, 1, 101, 2, 1]
        );
    }
}
