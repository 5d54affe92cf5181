//! The lines of `attack.cr`, digit for digit: what that tool calls latency is our response time.

use std::fmt::Write as _;

use model::{BadResponse, Exchange, Outcome};

use super::csv::error_word;

/// Appends `request 99 status=200 latency=1006.335446ms`; without an answer `request 7 error=timed_out after=20000.0ms`,
/// and of a bad response `request 8 error=bad_response after=1.5ms reason=trailing_bytes`.
///
/// The number is as Crystal prints an f64: the shortest digits that read back as it, one decimal at the least. It does
/// so plainly from 0.0001 on; a shorter time, which no answer has, Rust prints plainly down to 0.00001.
pub fn write_attack_line(out: &mut String, number: u64, exchange: &Exchange, reason: Option<BadResponse>) {
    let milliseconds = exchange.response_time().as_millis_f64();
    // Writing to a String does not fail.
    _ = match exchange.outcome {
        Outcome::Answered(status) => write!(out, "request {number} status={status} latency={milliseconds:?}ms"),
        other => write!(out, "request {number} error={} after={milliseconds:?}ms", error_word(other)),
    };
    _ = match reason {
        Some(reason) => writeln!(out, " reason={}", reason.name()),
        None => writeln!(out),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;

    fn line(number: u64, nanos: u64, outcome: Outcome) -> String {
        line_with(number, nanos, outcome, None)
    }

    fn line_with(number: u64, nanos: u64, outcome: Outcome, reason: Option<BadResponse>) -> String {
        let due = Nanos(5);
        let exchange = Exchange { due, sent: due, ended: due + Nanos(nanos), received_bytes: 1, outcome };
        let mut out = String::new();
        write_attack_line(&mut out, number, &exchange, reason);
        out
    }

    #[test]
    fn published_lines_come_out_digit_for_digit() {
        let ok = Outcome::Answered(200);
        assert_eq!(line(99, 1_006_335_446, ok), "request 99 status=200 latency=1006.335446ms\n");
        assert_eq!(line(101, 1_006_624_410, ok), "request 101 status=200 latency=1006.62441ms\n");
        assert_eq!(line(11, 2_058_582_800, ok), "request 11 status=200 latency=2058.5828ms\n");
        assert_eq!(line(1, 1_000_000_000, ok), "request 1 status=200 latency=1000.0ms\n");
    }

    #[test]
    fn an_answer_that_is_not_good_has_a_status_and_no_answer_has_a_kind() {
        assert_eq!(line(3, 1_500_000, Outcome::Answered(503)), "request 3 status=503 latency=1.5ms\n");
        assert_eq!(line(7, 20_000_000_000, Outcome::TimedOut), "request 7 error=timed_out after=20000.0ms\n");
        let bad = line_with(8, 1_500_000, Outcome::BadResponse, Some(BadResponse::TrailingBytes));
        assert_eq!(bad, "request 8 error=bad_response after=1.5ms reason=trailing_bytes\n");
    }
}
