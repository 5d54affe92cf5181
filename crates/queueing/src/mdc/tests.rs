//! M/D/c against an independent series, published figures and M/M/c.

use proptest::prelude::*;

use super::*;

fn mdc(slots: u32, rho: f64) -> ConstantServiceQueue {
    ConstantServiceQueue::new(OfferedLoad::of_utilisation(slots, rho)).unwrap()
}

/// The mean wait once more, by Crommelin's series, which shares no step with
/// [`ConstantServiceQueue`]: `Wq / s = Σ [P(N ≥ i·c) - P(N ≥ i·c + 1) / ρ]` over `i ≥ 1`, `N`
/// Poisson with mean `i·c·ρ`. Near ρ = 1 it takes for ever.
fn mean_wait_by_series(load: OfferedLoad) -> f64 {
    let slots = f64::from(load.slots());
    let rho = load.utilisation();
    let mut sum = 0.0;
    for i in 1u32.. {
        let n = f64::from(i) * slots;
        let mean = n * rho;
        // P(N = n), and the ratio of each next term: below 1, since mean < n.
        let log_first = (1..=n as u64).map(|j| (mean / j as f64).ln()).sum::<f64>() - mean;
        let mut term = log_first.exp();
        let mut j = n;
        let mut beyond = 0.0;
        let first = term;
        while term > first * 1e-18 && term > 0.0 {
            j += 1.0;
            term *= mean / j;
            beyond += term;
        }
        // P(N ≥ n) - P(N ≥ n + 1) / ρ = P(N = n) - (1/ρ - 1)·P(N ≥ n + 1).
        let addend = first - (1.0 / rho - 1.0) * beyond;
        sum += addend;
        if addend < 1e-15 * sum || first == 0.0 {
            break;
        }
    }
    sum * load.service()
}

#[test]
fn the_mean_is_crommelins_series() {
    for slots in [1, 2, 3, 5, 8, 20, 40, 100] {
        for rho in [0.05, 0.3, 0.5, 0.8, 0.9, 0.95] {
            let load = OfferedLoad::of_utilisation(slots, rho);
            let seen = ConstantServiceQueue::new(load).unwrap().mean_wait();
            let series = mean_wait_by_series(load);
            assert!(
                (seen - series).abs() < 1e-11 + 1e-10 * series,
                "M/D/{slots} at {rho}: {seen}, series {series}"
            );
        }
    }
}

#[test]
fn published_figures_are_met() {
    // Q-MAM (MATLAB) by way of imperial-qore/line-solver, whose truncation is some 1e-9.
    let two = ConstantServiceQueue::new(OfferedLoad::new(2, 2.0, 0.6).unwrap()).unwrap();
    assert!((two.mean_wait() - 0.175_821_645_673_367).abs() < 2e-9);
    for (count, p) in
        [(0, 0.238_685_365_188_794), (1, 0.322_629_269_626_472), (2, 0.231_148_685_357_196)]
    {
        assert!((two.sizes.probability(count) - p).abs() < 1e-10);
    }
    let three = ConstantServiceQueue::new(OfferedLoad::new(3, 2.0, 1.2).unwrap()).unwrap();
    assert!((three.mean_wait() - 0.664_680_268_427_454).abs() < 2e-9);
    assert!((three.sizes.probability(0) - 0.049_841_430_456_382_3).abs() < 1e-10);
    assert!((three.sizes.probability(3) - 0.181_953_124_332_401).abs() < 1e-10);
}

#[test]
fn many_slots_and_high_utilisation_have_an_answer() {
    for (slots, rho) in [
        (5, 1e-12),
        (256, 1e-9),
        (1, 0.999),
        (2, 0.995),
        (20, 0.99),
        (100, 0.99),
        (256, 0.5),
        (256, 0.9),
        (256, 0.99),
    ] {
        let queue = mdc(slots, rho);
        // Half of the mean wait of M/M/c, which M/D/c exceeds by at most 35 % here.
        let half = 0.5 * ErlangQueue::new(queue.load()).unwrap().mean_wait();
        let wait = queue.mean_wait();
        let p99 = queue.wait_quantile(0.99).unwrap();
        let is_near = wait >= half * 0.999_999 - 1e-9 && wait <= half * 1.35 + 1e-9;
        assert!(
            is_near && p99.is_finite() && p99 >= 0.0,
            "M/D/{slots} at {rho}: {wait}, half {half}, p99 {p99}"
        );
    }
}

#[test]
fn impossible_loads_and_quantiles_are_refused() {
    let of =
        |slots, rho| ConstantServiceQueue::new(OfferedLoad::of_utilisation(slots, rho)).map(|_| ());
    assert!(matches!(of(5, 1.0), Err(QueueingError::NoSteadyState { .. })));
    assert!(matches!(of(257, 0.5), Err(QueueingError::TooMany { .. })));
    assert_eq!(
        mdc(2, 0.5).wait_quantile(f64::NAN).map_err(|error| error.to_string().is_empty()),
        Err(false)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn waits_are_a_distribution(slots in 1u32..40, rho in 0.01f64..0.985, x in 0.0f64..5.0) {
        let queue = mdc(slots, rho);
        let here = queue.wait_above(x);
        let later = queue.wait_above(x + 0.1);
        prop_assert!((0.0..=1.0).contains(&here) && later <= here + 1e-12, "{} {}", here, later);
        // A constant service waits less than an exponential one.
        let exponential = ErlangQueue::new(queue.load()).unwrap();
        prop_assert!(queue.mean_wait() <= exponential.mean_wait() + 1e-12);
        prop_assert!(queue.wait_above(0.0) <= exponential.wait_above(0.0) + 1e-12);
    }

    #[test]
    fn a_quantile_is_exceeded_by_the_rest(slots in 1u32..25, rho in 0.3f64..0.97, share in 0.0f64..0.999) {
        let queue = mdc(slots, rho);
        let wait = queue.wait_quantile(share).unwrap();
        prop_assert!(queue.wait_above(wait) <= 1.0 - share + 1e-12);
        if wait > 0.0 {
            prop_assert!((queue.wait_above(wait) - (1.0 - share)).abs() < 1e-9);
        }
    }
}
