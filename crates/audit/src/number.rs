//! The only place of this crate where a number becomes text.
//!
//! A figure that somebody printed is shown with the digits that it had, up to six; one that was computed with three or
//! four.

/// Significant digits of what was computed.
const COMPUTED: i32 = 3;
/// And at most of what was printed.
const PRINTED: i32 = 6;

/// Without an exponent, with so many significant digits, at most nine decimals.
fn significant(value: f64, digits: i32) -> String {
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let decimals = (digits - 1 - magnitude).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

/// Without the zeros at its end.
fn trimmed(text: &str) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
}

/// A time in the unit that a person would take; from 10 s on seconds.
fn in_unit(seconds: f64, digits: i32, shown: impl Fn(&str) -> String) -> String {
    if seconds >= 10.0 {
        format!("{} s", shown(&significant(seconds, digits)))
    } else {
        format!("{} ms", shown(&significant(seconds * 1e3, digits)))
    }
}

/// A time that was printed: `2.31 ms`.
pub(crate) fn printed_time(seconds: f64) -> String {
    in_unit(seconds, PRINTED, trimmed)
}

/// A time that was computed: `0.820 ms`, `10.9 ms`.
pub(crate) fn time(seconds: f64) -> String {
    in_unit(seconds, COMPUTED, str::to_owned)
}

/// As [`time`], with five digits, where the evidence needs them: `485.85 ms`.
pub(crate) fn exact_time(seconds: f64) -> String {
    in_unit(seconds, 5, str::to_owned)
}

/// Requests per second that were printed: `4880.11/s`.
pub(crate) fn printed_rate(per_second: f64) -> String {
    format!("{}/s", trimmed(&significant(per_second, PRINTED)))
}

/// Requests per second that were computed: `91.26/s`.
pub(crate) fn rate(per_second: f64) -> String {
    format!("{}/s", significant(per_second, 4))
}

/// A number of requests under way: `11.3`.
pub(crate) fn in_flight(n: f64) -> String {
    significant(n, COMPUTED)
}

/// How many times: `2.82`.
pub(crate) fn times(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// A fraction in percent: `2.75 %`.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{} %", trimmed(&significant(fraction * 100.0, COMPUTED)))
}

/// Percentage points: `0.935`.
pub(crate) fn points(points: f64) -> String {
    format!("{points:.3}")
}

/// A percentile by its usual name: `p99.9`.
pub(crate) fn percentile(quantile: f64) -> String {
    format!("p{}", trimmed(&format!("{:.4}", quantile * 100.0)))
}

/// How many of something: `1 claim`, `2 claims`.
pub(crate) fn count_of(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// A sum or a product that should have been a count: `824106`, `111753.5`.
pub(crate) fn sum(value: f64) -> String {
    trimmed(&format!("{value:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_figures_keep_their_digits_and_computed_ones_have_three() {
        assert_eq!([printed_time(2.31e-3), printed_time(20.0037), printed_time(0.0)], ["2.31 ms", "20.0037 s", "0 ms"]);
        assert_eq!([time(0.000_819_7), time(0.010_895), time(0.0)], ["0.820 ms", "10.9 ms", "0.00 ms"]);
        assert_eq!([printed_rate(4880.11), rate(91.263), rate(9.7251)], ["4880.11/s", "91.26/s", "9.725/s"]);
        assert_eq!([percent(0.0275), percent(0.2), percentile(0.999)], ["2.75 %", "20 %", "p99.9"]);
        assert_eq!([sum(824_106.0), sum(0.5), count_of(1, "claim")], ["824106", "0.5", "1 claim"]);
    }
}
