//! The choice against what each discipline makes, and against published rows.

use super::*;
use crate::polling;
use crate::simulate::{self, Effort, Pool, Simulated, constant, exponential};

/// What a closed loop on four workers of five threads shows.
fn measured(simulated: &Simulated, connections: u32, scatter: Scatter) -> Measured {
    let shares = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
    Measured {
        connections,
        connections_are: Connections::Kept,
        workers: 4,
        threads: 5,
        service: 0.1,
        scatter,
        rate: simulated.rate().value,
        quantiles: shares
            .map(|share| Figure::exactly(share, simulated.response_quantile(share).unwrap().value))
            .to_vec(),
        recording: Recording::AsItWas,
        by_worker: None,
        dealing: Dealing::ByChance,
        turn: polling::TURN,
    }
}

fn pools(discipline: Discipline, counts: &[u32]) -> Vec<Pool> {
    match discipline {
        Discipline::Shared => vec![Pool::first_come(20, counts.iter().sum())],
        Discipline::Split => counts.iter().map(|count| Pool::first_come(5, *count)).collect(),
        Discipline::Turns => {
            counts.iter().map(|count| Pool { threads: 5, connections: *count, turn: 10, hold: 0.2 }).collect()
        }
    }
}

const EFFORT: Effort = Effort { replications: 2, requests: 8000, warm_up: 8000, seed: 99 };

#[test]
fn each_discipline_is_recognised_by_what_it_makes() {
    for discipline in [Discipline::Shared, Discipline::Split, Discipline::Turns] {
        let counts = if discipline == Discipline::Split { [26, 14, 19, 21] } else { [20; 4] };
        let simulated = simulate::closed(&pools(discipline, &counts), &constant(0.0), &constant(0.1), EFFORT).unwrap();
        let verdict = compare(&measured(&simulated, 80, Scatter::Constant), 1.1).unwrap();
        assert_eq!(verdict.choice(), Choice::One(discipline), "{verdict:?}");
    }
}

#[test]
fn turns_are_recognised_through_scatter() {
    let pools = pools(Discipline::Turns, &[20; 4]);
    let simulated = simulate::closed(&pools, &constant(0.0), &exponential(0.1), EFFORT).unwrap();
    let verdict = compare(&measured(&simulated, 80, Scatter::Some), 1.15).unwrap();
    assert_eq!(verdict.choice(), Choice::One(Discipline::Turns), "{verdict:?}");
}

#[test]
fn with_a_slot_for_each_all_are_the_same() {
    let simulated =
        simulate::closed(&pools(Discipline::Shared, &[1; 4]), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let verdict = compare(&measured(&simulated, 4, Scatter::Constant), 1.1).unwrap();
    assert_eq!(verdict.choice(), Choice::Several, "{verdict:?}");
}

#[test]
fn last_come_first_served_is_none_of_them() {
    // Half are served at once, and the other half hardly ever.
    let simulated =
        simulate::closed(&pools(Discipline::Shared, &[20; 4]), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let mut unfair = measured(&simulated, 80, Scatter::Constant);
    unfair.quantiles =
        [(0.5, 0.1), (0.9, 0.2), (0.99, 12.0)].map(|(share, time)| Figure::exactly(share, time)).to_vec();
    assert_eq!(compare(&unfair, 1.1).unwrap().choice(), Choice::None);
    // And a rate that the slots cannot do is nobody's.
    let mut fast = measured(&simulated, 80, Scatter::Constant);
    fast.rate *= 2.0;
    let verdict = compare(&fast, 1.1).unwrap();
    assert!(verdict.choice() == Choice::None && verdict.comparisons[0].worst_at.is_none());
}

#[test]
fn known_connections_are_used() {
    let simulated =
        simulate::closed(&pools(Discipline::Split, &[26, 14, 19, 21]), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let mut known = measured(&simulated, 80, Scatter::Constant);
    known.by_worker = Some(vec![26, 14, 19, 21]);
    let split = compare(&known, 1.001).unwrap().comparisons.swap_remove(1);
    assert!(split.worst < 1.01, "{split:?}");
    known.by_worker = Some(vec![26, 15, 19, 21]);
    assert!(compare(&known, 1.1).is_err());
}

#[test]
fn who_is_held_by_a_worker_did_not_wait_in_one_line() {
    // Even split queues of constant service are one queue by their times; who held the connections tells them apart.
    let even = [10, 10, 10, 10];
    let simulated = simulate::closed(&pools(Discipline::Split, &even), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let blind = measured(&simulated, 40, Scatter::Constant);
    assert!(compare(&blind, 1.1).unwrap().fitting().contains(&Discipline::Shared));
    let seen = Measured { by_worker: Some(even.to_vec()), ..blind };
    let verdict = compare(&seen, 1.1).unwrap();
    assert_eq!(verdict.choice(), Choice::One(Discipline::Split), "{verdict:?}");
    // Where nobody has to wait it tells nothing.
    let idle = Measured { connections: 4, by_worker: Some(vec![1; 4]), ..seen };
    let simulated =
        simulate::closed(&pools(Discipline::Split, &[1; 4]), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let idle = Measured { rate: simulated.rate().value, quantiles: vec![Figure::exactly(0.99, 0.1)], ..idle };
    assert_eq!(compare(&idle, 1.1).unwrap().choice(), Choice::Several);
}

#[test]
fn turns_of_connections_that_the_workers_hold_are_each_workers_own() {
    // Puma 6.6.1 with turns of three, 12 connections on two workers of two threads, all of which had been accepted: 6 + 6.
    let quantiles = [(0.5, 0.101), (0.95, 0.725), (0.99, 0.727)].map(|(share, time)| Figure::exactly(share, time));
    let simulated =
        simulate::closed(&pools(Discipline::Turns, &[6, 6]), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let row = Measured {
        workers: 2,
        threads: 2,
        rate: 39.2,
        quantiles: quantiles.to_vec(),
        by_worker: Some(vec![6, 6]),
        turn: 3,
        ..measured(&simulated, 12, Scatter::Constant)
    };
    assert_eq!(compare(&row, 1.15).unwrap().choice(), Choice::One(Discipline::Turns), "{:?}", compare(&row, 1.15));
    // By the dealing 8 + 4 the fullest would wait longer.
    let uneven = Measured { by_worker: Some(vec![8, 4]), ..row };
    assert_eq!(compare(&uneven, 1.15).unwrap().choice(), Choice::None);
}

#[test]
fn an_uneven_dealing_that_was_seen_explains_its_row() {
    // 8 + 7 on two workers of five threads: in step or not, both are that dealing.
    let dealing = [8, 7];
    for jitter in [0.0, 0.02] {
        let law = |seed: u64, number: u64| 0.1 + jitter * model::pace::uniform(seed, number);
        let simulated = simulate::closed(&pools(Discipline::Split, &dealing), &constant(0.0), &law, EFFORT).unwrap();
        let seen =
            Measured { workers: 2, by_worker: Some(dealing.to_vec()), ..measured(&simulated, 15, Scatter::Constant) };
        assert_eq!(compare(&seen, 1.15).unwrap().choice(), Choice::One(Discipline::Split), "{seen:?}");
    }
}

#[test]
fn turns_wait_in_one_line_for_all_workers() {
    // Fifteen on two workers of five threads, as Puma 5.6.5 and 6.6.1 had it: the workers' turns end at different times, so that half of
    // those who wait do so for a part of a turn and half for the rest of it.
    for (p95, p99) in [(0.324, 1.008), (0.817, 1.022)] {
        let quantiles = [(0.5, 0.101), (0.95, p95), (0.99, p99)].map(|(share, time)| Figure::exactly(share, time));
        let row = Measured {
            connections: 15,
            connections_are: Connections::Kept,
            workers: 2,
            threads: 5,
            service: 0.1,
            scatter: Scatter::Constant,
            rate: 100.0,
            quantiles: quantiles.to_vec(),
            recording: Recording::AsItWas,
            by_worker: None,
            dealing: Dealing::ByChance,
            turn: polling::TURN,
        };
        assert_eq!(compare(&row, 1.15).unwrap().choice(), Choice::One(Discipline::Turns), "{p95} {p99}");
        // With another number of requests in a turn it is another row.
        let of_three = Measured { turn: 3, ..row };
        assert_eq!(compare(&of_three, 1.15).unwrap().choice(), Choice::None);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let simulated =
        simulate::closed(&pools(Discipline::Shared, &[1; 4]), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let good = measured(&simulated, 4, Scatter::Constant);
    assert!(compare(&good, 0.9).is_err());
    assert!(compare(&Measured { connections: 0, ..good.clone() }, 1.1).is_err());
    assert!(compare(&Measured { quantiles: vec![], ..good.clone() }, 1.1).is_err());
    assert!(compare(&Measured { quantiles: vec![Figure::exactly(0.5, f64::NAN)], ..good }, 1.1).is_err());
}

#[test]
fn a_server_with_a_cost_of_its_own_is_known_by_its_shape() {
    // Each request holds a slot for 130 ms, and the app is said to take 100.
    let simulated =
        simulate::closed(&pools(Discipline::Turns, &[20; 4]), &constant(0.0), &constant(0.13), EFFORT).unwrap();
    let slow = measured(&simulated, 80, Scatter::Constant);
    assert_eq!(compare(&slow, 1.1).unwrap().choice(), Choice::None);
    let shapes = compare_shapes(&slow, 1.1).unwrap();
    assert_eq!(shapes.choice(), Choice::One(Discipline::Turns), "{shapes:?}");
    assert!((shapes.comparisons[2].held / 0.13 - 1.0).abs() < 0.01, "{shapes:?}");
    // One that is faster than its slots has no shape.
    let fast = Measured { service: 0.2, ..slow };
    assert_eq!(compare_shapes(&fast, 1.1).unwrap().choice(), Choice::None);
}

#[test]
fn an_interval_fits_where_any_of_it_does() {
    let simulated =
        simulate::closed(&pools(Discipline::Shared, &[20; 4]), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let mut wide = measured(&simulated, 80, Scatter::Constant);
    wide.quantiles = vec![Figure { share: 0.99, low: 0.39, high: f64::INFINITY }];
    assert_eq!(compare(&wide, 1.1).unwrap().choice(), Choice::Several);
    wide.quantiles = vec![Figure { share: 0.99, low: 0.39, high: 0.41 }];
    assert_eq!(compare(&wide, 1.1).unwrap().choice(), Choice::One(Discipline::Shared));
    wide.quantiles = vec![Figure { share: 0.99, low: 0.41, high: 0.39 }];
    assert!(compare(&wide, 1.1).is_err());
}

#[test]
fn with_one_worker_split_is_shared() {
    let simulated = simulate::closed(&[Pool::first_come(20, 80)], &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let one = Measured { workers: 1, threads: 20, ..measured(&simulated, 80, Scatter::Constant) };
    assert_eq!(compare(&one, 1.1).unwrap().choice(), Choice::One(Discipline::Shared));
}

#[test]
fn a_forecast_is_of_the_closed_forms() {
    let simulated =
        simulate::closed(&pools(Discipline::Shared, &[1; 4]), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let of = |discipline, connections, shares: &[f64]| {
        let situation = measured(&simulated, connections, Scatter::Constant);
        forecast(&situation, discipline, shares).unwrap()
    };
    let near = |(low, high): (f64, f64), (a, b): (f64, f64)| {
        assert!((low - a).abs() < 1e-9 && (high - b).abs() < 1e-9, "{low} to {high}, not {a} to {b}");
    };
    let shared = of(Discipline::Shared, 30, &[0.25, 0.5, 0.99]);
    assert!((shared.rate - 200.0).abs() < 1e-9);
    near(shared.quantiles[0], (0.1, 0.15));
    near(shared.quantiles[1], (0.1, 0.2));
    near(shared.quantiles[2], (0.15, 0.2));
    let turns = of(Discipline::Turns, 80, &[0.5, 0.9, 0.95]);
    near(turns.quantiles[0], (0.1, 0.1));
    near(turns.quantiles[1], (0.1, 3.1));
    near(turns.quantiles[2], (3.1, 3.1));
    // Chance: twenty of eighty on average, and the fullest has about twenty-five.
    let split = of(Discipline::Split, 80, &[0.99]);
    let (low, high) = split.quantiles[0];
    assert!((0.4..0.55).contains(&low) && (0.5..0.8).contains(&high), "{low} to {high}");
}

#[test]
fn a_connection_for_each_request_is_dealt_anew() {
    const LONG: Effort = Effort { requests: 30_000, ..EFFORT };
    // No worker keeps too many, but the queues are never quite even: neither shared, nor as where connections are kept.
    let even: Vec<Pool> = (0..4).map(|_| Pool::first_come(5, 15)).collect();
    let simulated = simulate::closed_dealt_anew(&even, &constant(0.0), &constant(0.1), LONG).unwrap();
    let anew = Measured { connections_are: Connections::OfOneRequest, ..measured(&simulated, 60, Scatter::Constant) };
    let verdict = compare(&anew, 1.1).unwrap();
    assert_eq!(verdict.choice(), Choice::One(Discipline::Split), "{verdict:?} {anew:?}");
    // A shared queue is none of the kind.
    let simulated = simulate::closed(&[Pool::first_come(20, 60)], &constant(0.0), &constant(0.1), LONG).unwrap();
    let shared = Measured { connections_are: Connections::OfOneRequest, ..measured(&simulated, 60, Scatter::Constant) };
    assert_eq!(compare(&shared, 1.1).unwrap().choice(), Choice::One(Discipline::Shared));
}

#[test]
fn where_the_dealing_is_not_known_an_even_one_is_not_called_a_shared_queue() {
    // A cluster of node deals in turn: four workers of one request at a time, 20 ms, twelve connections of one request each. Measured.
    let quantiles = [(0.5, 0.063), (0.75, 0.073), (0.95, 0.080), (0.99, 0.083)];
    let row = Measured {
        connections: 12,
        connections_are: Connections::OfOneRequest,
        workers: 4,
        threads: 1,
        service: 0.02,
        scatter: Scatter::Some,
        rate: 193.0,
        quantiles: quantiles.map(|(share, time)| Figure::exactly(share, time)).to_vec(),
        recording: Recording::AsItWas,
        by_worker: None,
        dealing: Dealing::Unknown,
        turn: polling::TURN,
    };
    let fitting = compare(&row, 1.15).unwrap().fitting();
    assert!(fitting.contains(&Discipline::Split), "{:?}", compare(&row, 1.15));
}

#[test]
fn one_queue_with_jitter_is_between_the_levels() {
    // Thirty on twenty: in step half take one turn and half two; with jitter all take about one and a half.
    let jitter = |seed: u64, number: u64| 0.1 + 0.01 * model::pace::uniform(seed, number);
    let simulated = simulate::closed(&[Pool::first_come(20, 30)], &constant(0.0), &jitter, EFFORT).unwrap();
    let seen = Measured { workers: 1, threads: 20, ..measured(&simulated, 30, Scatter::Constant) };
    assert_eq!(compare(&seen, 1.15).unwrap().choice(), Choice::One(Discipline::Shared), "{seen:?}");
}
