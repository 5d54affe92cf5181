//! The disciplines against closed forms and exact results of queueing theory, in exact simulated
//! time: no socket, no clock. The figures are those of the literature, in units of the service
//! time.

use std::collections::HashSet;

use model::Nanos;
use proptest::prelude::*;

use crate::connection::ConnectionKey;
use crate::slots::{SlotPool, SlotRequest};
use crate::{DelayLaw, SinkSettings, SlotQueue, StallLaw};

/// The path of one request.
#[derive(Clone, Copy, Debug)]
struct ServedRequest {
    connection: u32,
    worker: u32,
    sent: u64,
    ended: u64,
}

impl ServedRequest {
    fn response(self) -> u64 {
        self.ended - self.sent
    }
}

fn pool(queue: SlotQueue, workers: u32, threads: u32) -> SlotPool {
    SlotPool::new(&SinkSettings { queue, workers, threads, seed: 5, ..SinkSettings::default() }, 0)
}

fn request(connection: u32, number: u64, service: Nanos, last: bool) -> SlotRequest {
    SlotRequest { connection: key(connection), number, service, last }
}

fn key(connection: u32) -> ConnectionKey {
    ConnectionKey(u64::from(connection))
}

/// The first `count` requests of `connections` that send the next as soon as they have a response.
/// All are accepted before the first sends.
fn closed(
    mut pool: SlotPool,
    connections: u32,
    delay: DelayLaw,
    count: usize,
) -> Vec<ServedRequest> {
    let mut sent = vec![0; connections as usize];
    let mut number = 0;
    let mut send = |pool: &mut SlotPool, now: u64, connection: u32| {
        let request = request(connection, number, delay.of(1, number), false);
        number += 1;
        assert!(pool.arrive(Nanos(now), request).is_none(), "it takes some time");
    };
    for connection in 0..connections {
        assert!(pool.has_room());
        pool.open(key(connection));
    }
    for connection in 0..connections {
        send(&mut pool, 0, connection);
    }
    let mut served = Vec::new();
    while served.len() < count {
        let due = pool.next_due().unwrap();
        while let Some(finished) = pool.finish(due) {
            let connection = finished.request.connection.0 as u32;
            let ended = finished.due.0;
            let began = std::mem::replace(&mut sent[connection as usize], ended);
            served.push(ServedRequest { connection, worker: finished.worker, sent: began, ended });
            send(&mut pool, ended, connection);
        }
    }
    served
}

/// Requests (arrival, service time) in order of arrival, each over its own connection. Time
/// advances from event to event, as in a loop that is never late.
fn open(mut pool: SlotPool, requests: impl Iterator<Item = (Nanos, Nanos)>) -> Vec<ServedRequest> {
    let mut served: Vec<ServedRequest> = Vec::new();
    let settle = |pool: &mut SlotPool, served: &mut Vec<ServedRequest>, until: Nanos| {
        while let Some(due) = pool.next_due().filter(|due| *due <= until) {
            while let Some(finished) = pool.finish(due) {
                let request = &mut served[finished.request.connection.0 as usize];
                request.ended = finished.due.0;
                request.worker = finished.worker;
            }
        }
    };
    for (connection, (at, service)) in (0..).zip(requests) {
        settle(&mut pool, &mut served, at);
        pool.open(key(connection));
        served.push(ServedRequest { connection, worker: 0, sent: at.0, ended: 0 });
        if let Some(finished) =
            pool.arrive(at, request(connection, u64::from(connection), service, true))
        {
            let request = &mut served[connection as usize];
            request.ended = finished.due.0;
            request.worker = finished.worker;
        }
    }
    settle(&mut pool, &mut served, Nanos::MAX);
    assert_eq!((pool.waiting(), pool.busy()), (0, 0));
    served
}

fn mean(times: impl Iterator<Item = u64>) -> f64 {
    let (count, sum) = times.fold((0u64, 0.0), |(count, sum), time| (count + 1, sum + time as f64));
    sum / count as f64
}

/// The share of requests that took exactly `time`.
fn share_at(served: &[ServedRequest], time: u64) -> f64 {
    served.iter().filter(|request| request.response() == time).count() as f64 / served.len() as f64
}

#[test]
fn random_assignment_is_binomial() {
    let mut pool = pool(SlotQueue::SplitRandom, 4, u32::MAX);
    let mut counts = [0u32; 4];
    for connection in 0..20_000 {
        pool.open(key(connection));
        pool.arrive(Nanos::ZERO, request(connection, 0, Nanos::ZERO, true));
    }
    while let Some(finished) = pool.finish(Nanos::ZERO) {
        counts[finished.worker as usize] += 1;
    }
    // Binomial, 5000 ± 61, within three and a half deviations; but not as even as in turn.
    assert!(
        counts.iter().all(|count| count.abs_diff(5000) < 215) && counts != [5000; 4],
        "{counts:?}"
    );
}

#[test]
fn inline_ten_makes_one_request_in_ten_wait_for_tens_of_others() {
    // 9/10 take s, 1/10 take s·(10·(n/t - 1) + 1). If connections don't divide evenly, this is the
    // mean over each one's first request in its turn.
    let whole = [(8, 4, 11), (16, 4, 31), (24, 4, 51), (32, 4, 71), (40, 5, 71), (12, 2, 51)];
    for (connections, threads, upper) in whole.into_iter().chain([(8, 5, 7), (32, 5, 55)]) {
        let service = Nanos::from_millis(20);
        let served =
            closed(pool(SlotQueue::Inline10, 1, threads), connections, service.into(), 160_000);
        let mut turns = vec![0u64; connections as usize];
        let mut is_first = |request: &&ServedRequest| {
            turns[request.connection as usize] += 1;
            turns[request.connection as usize] % 10 == 1
        };
        let firsts = served
            .iter()
            .filter(|request| is_first(request))
            .skip(served.len() / 20)
            .map(|request| request.response());
        let waited = mean(firsts) / service.0 as f64;
        assert!(
            (waited / upper as f64 - 1.0).abs() < 0.01,
            "{connections} on {threads}: {waited}·s"
        );
        let served = &served[60_000..];
        let low = share_at(served, service.0);
        let high = share_at(served, service.0 * upper);
        let is_whole = (low - 0.9).abs() < 0.001 && (high - 0.1).abs() < 0.001;
        assert!(
            is_whole || connections % threads > 0,
            "{connections} on {threads}: {low} at s, {high} at {upper}·s"
        );
        let expected = service.0 as f64 * f64::from(connections) / f64::from(threads);
        assert!(
            (mean(served.iter().map(|request| request.response())) / expected - 1.0).abs() < 0.001
        );
    }
}

#[test]
fn inline_ten_alone_stays_with_its_connection() {
    // Nothing waits: no request is sent to the end of the queue, and twenty in a row take s each.
    let served = closed(pool(SlotQueue::Inline10, 1, 2), 2, Nanos::from_millis(5).into(), 100);
    assert!(served.iter().all(|request| request.response() == 5_000_000));
}

#[test]
fn a_slot_is_held_for_a_fifth_of_a_second() {
    let ms = Nanos::from_millis;
    let mut pool = pool(SlotQueue::Inline10, 1, 1);
    let job = |connection, number, last| request(connection, number, ms(10), last);
    pool.open(key(1));
    pool.arrive(ms(0), job(1, 0, false));
    assert!(!pool.has_room(), "its slot is busy, so no connection is accepted");
    assert_eq!(pool.finish(ms(10)).unwrap().due, ms(10));
    // While the slot is held, another connection's request waits although nothing runs, and the
    // same connection's goes first.
    pool.open(key(2));
    pool.arrive(ms(20), job(2, 1, true));
    assert_eq!((pool.waiting(), pool.busy(), pool.has_room()), (1, 0, false));
    pool.arrive(ms(100), job(1, 2, false));
    assert_eq!(pool.finish(ms(110)).unwrap().request.number, 2);
    // No request came in 0.2 s: the slot goes to the other connection exactly at the end of the
    // hold.
    assert_eq!((pool.finish(ms(309)), pool.next_due()), (None, Some(ms(310))));
    let other = pool.finish(ms(400)).unwrap();
    assert_eq!((other.request.number, other.due), (1, ms(320)));
    assert!(
        pool.has_room() && pool.next_due().is_none(),
        "it was its connection's last request, so nothing is held"
    );
}

#[test]
fn noticing_the_end_of_a_hold_late_delays_no_request() {
    let ms = Nanos::from_millis;
    let mut pool = pool(SlotQueue::Inline10, 1, 1);
    let job = |connection, last| request(connection, 0, ms(10), last);
    pool.open(key(1));
    pool.arrive(ms(0), job(1, false));
    pool.finish(ms(10)).unwrap();
    pool.open(key(2));
    pool.arrive(ms(20), job(2, true));
    // The loop does not look before 500 ms.
    assert_eq!(pool.finish(ms(500)).unwrap().due, ms(220));
    // A connection that closes ends its hold.
    pool.open(key(3));
    pool.arrive(ms(500), job(3, false));
    pool.finish(ms(510)).unwrap();
    assert!(!pool.has_room());
    pool.close(ms(511), key(3));
    assert!(pool.has_room() && pool.finish(ms(900)).is_none());
}

#[test]
fn after_ten_in_a_row_a_full_worker_is_crowded() {
    let mut pool = pool(SlotQueue::Inline10, 1, 1);
    pool.open(key(1));
    let crowded: Vec<_> = (0..12)
        .map(|number| {
            let now = Nanos::from_millis(number * 10);
            pool.arrive(now, request(1, number, Nanos::from_millis(10), false));
            pool.finish(now + Nanos::from_millis(10)).unwrap().crowded
        })
        .collect();
    assert_eq!(
        crowded,
        [false, false, false, false, false, false, false, false, false, true, true, true]
    );
}

#[test]
fn no_request_is_lost_or_waits_while_a_slot_is_free() {
    // Bursts, pauses longer than the hold, closing connections: everything that goes in comes out.
    for queue in [SlotQueue::Shared, SlotQueue::SplitRandom, SlotQueue::Inline10] {
        let mut pool = pool(queue, 3, 2);
        let mut arrived = 0;
        let mut finished = 0;
        let mut now = 0u64;
        let mut busy = HashSet::new();
        // A connection that is closed and opened again is a different one.
        let mut lives = [0u32; 23];
        for connection in 0..23 {
            pool.open(key(connection));
        }
        for step in 0..20_000u64 {
            now += DelayLaw::Exponential { mean: Nanos::from_millis(8) }.of(9, step).0;
            while let Some(done) = pool.finish(Nanos(now)) {
                finished += 1;
                busy.remove(&done.request.connection);
            }
            let place = step * 7919 % 23;
            let life = &mut lives[place as usize];
            let mut connection = place as u32 + 23 * *life;
            if step % 5 == 0 {
                pool.close(Nanos(now), key(connection));
                *life += 1;
                connection += 23;
                pool.open(key(connection));
            }
            if busy.insert(key(connection)) {
                let service = DelayLaw::Exponential { mean: Nanos::from_millis(20) }.of(2, step);
                pool.arrive(Nanos(now), request(connection, step, service, step % 3 == 0));
                arrived += 1;
            }
            assert_eq!(finished + pool.waiting() + pool.busy(), arrived);
            assert!(pool.busy() <= 6);
            assert!(queue != SlotQueue::Shared || pool.waiting() == 0 || pool.busy() == 6);
        }
        while pool.next_due().is_some() {
            finished += u64::from(pool.finish(Nanos::MAX).is_some());
        }
        assert_eq!((finished, pool.waiting(), pool.busy(), pool.has_room()), (arrived, 0, 0, true));
    }
}

#[test]
fn a_stall_delays_responses_that_are_due_in_it() {
    let stalls: StallLaw = "1s:100ms".parse().unwrap();
    let settings = SinkSettings { stalls: Some(stalls), ..SinkSettings::default() };
    let arrivals = (0..500).map(|k| Nanos::from_millis(k * 10));
    for (queue, service) in
        [(SlotQueue::Unlimited, 0), (SlotQueue::Unlimited, 25), (SlotQueue::Shared, 5)]
    {
        let settings = SinkSettings { queue, threads: 100, ..settings.clone() };
        let service = Nanos::from_millis(service);
        for request in open(SlotPool::new(&settings, 0), arrivals.clone().map(|at| (at, service))) {
            assert_eq!(request.ended, stalls.release(Nanos(request.sent) + service).0);
        }
    }
}

/// The recursion of Kiefer and Wolfowitz (1955): each request in turn takes the slot that is free
/// first.
fn recursion(slots: u32, requests: &[(u64, u64)]) -> Vec<u64> {
    let mut free_at = vec![0; slots as usize];
    let end = |(arrival, service): &(u64, u64)| {
        let first = free_at.iter_mut().min().unwrap();
        *first = (*first).max(*arrival) + service;
        *first
    };
    requests.iter().map(end).collect()
}

/// When each of the `requests` (arrival, service; in order of arrival) is over, and which worker
/// served it.
fn ends(pool: SlotPool, requests: &[(u64, u64)]) -> Vec<(u64, u32)> {
    let requests = requests.iter().map(|(arrival, service)| (Nanos(*arrival), Nanos(*service)));
    open(pool, requests).iter().map(|request| (request.ended, request.worker)).collect()
}

fn any_requests() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0u64..50, 0u64..200), 1..120).prop_map(|gaps| {
        let arrivals = gaps.iter().scan(0, |arrival, (gap, _)| {
            *arrival += gap;
            Some(*arrival)
        });
        arrivals.zip(&gaps).map(|(arrival, (_, service))| (arrival, *service)).collect()
    })
}

proptest! {
    #[test]
    fn all_arrivals_agree_with_the_recursion(
        requests in any_requests(), late in 0u64..500, workers in 1u32..5, threads in 1u32..5,
    ) {
        let expected = recursion(workers * threads, &requests);
        let seen = ends(pool(SlotQueue::Shared, workers, threads), &requests);
        prop_assert_eq!(&seen.into_iter().map(|(end, _)| end).collect::<Vec<_>>(), &expected);
        // If each connection belongs to a worker, each worker is a separate queue.
        let dealt = ends(pool(SlotQueue::Split, workers, threads), &requests);
        for worker in 0..workers as usize {
            let own: Vec<_> = requests.iter().copied().skip(worker).step_by(workers as usize).collect();
            let expected: Vec<_> = recursion(threads, &own).into_iter().map(|end| (end, worker as u32)).collect();
            let seen: Vec<_> = dealt.iter().copied().skip(worker).step_by(workers as usize).collect();
            prop_assert_eq!(seen, expected);
        }
        // A late loop delays no request: all arrivals are added on time, but finished slots are
        // only collected after the last.
        let mut pool = pool(SlotQueue::Shared, workers, threads);
        let mut finished = Vec::new();
        for (number, (arrival, service)) in requests.iter().enumerate() {
            let request = request(number as u32, 0, Nanos(*service), false);
            if let Some(at_once) = pool.arrive(Nanos(*arrival), request) {
                prop_assert_eq!(at_once.due.0, expected[number]);
            }
        }
        let now = Nanos(expected.iter().max().unwrap() + late);
        while let Some(one) = pool.finish(now) {
            prop_assert_eq!(one.due.0, expected[one.request.connection.0 as usize]);
            finished.push(one.due);
        }
        prop_assert!(finished.is_sorted() && pool.waiting() + pool.busy() == 0);
    }
}

#[test]
fn requests_go_to_the_worker_with_the_most_free_slots() {
    let workers = |requests: &[(u64, u64)]| {
        ends(pool(SlotQueue::Shared, 3, 2), requests)
            .into_iter()
            .map(|(_, worker)| worker)
            .collect::<Vec<_>>()
    };
    assert_eq!(workers(&[(0, 9); 6]), [0, 1, 2, 0, 1, 2]);
    // Worker 1 is the first to have both its slots free again, although it is not its turn.
    let requests = [(0, 90), (0, 5), (0, 90), (0, 90), (0, 5), (0, 90), (6, 1), (6, 1)];
    assert_eq!(workers(&requests)[6..], [1, 1]);
}
