//! Numbers of a claim as text.
//!
//! A figure that somebody printed is shown with the digits that it had, up to six; one that was computed with three, as
//! everywhere.

use model::Nanos;
use report::number::{self, fixed};

/// A figure that was printed, with its own digits.
fn printed(value: f64) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let text = fixed(value, (5 - magnitude).clamp(0, 9) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A time that was printed: `2.31 ms`, from 10 s on `20.0037 s`.
pub(crate) fn printed_time(seconds: f64) -> String {
    if seconds >= 10.0 { format!("{} s", printed(seconds)) } else { format!("{} ms", printed(seconds * 1e3)) }
}

/// Requests per second that were printed: `4880.11/s`.
pub(crate) fn printed_rate(per_second: f64) -> String {
    format!("{}/s", printed(per_second))
}

/// A time that was computed: `0.820 ms`, `10.9 ms`.
pub(crate) fn time(seconds: f64) -> String {
    number::time(Nanos::from_secs_f64(seconds))
}

/// As [`time`], to the hundredth of a millisecond, where the evidence needs it: `485.85 ms`.
pub(crate) fn exact_time(seconds: f64) -> String {
    format!("{} ms", fixed(seconds * 1e3, 2))
}

/// Requests per second that were computed: `91.3/s`.
pub(crate) fn rate(per_second: f64) -> String {
    format!("{}/s", number::rate(per_second))
}

/// A fraction in percent: `2.75 %`.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{} %", number::percent(fraction))
}
