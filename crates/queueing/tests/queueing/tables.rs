//! The formulas against the tables of `tables.txt`.

use queueing::OfferedLoad;
use queueing::closed_loop::assigned_at_random;
use queueing::closed_loop::machine_repair;
use queueing::mdc::ConstantServiceQueue;
use queueing::open_loop::{ErlangQueue, SteadyQueue, highest_utilisation};

fn mmc(load: OfferedLoad) -> ErlangQueue {
    ErlangQueue::new(load).unwrap()
}

fn mdc(load: OfferedLoad) -> ConstantServiceQueue {
    ConstantServiceQueue::new(load).unwrap()
}

/// The figures that a table's formula gives for the parameters of a row.
fn said(table: &str, of: &[f64]) -> Vec<f64> {
    let slots = of[0] as u32;
    let load = || OfferedLoad::new(slots, of[0] * of[1], 1.0).unwrap();
    match table {
        "M/M/c" => {
            let queue = mmc(load());
            let response = |share| queue.response_quantile(share).unwrap();
            let inside = queue.load().rate() * queue.mean_response();
            vec![
                queue.wait_above(0.0),
                queue.mean_wait(),
                inside,
                response(0.5),
                response(0.99),
                response(0.999),
            ]
        }
        "M/D/c" => {
            let queue = mdc(load());
            let wait = |share| queue.wait_quantile(share).unwrap();
            assert!((queue.response_quantile(0.99).unwrap() - 1.0 - wait(0.99)).abs() < 1e-12);
            vec![
                queue.wait_above(0.0),
                queue.mean_wait(),
                wait(0.5),
                wait(0.9),
                wait(0.99),
                wait(0.999),
            ]
        }
        "highest M/D/c" => {
            let figure = |load| ConstantServiceQueue::new(load)?.response_quantile(of[1]);
            [1.5, 2.0, 3.0, 5.0]
                .map(|limit| highest_utilisation(slots, 1.0, limit, 1e-8, figure).unwrap())
                .into()
        }
        "highest M/M/c" => {
            let figure = |load| ErlangQueue::new(load)?.response_quantile(0.99);
            [4.7, 5.0, 6.0, 8.0, 10.0]
                .map(|limit| highest_utilisation(slots, 1.0, limit, 1e-10, figure).unwrap())
                .into()
        }
        "M/M/c//N" => {
            let means = machine_repair(slots, of[1] as u32, of[2], of[3]).unwrap();
            vec![means.rate, means.response, means.rate * of[2] / of[1]]
        }
        "assigned at random" => {
            let seen = assigned_at_random(slots, of[1] as u32, of[2] as u32).unwrap();
            vec![seen.rate, seen.fullest]
        }
        other => panic!("{other}"),
    }
}

#[test]
fn every_figure_of_the_tables_is_met() {
    let mut table = "";
    let mut figures = 0;
    for line in include_str!("tables.txt").lines().filter(|line| !line.starts_with('#')) {
        if let Some((name, _)) = line.split_once(": ") {
            table = name;
            continue;
        }
        let (asked, expected) = line.split_once(" | ").unwrap();
        let asked: Vec<f64> = asked.split(' ').map(|figure| figure.parse().unwrap()).collect();
        let said = said(table, &asked);
        assert_eq!(said.len(), expected.split(' ').count());
        for (said, printed) in said.iter().zip(expected.split(' ')) {
            let exact = printed.parse::<f64>().unwrap();
            let (_, decimals) = printed.split_once('.').unwrap();
            let last_digit = 0.6 / 10f64.powf(decimals.len() as f64);
            let most = last_digit.max(2e-11 * (1.0 + exact));
            assert!((said - exact).abs() <= most, "{table}, {line}: {said}, exactly {printed}");
            figures += 1;
        }
    }
    assert!(figures > 260, "{figures}");
}
