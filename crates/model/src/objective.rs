//! A condition on a figure of a run: `p99 > 200ms`, `failed > 0.1%`, `sent < 99% of offered`; and
//! whether it must or must not hold (`--expect`, `--fail-if`).

use std::fmt;
use std::str::FromStr;

use crate::request_mix::means_class;
use crate::units::text_in_json;
use crate::{Nanos, RunPart};

/// A condition on a figure of a run. It prints as it was typed, in a normalized spelling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// Which figure.
    pub figure: ObjectiveFigure,
    /// Whether it holds above or below the limit.
    pub compare: Compare,
    /// The limit, in the figure's unit: ns, a fraction, requests per second, or a count.
    pub limit: f64,
    /// The part of a run with an event that it is about; `None` is the whole run.
    pub part: Option<RunPart>,
}

/// A figure that an objective can be about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ObjectiveFigure {
    /// A quantile of the response time, 0 to 1, in ns.
    ResponseTime(f64),
    /// A quantile of the service time, 0 to 1, in ns.
    ServiceTime(f64),
    /// The mean response time, in ns.
    Mean,
    /// The longest response time, in ns.
    Max,
    /// Requests without a good response, as a fraction of all.
    ErrorShare,
    /// Requests without a good response.
    Errors,
    /// Requests sent, as a fraction of those due.
    SentShare,
    /// Good responses per second.
    Completed,
}

impl ObjectiveFigure {
    /// Whether it is recorded of each class of requests, too.
    fn is_known_by_class(self) -> bool {
        match self {
            ObjectiveFigure::ResponseTime(_)
            | ObjectiveFigure::Mean
            | ObjectiveFigure::Max
            | ObjectiveFigure::ErrorShare
            | ObjectiveFigure::Errors => true,
            ObjectiveFigure::ServiceTime(_)
            | ObjectiveFigure::SentShare
            | ObjectiveFigure::Completed => false,
        }
    }
}

/// On which side of the limit the condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Above it.
    Above,
    /// Below it.
    Below,
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Objective, String> {
        let examples = "'p99 < 200ms', 'service p99 < 200ms', 'mean < 50ms', 'max < 1s', 'failed < 0.1%', 'failed < 5', 'failed = 0', \
                        'sent > 99%' or 'throughput > 100/s'";
        let no_condition = || format!("'{text}' is not a condition: write one such as {examples}");
        parse(text).ok_or_else(|| what_to_write(text).unwrap_or_else(no_condition))
    }
}

/// What to write for a time without a unit, `<=`, or k6's words, in which a bare number is
/// milliseconds; `None` if the text is something else.
fn what_to_write(text: &str) -> Option<String> {
    let (figure, limit) = text.split_at(text.find(['<', '>'])?);
    let (sign, limit) = limit.split_at(1);
    let figure = figure.trim();
    let plain_limit = limit.trim_start_matches('=').trim();
    let is_bare = plain_limit.parse::<f64>().is_ok();
    let in_unit = |figure: &str, unit: &str| {
        let condition = format!("{figure} {sign} {plain_limit}{unit}");
        parse(&condition).is_some().then(|| format!("'{condition}'"))
    };
    let ours = match figure {
        "avg" => Some("mean".to_owned()),
        "med" => Some("p50".to_owned()),
        _ => {
            let percent = figure.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
            percent.map(|percent| format!("p{}", percent.trim()))
        }
    };
    if let Some(ours) = ours {
        let condition = in_unit(&ours, if is_bare { "ms" } else { "" })?;
        return Some(format!("{figure} is {ours} here: write {condition}"));
    }
    if is_bare && let Some((seconds, millis)) = in_unit(figure, "s").zip(in_unit(figure, "ms")) {
        return Some(format!("{plain_limit} lacks a unit: write {seconds} or {millis}"));
    }
    let strict = in_unit(figure, "").filter(|_| limit.starts_with('='))?;
    Some(format!("{sign}= is {sign} here: write {strict}"))
}

fn parse(text: &str) -> Option<Objective> {
    let last_word = text.trim().rsplit_once(' ');
    let of_part = last_word.and_then(|(rest, word)| Some((rest, word.parse::<RunPart>().ok()?)));
    let (text, part) = of_part.map_or((text, None), |(rest, part)| (rest, Some(part)));
    let at = text.find(['<', '>', '='])?;
    let name = text[..at].trim();
    let value = text[at + 1..].trim();
    // `failed = 0` is `failed < 1`; no other figure can be asked for exactly.
    if text.as_bytes()[at] == b'=' {
        let is_none_failed = matches!(name, "failed" | "errors") && value == "0";
        return is_none_failed.then_some(Objective {
            figure: ObjectiveFigure::Errors,
            compare: Compare::Below,
            limit: 1.0,
            part,
        });
    }
    let compare = if text.as_bytes()[at] == b'>' { Compare::Above } else { Compare::Below };
    let share = |value: &str| {
        let share = hundredths(value.strip_suffix('%')?.trim())?;
        (share.is_finite() && share >= 0.0).then_some(share)
    };
    let number = |value: &str| value.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    // Without a unit, 200 could mean seconds or milliseconds.
    let has_unit = |value: &&str| value.ends_with(|c: char| c.is_ascii_alphabetic());
    let time = |value: &str| {
        let time = Some(value).filter(has_unit)?.replace(' ', "").parse::<Nanos>();
        time.ok().map(|time| time.0 as f64)
    };
    let quantile = |name: &str| {
        let share = hundredths(name.strip_prefix('p')?)?;
        (0.0..1.0).contains(&share).then_some(share)
    };
    let (figure, limit) = match name {
        "mean" => (ObjectiveFigure::Mean, time(value)?),
        "max" => (ObjectiveFigure::Max, time(value)?),
        "failed" | "errors" => match share(value) {
            Some(share) => (ObjectiveFigure::ErrorShare, share),
            None => (ObjectiveFigure::Errors, number(value)?),
        },
        "sent" => (
            ObjectiveFigure::SentShare,
            share(value.strip_suffix("of offered").map_or(value, str::trim))?,
        ),
        "throughput" | "completed" => {
            (ObjectiveFigure::Completed, number(value.strip_suffix("/s").unwrap_or(value).trim())?)
        }
        name => match name.strip_prefix("service ") {
            Some(rest) => (ObjectiveFigure::ServiceTime(quantile(rest.trim())?), time(value)?),
            None => (ObjectiveFigure::ResponseTime(quantile(name)?), time(value)?),
        },
    };
    // Of single requests, only when they were due and ended is recorded for an event's parts.
    let is_of_whole_run =
        matches!(figure, ObjectiveFigure::ServiceTime(_) | ObjectiveFigure::SentShare);
    (part.is_none() || !is_of_whole_run).then_some(Objective { figure, compare, limit, part })
}

impl Objective {
    /// Whether it asks that no request fails.
    fn is_none_failed(&self) -> bool {
        self.figure == ObjectiveFigure::Errors
            && self.compare == Compare::Below
            && (self.limit - 1.0).abs() < f64::EPSILON
    }

    /// Whether the condition holds for `value`, in the figure's unit.
    pub fn holds_for(&self, value: f64) -> bool {
        match self.compare {
            Compare::Above => value > self.limit,
            Compare::Below => value < self.limit,
        }
    }

    /// A value in the figure's unit, as a person reads it.
    pub fn shown(&self, value: f64) -> String {
        if value.is_infinite() {
            return "not bounded".to_owned();
        }
        match self.figure {
            ObjectiveFigure::ResponseTime(_)
            | ObjectiveFigure::ServiceTime(_)
            | ObjectiveFigure::Mean
            | ObjectiveFigure::Max => Nanos(value.round() as u64).to_string(),
            ObjectiveFigure::ErrorShare | ObjectiveFigure::SentShare => {
                format!("{}%", plain(value * 100.0))
            }
            ObjectiveFigure::Errors => plain(value),
            ObjectiveFigure::Completed => format!("{}/s", plain(value)),
        }
    }
}

/// Up to four decimals, without trailing zeros.
fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for ObjectiveFigure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectiveFigure::ResponseTime(q) => write!(out, "p{}", plain(q * 100.0)),
            ObjectiveFigure::ServiceTime(q) => write!(out, "service p{}", plain(q * 100.0)),
            ObjectiveFigure::Mean => out.write_str("mean"),
            ObjectiveFigure::Max => out.write_str("max"),
            ObjectiveFigure::ErrorShare | ObjectiveFigure::Errors => out.write_str("failed"),
            ObjectiveFigure::SentShare => out.write_str("sent"),
            ObjectiveFigure::Completed => out.write_str("throughput"),
        }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.figure)?;
        if self.is_none_failed() {
            out.write_str(" = 0")?;
        } else {
            let sign = if self.compare == Compare::Above { '>' } else { '<' };
            write!(out, " {sign} {}", self.shown(self.limit))?;
        }
        match self.part {
            Some(part) => write!(out, " {part}"),
            None => Ok(()),
        }
    }
}

text_in_json!(Objective);

/// A condition that must hold, or must not, for all requests or for those of a class. It prints as
/// `expect p99 < 200ms`, `fail if p99 > 200ms` or `expect /search p99 < 400ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The class of requests that it is about; `None` is all requests.
    pub class: Option<String>,
    /// The condition.
    pub condition: Objective,
    /// Whether it must hold.
    pub is_expected: bool,
}

impl Threshold {
    /// Reads a condition: `p99 < 200ms`, or with the name of a class in front.
    ///
    /// # Errors
    /// If it is none, or about a figure that is not known of a class.
    pub fn on(text: &str, is_expected: bool) -> Result<Threshold, String> {
        let of_all = match text.parse::<Objective>() {
            Ok(condition) => return Ok(Threshold { class: None, condition, is_expected }),
            Err(why) => why,
        };
        let Some((class, condition)) = class_and_condition(text) else { return Err(of_all) };
        let condition: Objective =
            condition.parse().map_err(|_| what_to_write(condition).unwrap_or(of_all))?;
        if !condition.figure.is_known_by_class() || condition.part.is_some() {
            return Err(format!(
                "'{text}': of a class of requests, percentiles, mean, max and failed are known, \
                 over the whole run; write one such as '{class} p99 < 200ms'"
            ));
        }
        Ok(Threshold { class: Some(class.to_owned()), condition, is_expected })
    }

    /// Whether a figure meets it.
    pub fn is_met_by(&self, value: f64) -> bool {
        self.condition.holds_for(value) == self.is_expected
    }

    /// Whether it is about the class of this name.
    pub fn is_about(&self, class: &str) -> bool {
        self.class.as_deref().is_some_and(|named| means_class(named, class))
    }

    /// The condition with its class: `p99 < 200ms`, `/search p99 < 400ms`.
    pub fn asked(&self) -> String {
        match &self.class {
            Some(class) => format!("{class} {}", self.condition),
            None => self.condition.to_string(),
        }
    }
}

/// The name of a class and the condition behind it. A name may have spaces and the signs of a
/// condition in it, such as `GET /search?q=a`; a limit has neither.
fn class_and_condition(text: &str) -> Option<(&str, &str)> {
    let sign = text.rfind(['<', '>', '='])?;
    let (class, _) = text[..sign].trim_end().rsplit_once(' ')?;
    Some((class.trim(), text[class.len()..].trim()))
}

impl fmt::Display for Threshold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", if self.is_expected { EXPECT } else { FAIL_IF }, self.asked())
    }
}

const EXPECT: &str = "expect ";
const FAIL_IF: &str = "fail if ";

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        match (text.strip_prefix(EXPECT), text.strip_prefix(FAIL_IF)) {
            (_, Some(condition)) => Threshold::on(condition, false),
            (condition, None) => Threshold::on(condition.unwrap_or(text), true),
        }
    }
}

text_in_json!(Threshold);

/// A number of hundredths, without the rounding of a division: 99.9 / 100 is not quite 0.999, under
/// which the interval of p99.9 is kept.
fn hundredths(number: &str) -> Option<f64> {
    format!("{number}e-2").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_may_be_about_a_part_of_a_run_with_an_event() {
        for (text, shown) in [
            ("p99 < 1s during", "p99 < 1s during"),
            ("failed = 0", "failed = 0"),
            ("errors=0 after", "failed = 0 after"),
            ("failed < 1", "failed = 0"),
        ] {
            let objective: Objective = text.parse().unwrap();
            assert_eq!(objective.to_string(), shown);
            assert_eq!(objective.to_string().parse(), Ok(objective));
        }
        for wrong in
            ["service p99 < 1s during", "sent > 99% after", "p99 = 1s", "failed = 3", "during"]
        {
            assert!(wrong.parse::<Objective>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_may_stand_apart_from_its_unit() {
        for (text, shown) in [
            ("p99 < 250 ms", "p99 < 250ms"),
            ("max<1 s during", "max < 1s during"),
            ("failed < 0.1 %", "failed < 0.1%"),
            ("throughput > 100 /s", "throughput > 100/s"),
        ] {
            assert_eq!(text.parse::<Objective>().unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn whoever_knows_k6_or_forgets_the_unit_is_told_what_to_write() {
        for (text, told) in [
            ("p99 < 0.25", "0.25 lacks a unit: write 'p99 < 0.25s' or 'p99 < 0.25ms'"),
            ("service p99>=5", "5 lacks a unit: write 'service p99 > 5s' or 'service p99 > 5ms'"),
            ("p(99) < 250ms", "p(99) is p99 here: write 'p99 < 250ms'"),
            ("p(95)<500", "p(95) is p95 here: write 'p95 < 500ms'"),
            ("avg<=200", "avg is mean here: write 'mean < 200ms'"),
            ("med < 1 s", "med is p50 here: write 'p50 < 1 s'"),
            ("p99 <= 1s", "<= is < here: write 'p99 < 1s'"),
            ("failed<=1%", "<= is < here: write 'failed < 1%'"),
        ] {
            assert_eq!(text.parse::<Objective>(), Err(told.to_owned()), "{text}");
        }
        let told = "0.25 lacks a unit: write 'p99 < 0.25s' or 'p99 < 0.25ms'";
        assert_eq!(Threshold::on("GET /a p99 < 0.25", true), Err(told.to_owned()));
        for other in ["p(x) < 1", "p(101) < 1", "checks < 5", "p99 < fast", "p99"] {
            let why = other.parse::<Objective>().unwrap_err();
            assert!(why.contains("is not a condition"), "{why}");
        }
    }

    #[test]
    fn a_percentile_is_the_one_whose_interval_is_kept() {
        for (text, quantile) in [("p99.9 < 1s", 0.999), ("p99.99 < 1s", 0.9999), ("p7 < 1s", 0.07)]
        {
            let objective: Objective = text.parse().unwrap();
            assert_eq!(objective.figure, ObjectiveFigure::ResponseTime(quantile), "{text}");
        }
        for wrong in ["p100 < 1s", "p-1 < 1s", "p1e1 < 1s", "pinf < 1s", "errors < nan%"] {
            assert!(wrong.parse::<Objective>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_threshold_may_be_about_a_class_of_requests() {
        for (text, class, condition) in [
            ("p99 < 200ms", None, "p99 < 200ms"),
            ("service p99 < 200ms", None, "service p99 < 200ms"),
            ("/search p99 < 400ms", Some("/search"), "p99 < 400ms"),
            ("POST /a b  failed = 0", Some("POST /a b"), "failed = 0"),
            ("/search?q=a<b mean<1s", Some("/search?q=a<b"), "mean < 1s"),
        ] {
            let threshold = Threshold::on(text, true).unwrap();
            assert_eq!(threshold.class.as_deref(), class, "{text}");
            assert_eq!(threshold.condition.to_string(), condition);
            assert_eq!(threshold.to_string().parse(), Ok(threshold));
        }
        for wrong in ["/search", "/search p99", "/a sent > 99%", "/a throughput > 1/s"] {
            assert!(Threshold::on(wrong, true).is_err(), "{wrong}");
        }
        let of_part = Threshold::on("/search p99 < 1s during", false).unwrap_err();
        assert!(of_part.contains("over the whole run"), "{of_part}");
        let threshold = Threshold::on("GET /search max < 1s", false).unwrap();
        assert!(threshold.is_about("/search") && threshold.is_about("GET /search"));
        assert!(!threshold.is_about("/sea"));
    }

    #[test]
    fn a_condition_does_not_hold_at_its_limit() {
        let objective: Objective = "p99 > 200ms".parse().unwrap();
        assert!(!objective.holds_for(200e6) && objective.holds_for(200e6 + 1.0));
    }
}
