//! The only place where a number becomes text.
//!
//! Tables show three to four significant digits: more would claim a precision that a run does not
//! have, fewer would hide a difference that matters. An unknown number is shown as [`NONE`], never
//! as 0.

use crate::Nanos;

/// The text for a missing number.
pub const NONE: &str = "-";

/// The value as `shown` formats it, or [`NONE`].
pub fn or_none<T>(value: Option<T>, shown: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), shown)
}

/// Three to four significant digits, thousandths at the finest: `0.043`, `1.23`, `12.3`, `123`,
/// `1234`.
pub fn significant(value: f64) -> String {
    // The bounds are where rounding would add a digit: 9.996 is 10.0, not 10.00.
    let decimals = match value {
        99.95.. => 0,
        9.995.. => 1,
        0.9995.. => 2,
        _ => 3,
    };
    fixed(value, decimals)
}

/// A quantity of unknown kind: like [`significant`], but a value above 0 is never shown as 0.
pub fn anything(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (0.001..1e9).contains(&size) {
        or_zero(
            value,
            |value| if value.fract() == 0.0 { fixed(value, 0) } else { significant(value) },
        )
    } else {
        format!("{value:.2e}")
    }
}

/// With exactly `decimals` decimals; a value that rounds to zero has no sign.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.starts_with('-') && text.bytes().all(|b| b"-0.".contains(&b)) {
        text[1..].to_owned()
    } else {
        text
    }
}

/// A time in a column headed ms: `0.043` to `99999`; from 100 s on in seconds with their unit:
/// `120s`.
pub fn milliseconds(time: Nanos) -> String {
    if time >= Nanos(99_999_500_000) {
        format!("{:.0}s", time.as_secs_f64())
    } else {
        significant(time.as_millis_f64())
    }
}

/// The same of a number of milliseconds.
pub fn of_millis(millis: f64) -> String {
    milliseconds(Nanos((millis * 1e6) as u64))
}

/// A time in seconds with four decimals, as hey prints it: `0.2010`.
pub fn seconds(time: Nanos) -> String {
    fixed(time.as_secs_f64(), 4)
}

/// A time in a sentence: `0.043 ms`, `200 ms`, `12.3 s`.
pub fn time(time: Nanos) -> String {
    if time >= Nanos(9_999_500_000) {
        format!("{} s", significant(time.as_secs_f64()))
    } else {
        format!("{} ms", significant(time.as_millis_f64()))
    }
}

/// How long something took, in a sentence: `785 ms`, `3.00 s`, `30.0 s`.
pub fn length(span: Nanos) -> String {
    if span >= Nanos(999_500_000) {
        format!("{} s", significant(span.as_secs_f64()))
    } else {
        time(span)
    }
}

/// 0 is shown as `0`, without decimals.
pub fn or_zero(value: f64, shown: impl Fn(f64) -> String) -> String {
    if value == 0.0 { "0".to_owned() } else { shown(value) }
}

/// A span in a sentence, exactly as the user gave it: `30 s`, `1.5 s`, `200 ms`.
pub fn span(span: Nanos) -> String {
    let text = span.to_string();
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

/// A percentile by its usual name: `p50`, `p99.9`.
pub fn percentile(quantile: f64) -> String {
    let percent = format!("{:.4}", quantile * 100.0);
    format!("p{}", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// Requests per second: `0.500`, `97.0`, `9712`, `1.23M`.
pub fn rate(per_second: f64) -> String {
    if per_second >= 999_999.5 {
        format!("{}M", significant(per_second / 1e6))
    } else {
        significant(per_second)
    }
}

/// A rate in a sentence, without trailing zeros: `97.4`, `100`, `0.5`.
pub fn rate_in_words(per_second: f64) -> String {
    let text = rate(per_second);
    if text.contains('.') && !text.ends_with('M') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A ratio: two decimals up to 100, so that small differences from 1 line up: `0.98`, `1.02`,
/// `12.34`, `123.4`.
pub fn times(ratio: f64) -> String {
    let decimals = match ratio {
        ..99.995 => 2,
        99.995..999.95 => 1,
        _ => 0,
    };
    fixed(ratio, decimals)
}

/// Connections / slots, as in Puma's tables: `1.50`.
pub fn multiple(multiple: f64) -> String {
    fixed(multiple, 2)
}

/// A fraction in percent: `97.0`, `100`.
pub fn percent(fraction: f64) -> String {
    significant(fraction * 100.0)
}

/// A fraction in percent with one decimal, for columns of shares and deviations: `25.0`, `6.3`,
/// `-3.6`.
pub fn percent_tenths(fraction: f64) -> String {
    fixed(fraction * 100.0, 1)
}

/// Like `percent_tenths`, with a sign: `+6.3`, `-3.6`, `0.0`.
pub fn deviation(fraction: f64) -> String {
    let text = percent_tenths(fraction);
    if text.starts_with('-') || text == "0.0" { text } else { format!("+{text}") }
}

/// How many of something, in a sentence: `1 thread`, `2 threads`, `2 processes`.
pub fn count_of(n: impl Into<u64>, one: &str) -> String {
    let n = n.into();
    let ending = match n {
        1 => "",
        _ if one.ends_with('s') => "es",
        _ => "s",
    };
    format!("{n} {one}{ending}")
}

/// Minutes and whole seconds, as a clock shows them: `4:27`.
pub fn minutes(time: Nanos) -> String {
    let seconds = time.0 / 1_000_000_000;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// A total time: `24.0 s`, from a minute on `4:27`.
pub fn elapsed(time: Nanos) -> String {
    if time < Nanos::from_secs(60) { length(time) } else { minutes(time) }
}

/// All digits of the value and no more: `0.2`.
pub fn shortest(value: f64) -> String {
    value.to_string()
}

/// A rate of bytes in a column headed MB/s (a million bytes per second): `0.043`, `12.3`, `1234`.
pub fn megabytes(bytes: f64) -> String {
    significant(bytes / 1e6)
}

/// A mean: `10240` if it is a whole number, otherwise with two decimals: `10239.47`.
pub fn exact(mean: f64) -> String {
    fixed(mean, if mean.fract() == 0.0 { 0 } else { 2 })
}

/// A number of bytes, or of bytes per second: `512 B`, `1.23 KiB`, `38.1 MiB`.
pub fn bytes(bytes: f64) -> String {
    let mut size = bytes;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if size >= 1023.5 {
            size /= 1024.0;
            unit = larger;
        }
    }
    if unit == "B" {
        format!("{} B", fixed(size, 0))
    } else {
        format!("{} {unit}", significant(size))
    }
}

/// The memory of a process: `40.6 MB` (a million bytes), as a column headed MB has it.
pub fn memory(bytes: f64) -> String {
    format!("{} MB", significant(bytes / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Shown = fn(f64) -> String;

    #[test]
    fn every_format_is_right_on_both_sides_of_its_bounds() {
        let nanos = |value: f64| Nanos(value as u64);
        let rows: [(Shown, &str); 12] = [
            (
                significant,
                "0=0.000 0.0434=0.043 0.9994=0.999 0.9996=1.00 1.234=1.23 9.994=9.99 9.996=10.0 \
                 99.94=99.9 99.96=100 123.4=123 1234.4=1234",
            ),
            // A time fits five characters up to ten thousand seconds.
            (
                |it| milliseconds(Nanos(it as u64)),
                "43e3=0.043 200400e3=200 99999499999=99999 99999500000=100s 9999e9=9999s",
            ),
            (percentile, "0.5=p50 0.99=p99 0.999=p99.9 0.9999=p99.99"),
            (|it| or_zero(it, rate), "0=0 0.5=0.500"),
            (exact, "10240=10240 10239.466=10239.47"),
            (megabytes, "0=0.000 13.8e6=13.8 5200e6=5200"),
            // There is no minus zero.
            (|it| fixed(it, 1), "-0.04=0.0 -0.06=-0.1"),
            (deviation, "-0.0004=0.0"),
            (rate, "97.04=97.0 9712.4=9712 1234000=1.23M"),
            (rate_in_words, "100=100 97.04=97 12.5=12.5"),
            // Ratios line up to a hundred.
            (times, "0.984=0.98 99.994=99.99 99.996=100.0 999.96=1000"),
            // A clock shows whole seconds, rounded down.
            (|it| minutes(Nanos(it as u64)), "267.9e9=4:27 3661e9=61:01"),
        ];
        for (shown, row) in rows {
            for (value, text) in row.split(' ').map(|cell| cell.split_once('=').unwrap()) {
                assert_eq!(shown(value.parse().unwrap()), text, "{value}");
            }
        }
        assert_eq!(
            [30e9, 1.5e9, 200e6, 0.0].map(nanos).map(span),
            ["30 s", "1.5 s", "200 ms", "0 s"]
        );
        assert_eq!([785e6, 3e9].map(nanos).map(length), ["785 ms", "3.00 s"]);
        assert_eq!(
            [0.0, 1023.0, 1024.0, 39_981_000.0].map(bytes),
            ["0 B", "1023 B", "1.00 KiB", "38.1 MiB"]
        );
    }
}
