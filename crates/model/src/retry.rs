//! A client that tries again when a request has failed ([`RetryPolicy`]).

use std::fmt;
use std::str::FromStr;

use crate::units::text_in_json;
use crate::{Nanos, Outcome};

/// How often a failed request is sent again, and after which pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often at most, after the first attempt.
    pub times: u8,
    /// The time between a failure and the next attempt.
    pub pause: Nanos,
}

/// The most retries that can be asked for.
const MOST_TIMES: u8 = 100;

impl RetryPolicy {
    /// Whether a request that has failed `failed` times, the last time with this outcome, is sent
    /// again. A 4xx is final, except 408 (timeout) and 429 (too many requests).
    pub fn repeats(self, outcome: Outcome, failed: u8) -> bool {
        let may_succeed = match outcome {
            Outcome::Answered(status) => matches!(status, 408 | 429 | 500..),
            Outcome::Refused
            | Outcome::NoRoute
            | Outcome::ConnectTimedOut
            | Outcome::ConnectFailed
            | Outcome::Reset
            | Outcome::Closed
            | Outcome::TimedOut
            | Outcome::BadResponse
            | Outcome::WrongLength => true,
            // Not the server's failures, or the run is over.
            Outcome::NoPort
            | Outcome::NoDescriptor
            | Outcome::InFlight
            | Outcome::Skipped
            | Outcome::NotSent => false,
        };
        may_succeed && failed <= self.times
    }
}

impl FromStr for RetryPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<RetryPolicy, String> {
        let wrong =
            || format!("'{text}' is not N or N:PAUSE: write 3, or 3:1s for a second in between");
        let (times, pause) = match text.split_once(':') {
            Some((times, pause)) => (times, pause.parse().map_err(|_| wrong())?),
            None => (text, Nanos::ZERO),
        };
        let times: u8 = times.trim().parse().map_err(|_| wrong())?;
        if !(1..=MOST_TIMES).contains(&times) {
            return Err(wrong());
        }
        Ok(RetryPolicy { times, pause })
    }
}

impl fmt::Display for RetryPolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.times)?;
        if self.pause > Nanos::ZERO { write!(out, ":{}", self.pause) } else { Ok(()) }
    }
}

text_in_json!(RetryPolicy);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_a_number_and_perhaps_a_pause() {
        for (text, times, pause_ms) in [("3", 3, 0), ("1:200ms", 1, 200), ("5:1s", 5, 1000)] {
            let policy: RetryPolicy = text.parse().unwrap();
            assert_eq!(policy, RetryPolicy { times, pause: Nanos::from_millis(pause_ms) });
            assert_eq!(policy.to_string(), text);
        }
        for wrong in ["", "0", "x", "3:", "3:soon", "200", "-1"] {
            assert!(wrong.parse::<RetryPolicy>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_blames_the_request_is_not_sent_again() {
        let policy: RetryPolicy = "2".parse().unwrap();
        for outcome in [Outcome::TimedOut, Outcome::Answered(503), Outcome::Answered(429)] {
            assert!(policy.repeats(outcome, 1) && policy.repeats(outcome, 2), "{outcome:?}");
            assert!(!policy.repeats(outcome, 3), "{outcome:?}");
        }
        assert!(!policy.repeats(Outcome::Answered(404), 1));
    }
}
