//! Reads times, sizes, rates and counts as the tools write them.

use crate::claim::PrintedPercentile;
use crate::figure::PrintedFigure;

/// Number and unit: `4.32ms` is `4.32` and `ms`.
fn split(word: &str) -> (&str, &str) {
    word.split_at(word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len()))
}

fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        // A micro sign, a Greek mu, and either of them read in the wrong encoding.
        "us" | "µs" | "μs" | "Âµs" | "Î¼s" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

/// A time with its unit, in seconds: `4.32ms`, `5.00m`, `21m47.89s`; compound ones as Go prints
/// them.
pub(super) fn time(word: &str) -> Option<PrintedFigure> {
    let mut rest = word.trim_end_matches([',', ';']);
    let mut sum: Option<PrintedFigure> = None;
    while !rest.is_empty() {
        let (number, tail) = split(rest);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let part = PrintedFigure::parse(number)?.scaled(seconds_in(&tail[..unit_end])?);
        // Only the last part is rounded.
        sum = Some(PrintedFigure { value: sum.map_or(0.0, |sum| sum.value) + part.value, ..part });
        rest = &tail[unit_end..];
    }
    sum
}

/// Number and unit as two words, or as one: `0.0012 secs`, `8.0647 ms`.
pub(super) fn time_in_words(text: &str) -> Option<PrintedFigure> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    match words.next().and_then(seconds_in_word) {
        Some(unit) => Some(PrintedFigure::parse(first)?.scaled(unit)),
        None => time(first),
    }
}

fn seconds_in_word(word: &str) -> Option<f64> {
    seconds_in(word.trim_end_matches([',', '.']))
}

/// A size, in bytes: `10.64MB` and `623.0KiB` (both in units of 1024), `32 B`, `32 bytes`.
pub(super) fn bytes(text: &str) -> Option<PrintedFigure> {
    let text = text.trim().trim_end_matches(',');
    let (number, unit) = split(text);
    let size = match unit.trim() {
        "" | "B" | "bytes" => 1.0,
        "KB" | "KiB" | "K" => 1024.0,
        "MB" | "MiB" | "M" => 1024.0 * 1024.0,
        "GB" | "GiB" | "G" => 1024.0 * 1024.0 * 1024.0,
        "TB" | "TiB" | "T" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(PrintedFigure::parse(number)?.scaled(size))
}

/// A count.
pub(super) fn count(word: &str) -> Option<u64> {
    word.trim_end_matches([',', ';', ')']).trim_start_matches('(').parse().ok()
}

/// A count as an option takes it: `100`, `1k`.
pub(super) fn option_count(word: &str) -> Option<u64> {
    let (number, unit) = split(word);
    let size = match unit {
        "" => 1,
        "k" | "K" => 1000,
        "M" => 1_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(size)
}

/// A percentage, as a fraction: `99.9%`.
pub(super) fn quantile(word: &str) -> Option<f64> {
    let percent = PrintedFigure::parse(word.strip_suffix('%')?)?.value;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// A percentile as two words, `99%` and `4.32ms`; not 100 %, which is the maximum.
pub(super) fn percentile(
    percent: &str,
    time_s: Option<PrintedFigure>,
) -> Option<PrintedPercentile> {
    let quantile = quantile(percent).filter(|quantile| *quantile < 1.0)?;
    Some(PrintedPercentile { quantile, time_s: time_s? })
}

/// `key: value`, trimmed.
pub(super) fn key_and_value(line: &str) -> Option<(&str, &str)> {
    line.split_once(':').map(|(key, value)| (key.trim(), value.trim()))
}

/// The first word, or nothing.
pub(super) fn first(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(printed: Option<PrintedFigure>, value: f64, half_width: f64) -> bool {
        printed.is_some_and(|p| {
            (p.value - value).abs() <= 1e-9 * value
                && (p.half_width - half_width).abs() <= 1e-9 * value.max(1e-9)
        })
    }

    #[test]
    fn times_keep_their_rounding_in_any_unit() {
        assert!(near(time("4.32ms"), 4.32e-3, 5e-6));
        assert!(near(time("623.00us"), 623e-6, 5e-9));
        assert!(near(time("5.00m"), 300.0, 0.3));
        assert!(near(time("21m47.89s"), 1307.89, 0.005));
        assert!(near(time("650.501µs,"), 650.501e-6, 5e-10));
        assert!(near(time_in_words("0.0012 secs"), 1.2e-3, 5e-5));
        assert!(near(time_in_words("8.0647 ms"), 8.0647e-3, 5e-8));
        for text in ["", "ms", "5", "5 parsecs", "1.2.3s", "-1s", "NaN secs"] {
            assert_eq!(time_in_words(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_in_1024s() {
        assert!(near(bytes("10.64MB"), 10.64 * 1_048_576.0, 0.005 * 1_048_576.0));
        assert!(near(bytes("32 bytes"), 32.0, 0.5));
        assert!(near(bytes("4.91 MiB"), 4.91 * 1_048_576.0, 0.005 * 1_048_576.0));
        assert_eq!(bytes("many"), None);
    }
}
