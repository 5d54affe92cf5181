//! Request logs with a line for each request, and their distributions as an `HdrHistogram` log.
//!
//! A line is CSV or that of `attack.cr`, a load generator in Crystal. Both are exact to the
//! nanosecond, and are written without allocating. What `attack.cr` calls latency is our response
//! time.
//!
//! The `HdrHistogram` log has version 1.3 and V2 compressed histograms. It has one interval, the
//! measured window, under the tags `response` and `service`, and holds good responses only. Times
//! are in nanoseconds, except for the column `Interval_Max`, which is in milliseconds.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram as Buckets;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use jiff::Timestamp;
use model::{BadResponse, Exchange, Histogram, LoadStudy, Nanos, Outcome, counts};

/// The names of the columns, with a line end.
pub fn csv_header() -> &'static str {
    "request,due_s,sent_s,ended_s,response_time_ms,service_time_ms,send_lag_ms,status_or_error,bytes,reason\n"
}

/// Appends the line of request `number`. Instants are relative to `start`, and negative in the
/// warm-up. A field is empty if there is nothing, such as the sending of a skipped request or
/// the reason of a good response.
pub fn write_csv(
    out: &mut String,
    number: u64,
    exchange: &Exchange,
    reason: Option<BadResponse>,
    start: Nanos,
) {
    let is_skipped = exchange.outcome == Outcome::Skipped;
    // If nothing was sent, `sent` equals `ended`. A request with a response was sent.
    let is_unsent =
        exchange.sent == exchange.ended && !matches!(exchange.outcome, Outcome::Answered(_));
    // Writing to a String does not fail.
    _ = write!(out, "{number},");
    for (instant, is_none) in
        [(exchange.due, false), (exchange.sent, is_unsent), (exchange.ended, is_skipped)]
    {
        let (sign, span) =
            if instant < start { ("-", start - instant) } else { ("", instant - start) };
        _ = if is_none {
            out.write_str(",")
        } else {
            write!(out, "{sign}{}.{:09},", span.0 / 1_000_000_000, span.0 % 1_000_000_000)
        };
    }
    let spans = [
        (exchange.response_time(), is_skipped),
        (exchange.service_time(), is_unsent),
        (exchange.send_lag(), is_unsent),
    ];
    for (span, is_none) in spans {
        _ = if is_none {
            out.write_str(",")
        } else {
            write!(out, "{}.{:06},", span.0 / 1_000_000, span.0 % 1_000_000)
        };
    }
    _ = match exchange.outcome {
        Outcome::Answered(status) => write!(out, "{status}"),
        other => out.write_str(counts::word(other)),
    };
    _ = writeln!(out, ",{},{}", exchange.received_bytes, reason.map_or("", BadResponse::name));
}

/// Appends `request 99 status=200 latency=1006.335446ms`; without a response `request 7
/// error=timed_out after=20000.0ms`, and for a bad response `request 8 error=bad_response
/// after=1.5ms reason=trailing_bytes`.
///
/// The number is written as Crystal writes an f64: with the fewest digits that read back as the
/// same number, and at least one decimal. Rust writes one below 0.0001 ms otherwise, but no
/// response is that fast.
pub fn write_attack_line(
    out: &mut String,
    number: u64,
    exchange: &Exchange,
    reason: Option<BadResponse>,
) {
    let milliseconds = exchange.response_time().as_millis_f64();
    // Writing to a String does not fail.
    _ = match exchange.outcome {
        Outcome::Answered(status) => {
            write!(out, "request {number} status={status} latency={milliseconds:?}ms")
        }
        other => {
            write!(out, "request {number} error={} after={milliseconds:?}ms", counts::word(other))
        }
    };
    _ = match reason {
        Some(reason) => writeln!(out, " reason={}", reason.name()),
        None => writeln!(out),
    };
}

/// The `HdrHistogram` log of a load.
///
/// # Panics
/// Never: the histograms' bounds are valid, and writing to memory does not fail.
pub fn hdr(study: &LoadStudy) -> String {
    let tally = &study.run.tally;
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!("[{}]", study.command_line))
        .add_comment("[times of good responses in ns; Interval_Max in ms]")
        .with_max_value_divisor(1e6);
    if let Ok(started) = study.started_at.parse::<Timestamp>() {
        builder
            .with_start_time(SystemTime::from(started))
            .with_base_time(SystemTime::from(started));
    }
    let mut writer =
        builder.begin_log_with(&mut log, &mut serializer).expect("memory can be written");
    for (tag, times) in [("response", &tally.response_time), ("service", &tally.service_time)] {
        let tag = Tag::new(tag);
        let start = Duration::from(tally.window.from);
        let length = Duration::from(study.run.measured);
        writer
            .write_histogram(&buckets(times), start, length, tag)
            .expect("the range can be written");
    }
    String::from_utf8(log).expect("the log is ASCII but for the command line, which is UTF-8")
}

/// The buckets of a [`Histogram`] in the format's own type.
fn buckets(times: &Histogram) -> Buckets<u64> {
    let mut buckets =
        Buckets::new_with_bounds(1, 3_600_000_000_000, 3).expect("1 ns to 1 h is a valid range");
    for (time, count) in times.buckets() {
        buckets.saturating_record_n(time.0, count);
    }
    buckets
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
    fn a_line_of_csv_is_exact_and_has_empty_fields_for_what_did_not_happen() {
        let [start, later] = [1, 2].map(Nanos::from_secs);
        let refused =
            Exchange { sent: SLOW.ended, received_bytes: 0, outcome: Outcome::Refused, ..SLOW };
        let skipped =
            Exchange { sent: SLOW.due, ended: SLOW.due, outcome: Outcome::Skipped, ..refused };
        let late = Exchange { outcome: Outcome::TimedOut, ..SLOW };
        let bad = Exchange { outcome: Outcome::BadResponse, ..SLOW };
        let mut out = csv_header().to_owned();
        for (exchange, reason, start) in [
            (SLOW, None, start),
            // Due before the start.
            (late, None, later),
            (refused, None, start),
            (skipped, None, start),
            (bad, Some(BadResponse::TrailingBytes), start),
        ] {
            write_csv(&mut out, 7, &exchange, reason, start);
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/log.csv");
        testkit::golden::expect(std::path::Path::new(file), &out);
    }

    #[test]
    fn lines_match_those_of_attack_cr_digit_for_digit() {
        let ok = Outcome::Answered(200);
        let bad = Some(BadResponse::TrailingBytes);
        for (number, nanos, outcome, reason, line) in [
            (99, 1_006_335_446, ok, None, "status=200 latency=1006.335446ms"),
            (101, 1_006_624_410, ok, None, "status=200 latency=1006.62441ms"),
            (11, 2_058_582_800, ok, None, "status=200 latency=2058.5828ms"),
            (1, 1_000_000_000, ok, None, "status=200 latency=1000.0ms"),
            (3, 1_500_000, Outcome::Answered(503), None, "status=503 latency=1.5ms"),
            (7, 20_000_000_000, Outcome::TimedOut, None, "error=timed_out after=20000.0ms"),
            (
                8,
                1_500_000,
                Outcome::BadResponse,
                bad,
                "error=bad_response after=1.5ms reason=trailing_bytes",
            ),
        ] {
            let due = Nanos(5);
            let exchange =
                Exchange { due, sent: due, ended: due + Nanos(nanos), received_bytes: 1, outcome };
            let mut out = String::new();
            write_attack_line(&mut out, number, &exchange, reason);
            assert_eq!(out, format!("request {number} {line}\n"));
        }
    }
}
