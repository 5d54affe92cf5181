//! What the sink does on purpose besides its delays (`model::DelayLaw`): pauses in which nothing
//! goes out, and faults. Each is a pure function of the seed and the request's number, so that a
//! client's ledger can be compared with what was done to it, exactly.

use std::str::FromStr;

use model::{DrawStream, Nanos, RequestShare, draw};

/// Stop-the-world pauses at every multiple of a time, counted from the sink's start. A response
/// that would be sent during a pause is sent at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallLaw {
    every: Nanos,
    length: Nanos,
}

impl StallLaw {
    /// A pause of `length` at `every`, twice `every` and so on; `None` if there would be no time
    /// between pauses.
    pub fn new(every: Nanos, length: Nanos) -> Option<StallLaw> {
        (length < every).then_some(StallLaw { every, length })
    }

    /// When a response due at `at`, since the sink's start, is sent.
    pub fn release(&self, at: Nanos) -> Nanos {
        let into = Nanos(at.0 % self.every.0);
        if at >= self.every && into < self.length { at - into + self.length } else { at }
    }
}

impl FromStr for StallLaw {
    type Err = String;

    fn from_str(text: &str) -> Result<StallLaw, String> {
        let parts = text
            .split_once(':')
            .and_then(|(every, length)| Some((every.parse().ok()?, length.parse().ok()?)));
        parts.and_then(|(every, length)| StallLaw::new(every, length)).ok_or_else(|| {
            format!(
                "'{text}' is not a stall: write 1s:100ms, a pause of 100ms every second (the \
                 pause must be the shorter)"
            )
        })
    }
}

/// A fault, and the share of requests that have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultLaw {
    /// The fault.
    pub fault: Fault,
    /// The share of requests.
    pub share: RequestShare,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is reset in place of a response. On a Unix socket, which knows no reset, it
    /// is closed.
    Reset,
    /// The response is cut in the middle of its body, and the connection closed. Where there is no
    /// body, in its head.
    Truncate,
    /// There is no response, and the connection stays open.
    NoAnswer,
    /// Another status than 200.
    Status(u16),
}

/// The fault of request `number`, if it has one.
#[inline]
pub(crate) fn fault_of(laws: &[FaultLaw], seed: u64, number: u64) -> Option<Fault> {
    if laws.is_empty() {
        return None;
    }
    let u = draw(seed, DrawStream::Fault, number);
    let mut bound = 0.0;
    laws.iter().find_map(|FaultLaw { fault, share }| {
        bound += share.part();
        // A share of 0 never happens, whatever the rounding of the sum before it.
        (u <= bound && share.part() > 0.0).then_some(*fault)
    })
}

/// `503:1%`: responses with another status.
impl FromStr for FaultLaw {
    type Err = String;

    fn from_str(text: &str) -> Result<FaultLaw, String> {
        let parts = text
            .split_once(':')
            .and_then(|(code, share)| Some((code.parse().ok()?, share.parse().ok()?)));
        let is_good = |code: &u16| (200..600).contains(code) && ![204, 205, 304].contains(code);
        let (code, share) = parts.filter(|(code, _)| is_good(code)).ok_or_else(|| {
            format!(
                "'{text}' is not a status and its share: write 503:1% (200 to 599, but not 204, \
                 205 or 304, which have no body)"
            )
        })?;
        Ok(FaultLaw { fault: Fault::Status(code), share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pauses_keep_the_order_and_release_nothing_early(
            every in 1u64..1000, part in 0.0f64..1.0, a in 0u64..5000, b in 0u64..5000,
        ) {
            let stalls = StallLaw::new(Nanos(every), Nanos((every as f64 * part) as u64)).unwrap();
            let first = stalls.release(Nanos(a.min(b)));
            let second = stalls.release(Nanos(a.max(b)));
            prop_assert!(first <= second && first.0 >= a.min(b));
            prop_assert_eq!(stalls.release(first), first);
        }
    }

    #[test]
    fn a_response_due_in_a_pause_is_sent_at_its_end() {
        let stalls: StallLaw = "1s:100ms".parse().unwrap();
        let released = |ms| stalls.release(Nanos::from_millis(ms)).0 / 1_000_000;
        assert_eq!(
            [0, 50, 999, 1000, 1099, 1100, 1101, 5020].map(released),
            [0, 50, 999, 1100, 1100, 1100, 1101, 5100]
        );
    }

    fn share(text: &str) -> RequestShare {
        text.parse().unwrap()
    }

    fn laws(laws: &[(Fault, &str)]) -> Vec<FaultLaw> {
        laws.iter().map(|(fault, text)| FaultLaw { fault: *fault, share: share(text) }).collect()
    }

    #[test]
    fn each_fault_has_its_share() {
        let expected = [
            (Fault::Reset, "1%"),
            (Fault::Truncate, "2%"),
            (Fault::NoAnswer, "0.5%"),
            (Fault::Status(503), "3%"),
            (Fault::Status(500), "1%"),
        ];
        let faults = laws(&expected);
        let count = 200_000;
        for seed in 1..=5 {
            let of = |wanted| {
                (0..count).filter(|number| fault_of(&faults, seed, *number) == wanted).count()
                    as f64
            };
            let shares = expected.iter().map(|(fault, text)| (Some(*fault), share(text).part()));
            for (fault, part) in shares.chain([(None, 0.925)]) {
                let deviations =
                    (of(fault) - count as f64 * part) / (count as f64 * part * (1.0 - part)).sqrt();
                assert!(deviations.abs() < 3.5, "seed {seed}, {fault:?}: {deviations} deviations");
            }
        }
    }

    #[test]
    fn shares_of_all_and_none_are_exact() {
        let all = laws(&[(Fault::Reset, "0"), (Fault::Truncate, "100%"), (Fault::NoAnswer, "0%")]);
        assert!((0..10_000).all(|number| fault_of(&all, 1, number) == Some(Fault::Truncate)));
        assert!((0..10_000).all(|number| fault_of(&[], 1, number).is_none()));
    }
}
