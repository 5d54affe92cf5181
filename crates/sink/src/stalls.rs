//! Stop-the-world pauses: at every whole multiple of a time, for a while, nothing goes out. A pure function of the
//! instant, counted from the sink's start.

use std::fmt;
use std::str::FromStr;

use model::Nanos;
use thiserror::Error;

/// The pauses. What would go out in one goes out at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    every: Nanos,
    length: Nanos,
}

impl Stalls {
    /// A pause of `length` at `every`, twice `every` and so on; `None` where the pauses would leave nothing between.
    pub fn new(every: Nanos, length: Nanos) -> Option<Stalls> {
        (length < every).then_some(Stalls { every, length })
    }

    /// When that goes out which would go out at `at`, since the sink's start.
    pub fn release(&self, at: Nanos) -> Nanos {
        let into = Nanos(at.0 % self.every.0);
        if at >= self.every && into < self.length { at - into + self.length } else { at }
    }
}

/// Parses to itself.
impl fmt::Display for Stalls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.every, self.length)
    }
}

/// Why a text names no pauses.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is not a stall: write 1s:100ms, a pause of 100ms every second (the pause must be the shorter)")]
pub struct BadStalls(String);

impl FromStr for Stalls {
    type Err = BadStalls;

    fn from_str(text: &str) -> Result<Stalls, BadStalls> {
        let parts = text.split_once(':').and_then(|(every, length)| Some((every.parse().ok()?, length.parse().ok()?)));
        parts.and_then(|(every, length)| Stalls::new(every, length)).ok_or_else(|| BadStalls(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_falls_into_a_pause_goes_out_at_its_end() {
        let stalls: Stalls = "1s:100ms".parse().unwrap();
        let released = |ms| stalls.release(Nanos::from_millis(ms)).0 / 1_000_000;
        assert_eq!(
            [0, 50, 999, 1000, 1099, 1100, 1101, 5020].map(released),
            [0, 50, 999, 1100, 1100, 1100, 1101, 5100]
        );
    }

    #[test]
    fn what_is_no_stall_is_refused_with_the_mend() {
        for text in ["", "1s", "1s:", "1s:1s", "0s:0s", "100ms:1s", "a:b"] {
            let line = text.parse::<Stalls>().unwrap_err().to_string();
            assert!(line.contains("write 1s:100ms") && line.lines().count() == 1, "{line}");
        }
    }

    proptest! {
        #[test]
        fn order_is_kept_and_nothing_goes_out_early(every in 1u64..1000, part in 0.0f64..1.0, a in 0u64..5000, b in 0u64..5000) {
            let stalls = Stalls::new(Nanos(every), Nanos((every as f64 * part) as u64)).unwrap();
            let (first, second) = (stalls.release(Nanos(a.min(b))), stalls.release(Nanos(a.max(b))));
            prop_assert!(first <= second && first.0 >= a.min(b));
            prop_assert_eq!(stalls.release(first), first);
            prop_assert_eq!(stalls.to_string().parse(), Ok(stalls));
        }
    }
}
