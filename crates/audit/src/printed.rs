//! A figure as somebody printed it: its value, and how far rounding may have moved it.

use serde::{Deserialize, Serialize};

use crate::range::Range;

/// A printed number. What was printed as `2.31` was anything from 2.305 to 2.315.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Printed {
    /// As it stands there.
    pub value: f64,
    /// Half of its last digit: the true figure is at most this far away.
    pub half_width: f64,
    /// Decimals as printed, so that it can be shown with the same digits.
    pub decimals: u8,
}

impl Printed {
    /// Digits with at most one point: `4880.11`, `500`, `.5`. No sign, no exponent, no thousands' separators.
    pub fn parse(text: &str) -> Option<Printed> {
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let points = text.bytes().filter(|b| *b == b'.').count();
        if digits == 0 || points > 1 || digits + points != text.len() || text.len() > 40 {
            return None;
        }
        let decimals = text.find('.').map_or(0, |at| text.len() - at - 1) as u8;
        let value = text.parse().ok()?;
        Some(Printed { value, half_width: 0.5 * 10f64.powi(-i32::from(decimals)), decimals })
    }

    /// In another unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> Printed {
        Printed { value: self.value * by, half_width: self.half_width * by, decimals: self.decimals }
    }

    /// Cut off instead of rounded, or perhaps so: up to a whole last digit away.
    #[must_use]
    pub fn cut(self) -> Printed {
        Printed { half_width: self.half_width * 2.0, ..self }
    }

    /// All that it may have been; never below zero.
    pub fn range(self) -> Range {
        Range::exactly(self.value).widened_by(self.half_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_printed_say_how_far_rounding_reached() {
        for (text, value, half_width) in [("4880.11", 4880.11, 0.005), ("500", 500.0, 0.5), (".5", 0.5, 0.05)] {
            let printed = Printed::parse(text).unwrap();
            assert!((printed.value - value).abs() < 1e-12 && (printed.half_width - half_width).abs() < 1e-15, "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_number_is_none() {
        for text in ["", ".", "-1", "1.2.3", "1e5", "NaN", "inf", "1,000", "x"] {
            assert_eq!(Printed::parse(text), None, "{text}");
        }
    }
}
