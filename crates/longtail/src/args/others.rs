//! Other tools' command lines: those of hey and wrk are taken whole (`--as`), and for single flags
//! and commands of many more we say what to type here.
//!
//! Where a word of a whole line has no meaning here, that is said and nothing is sent; a flag that
//! is silently ignored would make two results look comparable that are not.

use clap::{Arg, Command};

use crate::exit::{Mistake, wrong};

/// Whose command line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Tool {
    /// rakyll/hey
    Hey,
    /// wg/wrk
    Wrk,
}

/// A flag of the other tool, under its names, and ours for it. Behind `=` it takes a value, which
/// stands where ours has `{}`; `{flag}` is the name that was typed. Empty: it is taken and changes
/// nothing. `None`: it cannot be done.
type OthersFlag = (&'static str, Option<&'static [&'static str]>);

const HEY: &[OthersFlag] = &[
    ("n c q m H A d D T a=", Some(&["-{flag}", "{}"])),
    ("z=", Some(&["--for", "{}"])),
    ("t=", Some(&["--timeout", "{}"])),
    ("U=", Some(&["-H", "User-Agent: {}"])),
    ("host=", Some(&["--host", "{}"])),
    ("disable-keepalive", Some(&["--disable-keepalive"])),
    ("disable-compression disable-redirects more", Some(&[])),
    ("cpus=", Some(&["--generator-threads", "{}"])),
    ("o=", Some(&["--log=-.{}"])),
    ("x=", None),
    ("h2", None),
];

const WRK: &[OthersFlag] = &[
    ("t threads=", Some(&["--generator-threads", "{}"])),
    ("c connections=", Some(&["-c", "{}"])),
    ("d duration=", Some(&["--for", "{}"])),
    ("H header=", Some(&["-H", "{}"])),
    ("L latency", Some(&[])),
    ("T timeout=", Some(&["--timeout", "{}"])),
    ("s script=", None),
];

/// Our words for the other tool's, its defaults among them.
///
/// # Errors
/// One line, where a flag is not that tool's or cannot be done.
pub(crate) fn translate(tool: Tool, words: &[String]) -> Result<Vec<String>, String> {
    // Neither verifies certificates. hey sends 200 requests over 50 connections where nothing else
    // is said.
    let (name, flags, defaults): (_, _, &[[&str; 2]]) = match tool {
        Tool::Hey => ("hey", HEY, &[["-c", "50"], ["--timeout", "20s"]]),
        Tool::Wrk => (
            "wrk",
            WRK,
            &[["-c", "10"], ["--for", "10s"], ["--generator-threads", "2"], ["--timeout", "2s"]],
        ),
    };
    let mut ours: Vec<String> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            ours.push(word.clone());
            continue;
        }
        let ((names, template), glued) = find(tool, flags, word)
            .ok_or_else(|| format!("{word} is no flag of {name} that is known here"))?;
        let template =
            template.ok_or_else(|| format!("{name}'s {word} cannot be done here: leave it out"))?;
        let value = match (names.ends_with('='), glued) {
            (false, _) => String::new(),
            (true, Some(value)) => value,
            (true, None) => {
                words.next().cloned().ok_or_else(|| format!("{name}'s {word} wants a value"))?
            }
        };
        let value = match tool {
            Tool::Wrk => without_unit(&value),
            // Its -t 0 waits for ever; a day is as good.
            Tool::Hey if *names == "t=" && value == "0" => "24h".to_owned(),
            Tool::Hey => value,
        };
        let flag = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        ours.extend(template.iter().map(|part| part.replace("{flag}", flag).replace("{}", &value)));
    }
    for words in defaults
        .iter()
        .filter(|[flag, _]| !ours.iter().any(|word| word == flag))
        .collect::<Vec<_>>()
    {
        ours.extend(words.map(str::to_owned));
    }
    ours.push("--insecure".to_owned());
    if tool == Tool::Hey && !ours.iter().any(|word| word == "-n" || word == "--for") {
        ours.extend(["-n", "200"].map(str::to_owned));
    }
    // hey's -z ends the run, whatever -n says.
    if let (Tool::Hey, Some(at), true) =
        (tool, ours.iter().position(|w| w == "-n"), ours.iter().any(|w| w == "--for"))
    {
        ours.drain(at..at + 2);
    }
    Ok(ours)
}

/// wrk's numbers may end in k or M: thousands and millions.
fn without_unit(value: &str) -> String {
    let scaled =
        |digits: &str, by: f64| digits.parse::<f64>().ok().map(|n| format!("{:.0}", n * by));
    let number = match value.split_at_checked(value.len().saturating_sub(1)) {
        Some((digits, "k" | "K")) => scaled(digits, 1e3),
        Some((digits, "M")) => scaled(digits, 1e6),
        _ => None,
    };
    number.unwrap_or_else(|| value.to_owned())
}

/// The flag, and the value that is glued to it (`-c=50` of hey, `-c50` and `--timeout=2s` of wrk).
fn find<'a>(
    tool: Tool,
    flags: &'a [OthersFlag],
    word: &str,
) -> Option<(&'a OthersFlag, Option<String>)> {
    let bare = word.trim_start_matches('-');
    let called = |name: &str| {
        flags.iter().find(|(names, _)| names.trim_end_matches('=').split(' ').any(|it| it == name))
    };
    let (name, glued) =
        bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value.to_owned())));
    if let Some(flag) = called(name) {
        return Some((flag, glued));
    }
    let (letter, rest) =
        bare.split_at_checked(1).filter(|_| tool == Tool::Wrk && !word.starts_with("--"))?;
    called(letter)
        .filter(|(names, _)| names.ends_with('='))
        .map(|flag| (flag, Some(rest.to_owned())))
}

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
    ("wrk", "longtail load --as wrk -- WRK'S WORDS"),
    ("hey", "longtail load --as hey -- HEY'S WORDS"),
    ("ab oha k6 vegeta bombardier h2load", "longtail load URL (longtail load -h lists its flags)"),
    ("version", "longtail --version"),
];

/// What `table` says of `word`, where it has it.
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

/// Our flag for another tool's long one, of those that take a value.
pub(crate) fn meant<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let ours = found(FLAGS, name).find(|ours| has(command, ours))?;
    command
        .get_arguments()
        .find(|arg| is_called(arg, ours))
        .filter(|arg| arg.get_action().takes_values())
}

/// What to type for a command that there is not.
pub(crate) fn command(word: &str) -> Option<String> {
    if word.starts_with("http://") || word.starts_with("https://") {
        return Some(format!("type longtail load {word}"));
    }
    found(COMMANDS, &word.to_ascii_lowercase()).next().map(|ours| format!("type {ours}"))
}

/// What to type for `flag`, which `command` has not; `words` are the whole command line, `all` is
/// longtail.
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
        let is_flag = ours.starts_with('-');
        return Some(if is_flag {
            format!("type {}", with_value(command, ours, value))
        } else {
            ours.to_owned()
        });
    }
    if flag.starts_with("http") && command.get_name() == "sweep" {
        return Some(
            "a sweep starts the server itself; type longtail load URL for one that runs".to_owned(),
        );
    }
    let others = found(FLAGS, name).filter(|ours| ours.starts_with('-')).chain([flag]);
    let elsewhere = |flag| {
        all.get_subcommands()
            .find(|one| !one.is_hide_set() && has(one, flag))
            .map(|one| (flag, one))
    };
    let (flag, other) = others.filter(|flag| flag.starts_with('-')).find_map(elsewhere)?;
    Some(format!("longtail {} has {flag}", other.get_name()))
}

/// What is like it in spelling, under the name that the help has.
pub(crate) fn spelling(command: &Command, flag: &str) -> Option<String> {
    let known = command
        .get_arguments()
        .find(|arg| is_called(arg, flag))
        .filter(|arg| !arg.is_hide_set())?;
    Some(format!("did you mean --{}?", known.get_long()?))
}

/// Short flags of `load` that other tools have for a time, the flag for that here, and the long one
/// for what it is here.
const TIMES: [(&str, &str, &str); 2] =
    [("-d", "--for", "--data"), ("-T", "--timeout", "--content-type")];

/// Refuses what would be understood as something else: a long flag with one dash, as Go's tools
/// have it (`-duration=5s` is `-d uration=5s`), and a time as a body or a type of content.
///
/// # Errors
/// Where there is one, with what to type.
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
    let arg =
        command.get_arguments().find(|arg| arg.get_long() == Some(flag.trim_start_matches('-')));
    let takes_value = arg.is_some_and(|arg| arg.get_action().takes_values());
    let named = || {
        arg.and_then(|arg| arg.get_value_names())
            .and_then(|names| names.first())
            .map_or("VALUE", |name| name)
    };
    if takes_value { format!("{flag} {}", value.unwrap_or_else(named)) } else { flag.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(tool: Tool, line: &str) -> Result<String, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        translate(tool, &words).map(|words| words.join(" "))
    }

    #[test]
    fn heys_examples_work() {
        let line = ours(Tool::Hey, "-z 20s -m GET http://localhost:8080").unwrap();
        assert_eq!(line, "--for 20s -m GET http://localhost:8080 -c 50 --timeout 20s --insecure");
        let line = ours(
            Tool::Hey,
            "-c 20 -n 2000 -cpus 16 -disable-keepalive http://127.0.0.1:40001/sleep0.2",
        )
        .unwrap();
        assert!(
            line.starts_with("-c 20 -n 2000 --generator-threads 16 --disable-keepalive http://"),
            "{line}"
        );
        assert!(ours(Tool::Hey, "http://h/").unwrap().contains("-n 200"));
        assert!(ours(Tool::Hey, "-o csv http://h/").unwrap().contains("--log=-.csv"));
    }

    #[test]
    fn wrks_examples_work() {
        let line =
            ours(Tool::Wrk, "-t12 -c400 -d30s --latency http://127.0.0.1:8080/index.html").unwrap();
        assert_eq!(
            line,
            "--generator-threads 12 -c 400 --for 30s http://127.0.0.1:8080/index.html --timeout 2s --insecure"
        );
        let line = ours(Tool::Wrk, "--timeout=5s --duration 3 -c 4 http://h/").unwrap();
        assert!(
            line.starts_with("--timeout 5s --for 3 -c 4 http://h/ --generator-threads 2"),
            "{line}"
        );
    }
}
