//! The fit: Levenberg and Marquardt's method for each set of free numbers, the others on their bound of 0.

use super::{Fit, Usl};
use crate::{Invalid, check, linear};

/// Which of γ, α, β are free; the others are 0.
const FREE: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];

/// Fits the law to loads and their rates. Of the fits whose numbers are all at least 0 the best; so that a bound holds
/// exactly, and not nearly.
///
/// # Errors
/// With fewer than three points, lists of different lengths, loads below 1 or rates not above 0, or where all loads are one.
pub fn fit(loads: &[f64], rates: &[f64]) -> Result<Fit, Invalid> {
    let n = loads.len().min(rates.len());
    if n < 3 || loads.len() != rates.len() {
        return Err(Invalid::TooFew { what: "loads with a rate", given: n, needed: 3 });
    }
    for (load, rate) in loads.iter().zip(rates) {
        check::not_negative("a load less 1", load - 1.0)?;
        check::positive("a rate", *rate)?;
    }
    if loads.iter().all(|load| load.total_cmp(&loads[0]).is_eq()) {
        return Err(Invalid::Undetermined("rates at a single load"));
    }
    let best = FREE
        .iter()
        .filter_map(|free| descend(free, loads, rates).map(|numbers| (*free, numbers)))
        .filter(|(_, numbers)| numbers.iter().all(|number| *number >= 0.0))
        .min_by(|(_, a), (_, b)| squares(a, loads, rates).total_cmp(&squares(b, loads, rates)));
    let (free, numbers) = best.ok_or(Invalid::Undetermined("these rates"))?;
    Ok(Fit {
        law: law(&numbers),
        errors: errors(free, &numbers, loads, rates),
        residuals: loads.iter().zip(rates).map(|(load, rate)| rate - law(&numbers).rate(*load)).collect(),
    })
}

fn law([gamma, alpha, beta]: &[f64; 3]) -> Usl {
    Usl { gamma: *gamma, alpha: *alpha, beta: *beta }
}

fn squares(numbers: &[f64; 3], loads: &[f64], rates: &[f64]) -> f64 {
    let law = law(numbers);
    let sum = loads.iter().zip(rates).map(|(load, rate)| (rate - law.rate(*load)).powi(2)).sum::<f64>();
    // A pole between the points is no fit.
    if loads.iter().all(|load| law.denominator(*load) > 0.0) { sum } else { f64::INFINITY }
}

/// Derivatives of `X(N)` by γ, α, β.
fn slopes(numbers: &[f64; 3], load: f64) -> [f64; 3] {
    let law = law(numbers);
    let below = law.denominator(load);
    let by_below = -law.gamma * load / (below * below);
    [load / below, by_below * (load - 1.0), by_below * load * (load - 1.0)]
}

/// `JᵀJ` and `Jᵀr` of the free numbers.
fn normal(free: &[usize], numbers: &[f64; 3], loads: &[f64], rates: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut matrix = vec![vec![0.0; free.len()]; free.len()];
    let mut right = vec![0.0; free.len()];
    for (load, rate) in loads.iter().zip(rates) {
        let (slopes, off) = (slopes(numbers, *load), rate - law(numbers).rate(*load));
        for (i, a) in free.iter().enumerate() {
            right[i] += slopes[*a] * off;
            for (j, b) in free.iter().enumerate() {
                matrix[i][j] += slopes[*a] * slopes[*b];
            }
        }
    }
    (matrix, right)
}

/// From a start with the rate of the first point and little of the rest, downhill until nothing changes.
fn descend(free: &[usize], loads: &[f64], rates: &[f64]) -> Option<[f64; 3]> {
    let mut numbers = [rates[0] / loads[0], 0.0, 0.0];
    for (number, start) in [(1, 0.02), (2, 1e-4)] {
        if free.contains(&number) {
            numbers[number] = start;
        }
    }
    let (mut damping, mut least) = (1e-3, squares(&numbers, loads, rates));
    for _ in 0..2000 {
        let (mut matrix, right) = normal(free, &numbers, loads, rates);
        for (i, row) in matrix.iter_mut().enumerate() {
            row[i] *= 1.0 + damping;
        }
        let step = linear::solve(matrix, right)?;
        let mut next = numbers;
        for (number, step) in free.iter().zip(&step) {
            next[*number] += step;
        }
        let sum = squares(&next, loads, rates);
        if sum <= least {
            let moved = free.iter().any(|i| (next[*i] - numbers[*i]).abs() > 1e-14 * next[*i].abs());
            (numbers, least, damping) = (next, sum, (damping / 10.0).max(1e-12));
            if !moved {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    numbers.iter().all(|number| number.is_finite()).then_some(numbers)
}

/// Square roots of the diagonal of `σ²(JᵀJ)⁻¹`.
fn errors(free: &[usize], numbers: &[f64; 3], loads: &[f64], rates: &[f64]) -> [Option<f64>; 3] {
    let mut errors = [None; 3];
    let beyond = loads.len().saturating_sub(free.len());
    if beyond == 0 {
        return errors;
    }
    let variance = squares(numbers, loads, rates) / beyond as f64;
    let (matrix, _) = normal(free, numbers, loads, rates);
    for (i, number) in free.iter().enumerate() {
        let mut unit = vec![0.0; free.len()];
        unit[i] = 1.0;
        let column = linear::solve(matrix.clone(), unit);
        errors[*number] = column.map(|column| (variance * column[i]).sqrt()).filter(|error| error.is_finite());
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(seen: f64, exact: f64, relative: f64) {
        assert!((seen - exact).abs() <= relative * exact.abs(), "{seen}, not {exact}");
    }

    #[test]
    fn specsdm91_is_as_published() {
        let loads = [1.0, 18.0, 36.0, 72.0, 108.0, 144.0, 216.0];
        let rates = [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2];
        let fit = fit(&loads, &rates).unwrap();
        near(fit.law.gamma, 89.995_233, 2e-9);
        near(fit.law.alpha, 0.027_728_5, 1e-6);
        near(fit.law.beta, 0.000_104_366, 5e-6);
        near(fit.errors[0].unwrap(), 14.21, 1e-3);
        near(fit.errors[1].unwrap(), 0.009_121_7, 1e-3);
        near(fit.errors[2].unwrap(), 1.99e-5, 3e-3);
        for (seen, published) in fit.residuals.iter().zip([-25.1, -81.7, 111.1, 3.1, -50.0, -46.6, 56.0]) {
            assert!((seen - published).abs() < 0.06, "{seen}, published {published}");
        }
        let peak = fit.law.peak().unwrap();
        near(peak, 96.52, 1e-4);
        near(fit.law.rate(peak), 1883.9, 1e-4);
        assert_eq!(fit.law.limit(), None);
    }

    #[test]
    fn raytracer_lies_on_the_bound() {
        let loads = [1.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0, 48.0, 64.0];
        let rates = [20.0, 78.0, 130.0, 170.0, 190.0, 200.0, 210.0, 230.0, 260.0, 280.0, 310.0];
        let fit = fit(&loads, &rates).unwrap();
        near(fit.law.gamma, 21.848_843, 1e-6);
        near(fit.law.alpha, 0.057_771, 1e-5);
        assert!(fit.law.beta == 0.0 && fit.errors[2].is_none() && fit.law.peak().is_none());
        near(fit.law.limit().unwrap(), 378.2, 1e-4);
    }

    #[test]
    fn a_law_comes_back_from_what_it_made() {
        let law = Usl { gamma: 1000.0, alpha: 0.03, beta: 0.0005 };
        let loads = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        let table =
            [1000.0, 1_939.864_21, 3_649.635_036, 6_462.035_541, 10_191.082_803, 13_190.436_933, 13_045.250_713];
        let rates = loads.map(|load| law.rate(load));
        for (rate, exact) in rates.iter().zip(table) {
            near(*rate, exact, 1e-9);
        }
        let found = fit(&loads, &rates).unwrap();
        near(found.law.gamma, 1000.0, 1e-9);
        near(found.law.alpha, 0.03, 1e-8);
        near(found.law.beta, 0.0005, 1e-8);
        near(found.law.peak().unwrap(), 44.045_43, 1e-6);
    }

    #[test]
    fn too_little_is_refused() {
        assert!(fit(&[1.0, 2.0], &[1.0, 2.0]).is_err() && fit(&[1.0, 2.0, 3.0], &[1.0, 2.0]).is_err());
        assert!(fit(&[2.0; 4], &[1.0, 2.0, 3.0, 4.0]).is_err() && fit(&[0.5, 2.0, 3.0], &[1.0; 3]).is_err());
        assert!(fit(&[1.0, 2.0, 3.0], &[1.0, f64::NAN, 3.0]).is_err());
    }

    proptest! {
        #[test]
        fn no_number_is_negative(rates in prop::collection::vec(1.0f64..1e4, 6)) {
            let fit = fit(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], &rates).unwrap();
            let Usl { gamma, alpha, beta } = fit.law;
            prop_assert!(gamma > 0.0 && alpha >= 0.0 && beta >= 0.0);
        }

        #[test]
        fn any_law_comes_back(gamma in 1.0f64..1e5, alpha in 0.001f64..0.5, beta in 1e-5f64..0.01) {
            let law = Usl { gamma, alpha, beta };
            let loads = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
            let fit = fit(&loads, &loads.map(|load| law.rate(load))).unwrap();
            prop_assert!((fit.law.alpha - alpha).abs() < 1e-6 && (fit.law.beta - beta).abs() < 1e-7);
        }
    }
}
