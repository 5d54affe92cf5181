//! Reads access logs for a replay: when which request came.
//!
//! Three formats, told by the first line that is one: the combined log format (nginx, Apache), JSON
//! lines, logfmt. Of each line the time, the method and the path are taken, and the duration where
//! the line has one under a name that is known: then the time is the request's end, as nginx and
//! Rails write it, and the duration is subtracted. What cannot be replayed is counted by its reason.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use http::Method;
use jiff::Timestamp;
use jiff::fmt::strtime;
use model::pace::uniform;
use model::{Nanos, Request};
use serde_json::Value;

use crate::classes::name_by_route;
use crate::file::{LARGEST_FILE, contents, lines, name_of};
use crate::target::TargetUrl;
use crate::template::{RequestTemplate, method};
use crate::{RequestError, excerpt};

/// The most requests of a log that are replayed.
const MOST: usize = 5_000_000;
/// Names of the time in JSON and logfmt, the first that is there.
const TIMES: [&str; 9] = [
    "time",
    "timestamp",
    "ts",
    "@timestamp",
    "time_iso8601",
    "time_local",
    "msec",
    "datetime",
    "date",
];
/// Names of a time that is the request's start.
const STARTS: [&str; 3] = ["start_time", "started_at", "start"];
const METHODS: [&str; 4] = ["method", "request_method", "http_method", "verb"];
const PATHS: [&str; 5] = ["path", "request_uri", "uri", "url", "http_path"];
/// Names of a whole request line, `GET /posts HTTP/1.1`.
const REQUEST_LINES: [&str; 2] = ["request", "request_line"];
/// Names of the duration, and nanoseconds in its unit where it has none.
const DURATIONS: [(&str, f64); 8] = [
    ("request_time", 1e9),
    ("rt", 1e9),
    ("duration_s", 1e9),
    ("duration", 1e6),
    ("duration_ms", 1e6),
    ("elapsed_ms", 1e6),
    ("duration_us", 1e3),
    ("duration_ns", 1.0),
];

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// nginx's and Apache's `combined`, or `common`.
    Combined,
    /// An object a line.
    JsonLines,
    /// `key=value` pairs.
    Logfmt,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LogFormat::Combined => "combined log format",
            LogFormat::JsonLines => "JSON lines",
            LogFormat::Logfmt => "logfmt",
        })
    }
}

/// How a log is replayed.
#[derive(Clone, Debug)]
pub struct ReplayDefaults {
    /// Where its requests go.
    pub target: TargetUrl,
    /// Headers that each request has.
    pub template: RequestTemplate,
    /// Whether methods other than GET and HEAD are sent, too.
    pub all_methods: bool,
    /// The seed by which times in whole seconds are spread.
    pub seed: u64,
}

/// A log that can be replayed.
#[derive(Clone, Debug)]
pub struct ReplayedLog {
    /// Its format.
    pub format: LogFormat,
    /// When each request came, by the log's clock, rising.
    pub times: Vec<Nanos>,
    /// When the log begins: with its first request, or with that one's second where the times are
    /// spread, so that each second keeps its count.
    pub start: Nanos,
    /// The request of each of those times.
    pub requests: Vec<Request>,
    /// The names of their classes, which are their routes; empty if there is only one.
    pub classes: Vec<String>,
    /// Whether they leave their connection open.
    pub keep_alive: bool,
    /// Whether the log has whole seconds only, which were spread.
    pub is_spread: bool,
    /// Lines from whose time a duration was subtracted.
    pub ended: u64,
    /// Lines that are not replayed, by the reason.
    pub left_out: BTreeMap<String, u64>,
}

/// A line of a log.
struct LogLine {
    /// Nanoseconds since 1970.
    time: i128,
    /// Nanoseconds that the request took, where the time is its end.
    took: Option<f64>,
    /// Whether the time has a fraction of a second.
    is_fine: bool,
    method: String,
    path: String,
}

/// Why a line is not replayed.
type LeftOut = &'static str;
const NO_LINE: LeftOut = "not a line of the format";
const NO_TIME: LeftOut = "without a time";
const NO_REQUEST: LeftOut = "without a method and a path";

/// Reads a log.
///
/// # Errors
/// If it cannot be read, has no format that is known, or no request that can be replayed.
pub fn read_log(path: &Path, given: &ReplayDefaults) -> Result<ReplayedLog, RequestError> {
    let bytes = contents(path, LARGEST_FILE, "the log is larger than 1 GiB: use a part of it")?;
    parse_log(&bytes, given).map_err(|why| RequestError::new(format!("{}: {why}", name_of(path))))
}

/// Reads a log's bytes.
///
/// # Errors
/// As [`read_log`].
pub fn parse_log(bytes: &[u8], given: &ReplayDefaults) -> Result<ReplayedLog, RequestError> {
    let texts = || {
        let all = lines(bytes).map(|(number, line)| (number, String::from_utf8_lossy(line)));
        all.filter(|(_, line)| !line.trim().is_empty())
    };
    let Some((number, first)) = texts().next() else {
        return Err(RequestError::new("there is no line in it: give another log"));
    };
    let format = detect(&first).ok_or_else(|| {
        RequestError::new(format!(
            "'{}' begins no log that is known: give the combined log format, JSON lines, or \
             logfmt, with a time, a method and a path",
            excerpt(&*first)
        ))
        .at_line(number)
    })?;
    let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
    let mut kept = Vec::new();
    for (_, line) in texts() {
        match log_line(format, &line).and_then(|line| replayed_line(line, given)) {
            Ok(line) => kept.push(line),
            Err(reason) => *left_out.entry(reason).or_default() += 1,
        }
        if kept.len() > MOST {
            return Err(RequestError::new("it has more than 5 million requests: use a part of it"));
        }
    }
    if kept.is_empty() {
        return Err(RequestError::new(nothing_to_replay(&left_out)));
    }
    let is_spread = kept.iter().all(|line| !line.is_fine);
    if is_spread {
        spread_within_seconds(&mut kept, given.seed);
    }
    let ended = kept.iter().filter(|line| line.took.is_some()).count() as u64;
    for line in &mut kept {
        line.time -= line.took.unwrap_or_default() as i128;
    }
    // Lines are in the order of their ends, or of several writers.
    kept.sort_by_key(|line| line.time);
    let mut log = ReplayedLog {
        format,
        times: Vec::with_capacity(kept.len()),
        start: Nanos::ZERO,
        requests: Vec::with_capacity(kept.len()),
        classes: Vec::new(),
        keep_alive: given.template.keeps_connection()?,
        is_spread,
        ended,
        left_out,
    };
    let mut rendered = RenderedOnce { given, known: HashMap::new() };
    for line in &kept {
        // A path that cannot be sent was left out by `replayed_line`.
        log.requests.push(rendered.request(line)?);
        log.times.push(Nanos(u64::try_from(line.time).unwrap_or_default()));
    }
    log.classes = name_by_route(&mut log.requests);
    let first = log.times.first().copied().unwrap_or_default();
    log.start = if is_spread { Nanos(first.0 - first.0 % 1_000_000_000) } else { first };
    Ok(log)
}

fn nothing_to_replay(left_out: &BTreeMap<String, u64>) -> String {
    let reasons: Vec<String> = left_out.iter().map(|(why, n)| format!("{n} {why}")).collect();
    format!(
        "nothing in it can be replayed ({}): GET and HEAD are, and others with --replay-all",
        reasons.join(", ")
    )
}

/// The requests of a log, each rendered once.
struct RenderedOnce<'a> {
    given: &'a ReplayDefaults,
    known: HashMap<String, Request>,
}

impl RenderedOnce<'_> {
    fn request(&mut self, line: &LogLine) -> Result<Request, RequestError> {
        let key = format!("{} {}", line.method, line.path);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let template =
            RequestTemplate { method: method(&line.method)?, ..self.given.template.clone() };
        let request = template.render(&self.given.target.at(&line.path)?)?.request;
        self.known.insert(key, request.clone());
        Ok(request)
    }
}

/// A line that can be replayed, or the reason why not.
fn replayed_line(line: LogLine, given: &ReplayDefaults) -> Result<LogLine, String> {
    let Ok(method) = method(&line.method) else {
        return Err("with a method that cannot be sent".to_owned());
    };
    if !given.all_methods && method != Method::GET && method != Method::HEAD {
        return Err(method.to_string());
    }
    let path = if line.path.starts_with('/') { Some(line.path) } else { path_of(&line.path) };
    let Some(path) = path.filter(|path| given.target.at(path).is_ok()) else {
        return Err("with a path that cannot be sent".to_owned());
    };
    Ok(LogLine { path, method: method.to_string(), ..line })
}

/// The path of a whole URL.
fn path_of(url: &str) -> Option<String> {
    TargetUrl::parse(url).ok().filter(|_| url.contains("://")).map(|url| url.path)
}

/// The lines of each second, spread over it by the seed, in their order: as many draws as lines,
/// sorted.
fn spread_within_seconds(lines: &mut [LogLine], seed: u64) {
    lines.sort_by_key(|line| line.time);
    let mut from = 0;
    while from < lines.len() {
        let second = lines[from].time;
        let until = from + lines[from..].iter().take_while(|line| line.time == second).count();
        let mut draws: Vec<f64> = (from..until).map(|n| 1.0 - uniform(seed, n as u64)).collect();
        draws.sort_by(f64::total_cmp);
        for (line, draw) in lines[from..until].iter_mut().zip(draws) {
            line.time += (draw * 1e9) as i128;
        }
        from = until;
    }
}

fn detect(line: &str) -> Option<LogFormat> {
    if line.trim_start().starts_with('{') {
        return Some(LogFormat::JsonLines);
    }
    if combined(line).is_ok() {
        return Some(LogFormat::Combined);
    }
    (!pairs(line).is_empty()).then_some(LogFormat::Logfmt)
}

fn log_line(format: LogFormat, line: &str) -> Result<LogLine, String> {
    match format {
        LogFormat::Combined => combined(line),
        LogFormat::JsonLines => match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(object)) => {
                let text = |value: &Value| match value {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(number) => Some(number.to_string()),
                    Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
                };
                let fields = object
                    .iter()
                    .filter_map(|(name, value)| text(value).map(|value| (name.clone(), value)));
                of_fields(&fields.collect())
            }
            _ => Err(NO_LINE),
        },
        LogFormat::Logfmt => {
            let fields = pairs(line);
            if fields.is_empty() { Err(NO_LINE) } else { of_fields(&fields) }
        }
    }
    .map_err(str::to_owned)
}

/// `host ident user [26/Nov/2026:08:45:13 +0000] "GET /path HTTP/1.1" 200 612 …`, with
/// `rt=0.123` or `request_time=0.123` behind where a log has it.
fn combined(line: &str) -> Result<LogLine, LeftOut> {
    let (_, rest) = line.split_once('[').ok_or(NO_LINE)?;
    let (date, rest) = rest.split_once(']').ok_or(NO_LINE)?;
    let (_, rest) = rest.split_once('"').ok_or(NO_LINE)?;
    let (request, rest) = rest.split_once('"').ok_or(NO_LINE)?;
    let time = time_of(date).ok_or(NO_TIME)?;
    let LoggedRequest { method, path } = LoggedRequest::parse(request).ok_or(NO_REQUEST)?;
    let behind = pairs(rest);
    Ok(LogLine { time: time.nanos, took: took(&behind), is_fine: time.is_fine, method, path })
}

/// A request's first line.
struct LoggedRequest {
    method: String,
    path: String,
}

impl LoggedRequest {
    fn parse(text: &str) -> Option<LoggedRequest> {
        let mut words = text.split_ascii_whitespace();
        let method = words.next()?.to_owned();
        let path = words.next()?.to_owned();
        Some(LoggedRequest { method, path })
    }
}

fn of_fields(fields: &HashMap<String, String>) -> Result<LogLine, LeftOut> {
    let first = |names: &[&str]| names.iter().find_map(|name| fields.get(*name));
    let start = first(&STARTS).and_then(|text| time_of(text));
    let end = || first(&TIMES).and_then(|text| time_of(text));
    let took = if start.is_some() { None } else { took(fields) };
    let time = start.or_else(end).ok_or(NO_TIME)?;
    let line = first(&REQUEST_LINES).and_then(|line| LoggedRequest::parse(line));
    let parts = || {
        let path = first(&PATHS)?.clone();
        // Where a log names no method, it would be a guess.
        Some(LoggedRequest { method: first(&METHODS)?.clone(), path })
    };
    let LoggedRequest { method, path } = parts().or(line).ok_or(NO_REQUEST)?;
    Ok(LogLine { time: time.nanos, took, is_fine: time.is_fine, method, path })
}

/// How many nanoseconds a request took, by the first field that says so.
fn took(fields: &HashMap<String, String>) -> Option<f64> {
    let nanos = DURATIONS.iter().find_map(|(name, unit)| {
        let text = fields.get(*name)?;
        match text.parse::<f64>() {
            Ok(number) => Some(number * unit),
            Err(_) => text.parse::<Nanos>().ok().map(|time| time.0 as f64),
        }
    });
    nanos.filter(|nanos| nanos.is_finite() && (0.0..1e15).contains(nanos))
}

/// The pairs of a line of logfmt: `key=value`, and `key="value with blanks"`.
fn pairs(line: &str) -> HashMap<String, String> {
    let mut fields = HashMap::new();
    let mut rest = line.trim();
    while let Some((before, behind)) = rest.split_once('=') {
        let name = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let value;
        if let Some(quoted) = behind.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            value = &quoted[..end];
            rest = quoted.get(end + 1..).unwrap_or_default();
        } else {
            let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
            value = &behind[..end];
            rest = &behind[end..];
        }
        if !name.is_empty() {
            fields.insert(name.to_owned(), value.to_owned());
        }
    }
    fields
}

/// A time of a log.
struct LogTime {
    nanos: i128,
    is_fine: bool,
}

/// `26/Nov/2026:08:45:13 +0000`, RFC 3339, or seconds, milliseconds, microseconds or nanoseconds
/// since 1970, told by their size.
fn time_of(text: &str) -> Option<LogTime> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return since_1970(text);
    }
    let parsed = match text.parse::<Timestamp>() {
        Ok(time) => time,
        Err(_) => strtime::parse("%d/%b/%Y:%H:%M:%S%.f %z", text).ok()?.to_timestamp().ok()?,
    };
    let is_fine = text.contains('.') || parsed.subsec_nanosecond() != 0;
    Some(LogTime { nanos: parsed.as_nanosecond(), is_fine })
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

    fn given(all_methods: bool) -> ReplayDefaults {
        let target = TargetUrl::parse("http://127.0.0.1:3000/").unwrap();
        ReplayDefaults { target, template: RequestTemplate::default(), all_methods, seed: 1 }
    }

    fn first_lines(log: &ReplayedLog) -> Vec<String> {
        let first = |request: &Request| {
            String::from_utf8_lossy(&request.bytes).lines().next().unwrap_or_default().to_owned()
        };
        log.requests.iter().map(first).collect()
    }

    #[test]
    fn a_line_says_when_which_request_came_in_each_format() {
        let at = 1_795_682_713_u64 * 1_000_000_000;
        for (line, since, is_spread) in [
            (
                r#"::1 - - [26/Nov/2026:08:45:13 +0000] "GET /a?b=1 HTTP/1.1" 200 5 "-" "x""#,
                0,
                true,
            ),
            (r#"{"time":"2026-11-26T08:45:13.250Z","method":"GET","path":"/a?b=1"}"#, 250, false),
            (r#"{"ts":1795682713.25,"request":"GET /a?b=1 HTTP/1.1"}"#, 250, false),
            (
                r#"{"timestamp":1795682713250,"verb":"get","url":"http://h.example/a?b=1"}"#,
                250,
                false,
            ),
            // The end, and how long it took.
            (
                r#"{"time":"2026-11-26T09:45:13.25+01:00","method":"GET","path":"/a?b=1","duration":50}"#,
                200,
                false,
            ),
            (
                r#"{"msec":1795682713.250,"request_method":"GET","uri":"/a?b=1","request_time":"0.050"}"#,
                200,
                false,
            ),
            (
                r#"{"started_at":1795682713.250,"method":"GET","path":"/a?b=1","duration":50}"#,
                250,
                false,
            ),
            (
                "level=info time=2026-11-26T08:45:13.25Z method=GET path=/a?b=1 duration=50ms",
                200,
                false,
            ),
            (r#"ts=1795682713.250 msg="x = y" method=GET path="/a?b=1""#, 250, false),
        ] {
            let log = parse_log(line.as_bytes(), &given(false)).expect(line);
            assert_eq!(first_lines(&log), ["GET /a?b=1 HTTP/1.1"], "{line}");
            assert_eq!(log.is_spread, is_spread, "{line}");
            let since_second = log.times[0].0 - at;
            if is_spread {
                assert!(since_second < 1_000_000_000, "{line}");
            } else {
                assert_eq!(since_second, since * 1_000_000, "{line}");
            }
        }
    }

    #[test]
    fn what_is_not_replayed_is_counted_by_its_reason() {
        let log = "{\"time\":1795682713.5,\"method\":\"GET\",\"path\":\"/1\"}\n\
                   {\"time\":1795682714.5,\"method\":\"DELETE\",\"path\":\"/1\"}\n\
                   {\"time\":1795682715.5,\"method\":\"POST\",\"path\":\"/1\"}\n\
                   {\"method\":\"GET\",\"path\":\"/1\"}\n\
                   {\"time\":1795682715.5,\"path\":\"/1\"}\n\
                   {\"time\":1795682715.5,\"method\":\"GET\",\"path\":\"*\"}\n\
                   no json\n\n\
                   {\"time\":1795682713.25,\"method\":\"HEAD\",\"path\":\"/0\"}\n";
        let read = parse_log(log.as_bytes(), &given(false)).unwrap();
        assert_eq!(
            first_lines(&read),
            ["HEAD /0 HTTP/1.1", "GET /1 HTTP/1.1"],
            "in the order of time"
        );
        let expected = [
            ("DELETE", 1),
            ("POST", 1),
            ("not a line of the format", 1),
            ("with a path that cannot be sent", 1),
            ("without a method and a path", 1),
            ("without a time", 1),
        ];
        let expected = expected.map(|(why, n)| (why.to_owned(), n));
        assert_eq!(read.left_out, BTreeMap::from(expected));
        assert_eq!(parse_log(log.as_bytes(), &given(true)).unwrap().requests.len(), 4);
        for (text, why) in [
            ("", "no line"),
            ("what is this", "begins no log"),
            ("{\"time\":1,\"method\":\"PUT\",\"path\":\"/\"}", "(1 PUT)"),
        ] {
            let error = parse_log(text.as_bytes(), &given(false)).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn whole_seconds_keep_their_count_and_their_order() {
        let counts = [3_usize, 0, 1, 200, 7];
        let line = |second: usize, n: usize| {
            format!(
                "h - - [26/Nov/2026:08:45:{second:02} +0000] \"GET /{second}/{n} HTTP/1.1\" 200 1\n"
            )
        };
        let text: String = (0..counts.len())
            .flat_map(|second| (0..counts[second]).map(move |n| line(second, n)))
            .collect();
        let log = parse_log(text.as_bytes(), &given(false)).unwrap();
        assert!(log.is_spread && log.times.is_sorted());
        let start = log.start.0 / 1_000_000_000;
        assert_eq!(log.start, Nanos::from_secs(start));
        for (second, count) in counts.into_iter().enumerate() {
            let of_second = |time: &&Nanos| time.0 / 1_000_000_000 - start == second as u64;
            assert_eq!(log.times.iter().filter(of_second).count(), count);
        }
        let paths = first_lines(&log);
        let expected = text.lines().filter_map(|line| line.split('"').nth(1));
        assert!(paths.iter().map(String::as_str).eq(expected), "in the log's order");
        let again = parse_log(text.as_bytes(), &given(false)).unwrap();
        assert_eq!(log.times, again.times);
    }

    /// Ten thousand lines, to the microsecond.
    #[test]
    fn json_lines_keep_their_times_to_the_microsecond() {
        let time = |n: u64| 1_795_682_713_000_000 + n * n * 7 % 86_400_000_000;
        let mut micros: Vec<u64> = (0..10_000).map(time).collect();
        micros.sort_unstable();
        let line = |time: &u64| {
            format!(
                "{{\"ts\":{}.{:06},\"method\":\"GET\",\"path\":\"/{time}\"}}\n",
                time / 1_000_000,
                time % 1_000_000
            )
        };
        let text: String = micros.iter().map(line).collect();
        let log = parse_log(text.as_bytes(), &given(false)).unwrap();
        assert_eq!(log.times.len(), 10_000);
        for (time, micros) in log.times.iter().zip(&micros) {
            assert!(time.0.abs_diff(micros * 1_000) < 1_000, "{time} {micros}");
        }
    }
}
