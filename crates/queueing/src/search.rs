//! Where a monotone function passes a value: bisection, which cannot miss.

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
    first(0.0, high, |x| tail(x) <= above)
}

/// The first `x` of `low..=high` from which on `holds` is true, which is false at `low` and true at `high`.
pub(crate) fn first(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
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
