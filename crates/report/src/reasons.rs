//! Why answers were bad, and how long those of a wrong length were: what is said beside the errors by kind, of a load, a sweep and bodies.

use model::{BadResponses, Outcome, Tally, WrongLengths, counts};

use crate::number;

/// Each reason, with its number of requests in brackets where there are several:
/// `the response's chunked body is malformed (37), bytes after the end of the response (3)`. `None` where none is known.
pub fn bad_responses(reasons: &BadResponses) -> Option<String> {
    let is_one = reasons.iter().len() == 1;
    let words =
        reasons.iter().map(
            |(reason, requests)| {
                if is_one { reason.to_string() } else { format!("{reason} ({})", number::count(requests)) }
            },
        );
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// A sentence for each kind of error of which more is known than its number: `bad response: the response is not HTTP/1.1`.
pub(crate) fn of_errors(tally: &Tally) -> Vec<String> {
    let reasons = bad_responses(&tally.bad_responses).map(|reasons| said(Outcome::BadResponse, &reasons));
    let lengths = tally.wrong_lengths.map(|lengths| said(Outcome::WrongLength, &wrong_lengths(lengths)));
    reasons.into_iter().chain(lengths).collect()
}

fn said(outcome: Outcome, what: &str) -> String {
    format!("{}: {what}", counts::name(outcome).replace('_', " "))
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
        assert_eq!(bad_responses(&reasons).unwrap(), format!("{length} (37), bytes after the end of the response (3)"));
    }

    #[test]
    fn lengths_are_told_to_the_byte() {
        let mut tally = Tally::new(model::tally::Window { from: Nanos::ZERO, until: Nanos::MAX }, 1);
        assert!(of_errors(&tally).is_empty());
        tally.record_wrong_length(10_240, 10_239);
        assert_eq!(of_errors(&tally), ["wrong length: 10240 bytes wanted, 10239 came"]);
        tally.record_wrong_length(10_240, 0);
        assert_eq!(of_errors(&tally), ["wrong length: 10240 bytes wanted, 0 to 10239 came"]);
    }
}
