//! An axis of a plot: its scale, and where its ticks stand.

use crate::number;

/// From the data's unit to a part of the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AxisScale {
    Linear { low: f64, high: f64 },
    Logarithmic { low: f64, high: f64 },
}

impl AxisScale {
    /// From 0 to a little above the highest of these values.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>) -> AxisScale {
        let high = values.into_iter().fold(0.0, f64::max);
        AxisScale::Linear { low: 0.0, high: if high > 0.0 { high * 1.08 } else { 1.0 } }
    }

    /// Around these positive values, at least a factor of two high, with a little room at both ends.
    pub(crate) fn around(values: impl IntoIterator<Item = f64>) -> AxisScale {
        let (mut low, mut high) = (f64::INFINITY, 0.0);
        for value in values.into_iter().filter(|value| *value > 0.0) {
            (low, high) = (value.min(low), value.max(high));
        }
        if high == 0.0 {
            return AxisScale::Logarithmic { low: 1.0, high: 10.0 };
        }
        let room = (high / low).powf(0.05).max(1.08);
        let widened = (2.0 / (high / low * room * room)).sqrt().max(1.0);
        AxisScale::Logarithmic { low: low / room / widened, high: high * room * widened }
    }

    /// Where a value stands, from 0 to 1.
    pub(crate) fn part(self, value: f64) -> f64 {
        match self {
            AxisScale::Linear { low, high } => (value - low) / (high - low),
            AxisScale::Logarithmic { low, high } => (value.max(low) / low).ln() / (high / low).ln(),
        }
    }

    /// Round values all along it, about `wanted` of them.
    fn round_values(self, wanted: usize) -> Vec<f64> {
        let (low, high) = match self {
            AxisScale::Linear { low, high } => return steps(low, high, wanted),
            AxisScale::Logarithmic { low, high } => (low, high),
        };
        let decades = (high / low).log10();
        if decades < 0.6 {
            return steps(low, high, wanted);
        }
        let digits: &[f64] = match decades {
            ..1.6 => &[1.0, 2.0, 5.0],
            ..2.6 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = exponents.flat_map(|exponent| digits.iter().map(move |digit| digit * 10f64.powi(exponent)));
        all.filter(|value| (low..=high).contains(value)).collect()
    }
}

/// Multiples of 1, 2 or 5 times a power of ten, about `wanted` of them.
fn steps(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let rough = (high - low) / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(rough);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

/// Where a tick stands and what it says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisTick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// An axis with its title.
#[derive(Clone, Debug)]
pub(crate) struct PlotAxis {
    pub(crate) title: String,
    pub(crate) scale: AxisScale,
    pub(crate) ticks: Vec<AxisTick>,
}

impl PlotAxis {
    /// With ticks at round values, about `wanted` of them.
    pub(crate) fn rounded(title: impl Into<String>, scale: AxisScale, wanted: usize) -> PlotAxis {
        let values = scale.round_values(wanted);
        // So many decimals that each label is exact.
        let is_exact = |value: f64, scale: f64| (value * scale - (value * scale).round()).abs() < 1e-6;
        let exact = |scale: f64| values.iter().all(|value| is_exact(*value, scale));
        let decimals = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5].into_iter().position(exact);
        let label = |value: f64| match scale {
            AxisScale::Logarithmic { .. } => number::shortest((value * 1e9).round() / 1e9),
            AxisScale::Linear { .. } => number::fixed(value, decimals.unwrap_or(6)),
        };
        let ticks = values.iter().map(|value| AxisTick { at: *value, label: label(*value) }).collect();
        PlotAxis { title: title.into(), scale, ticks }
    }

    /// With these ticks.
    pub(crate) fn labelled(
        title: impl Into<String>,
        scale: AxisScale,
        ticks: impl IntoIterator<Item = AxisTick>,
    ) -> PlotAxis {
        PlotAxis { title: title.into(), scale, ticks: ticks.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: AxisScale) -> String {
        let axis = PlotAxis::rounded("", scale, 5);
        axis.ticks.iter().map(|tick| tick.label.clone()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_and_all_different() {
        assert_eq!(labels(AxisScale::from_zero([99.0])), "0 50 100");
        assert_eq!(labels(AxisScale::from_zero([0.93])), "0.0 0.5 1.0");
        assert_eq!(labels(AxisScale::from_zero([])), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(labels(AxisScale::around([101.0, 3957.0])), "100 300 1000 3000");
        assert_eq!(labels(AxisScale::around([0.02, 900.0])), "0.1 1 10 100 1000");
        assert_eq!(labels(AxisScale::around([100.0, 101.0])), "80 100 120 140");
    }

    #[test]
    fn nothing_and_one_value_have_a_scale_too() {
        for values in [vec![], vec![0.0], vec![5.0], vec![1e-3, 1e6]] {
            let scale = AxisScale::around(values.clone());
            for value in values.into_iter().filter(|value| *value > 0.0) {
                assert!((0.0..=1.0).contains(&scale.part(value)), "{value} on {scale:?}");
            }
            assert!(!PlotAxis::rounded("", scale, 4).ticks.is_empty(), "{scale:?}");
        }
    }
}
