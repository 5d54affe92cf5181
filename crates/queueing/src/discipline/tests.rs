//! The choice against what each discipline makes, against measured rows, and against what others
//! have published.

use model::theory::Resemblance;
use model::{Exchange, Outcome, Tally, Window};

use super::*;
use crate::simulate::{
    self, PoolArrivals, Simulated, SimulationEffort, ThreadPool, TimeLaw, constant, exponential,
};
use Discipline::{Shared, Split, Turns};

const ORDER: ServiceOrder = ServiceOrder {
    discipline: None,
    is_kept: true,
    dealing: ConnectionDealing::ByChance,
    turn: TURN,
};

/// Four workers of five threads, and an app that sleeps for 100 ms.
const SERVER: ClosedLoopServer = ClosedLoopServer {
    workers: 4,
    threads: 5,
    service_time: Nanos::from_millis(100),
    scatters: false,
    order: ORDER,
    by_worker: None,
};

fn two_workers(threads: u32) -> ClosedLoopServer {
    ClosedLoopServer { workers: 2, threads, ..SERVER }
}

fn row(connections: u32, rate: f64, quantiles: &[(f64, f64)]) -> MeasuredLoop {
    let exactly =
        |(share, time): &(f64, f64)| MeasuredQuantile { share: *share, low: *time, high: *time };
    MeasuredLoop { connections, rate, quantiles: quantiles.iter().map(exactly).collect() }
}

const SHARES: [f64; 7] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
const EFFORT: SimulationEffort =
    SimulationEffort { replications: 8, requests: 4000, warm_up: 4000, seed: 99 };

/// A service of 100 ms, and up to so many seconds more.
fn with_jitter(jitter: f64) -> impl Fn(u64, u64) -> f64 {
    move |seed, number| 0.1 + jitter * model::pace::uniform(seed, number)
}

/// What a closed loop shows.
fn seen(pools: &[ThreadPool], service: TimeLaw<'_>) -> MeasuredLoop {
    shown(
        &simulate::closed(pools, PoolArrivals::Kept, &constant(0.0), service, EFFORT).unwrap(),
        pools,
    )
}

/// As a run shows it: each quantile with its interval.
fn shown(simulated: &Simulated, pools: &[ThreadPool]) -> MeasuredLoop {
    let quantile = |share: f64| {
        let known = simulated.response_quantile(share).unwrap();
        MeasuredQuantile { share, low: known.low, high: known.high }
    };
    MeasuredLoop {
        connections: pools.iter().map(|pool| pool.connections).sum(),
        rate: simulated.rate().value,
        quantiles: SHARES.map(quantile).to_vec(),
    }
}

/// Of the server above, with so many connections on each worker.
fn pools(discipline: Discipline, counts: &[u32]) -> Vec<ThreadPool> {
    match discipline {
        Shared => vec![ThreadPool::first_come(20, counts.iter().sum())],
        Split => counts.iter().map(|count| ThreadPool::first_come(5, *count)).collect(),
        Turns => counts
            .iter()
            .map(|count| ThreadPool { threads: 5, connections: *count, turn: 10, hold: 0.2 })
            .collect(),
    }
}

fn made_by(discipline: Discipline, counts: &[u32]) -> MeasuredLoop {
    seen(&pools(discipline, counts), &constant(0.1))
}

fn fitting(
    theory: &Theory,
    of: fn(&DisciplineForecast) -> Option<DisciplineFit>,
) -> Vec<Discipline> {
    let fits = |it: &&DisciplineForecast| of(it).is_some_and(|fit| fit.worst <= theory.tolerance);
    theory.forecasts.iter().filter(fits).map(|it| it.discipline).collect()
}

/// Those that fit with the known service time, and those that fit by their shape.
fn fits(
    server: &ClosedLoopServer,
    measured: &MeasuredLoop,
    tolerance: f64,
) -> [Vec<Discipline>; 2] {
    let theory = compare_with(server, measured, None, tolerance).unwrap();
    [fitting(&theory, |it| it.fit), fitting(&theory, |it| it.shape)]
}

#[track_caller]
fn assert_fits(
    server: &ClosedLoopServer,
    measured: &MeasuredLoop,
    tolerance: f64,
    expected: &[Discipline],
) {
    assert_eq!(fits(server, measured, tolerance)[0], expected, "{measured:?}");
}

#[test]
fn each_discipline_is_recognised_by_what_it_makes() {
    assert_fits(&SERVER, &made_by(Shared, &[20; 4]), 1.1, &[Shared]);
    assert_fits(&SERVER, &made_by(Split, &[26, 14, 19, 21]), 1.1, &[Split]);
    assert_fits(&SERVER, &made_by(Turns, &[20; 4]), 1.1, &[Turns]);
    let scattered = seen(&pools(Turns, &[20; 4]), &exponential(0.1));
    assert_fits(&ClosedLoopServer { scatters: true, ..SERVER }, &scattered, 1.15, &[Turns]);
    assert_fits(&SERVER, &made_by(Shared, &[1; 4]), 1.1, &[Shared, Split, Turns]);
    // With one worker split queues are a shared one.
    let one = ClosedLoopServer { workers: 1, threads: 20, ..SERVER };
    assert_fits(&one, &seen(&[ThreadPool::first_come(20, 80)], &constant(0.1)), 1.1, &[Shared]);
    // Thirty on twenty: in step half take one turn and half two; with jitter all take about one and
    // a half.
    assert_fits(
        &one,
        &seen(&[ThreadPool::first_come(20, 30)], &with_jitter(0.01)),
        1.15,
        &[Shared],
    );
}

#[test]
fn last_come_first_served_is_none_of_them() {
    let measured = made_by(Shared, &[20; 4]);
    // Half are served at once, and the other half hardly ever.
    assert_fits(
        &SERVER,
        &row(80, measured.rate, &[(0.5, 0.1), (0.9, 0.2), (0.99, 12.0)]),
        1.1,
        &[],
    );
    // And a rate that the slots cannot do is nobody's.
    let fast = MeasuredLoop { rate: measured.rate * 2.0, ..measured };
    let theory = compare_with(&SERVER, &fast, None, 1.1).unwrap();
    assert!(
        fitting(&theory, |it| it.fit).is_empty()
            && theory.forecasts[0].fit.unwrap().worst_at.is_none()
    );
}

#[test]
fn connections_held_by_workers_did_not_share_one_queue() {
    let held =
        |by_worker: &[u32]| ClosedLoopServer { by_worker: Some(by_worker.to_vec()), ..SERVER };
    let uneven = made_by(Split, &[26, 14, 19, 21]);
    assert_fits(&held(&[26, 14, 19, 21]), &uneven, 1.01, &[Split]);
    assert!(
        compare_with(&held(&[26, 15, 19, 21]), &uneven, None, 1.1).is_err(),
        "they do not add up"
    );
    // Even split queues of constant service are one queue by their times; who held the connections
    // tells them apart.
    let even = made_by(Split, &[10; 4]);
    assert!(fits(&SERVER, &even, 1.1)[0].contains(&Shared));
    assert_fits(&held(&[10; 4]), &even, 1.1, &[Split]);
    // Where nobody has to wait it tells nothing.
    assert_fits(&held(&[1; 4]), &made_by(Split, &[1; 4]), 1.1, &[Shared, Split, Turns]);
    // 8 + 7 on two workers of five threads: in step or not, both are that dealing.
    let two = ClosedLoopServer { by_worker: Some(vec![8, 7]), ..two_workers(5) };
    for jitter in [0.0, 0.02] {
        assert_fits(&two, &seen(&pools(Split, &[8, 7]), &with_jitter(jitter)), 1.15, &[Split]);
    }
}

#[test]
fn turns_of_connections_that_the_workers_hold_are_each_workers_own() {
    // Puma 6.6.1 with turns of three, 12 connections on two workers of two threads, all of which
    // had been accepted: 6 + 6.
    let measured = row(12, 39.2, &[(0.5, 0.101), (0.95, 0.725), (0.99, 0.727)]);
    let server = |held: &[u32]| ClosedLoopServer {
        by_worker: Some(held.to_vec()),
        order: ServiceOrder { turn: 3, ..ORDER },
        ..two_workers(2)
    };
    assert_fits(&server(&[6, 6]), &measured, 1.15, &[Turns]);
    // By the dealing 8 + 4 the fullest would wait longer.
    assert_fits(&server(&[8, 4]), &measured, 1.15, &[]);
}

#[test]
fn turns_wait_in_one_line_for_all_workers() {
    // Fifteen on two workers of five threads, as Puma 5.6.5 and 6.6.1 had it: the workers' turns
    // end at different times, so that half of those who wait do so for a part of a turn and half
    // for the rest of it.
    for (p95, p99) in [(0.324, 1.008), (0.817, 1.022)] {
        let measured = row(15, 100.0, &[(0.5, 0.101), (0.95, p95), (0.99, p99)]);
        assert_fits(&two_workers(5), &measured, 1.15, &[Turns]);
        // With another number of requests in a turn it is another row.
        let of_three =
            ClosedLoopServer { order: ServiceOrder { turn: 3, ..ORDER }, ..two_workers(5) };
        assert_fits(&of_three, &measured, 1.15, &[]);
    }
}

#[test]
fn impossible_servers_are_refused() {
    let good = made_by(Shared, &[1; 4]);
    assert!(compare_with(&SERVER, &row(0, 40.0, &[(0.5, 0.1)]), None, 1.1).is_err());
    for server in [
        ClosedLoopServer { workers: 0, ..SERVER },
        ClosedLoopServer { threads: 0, ..SERVER },
        ClosedLoopServer { service_time: Nanos::ZERO, ..SERVER },
        ClosedLoopServer { order: ServiceOrder { turn: 0, ..ORDER }, ..SERVER },
    ] {
        assert!(compare_with(&server, &good, None, 1.1).is_err());
    }
}

#[test]
fn a_server_with_a_cost_of_its_own_is_known_by_its_shape() {
    // Each request holds a slot for 130 ms, and the app is said to take 100.
    let slow = seen(&pools(Turns, &[20; 4]), &constant(0.13));
    assert_eq!(fits(&SERVER, &slow, 1.1), [vec![], vec![Turns]]);
    let theory = compare_with(&SERVER, &slow, None, 1.1).unwrap();
    let held = theory.forecast(Turns).unwrap().shape.unwrap().held;
    assert!((held.as_secs_f64() / 0.13 - 1.0).abs() < 0.01, "{theory:?}");
    // One that is faster than its slots has no shape.
    let said_to_be_slower = ClosedLoopServer { service_time: Nanos::from_millis(200), ..SERVER };
    assert_eq!(fits(&said_to_be_slower, &slow, 1.1), [vec![], vec![]]);
}

#[test]
fn an_interval_fits_where_any_of_it_does() {
    let measured = made_by(Shared, &[20; 4]);
    let with = |high| MeasuredLoop {
        quantiles: vec![MeasuredQuantile { share: 0.99, low: 0.39, high }],
        ..measured.clone()
    };
    assert_fits(&SERVER, &with(f64::INFINITY), 1.1, &[Shared, Split, Turns]);
    assert_fits(&SERVER, &with(0.41), 1.1, &[Shared]);
}

#[test]
fn a_forecast_uses_the_closed_forms() {
    let of = |discipline, connections| predict::all(&SERVER, connections, discipline).unwrap();
    let near = |predictions: &[ResponsePrediction], share: f64, low: f64, high: f64| {
        let seen = predictions[0].range(share);
        assert!(
            (seen.0 - low).abs() + (seen.1 - high).abs() < 1e-9,
            "{seen:?}, not {low} to {high}"
        );
    };
    let shared = of(Shared, 30);
    assert!((shared[0].rate - 200.0).abs() < 1e-9);
    near(&shared, 0.25, 0.1, 0.15);
    near(&shared, 0.5, 0.1, 0.2);
    near(&shared, 0.99, 0.15, 0.2);
    let turns = of(Turns, 80);
    near(&turns, 0.5, 0.1, 0.1);
    near(&turns, 0.9, 0.1, 3.1);
    near(&turns, 0.95, 3.1, 3.1);
    // Chance: twenty of eighty on average, and the fullest has about twenty-five.
    let split = forecast(Split, 80, &of(Split, 80)).percentiles[2];
    let low = split.low.as_secs_f64();
    let high = split.high.as_secs_f64();
    assert!((0.4..0.55).contains(&low) && (0.5..0.8).contains(&high), "{low} to {high}");
}

#[test]
fn a_connection_for_each_request_is_dealt_anew() {
    const LONG: SimulationEffort = SimulationEffort { requests: 8000, ..EFFORT };
    let anew = |dealing| ClosedLoopServer {
        order: ServiceOrder { is_kept: false, dealing, ..ORDER },
        ..SERVER
    };
    // No worker keeps too many, but the queues are never quite even: neither shared, nor as where
    // connections are kept.
    for (arrivals, pools, expected) in [
        (PoolArrivals::Random, vec![ThreadPool::first_come(5, 15); 4], Split),
        (PoolArrivals::Kept, vec![ThreadPool::first_come(20, 60)], Shared),
    ] {
        let simulated =
            simulate::closed(&pools, arrivals, &constant(0.0), &constant(0.1), LONG).unwrap();
        assert_fits(
            &anew(ConnectionDealing::ByChance),
            &shown(&simulated, &pools),
            1.1,
            &[expected],
        );
    }
    // A cluster of node deals in turn: four workers of one request at a time, 20 ms, twelve
    // connections of one request each. Measured.
    let measured = row(12, 193.0, &[(0.5, 0.063), (0.75, 0.073), (0.95, 0.080), (0.99, 0.083)]);
    let service_time = Nanos::from_millis(20);
    let node = ClosedLoopServer {
        threads: 1,
        service_time,
        scatters: true,
        ..anew(ConnectionDealing::Unknown)
    };
    let fitting = &fits(&node, &measured, 1.15)[0];
    assert!(fitting.contains(&Split), "an even dealing is not called a shared queue: {fitting:?}");
}

/// Puma 6.5, `long_tail_hey.sh -w4 -t5:5 -R100 -d0.2`, as published.
#[test]
fn four_times_the_slots_was_no_single_queue() {
    let server = ClosedLoopServer { service_time: Nanos::from_secs_f64(20.0 / 97.012), ..SERVER };
    let published = |connections, rate, times: [f64; 7]| {
        row(connections, rate, &SHARES.into_iter().zip(times).collect::<Vec<_>>())
    };
    let four_times =
        published(80, 95.5128, [0.6978, 0.8031, 0.8117, 0.8291, 0.9165, 0.9970, 1.0142]);
    assert_fits(&server, &four_times, 1.12, &[Split]);
    // And none of the rows were turns of ten.
    let twice = published(40, 96.3451, [0.4009, 0.4023, 0.4074, 0.4132, 0.4188, 0.4507, 0.5939]);
    assert!(!fits(&server, &twice, 1.12)[0].contains(&Turns));
}

/// `times` with wrk's phantom samples, ascending (wg/wrk at a211dd5, `src/stats.c`,
/// `stats_correct`): with `E = connections / rate`, for each time `n ≥ 2E` it adds `n - E`, `n -
/// 2E`, … while above `E`, in whole microseconds.
fn recorded_by_wrk(times: &[f64], connections: u32, rate: f64) -> Vec<f64> {
    let expected = (f64::from(connections) / rate * 1e6).floor();
    let mut all = Vec::new();
    for micros in times.iter().map(|time| (time * 1e6).floor()) {
        all.push(micros / 1e6);
        let mut phantom = micros - expected;
        while micros >= 2.0 * expected && phantom > expected {
            all.push(phantom / 1e6);
            phantom -= expected;
        }
    }
    all.sort_by(f64::total_cmp);
    all
}

/// wrk against `-w2 -t5:5` of 2022, as published.
#[test]
fn wrks_table_of_64_connections_is_turns_of_ten_with_phantom_samples() {
    let service_time = Nanos::from_secs_f64(10.0 / 13_570.0);
    let server = ClosedLoopServer { service_time, scatters: true, ..two_workers(5) };
    for (connections, rate, ms) in [
        (16, 13_597.0, [0.755, 2.550, 5.260, 7.800]),
        (20, 13_549.0, [0.793, 4.430, 8.140, 11.220]),
        (64, 13_570.0, [1.040, 25.790, 40.010, 49.070]),
    ] {
        let quantiles: Vec<_> =
            [0.5, 0.75, 0.9, 0.99].into_iter().zip(ms.map(|ms| ms / 1e3)).collect();
        let measured = row(connections, rate, &quantiles);
        let fitting = Discipline::ALL.into_iter().filter(|discipline| {
            let mut predictions = predict::all(&server, connections, *discipline).unwrap();
            for law in predictions.iter_mut().flat_map(|prediction| &mut prediction.laws) {
                *law = recorded_by_wrk(law, connections, rate);
            }
            let said = forecast(*discipline, connections, &predictions);
            judged(said, &server, &measured, &predictions, 1.2).fit.unwrap().worst <= 1.2
        });
        assert_eq!(fitting.collect::<Vec<_>>(), [Turns], "{connections}");
        // Taken as it is printed, the table fits nothing: it is of a population that was never
        // sent.
        assert_fits(&server, &measured, 1.2, &[]);
    }
    // 64 connections: 90 % at s, 10 % at 55 s, and the phantoms: X·R is 160 and not 64.
    let times = &predict::all(&ClosedLoopServer { scatters: false, ..server }, 64, Turns).unwrap()
        [0]
    .laws[1];
    let mean = |times: &[f64]| 13_570.0 * times.iter().sum::<f64>() / times.len() as f64;
    // Service times are in whole ns.
    assert!((mean(times) - 64.0).abs() < 1e-4);
    assert!((mean(&recorded_by_wrk(times, 64, 13_570.0)) - 160.0).abs() < 5.0);
    // E = 1 ms: 5 ms adds 4, 3 and 2, not 1; 2 ms adds none, since 1 ms is not above E.
    let trail = recorded_by_wrk(&[0.0005, 0.002, 0.005], 1, 1000.0);
    assert_eq!(trail, [0.0005, 0.002, 0.002, 0.003, 0.004, 0.005]);
}

/// A run of a hundred seconds on 2 x 5 slots of 0.1 s, whose `n`-th response of each ten took these
/// times.
fn run(connections: u32, tenths: [f64; 10], rate: u64) -> Run {
    let window = Window { from: Nanos::ZERO, until: Nanos::from_secs(1000) };
    let mut tally = Tally::new(window, connections as usize);
    for n in 0..rate * 100 {
        let due = Nanos::from_millis(n * 1000 / rate);
        let ended = due + Nanos::from_secs_f64(tenths[(n % 10) as usize]);
        let exchange =
            Exchange { due, sent: due, ended, received_bytes: 0, outcome: Outcome::Answered(200) };
        tally.record(&exchange, (n % u64::from(connections)) as usize);
    }
    let length = Nanos::from_secs(100);
    Run::recorded(connections, tally, length, length)
}

/// Turns of ten, of which the first request took so long.
fn turns(first: f64) -> [f64; 10] {
    std::array::from_fn(|n| if n == 9 { first } else { 0.1 })
}

fn theory_of(run: &Run) -> Theory {
    let order = ServiceOrder { discipline: Some(Turns), ..ORDER };
    theory(run, &ClosedLoopServer { order, ..two_workers(5) }).unwrap()
}

#[test]
fn turns_of_ten_are_known_and_their_forecast_is_right() {
    // Thirty on ten slots: one in ten waits for the turns of the others, 10 (3 - 1) + 1 = 21
    // service times.
    let theory = theory_of(&run(30, turns(2.1), 100));
    assert_eq!(theory.resemblance(), Resemblance::These(vec![Turns]), "{theory:?}");
    let said = theory.shown().unwrap();
    assert!((said.rate - 100.0).abs() < 1e-9 && said.mean == Nanos::from_millis(300), "{said:?}");
    let ends: Vec<_> =
        said.percentiles.iter().map(|it| (it.low.0 / 1_000_000, it.high.0 / 1_000_000)).collect();
    assert_eq!(ends, [(100, 100), (2100, 2100), (2100, 2100)]);
    let longer = theory_of(&run(30, turns(2.1).map(|time| time * 1.4), 71));
    assert_eq!(
        longer.resemblance(),
        Resemblance::ShapeOf(vec![Turns]),
        "slots held for longer: {longer:?}"
    );
    let mut odd = turns(1.0);
    odd[8] = 1.3;
    assert_eq!(theory_of(&run(30, odd, 100)).resemblance(), Resemblance::Nothing);
}

#[test]
fn a_run_that_is_too_short_or_has_no_percentiles_is_not_judged() {
    let mut short = run(30, turns(2.1), 100);
    short.measured = Nanos::from_secs(1);
    assert_eq!(theory_of(&short).not_judged, Some(NotJudged::TooShort));
    short.connections = 10;
    assert_eq!(theory_of(&short).not_judged, None, "no turn is waited for");
    let mut void = run(30, turns(2.1), 100);
    void.tally = Tally::new(void.tally.window, 30);
    assert_eq!(theory_of(&void).not_judged, Some(NotJudged::NoPercentiles));
    assert_eq!(theory(&void, &ClosedLoopServer { service_time: Nanos::ZERO, ..SERVER }), None);
}
