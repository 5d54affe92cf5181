//! The disciplines against what is known of them on paper: closed forms, and exact results of queueing theory. In exact
//! simulated time: no socket, no clock. The figures are those of the literature, in units of the service time.

use std::collections::HashSet;

use model::{Arrivals, Nanos, Pace, Profile, Rate};

use crate::pool::Pool;
use crate::running::Job;
use crate::stalls::Stalls;
use crate::{Assignment, Delay, Queue, Settings};

const SECOND: u64 = 1_000_000_000;

/// One request's way.
#[derive(Clone, Copy, Debug)]
struct Way {
    connection: u32,
    worker: u32,
    sent: u64,
    ended: u64,
}

impl Way {
    fn response(self) -> u64 {
        self.ended - self.sent
    }
}

fn pool(queue: Queue, workers: u32, threads: u32) -> Pool<u32> {
    Pool::new(&Settings { queue, workers, threads, seed: 5, ..Settings::default() }, 0)
}

/// The first `count` requests of `connections` that send the next the moment they have an answer. All are accepted before
/// the first sends.
fn closed(mut pool: Pool<u32>, connections: u32, delay: Delay, count: usize) -> Vec<Way> {
    let mut sent = vec![0; connections as usize];
    let mut number = 0;
    let mut send = |pool: &mut Pool<u32>, now: u64, connection: u32| {
        let service = delay.of(1, number);
        number += 1;
        let job = Job { connection, number, service, last: false };
        assert!(pool.arrive(Nanos(now), job).is_none(), "it takes some time");
    };
    for connection in 0..connections {
        assert!(pool.has_room());
        pool.open(connection);
    }
    for connection in 0..connections {
        send(&mut pool, 0, connection);
    }
    let mut ways = Vec::new();
    while ways.len() < count {
        let due = pool.next_due().unwrap();
        while let Some(finished) = pool.finish(due) {
            let (connection, ended) = (finished.job.connection, finished.due.0);
            let began = std::mem::replace(&mut sent[connection as usize], ended);
            ways.push(Way { connection, worker: finished.worker, sent: began, ended });
            send(&mut pool, ended, connection);
        }
    }
    ways
}

/// Requests that come when they come, each over a connection of its own; in the order of arrival.
fn open(mut pool: Pool<u32>, arrivals: impl Iterator<Item = Nanos>, delay: Delay) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    let settle = |pool: &mut Pool<u32>, ways: &mut Vec<Way>, until: Nanos| {
        while let Some(due) = pool.next_due().filter(|due| *due <= until) {
            while let Some(finished) = pool.finish(due) {
                let way = &mut ways[finished.job.connection as usize];
                (way.ended, way.worker) = (finished.due.0, finished.worker);
            }
        }
    };
    for (connection, at) in (0..).zip(arrivals) {
        settle(&mut pool, &mut ways, at);
        pool.open(connection);
        ways.push(Way { connection, worker: 0, sent: at.0, ended: 0 });
        let number = u64::from(connection);
        let job = Job { connection, number, service: delay.of(1, number), last: true };
        if let Some(finished) = pool.arrive(at, job) {
            let way = &mut ways[connection as usize];
            (way.ended, way.worker) = (finished.due.0, finished.worker);
        }
    }
    settle(&mut pool, &mut ways, Nanos::MAX);
    ways
}

fn mean(times: impl Iterator<Item = u64>) -> f64 {
    let (count, sum) = times.fold((0u64, 0.0), |(count, sum), time| (count + 1, sum + time as f64));
    sum / count as f64
}

/// How many of `ways` took exactly `time`.
fn share_at(ways: &[Way], time: u64) -> f64 {
    ways.iter().filter(|way| way.response() == time).count() as f64 / ways.len() as f64
}

#[test]
fn a_closed_loop_without_thought_has_two_levels() {
    type Levels = &'static [(f64, u64)];
    // (N, c, s in ms, (share, level in ms)…), N = q·c + r: (c - r)/c at q·s and r/c at (q + 1)·s.
    let cases: [(u32, u32, u64, Levels); 7] = [
        (20, 20, 200, &[(1.0, 200)]),
        (30, 20, 200, &[(0.5, 200), (0.5, 400)]),
        (40, 20, 200, &[(1.0, 400)]),
        (60, 20, 200, &[(1.0, 600)]),
        (80, 20, 200, &[(1.0, 800)]),
        (7, 5, 200, &[(0.6, 200), (0.4, 400)]),
        (8, 5, 200, &[(0.4, 200), (0.6, 400)]),
    ];
    for (connections, slots, service, levels) in cases {
        let service = Nanos::from_millis(service);
        let ways = closed(pool(Queue::Shared, slots, 1), connections, service.into(), 40_000);
        // The first round begins together, and is not yet the regime.
        let ways = &ways[20_000..];
        for (share, level) in levels {
            let seen = share_at(ways, level * 1_000_000);
            assert!((seen - share).abs() < 0.001, "{connections} on {slots}: {seen} at {level} ms");
        }
        let expected = service.0 as f64 * f64::from(connections.max(slots)) / f64::from(slots);
        assert!((mean(ways.iter().map(|way| way.response())) / expected - 1.0).abs() < 0.001);
    }
}

#[test]
fn littles_law_holds_for_any_delay_and_any_work_conserving_queue() {
    for delay in ["exp:200ms", "bimodal:50ms:1s:0.1", "lognormal:100ms:1", "uniform:0s:400ms"] {
        for queue in [Queue::Shared, Queue::Split(Assignment::RoundRobin), Queue::Inline10] {
            let delay: Delay = delay.parse().unwrap();
            // With ten a worker no queue runs dry, so that a split pool is work conserving, too.
            let ways = closed(pool(queue, 4, 5), 40, delay, 150_000);
            let rate = ways.len() as f64 / ways.last().unwrap().ended as f64;
            let expected = 20.0 / delay.mean().0 as f64;
            // The heaviest law here has a standard error of 0.4 %.
            assert!((rate / expected - 1.0).abs() < 0.015, "{queue} {delay}: {}", rate / expected);
            let mean = mean(ways.iter().map(|way| way.response()));
            assert!((mean * rate / 40.0 - 1.0).abs() < 0.005, "{queue} {delay}: X·R = {}", mean * rate);
        }
    }
}

#[test]
fn a_split_pool_shows_how_many_each_worker_has() {
    // R_k = N_k·s/t where N_k ≥ t, s where not.
    let service = Nanos::from_millis(200);
    for assignment in [Assignment::RoundRobin, Assignment::Random] {
        let ways = closed(pool(Queue::Split(assignment), 4, 5), 50, service.into(), 50_000);
        let ways = &ways[10_000..];
        let mut connections: Vec<HashSet<u32>> = vec![HashSet::default(); 4];
        for way in ways {
            connections[way.worker as usize].insert(way.connection);
        }
        let counts: Vec<_> = connections.iter().map(HashSet::len).collect();
        assert_eq!(counts.iter().sum::<usize>(), 50, "none changes its worker");
        if assignment == Assignment::RoundRobin {
            assert_eq!(counts, [13, 13, 12, 12]);
        } else {
            assert_ne!(counts, [13, 13, 12, 12]);
        }
        for (worker, count) in counts.iter().enumerate() {
            let of_worker = ways.iter().filter(|way| way.worker as usize == worker);
            let expected = service.0 as f64 * count.max(&5).to_owned() as f64 / 5.0;
            let seen = mean(of_worker.map(|way| way.response()));
            assert!((seen / expected - 1.0).abs() < 0.002, "worker {worker} of {counts:?}: {seen}");
        }
    }
}

#[test]
fn random_assignment_is_as_uneven_as_dice() {
    // N = 20 over w = 4: the mean of the fullest is 7.3825 (multinomial, exact).
    let rounds = 20_000u32;
    let mut sum = 0;
    for seed in 0..rounds {
        let settings = Settings {
            queue: Queue::Split(Assignment::Random),
            workers: 4,
            seed: u64::from(seed),
            ..Settings::default()
        };
        let mut pool: Pool<u32> = Pool::new(&settings, 0);
        let mut counts = [0; 4];
        for connection in 0..20 {
            pool.open(connection);
            pool.arrive(Nanos::ZERO, Job { connection, number: 0, service: Nanos::ZERO, last: true });
        }
        while let Some(finished) = pool.finish(Nanos::ZERO) {
            counts[finished.worker as usize] += 1;
        }
        assert_eq!(counts.iter().sum::<u32>(), 20);
        sum += counts.iter().max().unwrap();
    }
    let seen = f64::from(sum) / f64::from(rounds);
    // Its standard deviation is 1.2: three and a half errors.
    assert!((seen - 7.3825).abs() < 3.5 * 1.2 / f64::from(rounds).sqrt(), "{seen}");
}

#[test]
fn inline_ten_makes_one_request_in_ten_wait_for_tens_of_others() {
    // 9/10 at s, 1/10 at s·(10·(n/t - 1) + 1).
    for (connections, threads, upper) in [(8, 4, 11), (16, 4, 31), (24, 4, 51), (32, 4, 71), (40, 5, 71), (12, 2, 51)] {
        let service = Nanos::from_millis(20);
        let ways = closed(pool(Queue::Inline10, 1, threads), connections, service.into(), 60_000);
        let ways = &ways[20_000..];
        let (low, high) = (share_at(ways, service.0), share_at(ways, service.0 * upper));
        assert!((low - 0.9).abs() < 0.001, "{connections} on {threads}: {low} at s");
        assert!((high - 0.1).abs() < 0.001, "{connections} on {threads}: {high} at {upper}·s");
        let expected = service.0 as f64 * f64::from(connections) / f64::from(threads);
        assert!((mean(ways.iter().map(|way| way.response())) / expected - 1.0).abs() < 0.001);
    }
}

#[test]
fn inline_ten_keeps_its_upper_mean_where_connections_do_not_divide() {
    // n/t = 1.6 → 7·s, 6.4 → 55·s, as the mean of those that wait for their turn: every tenth of a connection.
    for (connections, threads, upper) in [(8, 5, 7.0), (32, 5, 55.0)] {
        let service = Nanos::from_millis(20);
        let ways = closed(pool(Queue::Inline10, 1, threads), connections, service.into(), 160_000);
        let mut turns = vec![0u64; connections as usize];
        let firsts: Vec<_> = ways
            .iter()
            .filter(|way| {
                turns[way.connection as usize] += 1;
                turns[way.connection as usize] % 10 == 1
            })
            .skip(ways.len() / 20)
            .map(|way| way.response())
            .collect();
        let seen = mean(firsts.into_iter()) / service.0 as f64;
        assert!((seen / upper - 1.0).abs() < 0.01, "{connections} on {threads}: {seen}·s");
    }
}

#[test]
fn inline_ten_alone_stays_with_its_connection() {
    // Nobody waits: no request is sent to the end of the queue, and twenty in a row take s each.
    let ways = closed(pool(Queue::Inline10, 1, 2), 2, Nanos::from_millis(5).into(), 100);
    assert!(ways.iter().all(|way| way.response() == 5_000_000));
}

#[test]
fn a_slot_is_held_for_a_fifth_of_a_second() {
    let ms = |ms: u64| Nanos::from_millis(ms);
    let mut pool = pool(Queue::Inline10, 1, 1);
    pool.open(1);
    let job = |connection, number, last| Job { connection, number, service: ms(10), last };
    pool.arrive(ms(0), job(1, 0, false));
    assert!(!pool.has_room(), "its slot is busy: nobody is accepted");
    assert_eq!(pool.finish(ms(10)).unwrap().due, ms(10));
    // Held: another's request waits though nothing runs, and the same connection's goes first.
    pool.open(2);
    pool.arrive(ms(20), job(2, 1, true));
    assert_eq!((pool.waiting(), pool.busy(), pool.has_room()), (1, 0, false));
    pool.arrive(ms(100), job(1, 2, false));
    assert_eq!(pool.finish(ms(110)).unwrap().job.number, 2);
    // Nothing came in 0.2 s: the slot goes to the other, at the very end of the hold.
    assert_eq!((pool.next_due(), pool.finish(ms(309))), (Some(ms(310)), None));
    let other = pool.finish(ms(400)).unwrap();
    assert_eq!((other.job.number, other.due), (1, ms(320)));
    assert!(pool.has_room() && pool.next_due().is_none(), "it was its connection's last, and nothing is held for it");
}

#[test]
fn a_hold_that_ends_late_costs_nobody_time() {
    let ms = |ms: u64| Nanos::from_millis(ms);
    let job = |connection, last| Job { connection, number: 0, service: ms(10), last };
    let mut pool = pool(Queue::Inline10, 1, 1);
    pool.open(1);
    pool.arrive(ms(0), job(1, false));
    pool.finish(ms(10)).unwrap();
    pool.open(2);
    pool.arrive(ms(20), job(2, true));
    // Nobody looks before 500 ms.
    assert_eq!(pool.finish(ms(500)).unwrap().due, ms(220));
    // A connection that goes takes its hold with it.
    pool.open(3);
    pool.arrive(ms(500), job(3, false));
    pool.finish(ms(510)).unwrap();
    assert!(!pool.has_room());
    pool.close(ms(511), 3);
    assert!(pool.has_room() && pool.next_due().is_none());
}

#[test]
fn after_ten_in_a_row_a_full_worker_is_crowded() {
    let mut pool = pool(Queue::Inline10, 1, 1);
    pool.open(1);
    let crowded: Vec<_> = (0..12)
        .map(|number| {
            let now = Nanos::from_millis(number * 10);
            pool.arrive(now, Job { connection: 1, number, service: Nanos::from_millis(10), last: false });
            pool.finish(now + Nanos::from_millis(10)).unwrap().crowded
        })
        .collect();
    assert_eq!(crowded, [false, false, false, false, false, false, false, false, false, true, true, true]);
}

#[test]
fn inline_ten_loses_nothing() {
    // Bursts, pauses beyond the hold, connections that close: whatever comes in goes out.
    let mut pool = pool(Queue::Inline10, 3, 2);
    let (mut arrived, mut finished, mut now) = (0, 0, 0u64);
    let mut busy = HashSet::new();
    // Closed and opened again, a connection is another.
    let mut lives = [0u32; 23];
    for connection in 0..23 {
        pool.open(connection);
    }
    for step in 0..20_000u64 {
        now += Delay::Exponential { mean: Nanos::from_millis(8) }.of(9, step).0;
        while let Some(done) = pool.finish(Nanos(now)) {
            finished += 1;
            busy.remove(&done.job.connection);
        }
        let place = step * 7919 % 23;
        let life = &mut lives[place as usize];
        let mut connection = place as u32 + 23 * *life;
        if step % 5 == 0 {
            pool.close(Nanos(now), connection);
            *life += 1;
            connection += 23;
            pool.open(connection);
        }
        if busy.insert(connection) {
            let service = Delay::Exponential { mean: Nanos::from_millis(20) }.of(2, step);
            pool.arrive(Nanos(now), Job { connection, number: step, service, last: step % 3 == 0 });
            arrived += 1;
        }
        assert_eq!(finished + pool.waiting() + pool.busy(), arrived);
        assert!(pool.busy() <= 6);
    }
    while pool.next_due().is_some() {
        finished += u64::from(pool.finish(Nanos::MAX).is_some());
    }
    assert_eq!((finished, pool.waiting(), pool.busy(), pool.has_room()), (arrived, 0, 0, true));
}

#[test]
fn a_burst_and_a_paced_overload_are_staircases() {
    let responses = |ways: Vec<Way>| ways.iter().map(|way| way.response()).collect::<Vec<_>>();
    let service = Delay::from(Nanos::from_secs(1));
    let burst = responses(open(pool(Queue::Shared, 1, 5), [Nanos::ZERO; 12].into_iter(), service));
    assert_eq!(burst, (1..=12u64).map(|k| k.div_ceil(5) * SECOND).collect::<Vec<_>>());
    // c = 5, s = 1 s: steps of s - c·δ, in ms.
    for (gap, step) in [(100, 500), (104, 480), (150, 250), (200, 0), (250, 0)] {
        let arrivals = (0..100).map(|k| Nanos::from_millis(k * gap));
        let paced = responses(open(pool(Queue::Shared, 1, 5), arrivals, service));
        let expected: Vec<_> = (1..=100u64).map(|k| SECOND + (k - 1) / 5 * step * 1_000_000).collect();
        assert_eq!(paced, expected, "a gap of {gap} ms");
    }
}

#[test]
fn a_stall_holds_what_would_go_out_in_it() {
    let stalls: Stalls = "1s:100ms".parse().unwrap();
    let settings = Settings { stalls: Some(stalls), ..Settings::default() };
    let arrivals = (0..500).map(|k| Nanos::from_millis(k * 10));
    for (queue, service) in [(Queue::Unlimited, 0), (Queue::Unlimited, 25), (Queue::Shared, 5)] {
        let settings = Settings { queue, threads: 100, ..settings.clone() };
        let service = Nanos::from_millis(service);
        for way in open(Pool::new(&settings, 0), arrivals.clone(), service.into()) {
            assert_eq!(way.ended, stalls.release(Nanos(way.sent) + service).0);
        }
    }
}

/// Waiting times of `count` customers in M/D/c at utilisation `rho`, in units of the service time. The first tenth is
/// left out.
fn waits(slots: u32, rho: f64, seed: u64, count: usize) -> Vec<f64> {
    let rate = Rate::new(rho * f64::from(slots)).unwrap();
    let pace = Pace::Open { profile: Profile::Flat { rate }, arrivals: Arrivals::Poisson, seed, burst: 1 };
    let arrivals = pace.schedule().unwrap().take(count);
    let ways = open(pool(Queue::Shared, slots, 1), arrivals, Nanos::from_secs(1).into());
    ways[count / 10..].iter().map(|way| (way.response() - SECOND) as f64 / 1e9).collect()
}

#[test]
fn a_paced_by_dice_load_waits_as_crommelin_says() {
    // c, ρ, P(wait), Wq, W90, W99: exact (Crommelin 1932, Franx 2001). The interval is three and a half standard errors
    // over 40 batches of one long run, which must be small itself: at ρ = .9 the
    // long waits come in clumps, and a million customers are what it takes. The seed is fixed: a fact, not a chance.
    let cases = [
        (1, 0.5, 0.5, 0.5, 1.515_744_8, 3.336_256),
        (2, 0.8, 0.701_898_32, 0.903_283_88, 2.397_276_5, 5.069_551_2),
        (5, 0.5, 0.121_341_54, 0.030_653_194, 0.064_959_52, 0.558_361_49),
        (5, 0.8, 0.533_615_06, 0.289_060_01, 0.867_039_82, 1.937_438_8),
        (5, 0.9, 0.747_828_55, 0.776_695_16, 2.021_836_1, 4.244_986),
        (20, 0.9, 0.523_265_07, 0.144_286_08, 0.441_765_97, 0.997_638_89),
    ];
    for (slots, rho, delayed, wait, w90, w99) in cases {
        let waits = waits(slots, rho, 11, 1_000_000);
        let interval = |of: &dyn Fn(&[f64]) -> f64| {
            let batches: Vec<_> = waits.chunks(waits.len() / 40).take(40).map(of).collect();
            let mean = batches.iter().sum::<f64>() / 40.0;
            let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / 39.0;
            (mean, 3.5 * (variance / 40.0).sqrt())
        };
        let assert_near = |what: &str, exact: f64, (seen, error): (f64, f64), width: f64| {
            let seen_text = format!("M/D/{slots}, ρ {rho}: {what} {seen} ± {error}, exactly {exact}");
            assert!((seen - exact).abs() <= error, "{seen_text}");
            assert!(error < exact * width, "{seen_text}");
        };
        let share = |batch: &[f64], of: &dyn Fn(f64) -> bool| {
            batch.iter().filter(|wait| of(**wait)).count() as f64 / batch.len() as f64
        };
        assert_near("Wq", wait, interval(&|batch| batch.iter().sum::<f64>() / batch.len() as f64), 0.1);
        assert_near("P(wait)", delayed, interval(&|batch| share(batch, &|wait| wait > 0.0)), 0.03);
        // A quantile is looked at from its side of the law: how many wait for longer than it.
        assert_near("above W90", 0.1, interval(&|batch| share(batch, &|wait| wait > w90)), 0.2);
        assert_near("above W99", 0.01, interval(&|batch| share(batch, &|wait| wait > w99)), 0.8);
    }
}

#[test]
fn a_split_pool_waits_as_its_workers_do() {
    // Four workers of five behind a fair dealer at ρ = .8: each is an M/D/5 of its own, Wq = .28906 and not the .03587 of
    // M/D/20.
    let rate = Rate::new(16.0).unwrap();
    let pace = Pace::Open { profile: Profile::Flat { rate }, arrivals: Arrivals::Poisson, seed: 3, burst: 1 };
    for (queue, exact) in [(Queue::Split(Assignment::Random), 0.289_060_01), (Queue::Shared, 0.035_874_1)] {
        let arrivals = pace.schedule().unwrap().take(200_000);
        let ways = open(pool(queue, 4, 5), arrivals, Nanos::from_secs(1).into());
        let seen = mean(ways.iter().map(|way| way.response() - SECOND)) / 1e9;
        assert!((seen / exact - 1.0).abs() < 0.05, "{queue}: {seen}, exactly {exact}");
    }
}
