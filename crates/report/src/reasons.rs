//! Why answers were bad, and how long those of a wrong length were: what is said beside the errors by kind, of a load, a sweep and bodies.

use std::cmp::Reverse;

use model::{BadResponses, Outcome, Tally, WrongLengths};

use crate::{facts, number};

/// Each reason, the most frequent first, with its number of requests in brackets where there are several:
/// `the response's chunked body is malformed (37), bytes after the end of the response (3)`. `None` where none is known.
pub fn bad_responses(reasons: &BadResponses) -> Option<String> {
    let mut all: Vec<_> = reasons.iter().collect();
    all.sort_by_key(|(_, requests)| Reverse(*requests));
    match &all[..] {
        [] => None,
        [(reason, _)] => Some(reason.to_string()),
        _ => Some(facts::listed(all.iter().map(|(reason, n)| format!("{reason} ({})", number::count(*n))))),
    }
}

/// What more is known of the requests that ended in `outcome` than their number.
pub(crate) fn of(tally: &Tally, outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::BadResponse => bad_responses(&tally.bad_responses),
        Outcome::WrongLength => tally.wrong_lengths.map(wrong_lengths),
        _ => None,
    }
}

/// `10240 bytes wanted, 0 to 5120 came`. All digits: a length may be wrong by one.
fn wrong_lengths(lengths: WrongLengths) -> String {
    let WrongLengths { wanted_bytes, shortest_bytes, longest_bytes } = lengths;
    let came = if shortest_bytes == longest_bytes {
        number::count(shortest_bytes)
    } else {
        format!("{} to {}", number::count(shortest_bytes), number::count(longest_bytes))
    };
    format!("{} wanted, {came} came", number::count_of(wanted_bytes, "byte"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{BadResponse, Nanos};

    #[test]
    fn one_reason_needs_no_number_and_none_no_words() {
        let mut reasons = BadResponses::default();
        assert_eq!(bad_responses(&reasons), None);
        reasons.record(BadResponse::ContentLength, 37);
        let length = "the response's Content-Length is not a number, or there are two";
        assert_eq!(bad_responses(&reasons).unwrap(), length);
        reasons.record(BadResponse::TrailingBytes, 3);
        reasons.record(BadResponse::NotHttp, 1);
        let rest = "bytes after the end of the response (3), the response is not HTTP/1.1 (1)";
        assert_eq!(bad_responses(&reasons).unwrap(), format!("{length} (37), {rest}"));
    }

    #[test]
    fn lengths_are_told_to_the_byte() {
        let mut tally = Tally::new(model::tally::Window { from: Nanos::ZERO, until: Nanos::MAX }, 1);
        let of = |tally: &Tally| of(tally, Outcome::WrongLength);
        assert_eq!(of(&tally), None);
        tally.record_wrong_length(10_240, 10_239);
        assert_eq!(of(&tally).unwrap(), "10240 bytes wanted, 10239 came");
        tally.record_wrong_length(10_240, 0);
        assert_eq!(of(&tally).unwrap(), "10240 bytes wanted, 0 to 10239 came");
    }
}
