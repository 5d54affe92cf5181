//! Mean value analysis of several slots, which this crate does not use: its recursion computes the
//! probability of an empty station as 1 less all others, and the error of that grows by a factor
//! with each connection. With few of them it is a proof.

use queueing::closed_loop::{WorkerDemand, machine_repair, worker};

/// Reiser and Lavenberg (JACM 27(2), 1980) with a station of `slots` slots, and single servers of
/// `others` demands: the rate and the response time in all but the think time, for 1 to
/// `connections` connections.
fn mean_values(
    connections: usize,
    slots: usize,
    service: f64,
    think: f64,
    others: &[f64],
) -> Vec<(f64, f64)> {
    let mut here = vec![0.0; connections + 1];
    here[0] = 1.0;
    let mut waiting = vec![0.0; others.len()];
    (1..=connections)
        .map(|n| {
            let at_slots: f64 =
                (1..=n).map(|j| j as f64 * service / j.min(slots) as f64 * here[j - 1]).sum();
            let at_others: Vec<f64> =
                others.iter().zip(&waiting).map(|(demand, there)| demand * (1.0 + there)).collect();
            let response = at_slots + at_others.iter().sum::<f64>();
            let rate = n as f64 / (think + response);
            let mut next = vec![0.0; connections + 1];
            for j in 1..=n {
                next[j] = rate * service / j.min(slots) as f64 * here[j - 1];
            }
            next[0] = 1.0 - next[1..].iter().sum::<f64>();
            here = next;
            waiting = at_others.iter().map(|time| rate * time).collect();
            (rate, response)
        })
        .collect()
}

#[test]
fn with_few_connections_both_agree() {
    let rates = [0.25, 0.5, 0.744_186, 0.977_273, 1.194_030, 1.389_255];
    let responses = [1.0, 1.0, 1.031_25, 1.093_023, 1.1875, 1.318_860];
    for (n, ((rate, response), (x, r))) in (1..)
        .zip(mean_values(6, 2, 1.0, 3.0, &[]).into_iter().zip(rates.into_iter().zip(responses)))
    {
        let exact = machine_repair(n, 2, 1.0, 3.0).unwrap();
        assert!((rate - x).abs() < 6e-7 && (response - r).abs() < 6e-7);
        assert!((exact.rate - rate).abs() < 1e-12 && (exact.response - response).abs() < 1e-11);
    }
    // I/O in four servers, CPU in one. With no more requests than threads, no request waits for a
    // thread: the same network. With more, this network does more, because a request that waits for
    // the CPU does not keep a thread from others.
    for (n, (rate, response)) in (1..=10).zip(mean_values(10, 4, 0.1, 1.0, &[0.02])) {
        let kept = worker(n, 4, WorkerDemand { io: 0.1, cpu: 0.02 }, 1.0).unwrap();
        let is_same =
            (kept.rate / rate - 1.0).abs() < 1e-9 && (kept.response / response - 1.0).abs() < 1e-8;
        assert!(
            if n <= 4 { is_same } else { kept.rate < rate },
            "{n}: {kept:?}, {rate} {response}"
        );
    }
}
