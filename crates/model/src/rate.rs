//! Requests per second, always of the whole run and never of a connection or a lane.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One a nanosecond.
const HIGHEST: f64 = 1e9;

/// Requests per second; above zero, at most a billion. `0.5/s` is one request every two seconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Rate(f64);

impl Rate {
    /// A rate of `per_second` requests per second.
    ///
    /// # Errors
    /// Where `per_second` is not a number above zero, or more than a billion: time is kept in nanoseconds.
    pub fn new(per_second: f64) -> Result<Rate, BadRate> {
        if per_second.is_finite() && per_second > 0.0 && per_second <= HIGHEST {
            Ok(Rate(per_second))
        } else {
            Err(BadRate(per_second.to_string()))
        }
    }

    /// Requests per second.
    pub fn per_second(self) -> f64 {
        self.0
    }
}

/// Why something is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is not a rate: write 500/s, 500 or 0.5/s (requests per second in total, at most a billion)")]
pub struct BadRate(String);

impl TryFrom<f64> for Rate {
    type Error = BadRate;
    fn try_from(per_second: f64) -> Result<Rate, BadRate> {
        Rate::new(per_second)
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> f64 {
        rate.0
    }
}

impl FromStr for Rate {
    type Err = BadRate;
    fn from_str(text: &str) -> Result<Rate, BadRate> {
        let number = text.trim().strip_suffix("/s").unwrap_or(text.trim());
        number.parse().ok().and_then(|n| Rate::new(n).ok()).ok_or_else(|| BadRate(text.to_owned()))
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

    #[test]
    fn rates_are_read_and_printed_back() {
        for text in ["500/s", "0.5/s", "97.25/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert_eq!("500".parse::<Rate>(), Rate::new(500.0));
    }

    #[test]
    fn no_rate_is_zero_negative_or_infinite() {
        for text in ["0", "-1/s", "inf", "NaN", "many", "", "1e15", "1000000001/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
