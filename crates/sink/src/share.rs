//! A part of all requests, as a person writes it: `2%` or `0.02`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// From none (0) to all (1).
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct RequestShare(f64);

impl RequestShare {
    /// Nothing at all.
    pub const NONE: RequestShare = RequestShare(0.0);

    /// The share `part` of 1; `None` where it is not from 0 to 1.
    pub fn new(part: f64) -> Option<RequestShare> {
        (0.0..=1.0).contains(&part).then_some(RequestShare(part))
    }

    /// As a number from 0 to 1.
    pub fn part(self) -> f64 {
        self.0
    }
}

/// As a fraction: the shortest text that parses to the same share.
impl fmt::Display for RequestShare {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

/// Why a text is no share.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is not a share of all requests: write 2% or 0.02, from 0 to 100%")]
pub struct BadShare(String);

impl FromStr for RequestShare {
    type Err = BadShare;

    fn from_str(text: &str) -> Result<RequestShare, BadShare> {
        let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
        let number: Option<f64> = number.parse().ok();
        number.and_then(|number| RequestShare::new(number / whole)).ok_or_else(|| BadShare(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percent_and_fraction_are_the_same() {
        assert_eq!("0.1%".parse(), Ok(RequestShare(0.001)));
        assert_eq!("0.02".parse(), Ok(RequestShare(0.02)));
        assert_eq!("100%".parse(), Ok(RequestShare(1.0)));
    }

    #[test]
    fn what_is_no_share_is_refused_with_the_mend() {
        for text in ["", "%", "2", "101%", "-1%", "nan", "much"] {
            let line = text.parse::<RequestShare>().unwrap_err().to_string();
            assert!(line.contains("write 2%") && line.lines().count() == 1, "{line}");
        }
    }

    proptest! {
        #[test]
        fn parse_of_print_is_itself(part in 0.0f64..=1.0) {
            prop_assert_eq!(RequestShare(part).to_string().parse(), Ok(RequestShare(part)));
        }
    }
}
