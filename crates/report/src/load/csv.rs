//! The log, one line a request: exact to the nanosecond and so not rounded as tables are, and written without
//! allocating.

use std::fmt::Write as _;

use model::{Exchange, Nanos, Outcome};

/// The names of the columns, with the end of the line.
pub fn csv_header() -> &'static str {
    "request,due_s,sent_s,ended_s,response_time_ms,service_time_ms,send_lag_ms,status_or_error,bytes\n"
}

/// Appends the line of request `number`. Instants are counted from `start`; before it (warm-up) they are negative.
pub fn write_csv(out: &mut String, number: u64, exchange: &Exchange, start: Nanos) {
    // Writing to a String does not fail.
    _ = write!(out, "{number},");
    for instant in [exchange.due, exchange.sent, exchange.ended] {
        let (sign, span) = if instant < start { ("-", start - instant) } else { ("", instant - start) };
        _ = write!(out, "{sign}{}.{:09},", span.0 / 1_000_000_000, span.0 % 1_000_000_000);
    }
    for span in [exchange.response_time(), exchange.service_time(), exchange.send_lag()] {
        _ = write!(out, "{}.{:06},", span.0 / 1_000_000, span.0 % 1_000_000);
    }
    _ = match exchange.outcome {
        Outcome::Answered(status) => write!(out, "{status}"),
        other => out.write_str(error_word(other)),
    };
    _ = writeln!(out, ",{}", exchange.received_bytes);
}

/// The name of an outcome without a status, as in [`model::counts::name`], which allocates.
pub(crate) fn error_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered(_) => "answered",
        Outcome::Refused => "connect_refused",
        Outcome::ConnectFailed => "connect_failed",
        Outcome::Reset => "reset",
        Outcome::Closed => "closed_early",
        Outcome::TimedOut => "timed_out",
        Outcome::BadResponse => "bad_response",
        Outcome::InFlight => "in_flight_at_end",
        Outcome::Skipped => "skipped",
        Outcome::WrongLength => "wrong_length",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Exchange = Exchange {
        due: Nanos(1_500_000_000),
        sent: Nanos(1_500_012_345),
        ended: Nanos(2_506_335_446),
        received_bytes: 120,
        outcome: Outcome::Answered(200),
    };

    #[test]
    fn a_line_is_exact_to_the_nanosecond() {
        let mut out = String::new();
        write_csv(&mut out, 7, &SLOW, Nanos::from_secs(1));
        assert_eq!(out, "7,0.500000000,0.500012345,1.506335446,1006.335446,1006.323101,0.012345,200,120\n");
        assert_eq!(out.split(',').count(), csv_header().split(',').count());
    }

    #[test]
    fn what_was_due_before_the_start_is_negative() {
        let mut out = String::new();
        write_csv(&mut out, 0, &Exchange { outcome: Outcome::TimedOut, ..SLOW }, Nanos::from_secs(2));
        assert_eq!(out, "0,-0.500000000,-0.499987655,0.506335446,1006.335446,1006.323101,0.012345,timed_out,120\n");
    }

    #[test]
    fn the_words_are_those_of_the_file() {
        let others = [
            Outcome::Refused,
            Outcome::ConnectFailed,
            Outcome::Reset,
            Outcome::Closed,
            Outcome::TimedOut,
            Outcome::BadResponse,
            Outcome::InFlight,
            Outcome::Skipped,
            Outcome::WrongLength,
        ];
        for outcome in others {
            assert_eq!(error_word(outcome), model::counts::name(outcome));
        }
    }
}
