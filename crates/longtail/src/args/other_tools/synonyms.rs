//! What other tools call our flags and commands. Whole command lines of other tools are answered by
//! `command_lines`.

use clap::{Arg, Command};

use crate::args::mistakes::argument_fault::Typed;

/// Words of other tools, and what they are here.
pub(crate) type Synonyms<T> = (&'static str, T);

/// What another tool's flag is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meant {
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
pub(crate) const FLAGS: &[Synonyms<Meant>] = &[
    ("duration time length run-time timelimit run-for seconds z D", Flag("--for")),
    (
        "rps qps throughput request-rate rate-limit requests-per-second target-throughput arrival-rate overallRate R q",
        Flag("--rate"),
    ),
    // bombardier's; oha's -r, a number of redirects, would change nothing.
    ("r", Flag("--rate")),
    ("url target uri endpoint site u", Url),
    (
        "concurrency concurrent conns connection clients vus users max-workers workers u",
        Flag("--connections"),
    ),
    (
        "num nb n-requests num-requests number-of-requests iterations amount count total requests-total max-requests i N",
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
    ("threshold thresholds assert slo sla limit goal", Flag("--objective")),
    ("threshold thresholds assert slo sla limit objective", Flag("--expect")),
    ("fail-on", Flag("--fail-if")),
    ("ssl tls https", Advice("https:// in the URL says so")),
    ("pause think-time thinktime think_time wait wait-time", Flag("--think")),
    ("d delay sleep", Flag("--service")),
    ("service service-time response-time sleep", Flag("--delay")),
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

/// Switches of other tools that are on unless they are `=false`, and our flag for that.
pub(crate) const SWITCHED_OFF: &[Synonyms<&str>] = &[
    ("keepalive keep-alive keepAlive persistent connection-reuse", "-k"),
    ("verify tls-verify ssl-verify check-certificate", "--insecure"),
];

/// What a command might be called, and what to type.
const COMMANDS: &[Synonyms<&str>] = &[
    (
        "run bench benchmark test start",
        "longtail sweep (it starts the server) or longtail load URL (it runs already)",
    ),
    (
        "try tune tuning optimize optimise size sizes threads workers",
        "longtail sweep --try auto (it tries numbers of threads)",
    ),
    ("fire hit stress get http loadtest load-test", "longtail load URL"),
    ("monitor top stat stats status observe inspect", "longtail watch PORT"),
    ("diff show print view analyze analyse results render export", "longtail report"),
    ("simulate theory model forecast calculate plan", "longtail predict"),
    ("check verify-machine machine env environment", "longtail doctor"),
    ("validate verify claim", "longtail audit FILE"),
    ("server serve mock echo upstream", "longtail sink"),
    ("plot", "longtail report --html report.html"),
    (
        "encode dump",
        "longtail report --json, or longtail load --log FILE.csv URL for a line a request",
    ),
    ("version", "longtail --version"),
];

/// What `table` has for `word`.
pub(crate) fn found<T: Copy>(table: &[Synonyms<T>], word: &str) -> impl Iterator<Item = T> {
    table
        .iter()
        .filter(move |(words, _)| words.split(' ').any(|one| one == word))
        .map(|(_, ours)| *ours)
}

/// What to type in place of an unknown command.
pub(crate) fn command(word: &str) -> Option<String> {
    if is_url(word) {
        return Some(format!("type longtail load {word}"));
    }
    found(COMMANDS, &word.to_ascii_lowercase()).next().map(|ours| format!("type {ours}"))
}

/// What another tool's flag of that name is here; the first entry that fits the command and what
/// was typed.
pub(crate) fn synonym(command: &Command, name: &str, typed: Option<&Typed<'_>>) -> Option<Meant> {
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

/// Whether that is another tool's long flag, without its dashes.
pub(crate) fn is_known(name: &str) -> bool {
    name.len() > 1 && found(FLAGS, name).next().is_some()
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

/// Whether it has a flag of that name, with its dashes.
pub(crate) fn has(command: &Command, flag: &str) -> bool {
    command.get_arguments().any(|arg| is_called(arg, flag))
}

/// Whether that is one of its names, with its dashes.
pub(crate) fn is_called(arg: &Arg, flag: &str) -> bool {
    let name = flag.trim_start_matches('-');
    arg.get_long() == Some(name)
        || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        || flag.len() == 2 && arg.get_short().is_some_and(|short| name.starts_with(short))
}

/// Of a word that is a long flag of `command`: whether the next word is its value.
pub(crate) fn takes_value(command: &Command, word: &str) -> Option<bool> {
    let name = word.strip_prefix("--")?;
    let bare = name.split('=').next().unwrap_or(name);
    let arg = command.get_arguments().find(|arg| is_called(arg, &format!("--{bare}")))?;
    Some(arg.get_action().takes_values() && !name.contains('='))
}

/// Whether that is a URL, with a scheme or without one. `5:5` is none.
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
    !host.is_empty() && is_host && host.parse::<u32>().is_err() && port.parse::<u16>().is_ok()
}
