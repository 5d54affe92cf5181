//! Values that their flag does not take, or would take for something else: what was meant.

use std::path::Path;

use clap::{Arg, Command};
use model::Nanos;

use super::argument_fault::{ArgumentFault, Edit};
use crate::args::other_tools::synonyms::{is_called, is_url};

/// A value that its flag does not take: the line with what was probably meant. `flag` is as clap
/// shows it (`--for <TIME>`), `complaint` is what clap says.
pub(crate) fn wrong_value(
    command: &Command,
    flag: &str,
    value: &str,
    complaint: &str,
    words: &[String],
) -> Option<ArgumentFault> {
    let long = flag.split(' ').next()?;
    let arg = command.get_arguments().find(|arg| is_called(arg, long))?;
    let at = place_of_value(arg, value, words)?;
    let before = words[at].strip_suffix(value)?;
    let inserted = meant_value(command, arg, value)?;
    let mut inserted = inserted.into_iter();
    let first = format!("{before}{}", inserted.next()?);
    let inserted: Vec<String> = std::iter::once(first).chain(inserted).collect();
    let fault =
        ArgumentFault::of_ours(complaint.to_owned(), format!("type {}", inserted.join(" ")));
    Some(fault.mended_by(Edit { at, removed: 1, inserted }))
}

/// Which word has this value of this flag: behind the flag, or glued to it. If neither, the first
/// word that ends with it, such as a list.
fn place_of_value(arg: &Arg, value: &str, words: &[String]) -> Option<usize> {
    let is_last_of_cluster = |word: &str| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.and_then(|letters| letters.chars().last()).is_some_and(|last| {
            arg.get_short() == Some(last)
                || arg.get_all_short_aliases().is_some_and(|aliases| aliases.contains(&last))
        })
    };
    let names_it = |word: &str| {
        is_called(arg, word.strip_suffix('=').unwrap_or(word)) || is_last_of_cluster(word)
    };
    let has_it = |at: &usize| match words[*at].strip_suffix(value) {
        Some("") => at.checked_sub(1).is_some_and(|before| names_it(&words[before])),
        Some(before) => names_it(before),
        None => false,
    };
    let elsewhere = || words.iter().position(|word| word.ends_with(value));
    (0..words.len()).find(has_it).or_else(elsewhere)
}

/// The value that was meant, perhaps with a flag that was glued to it.
fn meant_value(command: &Command, arg: &Arg, value: &str) -> Option<Vec<String>> {
    let meant = match value_name(arg) {
        "N" => number_meant(value),
        "TIME" => time_meant(value),
        "RATE" => rate_meant(value),
        "PLACE" => listening_place(value),
        _ => None,
    };
    if let Some(meant) = meant.filter(|meant| meant != value) {
        return Some(vec![meant]);
    }
    // `-c10n100`: two flags in a word.
    let end = value.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
    let (number, rest) = value.split_at(end);
    let letter: String = rest.chars().take(1).collect();
    let is_flag = command
        .get_arguments()
        .any(|arg| is_called(arg, &format!("-{letter}")) && arg.get_action().takes_values());
    let is_number = rest[letter.len()..].starts_with(|c: char| c.is_ascii_digit());
    (is_flag && is_number).then(|| vec![number.to_owned(), format!("-{rest}")])
}

/// `10k`, `1e6`, `1,000`, `1_000` as a whole number.
fn number_meant(value: &str) -> Option<String> {
    let plain = value.replace([',', '_', '\''], "");
    let (digits, by) = match plain.split_at_checked(plain.len().checked_sub(1)?)? {
        (digits, "k" | "K") => (digits, 1e3),
        (digits, "m" | "M") => (digits, 1e6),
        _ => (plain.as_str(), 1.0),
    };
    let number = digits.parse::<f64>().ok()? * by;
    (number >= 1.0 && number.fract() == 0.0 && number < 1e15).then(|| format!("{number:.0}"))
}

/// `30sec`, `5minutes`, `1:30` as a time.
pub(crate) fn time_meant(value: &str) -> Option<String> {
    if let Some((minutes, seconds)) = value.split_once(':') {
        let minutes: u32 = minutes.parse().ok()?;
        let seconds: u32 = seconds.parse().ok()?;
        return Some(format!("{minutes}m{seconds}s"));
    }
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &value[..value.len() - unit.len()];
    number.parse::<f64>().ok()?;
    let ours = match unit.trim().to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "msec" | "msecs" | "millis" | "milliseconds" => "ms",
        _ => return None,
    };
    Some(format!("{number}{ours}"))
}

/// `10k`, `100rps`, `600/min` as a rate.
fn rate_meant(value: &str) -> Option<String> {
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let number: f64 = number.parse().ok()?;
    let (unit, by) = match unit.strip_prefix(['k', 'K']) {
        Some(rest) => (rest, 1e3),
        None => (unit, 1.0),
    };
    let seconds = match unit.trim().trim_start_matches("req").trim_start_matches("uests") {
        "" | "/s" | "/1s" | "/sec" | "/second" | "rps" | "qps" | "ps" | "s" => 1.0,
        "/m" | "/1m" | "/min" | "/minute" | "rpm" | "pm" => 60.0,
        "/h" | "/1h" | "/hour" => 3600.0,
        _ => return None,
    };
    let per_second = number * by / seconds;
    (per_second > 0.0).then(|| format!("{}/s", (per_second * 1e6).round() / 1e6))
}

/// Where a sink is to listen, by a port alone or a URL too.
pub(crate) fn listening_place(word: &str) -> Option<String> {
    let rest = word.strip_prefix("http://").unwrap_or(word).trim_end_matches('/');
    let port = rest.strip_prefix("localhost:").or(rest.strip_prefix(':')).unwrap_or(rest);
    let place = match port.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => rest.to_owned(),
    };
    place.parse::<sink::Listen>().is_ok().then_some(place)
}

/// A value of `load` that would be taken for something else.
pub(crate) fn mistaken_value(words: &[String], at: usize) -> Option<ArgumentFault> {
    time_for_text(words, at)
        .or_else(|| file_for_text(words, at))
        .or_else(|| number_for_file(words, at))
        .or_else(|| time_for_file(words, at))
        .or_else(|| format_for_file(words, at))
        .or_else(|| count_for_credentials(words, at))
        .or_else(|| range_of_ramp(words, at))
        .or_else(|| socket_for_url(words, at))
}

/// Short flags of `load` that are a time in other tools, our flag for that time, and the long name
/// of the short flag here.
const TIMES: [(&str, &str, &str); 2] =
    [("-d", "--for", "--data"), ("-T", "--timeout", "--content-type")];

/// `-d 30s`: a time in wrk, a body here. With the long name, `--data 30s`, it is taken for a body.
fn time_for_text(words: &[String], at: usize) -> Option<ArgumentFault> {
    TIMES.into_iter().find_map(|(short, ours, theirs)| {
        let GivenValue { value, words: count } = value_of(words, at, Some(short), None)?;
        value.parse::<Nanos>().ok()?;
        let time = with_unit(value);
        let fault = ArgumentFault::of(
            format!("{short} is {theirs} here"),
            format!("type {ours} {time}, or {theirs} {value}"),
        );
        let inserted = vec![ours.to_owned(), time];
        Some(ArgumentFault {
            otherwise: Some(format!("{theirs} {value}")),
            ..fault.mended_by(Edit { at, removed: count, inserted })
        })
    })
}

/// A time with its unit: of a number alone, seconds.
fn with_unit(value: &str) -> String {
    if value.parse::<f64>().is_ok() { format!("{value}s") } else { value.to_owned() }
}

/// `-D 30`: seconds in h2load, a file here.
fn time_for_file(words: &[String], at: usize) -> Option<ArgumentFault> {
    let GivenValue { value, words: count } = value_of(words, at, Some("-D"), None)?;
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || Path::new(value).exists() {
        return None;
    }
    let fault = ArgumentFault::of(
        "-D is a file with a body here".to_owned(),
        format!("type --for {value}s"),
    );
    let inserted = vec!["--for".to_owned(), format!("{value}s")];
    Some(fault.mended_by(Edit { at, removed: count, inserted }))
}

/// `-o csv` of hey and `-o json` of bombardier: formats; a file here, whose ending says its format.
fn format_for_file(words: &[String], at: usize) -> Option<ArgumentFault> {
    let GivenValue { value, words: count } = value_of(words, at, Some("-o"), Some("--output"))?;
    let (ours, what) = match value {
        "csv" => ("--log=-.csv", "a line a request"),
        "json" | "j" => ("--json", "a summary"),
        _ => return None,
    };
    let fault = ArgumentFault::of(
        format!("-o is a file here, whose ending says the format, and {value} is none"),
        format!("type {ours} for {what}"),
    );
    Some(fault.mended_by(Edit { at, removed: count, inserted: vec![ours.to_owned()] }))
}

/// k6's threshold, such as `http_req_duration=p(95)<200` (milliseconds), as a condition of ours.
pub(crate) fn k6_condition(value: &str) -> Option<String> {
    let is_metric = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let named = value.split_once(['=', ':']).filter(|(name, _)| is_metric(name.trim()));
    let (metric, condition) = named.unwrap_or(("http_req_duration", value));
    let condition: String =
        condition.chars().filter(|c| !c.is_whitespace() && !"'\"[]".contains(*c)).collect();
    let at = condition.find(['<', '>'])?;
    let (figure, limit) = condition.split_at(at);
    let sign = &limit[..1];
    let limit: f64 = limit[1..].trim_start_matches('=').parse().ok()?;
    match (metric.trim(), figure) {
        ("http_req_failed", "rate") => {
            return Some(format!("failed {sign} {}%", (limit * 1e6).round() / 1e4));
        }
        ("http_reqs", "rate") => return Some(format!("throughput {sign} {limit}/s")),
        ("http_req_duration", _) => {}
        _ => return None,
    }
    let figure = match figure {
        "avg" => "mean".to_owned(),
        "med" => "p50".to_owned(),
        "max" => "max".to_owned(),
        figure => {
            let percent = figure.strip_prefix("p(")?.strip_suffix(')')?;
            percent.parse::<f64>().ok()?;
            format!("p{percent}")
        }
    };
    Some(format!("{figure} {sign} {limit}ms"))
}

/// `-d @FILE`: a file in curl, that very text in hey.
fn file_for_text(words: &[String], at: usize) -> Option<ArgumentFault> {
    let GivenValue { value, words: count } = value_of(words, at, Some("-d"), Some("--data"))?;
    let file = value.strip_prefix('@')?;
    let text = model::plan::quoted(value);
    let file = if file.is_empty() { "FILE" } else { file };
    let fault = ArgumentFault::of(
        format!("-d {text} may be a file or a text"),
        format!(
            "type -D {} to send the file, or --data-raw {text} to send that text",
            model::plan::quoted(file)
        ),
    );
    let inserted = vec!["-D".to_owned(), file.to_owned()];
    Some(ArgumentFault {
        otherwise: Some(format!("--data-raw {text} to send that text")),
        ..fault.mended_by(Edit { at, removed: count, inserted })
    })
}

/// `--requests 100`: a count in ab's and oha's words, a file here.
fn number_for_file(words: &[String], at: usize) -> Option<ArgumentFault> {
    let GivenValue { value, words: count } = value_of(words, at, None, Some("--requests"))?;
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || Path::new(value).exists() {
        return None;
    }
    let fault = ArgumentFault::of(
        "--requests is a file of requests".to_owned(),
        format!("type -n {value} for so many requests"),
    );
    let inserted = vec!["-n".to_owned(), value.to_owned()];
    Some(fault.mended_by(Edit { at, removed: count, inserted }))
}

/// `-a 1000`: requests in autocannon.
fn count_for_credentials(words: &[String], at: usize) -> Option<ArgumentFault> {
    let GivenValue { value, .. } = value_of(words, at, Some("-a"), None)?;
    let is_count = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    is_count.then(|| {
        ArgumentFault::of(
            "-a is USER:PASSWORD here".to_owned(),
            format!("type -n {value} for so many requests"),
        )
    })
}

/// `--ramp 10-100`.
fn range_of_ramp(words: &[String], at: usize) -> Option<ArgumentFault> {
    let GivenValue { value, words: count } = value_of(words, at, None, Some("--ramp"))?;
    let (from, to) = ["-", ":", ",", "…"].into_iter().find_map(|mark| value.split_once(mark))?;
    let is_rate = |rate: &str| rate.parse::<model::Rate>().is_ok();
    if !is_rate(from) || !is_rate(to) {
        return None;
    }
    let meant = format!("{from}..{to}");
    let refusal = format!("--ramp {value} has no two dots");
    let fault = ArgumentFault::of_ours(refusal, format!("type --ramp {meant}"));
    let inserted = vec!["--ramp".to_owned(), meant];
    Some(fault.mended_by(Edit { at, removed: count, inserted }))
}

/// `unix:///run/app.sock` in the place of the URL.
fn socket_for_url(words: &[String], at: usize) -> Option<ArgumentFault> {
    let word = &words[at];
    let (socket, path) = match word.strip_prefix("http+unix://") {
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
        None => (word.strip_prefix("unix:")?, ""),
    };
    let socket =
        socket.strip_prefix("//").unwrap_or(socket).replace("%2F", "/").replace("%2f", "/");
    if words[at - 1].starts_with("--unix") {
        return None;
    }
    let fault = ArgumentFault::of_ours(
        "a URL names the host, and --unix the socket".to_owned(),
        format!("type --unix {socket} http://localhost/{path}"),
    );
    let inserted = vec!["--unix".to_owned(), socket, format!("http://localhost/{path}")];
    Some(fault.mended_by(Edit { at, removed: 1, inserted }))
}

/// The value of a flag: what is glued to its short or long name, or the next word.
struct GivenValue<'w> {
    value: &'w str,
    /// Its words, the flag's own included.
    words: usize,
}

/// The value of the flag at `at`, if that has this short or this long name.
fn value_of<'w>(
    words: &'w [String],
    at: usize,
    short: Option<&str>,
    long: Option<&str>,
) -> Option<GivenValue<'w>> {
    let word = words[at].as_str();
    let next = words.get(at + 1).map(String::as_str);
    if Some(word) == short || Some(word) == long {
        return Some(GivenValue { value: next?, words: 2 });
    }
    let glued = long.and_then(|long| word.strip_prefix(long)?.strip_prefix('='));
    let value = glued.or_else(|| {
        let value = word.strip_prefix(short?)?;
        Some(value.strip_prefix('=').unwrap_or(value))
    })?;
    Some(GivenValue { value, words: 1 })
}

/// `--html URL`: the flag would take the URL for its value.
pub(crate) fn forgotten_value(
    command: &Command,
    words: &[String],
    at: usize,
) -> Option<ArgumentFault> {
    let word = words[at].as_str();
    let next = words
        .get(at + 1)
        .filter(|next| next.starts_with("http://") || next.starts_with("https://"))?;
    let arg = command.get_arguments().find(|arg| {
        word.starts_with("--") && is_called(arg, word)
            || word.len() == 2 && word.starts_with('-') && is_called(arg, word)
    })?;
    // A URL behind `--queue-header` is no value of it: that is written `--queue-header=FORM`.
    let takes_next = arg.get_action().takes_values() && !arg.is_require_equals_set();
    let takes_value = takes_next && !arg.is_positional();
    if !takes_value || takes_url(arg) || words.iter().filter(|word| *word == next).count() > 1 {
        return None;
    }
    let others = words.iter().enumerate().filter(|(other, word)| *other != at + 1 && is_url(word));
    let is_in_file =
        words.iter().any(|word| word.starts_with("--requests")) && word != "--requests";
    if others.count() > 0 || is_in_file {
        return None;
    }
    let name = value_name(arg);
    if ["RATE", "A..B", "A,B,…"].contains(&name) {
        return Some(ArgumentFault::of_ours(
            format!("{word} needs a value ({name}) before the URL"),
            format!("write how many requests per second, between {word} and the URL"),
        ));
    }
    let example = example_of(arg);
    let flag = arg.get_long().map_or_else(|| word.to_owned(), |long| format!("--{long}"));
    let quoted = model::plan::quoted(example);
    let fault = ArgumentFault::of(
        format!("{flag} needs a value ({name}) before the URL"),
        format!("type {word} {quoted} {next}"),
    );
    Some(fault.mended_by(Edit { at: at + 1, removed: 0, inserted: vec![example.to_owned()] }))
}

/// Whether a URL may be its value.
fn takes_url(arg: &Arg) -> bool {
    ["url", "control_url", "otlp", "connect_to", "arm", "arms", "from", "listen"]
        .contains(&arg.get_id().as_str())
}

pub(crate) fn value_name(arg: &Arg) -> &str {
    arg.get_value_names().and_then(|names| names.first()).map_or("VALUE", |name| name.as_str())
}

/// A value for a flag whose value was forgotten.
fn example_of(arg: &Arg) -> &str {
    match (arg.get_id().as_str(), value_name(arg)) {
        ("html" | "files", _) => "report.html",
        ("log", _) => "requests.csv",
        ("body_file", _) => "body.json",
        ("requests", _) => "requests.txt",
        ("method", _) => "POST",
        (_, "N") => "10",
        (_, "TIME") => "10s",
        (_, "LIMIT") => "p99 < 200ms",
        (_, name) => name,
    }
}
