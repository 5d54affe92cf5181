//! Printed figures, with the range that rounding leaves for them and for what is computed from
//! them; and figures as text: printed ones with their own digits, up to six, computed ones with
//! three.

use model::Nanos;
use report::number::{self, fixed};
use serde::Serialize;

/// A printed number. `2.31` may have been anything from 2.305 to 2.315.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrintedFigure {
    /// The value as printed.
    pub value: f64,
    /// Half of the last digit: the true value is at most this far away.
    pub half_width: f64,
    /// Decimals as printed, so that it can be shown with the same digits.
    pub decimals: u8,
}

impl PrintedFigure {
    /// Digits with at most one point: `4880.11`, `500`, `.5`. No sign, no exponent, no thousands'
    /// separators.
    pub fn parse(text: &str) -> Option<PrintedFigure> {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let points = text.bytes().filter(|b| *b == b'.').count();
        if digits == 0 || points > 1 || digits + points != text.len() || text.len() > 40 {
            return None;
        }
        let decimals = text.find('.').map_or(0, |at| text.len() - at - 1) as u8;
        let value = text.parse().ok()?;
        Some(PrintedFigure { value, half_width: 0.5 * 10f64.powi(-i32::from(decimals)), decimals })
    }

    /// In another unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> PrintedFigure {
        PrintedFigure {
            value: self.value * by,
            half_width: self.half_width * by,
            decimals: self.decimals,
        }
    }

    /// The same figure if it may have been truncated instead of rounded: the true value is up to a
    /// whole last digit away.
    #[must_use]
    pub fn truncated(self) -> PrintedFigure {
        PrintedFigure { half_width: self.half_width * 2.0, ..self }
    }

    /// The same figure if it was not rounded: a number that the user gave.
    #[must_use]
    pub fn exact(self) -> PrintedFigure {
        PrintedFigure { half_width: 0.0, ..self }
    }

    /// The range of values that it may have been; never below zero.
    pub fn range(self) -> FigureRange {
        FigureRange::exactly(self.value).widened_by(self.half_width)
    }
}

/// A range of numbers, both ends included. It is only for numbers that are not negative, because
/// products and quotients are computed from the ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FigureRange {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl FigureRange {
    /// Exactly this.
    pub fn exactly(value: f64) -> FigureRange {
        FigureRange { low: value, high: value }
    }

    /// The range of the products.
    #[must_use]
    pub fn times(self, other: FigureRange) -> FigureRange {
        FigureRange { low: self.low * other.low, high: self.high * other.high }
    }

    /// The range of the quotients; `None` if the divisor may be zero.
    pub fn over(self, other: FigureRange) -> Option<FigureRange> {
        let is_divisor = other.low > 0.0;
        is_divisor.then(|| FigureRange {
            low: self.low / other.low.max(other.high),
            high: self.high / other.low,
        })
    }

    /// The range times `by`.
    #[must_use]
    pub fn scaled(self, by: f64) -> FigureRange {
        FigureRange { low: self.low * by, high: self.high * by }
    }

    /// Wider by a fraction at either end.
    #[must_use]
    pub(crate) fn widened(self, fraction: f64) -> FigureRange {
        FigureRange { low: self.low * (1.0 - fraction), high: self.high * (1.0 + fraction) }
    }

    /// Wider by `by` at either end, but not below zero.
    #[must_use]
    pub(crate) fn widened_by(self, by: f64) -> FigureRange {
        FigureRange { low: (self.low - by).max(0.0), high: self.high + by }
    }

    /// Whether the ranges have a value in common.
    pub(crate) fn meets(self, other: FigureRange) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The middle.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}

/// A figure that was printed, with its own digits.
fn printed(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let text = fixed(value, (5 - magnitude).clamp(0, 9) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A time that was printed: `2.31 ms`, from 10 s on `20.0037 s`.
pub(crate) fn printed_time(seconds: f64) -> String {
    if seconds >= 10.0 {
        format!("{} s", printed(seconds))
    } else {
        format!("{} ms", printed(seconds * 1e3))
    }
}

/// Requests per second that were printed: `4880.11/s`.
pub(crate) fn printed_rate(per_second: f64) -> String {
    format!("{}/s", printed(per_second))
}

/// A time that was computed: `0.820 ms`, `10.9 ms`.
pub(crate) fn time(seconds: f64) -> String {
    number::time(Nanos::from_secs_f64(seconds))
}

/// As [`time`], to the hundredth of a millisecond, where the evidence needs it: `485.85 ms`.
pub(crate) fn exact_time(seconds: f64) -> String {
    format!("{} ms", fixed(seconds * 1e3, 2))
}

/// Requests per second that were computed: `91.3/s`.
pub(crate) fn rate(per_second: f64) -> String {
    format!("{}/s", number::rate(per_second))
}

/// A fraction in percent: `2.75 %`.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{} %", number::percent(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_printed_say_how_far_rounding_reached() {
        for (text, value, half_width) in
            [("4880.11", 4880.11, 0.005), ("500", 500.0, 0.5), (".5", 0.5, 0.05)]
        {
            let figure = PrintedFigure::parse(text).unwrap();
            assert!(
                (figure.value - value).abs() < 1e-12
                    && (figure.half_width - half_width).abs() < 1e-15,
                "{text}"
            );
        }
        for text in ["", ".", "-1", "1.2.3", "1e5", "NaN", "inf", "1,000", "x"] {
            assert_eq!(PrintedFigure::parse(text), None, "{text}");
        }
    }

    #[test]
    fn arithmetic_keeps_all_that_rounding_allows() {
        let rate = FigureRange { low: 99.0, high: 101.0 };
        let mean = FigureRange { low: 0.9, high: 1.1 };
        assert_eq!(rate.times(mean), FigureRange { low: 99.0 * 0.9, high: 101.0 * 1.1 });
        assert_eq!(rate.over(mean), Some(FigureRange { low: 99.0 / 1.1, high: 101.0 / 0.9 }));
        assert_eq!(rate.over(FigureRange { low: 0.0, high: 1.0 }), None);
        assert!(
            rate.meets(FigureRange::exactly(101.0)) && !rate.meets(FigureRange::exactly(101.1))
        );
    }
}
