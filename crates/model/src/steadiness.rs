//! Whether a series settles, and whether it climbs: MSER-5 and the slope of a straight line.

/// A figure in standard errors; if the error is 0, a large number that JSON can hold.
pub(crate) fn in_errors(figure: f64, error: f64) -> f64 {
    match error {
        error if error > 0.0 => figure / error,
        _ if figure == 0.0 => 0.0,
        _ => 1e9 * figure.signum(),
    }
}

/// Where a series settles, by MSER-m.
///
/// White, 1997: of the batch means `Z` of `m` values each, leave out the first `d` so that
/// `Σ(Z-Z̄)² / (n-d)²` over the rest is smallest, with `d` at most `n/2`. If it is `n/2`, no steady
/// part was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledPart {
    /// Batch means to leave out.
    pub after: usize,
    /// Batch means in all.
    pub of: usize,
}

impl SettledPart {
    /// Whether there is a steady part.
    pub(crate) fn is_steady(self) -> bool {
        self.after < self.of / 2
    }
}

/// MSER-`m` of a series, without an incomplete last batch. `None` for fewer than eight batch means.
pub(crate) fn mser(series: &[f64], m: usize) -> Option<SettledPart> {
    let means: Vec<f64> = series.chunks_exact(m.max(1)).map(mean).collect();
    if means.len() < 8 {
        return None;
    }
    let spread = |after: usize| {
        let rest = &means[after..];
        let mean = mean(rest);
        rest.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    let after = (0..=means.len() / 2)
        .map(|after| (after, spread(after)))
        .min_by(|(_, a), (_, b)| a.total_cmp(b))?
        .0;
    Some(SettledPart { after, of: means.len() })
}

/// How far the second half of a series is from its first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalfShift {
    /// (Mean of the second half - mean of the first) / its standard error.
    pub in_errors: f64,
    /// The same difference / the mean of all.
    pub of_mean: f64,
}

/// The shift of a series between its halves, with errors from eight batch means in each. `None` for
/// fewer than 32 values.
pub fn shift(series: &[f64]) -> Option<HalfShift> {
    const PARTS: usize = 8;
    let half = series.len() / 2;
    if half < 2 * PARTS {
        return None;
    }
    let halves = [&series[..half], &series[series.len() - half..]];
    let [first, second] = halves.map(|half| {
        let parts: Vec<f64> = half.chunks_exact(half.len() / PARTS).take(PARTS).map(mean).collect();
        let mean = mean(&parts);
        let variance =
            parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / (PARTS - 1) as f64;
        (mean, variance / PARTS as f64)
    });
    let error = (first.1 + second.1).sqrt();
    let by = second.0 - first.0;
    let all = f64::midpoint(first.0, second.0);
    Some(HalfShift {
        in_errors: in_errors(by, error),
        of_mean: if all > 0.0 { by / all } else { 0.0 },
    })
}

/// A straight line through points, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearFit {
    /// Its slope.
    pub slope: f64,
    /// Slope / its standard error; 10^9 if all points are on the line.
    pub t: f64,
}

/// A point of a plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FitPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The line through these points; `None` for fewer than 8 points, or if all have the same x.
pub(crate) fn line(points: &[FitPoint]) -> Option<LinearFit> {
    if points.len() < 8 {
        return None;
    }
    let n = points.len() as f64;
    let x0 = points.iter().map(|p| p.x).sum::<f64>() / n;
    let y0 = points.iter().map(|p| p.y).sum::<f64>() / n;
    let xx: f64 = points.iter().map(|p| (p.x - x0).powi(2)).sum();
    if xx == 0.0 {
        return None;
    }
    let slope = points.iter().map(|p| (p.x - x0) * (p.y - y0)).sum::<f64>() / xx;
    let left: f64 = points.iter().map(|p| (p.y - y0 - slope * (p.x - x0)).powi(2)).sum();
    let error = (left / (n - 2.0) / xx).sqrt();
    Some(LinearFit { slope, t: in_errors(slope, error) })
}

/// The arithmetic mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len() as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_settles_where_mser_says() {
        let falling: Vec<f64> =
            (1..=10).rev().map(f64::from).chain([1.0, 2.0].into_iter().cycle().take(40)).collect();
        assert_eq!(mser(&falling, 1), Some(SettledPart { after: 8, of: 50 }));
        assert_eq!(mser(&falling, 5), Some(SettledPart { after: 2, of: 10 }));
        let noise = [5.0, 5.2, 4.8, 5.1, 4.9].into_iter().cycle().take(100);
        let decaying: Vec<f64> =
            (0..100).map(|i| 20.0 * (f64::from(-i) / 10.0).exp() + 5.0).chain(noise).collect();
        assert_eq!(mser(&decaying, 5), Some(SettledPart { after: 20, of: 40 }));
        assert!(!mser(&decaying, 5).unwrap().is_steady());
        assert_eq!(mser(&[1.0; 7], 1), None);
    }

    #[test]
    fn a_rising_series_never_settles_and_a_flat_one_has_settled() {
        let climbing: Vec<f64> = (0..128).map(f64::from).collect();
        assert!(!mser(&climbing, 5).unwrap().is_steady());
        assert_eq!(mser(&[3.0; 128], 5).unwrap().after, 0);
        let shift = shift(&climbing).unwrap();
        assert!(shift.in_errors > 5.0 && (shift.of_mean - 1.0).abs() < 0.02, "{shift:?}");
        assert_eq!(super::shift(&[3.0; 128]), Some(HalfShift { in_errors: 0.0, of_mean: 0.0 }));
    }

    #[test]
    fn a_line_has_the_slope_of_its_points() {
        // Anscombe's first quartet (1973): slope 0.50009, standard error 0.11791.
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let points: Vec<FitPoint> = x.into_iter().zip(y).map(|(x, y)| FitPoint { x, y }).collect();
        let LinearFit { slope, t } = line(&points).unwrap();
        assert!((slope - 0.500_090_9).abs() < 1e-6 && (t - 4.241_455).abs() < 1e-5, "{slope} {t}");
    }
}
