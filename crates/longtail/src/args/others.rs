//! Flags and commands of other tools, and what to type for them here. Whole command lines of hey
//! and wrk are answered by `other_lines`.

use clap::{Arg, Command};

use crate::exit::{Mistake, wrong};

/// Words of other tools, and ours for all of them.
type Synonyms = (&'static str, &'static str);

/// Flags of wrk, hey, oha, ab, k6, vegeta, bombardier and h2load without their dashes, and ours: a
/// flag of that name, or a sentence where the word means several things. Of several entries the
/// first counts whose flag the command has.
const FLAGS: &[Synonyms] = &[
    ("duration time length run-time timelimit run-for z D", "--for"),
    (
        "rps qps throughput request-rate rate-limit requests-per-second target-throughput R q",
        "--rate",
    ),
    ("concurrency concurrent conns clients vus users max-workers workers u", "--connections"),
    ("requests num-requests number-of-requests iterations count total i N", "--number"),
    ("requests-per-conn", "--requests-per-connection"),
    ("request-timeout read-timeout max-time", "--timeout"),
    ("warmup warm-up-time delay-before", "--warm-up"),
    ("headers add-header", "--header"),
    ("request verb X", "--method"),
    ("body post-data data-binary data-raw payload", "--data"),
    ("post-file data-file body-path p", "--body-file"),
    ("basic-auth user authorization", "--auth"),
    ("targets urls url-file urls-from-file input-file", "--requests"),
    ("disable-keep-alive no-keepalive keepalive keep-alive", "--no-keep-alive"),
    ("skip-verify no-verify tls-skip-verify insecure-skip-tls-verify", "--insecure"),
    ("ca ca-cert root-certs", "--cacert"),
    ("stages", "--steps"),
    ("socket-path uds", "--unix"),
    ("proc probe-server", "--inspect"),
    ("file out outfile save", "--output"),
    ("worker processes", "--workers"),
    ("thread max-threads", "--generator-threads"),
    ("thread max-threads", "--threads"),
    ("t", "wrk's -t is --generator-threads, hey's is --timeout, ab's is --for"),
    ("latency L", "percentiles are always printed: leave it out"),
    ("cookie C", "type -H 'Cookie: NAME=VALUE'"),
    ("user-agent U A", "type -H 'User-Agent: NAME'"),
    ("proxy x", "longtail never uses a proxy: leave it out"),
    ("http2 h2 http3", "longtail speaks HTTP/1.1 only: leave it out"),
    ("pipeline", "longtail sends one request at a time on a connection: leave it out"),
    ("script s lua", "longtail runs no scripts; --requests FILE sends different requests"),
    ("quiet silent no-tui verbose v debug", "longtail has one level of detail: leave it out"),
];

/// What a command might be called, and what to type.
const COMMANDS: &[Synonyms] = &[
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
    ("ab oha k6 vegeta bombardier h2load", "longtail load URL (longtail load -h lists its flags)"),
    ("version", "longtail --version"),
];

/// What `table` has for `word`.
fn found<'a>(table: &'a [Synonyms], word: &str) -> impl Iterator<Item = &'a str> {
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
    let ours = found(FLAGS, name).find(|ours| has(command, ours))?;
    command
        .get_arguments()
        .find(|arg| is_called(arg, ours))
        .filter(|arg| arg.get_action().takes_values())
}

/// What to type in place of an unknown command.
pub(crate) fn command(word: &str) -> Option<String> {
    if word.starts_with("http://") || word.starts_with("https://") {
        return Some(format!("type longtail load {word}"));
    }
    found(COMMANDS, &word.to_ascii_lowercase()).next().map(|ours| format!("type {ours}"))
}

/// What to type in place of `flag`, which `command` does not have; `words` are the whole command
/// line, `all` is longtail.
pub(crate) fn flag(
    all: &Command,
    command: &Command,
    flag: &str,
    words: &[String],
) -> Option<String> {
    let typed = words.iter().position(|word| word == flag || word.starts_with(&format!("{flag}=")));
    let glued = typed.and_then(|at| words[at].split_once('=').map(|(_, value)| value));
    let value = glued.or_else(|| {
        typed.and_then(|at| words.get(at + 1)).map(String::as_str).filter(|next| is_value(next))
    });
    let name = flag.trim_start_matches('-');
    if let Some(ours) = found(FLAGS, name).find(|ours| !ours.starts_with('-') || has(command, ours))
    {
        if ours.starts_with('-') {
            return Some(format!("type {}", with_value(command, ours, value)));
        }
        return Some(ours.to_owned());
    }
    if flag.starts_with("http") && command.get_name() == "sweep" {
        return Some(
            "a sweep starts the server itself; type longtail load URL for one that runs".to_owned(),
        );
    }
    let flags = found(FLAGS, name).chain([flag]).filter(|flag| flag.starts_with('-'));
    for flag in flags {
        let other = all.get_subcommands().find(|other| !other.is_hide_set() && has(other, flag));
        if let Some(other) = other {
            return Some(format!("longtail {} has {flag}", other.get_name()));
        }
    }
    None
}

/// The flag that was probably meant, by its name in the help.
pub(crate) fn spelling(command: &Command, flag: &str) -> Option<String> {
    let known = command
        .get_arguments()
        .find(|arg| is_called(arg, flag))
        .filter(|arg| !arg.is_hide_set())?;
    Some(format!("did you mean --{}?", known.get_long()?))
}

/// Short flags of `load` that are a time in other tools, our flag for that time, and the long name
/// of the short flag here.
const TIMES: [(&str, &str, &str); 2] =
    [("-d", "--for", "--data"), ("-T", "--timeout", "--content-type")];

/// Refuses what would be taken for something else: a long flag with one dash, as in Go's tools
/// (`-duration=5s` is `-d uration=5s`), and a time where a body or a content type is expected.
///
/// # Errors
/// With what to type instead.
pub(crate) fn check(command: &Command, words: &[String]) -> Result<(), Mistake> {
    for (at, word) in words.iter().enumerate().take_while(|(_, word)| *word != "--") {
        let next = words.get(at + 1).map(String::as_str).filter(|next| is_value(next));
        for (short, ours, theirs) in TIMES.iter().filter(|_| command.get_name() == "load") {
            let value = word
                .strip_prefix(short)
                .and_then(|glued| if glued.is_empty() { next } else { Some(glued) });
            if let Some(time) = value.filter(|value| value.parse::<model::Nanos>().is_ok()) {
                return Err(wrong(format!(
                    "{short} is {theirs} here: type {ours} {time}, or {theirs} {time}"
                )));
            }
        }
        let Some(name) = word.strip_prefix('-').filter(|name| !name.starts_with('-')) else {
            continue;
        };
        let (name, value) =
            name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
        let ours = found(FLAGS, name).find(|ours| has(command, ours));
        let ours = if has(command, &format!("--{name}")) {
            Some(format!("--{name}"))
        } else {
            ours.map(str::to_owned)
        };
        if let Some(ours) = ours.filter(|_| name.len() > 3) {
            let value = value.or(next);
            let meant = with_value(command, &ours, value);
            return Err(wrong(format!("{word} has one dash: type {meant}")));
        }
    }
    Ok(())
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
    let placeholder =
        arg.get_value_names().and_then(|names| names.first()).map_or("VALUE", |name| name);
    format!("{flag} {}", value.unwrap_or(placeholder))
}
