//! A line of an access log: when which request came ([`LogLine`]), in each format that is known
//! ([`LogFormat`]).
//!
//! A logger, journald, syslog or Docker may have put a prefix in front of a line, or the line into
//! a JSON object. The time found there counts if the line itself has none, or only whole seconds.

use std::collections::HashMap;
use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use model::Nanos;
use serde_json::{Map, Value};

/// How many lines are tried to find a log's format: it may begin with a title.
const FIRST_LINES: usize = 50;
/// Names of the time in JSON and logfmt, the first that is there.
const TIMES: [&str; 10] = [
    "time",
    "timestamp",
    "ts",
    "@timestamp",
    "time_iso8601",
    "time_local",
    "msec",
    "datetime",
    "date",
    "__REALTIME_TIMESTAMP",
];
/// Names of a time that is the request's start.
const STARTS: [&str; 4] = ["start_time", "started_at", "start", "StartUTC"];
const METHODS: [&str; 6] =
    ["method", "request_method", "http_method", "verb", "requestMethod", "RequestMethod"];
const PATHS: [&str; 8] =
    ["path", "request_uri", "uri", "url", "http_path", "fullpath", "requestUrl", "RequestPath"];
/// Names of a whole request line, `GET /posts HTTP/1.1`.
const REQUEST_LINES: [&str; 2] = ["request", "request_line"];
/// Names of the duration, and its unit where it has none.
const DURATIONS: [(&str, DurationUnit); 10] = [
    ("request_time", DurationUnit::Seconds),
    ("rt", DurationUnit::Seconds),
    ("duration_s", DurationUnit::Seconds),
    (DURATION, DurationUnit::Milliseconds),
    ("duration_ms", DurationUnit::Milliseconds),
    ("elapsed_ms", DurationUnit::Milliseconds),
    ("responseTime", DurationUnit::Milliseconds),
    // Heroku's router.
    ("service", DurationUnit::Milliseconds),
    ("duration_us", DurationUnit::Microseconds),
    ("duration_ns", DurationUnit::Nanoseconds),
];
const DURATION: &str = "duration";
/// Objects of a JSON line in which method and path may stand.
const WRAPPERS: [&str; 5] = ["request", "req", "http", "httpRequest", "payload"];
/// Fields of a JSON line that may hold a line of another format, as Docker and journald write it.
const INNER_LINES: [&str; 4] = ["log", "MESSAGE", "message", "msg"];
/// Digits of the seconds since 1970; fewer in brackets are a process's number.
const DIGITS_OF_A_TIME: usize = 10;
/// The time in front of a line is taken for the line's own, with a fraction of a second, if it is
/// less than this much later. Whole quarter hours are not counted: time zones differ by them, and
/// syslog leaves out the year.
const WRITTEN_WITHIN: i128 = 1_500_000_000;
const ZONES_DIFFER_BY: i128 = 900_000_000_000;

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// nginx's and Apache's `combined`, or `common`; Puma and Rack write it, too.
    Combined,
    /// An object a line.
    JsonLines,
    /// `key=value` pairs.
    Logfmt,
    /// Rails' own log: `Started GET "/posts" for …`.
    Rails,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LogFormat::Combined => "combined log format",
            LogFormat::JsonLines => "JSON lines",
            LogFormat::Logfmt => "logfmt",
            LogFormat::Rails => "Rails log",
        })
    }
}

/// The unit in which a duration without one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DurationUnit {
    /// As nginx, Puma and Caddy write it.
    Seconds,
    /// As lograge writes it.
    Milliseconds,
    /// Only where the name says so.
    Microseconds,
    /// Only where the name says so.
    Nanoseconds,
}

impl DurationUnit {
    fn nanos(self) -> f64 {
        match self {
            DurationUnit::Seconds => 1e9,
            DurationUnit::Milliseconds => 1e6,
            DurationUnit::Microseconds => 1e3,
            DurationUnit::Nanoseconds => 1.0,
        }
    }
}

impl fmt::Display for DurationUnit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            DurationUnit::Seconds => "s",
            DurationUnit::Milliseconds => "ms",
            DurationUnit::Microseconds => "µs",
            DurationUnit::Nanoseconds => "ns",
        })
    }
}

/// How long a request took, by its log.
#[derive(Clone, Copy)]
pub(crate) struct LoggedDuration {
    pub(crate) nanos: f64,
    /// The unit in which it was read; `None` where the log writes one.
    pub(crate) read_as: Option<DurationUnit>,
}

/// A line of a log.
pub(crate) struct LogLine {
    /// Nanoseconds since 1970.
    pub(crate) time: i128,
    /// How long the request took, where the time is its end.
    pub(crate) took: Option<LoggedDuration>,
    pub(crate) method: String,
    pub(crate) path: String,
}

/// Why a line is not replayed.
pub(crate) type LeftOut = &'static str;
pub(crate) const NO_LINE: LeftOut = "not a line of the format";
pub(crate) const NO_TIME: LeftOut = "without a time";
pub(crate) const NO_REQUEST: LeftOut = "without a method and a path";

impl LogFormat {
    /// All of them; the first that reads a line is its format.
    const ALL: [LogFormat; 4] =
        [LogFormat::Rails, LogFormat::Combined, LogFormat::JsonLines, LogFormat::Logfmt];

    /// The format of a log with these lines: that of the first one that can be read, or else of the
    /// first that lacks something; `None` if none of them is of a known format.
    pub(crate) fn of_lines<T: AsRef<str>, I: Iterator<Item = T>>(
        lines: impl Fn() -> I,
    ) -> Option<LogFormat> {
        let whole =
            |line: T| LogFormat::ALL.into_iter().find(|format| format.read(line.as_ref()).is_ok());
        let lacking = |line: T| {
            let is_of = |format: &LogFormat| format.read(line.as_ref()).err() != Some(NO_LINE);
            LogFormat::ALL.into_iter().find(is_of)
        };
        let known = lines().take(FIRST_LINES).find_map(whole);
        known.or_else(|| lines().take(FIRST_LINES).find_map(lacking))
    }

    /// Reads a line of this format.
    pub(crate) fn read(self, line: &str) -> Result<LogLine, LeftOut> {
        self.read_within(line, None)
    }

    /// The same where the time of the line around it is known.
    fn read_within(self, line: &str, outer: Option<LogTime>) -> Result<LogLine, LeftOut> {
        match self {
            LogFormat::Combined => combined(line, outer),
            LogFormat::JsonLines => json(line),
            LogFormat::Logfmt => {
                let fields = pairs(line);
                let before = line.split('=').next().unwrap_or_default();
                if fields.is_empty() {
                    Err(NO_LINE)
                } else {
                    of_fields(&fields, time_in_front(before).or(outer))
                }
            }
            LogFormat::Rails => rails(line, outer),
        }
    }
}

/// `host ident user [26/Nov/2026:08:45:13 +0000] "GET /path HTTP/1.1" 200 612 …`, with
/// `rt=0.123` or `request_time=0.123` at the end where a log has it. A load balancer of AWS writes
/// its time without brackets.
fn combined(line: &str, outer: Option<LogTime>) -> Result<LogLine, LeftOut> {
    let (before, rest) = line.split_once('"').ok_or(NO_LINE)?;
    let (request, after) = quoted_request(rest);
    let written = || time_in_front(before).or(outer);
    let time = match time_in_brackets(before) {
        Some(time) if time.is_fine => Some(time),
        Some(time) => Some(time.finer(written())),
        None if request.contains(" HTTP/") => written(),
        None => None,
    };
    let has_brackets = before.contains('[');
    let time = time.ok_or(if has_brackets { NO_TIME } else { NO_LINE })?;
    let LoggedRequest { method, path } = LoggedRequest::parse(&request).ok_or(NO_REQUEST)?;
    let took = took(&pairs(after)).or_else(|| took_after(after));
    Ok(LogLine { time: time.nanos, took, method, path })
}

/// The text up to the closing quote, and what follows it. nginx escapes as `\x22`, Apache as
/// `\"`: such a character stands in no URL, so it becomes percent-encoded.
fn quoted_request(text: &str) -> (String, &str) {
    let mut request = String::new();
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        match char {
            '"' => break,
            '\\' => request.push_str(&escaped(&mut rest)),
            other => request.push(other),
        }
    }
    (request, rest.as_str())
}

/// The character after a backslash, percent-encoded.
fn escaped(rest: &mut std::str::Chars<'_>) -> String {
    let digits = rest.as_str().strip_prefix('x').and_then(|hex| hex.get(..2));
    // `from_str_radix` would take a sign.
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if let Some(code) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
        rest.nth(2);
        return format!("%{code:02X}");
    }
    match rest.next() {
        Some(char @ ('"' | '\\')) => format!("%{:02X}", u32::from(char)),
        Some(other) => format!("%5C{other}"),
        None => String::new(),
    }
}

/// The seconds that a request took, as Puma and Rack write them: after status and length, and
/// nothing else.
fn took_after(after: &str) -> Option<LoggedDuration> {
    let words: Vec<&str> = after.split_ascii_whitespace().take(4).collect();
    let [_, _, seconds] = words.as_slice() else { return None };
    let seconds: f64 = seconds.parse().ok().filter(|_| seconds.contains('.'))?;
    plausible(seconds * 1e9, Some(DurationUnit::Seconds))
}

/// A request's first line.
struct LoggedRequest {
    method: String,
    path: String,
}

impl LoggedRequest {
    fn parse(text: &str) -> Option<LoggedRequest> {
        let (method, rest) = text.trim().split_once(' ')?;
        // Some clients send a path with spaces in it.
        let path = match rest.rsplit_once(" HTTP/") {
            Some((path, _)) => path.trim(),
            None => rest.split_ascii_whitespace().next().unwrap_or_default(),
        };
        let is_whole = !method.is_empty() && !path.is_empty();
        is_whole.then(|| LoggedRequest { method: method.to_owned(), path: path.to_owned() })
    }
}

/// `I, [2026-11-26T08:45:13.123456 #1234]  INFO -- : [id] Started GET "/posts" for ::1 at 2026-…`:
/// the request's start. What Rails writes of it afterwards is no line of the format.
fn rails(line: &str, outer: Option<LogTime>) -> Result<LogLine, LeftOut> {
    let (before, rest) = line.split_once("Started ").ok_or(NO_LINE)?;
    let (method, rest) = rest.split_once(" \"").ok_or(NO_LINE)?;
    let (path, rest) = rest.split_once("\" for ").ok_or(NO_LINE)?;
    let (_, at) = rest.rsplit_once(" at ").ok_or(NO_LINE)?;
    let own = time_of(at).ok_or(NO_TIME)?;
    let time = own.finer(time_in_front(before).or(outer));
    Ok(LogLine { time: time.nanos, took: None, method: method.to_owned(), path: path.to_owned() })
}

/// An object, with anything in front.
fn json(line: &str) -> Result<LogLine, LeftOut> {
    let at = line.find('{').ok_or(NO_LINE)?;
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(&line[at..]) else {
        return Err(NO_LINE);
    };
    let mut fields = texts(&object);
    for wrapped in WRAPPERS.iter().filter_map(|name| object.get(*name)?.as_object()) {
        for (name, text) in texts(wrapped) {
            fields.entry(name).or_insert(text);
        }
    }
    // Caddy's access log, whose durations are in seconds.
    let is_caddys = object.get("request").is_some_and(Value::is_object)
        && ["ts", DURATION].iter().all(|name| object.get(*name).is_some_and(Value::is_number));
    if is_caddys && let Some(seconds) = fields.remove(DURATION) {
        fields.insert("duration_s".to_owned(), seconds);
    }
    let outer = first_time(&fields).or_else(|| time_in_front(&line[..at]));
    match of_fields(&fields, outer) {
        Err(NO_REQUEST) => inner_line(&fields, outer).ok_or(NO_REQUEST),
        read => read,
    }
}

/// The texts and numbers of an object.
fn texts(object: &Map<String, Value>) -> HashMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let fields =
        object.iter().filter_map(|(name, value)| text(value).map(|value| (name.clone(), value)));
    fields.collect()
}

/// The line of another format that one of the fields holds.
fn inner_line(fields: &HashMap<String, String>, outer: Option<LogTime>) -> Option<LogLine> {
    let line = first(fields, &INNER_LINES)?;
    let formats = [LogFormat::Rails, LogFormat::Combined, LogFormat::Logfmt];
    formats.into_iter().find_map(|format| format.read_within(line, outer).ok())
}

fn first<'a>(fields: &'a HashMap<String, String>, names: &[&str]) -> Option<&'a String> {
    names.iter().find_map(|name| fields.get(*name))
}

fn first_time(fields: &HashMap<String, String>) -> Option<LogTime> {
    first(fields, &TIMES).and_then(|text| time_of(text))
}

/// `outer`: the time where no field has one.
fn of_fields(fields: &HashMap<String, String>, outer: Option<LogTime>) -> Result<LogLine, LeftOut> {
    let line = first(fields, &REQUEST_LINES).and_then(|line| LoggedRequest::parse(line));
    let parts = || {
        let path = first(fields, &PATHS)?.clone();
        // Where a log names no method, it would be a guess.
        Some(LoggedRequest { method: first(fields, &METHODS)?.clone(), path })
    };
    let LoggedRequest { method, path } = parts().or(line).ok_or(NO_REQUEST)?;
    let start = first(fields, &STARTS).and_then(|text| time_of(text));
    let took = if start.is_some() { None } else { took(fields) };
    let time = start.or_else(|| first_time(fields)).or(outer).ok_or(NO_TIME)?;
    Ok(LogLine { time: time.nanos, took, method, path })
}

/// How long a request took, by the first field that says so.
fn took(fields: &HashMap<String, String>) -> Option<LoggedDuration> {
    DURATIONS.iter().find_map(|(name, unit)| {
        let text = fields.get(*name)?;
        match text.parse::<f64>() {
            Ok(number) => plausible(number * unit.nanos(), Some(*unit)),
            Err(_) => plausible(text.parse::<Nanos>().ok()?.0 as f64, None),
        }
    })
}

fn plausible(nanos: f64, read_as: Option<DurationUnit>) -> Option<LoggedDuration> {
    let is_plausible = nanos.is_finite() && (0.0..1e15).contains(&nanos);
    is_plausible.then_some(LoggedDuration { nanos, read_as })
}

/// The pairs of a line of logfmt: `key=value`, and `key="value with blanks"`.
fn pairs(line: &str) -> HashMap<String, String> {
    let mut fields = HashMap::new();
    let mut rest = line.trim();
    while let Some((before, after)) = rest.split_once('=') {
        let name = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let value;
        if let Some(text) = after.strip_prefix('"') {
            let mut chars = text.chars();
            value = quoted_value(&mut chars);
            rest = chars.as_str();
        } else {
            let end = after.find(char::is_whitespace).unwrap_or(after.len());
            value = after[..end].to_owned();
            rest = &after[end..];
        }
        if !name.is_empty() {
            fields.insert(name.to_owned(), value);
        }
    }
    fields
}

/// The text up to the closing quote, with `\"` and `\\` as what they mean.
fn quoted_value(chars: &mut std::str::Chars<'_>) -> String {
    let mut value = String::new();
    while let Some(char) = chars.next() {
        match char {
            '"' => break,
            '\\' => value.extend(chars.next()),
            other => value.push(other),
        }
    }
    value
}

/// A time of a log.
#[derive(Clone, Copy)]
struct LogTime {
    nanos: i128,
    is_fine: bool,
}

impl LogTime {
    /// The same with the fraction of a second that the time in front of the line has.
    fn finer(self, in_front: Option<LogTime>) -> LogTime {
        let Some(other) = in_front.filter(|other| other.is_fine && !self.is_fine) else {
            return self;
        };
        let later = (other.nanos - self.nanos).rem_euclid(ZONES_DIFFER_BY);
        if later < WRITTEN_WITHIN {
            LogTime { nanos: self.nanos + later, is_fine: true }
        } else {
            self
        }
    }
}

/// The first time in brackets; in others may stand an IPv6 address or a process's number.
fn time_in_brackets(text: &str) -> Option<LogTime> {
    let inside = text.split('[').skip(1).filter_map(|part| part.split(']').next());
    inside
        .filter(|inside| inside.contains(':') || inside.len() >= DIGITS_OF_A_TIME)
        .find_map(time_of)
}

/// The time that stands in front of a line: a date and a time of day as Docker, Heroku and Ruby's
/// logger write it, or syslog's, which has no year.
fn time_in_front(text: &str) -> Option<LogTime> {
    let words: Vec<&str> =
        text.split_ascii_whitespace().map(|word| word.trim_matches(['[', ']', ','])).collect();
    let is_date = |word: &str| word.starts_with(|char: char| char.is_ascii_digit());
    let is_month = |word: &str| word.len() == 3 && word.bytes().all(|it| it.is_ascii_alphabetic());
    (0..words.len()).find_map(|at| {
        let word = words[at];
        let next = words.get(at + 1).copied().unwrap_or_default();
        if is_date(word) && word.contains('-') {
            return time_of(word).or_else(|| time_of(&format!("{word} {next}")));
        }
        let time = words.get(at + 2).filter(|time| time.contains(':') && is_month(word))?;
        // Any year will do, if it has the 29th of February.
        let dated = format!("2024 {word} {next} {time}");
        let parsed = strtime::parse("%Y %b %d %H:%M:%S%.f", dated).ok()?.to_datetime().ok()?;
        Some(LogTime { nanos: in_utc(parsed)?.as_nanosecond(), is_fine: time.contains('.') })
    })
}

/// `26/Nov/2026:08:45:13 +0000`, RFC 3339 and what is close to it, or seconds, milliseconds,
/// microseconds or nanoseconds since 1970, told by their size.
fn time_of(text: &str) -> Option<LogTime> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return since_1970(text);
    }
    let parsed = timestamp(text)?;
    let is_fine = text.contains('.') || parsed.subsec_nanosecond() != 0;
    Some(LogTime { nanos: parsed.as_nanosecond(), is_fine })
}

fn timestamp(text: &str) -> Option<Timestamp> {
    const FORMS: [&str; 2] = ["%d/%b/%Y:%H:%M:%S%.f %z", "%Y-%m-%d %H:%M:%S%.f %z"];
    let in_form = |form: &str| strtime::parse(form, text).ok()?.to_timestamp().ok();
    let known = text.parse().ok().or_else(|| FORMS.into_iter().find_map(in_form));
    known.or_else(|| {
        // A date alone is no time.
        let local = text.strip_suffix(" UTC").unwrap_or(text);
        in_utc(local.contains(':').then(|| local.parse().ok())??)
    })
}

/// A time without a zone as one in UTC: only the gaps between requests count.
fn in_utc(time: DateTime) -> Option<Timestamp> {
    time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp())
}

fn since_1970(text: &str) -> Option<LogTime> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let unit: i128 = match whole.len() {
        1..=11 => 1_000_000_000,
        12..=14 => 1_000_000,
        15..=17 => 1_000,
        _ => 1,
    };
    let digits = format!("{fraction:0<9}");
    let part: i128 = digits.get(..9)?.parse().ok()?;
    let nanos = whole.parse::<i128>().ok()? * unit + part * unit / 1_000_000_000;
    Some(LogTime { nanos, is_fine: !fraction.is_empty() || unit != 1_000_000_000 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line as `FORMAT METHOD PATH`, with its milliseconds within the minute of 08:45.
    fn read(line: &str) -> String {
        let Some(format) = LogFormat::of_lines(|| line.lines()) else {
            return "unknown".to_owned();
        };
        let mut read = line.lines().filter_map(|line| format.read(line).ok());
        let Some(LogLine { time, took, method, path }) = read.next() else {
            return format!("{format}: nothing");
        };
        let took = took.map(|took| format!(", took {} ms", took.nanos / 1e6)).unwrap_or_default();
        let millis = (time / 1_000_000).rem_euclid(60_000);
        let about = if time % 1_000_000_000 == 0 { "about " } else { "" };
        format!("{format}: {method} {path} at {about}{millis}{took}")
    }

    #[test]
    fn what_stands_in_front_of_a_line_hides_neither_its_time_nor_its_request() {
        let combined = r#"- - [26/Nov/2026:08:45:13 +0000] "GET /a HTTP/1.1" 200 5"#;
        for before in [
            "::1 ",
            "[2001:db8::1]:51234 ",
            "shop.example:443 10.0.0.1 ",
            "Nov 26 08:45:13 web nginx[123]: 10.0.0.1 ",
            "2026-11-26T08:45:20.5Z stdout F 10.0.0.1 ",
        ] {
            let line = format!("{before}{combined}");
            assert_eq!(read(&line), "combined log format: GET /a at about 13000", "{before}");
        }
        let docker = format!("2026-11-26T08:45:13.250123456Z 10.0.0.1 {combined}");
        assert_eq!(read(&docker), "combined log format: GET /a at 13250");
        let journald = format!("Nov 26 08:45:13.500000 web puma[9]: 10.0.0.1 {combined}");
        assert_eq!(read(&journald), "combined log format: GET /a at 13500");
    }

    #[test]
    fn a_combined_line_is_read_as_servers_write_it() {
        for (after, expected) in [
            (r#""GET /a HTTP/2.0" 200 5"#, "GET /a at about 13000"),
            // Puma's --log-requests.
            (r#""GET /a HTTP/1.1" 200 5 0.0105"#, "GET /a at about 13000, took 10.5 ms"),
            (r#""GET /a HTTP/1.1" 200 5 "-" "x y" rt=0.25"#, "GET /a at about 13000, took 250 ms"),
            (r#""GET /a?q=\x22x\x22 HTTP/1.1" 200 5"#, "GET /a?q=%22x%22 at about 13000"),
            (r#""GET /a?q=\"x\" HTTP/1.1" 200 5"#, "GET /a?q=%22x%22 at about 13000"),
            (r#""GET /caf\xC3\xA9 HTTP/1.1" 200 5"#, "GET /caf%C3%A9 at about 13000"),
            (r#""GET /a b HTTP/1.1" 200 5"#, "GET /a b at about 13000"),
            (r#""GET http://h.example/a HTTP/1.1" 200 5"#, "GET http://h.example/a at about 13000"),
            (r#""-" 408 0"#, "nothing"),
            (r#""\x16\x03\x01" 400 0"#, "nothing"),
        ] {
            let line = format!("h - - [26/Nov/2026:08:45:13 +0000] {after}");
            assert_eq!(read(&line), format!("combined log format: {expected}"), "{after}");
        }
        let balancer = "https 2026-11-26T08:45:13.186641Z app/lb/1 10.0.0.1:2817 10.0.0.2:80 \
                        0.000 0.001 0.000 200 200 34 366 \"GET https://h.example:443/a HTTP/1.1\"";
        assert_eq!(read(balancer), "combined log format: GET https://h.example:443/a at 13186");
    }

    #[test]
    fn rails_logs_are_read_with_and_without_lograge() {
        let started = "Started GET \"/posts?page=2\" for 127.0.0.1 at 2026-11-26 08:45:13 +0000";
        let logged = format!(
            "# Logfile created on 2026-11-26 08:00:00 +0000 by logger.rb/v1.6.1\n\
             I, [2026-11-26T08:45:13.250123 #1234]  INFO -- : [7c9e6679] {started}\n\
             I, [2026-11-26T08:45:13.251 #1234]  INFO -- : [7c9e6679] Processing by PostsController"
        );
        assert_eq!(read(&logged), "Rails log: GET /posts?page=2 at 13250");
        let in_paris = logged.replace("45:13 +0000", "45:13 +0200");
        assert_eq!(read(&in_paris), "Rails log: GET /posts?page=2 at 13250");
        assert_eq!(read(started), "Rails log: GET /posts?page=2 at about 13000");
        let lograge = "method=GET path=/posts format=html status=200 duration=50.00 view=1.2";
        let logger = format!("I, [2026-11-26T08:45:13.250123 #1234]  INFO -- : [id] {lograge}");
        assert_eq!(read(&logger), "logfmt: GET /posts at 13250, took 50 ms");
        let journald = format!("2026-11-26T08:45:13.250+0000 web puma[1234]: {lograge}");
        assert_eq!(read(&journald), "logfmt: GET /posts at 13250, took 50 ms");
        assert_eq!(read(lograge), "logfmt: nothing");
        let json = r#"{"method":"GET","path":"/posts","status":200,"duration":50.0}"#;
        let syslog = format!("Nov 26 08:45:13 web puma[1234]: {json}");
        assert_eq!(read(&syslog), "JSON lines: GET /posts at about 13000, took 50 ms");
        assert_eq!(read(json), "JSON lines: nothing");
        let time = r#"{"method":"GET","path":"/posts","time":"2026-11-26 08:45:13 +0000"}"#;
        assert_eq!(read(time), "JSON lines: GET /posts at about 13000");
    }

    #[test]
    fn requests_and_whole_lines_within_json_objects_are_found() {
        for (line, expected) in [
            (
                r#"{"ts":1795682713.25,"request":{"method":"GET","uri":"/a","host":"h"},"status":200}"#,
                "GET /a at 13250",
            ),
            (
                // Caddy's durations are in seconds.
                r#"{"ts":1795682713.25,"request":{"method":"GET","uri":"/a"},"duration":1.5}"#,
                "GET /a at 13250, took 1500 ms",
            ),
            (
                r#"{"time":1795682713250,"req":{"method":"GET","url":"/a"},"responseTime":50}"#,
                "GET /a at 13250, took 50 ms",
            ),
            (
                r#"{"timestamp":"2026-11-26T08:45:13.25Z","payload":{"method":"GET","path":"/a"}}"#,
                "GET /a at 13250",
            ),
            (
                r#"{"log":"h - - [26/Nov/2026:08:45:13 +0000] \"GET /a HTTP/1.1\" 200 5\n","time":"2026-11-26T08:45:13.250Z"}"#,
                "GET /a at 13250",
            ),
            (
                r#"{"MESSAGE":"method=GET path=/a duration=50","__REALTIME_TIMESTAMP":"1795682713250000"}"#,
                "GET /a at 13250, took 50 ms",
            ),
        ] {
            assert_eq!(read(line), format!("JSON lines: {expected}"), "{line}");
        }
    }

    #[test]
    fn logfmt_is_read_with_quotes_in_its_values_and_as_heroku_writes_it() {
        let escaped = r#"time=2026-11-26T08:45:13.25Z msg="a \"b\" c=d" method=GET path="/a""#;
        assert_eq!(read(escaped), "logfmt: GET /a at 13250");
        let heroku = "2026-11-26T08:45:13.250000+00:00 heroku[router]: at=info method=GET \
                      path=\"/a\" host=h dyno=web.1 connect=0ms service=50ms status=200 bytes=5";
        assert_eq!(read(heroku), "logfmt: GET /a at 13250, took 50 ms");
    }

    #[test]
    fn text_that_is_no_log_has_no_format() {
        for text in ["what is this", "GET /search?q=1", "/posts\n/search", "<html>"] {
            assert!(read(text) == "unknown" || read(text).ends_with("nothing"), "{text}");
        }
    }
}
