//! What a run recorded, held against itself: counts, histograms, seconds, connections, workers, and the window.

use super::book::Book;
use super::file::{Histogram, Run, Summary, Tally, is_answer, is_good, number};
use crate::check::{Check, Finding};

/// A bucket is at most this wide, as a part of its highest time (docs/FORMAT.md).
const BUCKET: f64 = 0.001;
const SECOND: u64 = 1_000_000_000;

/// How a run was driven, as far as it decides what can be.
#[derive(Clone, Copy)]
pub(super) struct Drive {
    pub(super) connections: u64,
    /// Requests at once: connections x pipeline in a closed loop; not limited in an open one, where due requests wait.
    pub(super) at_once: Option<u64>,
    /// Whether a connection sends its next request at once when the last was answered.
    pub(super) is_busy: bool,
    /// The length that was planned.
    pub(super) length_ns: Option<u64>,
    /// Whether a count may end it before its time.
    pub(super) has_count: bool,
    /// Requests that were planned, all together, and how far off that may be.
    pub(super) planned: Option<u64>,
    pub(super) slack: u64,
    /// Whether it was ended early.
    pub(super) interrupted: bool,
}

pub(super) fn findings(run: &Run, drive: Drive) -> Vec<Finding> {
    let tally = &run.tally;
    let books = [
        outcomes(tally, drive),
        histograms(tally),
        intervals(run),
        lag_and_service(tally),
        seconds(tally),
        slowest(tally),
        connections(tally, drive),
        workers(run),
        window(run, drive),
        bytes(tally),
    ];
    books.into_iter().flat_map(Book::findings).collect()
}

fn outcomes(tally: &Tally, drive: Drive) -> Book {
    let mut book = Book::of(Check::OutcomesAddUp);
    let (good, total) = (tally.good(), tally.total());
    book.equal("response times", tally.response_time.count, good);
    book.equal("service times", tally.service_time.count, good);
    let counts = &tally.counts;
    let untimed = |outcome: &str| matches!(outcome, "timed_out" | "in_flight_at_end" | "skipped");
    let failed = number(counts, |outcome| !is_good(outcome) && !untimed(outcome));
    book.equal("times of failed requests", tally.failed_response_time.count, failed);
    book.within("send lags", tally.send_lag.count, number(counts, is_answer), total);
    book.within("lags of the generator", tally.generator_lag.count, 0, total);
    book.within("answers that were read late", tally.read_lag.count, 0, total);
    if let Some(reasons) = &tally.bad_responses {
        let bad = number(counts, |outcome| outcome == "bad_response");
        book.equal("reasons of bad responses", number(reasons, |_| true), bad);
    }
    if let Some(lengths) = &tally.wrong_lengths {
        book.at_least("answers of a wrong length", number(counts, |outcome| outcome == "wrong_length"), 1);
        book.within("shortest answer of a wrong length", lengths.shortest_bytes, 0, lengths.longest_bytes);
        let are_right = [lengths.shortest_bytes, lengths.longest_bytes].contains(&lengths.wanted_bytes);
        book.equal("answers of a wrong length that are as long as wanted", are_right.into(), 0);
    }
    let is_connect = |outcome: &str| ["no_port", "no_descriptor", "connect_failed"].contains(&outcome);
    let connects = number(counts, is_connect).saturating_add(number(&tally.unmeasured, is_connect));
    book.within("connects without a port", tally.exhausted, 0, connects);
    book.within("requests that waited for a connection", tally.queued.count, 0, total);
    for (name, phase) in &tally.phases {
        book.within(&format!("requests with the phase {name}"), phase.count, 0, good);
    }
    if let (Some(planned), false) = (drive.planned, drive.interrupted) {
        book.within("requests", total, planned.saturating_sub(drive.slack), planned.saturating_add(drive.slack));
    }
    book
}

fn histograms(tally: &Tally) -> Book {
    let mut book = Book::of(Check::HistogramAddsUp);
    for (name, histogram) in [
        ("response_time", &tally.response_time),
        ("service_time", &tally.service_time),
        ("send_lag", &tally.send_lag),
        ("generator_lag", &tally.generator_lag),
        ("read_lag", &tally.read_lag),
        ("failed_response_time", &tally.failed_response_time),
    ] {
        of_buckets(&mut book, name, histogram);
    }
    let phases = tally.phases.iter().map(|(name, phase)| (format!("phase {name}"), phase));
    for (name, summary) in phases.chain([("queued".to_owned(), &tally.queued)]) {
        of_summary(&mut book, &name, summary);
    }
    book
}

/// Each percentile is between the ends of its interval, and without the generator's lag no longer than with it.
fn intervals(run: &Run) -> Book {
    let mut book = Book::of(Check::Intervals);
    let intervals = run.statistics.as_ref().map_or(&[][..], |statistics| &statistics.intervals);
    for pair in intervals.windows(2) {
        book.near("quantiles rise, one after the other", f64::from(pair[0].quantile < pair[1].quantile), 1.0, 0.0);
    }
    for interval in intervals {
        let name = format!("interval of {}", interval.quantile);
        book.near(&format!("{name}: quantile"), interval.quantile, 0.5, 0.5);
        // Failures move the rank that it is of.
        let known =
            run.tally.response_time.quantile(interval.quantile).filter(|_| run.tally.total() == run.tally.good());
        let Some(time) = known else { continue };
        if let Some(low) = interval.low_ns {
            book.within(&format!("{name}: low_ns"), low, 0, time);
        }
        if let Some(high) = interval.high_ns {
            book.at_least(&format!("{name}: high_ns"), high, time);
        }
        if let Some(without) = interval.without_generator_ns {
            book.within(&format!("{name}: without_generator_ns"), without, 0, time);
        }
    }
    book
}

/// The lowest time that a bucket with this highest time can hold.
fn lowest(highest: u64) -> u64 {
    // Below some microseconds buckets are one nanosecond wide; that is less than 0.1 % rounds to.
    (highest as f64 * (1.0 - BUCKET)).floor() as u64
}

fn of_buckets(book: &mut Book, name: &str, histogram: &Histogram) {
    let sum = histogram.buckets.iter().fold(0_u64, |sum, (_, n)| sum.saturating_add(*n));
    book.equal(&format!("{name}: its buckets' sum against its count"), sum, histogram.count);
    for pair in histogram.buckets.windows(2) {
        book.at_least(&format!("{name}: a bucket after another"), pair[1].0, pair[0].0.saturating_add(1));
    }
    let (Some(first), Some(last)) = (histogram.buckets.first(), histogram.buckets.last()) else {
        book.equal(&format!("{name}: ends and sum of none"), histogram.min_ns | histogram.max_ns | histogram.sum_ns, 0);
        return;
    };
    book.within(&format!("{name}: min_ns"), histogram.min_ns, lowest(first.0), first.0);
    // What is longer than an hour is in the last bucket, and its longest is exact.
    let longest = if last.0 > 3_600 * SECOND { u64::MAX } else { last.0 };
    book.within(&format!("{name}: max_ns"), histogram.max_ns, lowest(last.0), longest);
    let ends = |low: bool| {
        let each = histogram.buckets.iter().map(|(highest, n)| {
            let time = if low { lowest(*highest).max(histogram.min_ns) } else { (*highest).min(histogram.max_ns) };
            u128::from(time) * u128::from(*n)
        });
        u64::try_from(each.fold(0, u128::saturating_add)).unwrap_or(u64::MAX)
    };
    book.within(
        &format!("{name}: sum_ns"),
        histogram.sum_ns,
        ends(true),
        if longest > last.0 { u64::MAX } else { ends(false) },
    );
}

fn of_summary(book: &mut Book, name: &str, summary: &Summary) {
    let Some(min) = summary.min_ns else {
        book.equal(&format!("{name}: count without a shortest"), summary.count, 0);
        book.equal(&format!("{name}: sum_ns of none"), summary.sum_ns, 0);
        book.equal(&format!("{name}: max_ns of none"), summary.max_ns, 0);
        return;
    };
    book.within(&format!("{name}: min_ns"), min, 0, summary.max_ns);
    // One of them is the shortest, one the longest.
    let others = summary.count.saturating_sub(1);
    let least = min.saturating_mul(others).saturating_add(summary.max_ns);
    let most = summary.max_ns.saturating_mul(others).saturating_add(min);
    book.within(&format!("{name}: sum_ns"), summary.sum_ns, least, most);
}

/// Response time is send lag and service time, request by request and so in the sum; of failed requests there is a lag
/// and no service time.
fn lag_and_service(tally: &Tally) -> Book {
    let mut book = Book::of(Check::LagAndService);
    let (response, service, lag) = (&tally.response_time, &tally.service_time, &tally.send_lag);
    let all = service.sum_ns.saturating_add(lag.sum_ns);
    if lag.count == response.count {
        book.equal("response times' sum against lags and service times", response.sum_ns, all);
    } else {
        book.within("response times' sum against lags and service times", response.sum_ns, service.sum_ns, all);
    }
    book.at_least("longest response time against the longest service time", response.max_ns, service.max_ns);
    book.at_least("shortest response time against the shortest service time", response.min_ns, service.min_ns);
    book
}

fn seconds(tally: &Tally) -> Book {
    let mut book = Book::of(Check::SecondsAddUp);
    let sum = |of: fn(&super::file::Second) -> u64| tally.series.iter().map(of).fold(0_u64, u64::saturating_add);
    book.equal("good answers, second by second", sum(|second| second.completed), tally.good());
    book.equal("failed requests, second by second", sum(|second| second.failed), tally.total() - tally.good());
    book.equal("sum of response times, second by second", sum(|s| s.response_time_sum_ns), tally.response_time.sum_ns);
    let longest = tally.series.iter().map(|second| second.response_time_max_ns).max().unwrap_or(0);
    book.equal("longest response time, second by second", longest, tally.response_time.max_ns);
    for (at, second) in tally.series.iter().enumerate() {
        let most = second.response_time_max_ns.saturating_mul(second.completed);
        let least = second.response_time_max_ns;
        book.within(&format!("second {at}: sum of response times"), second.response_time_sum_ns, least, most);
    }
    if tally.total() > 0 {
        let last = tally.last_ended_ns.saturating_sub(tally.window.from_ns) / SECOND;
        book.equal("seconds up to the last end", tally.series.len() as u64, last + 1);
    }
    book
}

fn slowest(tally: &Tally) -> Book {
    let mut book = Book::of(Check::SlowestRequests);
    book.equal("how many are kept", tally.slowest.len() as u64, tally.good().min(10));
    // The longest times of the histogram, one by one.
    let each = tally.response_time.buckets.iter().rev();
    let mut longest =
        each.flat_map(|(highest, n)| std::iter::repeat_n(*highest, usize::try_from(*n).unwrap_or(10).min(10)));
    for (at, slow) in tally.slowest.iter().enumerate() {
        let place = format!("number {}", at + 1);
        if at == 0 {
            book.equal(&format!("{place}: response time"), slow.response_time_ns, tally.response_time.max_ns);
        }
        if let Some(highest) = longest.next() {
            let most = if highest > 3_600 * SECOND { u64::MAX } else { highest };
            book.within(&format!("{place}: response time"), slow.response_time_ns, lowest(highest), most);
        }
        let shortest = tally.service_time.min_ns;
        book.within(&format!("{place}: service time"), slow.service_time_ns, shortest, slow.response_time_ns);
        let lag = slow.response_time_ns.saturating_sub(slow.service_time_ns);
        book.within(&format!("{place}: send lag"), lag, tally.send_lag.min_ns, tally.send_lag.max_ns);
        let ended = slow.due_ns.saturating_add(slow.response_time_ns);
        book.within(&format!("{place}: its end"), ended, 0, tally.last_ended_ns.saturating_sub(tally.window.from_ns));
    }
    book
}

fn connections(tally: &Tally, drive: Drive) -> Book {
    let mut book = Book::of(Check::ConnectionsAddUp);
    let sum = tally.per_connection.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
    book.equal("good answers, connection by connection", sum, tally.good());
    book.equal("connections", tally.per_connection.len() as u64, drive.connections);
    let used = tally.per_connection.iter().filter(|n| **n > 0).count() as u64;
    book.at_least("connections opened", tally.connections_opened, used);
    let closed = tally.closed_by_server.saturating_add(tally.closed_for_unasked);
    book.within("connections closed between two requests", closed, 0, tally.connections_opened);
    book
}

fn workers(run: &Run) -> Book {
    let mut book = Book::of(Check::WorkersAddUp);
    let tally = &run.tally;
    let answers = number(&tally.counts, is_answer);
    let all_answers = answers.saturating_add(number(&tally.unmeasured, is_answer));
    let sum =
        |of: fn(&super::file::WorkerCount) -> u64| tally.per_worker.values().map(of).fold(0_u64, u64::saturating_add);
    if !tally.per_worker.is_empty() {
        let (measured, all) = (sum(|worker| worker.measured), sum(|worker| worker.all));
        book.within("answers, worker by worker", measured, 0, answers);
        book.within("all answers, worker by worker", all, measured, all_answers);
        for (name, worker) in &tally.per_worker {
            book.within(&format!("worker {name}: measured"), worker.measured, 0, worker.all);
        }
        // Where every good answer of the window names its worker, so do those outside it.
        if measured == answers {
            book.equal("all answers, worker by worker", all, all_answers);
        }
    }
    for share in run.workers.iter().filter(|share| share.source == "header") {
        let counted = tally.per_worker.get(&share.worker).map_or(0, |worker| worker.measured);
        book.equal(&format!("worker {}: its share", share.worker), share.requests, counted);
    }
    book
}

/// The window's length, and what was sent and completed in it: what its two ends cut off is at most what was under way.
fn window(run: &Run, drive: Drive) -> Book {
    let mut book = Book::of(Check::Window);
    let tally = &run.tally;
    let (from, last) = (tally.window.from_ns, tally.last_ended_ns);
    book.at_least("end of the last request", last, from);
    if let Some(until) = tally.window.until_ns {
        let length = until.saturating_sub(from);
        if let Some(planned) = drive.length_ns {
            book.equal("length of the window", length, planned);
        }
        // One that was ended early is shorter, by the user or by its count.
        match (drive.interrupted, drive.has_count) {
            (true, _) => book.within("measured_ns", run.measured_ns, 0, length),
            (false, true) => book.equal("measured_ns", run.measured_ns, last.min(until).saturating_sub(from)),
            (false, false) => book.equal("measured_ns", run.measured_ns, length),
        }
    } else if tally.total() > 0 && !drive.interrupted {
        book.equal("measured_ns", run.measured_ns, last.saturating_sub(from));
    }
    book.at_least("elapsed_ns", run.elapsed_ns, last.saturating_sub(from));
    let unmeasured = number(&tally.unmeasured, |_| true);
    let at_edge = drive.at_once.unwrap_or(u64::MAX);
    let whole = tally.window.until_ns.map(|until| until.saturating_sub(from));
    let inside = match whole {
        Some(length) if length % SECOND == 0 => {
            let seconds = usize::try_from(length / SECOND).unwrap_or(usize::MAX);
            tally.series.iter().take(seconds).map(|second| second.completed).fold(0, u64::saturating_add)
        }
        Some(_) => tally.good().saturating_sub(at_edge),
        None => tally.good(),
    };
    let before = tally.unmeasured_good().min(at_edge);
    let most = if whole.is_some_and(|length| length % SECOND == 0) { inside } else { tally.good() };
    book.within("completed_in_window", tally.completed_in_window, inside, most.saturating_add(before));
    let sent = tally.send_lag.count;
    let least = if whole.is_some() { sent.saturating_sub(at_edge) } else { sent };
    book.within("sent_in_window", tally.sent_in_window, least, sent.saturating_add(unmeasured.min(at_edge)));
    book
}

/// The shortest request and the shortest answer that HTTP/1.1 knows, times how many there were.
fn bytes(tally: &Tally) -> Book {
    /// `GET / HTTP/1.1`, two line ends, no header.
    const REQUEST: u64 = 18;
    /// `HTTP/1.1 200 ` and two line ends.
    const ANSWER: u64 = 17;
    let mut book = Book::of(Check::BytesPerAnswer);
    let answers = number(&tally.counts, is_answer).saturating_add(number(&tally.unmeasured, is_answer));
    // What is inside the answers is received too.
    let least = answers.saturating_mul(ANSWER).saturating_add(tally.body_bytes);
    book.at_least("received_bytes", tally.received_bytes, least);
    book.at_least("sent_bytes", tally.sent_bytes, answers.saturating_mul(REQUEST));
    book
}
