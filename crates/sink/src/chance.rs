//! Chance, as a pure function of the seed and the request's number; and how much of it.

use std::fmt;
use std::str::FromStr;

use model::pace::uniform;

/// The seeded draws. Each law has its own stream of the one seed, so that switching a fault on does not change the
/// delays; and each draw is the request's, whichever thread serves it and whenever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrawStream {
    /// How long a request takes.
    Delay,
    /// What goes wrong with it.
    Fault,
    /// Which worker a connection belongs to.
    Worker,
}

/// The `number`-th draw of that stream, from (0, 1].
pub(crate) fn draw(seed: u64, stream: DrawStream, number: u64) -> f64 {
    // `uniform` mixes the seed, so neighbours are strangers.
    uniform(seed.wrapping_mul(4).wrapping_add(stream as u64), number)
}

/// A part of all requests, from none (0) to all (1); a person writes `2%` or `0.02`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct RequestShare(f64);

impl RequestShare {
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

impl FromStr for RequestShare {
    type Err = String;

    fn from_str(text: &str) -> Result<RequestShare, String> {
        let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
        let number: Option<f64> = number.parse().ok();
        number
            .and_then(|number| RequestShare::new(number / whole))
            .ok_or_else(|| format!("'{text}' is not a share of all requests: write 2% or 0.02, from 0 to 100%"))
    }
}
