//! Numerical methods: bisection, which cannot miss where a function is monotone; linear equations; Poisson probabilities.

/// Steps of a bisection: more than an f64 has bits, so that it ends at two neighbours.
const STEPS: u32 = 200;

/// The quantile `share` of a time that exceeds `x` with probability `tail(x)`, which must not rise. `unit` is a time of
/// the right order, where the search begins. Infinite only if the tail never falls below `1 - share`.
pub(crate) fn quantile(tail: impl Fn(f64) -> f64, share: f64, unit: f64) -> f64 {
    let above = 1.0 - share;
    if tail(0.0) <= above {
        return 0.0;
    }
    let mut high = unit;
    while tail(high) > above {
        high *= 2.0;
        if !high.is_finite() {
            return f64::INFINITY;
        }
    }
    first_where(0.0, high, |x| tail(x) <= above)
}

/// Bisection: the first `x` of `low..=high` from which on `holds` is true, which is false at `low` and true at `high`.
pub(crate) fn first_where(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Linear equations, by Gaussian elimination with partial pivoting (Golub and Van Loan, Matrix Computations, 3.4): the `x` with `matrix · x = right`, where each row has as many entries as there are rows. `None` where the matrix is
/// singular to working precision.
pub(crate) fn solve_linear(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let (above, below) = matrix.split_at_mut(column + 1);
        let pivot_row = &above[column];
        if pivot_row[column].abs() < f64::MIN_POSITIVE || !pivot_row[column].is_finite() {
            return None;
        }
        for (offset, row) in below.iter_mut().enumerate() {
            let factor = row[column] / pivot_row[column];
            if factor == 0.0 {
                continue;
            }
            for (entry, of_pivot) in row[column..].iter_mut().zip(&pivot_row[column..]) {
                *entry -= factor * of_pivot;
            }
            right[column + 1 + offset] -= factor * right[column];
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(right)
}

/// Poisson probabilities: P(N = 0), P(N = 1), … for the mean `mean`, as many as `count`, in logarithms, so that nothing is lost to
/// underflow that later terms need. Their relative error is some 1e-14.
pub(crate) fn poisson(mean: f64, count: usize) -> Vec<f64> {
    let mut log = -mean;
    (0..count)
        .map(|j| {
            if j > 0 {
                log += (mean / j as f64).ln();
            }
            log.exp()
        })
        .collect()
}
