//! Flags and commands of other tools, and what to type for them here. Whole command lines of other
//! tools are answered by `other_lines`.

use std::path::Path;

use clap::{Arg, Command};
use model::Nanos;

/// Words of other tools, and what they are here.
type Synonyms<T> = (&'static str, T);

/// What another tool's flag is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meant {
    /// This flag, with the same value.
    Flag(&'static str),
    /// A header of this name, with the same value.
    Header(&'static str),
    /// These words, without a value.
    Words(&'static [&'static str]),
    /// The URL, which has no flag here: the value.
    Url,
    /// Nothing, for this reason; it takes no value.
    Needless(&'static str),
    /// Nothing, for this reason; it takes a value.
    NeedlessValue(&'static str),
    /// What this says.
    Advice(&'static str),
}

use Meant::{Advice, Flag, Header, Needless, NeedlessValue, Url, Words};

const HTTP_1: &str = "longtail speaks HTTP/1.1 only";

/// Flags of wrk, hey, oha, ab, k6, vegeta, bombardier, siege, autocannon, h2load and curl without
/// their dashes. Of several entries the first counts whose flag the command has.
const FLAGS: &[Synonyms<Meant>] = &[
    ("duration time length run-time timelimit run-for seconds z D", Flag("--for")),
    (
        "rps qps throughput request-rate rate-limit requests-per-second target-throughput arrival-rate overallRate R q",
        Flag("--rate"),
    ),
    ("url target uri endpoint site u", Url),
    (
        "concurrency concurrent conns connection clients vus users max-workers workers u",
        Flag("--connections"),
    ),
    (
        "num-requests number-of-requests iterations amount count total requests-total max-requests i N",
        Flag("--number"),
    ),
    ("requests-per-conn", Flag("--requests-per-connection")),
    ("request-timeout read-timeout max-time", Flag("--timeout")),
    ("warmup warm-up-time delay-before", Flag("--warm-up")),
    ("headers add-header", Flag("--header")),
    ("request verb X", Flag("--method")),
    ("body post-data data-ascii data-binary data-urlencode payload json-body", Flag("--data")),
    ("post-file data-file body-path input p", Flag("--body-file")),
    ("basic-auth user authorization", Flag("--auth")),
    ("targets url-file urls-from-file input-file urls", Flag("--requests")),
    (
        "disable-keep-alive no-keepalive no-connection-reuse disableKeepAlives no-persistent",
        Flag("--no-keep-alive"),
    ),
    (
        "keepalive keep-alive persistent",
        Needless("connections are kept alive unless -k says otherwise"),
    ),
    (
        "skip-verify no-verify tls-skip-verify insecure-skip-tls-verify no-check-certificate",
        Flag("--insecure"),
    ),
    ("ca ca-cert root-certs", Flag("--cacert")),
    ("ipv4-only", Flag("--ipv4")),
    ("ipv6-only", Flag("--ipv6")),
    (
        "stages stage",
        Advice("the number of connections stays; --ramp A..B and --steps A,B raise a rate"),
    ),
    ("socket-path socketPath uds", Flag("--unix")),
    ("proc probe-server", Flag("--inspect")),
    ("file out outfile save", Flag("--output")),
    ("worker processes", Flag("--workers")),
    ("thread max-threads cpus", Flag("--generator-threads")),
    ("thread max-threads", Flag("--threads")),
    ("t", Advice("wrk's -t is --generator-threads, hey's is --timeout, ab's is --for")),
    ("latency latencies L", Needless("percentiles are always printed")),
    ("latency-correction", Needless("times always count from when a request was due")),
    (
        "disable-redirects no-redirects no-follow follow location follow-redirects",
        Needless("redirects are never followed"),
    ),
    ("redirect redirects max-redirects", NeedlessValue("redirects are never followed")),
    (
        "disable-compression compressed no-compression",
        Needless("no compressed response is asked for; -H 'Accept-Encoding: gzip' asks for one"),
    ),
    ("cookie C b", Header("Cookie")),
    ("user-agent useragent U A", Header("User-Agent")),
    ("referer e", Header("Referer")),
    ("proxy x", NeedlessValue("longtail never uses a proxy")),
    ("http2 h2 http3", Needless(HTTP_1)),
    ("http1 http1.1 fasthttp", Needless(HTTP_1)),
    ("http-version", NeedlessValue(HTTP_1)),
    ("pipeline pipelining", NeedlessValue("longtail sends one request at a time on a connection")),
    ("script s lua", Advice("longtail runs no scripts; --requests FILE sends different requests")),
    (
        "env-file dotenv",
        Advice(
            "longtail reads no file of variables: type set -a; . FILE; set +a before, or keep headers in a file: -H @FILE",
        ),
    ),
    ("verbose v vv debug more details", Flag("--full")),
    (
        "quiet silent no-tui no-progress no-progress-bar progress",
        Needless("nothing but the result is printed on stdout, and a pipe shows no progress"),
    ),
    ("no-color disable-color", Words(&["--color", "never"])),
    ("head", Words(&["-m", "HEAD"])),
    ("threshold thresholds assert slo sla limit objective", Flag("--expect")),
    ("fail-on", Flag("--fail-if")),
    ("p50 p90 p95 p99 p999", Advice("--expect 'p99 < 200ms' says what must hold")),
    ("ssl tls https", Advice("https:// in the URL says so")),
    ("pause", Flag("--think")),
    ("d delay sleep", Flag("--service")),
    ("rounds repetitions repeats runs", Flag("--repeat")),
    (
        "delay sleep",
        Advice("--think is a pause between requests, --service how long the server takes for one"),
    ),
    ("port p P bind b address addr l", Flag("--listen")),
    ("html-report", Flag("--html")),
    (
        "dry-run",
        Advice("every line is checked before any load is sent, and there is no other dry run"),
    ),
];

/// What a command might be called, and what to type.
const COMMANDS: &[Synonyms<&str>] = &[
    (
        "run bench benchmark test start",
        "longtail sweep (it starts the server) or longtail load URL (it runs already)",
    ),
    ("fire hit stress get http loadtest load-test", "longtail load URL"),
    ("monitor top stat stats status observe inspect", "longtail watch PORT"),
    ("diff show print view analyze analyse results render export", "longtail report"),
    ("simulate theory model forecast calculate plan", "longtail predict"),
    ("check verify-machine machine env environment", "longtail doctor"),
    ("validate verify claim", "longtail audit FILE"),
    ("server serve mock echo upstream", "longtail sink"),
    ("version", "longtail --version"),
];

/// What `table` has for `word`.
fn found<T: Copy>(table: &[Synonyms<T>], word: &str) -> impl Iterator<Item = T> {
    table
        .iter()
        .filter(move |(words, _)| words.split(' ').any(|one| one == word))
        .map(|(_, ours)| *ours)
}

/// Whether it has a flag of that name, with its dashes.
fn has(command: &Command, flag: &str) -> bool {
    command.get_arguments().any(|arg| is_called(arg, flag))
}

/// Whether that is one of its names, with its dashes.
fn is_called(arg: &Arg, flag: &str) -> bool {
    let name = flag.trim_start_matches('-');
    arg.get_long() == Some(name)
        || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        || flag.len() == 2 && arg.get_short().is_some_and(|short| name.starts_with(short))
}

/// Our flag for another tool's long flag, if ours takes a value.
pub(crate) fn meant<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let ours = found(FLAGS, name).find_map(|meant| match meant {
        Flag(ours) if has(command, ours) => Some(ours),
        Flag(_) | Header(_) | Words(_) | Url | Needless(_) | NeedlessValue(_) | Advice(_) => None,
    })?;
    command
        .get_arguments()
        .find(|arg| is_called(arg, ours))
        .filter(|arg| arg.get_action().takes_values())
}

/// Of a word that is a long flag of `command`: whether the next word is its value.
pub(crate) fn takes_value(command: &Command, word: &str) -> Option<bool> {
    let name = word.strip_prefix("--")?;
    let bare = name.split('=').next().unwrap_or(name);
    let arg = command.get_arguments().find(|arg| is_called(arg, &format!("--{bare}")))?;
    Some(arg.get_action().takes_values() && !name.contains('='))
}

/// Whether that is a URL, with a scheme or without one.
pub(crate) fn is_url(word: &str) -> bool {
    if word.contains("://") {
        return true;
    }
    if word.starts_with('-') {
        return false;
    }
    let place = word.split('/').next().unwrap_or(word);
    let Some((host, port)) = place.rsplit_once(':') else {
        return place == "localhost" || place.parse::<std::net::IpAddr>().is_ok();
    };
    let is_host = host.chars().all(|c| c.is_ascii_alphanumeric() || "-._[]:".contains(c));
    !host.is_empty() && is_host && port.parse::<u16>().is_ok()
}

/// What to type in place of an unknown command.
pub(crate) fn command(word: &str) -> Option<String> {
    if is_url(word) {
        return Some(format!("type longtail load {word}"));
    }
    found(COMMANDS, &word.to_ascii_lowercase()).next().map(|ours| format!("type {ours}"))
}

/// What is wrong with a command line, and what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentFault {
    /// What is wrong: `load has no --duration`.
    pub(crate) refusal: String,
    /// What to type, where the rest of the line is not understood either.
    pub(crate) advice: String,
    /// The change that mends it, where there is one.
    pub(crate) edit: Option<Edit>,
    /// Why that may be left out, where the edit leaves something out.
    pub(crate) why: Option<&'static str>,
    /// What else may have been meant.
    pub(crate) otherwise: Option<String>,
    /// Whether the word may be another tool's flag.
    pub(crate) may_be_others: bool,
}

/// A change of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The word where it begins.
    at: usize,
    /// As many words are taken away.
    removed: usize,
    inserted: Vec<String>,
}

impl ArgumentFault {
    fn of(refusal: String, advice: String) -> ArgumentFault {
        ArgumentFault {
            refusal,
            advice,
            edit: None,
            why: None,
            otherwise: None,
            may_be_others: true,
        }
    }

    /// One of which no tool's table knows better.
    fn of_ours(refusal: String, advice: String) -> ArgumentFault {
        ArgumentFault { may_be_others: false, ..ArgumentFault::of(refusal, advice) }
    }

    fn mended_by(self, edit: Edit) -> ArgumentFault {
        ArgumentFault { edit: Some(edit), ..self }
    }
}

impl Edit {
    /// The words with this change.
    pub(crate) fn apply(&self, words: &[String]) -> Vec<String> {
        let end = (self.at + self.removed).min(words.len());
        [&words[..self.at], &self.inserted, &words[end..]].concat()
    }
}

/// A flag as it was typed.
struct Typed<'w> {
    at: usize,
    /// Its value, in its own word or the next one.
    value: Option<&'w str>,
    /// The same, whatever it looks like.
    word: Option<&'w str>,
    /// Whether the value is in its own word: `--flag=value`.
    is_glued: bool,
}

impl<'w> Typed<'w> {
    /// Finds it; `flag` has its dashes, and of several letters in a word is one.
    fn find(words: &'w [String], flag: &str) -> Option<Typed<'w>> {
        let glued = format!("{flag}=");
        let is_it = |word: &String| word == flag || word.starts_with(&glued);
        let letters = || words.iter().position(|word| flag.len() == 2 && word.starts_with(flag));
        let at = words.iter().position(is_it).or_else(letters)?;
        let word = &words[at];
        let own = word.strip_prefix(&glued).or_else(|| word.strip_prefix(flag));
        let own = own.filter(|value| !value.is_empty() || word.ends_with('='));
        let next = words.get(at + 1).map(String::as_str);
        Some(Typed {
            at,
            value: own.or(next.filter(|next| is_value(next))),
            word: own.or(next),
            is_glued: own.is_some(),
        })
    }

    /// Puts these words in its place, and in that of its value.
    fn replaced(&self, takes_value: bool, inserted: Vec<String>) -> Edit {
        let removed = if takes_value && !self.is_glued && self.word.is_some() { 2 } else { 1 };
        Edit { at: self.at, removed, inserted }
    }
}

/// What another tool's flag of that name is here; the first entry that fits the command and what
/// was typed.
fn synonym(command: &Command, name: &str, typed: Option<&Typed<'_>>) -> Option<Meant> {
    found(FLAGS, name).find(|meant| match meant {
        Flag(ours) => has(command, ours),
        Header(_) => has(command, "--header"),
        Words(words) => words.first().is_some_and(|word| has(command, word) || *word == "--color"),
        Url => {
            command.get_name() == "load" && typed.and_then(|typed| typed.word).is_some_and(is_url)
        }
        Needless(_) | NeedlessValue(_) | Advice(_) => true,
    })
}

/// What was meant by `flag`, which `command` does not have; `words` are the whole command line,
/// `whole` is longtail.
pub(crate) fn unknown_flag(
    whole: &Command,
    command: &Command,
    flag: &str,
    words: &[String],
) -> ArgumentFault {
    let name = command.get_name();
    let refusal = format!("{name} has no {flag}");
    if let Some(fault) = not_a_flag(command, flag, words) {
        return fault;
    }
    let typed = Typed::find(words, flag);
    let bare = flag.trim_start_matches('-');
    if let Some(meant) = synonym(command, bare, typed.as_ref()) {
        return synonymous(command, refusal, meant, typed.as_ref());
    }
    if let Some(other) = other_command_with(whole, bare, flag) {
        return ArgumentFault::of(refusal, other);
    }
    if let Some(long) = nearest(command, bare) {
        let fault = ArgumentFault::of(refusal, format!("did you mean {long}?"));
        return renamed(command, fault, &long, typed.as_ref());
    }
    ArgumentFault::of(refusal, format!("longtail {name} -h lists the flags"))
}

/// Our flag whose name, or that of another tool's flag for it, is nearly written so; `None` if
/// several are as near.
fn nearest(command: &Command, typed: &str) -> Option<String> {
    if typed.len() < 3 {
        return None;
    }
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let ours = shown.flat_map(|arg| {
        let long = arg.get_long();
        let aliases = arg.get_all_aliases().unwrap_or_default();
        let names = long.into_iter().chain(aliases);
        names.filter_map(move |name| Some((name, long?))).collect::<Vec<_>>()
    });
    let theirs = FLAGS.iter().filter_map(|(names, meant)| match meant {
        Flag(ours) if has(command, ours) => Some((*names, ours.trim_start_matches('-'))),
        Flag(_) | Header(_) | Words(_) | Url | Needless(_) | NeedlessValue(_) | Advice(_) => None,
    });
    let theirs = theirs.flat_map(|(names, ours)| {
        names.split(' ').filter(|name| name.len() > 3).map(move |name| (name, ours))
    });
    let most = if typed.len() < 5 { 1 } else { 2 };
    let mut near: Vec<(usize, &str)> = ours
        .chain(theirs)
        .map(|(name, ours)| (edit_distance(typed, name), ours))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    near.sort_unstable();
    let (least, ours) = *near.first()?;
    let is_clear = near.iter().all(|(distance, other)| *distance > least || *other == ours);
    is_clear.then(|| format!("--{ours}"))
}

/// Letters to put in, take away, change, or swap with the next one.
fn edit_distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (at, row) in rows.iter_mut().enumerate() {
        row[0] = at;
    }
    rows[0] = (0..=other.len()).collect();
    for a in 1..=one.len() {
        for b in 1..=other.len() {
            let changed = usize::from(one[a - 1] != other[b - 1]);
            let mut least =
                (rows[a - 1][b] + 1).min(rows[a][b - 1] + 1).min(rows[a - 1][b - 1] + changed);
            if a > 1 && b > 1 && one[a - 1] == other[b - 2] && one[a - 2] == other[b - 1] {
                least = least.min(rows[a - 2][b - 2] + 1);
            }
            rows[a][b] = least;
        }
    }
    rows[one.len()][other.len()]
}

/// The fault of a word in which a letter is taken for -h or -V, such as `-h2`.
pub(crate) fn glued_to_help(command: &Command, word: &str, words: &[String]) -> ArgumentFault {
    let refusal = format!("{} has no {word}", command.get_name());
    let typed = Typed::find(words, word);
    match synonym(command, word.trim_start_matches('-'), typed.as_ref()) {
        Some(meant) => synonymous(command, refusal, meant, typed.as_ref()),
        None => ArgumentFault::of(
            refusal,
            "-h alone is the help, and -V alone the version: leave out the rest".to_owned(),
        ),
    }
}

/// A word that is none of its flags, nor looks like one.
fn not_a_flag(command: &Command, word: &str, words: &[String]) -> Option<ArgumentFault> {
    let at = words.iter().position(|one| one == word)?;
    let is_number = word.strip_prefix('-').is_some_and(|rest| rest.parse::<f64>().is_ok());
    if is_number {
        let flag = words.get(at.checked_sub(1)?).filter(|flag| flag.starts_with('-'))?;
        return Some(ArgumentFault::of_ours(
            format!("{flag} {word}"),
            format!("{flag} needs a number above 0, such as {flag} {}", &word[1..]),
        ));
    }
    if word.starts_with('-') {
        return None;
    }
    let known = match command.get_name() {
        "sweep" => surplus_of_sweep(word, at),
        "sink" => surplus_of_sink(word, at),
        "load" => surplus_of_load(command, words, at),
        _ => None,
    };
    Some(known.or_else(|| forgotten_dash(command, word, at)).unwrap_or_else(|| {
        ArgumentFault::of_ours(
            format!("{} does not know what to do with '{word}'", command.get_name()),
            "put a value that has spaces in it into quotes, as -d '{\"a\": 1}'".to_owned(),
        )
    }))
}

/// `t5:5`, without its dash.
fn forgotten_dash(command: &Command, word: &str, at: usize) -> Option<ArgumentFault> {
    let (letter, value) = word.split_at_checked(1)?;
    let begins_as_number = value.starts_with(|c: char| c.is_ascii_digit());
    let arg = command.get_arguments().find(|arg| is_called(arg, &format!("-{letter}")))?;
    if !begins_as_number || !arg.get_action().takes_values() {
        return None;
    }
    let flag = format!("-{word}");
    let fault = ArgumentFault::of_ours(format!("'{word}' has no dash"), format!("type {flag}"));
    Some(fault.mended_by(Edit { at, removed: 1, inserted: vec![flag] }))
}

/// A word too many of a sweep: where a server runs already, or a file without its flag.
fn surplus_of_sweep(word: &str, at: usize) -> Option<ArgumentFault> {
    if word.parse::<u16>().is_ok() || word.contains("://") || word.starts_with("localhost") {
        return Some(ArgumentFault::of_ours(
            format!("sweep has no {word}"),
            "a sweep starts the server itself; type longtail load URL for one that runs".to_owned(),
        ));
    }
    let extension = Path::new(word).extension()?.to_str()?;
    let flag = match extension {
        "ru" => "-r",
        "rb" => "-C",
        _ => return None,
    };
    let fault = ArgumentFault::of_ours(
        format!("'{word}' stands behind no flag"),
        format!("type {flag} {word}"),
    );
    let inserted = vec![flag.to_owned(), word.to_owned()];
    Some(fault.mended_by(Edit { at, removed: 1, inserted }))
}

fn surplus_of_sink(word: &str, at: usize) -> Option<ArgumentFault> {
    let place = listening_place(word)?;
    let refusal = format!("where a sink listens is the value of a flag, not '{word}' alone");
    let fault = ArgumentFault::of_ours(refusal, format!("type longtail sink --listen {place}"));
    let inserted = vec!["--listen".to_owned(), place];
    Some(fault.mended_by(Edit { at, removed: 1, inserted }))
}

/// A word too many of a load: a second URL, or a word before the only one that was taken for it.
fn surplus_of_load(command: &Command, words: &[String], at: usize) -> Option<ArgumentFault> {
    let word = &words[at];
    if !is_url(word) {
        return None;
    }
    let first = operands(command, words).into_iter().find(|other| *other < at)?;
    let other = &words[first];
    if is_url(other) {
        return Some(ArgumentFault::of_ours(
            format!("load has one URL, and {word} is another"),
            "give one; --requests FILE sends requests to several URLs of one server".to_owned(),
        ));
    }
    let refusal = format!("'{other}' is no flag, and no URL");
    if other.len() > 2 && other.bytes().all(|byte| byte.is_ascii_uppercase()) {
        let fault = ArgumentFault::of_ours(refusal, format!("type -m {other}"));
        let inserted = vec!["-m".to_owned(), other.clone()];
        return Some(fault.mended_by(Edit { at: first, removed: 1, inserted }));
    }
    let before = &words[first - 1];
    let joined = if before.ends_with(':') {
        Some(format!("{before} {other}"))
    } else {
        time_meant(&format!("{before}{other}"))
    };
    let fault = ArgumentFault::of_ours(
        refusal,
        "put a value that has spaces in it into quotes, as -H 'Name: value'".to_owned(),
    );
    Some(match joined {
        Some(joined) => fault.mended_by(Edit { at: first - 1, removed: 2, inserted: vec![joined] }),
        None => fault,
    })
}

/// Where words stand that are neither flags nor values of them.
fn operands(command: &Command, words: &[String]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = words.iter().position(|word| word == command.get_name()).map_or(0, |at| at + 1);
    while let Some(word) = words.get(at) {
        let short = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let takes_next = match short {
            Some(letters) => last_letter_takes_value(command, letters),
            None => takes_value(command, word) == Some(true),
        };
        if !word.starts_with('-') {
            found.push(at);
        }
        at += 1 + usize::from(takes_next);
    }
    found
}

/// Of letters behind one dash: whether the next word is the value of the last one.
fn last_letter_takes_value(command: &Command, letters: &str) -> bool {
    for (at, letter) in letters.char_indices() {
        let arg = command.get_arguments().find(|arg| arg.get_short() == Some(letter));
        if arg.is_some_and(|arg| arg.get_action().takes_values()) {
            return at + letter.len_utf8() == letters.len();
        }
    }
    false
}

/// Whether a URL stands behind a word that is none.
pub(crate) fn is_url_behind(words: &[String], at: usize) -> bool {
    !is_url(&words[at]) && words[at + 1..].iter().any(|word| is_url(word))
}

/// A load without a URL, where another flag says where to connect to.
pub(crate) fn forgotten_url(command: &Command, words: &[String]) -> Option<ArgumentFault> {
    let names_socket = words.iter().any(|word| word.starts_with("--unix"));
    if command.get_name() != "load" || !names_socket {
        return None;
    }
    let fault = ArgumentFault::of_ours(
        "the URL is missing, which says host and path of the requests".to_owned(),
        "add http://localhost/".to_owned(),
    );
    let inserted = vec!["http://localhost/".to_owned()];
    Some(fault.mended_by(Edit { at: words.len(), removed: 0, inserted }))
}

/// A value that is no value of a flag: the line with what was probably meant; `flag` as clap shows
/// it (`--for <TIME>`), `complaint` what it says.
pub(crate) fn wrong_value(
    command: &Command,
    flag: &str,
    value: &str,
    complaint: &str,
    words: &[String],
) -> Option<ArgumentFault> {
    let long = flag.split(' ').next()?;
    let arg = command.get_arguments().find(|arg| is_called(arg, long))?;
    let at = words.iter().position(|word| word == value || word.ends_with(value))?;
    let before = words[at].strip_suffix(value)?;
    let inserted = meant_value(command, arg, value)?;
    let mut inserted = inserted.into_iter();
    let first = format!("{before}{}", inserted.next()?);
    let inserted: Vec<String> = std::iter::once(first).chain(inserted).collect();
    let fault =
        ArgumentFault::of_ours(complaint.to_owned(), format!("type {}", inserted.join(" ")));
    Some(fault.mended_by(Edit { at, removed: 1, inserted }))
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
fn time_meant(value: &str) -> Option<String> {
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
fn listening_place(word: &str) -> Option<String> {
    let rest = word.strip_prefix("http://").unwrap_or(word).trim_end_matches('/');
    let port = rest.strip_prefix("localhost:").or(rest.strip_prefix(':')).unwrap_or(rest);
    let place = match port.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => rest.to_owned(),
    };
    place.parse::<sink::Listen>().is_ok().then_some(place)
}

/// A flag of another name.
fn synonymous(
    command: &Command,
    refusal: String,
    meant: Meant,
    typed: Option<&Typed<'_>>,
) -> ArgumentFault {
    let value = typed.and_then(|typed| typed.value);
    match meant {
        Flag(ours) => {
            let advice = format!("type {}", with_value(command, ours, value));
            renamed(command, ArgumentFault::of(refusal, advice), ours, typed)
        }
        Header(name) => {
            let line = |value: &str| format!("{name}: {value}");
            let advice = format!("type -H '{}'", line(value.unwrap_or("VALUE")));
            let fault = ArgumentFault::of(refusal, advice);
            match (typed, value) {
                (Some(typed), Some(value)) => {
                    fault.mended_by(typed.replaced(true, vec!["-H".to_owned(), line(value)]))
                }
                _ => fault,
            }
        }
        Words(ours) => {
            let fault = ArgumentFault::of(refusal, format!("type {}", ours.join(" ")));
            let ours = ours.iter().map(|word| (*word).to_owned()).collect();
            match typed {
                Some(typed) => fault.mended_by(typed.replaced(false, ours)),
                None => fault,
            }
        }
        Url => {
            let fault = ArgumentFault::of(refusal, "the URL stands alone".to_owned());
            let Some(typed) = typed else { return fault };
            let url = typed.word.unwrap_or_default().to_owned();
            let fault = ArgumentFault { why: Some("the URL stands alone"), ..fault };
            fault.mended_by(typed.replaced(true, vec![url]))
        }
        Needless(why) | NeedlessValue(why) => {
            let fault = ArgumentFault {
                why: Some(why),
                ..ArgumentFault::of(refusal, format!("{why}: leave it out"))
            };
            let takes_value = matches!(meant, NeedlessValue(_));
            match typed {
                Some(typed) => fault.mended_by(typed.replaced(takes_value, Vec::new())),
                None => fault,
            }
        }
        Advice(advice) => ArgumentFault::of(refusal, advice.to_owned()),
    }
}

/// The fault, mended by another name of the flag.
fn renamed(
    command: &Command,
    fault: ArgumentFault,
    ours: &str,
    typed: Option<&Typed<'_>>,
) -> ArgumentFault {
    let Some(typed) = typed else { return fault };
    let takes = takes_value(command, ours) == Some(true);
    match (takes, typed.value) {
        (true, Some(value)) => {
            fault.mended_by(typed.replaced(true, vec![ours.to_owned(), value.to_owned()]))
        }
        (false, _) if !typed.is_glued => {
            fault.mended_by(typed.replaced(false, vec![ours.to_owned()]))
        }
        _ => fault,
    }
}

/// Another command that has the flag, or ours for it.
fn other_command_with(whole: &Command, name: &str, flag: &str) -> Option<String> {
    let ours = found(FLAGS, name).filter_map(|meant| match meant {
        Flag(ours) => Some(ours),
        Header(_) | Words(_) | Url | Needless(_) | NeedlessValue(_) | Advice(_) => None,
    });
    for flag in ours.chain([flag]) {
        let other = whole.get_subcommands().find(|other| !other.is_hide_set() && has(other, flag));
        if let Some(other) = other {
            return Some(format!("longtail {} has {flag}", other.get_name()));
        }
    }
    None
}

/// Short flags of `load` that are a time in other tools, our flag for that time, and the long name
/// of the short flag here.
const TIMES: [(&str, &str, &str); 2] =
    [("-d", "--for", "--data"), ("-T", "--timeout", "--content-type")];

/// Finds what would be taken for something else: a long flag with one dash, as in Go's tools
/// (`-duration=5s` is `-d uration=5s`), a time or a file where a body is expected, a flag whose
/// value was forgotten, so that it would take the URL.
pub(crate) fn check(command: &Command, words: &[String]) -> Option<ArgumentFault> {
    let is_load = command.get_name() == "load";
    let ours = words.iter().take_while(|word| *word != "--").count();
    (0..ours).find_map(|at| {
        let of_load = if is_load { mistaken_value(words, at) } else { None };
        of_load
            .or_else(|| forgotten_value(command, words, at))
            .or_else(|| one_dash(command, words, at))
    })
}

/// A value of `load` that would be taken for something else.
fn mistaken_value(words: &[String], at: usize) -> Option<ArgumentFault> {
    time_for_text(words, at)
        .or_else(|| file_for_text(words, at))
        .or_else(|| number_for_file(words, at))
        .or_else(|| count_for_credentials(words, at))
        .or_else(|| range_of_ramp(words, at))
        .or_else(|| socket_for_url(words, at))
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

/// Of a flag that may be called so, or so.
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

/// `-d 30s`: a time in wrk, a body here. The long name says that it is one.
fn time_for_text(words: &[String], at: usize) -> Option<ArgumentFault> {
    TIMES.into_iter().find_map(|(short, ours, theirs)| {
        let GivenValue { value, words: count } = value_of(words, at, Some(short), None)?;
        value.parse::<Nanos>().ok()?;
        let fault = ArgumentFault::of(
            format!("{short} is {theirs} here"),
            format!("type {ours} {value}, or {theirs} {value}"),
        );
        let inserted = vec![ours.to_owned(), value.to_owned()];
        Some(ArgumentFault {
            otherwise: Some(format!("{theirs} {value}")),
            ..fault.mended_by(Edit { at, removed: count, inserted })
        })
    })
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

/// `--html URL`: the flag would take the URL for its value.
fn forgotten_value(command: &Command, words: &[String], at: usize) -> Option<ArgumentFault> {
    let word = words[at].as_str();
    let next = words
        .get(at + 1)
        .filter(|next| next.starts_with("http://") || next.starts_with("https://"))?;
    let arg = command.get_arguments().find(|arg| {
        word.starts_with("--") && is_called(arg, word)
            || word.len() == 2 && word.starts_with('-') && is_called(arg, word)
    })?;
    let takes_value = arg.get_action().takes_values() && !arg.is_positional();
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

fn value_name(arg: &Arg) -> &str {
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
        (_, "RATE") => "100/s",
        (_, "LIMIT") => "p99 < 200ms",
        (_, name) => name,
    }
}

/// `-duration=5s`.
fn one_dash(command: &Command, words: &[String], at: usize) -> Option<ArgumentFault> {
    let word = words[at].as_str();
    let name = word.strip_prefix('-').filter(|name| !name.starts_with('-'))?;
    let (name, glued) =
        name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
    if name.len() <= 3 {
        return None;
    }
    let refusal = format!("{word} has one dash");
    let next = words.get(at + 1).map(String::as_str);
    let typed = Typed {
        at,
        value: glued.or(next.filter(|next| is_value(next))),
        word: glued.or(next),
        is_glued: glued.is_some(),
    };
    if has(command, &format!("--{name}")) {
        return Some(synonymous_flag(command, refusal, &format!("--{name}"), &typed));
    }
    let synonym = synonym(command, name, Some(&typed))?;
    Some(synonymous(command, refusal, synonym, Some(&typed)))
}

fn synonymous_flag(
    command: &Command,
    refusal: String,
    ours: &str,
    typed: &Typed<'_>,
) -> ArgumentFault {
    let advice = format!("type {}", with_value(command, ours, typed.value));
    renamed(command, ArgumentFault::of(refusal, advice), ours, Some(typed))
}

fn is_value(word: &str) -> bool {
    !word.starts_with('-') && !word.contains("://")
}

/// The flag, and what was typed for its value if it takes one.
fn with_value(command: &Command, flag: &str, value: Option<&str>) -> String {
    let name = flag.trim_start_matches('-');
    let arg = command
        .get_arguments()
        .find(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values());
    let Some(arg) = arg else { return flag.to_owned() };
    format!("{flag} {}", value.unwrap_or(value_name(arg)))
}
