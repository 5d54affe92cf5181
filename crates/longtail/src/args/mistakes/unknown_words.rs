//! Words of a command line that its command does not know: what was meant.

use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use clap::Command;
use model::Nanos;
use model::plan::quoted;

use super::argument_fault::{ArgumentFault, Edit, Typed, is_value};
use super::mistaken_values::{
    forgotten_value, k6_condition, listening_place, mistaken_value, time_meant, value_name,
};
use crate::args::other_tools::flags::{K6_OUTPUT, URL, is_script, truth_of};
use crate::args::other_tools::synonyms::{
    FLAGS, Meant, SWITCHED_OFF, found, has, is_called, is_url, synonym, takes_value,
};

use Meant::{Advice, Flag, Header, Needless, NeedlessValue, Url, Words};

/// Finds what would be taken for something else: a long flag with one dash, as in Go's tools
/// (`-duration=5s` is `-d uration=5s`), a time or a file where a body is expected, a flag whose
/// value was forgotten, so that it would take the URL.
pub(crate) fn check(command: &Command, words: &[String]) -> Option<ArgumentFault> {
    let is_load = command.get_name() == "load";
    let ours = words.iter().take_while(|word| *word != "--").count();
    (0..ours).find_map(|at| {
        let of_load = if is_load { mistaken_value(words, at) } else { None };
        let file = || if is_load { file_for_url(command, words, at) } else { None };
        of_load
            .or_else(file)
            .or_else(|| switch_with_value(command, words, at))
            .or_else(|| forgotten_value(command, words, at))
            .or_else(|| one_dash(command, words, at))
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
    // k6's `--out json=FILE`, which is not a result but all of its samples.
    let is_k6_output = bare == "out"
        && typed.as_ref().and_then(|typed| typed.value).is_some_and(|value| value.contains('='));
    if is_k6_output && has(command, "--log") {
        return ArgumentFault::of(refusal, K6_OUTPUT.to_owned());
    }
    if let Some(fault) = percentile_limit(command, &refusal, bare, typed.as_ref()) {
        return fault;
    }
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

/// `load urls.txt` and `load -f urls.txt`, of a file that exists.
fn file_for_url(command: &Command, words: &[String], at: usize) -> Option<ArgumentFault> {
    let word = &words[at];
    if word.starts_with('-') || is_url(word) || !operands(command, words).contains(&at) {
        return None;
    }
    let before = at.checked_sub(1).map(|before| words[before].as_str()).unwrap_or_default();
    let is_flag = before.starts_with('-') && !has(command, before);
    let is_file_flag = ["-f", "--file"].contains(&before);
    // siege's -f are URLs, bombardier's a body: beside a URL it may be either.
    if is_flag && !(is_file_flag && lacks_url(words)) {
        return None;
    }
    if !Path::new(word).is_file() {
        let is_missing = lacks_url(words) && is_named_as_file(word);
        return if is_missing { Some(missing_file(word)) } else { None };
    }
    if is_script(word) {
        return Some(ArgumentFault::of_ours(
            format!("{} is a script, which longtail does not run", quoted(word)),
            "type longtail load URL, with -m, -H, -d or --requests FILE for what it sends"
                .to_owned(),
        ));
    }
    let refusal = format!("{} is a file, and no URL", quoted(word));
    let fault = ArgumentFault::of_ours(
        refusal,
        format!("type --requests {} for its requests", quoted(word)),
    );
    let inserted = vec!["--requests".to_owned(), word.clone()];
    let flags = usize::from(is_file_flag);
    Some(fault.mended_by(Edit { at: at - flags, removed: 1 + flags, inserted }))
}

/// Whether a word is the name of a file and hardly one of a host: `urls.txt`, `./urls`.
fn is_named_as_file(word: &str) -> bool {
    const ENDINGS: [&str; 11] =
        ["txt", "json", "jsonl", "csv", "log", "http", "js", "ts", "lua", "yml", "yaml"];
    let extension = Path::new(word).extension().and_then(|extension| extension.to_str());
    let is_alone = !word.contains('/');
    let is_path = ["./", "../", "~/"].iter().any(|start| word.starts_with(start));
    is_path || is_alone && extension.is_some_and(|one| ENDINGS.contains(&one))
}

fn missing_file(word: &str) -> ArgumentFault {
    ArgumentFault::of_ours(
        format!("there is no file {}, and it is no URL", quoted(word)),
        "a URL is such as http://127.0.0.1:9292/, and --requests FILE sends a file's requests"
            .to_owned(),
    )
}

/// `--insecure=false`, `-keepalive=false`, `--no-keepalive=true`: a switch of ours or of another tool
/// with the value that other tools take.
fn switch_with_value(command: &Command, words: &[String], at: usize) -> Option<ArgumentFault> {
    let word = words[at].as_str();
    let name = word.trim_start_matches('-');
    if name.len() == word.len() {
        return None;
    }
    let next = words.get(at + 1).map(String::as_str);
    let spaced = next.filter(|next| ["true", "false"].contains(next));
    let (name, value, removed) = match name.split_once('=') {
        Some((name, value)) => (name, value, 1),
        None => (name, spaced?, 2),
    };
    let is_on = truth_of(value)?;
    let SwitchMeaning { inserted, why } = switch_meaning(command, name, is_on)?;
    let shown = &word[..word.len() - word.trim_start_matches('-').len() + name.len()];
    let is_ours = has(command, &dashed(name));
    let refusal = if is_ours {
        format!("{shown} takes no value")
    } else {
        format!("{} has no {shown}", command.get_name())
    };
    let advice = match inserted.first() {
        Some(flag) => format!("type {flag}"),
        None => format!("leave out {shown} {value}"),
    };
    let fault =
        ArgumentFault { why, may_be_others: !is_ours, ..ArgumentFault::of(refusal, advice) };
    Some(fault.mended_by(Edit { at, removed, inserted }))
}

/// What a switch that is on or off is here.
struct SwitchMeaning {
    /// Our flag; none if ours does that anyway.
    inserted: Vec<String>,
    why: Option<&'static str>,
}

/// What `--NAME=true` or `--NAME=false` is here; `None` if it is no switch that is known.
fn switch_meaning(command: &Command, name: &str, is_on: bool) -> Option<SwitchMeaning> {
    const OFF: &str = "a switch that is off is left out";
    let only_if_on = |flag: String| SwitchMeaning {
        inserted: if is_on { vec![flag] } else { Vec::new() },
        why: (!is_on).then_some(OFF),
    };
    let own = dashed(name);
    if has(command, &own) {
        return (takes_value(command, &own) == Some(false) || is_short_switch(command, name))
            .then(|| only_if_on(own));
    }
    if !is_on && let Some(flag) = found(SWITCHED_OFF, name).find(|flag| has(command, flag)) {
        return Some(SwitchMeaning { inserted: vec![flag.to_owned()], why: None });
    }
    found(FLAGS, name).find_map(|meant| match meant {
        Flag(ours) if takes_value(command, ours) == Some(false) => {
            Some(only_if_on(ours.to_owned()))
        }
        Words(ours) if is_on => {
            let inserted = ours.iter().map(|word| (*word).to_owned()).collect();
            Some(SwitchMeaning { inserted, why: None })
        }
        Words(_) => Some(SwitchMeaning { inserted: Vec::new(), why: Some(OFF) }),
        Needless(why) => Some(SwitchMeaning { inserted: Vec::new(), why: Some(why) }),
        Flag(_) | Header(_) | Url | NeedlessValue(_) | Advice(_) => None,
    })
}

/// A flag's name with its dashes.
fn dashed(name: &str) -> String {
    if name.chars().count() == 1 { format!("-{name}") } else { format!("--{name}") }
}

fn is_short_switch(command: &Command, name: &str) -> bool {
    let mut letters = name.chars();
    let (Some(letter), None) = (letters.next(), letters.next()) else { return false };
    let arg = command.get_arguments().find(|arg| arg.get_short() == Some(letter));
    arg.is_some_and(|arg| !arg.get_action().takes_values())
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
    if let Some(fault) = percentile_limit(command, &refusal, name, Some(&typed)) {
        return Some(fault);
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

/// `--p99 400ms`: a percentile and its limit, by the flag that the command has for that.
fn percentile_limit(
    command: &Command,
    refusal: &str,
    name: &str,
    typed: Option<&Typed<'_>>,
) -> Option<ArgumentFault> {
    let percentile = match name {
        "p50" | "p90" | "p95" | "p99" => name,
        "p999" | "p99.9" => "p99.9",
        _ => return None,
    };
    let flag = ["--objective", "--expect"].into_iter().find(|flag| has(command, flag))?;
    let limit = typed.and_then(|typed| Some((typed, typed.value?)));
    // A limit without a unit is refused, so it is not told.
    let has_unit = |limit: &str| limit.ends_with(|c: char| c.is_ascii_alphabetic());
    let is_limit = |limit: &str| has_unit(limit) && limit.parse::<Nanos>().is_ok();
    if let Some((typed, limit)) = limit.filter(|(_, limit)| is_limit(limit)) {
        let condition = format!("{percentile} < {limit}");
        let typed = Typed { value: Some(&condition), ..*typed };
        return Some(synonymous_flag(command, refusal.to_owned(), flag, &typed));
    }
    let advice = format!("{flag} '{percentile} < 200ms' says what must hold");
    Some(ArgumentFault::of(refusal.to_owned(), advice))
}

/// A flag of another name.
fn synonymous(
    command: &Command,
    refusal: String,
    meant: Meant,
    typed: Option<&Typed<'_>>,
) -> ArgumentFault {
    if let (Flag("--expect"), Some(typed)) = (meant, typed)
        && let Some(condition) = typed.value.and_then(k6_condition)
    {
        let typed = Typed { value: Some(&condition), ..*typed };
        return synonymous_flag(command, refusal, "--expect", &typed);
    }
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

/// The flag, and what was typed for its value if it takes one.
fn with_value(command: &Command, flag: &str, value: Option<&str>) -> String {
    let name = flag.trim_start_matches('-');
    let arg = command
        .get_arguments()
        .find(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values());
    let Some(arg) = arg else { return flag.to_owned() };
    format!("{flag} {}", value.map_or_else(|| value_name(arg).to_owned(), quoted))
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

/// Our flag whose name, or whose name in another tool, is spelled almost like that; `None` if
/// several are equally near.
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

/// The Damerau-Levenshtein distance: letters to insert, delete, replace, or swap with the next one.
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
    if words[..at].iter().any(|word| word == "--") {
        let name = command.get_name();
        return Some(ArgumentFault::of_ours(
            format!("'{word}' stands behind --, where {name} takes nothing"),
            "leave it out: words for a script have no use here".to_owned(),
        ));
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
        format!("'{word}' has no flag before it"),
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
    // In JSON the colon is its own: the shell has removed the quotes.
    let joined = if before.ends_with(':') && !before.starts_with(['{', '[']) {
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

/// Whether this word is no URL, but one after it is.
pub(crate) fn is_url_behind(words: &[String], at: usize) -> bool {
    !is_url(&words[at]) && words[at + 1..].iter().any(|word| is_url(word))
}

/// A load without a URL.
pub(crate) fn forgotten_url(command: &Command, words: &[String]) -> Option<ArgumentFault> {
    if command.get_name() != "load" {
        return None;
    }
    let names_socket = words.iter().any(|word| word.starts_with("--unix"));
    if !names_socket && !lacks_url(words) {
        return None;
    }
    if !names_socket && has_piped_input() {
        let why = "load needs <URL>, or --requests - to read requests from stdin".to_owned();
        let inserted = ["--requests", "-"].map(str::to_owned).to_vec();
        let fault = ArgumentFault::of_ours(why, "longtail load -h has examples".to_owned());
        return Some(fault.mended_by(Edit { at: words.len(), removed: 0, inserted }));
    }
    let fault = if names_socket {
        ArgumentFault::of_ours(
            "the URL is missing, which says host and path of the requests".to_owned(),
            "add http://localhost/".to_owned(),
        )
    } else {
        ArgumentFault {
            why: Some("put yours in the place of URL"),
            ..ArgumentFault::of_ours(
                "load needs <URL>".to_owned(),
                "longtail load -h has examples".to_owned(),
            )
        }
    };
    let url = if names_socket { "http://localhost/" } else { URL };
    let inserted = vec![url.to_owned()];
    Some(fault.mended_by(Edit { at: words.len(), removed: 0, inserted }))
}

/// Whether stdin is a pipe or a file: a terminal and /dev/null are devices.
fn has_piped_input() -> bool {
    let stdin = std::fs::metadata("/dev/stdin");
    stdin.is_ok_and(|it| it.is_file() || it.file_type().is_fifo())
}

/// Whether neither a URL nor a file of requests is among the words of a load.
pub(crate) fn lacks_url(words: &[String]) -> bool {
    let says_where = |word: &String| {
        let from_file = ["--requests", "--mix", "--replay", "--unix"];
        is_url(word) || word == URL || from_file.iter().any(|flag| word.starts_with(flag))
    };
    !words.iter().any(says_where)
}
