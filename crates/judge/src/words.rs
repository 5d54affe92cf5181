//! Figures and counts as they appear in sentences.

use model::{AtOnce, Nanos, number};

pub(crate) use model::number::{count_of, rate_in_words};

/// `1 request`, `2 requests`.
pub(crate) fn counted(n: impl Into<u64>, one: &str) -> String {
    let n: u64 = n.into();
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// `0.123` as `12.3 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `0.999` as `99.9`.
pub(crate) fn percentile(quantile: f64) -> String {
    format!("{:.3}", quantile * 100.0).trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A load: `1.5x`.
pub(crate) fn load(multiple: f64) -> String {
    format!("{}x", number::shortest((multiple * 100.0).round() / 100.0))
}

/// A time of three digits: `0.384 ms`, `101 ms`, `3.21 s`.
pub fn brief(time: Nanos) -> String {
    number::length(time)
}

/// A share in words: `10 %`, `2.3 %`, `0.04 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent {
        0.0 | 9.95.. => 0,
        0.995.. => 1,
        _ => 2,
    };
    format!("{} %", without_zeros(&number::fixed(percent, decimals)))
}

/// A figure without zeros behind a point that say nothing: `2.50` is `2.5`, `8.0` is `8`.
pub(crate) fn without_zeros(figure: &str) -> &str {
    if figure.contains('.') { figure.trim_end_matches('0').trim_end_matches('.') } else { figure }
}

/// A figure in a sentence: `0.123`, `9.7`, `12`, `1234`.
pub(crate) fn few_digits(value: f64) -> String {
    if value < 9.95 { rate_in_words(value) } else { number::fixed(value, 0) }
}

/// Rounded to two digits: nobody offers 6861.4 requests per second.
pub(crate) fn round_rate(rate: f64) -> String {
    let digits = rate.max(1e-9).log10().floor() as i32;
    let unit = 10_f64.powi(digits - 1);
    let decimals = usize::try_from(1 - digits).unwrap_or(0);
    without_zeros(&number::fixed((rate / unit).round() * unit, decimals)).to_owned()
}

/// `a, b and c`.
pub fn listed(parts: &[String]) -> String {
    match parts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        parts => parts.concat(),
    }
}

/// One decimal, as for CPUs: `1.9`.
pub(crate) fn tenths(value: f64) -> String {
    number::fixed(value, 1)
}

/// The first sentence of a conclusion, and the rest.
pub fn first_sentence(text: &str) -> FirstSentence<'_> {
    let end = [". ", ".\n"].into_iter().filter_map(|end| text.find(end)).min();
    match end {
        Some(dot) => FirstSentence { first: &text[..=dot], rest: &text[dot + 2..] },
        None => FirstSentence { first: text, rest: "" },
    }
}

/// A conclusion in two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstSentence<'a> {
    /// With its full stop.
    pub first: &'a str,
    /// Empty if there is one sentence.
    pub rest: &'a str,
}

/// With a capital first letter.
pub fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect()
}

/// A mean count: `9.3`, `10`.
pub(crate) fn brief_count(mean: f64) -> String {
    let text = tenths(mean);
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// How many threads or requests do something, on average over the looks of some seconds: `2.3`, `6`,
/// `about 6`. From one watch to the next such a mean is another by half a thread.
pub(crate) fn count_at_looks(mean: f64) -> String {
    /// Of fewer, a tenth tells something.
    const FEW: f64 = 3.0;
    let exact = brief_count(mean);
    if mean < FEW || !exact.contains('.') { exact } else { format!("about {mean:.0}") }
}

/// `9.9 requests' worth`, `1 request's worth`. With its interval, `10 (6.2 to 16)`, if an end of that
/// is more than 20 % from the mean; if the upper end is not known, `10 (6.2 or more)`.
pub(crate) fn worth_in_words(at_once: &AtOnce) -> String {
    let mean = brief_count(at_once.mean);
    let is_close = |end: f64| (end / at_once.mean - 1.0).abs() <= 0.2;
    let count = match at_once.high {
        Some(high) if is_close(at_once.low) && is_close(high) => mean,
        Some(high) => {
            format!("{mean} ({} to {})", brief_count(at_once.low), brief_count(high))
        }
        None => format!("{mean} ({} or more)", brief_count(at_once.low)),
    };
    let noun = if count == "1" { "request's" } else { "requests'" };
    format!("{count} {noun} worth")
}
