//! The choice against what each discipline makes, and against published rows.

use super::*;
use crate::simulate::{self, Effort, Pool, Simulated, constant, exponential};

/// What a closed loop on four workers of five threads shows.
fn measured(simulated: &Simulated, connections: u32, scatter: Scatter) -> Measured {
    let shares = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
    Measured {
        connections,
        workers: 4,
        threads: 5,
        service: 0.1,
        scatter,
        rate: simulated.rate().value,
        quantiles: shares.map(|share| (share, simulated.response_quantile(share).unwrap().value)).to_vec(),
        recording: Recording::AsItWas,
        by_worker: None,
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
    unfair.quantiles = vec![(0.5, 0.1), (0.9, 0.2), (0.99, 12.0)];
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
fn what_cannot_be_is_refused() {
    let simulated =
        simulate::closed(&pools(Discipline::Shared, &[1; 4]), &constant(0.0), &constant(0.1), EFFORT).unwrap();
    let good = measured(&simulated, 4, Scatter::Constant);
    assert!(compare(&good, 0.9).is_err());
    assert!(compare(&Measured { connections: 0, ..good.clone() }, 1.1).is_err());
    assert!(compare(&Measured { quantiles: vec![], ..good.clone() }, 1.1).is_err());
    assert!(compare(&Measured { quantiles: vec![(0.5, f64::NAN)], ..good }, 1.1).is_err());
}
