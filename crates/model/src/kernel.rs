//! Where requests waited, by the kernel's tracepoints: the waits of each process of the server, and
//! each request's path.
//!
//! Stamps are from `CLOCK_MONOTONIC`, which the kernel, the client and the app share. So for each
//! request of which both client and kernel have stamps
//!
//! response time = send lag + sending + accept queue + receive queue + in the server + reading
//!
//! and if the app has stamps, too, *in the server* is server queue + app + answering. Each part is
//! the difference of two stamps, and ends where the next begins, so nothing is inferred and the sum
//! is the whole. Requests whose stamps are out of order are counted and left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::app_time::{AppSource, AppTime, leading_bits, whole_and_slowest};
use crate::histogram::rank;
use crate::{Exchange, Nanos};

/// What the kernel saw of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelView {
    /// The processes that accepted, read, answered or ran, sorted by pid.
    pub processes: Vec<ProcessWaits>,
    /// Responses for which the arrival of the request, or the accept of the connection, was not
    /// seen; they are only in `answers`.
    pub unfollowed: u64,
    /// Connections, buckets and responses for which there was no room.
    pub lost: u64,
    /// The path of each measured request, if that was asked for.
    #[serde(rename = "ways")]
    pub paths: Option<RequestPaths>,
}

/// What one server process did in a run. Waits are those of connections and requests that arrived
/// in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessWaits {
    /// Its id.
    pub pid: u32,
    /// Responses that it sent in the whole run, warm-up and drain included.
    pub answers: u64,
    /// For each connection that it accepted: from the end of the handshake to `accept`.
    pub accept_queue: Waits,
    /// For each request: from its arrival, or the accept of its connection if that was later, to
    /// the server's first read.
    pub receive_queue: Waits,
    /// For each request: from that read until the first bytes of the response were in the client's
    /// socket.
    pub in_server: Waits,
    /// For its threads: from being ready to run to running.
    pub run_queue: Waits,
}

impl KernelView {
    /// Responses of all processes.
    pub fn answers(&self) -> u64 {
        self.processes.iter().map(|process| process.answers).sum()
    }
}

/// When the kernel saw each step of a request, by `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStamps {
    /// Its connection entered the accept queue.
    pub established: Nanos,
    /// It was accepted; `None` if that was not seen.
    pub accepted: Option<Nanos>,
    /// Its first byte arrived; `None` if that was not seen.
    pub arrived: Option<Nanos>,
    /// The server read it.
    pub read: Nanos,
    /// The first bytes of its response were in the client's socket.
    pub answered: Nanos,
}

/// Sums over some requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSums {
    /// How many.
    pub requests: u64,
    /// Sum of their response times.
    #[serde(rename = "response_time_sum_ns")]
    pub response_time: Nanos,
    /// From due to sent.
    #[serde(rename = "send_lag_sum_ns")]
    pub send_lag: Nanos,
    /// From sent to the arrival in the server's socket.
    #[serde(rename = "sending_sum_ns")]
    pub sending: Nanos,
    /// From there, while the connection was not accepted.
    #[serde(rename = "accept_queue_sum_ns")]
    pub accept_queue: Nanos,
    /// From there until the server read it.
    #[serde(rename = "receive_queue_sum_ns")]
    pub receive_queue: Nanos,
    /// From there until the first bytes of the response were in the client's socket.
    #[serde(rename = "in_server_sum_ns")]
    pub in_server: Nanos,
    /// The part of that from the read to the app's start; `None` if that instant is unknown.
    #[serde(rename = "server_queue_sum_ns")]
    pub server_queue: Option<Nanos>,
    /// The part of that in the app; `None` if the app doesn't report it.
    #[serde(rename = "app_sum_ns")]
    pub app: Option<Nanos>,
    /// From the first bytes of the response until the client had all of it.
    #[serde(rename = "reading_sum_ns")]
    pub reading: Nanos,
}

impl PathSums {
    /// The mean of a sum; `None` without requests.
    pub fn mean(&self, sum: Nanos) -> Option<Nanos> {
        sum.0.checked_div(self.requests).map(Nanos)
    }

    /// The time in the server that is neither queue nor app; all of it if those are unknown.
    pub fn left_in_server(&self) -> Nanos {
        self.in_server - self.server_queue.unwrap_or(Nanos::ZERO) - self.app.unwrap_or(Nanos::ZERO)
    }

    fn add(&mut self, other: &PathSums) {
        // Without requests, a missing time does not make the sum unknown.
        let both =
            |mine: Option<Nanos>, theirs: Option<Nanos>| match (self.requests, other.requests) {
                (0, _) => theirs,
                (_, 0) => mine,
                _ => mine.zip(theirs).map(|(mine, theirs)| mine + theirs),
            };
        self.server_queue = both(self.server_queue, other.server_queue);
        self.app = both(self.app, other.app);
        self.requests += other.requests;
        self.response_time += other.response_time;
        self.send_lag += other.send_lag;
        self.sending += other.sending;
        self.accept_queue += other.accept_queue;
        self.receive_queue += other.receive_queue;
        self.in_server += other.in_server;
        self.reading += other.reading;
    }

    /// The parts of one request; `None` if its stamps are out of order. All stamps are from one
    /// clock.
    fn of_one(
        exchange: &Exchange,
        kernel: &KernelStamps,
        app: Option<AppTime>,
    ) -> Option<PathSums> {
        let between = |from: Nanos, until: Nanos| until.0.checked_sub(from.0).map(Nanos);
        let arrived = kernel.arrived?;
        let taken = arrived.max(kernel.accepted?);
        // The kernel takes its receive time stamp a moment before the bytes are in the socket, so a
        // response of one segment ends just before it begins.
        let answered = kernel.answered.min(exchange.ended);
        let in_server = between(kernel.read, answered)?;
        let (server_queue, app) = match app {
            None => (None, None),
            Some(AppTime::Took(took)) => (None, Some(between(took, in_server).map(|_| took)?)),
            Some(AppTime::Stamps { started, ended }) => {
                between(ended, answered)?;
                (Some(between(kernel.read, started)?), Some(between(started, ended)?))
            }
        };
        Some(PathSums {
            requests: 1,
            response_time: exchange.response_time(),
            send_lag: exchange.send_lag(),
            sending: between(exchange.sent, arrived)?,
            accept_queue: taken - arrived,
            receive_queue: between(taken, kernel.read)?,
            in_server,
            server_queue,
            app,
            reading: between(answered, exchange.ended)?,
        })
    }
}

/// The paths of a run's measured good responses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPaths {
    /// How the app's part is known; `None` if the app reports nothing: then the time in the server
    /// is not split.
    pub app: Option<AppSource>,
    /// Sums over all responses with stamps from client and kernel.
    pub all: PathSums,
    /// Sums over the slowest tenth of them, made of whole groups of equal times (to 0.1 %); `None`
    /// for fewer than 10.
    pub slowest: Option<PathSums>,
    /// Good responses without the app's time, or from another source, if others have it.
    pub silent: u64,
    /// Good responses whose stamps are out of order.
    pub impossible: u64,
    /// Good responses without the kernel's stamps.
    pub unmatched: u64,
}

/// Accumulates the paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathAccumulator {
    /// By source and response time, to 0.1 %.
    sums: BTreeMap<Option<AppSource>, BTreeMap<u64, PathSums>>,
    impossible: u64,
    unmatched: u64,
}

impl PathAccumulator {
    /// Adds a measured good response with the stamps of kernel and app, all on one clock.
    pub fn record(
        &mut self,
        exchange: &Exchange,
        kernel: Option<&KernelStamps>,
        app: Option<AppTime>,
    ) {
        let Some(kernel) =
            kernel.filter(|kernel| kernel.accepted.is_some() && kernel.arrived.is_some())
        else {
            self.unmatched += 1;
            return;
        };
        let Some(parts) = PathSums::of_one(exchange, kernel, app) else {
            self.impossible += 1;
            return;
        };
        let source = app.map(|app| match app {
            AppTime::Stamps { .. } => AppSource::Stamps,
            AppTime::Took(_) => AppSource::ServerTiming,
        });
        self.sums
            .entry(source)
            .or_default()
            .entry(leading_bits(parts.response_time))
            .or_default()
            .add(&parts);
    }

    /// Counts responses for which the kernel's stamps can't be found any more.
    pub fn lose(&mut self, answers: u64) {
        self.unmatched += answers;
    }

    /// The result, with the app's time by its stamps if there are any, otherwise by its durations.
    pub fn paths(&self) -> RequestPaths {
        // The first known source is stamps, if there are any.
        let app = self.sums.keys().copied().flatten().next();
        let nothing = BTreeMap::new();
        let groups = self.sums.get(&app).unwrap_or(&nothing);
        let (all, slowest) = whole_and_slowest(groups, |parts| parts.requests, PathSums::add);
        let joined: u64 =
            self.sums.values().flat_map(BTreeMap::values).map(|parts| parts.requests).sum();
        let silent = joined - all.requests;
        let impossible = self.impossible;
        let unmatched = self.unmatched;
        RequestPaths { app, all, slowest, silent, impossible, unmatched }
    }
}

/// Buckets to a power of two.
const PER_OCTAVE: u64 = 64;

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// Their sum.
    #[serde(rename = "sum_ns")]
    pub sum: Nanos,
    /// The filled buckets, as (highest time of the bucket in ns, times in it), rising.
    pub buckets: Vec<(u64, u64)>,
}

impl Waits {
    /// From a sum, and the counts of buckets by number.
    pub fn of_buckets(sum: Nanos, buckets: &BTreeMap<u32, u64>) -> Waits {
        let buckets: Vec<(u64, u64)> =
            buckets.iter().map(|(bucket, n)| (top_of(*bucket), *n)).collect();
        Waits { count: buckets.iter().map(|(_, n)| n).sum(), sum, buckets }
    }

    /// The exact mean, rounded down to the nanosecond; `None` without times.
    pub fn mean(&self) -> Option<Nanos> {
        self.sum.0.checked_div(self.count).map(Nanos)
    }

    /// The quantile `q` (0 to 1) by nearest rank; `None` if there are too few times to have one
    /// above it.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        if (self.count as f64) * (1.0 - q) < 1.0 - 1e-9 {
            return None;
        }
        let rank = rank(q, self.count);
        let mut seen = 0;
        for (top, n) in &self.buckets {
            seen += n;
            if seen >= rank {
                return Some(Nanos(*top));
            }
        }
        None
    }
}

/// The bucket of a time.
pub fn bucket_of(time: Nanos) -> u32 {
    let shift = (u64::BITS - time.0.leading_zeros()).saturating_sub(7);
    shift * PER_OCTAVE as u32 + (time.0 >> shift) as u32
}

/// The highest time of a bucket, in ns.
pub fn top_of(bucket: u32) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket / PER_OCTAVE).saturating_sub(1);
    let leading = u128::from(bucket - shift * PER_OCTAVE);
    u64::try_from(((leading + 1) << shift.min(64)) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixtures::{exchange, stamps};
    use proptest::prelude::*;

    fn kernel(
        established: u64,
        accepted: u64,
        arrived: u64,
        read: u64,
        answered: u64,
    ) -> KernelStamps {
        let ms = Nanos::from_millis;
        KernelStamps {
            established: ms(established),
            accepted: Some(ms(accepted)),
            arrived: Some(ms(arrived)),
            read: ms(read),
            answered: ms(answered),
        }
    }

    fn sum(parts: &PathSums) -> Nanos {
        parts.send_lag
            + parts.sending
            + parts.accept_queue
            + parts.receive_queue
            + parts.in_server
            + parts.reading
    }

    #[test]
    fn each_wait_is_found_where_it_happened() {
        let mut found = PathAccumulator::default();
        // A request whose connection waits in the accept queue.
        found.record(
            &exchange(0, 1, 700),
            Some(&kernel(1, 402, 2, 403, 690)),
            Some(stamps(480, 680)),
        );
        let paths = found.paths();
        let ms = Nanos::from_millis;
        let expected = PathSums {
            requests: 1,
            response_time: ms(700),
            send_lag: ms(1),
            sending: ms(1),
            accept_queue: ms(400),
            receive_queue: ms(1),
            in_server: ms(287),
            server_queue: Some(ms(77)),
            app: Some(ms(200)),
            reading: ms(10),
        };
        assert_eq!(
            (paths.app, paths.all, paths.slowest),
            (Some(AppSource::Stamps), expected, None)
        );
        assert_eq!(expected.left_in_server(), ms(10));
        // One on a connection that was accepted long before.
        let kept = PathSums::of_one(&exchange(500, 501, 700), &kernel(1, 402, 502, 510, 690), None)
            .unwrap();
        assert_eq!(
            (kept.accept_queue, kept.receive_queue, kept.in_server),
            (Nanos::ZERO, ms(8), ms(180))
        );
        assert_eq!((kept.server_queue, kept.app, kept.left_in_server()), (None, None, ms(180)));
        // A response of one segment ends when it arrives.
        let late = KernelStamps { answered: ms(100) + Nanos(1500), ..kernel(1, 5, 2, 6, 100) };
        let parts = PathSums::of_one(&exchange(0, 1, 100), &late, None).unwrap();
        assert_eq!((parts.reading, sum(&parts)), (Nanos::ZERO, ms(100)));
    }

    #[test]
    fn stamps_out_of_order_are_counted_and_not_clamped() {
        let mut found = PathAccumulator::default();
        let good = kernel(1, 5, 2, 6, 90);
        // Too early, too late, too long, and backwards.
        for app in
            [stamps(5, 50), stamps(7, 91), AppTime::Took(Nanos::from_millis(85)), stamps(50, 40)]
        {
            found.record(&exchange(0, 1, 100), Some(&good), Some(app));
        }
        for wrong in [kernel(1, 7, 2, 6, 90), kernel(1, 5, 0, 6, 90), kernel(1, 5, 2, 6, 5)] {
            found.record(&exchange(0, 1, 100), Some(&wrong), None);
        }
        found.record(&exchange(0, 1, 100), None, None);
        found.record(&exchange(0, 1, 100), Some(&KernelStamps { accepted: None, ..good }), None);
        found.lose(3);
        let paths = found.paths();
        assert_eq!((paths.impossible, paths.unmatched, paths.all.requests), (7, 5, 0));
    }

    proptest! {
        #[test]
        fn the_parts_add_up_to_the_whole_and_nothing_is_lost(
            all in prop::collection::vec((prop::array::uniform8(0u64..300), 0u8..6), 1..300),
        ) {
            let mut found = PathAccumulator::default();
            for ([due, lag, sending, accept, receive, queue, app, rest], kind) in &all {
                let sent = due + lag;
                let arrived = sent + sending;
                let read = arrived + accept + receive;
                let started = read + queue;
                let ended = read + queue + app;
                let seen = kernel(*due, arrived + accept, arrived, read, ended + rest);
                let app_time = match kind {
                    0 => None,
                    1 => Some(AppTime::Took(Nanos::from_millis(*app))),
                    _ => Some(stamps(started, ended)),
                };
                let seen = (*kind != 5).then_some(&seen);
                found.record(&exchange(*due, sent, ended + rest + 1), seen, app_time);
            }
            let paths = found.paths();
            let counted = paths.all.requests + paths.silent + paths.impossible + paths.unmatched;
            prop_assert_eq!((counted, paths.impossible), (all.len() as u64, 0));
            prop_assert_eq!(sum(&paths.all), paths.all.response_time);
            if let Some(slowest) = paths.slowest {
                prop_assert_eq!(sum(&slowest), slowest.response_time);
                prop_assert!(slowest.requests > 0 && slowest.requests <= paths.all.requests);
            }
        }
    }

    fn of(times: &[u64]) -> Waits {
        let buckets = times.iter().fold(BTreeMap::new(), |mut buckets, time| {
            *buckets.entry(bucket_of(Nanos(*time))).or_insert(0) += 1;
            buckets
        });
        Waits::of_buckets(Nanos(times.iter().sum()), &buckets)
    }

    #[test]
    fn few_times_have_no_high_quantile_and_no_times_have_none() {
        let waits = of(&[10, 20, 30, 40]);
        assert_eq!((waits.mean(), waits.quantile(0.5)), (Some(Nanos(25)), Some(Nanos(20))));
        assert_eq!((waits.quantile(0.75), waits.quantile(0.9)), (Some(Nanos(30)), None));
        assert_eq!((Waits::default().mean(), Waits::default().quantile(0.5)), (None, None));
        assert_eq!(
            [bucket_of(Nanos::MAX), u32::from(u16::MAX)].map(top_of),
            [u64::MAX; 2],
            "the longest time has a bucket"
        );
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_times_and_is_narrow(bits in 0u32..64, noise in any::<u64>()) {
            let time = noise >> bits;
            let bucket = bucket_of(Nanos(time));
            let top = top_of(bucket);
            prop_assert!(top >= time && (top - time) as f64 <= time as f64 / 64.0, "{time} in {bucket} up to {top}");
            prop_assert!(bucket == 0 || top_of(bucket - 1) < time);
        }

        #[test]
        fn a_quantile_is_never_too_low_and_hardly_too_high(mut times in prop::collection::vec(1u64..1_000_000_000_000, 1..300), q in 0.0f64..1.0) {
            let waits = of(&times);
            times.sort_unstable();
            if let Some(read) = waits.quantile(q) {
                let exact = times[rank(q, times.len() as u64) as usize - 1];
                prop_assert!(read.0 >= exact && read.0 - exact <= exact / 64, "{} for {}", read.0, exact);
            }
        }
    }
}
