//! Reads access logs for a replay: when which request came.
//!
//! Of each line ([`LogFormat`]) the time, the method and the path are taken, and the duration where
//! the line has one under a name that is known: then the time is the request's end, as nginx and
//! lograge write it, and the duration is subtracted, unless it was read in a wrong unit. What cannot
//! be replayed is counted by its reason.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use http::Method;
use jiff::Timestamp;
use model::pace::uniform;
use model::{Nanos, Request};
use percent_encoding::utf8_percent_encode;

use crate::classes::name_by_route;
use crate::compressed::refuse_compressed;
use crate::file::{LARGEST_FILE, contents, lines};
use crate::file_name::name_of;
use crate::log_line::{
    DurationUnit, LogFormat, LogLine, LoggedDuration, NO_LINE, NO_REQUEST, NO_TIME,
};
use crate::target::TargetUrl;
use crate::template::{RequestTemplate, method};
use crate::varying::NOT_IN_URLS;
use crate::{RequestError, excerpt};

/// The most requests of a log that are replayed.
const MOST: usize = 5_000_000;

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
    /// Lines whose time is a whole second, which were spread over it.
    pub spread: u64,
    /// Lines from whose time a duration was subtracted.
    pub ended: u64,
    /// The units in which durations were read that the log writes without one.
    pub durations_in: BTreeSet<DurationUnit>,
    /// Whether no duration was subtracted, because they would make the log much longer than it is.
    pub has_wrong_durations: bool,
    /// Lines that are not replayed, by the reason.
    pub left_out: BTreeMap<String, u64>,
}

/// Reads a log.
///
/// # Errors
/// If it cannot be read, has no format that is known, or no request that can be replayed.
pub fn read_log(path: &Path, given: &ReplayDefaults) -> Result<ReplayedLog, RequestError> {
    let bytes = contents(path, LARGEST_FILE, "the log is larger than 1 GiB: use a part of it")?;
    refuse_compressed(&bytes, path, "--replay")?;
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
    let format = LogFormat::of_lines(|| texts().map(|(_, line)| line)).ok_or_else(|| {
        RequestError::new(format!(
            "'{}' begins no log that is known: give the combined log format, JSON lines, logfmt, \
             or a Rails log, with a time, a method and a path",
            excerpt(&*first)
        ))
        .at_line(number)
    })?;
    let KeptLines { lines: mut kept, mut left_out } = {
        let lines = texts().map(|(number, text)| LogText { number, text });
        kept_lines(format, lines, given)?
    };
    leave_out_far_times(&mut kept, &mut left_out);
    let spread = kept.iter().filter(|line| line.is_whole_second()).count();
    let is_spread = spread as f64 >= MOSTLY_WHOLE * kept.len() as f64;
    if is_spread {
        spread_within_seconds(&mut kept, given.seed);
    }
    let has_wrong_durations = has_wrong_durations(&kept);
    if has_wrong_durations {
        for line in &mut kept {
            line.took = None;
        }
    }
    for line in &mut kept {
        line.time = line.start();
    }
    leave_out_far_times(&mut kept, &mut left_out);
    let took = || kept.iter().filter_map(|line| line.took);
    let mut log = ReplayedLog {
        format,
        times: Vec::with_capacity(kept.len()),
        start: Nanos::ZERO,
        requests: Vec::with_capacity(kept.len()),
        classes: Vec::new(),
        keep_alive: given.template.keeps_connection()?,
        spread: if is_spread { spread as u64 } else { 0 },
        ended: took().count() as u64,
        durations_in: took().filter_map(|took| took.read_as).collect(),
        has_wrong_durations,
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

/// A line of a log that is replayed.
struct KeptLine {
    /// Its number in the log, from 1 on.
    number: usize,
    /// Nanoseconds since 1970.
    time: i128,
    /// How long the request took, where the time is its end.
    took: Option<LoggedDuration>,
    method: String,
    path: String,
}

/// If at least this share of the times are whole seconds, the log has no finer ones. Some are whole by
/// chance in any log: with a request every 250 ms, a quarter of them.
const MOSTLY_WHOLE: f64 = 0.9;

impl KeptLine {
    /// Whether its time is a whole second, in whatever way it was written.
    fn is_whole_second(&self) -> bool {
        self.time % 1_000_000_000 == 0
    }

    /// When the request came.
    fn start(&self) -> i128 {
        self.time - self.took.map_or(0, |took| took.nanos as i128)
    }
}

/// The lines of a log that are replayed.
struct KeptLines {
    lines: Vec<KeptLine>,
    /// How many others there are, by the reason.
    left_out: BTreeMap<String, u64>,
}

/// A line of the log.
struct LogText<'l> {
    /// From 1.
    number: usize,
    text: Cow<'l, str>,
}

/// Reads lines, of which one at least must be replayed.
fn kept_lines<'l>(
    format: LogFormat,
    lines_of_log: impl Iterator<Item = LogText<'l>>,
    given: &ReplayDefaults,
) -> Result<KeptLines, RequestError> {
    let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
    let mut lines = Vec::new();
    for LogText { number, text } in lines_of_log {
        let read = match format.read(&text) {
            // What a Rails log says of a request after its start.
            Err(NO_LINE) if format == LogFormat::Rails => continue,
            Err(reason) => Err(reason.to_owned()),
            Ok(line) => replayed_line(number, &line, given),
        };
        match read {
            Ok(line) => lines.push(line),
            Err(reason) => *left_out.entry(reason).or_default() += 1,
        }
        if lines.len() > MOST {
            return Err(RequestError::new("it has more than 5 million requests: use a part of it"));
        }
    }
    if lines.is_empty() {
        return Err(RequestError::new(nothing_to_replay(&left_out)));
    }
    Ok(KeptLines { lines, left_out })
}

/// A gap in a log is taken for a wrong time only if it is longer than this...
const LONG_GAP: i128 = 86_400_000_000_000;
/// ...and on one side of it is at most this share of the lines.
const FEW_LINES: f64 = 0.1;

/// Leaves out the few lines whose time is far from that of all others, as where a clock was not yet
/// set: a replay would wait for years. Far means behind a gap of more than half of what the log
/// spans. Puts the lines in the order of their time: in a log they may be in the order in which the
/// requests ended, or come from several writers.
fn leave_out_far_times(lines: &mut Vec<KeptLine>, left_out: &mut BTreeMap<String, u64>) {
    lines.sort_by_key(|line| line.time);
    let mut far: Vec<KeptLine> = Vec::new();
    while let Some(after) = (1..lines.len()).max_by_key(|at| gap_before(lines, *at)) {
        let span = lines[lines.len() - 1].time - lines[0].time;
        let gap = gap_before(lines, after);
        let few = (lines.len() as f64 * FEW_LINES) as usize;
        if gap <= LONG_GAP || gap <= span / 2 {
            break;
        } else if after <= few {
            far.extend(lines.drain(..after));
        } else if lines.len() - after <= few {
            far.extend(lines.drain(after..));
        } else {
            break;
        }
    }
    if let Some(first) = far.iter().min_by_key(|line| line.number) {
        let time = Timestamp::from_nanosecond(first.time).map(|time| format!(": {time:.0}"));
        let reason = format!(
            "with a time far from all others (line {}{})",
            first.number,
            time.unwrap_or_default()
        );
        left_out.insert(reason, far.len() as u64);
    }
}

/// If the starts span more than this many times what the ends span, plus a minute, the durations were
/// read in a wrong unit.
const MUCH_LONGER: i128 = 2;
const MINUTE: i128 = 60_000_000_000;

/// Whether subtracting the durations makes a log much longer than its times are. A tenth of the
/// lines may be of requests that truly took that long.
fn has_wrong_durations(lines: &[KeptLine]) -> bool {
    if lines.iter().all(|line| line.took.is_none_or(|took| took.read_as.is_none())) {
        return false;
    }
    let spread = |mut times: Vec<i128>| {
        times.sort_unstable();
        let few = (times.len() as f64 * FEW_LINES) as usize;
        times.last().copied().unwrap_or_default() - times.get(few).copied().unwrap_or_default()
    };
    let ends = spread(lines.iter().map(|line| line.time).collect());
    let starts = spread(lines.iter().map(KeptLine::start).collect());
    starts > MUCH_LONGER * ends + MINUTE
}

/// The nanoseconds between a line and the one before.
fn gap_before(lines: &[KeptLine], at: usize) -> i128 {
    lines[at].time - lines[at - 1].time
}

/// Why nothing is left of a log, and what to do about the most frequent reason.
fn nothing_to_replay(left_out: &BTreeMap<String, u64>) -> String {
    let reasons: Vec<String> = left_out.iter().map(|(why, n)| format!("{n} {why}")).collect();
    let most = left_out.iter().max_by_key(|(_, lines)| **lines).map(|(why, _)| why.as_str());
    let what_to_do = match most {
        Some(NO_TIME) => {
            "have it write one, such as time=2026-11-26T08:45:13.250Z (lograge: \
             config.lograge.custom_options = ->(event) { { time: Time.now.utc.iso8601(3) } })"
        }
        Some(NO_LINE | NO_REQUEST | NO_METHOD | NO_PATH) => {
            "a line needs a method and a path, such as method=GET path=/posts"
        }
        Some(_) | None => "GET and HEAD are, and others with --replay-all",
    };
    format!("nothing in it can be replayed ({}): {what_to_do}", reasons.join(", "))
}

/// The requests of a log, each rendered once.
struct RenderedOnce<'a> {
    given: &'a ReplayDefaults,
    known: HashMap<String, Request>,
}

impl RenderedOnce<'_> {
    fn request(&mut self, line: &KeptLine) -> Result<Request, RequestError> {
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

const NO_METHOD: &str = "with a method that cannot be sent";
const NO_PATH: &str = "with a path that cannot be sent";

/// A line that can be replayed, or the reason why not.
fn replayed_line(
    number: usize,
    line: &LogLine,
    given: &ReplayDefaults,
) -> Result<KeptLine, String> {
    let Ok(method) = method(&line.method) else {
        return Err(NO_METHOD.to_owned());
    };
    if !given.all_methods && method != Method::GET && method != Method::HEAD {
        return Err(method.to_string());
    }
    // A client may have sent characters that no URL may have.
    let logged = utf8_percent_encode(&line.path, NOT_IN_URLS).to_string();
    let path = if logged.starts_with('/') { Some(logged) } else { path_of(&logged) };
    let Some(path) = path.filter(|path| given.target.at(path).is_ok()) else {
        return Err(NO_PATH.to_owned());
    };
    let LogLine { time, took, .. } = *line;
    Ok(KeptLine { number, time, took, method: method.to_string(), path })
}

/// The path of a whole URL.
fn path_of(url: &str) -> Option<String> {
    TargetUrl::parse(url).ok().filter(|_| url.contains("://")).map(|url| url.path)
}

/// The lines of each whole second, spread over it by the seed, in their order: as many draws as
/// lines, sorted. Lines with a fraction of a second stay where they are.
fn spread_within_seconds(lines: &mut [KeptLine], seed: u64) {
    lines.sort_by_key(|line| line.time);
    let mut from = 0;
    while from < lines.len() {
        let second = lines[from].time;
        let until = from + lines[from..].iter().take_while(|line| line.time == second).count();
        if !lines[from].is_whole_second() {
            from = until;
            continue;
        }
        // `uniform` draws from (0, 1], and these must stay below the next second.
        let mut draws: Vec<f64> = (from..until).map(|n| 1.0 - uniform(seed, n as u64)).collect();
        draws.sort_by(f64::total_cmp);
        for (line, draw) in lines[from..until].iter_mut().zip(draws) {
            line.time += (draw * 1e9) as i128;
        }
        from = until;
    }
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
            assert_eq!(log.spread > 0, is_spread, "{line}");
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
            ("{\"time\":1,\"method\":\"PUT\",\"path\":\"/\"}", "(1 PUT): GET and HEAD are"),
            ("method=GET path=/posts duration=5", "(1 without a time): have it write one"),
            ("time=1795682713 user=1", "a line needs a method and a path"),
        ] {
            let error = parse_log(text.as_bytes(), &given(false)).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_time_far_from_all_others_is_left_out() {
        let at =
            |seconds: i64| format!("{{\"time\":{seconds},\"method\":\"GET\",\"path\":\"/\"}}\n");
        let usual: String = (0..50).map(|n| at(1_795_682_713 + n)).collect();
        let far = |line, time| format!("with a time far from all others (line {line}: {time})");
        let unset = far(51, "1970-01-01T00:00:00Z");
        for (lines, requests, left_out) in [
            (usual.clone(), 50, None),
            (usual.clone() + &at(0), 50, Some((unset.clone(), 1))),
            (usual.clone() + &at(0) + &at(4_102_444_800), 50, Some((unset, 2))),
            (at(1_789_000_000) + &usual, 50, Some((far(1, "2026-09-10T00:26:40Z"), 1))),
            // A quiet night, and two days of which each is a part of the log.
            (usual.clone() + &at(1_795_682_713 + 80_000), 51, None),
            ((0..9).map(|n| at(1_795_682_713 + n * 100_000)).collect(), 9, None),
            ((0..9).map(|n| at(1_795_682_713 + n / 5 * 500_000)).collect(), 9, None),
        ] {
            let log = parse_log(lines.as_bytes(), &given(false)).unwrap();
            assert_eq!(log.requests.len(), requests, "{lines}");
            assert_eq!(log.left_out, left_out.into_iter().collect(), "{lines}");
        }
    }

    #[test]
    fn what_a_rails_log_says_of_a_request_after_its_start_is_not_counted() {
        let text = "I, [2026-11-26T08:45:13.5 #1]  INFO -- : Started GET \"/1?q=a b\" for ::1 at \
                    2026-11-26 08:45:13 +0000\r\n\
                    I, [2026-11-26T08:45:13.6 #1]  INFO -- : Completed 200 OK in 12ms\r\n\
                    I, [2026-11-26T08:45:14.5 #1]  INFO -- : Started POST \"/1\" for ::1 at \
                    2026-11-26 08:45:14 +0000\r\n";
        let log = parse_log(text.as_bytes(), &given(false)).unwrap();
        assert_eq!(log.format, LogFormat::Rails);
        assert_eq!(first_lines(&log), ["GET /1?q=a%20b HTTP/1.1"]);
        assert_eq!(log.left_out, BTreeMap::from([("POST".to_owned(), 1)]));
        assert!(log.spread == 0 && log.ended == 0);
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
        assert!(log.spread == 211 && log.times.is_sorted());
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

    #[test]
    fn a_duration_is_subtracted_in_a_unit_that_is_said_unless_it_cannot_be_right() {
        let of_go = |n: u64, nanos: u64| {
            format!(
                "{{\"time\":1795682713.{n:03},\"method\":\"GET\",\"path\":\"/\",\"duration\":{nanos}}}\n"
            )
        };
        let go: String = (100..200).map(|n| of_go(n, n * 100_000)).collect();
        let log = parse_log(go.as_bytes(), &given(false)).unwrap();
        assert!(log.has_wrong_durations && log.ended == 0);
        assert_eq!(log.times[0].0, 1_795_682_713_100_000_000, "as logged");
        // A few requests that took hours, such as of a WebSocket, are no wrong unit.
        let ms: String =
            (100..200).map(|n| of_go(n, if n == 150 { 9_000_000 } else { 50 })).collect();
        let log = parse_log(ms.as_bytes(), &given(false)).unwrap();
        assert!(!log.has_wrong_durations && log.ended == 100);
        assert_eq!(log.durations_in, BTreeSet::from([DurationUnit::Milliseconds]));
        let written = "time=2026-11-26T08:45:13.25Z method=GET path=/a duration=50ms";
        let log = parse_log(written.as_bytes(), &given(false)).unwrap();
        assert!(log.durations_in.is_empty() && log.ended == 1, "its unit is known");
        let long_poll = |n: u64| {
            let took = 30 + n;
            format!("time=2026-11-26T08:45:13.{n:03}Z method=GET path=/a duration={took}s\n")
        };
        let long: String = (100..220).map(long_poll).collect();
        let log = parse_log(long.as_bytes(), &given(false)).unwrap();
        assert!(!log.has_wrong_durations && log.ended == 120, "the log says that it is seconds");
    }

    #[test]
    fn whole_seconds_are_known_however_they_are_written() {
        let at =
            |time: &str| format!("{{\"time\":\"{time}\",\"method\":\"GET\",\"path\":\"/\"}}\n");
        let whole = at("2026-11-26T08:00:00.000Z");
        let fine = |n| at(&format!("2026-11-26T08:00:01.{n:03}Z"));
        let some_fine: String = (1..3).map(fine).collect();
        let all_fine: String = (1..400).map(fine).collect();
        for (text, spread) in [
            (whole.repeat(20), 20),
            ("{\"ts\":1795680000000,\"method\":\"GET\",\"path\":\"/\"}\n".repeat(20), 20),
            (whole.repeat(20) + &some_fine, 20),
            (whole.repeat(2) + &all_fine, 0),
        ] {
            let log = parse_log(text.as_bytes(), &given(false)).unwrap();
            assert_eq!(log.spread, spread, "{text}");
            assert!(log.times.is_sorted());
        }
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
