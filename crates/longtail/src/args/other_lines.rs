//! Command lines of hey and wrk, answered with ours, whole, to paste.
//!
//! No flag is lost on the way: neither one of theirs nor one of ours that stands beside them. What
//! has no meaning here is named, because a flag that is silently ignored would make two results
//! look comparable that are not.

use audit::LoadTool;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::exit::{Mistake, wrong};

/// A flag of the other tool, under its names, and what it becomes. A name that ends in `=` takes a
/// value.
struct OthersFlag {
    names: &'static str,
    ours: Counterpart,
}

/// What another tool's flag is here.
enum Counterpart {
    /// These words: the value stands where they have `{}`, the name that was typed where they have
    /// `{flag}`.
    Words(&'static [&'static str]),
    /// Nothing, because longtail does so anyway.
    Nothing,
    /// It cannot be done.
    Impossible,
}

use Counterpart::{Impossible, Nothing, Words};

const HEY: &[OthersFlag] = &[
    OthersFlag { names: "n c q m H A d D T a=", ours: Words(&["-{flag}", "{}"]) },
    OthersFlag { names: "z=", ours: Words(&["--for", "{}"]) },
    OthersFlag { names: "t=", ours: Words(&["--timeout", "{}"]) },
    OthersFlag { names: "U=", ours: Words(&["-H", "User-Agent: {}"]) },
    OthersFlag { names: "host=", ours: Words(&["--host", "{}"]) },
    OthersFlag { names: "disable-keepalive", ours: Words(&["--disable-keepalive"]) },
    OthersFlag { names: "disable-compression disable-redirects more", ours: Nothing },
    OthersFlag { names: "cpus=", ours: Words(&["--generator-threads", "{}"]) },
    OthersFlag { names: "o=", ours: Words(&["--log=-.{}"]) },
    OthersFlag { names: "x=", ours: Impossible },
    OthersFlag { names: "h2", ours: Impossible },
];

const WRK: &[OthersFlag] = &[
    OthersFlag { names: "t threads=", ours: Words(&["--generator-threads", "{}"]) },
    OthersFlag { names: "c connections=", ours: Words(&["-c", "{}"]) },
    OthersFlag { names: "d duration=", ours: Words(&["--for", "{}"]) },
    OthersFlag { names: "H header=", ours: Words(&["-H", "{}"]) },
    OthersFlag { names: "L latency", ours: Nothing },
    OthersFlag { names: "T timeout=", ours: Words(&["--timeout", "{}"]) },
    OthersFlag { names: "s script=", ours: Impossible },
];

impl OthersFlag {
    fn takes_value(&self) -> bool {
        self.names.ends_with('=')
    }

    fn is_called(&self, name: &str) -> bool {
        self.names.trim_end_matches('=').split(' ').any(|one| one == name)
    }
}

/// What the other tool does where nothing else is said.
struct OthersDefault {
    /// The identifier of our flag for it.
    id: &'static str,
    words: [&'static str; 2],
}

/// A tool whose command lines are known here, as a whole.
pub(crate) struct KnownLines {
    tool: LoadTool,
    flags: &'static [OthersFlag],
    defaults: &'static [OthersDefault],
}

const KNOWN: [KnownLines; 2] = [
    KnownLines {
        tool: LoadTool::Hey,
        flags: HEY,
        defaults: &[
            OthersDefault { id: "connections", words: ["-c", "50"] },
            OthersDefault { id: "timeout", words: ["--timeout", "20s"] },
        ],
    },
    KnownLines {
        tool: LoadTool::Wrk,
        flags: WRK,
        defaults: &[
            OthersDefault { id: "connections", words: ["-c", "10"] },
            OthersDefault { id: "length", words: ["--for", "10s"] },
            OthersDefault { id: "generator_threads", words: ["--generator-threads", "2"] },
            OthersDefault { id: "timeout", words: ["--timeout", "2s"] },
        ],
    },
];

/// Identifiers of flags that choose what is printed, or have no layout of hey or wrk.
const OTHER_LAYOUTS: [&str; 6] = ["style", "format", "markdown", "json", "csv", "generator"];

impl KnownLines {
    /// Those of the tool of that name.
    pub(crate) fn of(name: &str) -> Option<&'static KnownLines> {
        KNOWN.iter().find(|lines| lines.tool.name() == name)
    }

    /// The flag that `word` is, and the value that is glued to it (`-c=50` of hey, `-c50` and
    /// `--timeout=2s` of wrk).
    fn find<'a>(&self, word: &'a str) -> Option<(&'static OthersFlag, Option<&'a str>)> {
        let bare = word.trim_start_matches('-');
        let called = |name: &str| self.flags.iter().find(|flag| flag.is_called(name));
        let (name, glued) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        if let Some(flag) = called(name) {
            return Some((flag, glued));
        }
        if self.tool != LoadTool::Wrk || word.starts_with("--") {
            return None;
        }
        let (letter, value) = bare.split_at_checked(1)?;
        called(letter).filter(|flag| flag.takes_value()).map(|flag| (flag, Some(value)))
    }

    /// A value of its flag as ours has it.
    fn value(&self, flag: &OthersFlag, value: &str) -> String {
        if self.tool == LoadTool::Wrk {
            return without_unit(value);
        }
        // hey's -t 0 waits for ever; a day is as good.
        if flag.is_called("t") && value == "0" {
            return "24h".to_owned();
        }
        value.to_owned()
    }
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

/// Another tool's command line in our words.
#[derive(Default)]
struct Translation {
    flags: Vec<String>,
    /// The URL.
    operands: Vec<String>,
    /// Flags of theirs that change nothing here, and why.
    remarks: Vec<String>,
}

/// # Errors
/// One line, where a flag is not that tool's or cannot be done.
fn translate(lines: &KnownLines, words: &[String]) -> Result<Translation, String> {
    let name = lines.tool.name();
    let mut ours = Translation::default();
    // Of hey: a count ends no run that -z ends.
    let is_timed = lines.tool == LoadTool::Hey
        && words.iter().any(|word| lines.find(word).is_some_and(|(flag, _)| flag.is_called("z")));
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word == "-" {
            ours.operands.push(word.clone());
            continue;
        }
        let (flag, glued) = lines
            .find(word)
            .ok_or_else(|| format!("{word} is no flag of {name} that is known here"))?;
        let value = match glued {
            _ if !flag.takes_value() => String::new(),
            Some(glued) => lines.value(flag, glued),
            None => {
                let next = words.next().ok_or_else(|| format!("{name}'s {word} needs a value"))?;
                lines.value(flag, next)
            }
        };
        let typed = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        match flag.ours {
            Words(_) if is_timed && typed == "n" => {
                ours.remarks.push("hey ignores -n beside -z".to_owned());
            }
            Words(parts) => ours.flags.extend(
                parts.iter().map(|part| part.replace("{flag}", typed).replace("{}", &value)),
            ),
            Nothing => ours.remarks.push(format!("{word} changes nothing here")),
            Impossible => {
                return Err(format!("{name}'s {word} cannot be done here: leave it out"));
            }
        }
    }
    Ok(ours)
}

/// What to say of a command line of another tool: `refusal` is what is wrong with it, `beside` the
/// words of ours that stand beside `theirs`, `all` is longtail.
///
/// # Errors
/// Where it has no counterpart.
pub(crate) fn answer(
    all: &Command,
    lines: &KnownLines,
    refusal: &str,
    beside: &[String],
    theirs: &[String],
) -> Result<PastedLine, Mistake> {
    let Translation { flags, operands, remarks } = translate(lines, theirs).map_err(wrong)?;
    let mut words = vec!["load".to_owned()];
    words.extend_from_slice(beside);
    words.extend(flags);
    let typed = ["longtail".to_owned()].into_iter().chain(words.clone()).chain(operands.clone());
    // Where it is no command line, whoever reads it says why.
    if let Ok(found) = all.clone().try_get_matches_from(typed)
        && let Some(load) = found.subcommand_matches("load")
    {
        words.extend(defaults(lines, load));
    }
    words.extend(operands);
    let remarks =
        if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join("; ")) };
    Ok(PastedLine { refusal: format!("{refusal}{remarks}"), words })
}

/// What to say of `load --as hey -- HEY'S WORDS`, which ran them once; `None` where `flag`, that
/// `load` does not have, is another one.
pub(crate) fn after_as(
    all: &Command,
    flag: &str,
    words: &[String],
) -> Option<Result<PastedLine, Mistake>> {
    if !["--as", "--like"].contains(&flag) {
        return None;
    }
    let dashes = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (before, after) = words.split_at(dashes);
    let glued = format!("{flag}=");
    let at = before.iter().position(|word| word == flag || word.starts_with(&glued))?;
    let (name, flag_words) = match before[at].strip_prefix(&glued) {
        Some(name) => (name, 1),
        None => (before.get(at + 1).map_or("", String::as_str), 2),
    };
    let refusal = format!("load has no {flag}");
    let Some(lines) = KnownLines::of(name) else {
        return Some(Err(wrong(format!(
            "{refusal}: only command lines of hey and wrk are known here; longtail load -h lists the flags"
        ))));
    };
    let mut beside = before.to_vec();
    beside.drain(at..(at + flag_words).min(before.len()));
    if let Some(command) = beside.iter().position(|word| word == "load") {
        beside.remove(command);
    }
    let theirs = after.get(1..).unwrap_or_default();
    Some(answer(all, lines, &refusal, &beside, theirs))
}

/// A line of ours to paste.
pub(crate) struct PastedLine {
    /// What is wrong with what was typed.
    pub(crate) refusal: String,
    /// The words of the line, without the program.
    pub(crate) words: Vec<String>,
}

/// What is added to a load so that it does what that tool does by default, and looks like it.
fn defaults(lines: &KnownLines, load: &ArgMatches) -> Vec<String> {
    let is_given = |id: &str| load.value_source(id) == Some(ValueSource::CommandLine);
    let mut words = Vec::new();
    for OthersDefault { id, words: [flag, value] } in lines.defaults {
        if !is_given(id) {
            words.extend([*flag, *value]);
        }
    }
    if lines.tool == LoadTool::Hey && !is_given("number") && !is_given("length") {
        words.extend(["-n", "200"]);
    }
    // Neither verifies certificates.
    let is_tls = load.get_one::<String>("url").is_some_and(|url| url.starts_with("https://"));
    if is_tls && !is_given("insecure") {
        words.push("--insecure");
    }
    if !OTHER_LAYOUTS.into_iter().any(is_given) {
        words.extend(["--style", lines.tool.name()]);
    }
    words.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::definition;
    use model::plan::quoted;

    fn line(tool: LoadTool, beside: &str, theirs: &str) -> String {
        let words = |line: &str| shlex::split(line).unwrap();
        let lines = KnownLines::of(tool.name()).unwrap();
        let answered = answer(&definition(), lines, "no", &words(beside), &words(theirs));
        match answered {
            Ok(PastedLine { refusal, words }) => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                format!("{refusal}: type longtail {}", words.join(" "))
            }
            Err(mistake) => mistake.to_string(),
        }
    }

    #[test]
    fn heys_lines_become_ours() {
        for (theirs, ours) in [
            (
                "-z 20s -m GET http://h/",
                "--for 20s -m GET -c 50 --timeout 20s --style hey http://h/",
            ),
            ("http://h/", "-c 50 --timeout 20s -n 200 --style hey http://h/"),
            ("-c=4 -n=8 http://h/", "-c 4 -n 8 --timeout 20s --style hey http://h/"),
            (
                "-c 20 -n 2000 -cpus 16 -disable-keepalive http://h/sleep0.2",
                "-c 20 -n 2000 --generator-threads 16 --disable-keepalive --timeout 20s --style hey http://h/sleep0.2",
            ),
            (
                "-n 1 -T text/plain -U me/1 -d 'hello you' -t 0 https://h/",
                "-n 1 -T text/plain -H 'User-Agent: me/1' -d 'hello you' --timeout 24h -c 50 --insecure --style hey https://h/",
            ),
            ("-o csv -n 5 http://h/", "--log=-.csv -n 5 -c 50 --timeout 20s --style hey http://h/"),
        ] {
            assert_eq!(line(LoadTool::Hey, "", theirs), format!("no: type longtail load {ours}"));
        }
    }

    #[test]
    fn wrks_lines_become_ours() {
        for (theirs, ours) in [
            (
                "-t12 -c400 -d30s http://h/index.html",
                "--generator-threads 12 -c 400 --for 30s --timeout 2s --style wrk http://h/index.html",
            ),
            (
                "--timeout=5s --duration 3 -c 2k http://h/",
                "--timeout 5s --for 3 -c 2000 --generator-threads 2 --style wrk http://h/",
            ),
        ] {
            assert_eq!(line(LoadTool::Wrk, "", theirs), format!("no: type longtail load {ours}"));
        }
    }

    #[test]
    fn flags_of_ours_beside_theirs_stay() {
        for (beside, ours) in [
            ("-c 8 --rate 10/s", "-c 8 --rate 10/s --timeout 20s -n 200 --style hey http://h/"),
            ("-kc8 --for=1s --json", "-kc8 --for=1s --json --timeout 20s http://h/"),
            (
                "--fail-if 'p99 > 1s' --generator hey",
                "--fail-if 'p99 > 1s' --generator hey -c 50 --timeout 20s -n 200 http://h/",
            ),
        ] {
            let said = line(LoadTool::Hey, beside, "http://h/");
            assert_eq!(said, format!("no: type longtail load {ours}"));
        }
    }

    #[test]
    fn what_has_no_counterpart_is_named() {
        let said = line(LoadTool::Wrk, "", "-c4 -d1s --latency http://h/");
        assert!(
            said.starts_with("no (--latency changes nothing here): type longtail load"),
            "{said}"
        );
        let said = line(LoadTool::Hey, "", "-n 5 -z 1s -disable-compression http://h/");
        let remarks = "hey ignores -n beside -z; -disable-compression changes nothing here";
        assert!(
            said.starts_with(&format!("no ({remarks}): type longtail load --for 1s")),
            "{said}"
        );
        assert!(
            line(LoadTool::Wrk, "", "-s x.lua http://h/").contains("wrk's -s cannot be done here")
        );
        assert!(line(LoadTool::Hey, "", "-Z http://h/").contains("-Z is no flag of hey"));
    }
}
