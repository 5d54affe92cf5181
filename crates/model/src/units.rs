//! Time in whole nanoseconds, and rates in requests per second of the whole run (never of a
//! connection or a lane), with the units that people type and read.
//!
//! Text in, text out: parsing what [`Nanos`] prints gives the same value, to the nanosecond.
//! Rounding for tables is done in `number.rs`.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A span of time, or an instant as the span since the clock's origin, in nanoseconds. Range: 0 to
/// 584 years.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time, or the clock's origin.
    pub const ZERO: Nanos = Nanos(0);
    /// Longer than anything: "never".
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// Whole seconds.
    pub const fn from_secs(seconds: u64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    /// Whole milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Nanos {
        Nanos(milliseconds * 1_000_000)
    }

    /// Whole microseconds.
    pub const fn from_micros(microseconds: u64) -> Nanos {
        Nanos(microseconds * 1_000)
    }

    /// Seconds as a real number, rounded to the nanosecond; negative and not-a-number become 0.
    pub fn from_secs_f64(seconds: f64) -> Nanos {
        Nanos((seconds * 1e9).round() as u64)
    }

    /// Seconds as a real number.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Milliseconds as a real number.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// `self - earlier`, or zero if `earlier` is later.
    #[must_use]
    pub fn saturating_sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, at most [`Nanos::MAX`].
    #[must_use]
    pub fn saturating_add(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    /// At most [`Nanos::MAX`]: 584 years mean "never".
    fn add(self, span: Nanos) -> Nanos {
        self.saturating_add(span)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, times: u64) -> Nanos {
        Nanos(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Nanos {
    type Output = Nanos;
    fn div(self, parts: u64) -> Nanos {
        Nanos(self.0 / parts)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(spans: I) -> Nanos {
        Nanos(spans.map(|span| span.0).sum())
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Duration {
        Duration::from_nanos(nanos.0)
    }
}

/// The units that can be typed. The first four are also printed, so they stand in falling order.
const UNITS: [(&str, u64); 8] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("µs", 1_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The shortest exact text: `200ms`, `1.5s`, `250us`, `17ns`.
impl fmt::Display for Nanos {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // (Exact up to a hundred days, whose nanoseconds fit into 53 bits.)
        match UNITS.iter().find(|(_, size)| self.0 >= *size) {
            Some((unit, size)) => write!(out, "{}{unit}", self.0 as f64 / *size as f64),
            None => out.write_str("0s"),
        }
    }
}

/// The longest time that can be typed.
pub const LONGEST_TIME: Nanos = Nanos::from_secs(30 * 86_400);

/// `200ms`, `1.5s`, `250us`, `17ns`, `2m`, `1h`, `1m30s`; a bare number is seconds, as in Puma's
/// own scripts.
impl FromStr for Nanos {
    type Err = String;

    fn from_str(text: &str) -> Result<Nanos, String> {
        match time(text.trim()) {
            None => Err(format!(
                "'{text}' is not a time: write 200ms, 1.5s, 2m or 0.2 (a bare number is seconds)"
            )),
            Some(time) if time > LONGEST_TIME => {
                Err(format!("'{text}' is more than 30 days (720h): give a shorter time"))
            }
            Some(time) => Ok(time),
        }
    }
}

fn time(mut rest: &str) -> Option<Nanos> {
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let part = |number: &str, size: u64| {
        Some(Nanos((number.parse::<f64>().ok()? * size as f64).round() as u64))
    };
    // A bare number must be alone: `1m30` would be ambiguous.
    if rest.chars().all(is_digit) {
        return part(rest, 1_000_000_000);
    }
    let mut sum = Nanos::ZERO;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c| !is_digit(c))?);
        let (unit, others) = after.split_at(after.find(is_digit).unwrap_or(after.len()));
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum += part(number, *size)?;
        rest = others;
    }
    Some(sum)
}

/// A type that is stored in JSON as the text that it prints and parses.
macro_rules! text_in_json {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                <String as serde::Deserialize>::deserialize(from)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use text_in_json;

/// [`Nanos::MAX`] as `null` in a file: not every JSON reader keeps a number of that size exact.
pub(crate) mod never_is_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Nanos;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
        (*time != Nanos::MAX).then_some(*time).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Nanos, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(Nanos::MAX))
    }
}

/// The highest rate: one request per nanosecond.
const HIGHEST_RATE: f64 = 1e9;

/// Requests per second; above zero, at most a billion. `0.5/s` is one request every two seconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64")]
pub struct Rate(f64);

impl Rate {
    /// A rate of `per_second` requests per second.
    ///
    /// # Errors
    /// If `per_second` is not a number above zero, or more than a billion.
    pub fn new(per_second: f64) -> Result<Rate, String> {
        if per_second.is_finite() && per_second > 0.0 && per_second <= HIGHEST_RATE {
            Ok(Rate(per_second))
        } else {
            Err(bad_rate(&per_second.to_string()))
        }
    }

    /// Requests per second.
    pub fn per_second(self) -> f64 {
        self.0
    }
}

fn bad_rate(text: &str) -> String {
    format!(
        "'{text}' is not a rate: write 500/s, 500 or 0.5/s (requests per second in total, at most \
         a billion)"
    )
}

impl TryFrom<f64> for Rate {
    type Error = String;
    fn try_from(per_second: f64) -> Result<Rate, String> {
        Rate::new(per_second)
    }
}

impl FromStr for Rate {
    type Err = String;
    fn from_str(text: &str) -> Result<Rate, String> {
        let number = text.trim().strip_suffix("/s").unwrap_or(text.trim());
        number.parse().ok().and_then(|n| Rate::new(n).ok()).ok_or_else(|| bad_rate(text))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_of_print_is_itself(nanos in 0..=LONGEST_TIME.0) {
            prop_assert_eq!(Nanos(nanos).to_string().parse(), Ok(Nanos(nanos)));
        }
    }
}
