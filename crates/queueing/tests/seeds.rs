//! Published results, predicted: what theory says of tables that others have printed, before longtail was.

use queueing::discipline::{Choice, Connections, Dealing, Discipline, Figure, Measured, Recording, Scatter, compare};
use queueing::staircase::{inferred_slots, stairs};
use queueing::{phantom, polling, split};

/// Puma 6.5, `long_tail_hey.sh -w4 -t5:5 -R100 -d0.2`: a fixed count of requests ends with the fullest worker. From the
/// worker's shares alone each row's rate follows; the row at 1.50 is slow by its imbalance and not by its capacity.
#[test]
fn the_rates_of_long_tail_hey_follow_from_the_workers_shares() {
    let service = 20.0 / 97.012;
    for (deviation, printed, predicted) in
        [(6.3, 90.7293, 91.26), (1.8, 96.3451, 95.30), (1.3, 96.3643, 95.77), (2.7, 95.5128, 94.46)]
    {
        let rate = split::rate_of_a_fixed_count(5, service, 0.25 * (1.0 + deviation / 100.0)).unwrap();
        assert!((rate - predicted).abs() < 0.006, "{rate}, not {predicted}");
        assert!((rate / printed - 1.0).abs() < 0.012, "{rate}, printed {printed}");
    }
}

fn of_long_tail_hey(connections: u32, rate: f64, times: [f64; 7]) -> Measured {
    let shares = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
    Measured {
        connections,
        connections_are: Connections::Kept,
        workers: 4,
        threads: 5,
        service: 20.0 / 97.012,
        scatter: Scatter::Constant,
        rate,
        quantiles: shares.into_iter().zip(times).map(|(share, time)| Figure::exactly(share, time)).collect(),
        recording: Recording::AsItWas,
        by_worker: None,
        dealing: Dealing::ByChance,
        turn: polling::TURN,
    }
}

#[test]
fn four_times_the_slots_was_no_single_queue() {
    let row = of_long_tail_hey(80, 95.5128, [0.6978, 0.8031, 0.8117, 0.8291, 0.9165, 0.9970, 1.0142]);
    assert_eq!(compare(&row, 1.12).unwrap().choice(), Choice::One(Discipline::Split));
    // And none of the rows were turns of ten.
    let row = of_long_tail_hey(40, 96.3451, [0.4009, 0.4023, 0.4074, 0.4132, 0.4188, 0.4507, 0.5939]);
    assert!(!compare(&row, 1.12).unwrap().fitting().contains(&Discipline::Turns));
}

/// wrk against `-w2 -t5:5` of 2022: connections, rate, p50 p75 p90 p99 in ms.
const WRK: [(u32, f64, [f64; 4]); 3] = [
    (16, 13_597.0, [0.755, 2.550, 5.260, 7.800]),
    (20, 13_549.0, [0.793, 4.430, 8.140, 11.220]),
    (64, 13_570.0, [1.040, 25.790, 40.010, 49.070]),
];

#[test]
fn wrks_table_of_64_connections_is_turns_of_ten_with_phantom_samples() {
    for (connections, rate, times) in WRK {
        let row = Measured {
            connections,
            connections_are: Connections::Kept,
            workers: 2,
            threads: 5,
            service: 10.0 / 13_570.0,
            scatter: Scatter::Some,
            rate,
            quantiles: [0.5, 0.75, 0.9, 0.99]
                .into_iter()
                .zip(times)
                .map(|(share, ms)| Figure::exactly(share, ms / 1e3))
                .collect(),
            recording: Recording::Wrk,
            by_worker: None,
            dealing: Dealing::ByChance,
            turn: polling::TURN,
        };
        let verdict = compare(&row, 1.2).unwrap();
        assert_eq!(verdict.choice(), Choice::One(Discipline::Turns), "{connections}: {verdict:?}");
        // Taken as it is printed, the table fits nothing: it is of a population that was never sent.
        let as_printed = compare(&Measured { recording: Recording::AsItWas, ..row }, 1.2).unwrap();
        assert_eq!(as_printed.choice(), Choice::None, "{connections}: {as_printed:?}");
    }
}

#[test]
fn the_closed_form_of_turns_gives_wrks_mean() {
    // 64 connections: 90 % at s, 10 % at 55 s, and the phantoms: X·R is 160 and not 64.
    let (rate, service) = (13_570.0, 10.0 / 13_570.0);
    let levels = polling::levels(32, 5, polling::TURN).unwrap();
    let times: Vec<f64> = levels
        .iter()
        .flat_map(|level| std::iter::repeat_n(level.turns * service, (level.share * 1000.0).round() as usize))
        .collect();
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    assert!((rate * mean(&times) - 64.0).abs() < 1e-6);
    let recorded = phantom::recorded_by_wrk(&times, 64, rate).unwrap();
    assert!((rate * mean(&recorded) - 160.0).abs() < 5.0, "{}", rate * mean(&recorded));
}

/// attack.cr at 10/s against five threads that sleep for a second: the first thirty requests, in ms.
const ATTACK: &str = "
    1084.256459 1003.922321 1007.010609 1006.996584 1006.848442
    1572.553522 1488.259955 1493.056372 1492.577039 1492.794815
    2058.5828 1973.825591 1979.109512 1977.648623 1978.068666
    2544.502687 2460.307499 2464.68821 2464.86035 2465.058777
    3031.285542 2947.01984 2950.920225 2950.153828 2950.326412
    3519.205594 3432.929646 3437.5964 3434.916412 3436.291459";

fn attack() -> Vec<f64> {
    ATTACK.split_whitespace().map(|time| time.parse().unwrap()).collect()
}

#[test]
fn attacks_staircase_tells_the_slots_and_convicts_the_generator() {
    let stairs = stairs(&attack()).unwrap();
    assert_eq!(stairs.slots, 5);
    assert!((stairs.step - 485.848).abs() < 1.0 && stairs.explained > 0.99, "{stairs:?}");
    // A slot is held for at least the second that the app sleeps: so the gap was at least 102.8 ms, and the rate not 10/s.
    let gap = stairs.gap(1000.0);
    let shortfall = 1.0 - 100.0 / gap;
    assert!((shortfall - 0.0275).abs() < 0.002, "{shortfall}");
    // With the mean steps without the cold first of each batch, to the digit.
    let means: Vec<f64> = attack().chunks(5).map(|batch| batch[1..].iter().sum::<f64>() / 4.0).collect();
    let step = (means[5] - means[0]) / 5.0;
    assert!((step - 485.848).abs() < 0.001 && (1.0 - 100.0 / ((1000.0 - step) / 5.0) - 0.0275).abs() < 5e-5);
}

#[test]
fn the_slope_says_five_slots() {
    // With the pace as the staircase shows it. With the pace that was asked for, 10/s, the server would have 5.14.
    let arrivals = |gap: f64| (0..30).map(|k| f64::from(k) * gap).collect::<Vec<_>>();
    let inferred = inferred_slots(&arrivals(102.83), &attack(), 1000.0).unwrap();
    assert!((inferred.value - 5.0).abs() < 0.1 && (inferred.value - 5.0).abs() < inferred.half_width, "{inferred:?}");
    let claimed = inferred_slots(&arrivals(100.0), &attack(), 1000.0).unwrap();
    assert!(claimed.value > inferred.value, "{claimed:?}");
}
