//! Why a formula has no answer; checks of parameters, which would otherwise become NaN; and
//! numerical methods: bisection (safe for monotone functions), linear equations, Poisson
//! probabilities.

use thiserror::Error;

/// Why a formula has no answer for these parameters, in one line.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum QueueingError {
    /// A parameter out of its range.
    #[error("{what} must be {range}, which {value} is not")]
    OutOfRange {
        /// Which parameter.
        what: &'static str,
        /// Its range, in words.
        range: &'static str,
        /// Its value.
        value: f64,
    },
    /// A count is 0 that must be at least 1.
    #[error("there must be at least one {0}")]
    None(&'static str),
    /// At least as much work arrives as can be done, so the queue grows for ever.
    #[error(
        "no steady state: the load is {utilisation} of what the slots can do, and the queue grows \
         as long as it lasts"
    )]
    NoSteadyState {
        /// Offered work / slots; at least 1.
        utilisation: f64,
    },
    /// More than the method is made and tested for.
    #[error("{value} {what} are more than the {limit} that this method is made for")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many were given.
        value: u32,
        /// How many there may be.
        limit: u32,
    },
    /// The objective is missed even without load.
    #[error("no load keeps it: without any load it is {at_rest} already, and the limit is {limit}")]
    OutOfReach {
        /// The figure at no load.
        at_rest: f64,
        /// The objective's limit.
        limit: f64,
    },
    /// The parameters do not determine the answer.
    #[error("{0} do not determine the answer")]
    Undetermined(&'static str),
}

fn within(
    holds: bool,
    what: &'static str,
    range: &'static str,
    value: f64,
) -> Result<f64, QueueingError> {
    if holds { Ok(value) } else { Err(QueueingError::OutOfRange { what, range, value }) }
}

pub(crate) fn positive(what: &'static str, value: f64) -> Result<f64, QueueingError> {
    within(value > 0.0 && value.is_finite(), what, "a number above 0", value)
}

pub(crate) fn not_negative(what: &'static str, value: f64) -> Result<f64, QueueingError> {
    within(value >= 0.0 && value.is_finite(), what, "0 or a number above", value)
}

/// Requires 0 or more and less than 1: the quantile at 1 of an unbounded law is infinite.
pub(crate) fn share(value: f64) -> Result<f64, QueueingError> {
    within((0.0..1.0).contains(&value), "the share of a quantile", "at least 0 and below 1", value)
}

pub(crate) fn some(what: &'static str, count: u32) -> Result<u32, QueueingError> {
    if count > 0 { Ok(count) } else { Err(QueueingError::None(what)) }
}

pub(crate) fn at_most(what: &'static str, value: u32, limit: u32) -> Result<u32, QueueingError> {
    if value <= limit { Ok(value) } else { Err(QueueingError::TooMany { what, value, limit }) }
}

/// Steps of a bisection: more than an f64 has bits, so that it ends at two neighbours.
const STEPS: u32 = 200;

/// The quantile `share` of a time that exceeds `x` with probability `tail(x)`, which must not rise.
/// `unit` is a time of the right order, where the search begins. Infinite only if the tail never
/// falls below `1 - share`.
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

/// Bisection: the first `x` of `low..=high` from which on `holds` is true, which is false at `low`
/// and true at `high`.
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

/// Linear equations, by Gaussian elimination with partial pivoting (Golub and Van Loan, Matrix
/// Computations, 3.4): the `x` with `matrix · x = right`, where each row has as many entries as
/// there are rows. `None` if the matrix is singular to working precision.
pub(crate) fn solve_linear(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
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

/// Poisson probabilities: P(N = 0), P(N = 1), … for the mean `mean`, as many as `count`, in
/// logarithms, so that nothing is lost to underflow that later terms need. Their relative error is
/// some 1e-14.
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
