//! Picks at random from a file's requests say nothing about when they are due.

use model::{RequestOrder, pace::uniform};

#[test]
fn a_pick_says_nothing_about_the_gap_before_it() {
    // The gaps of a Poisson pace with the same seed fall with `uniform`: unmixed draws would correlate fully, and one
    // request would always come after the long gaps.
    let (n, seed) = (10_000u64, 7);
    let sum: f64 = (0..n)
        .map(|i| (RequestOrder::Random { seed }.index(i, 1000) as f64 / 999.0 - 0.5) * (uniform(seed, i) - 0.5))
        .sum();
    let correlation = sum / n as f64 * 12.0;
    assert!(correlation.abs() < 0.03, "correlation {correlation}");
}
