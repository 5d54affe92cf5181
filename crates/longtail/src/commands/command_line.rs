//! Understands the words on the command line, and says what is wrong with them, in one line with what
//! to type.
//!
//! Puma's own flags (`-w2 -t5:5 -R100 -d0.2 -k`) stand beside full names.

use std::ffi::OsString;

use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use model::AllowedNetworks;

use super::{Cli, Command, definition, help};
use crate::args::mistakes::argument_fault::ArgumentFault;
use crate::args::mistakes::{mistaken_values, unknown_words};
use crate::args::other_tools::command_lines::OthersReading;
use crate::args::other_tools::flags::{
    BODY, DURATION, METHOD, OtherTool, PATH, PAUSE, RATE, URL, VALUE, VUS, WEIGHT,
};
use crate::args::other_tools::{command_lines, synonyms};
use crate::args::{LoadArgs, overhead};
use crate::exit::{LineToType, LinesToType, Mistake, refuse_if, to_type, wrong};
use crate::secrets::{self, MaskedWords};
use crate::ui;

/// What the words on the command line ask for.
pub(crate) enum Invocation {
    /// Do this, and connect only to these networks.
    Command(Command, Option<AllowedNetworks>),
    /// Print this help or version.
    Help(String),
    /// No command was given: print this on stderr.
    Usage(String),
}

/// Where the name of a tool may stand as a path, or with its whole line in one word.
const BEFORE_TOOL: [&str; 2] = ["--", "load"];

/// The words in which another tool is called by its name alone, where it was typed as a path
/// (`/usr/bin/hey -n 10 URL`) or its line as one word (`'hey -n 10 URL'`).
fn with_name_of_tool(mut words: Vec<OsString>) -> Vec<OsString> {
    let texts = texts(&words);
    let at = usize::from(texts.first().is_some_and(|word| BEFORE_TOOL.contains(&word.as_str())));
    let split = texts.get(at).and_then(|word| shlex::split(word)).unwrap_or_default();
    let [program, rest @ ..] = &split[..] else { return words };
    let name = program.rsplit('/').next().unwrap_or(program);
    // `h/hey` may be a URL.
    let is_path = ["/", "./", "../", "~/"].iter().any(|begin| program.starts_with(begin));
    if (is_path || name == program) && OtherTool::of(name).is_some() {
        let tool = std::iter::once(name.into()).chain(rest.iter().map(OsString::from));
        words.splice(at + 1..at + 2, tool);
    }
    words
}

/// Adds the command if it was left out: `longtail -c 10 -n 100 URL` is a load, unless another load
/// tool would read the same line as something else. In `longtail -- hey URL` the dashes go.
pub(crate) fn with_command(words: Vec<OsString>) -> Vec<OsString> {
    let mut words = with_name_of_tool(words);
    let texts = texts(&words);
    if let [dashes, tool, ..] = &texts[..]
        && dashes == "--"
        && OtherTool::of(tool).is_some()
    {
        words.remove(1);
        return words;
    }
    if lacks_command(&texts) && command_lines::other_readings(&definition(), &texts).is_empty() {
        words.insert(1, "load".into());
    }
    words
}

/// The words behind the program's name.
fn texts(words: &[OsString]) -> Vec<String> {
    words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Whether words are flags and a URL, without a command.
fn lacks_command(words: &[String]) -> bool {
    let begins = words.first().is_some_and(|word| word.starts_with('-') || synonyms::is_url(word));
    let asks = ["-h", "--help", "-V", "--version"];
    let names_no_command = || {
        let whole = definition();
        !words
            .iter()
            .any(|word| whole.find_subcommand(word).is_some() || OtherTool::of(word).is_some())
    };
    begins
        && words.iter().any(|word| word.starts_with('-'))
        && words.iter().any(|word| synonyms::is_url(word))
        && !words.iter().any(|word| asks.contains(&word.as_str()))
        && names_no_command()
}

/// Understands the command line.
///
/// # Errors
/// One line that says what is wrong and what to type.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Invocation, Mistake> {
    let words: Vec<OsString> = words.into_iter().collect();
    let typed = texts(&words);
    secrets::refuse_placeholder(&typed)?;
    refuse_placeholder(&typed)?;
    let mistake = match understood(words) {
        Ok(invocation) => return Ok(invocation),
        Err(mistake) => mistake,
    };
    // The words are read again with their secrets masked, so that the message repeats none. As a
    // rule the mistake is the same.
    let masked = MaskedWords::of(&definition(), &typed);
    let said = std::iter::once("longtail").chain(masked.words.iter().map(String::as_str));
    match understood(said.map(OsString::from).collect()) {
        Err(Mistake::ToType(lines)) => {
            Err(Mistake::ToType(secrets::with_variables(lines).saying(secrets::missing_in)))
        }
        Err(same) => Err(same),
        Ok(_) => Err(wrong(masked.without_secrets(&mistake.to_string()))),
    }
}

/// Words that stand for what only the user knows, what each is, and the flags before it. The parser
/// takes these words, since a text may be any.
const PLACEHOLDERS: [(&str, &str, &[&str]); 10] = [
    (URL, "URL", &[]),
    (METHOD, "method", &["-m", "--method", "--mix"]),
    (PATH, "path", &[]),
    (BODY, "body", &["-d", "--data", "--data-raw", "--mix"]),
    (VALUE, "header value", &["-H", "--header", "--mix"]),
    (RATE, "rate", &["--rate", "--steps", "--ramp"]),
    (DURATION, "duration", &["--for", "-z", "--think", "--timeout"]),
    (VUS, "number of virtual users", &["-c", "--connections"]),
    (PAUSE, "pause", &["--think"]),
    (WEIGHT, "weights", &["--mix"]),
];

/// Refuses a line of ours that was pasted with a word that stands for something unknown.
fn refuse_placeholder(words: &[String]) -> Result<(), Mistake> {
    let is_ours = definition().get_subcommands().any(|command| {
        words.first().is_some_and(|word| word == command.get_name())
            && command.get_arguments().any(|argument| argument.get_id() == "url")
    });
    // `--style wrk` chooses a layout.
    let names_tool = words.iter().enumerate().any(|(at, word)| {
        let is_value = at > 0 && words[at - 1] == "--style";
        !is_value && OtherTool::of(word).is_some()
    });
    if !is_ours || names_tool {
        return Ok(());
    }
    for (placeholder, what, flags) in PLACEHOLDERS {
        let is_there = words.iter().enumerate().any(|(at, word)| {
            let before = at.checked_sub(1).map_or("", |before| words[before].as_str());
            let letter = |flag: &&str| flag.len() == 2 && word.starts_with(*flag);
            let (flag, value) = match flags.iter().copied().find(letter) {
                // `-dBODY`
                Some(flag) => (flag, word[flag.len()..].trim_start_matches('=')),
                // `--mix=…`; a `--mix` of its own may have an `=` in a URL.
                None => {
                    word.split_once('=').filter(|_| word.starts_with('-')).unwrap_or((before, word))
                }
            };
            match flags {
                [] => command_lines::stands_for(word, placeholder),
                flags => flags.contains(&flag) && command_lines::stands_for(value, placeholder),
            }
        });
        refuse_if(
            is_there,
            format!(
                "{placeholder} stands for yours: put your {what} in the place of {placeholder}"
            ),
        )?;
    }
    Ok(())
}

fn understood(words: Vec<OsString>) -> Result<Invocation, Mistake> {
    let texts = texts(&words);
    if let Some(comparison) = overhead::as_comparison(&texts)? {
        return parse_short_form(comparison, texts);
    }
    if texts == ["help", "words"] {
        return Ok(Invocation::Help(help::words()));
    }
    let is_named = |name: &str| texts.iter().any(|word| word == name);
    let defined = || help::whole_for(ui::terminal_width(), is_named);
    let mut parser = defined();
    if let Some(answer) = tool_behind_command(&parser, &texts) {
        return Err(answer);
    }
    if let Some(command) = named_command(&parser, &texts) {
        if let Some(answer) = vegetas_attack(&parser, command, &texts) {
            return Err(answer);
        }
        if let Some(answer) = vegetas_report(command, &texts) {
            return Err(answer);
        }
        if let Some(fault) = unknown_words::check(command, &texts) {
            return Err(mended(&parser, command, &texts, &fault, false));
        }
    }
    let cli =
        parser.try_get_matches_from_mut(words).and_then(|found| Cli::from_arg_matches(&found));
    match cli {
        Ok(cli) => invocation_of(cli, texts),
        Err(error) => explained(&error, &defined(), &texts),
    }
}

/// What the parsed words ask for.
fn invocation_of(mut cli: Cli, texts: Vec<String>) -> Result<Invocation, Mistake> {
    ui::choose_color(cli.color);
    match &mut cli.command {
        Command::Sweep(args) => {
            if let Some(comparison) = args.as_comparison(&texts)? {
                return parse_short_form(comparison, texts);
            }
        }
        Command::Compare(args) => args.words = texts,
        _ => {}
    }
    Ok(Invocation::Command(cli.command, cli.allow_net))
}

/// What to show where clap has read no command: the help, the version, the usage, or what is wrong
/// with the words.
fn explained(
    error: &clap::Error,
    whole: &clap::Command,
    texts: &[String],
) -> Result<Invocation, Mistake> {
    let command = named_command(whole, texts);
    if let Some(word) = glued_to_help(error.kind(), command.unwrap_or(whole), texts) {
        let command = command.unwrap_or(whole);
        let fault = unknown_words::glued_to_help(command, word, texts);
        return Err(mended(whole, command, texts, &fault, false));
    }
    let is_long = texts.iter().any(|word| word == "--help")
        || texts.first().is_some_and(|word| word == "help");
    match error.kind() {
        ErrorKind::DisplayHelp if is_long => Ok(Invocation::Help(help::long_help(
            whole.clone(),
            command.map(clap::Command::get_name),
        ))),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            Ok(Invocation::Help(error.to_string()))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let Some(command) = command else { return Ok(Invocation::Usage(help::in_short())) };
            Ok(match parse(["longtail", command.get_name(), "-h"].map(OsString::from))? {
                Invocation::Help(text) => Invocation::Usage(text),
                other => other,
            })
        }
        _ => {
            if lacks_command(texts) {
                return Err(several_meanings(whole, texts));
            }
            let Some(command) = command else {
                return Err(without_command(error, whole, texts));
            };
            Err(mistaken(error, whole, command, texts))
        }
    }
}

/// The command that is named first; `None` if another tool's name stands before it.
fn named_command<'c>(whole: &'c clap::Command, words: &[String]) -> Option<&'c clap::Command> {
    let named = words.iter().map(|word| (whole.find_subcommand(word), OtherTool::of(word)));
    named.into_iter().find(|(command, tool)| command.is_some() || tool.is_some())?.0
}

/// What to say of words that clap refuses although they name a command.
fn mistaken(
    error: &clap::Error,
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
) -> Mistake {
    let special = of_other_tool(error, whole, command, words)
        .or_else(|| command_in_front(command.get_name(), words));
    if let Some(answer) = special {
        return answer;
    }
    match fault_of(error, whole, command, words) {
        Some(fault) => {
            let flag = first_of(error, ContextKind::InvalidArg);
            let is_contested = flag.len() == 2 && !CLEAR_FLAGS.contains(&flag.as_str());
            mended(whole, command, words, &fault, is_contested)
        }
        None => Mistake::Flags(sentence(error, whole, command)),
    }
}

/// The rest of a line of `load` without the first long flag that is not known.
fn without_unknown_flag(
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
) -> Option<Mistake> {
    let typed = std::iter::once("longtail").chain(words.iter().map(String::as_str));
    let error = whole.clone().try_get_matches_from(typed).err()?;
    let flag = first_of(&error, ContextKind::InvalidArg);
    let is_load = command.get_name() == "load";
    if !is_load || error.kind() != ErrorKind::UnknownArgument || !flag.starts_with("--") {
        return None;
    }
    let refusal = refusal(&error, whole, command, words);
    without_flag(&refusal, &flag, words)
}

/// The rest of a line of `load` with a flag that is not known; `None` if nothing is known of that
/// either. `why` is what is wrong with the flag.
fn without_flag(why: &str, flag: &str, words: &[String]) -> Option<Mistake> {
    let at = words.iter().position(|word| word.split('=').next() == Some(flag))?;
    if !flag.starts_with('-') {
        return None;
    }
    let is_value = |word: &String| !word.starts_with('-') && !synonyms::is_url(word);
    let is_alone = words[at] == flag;
    let has_value = is_alone && words.get(at + 1).is_some_and(is_value);
    let end = at + 1 + usize::from(has_value);
    let rest = [&words[..at], &words[end..]].concat();
    match understood_line(&rest) {
        Ok(_) => Some(to_type(format!("{why}; without {flag}, type "), shown(&rest))),
        Err(Mistake::ToType(lines)) => {
            Some(Mistake::ToType(lines.after(&format!("{why}; without {flag}, "))))
        }
        Err(_) => None,
    }
}

/// What is wrong with words of a command, and what to type in place of one of them.
pub(crate) fn refusal(
    error: &clap::Error,
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
) -> String {
    match unknown_flag(error, whole, command, words) {
        Some(ArgumentFault { refusal, advice, .. }) => format!("{refusal}: {advice}"),
        None => sentence(error, whole, command),
    }
}

/// What was meant by a flag that the command does not have.
fn unknown_flag(
    error: &clap::Error,
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
) -> Option<ArgumentFault> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let flag = first_of(error, ContextKind::InvalidArg);
    Some(unknown_words::unknown_flag(whole, command, &flag, words))
}

/// What was meant by words of a command that clap refuses, where that can be told.
fn fault_of(
    error: &clap::Error,
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
) -> Option<ArgumentFault> {
    match error.kind() {
        ErrorKind::UnknownArgument => unknown_flag(error, whole, command, words),
        ErrorKind::ValueValidation => {
            let flag = first_of(error, ContextKind::InvalidArg);
            let value = first_of(error, ContextKind::InvalidValue);
            let complaint = plain(&error.to_string());
            let complaint = complaint.split("': ").next().unwrap_or_default();
            mistaken_values::wrong_value(command, &flag, &value, &format!("{complaint}'"), words)
        }
        ErrorKind::MissingRequiredArgument => unknown_words::forgotten_url(command, words),
        _ => None,
    }
}

/// What clap's error has as this kind of context; from a list, the first word.
fn first_of(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(word)) => word.clone(),
        Some(ContextValue::Strings(words)) => words.first().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

/// A line of ours as text, without its secrets.
fn shown(words: &[String]) -> String {
    let masked = MaskedWords::of(&definition(), words);
    secrets::line(&masked.words).to_string()
}

/// Short flags of other tools that mean the same in all that have them.
const CLEAR_FLAGS: [&str; 3] = ["-v", "-L", "-X"];

/// What to say of a line with a fault: the whole line that was meant, where all that is wrong with
/// it can be mended. `is_contested`: the flag means different things in different tools.
fn mended(
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
    fault: &ArgumentFault,
    is_contested: bool,
) -> Mistake {
    let ArgumentFault { refusal, advice, otherwise, .. } = fault;
    let corrected = corrected(whole, command, words, fault);
    let asks_tools = fault.may_be_others && command.get_name() == "load";
    if asks_tools {
        let readings = others_readings(whole, words, corrected.as_ref(), is_contested);
        if let Some(line) = command_lines::say_readings(&readings, shown) {
            return Mistake::ToType(line.after(&format!("{refusal}: ")));
        }
    }
    let Some(Corrected { words, reasons }) = corrected else {
        let without = without_unknown_flag(whole, command, words);
        return without.unwrap_or_else(|| wrong(format!("{refusal}: {advice}")));
    };
    let reasons =
        if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
    let otherwise = otherwise.as_ref().map(|other| format!(", or {other}")).unwrap_or_default();
    let line = LinesToType::one(format!("{refusal}{reasons}: type "), shown(&words));
    Mistake::ToType(LinesToType { rest: otherwise, ..line })
}

/// How other tools take a faulty line of `load`, where that counts more than the line as mended.
fn others_readings(
    whole: &clap::Command,
    words: &[String],
    corrected: Option<&Corrected>,
    is_contested: bool,
) -> Vec<OthersReading> {
    let mut load = words.to_vec();
    load.retain(|word| word != "load");
    if unknown_words::lacks_url(&load) {
        load.push(URL.to_owned());
    }
    if let Some(reading) = command_lines::reading_of_owner(whole, &load) {
        let is_the_same = corrected.is_some_and(|ours| reading.means(whole, &ours.words));
        return if is_the_same { Vec::new() } else { vec![reading] };
    }
    if corrected.is_some() && !is_contested {
        return Vec::new();
    }
    let mut readings = command_lines::readings(whole, &load);
    if corrected.is_some() {
        readings.retain(|reading| !reading.misses_value);
    }
    readings
}

/// A line in which all that was wrong is mended.
struct Corrected {
    words: Vec<String>,
    /// Why something could be left out.
    reasons: Vec<&'static str>,
}

/// The line without this fault and those that follow; `None` where one of them cannot be mended.
fn corrected(
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
    first: &ArgumentFault,
) -> Option<Corrected> {
    let mut words = words.to_vec();
    let mut fault = first.clone();
    let mut reasons = Vec::new();
    // Each change mends one word, so this ends.
    for _ in 0..=words.len() {
        words = fault.edit.as_ref()?.apply(&words);
        reasons.extend(fault.why.filter(|why| !reasons.contains(why)));
        let found = whole.clone().try_get_matches_from(
            std::iter::once("longtail").chain(words.iter().map(String::as_str)),
        );
        fault = match (unknown_words::check(command, &words), found) {
            (Some(fault), _) => fault,
            (None, Ok(_)) => return Some(Corrected { words, reasons }),
            (None, Err(error)) => fault_of(&error, whole, command, &words)?,
        };
    }
    None
}

/// What to say of flags and a URL without a command, which mean one thing here and another one in
/// other tools.
fn several_meanings(whole: &clap::Command, words: &[String]) -> Mistake {
    let load: Vec<String> = ["load".to_owned()].into_iter().chain(words.iter().cloned()).collect();
    let readings = command_lines::other_readings(whole, words);
    let others = command_lines::say_readings(&readings, shown).unwrap_or_default();
    let ours = "without a command this line may mean several things: as longtail's own, type ";
    let LinesToType { mut lines, .. } = LinesToType::one(ours, shown(&load));
    lines.extend(others.after("; ").lines);
    Mistake::ToType(LinesToType { lines, ..LinesToType::default() })
}

/// What to say of words that name no command.
fn without_command(error: &clap::Error, whole: &clap::Command, words: &[String]) -> Mistake {
    if let Some(answer) = of_other_tool(error, whole, whole, words) {
        return answer;
    }
    if words.len() == 1 && ["-v", "-version"].contains(&words[0].as_str()) {
        return wrong(format!("longtail has no {}: type longtail -V for the version", words[0]));
    }
    if words.first().is_some_and(|word| word.starts_with('-'))
        && let Some(answer) = flags_alone(whole, words)
    {
        return answer;
    }
    // `longtail bench URL`: whatever word stands there, `load` is the command for a URL.
    let name = first_of(error, ContextKind::InvalidSubcommand);
    if let Some(at) = words.iter().position(|word| *word == name)
        && unknown_words::is_url_behind(words, at)
    {
        let mut line = words.to_vec();
        "load".clone_into(&mut line[at]);
        if is_understood(&line) {
            return to_type(format!("there is no command '{name}': type "), shown(&line));
        }
    }
    Mistake::Flags(sentence(error, whole, whole))
}

/// What these words behind `longtail` ask for.
///
/// # Errors
/// What is wrong with them.
fn understood_line(words: &[String]) -> Result<Invocation, Mistake> {
    let typed = std::iter::once("longtail").chain(words.iter().map(String::as_str));
    understood(typed.map(OsString::from).collect())
}

/// Whether longtail takes these words.
fn is_understood(words: &[String]) -> bool {
    understood_line(words).is_ok()
}

/// What to say of flags without a command and without a URL. Only flags that are none but Puma's
/// are those of a sweep, which starts a server; else a load is meant.
fn flags_alone(whole: &clap::Command, words: &[String]) -> Option<Mistake> {
    let sweep = [&["sweep".to_owned()], words].concat();
    if are_pumas(words) && is_understood(&sweep) {
        return Some(to_type("a command is missing: type ", shown(&sweep)));
    }
    let missing = "a command and a URL are missing";
    let with_url = [words, &[URL.to_owned()]].concat();
    let load = [&["load".to_owned()], &with_url[..]].concat();
    if is_understood(&load) {
        return Some(to_type(format!("{missing}: type "), shown(&load)));
    }
    let readings = match command_lines::reading_of_owner(whole, &with_url) {
        Some(reading) => vec![reading],
        None => command_lines::readings(whole, &with_url),
    };
    let line = command_lines::say_readings(&readings, shown)?;
    Some(Mistake::ToType(line.after(&format!("{missing}: "))))
}

/// Whether flags are Puma's, and of no load tool: `-t5:5`, or `-w2` without connections.
fn are_pumas(words: &[String]) -> bool {
    let begins = |flag: &str| words.iter().any(|word| word.starts_with(flag));
    let is_threads = |word: &String| {
        let range = word.strip_prefix("-t").unwrap_or(word);
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        range.split_once(':').is_some_and(|(least, most)| is_number(least) && is_number(most))
    };
    words.iter().any(is_threads) || begins("-w") && !begins("-c")
}

/// Words before a tool's name that only say that it is to run.
const RUN_IT: [&str; 10] =
    ["load", "attack", "sweep", "capacity", "run", "exec", "bench", "benchmark", "test", "start"];

/// What to say of `longtail load wrk -t2 URL`: another tool's line behind a command.
fn tool_behind_command(whole: &clap::Command, words: &[String]) -> Option<Mistake> {
    if let [command, run, script @ ..] = words
        && ["load", "attack"].contains(&command.as_str())
        && run == "run"
        && command_lines::are_k6s(script)
    {
        let tool = OtherTool::of("k6")?;
        return Some(pasted(command_lines::answer(whole, tool, &[], &words[1..])));
    }
    if let [command, attack, flags @ ..] = words
        && command == "load"
        && attack == "attack"
        && command_lines::are_vegetas(flags)
    {
        let tool = OtherTool::of("vegeta")?;
        return Some(pasted(command_lines::answer(whole, tool, &[], &words[1..])));
    }
    let at = words.iter().position(|word| OtherTool::of(word).is_some())?;
    let tool = OtherTool::of(&words[at])?;
    let command_at = at.checked_sub(1)?;
    let command = &words[command_at];
    if command == "help" {
        let asked = ["--help".to_owned()];
        return Some(pasted(command_lines::answer(whole, tool, &[], &asked)));
    }
    if !RUN_IT.contains(&command.as_str()) {
        return None;
    }
    Some(pasted(command_lines::answer(whole, tool, &words[..command_at], &words[at + 1..])))
}

/// What to say of `longtail attack` with vegeta's flags, not those of `attack.cr`.
fn vegetas_attack(
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
) -> Option<Mistake> {
    let tool = OtherTool::of("vegeta").filter(|_| command.get_name() == "attack")?;
    let at = words.iter().position(|word| word == "attack")?;
    let theirs = &words[at + 1..];
    if !command_lines::are_vegetas(theirs) {
        return None;
    }
    Some(pasted(command_lines::answer(whole, tool, &words[..at], theirs)))
}

/// What to say of `longtail report` with flags of `vegeta report`.
fn vegetas_report(command: &clap::Command, words: &[String]) -> Option<Mistake> {
    let at = words.iter().position(|word| word == "report")?;
    let theirs = &words[at + 1..];
    if command.get_name() != "report" || !command_lines::are_vegetas_report(theirs) {
        return None;
    }
    let meant = command_lines::of_vegetas_result("report", theirs);
    Some(wrong(format!("these are flags of vegeta report: {meant}")))
}

/// What to say where flags stand before the command.
fn command_in_front(command: &str, words: &[String]) -> Option<Mistake> {
    let at = words.iter().position(|word| word == command).filter(|at| *at > 0)?;
    let line: Vec<String> = [&words[at..=at], &words[..at], &words[at + 1..]].concat();
    is_understood(&line).then(|| to_type("flags go after the command: type ", shown(&line)))
}

/// What to say where the words are a command line of another tool: typed as they are (`longtail wrk
/// -t4 URL`), or after `load --as wrk --`.
fn of_other_tool(
    error: &clap::Error,
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
) -> Option<Mistake> {
    let answer = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = first_of(error, ContextKind::InvalidSubcommand);
            let at = words.iter().position(|word| *word == name)?;
            if ["plot", "encode", "dump"].contains(&name.as_str()) && words.len() > at + 1 {
                let meant = command_lines::of_vegetas_result(&name, &words[at + 1..]);
                return Some(wrong(format!("there is no command '{name}': {meant}")));
            }
            let is_k6s_run = name == "run" && command_lines::are_k6s(&words[at + 1..]);
            let tool = OtherTool::of(if is_k6s_run { "k6" } else { &name })?;
            let theirs = &words[if is_k6s_run { at } else { at + 1 }..];
            command_lines::answer(whole, tool, &words[..at], theirs)
        }
        ErrorKind::UnknownArgument if command.get_name() == "load" => {
            let flag = first_of(error, ContextKind::InvalidArg);
            command_lines::after_as(whole, &flag, words)?
        }
        _ => return None,
    };
    Some(pasted(answer))
}

/// The lines to paste, if they are understood, or what is wrong with them.
fn pasted(answer: Result<Vec<command_lines::PastedLine>, Mistake>) -> Mistake {
    let answered = match answer {
        Ok(lines) => lines,
        Err(mistake) => return mistake,
    };
    let mut lines = Vec::new();
    for line in answered {
        if let Err(mistake) = understood_line(&command_lines::with_values(&line.words)) {
            return mistake;
        }
        let separator = if lines.is_empty() { "" } else { "; " };
        let purpose = match &*line.purpose {
            "" => String::new(),
            purpose => format!("{purpose}, type "),
        };
        let before = separator.to_owned() + &purpose;
        let piped = line.piped.map(|command| format!("{command} | ")).unwrap_or_default();
        let shown = piped + &shown(&line.words);
        lines.push(LineToType { before, line: shown, notes: line.notes });
    }
    Mistake::ToType(LinesToType { lines, rest: String::new() })
}

/// The word that made clap show the help or the version though nobody asks for it: -h or -V with
/// something else in the same word. It may be another tool's flag, such as `-h2`.
fn glued_to_help<'w>(
    kind: ErrorKind,
    command: &clap::Command,
    words: &'w [String],
) -> Option<&'w str> {
    let (letter, asked): (char, &[&str]) = match kind {
        ErrorKind::DisplayHelp => ('h', &["-h", "--help", "help"]),
        ErrorKind::DisplayVersion => ('V', &["-V", "--version"]),
        _ => return None,
    };
    let ours = || words.iter().map(String::as_str).take_while(|word| *word != "--");
    let is_switch = |short: char| {
        let mut arguments = command.get_arguments();
        arguments.any(|arg| arg.get_short() == Some(short) && !arg.get_action().takes_values())
    };
    // Up to the letter, each must be a flag without a value: else it is part of one.
    let is_glued = |word: &&str| {
        let mut shorts = word.strip_prefix('-').unwrap_or_default().chars();
        shorts.find(|short| *short == letter || !is_switch(*short)) == Some(letter)
    };
    if ours().any(|word| asked.contains(&word)) { None } else { ours().find(is_glued) }
}

/// A comparison that was typed as another command.
fn parse_short_form(words: Vec<String>, typed: Vec<String>) -> Result<Invocation, Mistake> {
    let words = std::iter::once("longtail".to_owned()).chain(words).map(OsString::from);
    let mut invocation = understood(words.collect())?;
    if let Invocation::Command(Command::Compare(args), _) = &mut invocation {
        args.typed = Some(typed);
    }
    Ok(invocation)
}

/// The flags of a load, from the words behind `longtail load`.
///
/// # Errors
/// As [`parse`].
pub(crate) fn load_words(words: Vec<String>) -> Result<LoadArgs, Mistake> {
    let start = ["longtail", "load"].map(OsString::from);
    match parse(start.into_iter().chain(words.into_iter().map(OsString::from)))? {
        Invocation::Command(Command::Load(args), _) => Ok(*args),
        _ => Err(wrong("these words are no load")),
    }
}

/// What Rust's own parsers say, in plain words.
const PLAINER: [(&str, &str); 6] = [
    ("invalid digit found in string", "type a whole number"),
    ("number too large to fit in target type", "that is too large"),
    ("cannot parse float from empty string", "type a number"),
    ("invalid float literal", "type a number"),
    ("invalid IP address syntax", "type an IP address"),
    ("is not in 1..18446744073709551615", "is less than 1"),
];

/// clap's complaint as one line: what is wrong, and what to type.
fn sentence(error: &clap::Error, whole: &clap::Command, command: &clap::Command) -> String {
    let found = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    };
    let context = |kind| found(kind).join(" and ");
    let suggested = |kind| found(kind).into_iter().next();
    let name = command.get_name();
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let flag = context(ContextKind::InvalidArg);
            format!("{name} has no {flag}: longtail --help lists the commands")
        }
        ErrorKind::InvalidSubcommand => {
            let typed = context(ContextKind::InvalidSubcommand);
            let ours = suggested(ContextKind::SuggestedSubcommand);
            if command.has_subcommands() && name != whole.get_name() {
                let meant = ours.map(|ours| format!("did you mean longtail {name} {ours}?"));
                let meant = meant.unwrap_or_else(|| format!("longtail {name} -h lists them"));
                return format!("{name} has no command '{typed}': {meant}");
            }
            let is_shown = |ours: &String| {
                whole.find_subcommand(ours).is_some_and(|command| !command.is_hide_set())
            };
            let meant = synonyms::command(&typed)
                .or_else(|| Some(format!("did you mean longtail {}?", ours.filter(is_shown)?)))
                .unwrap_or_else(|| "longtail --help lists the commands".to_owned());
            format!("there is no command '{typed}': {meant}")
        }
        ErrorKind::MissingRequiredArgument => {
            format!(
                "{name} needs {}: longtail {name} -h has examples",
                context(ContextKind::InvalidArg)
            )
        }
        ErrorKind::ArgumentConflict => {
            let one = context(ContextKind::InvalidArg);
            let other = context(ContextKind::PriorArg);
            let trouble = if one == other {
                "is given twice".to_owned()
            } else {
                format!("cannot be used with {other}")
            };
            format!("{one} {trouble}: leave out one of them")
        }
        ErrorKind::TooManyValues => {
            let flag = context(ContextKind::InvalidArg);
            let value = context(ContextKind::InvalidValue);
            format!("{flag} takes no value: leave out '{value}'")
        }
        _ => plain(&error.to_string()),
    }
}

/// The first paragraph of what clap says, on one line.
fn plain(text: &str) -> String {
    let first = text
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ");
    let mut first = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    for (theirs, ours) in PLAINER {
        first = first.replace(theirs, ours);
    }
    if let Some((said, range)) = first.split_once(" is not in ")
        && let Some((low, high)) = range.split_once("..=")
    {
        first = format!("{said} is not from {low} to {high}");
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_has_commands_names_them() {
        let Ok(Invocation::Usage(said)) = parse(["longtail", "fleet"].map(OsString::from)) else {
            panic!("no command")
        };
        assert!(said.contains("longtail fleet") && said.contains("provision"), "{said}");
    }

    /// What longtail says to type in place of these words, as words.
    fn told(words: &[String]) -> Vec<Vec<String>> {
        let typed = std::iter::once("longtail".to_owned()).chain(words.iter().cloned());
        match parse(with_command(typed.map(OsString::from).collect())) {
            Err(Mistake::ToType(LinesToType { lines, .. })) => {
                lines.iter().map(|one| shlex::split(&one.line).expect("a shell reads it")).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A word of the tables; the name of a script of another tool as the path of that script.
    fn with_path_of_script(word: String) -> String {
        let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/scripts");
        let path = std::path::Path::new(scripts).join(&word);
        if path.is_file() { path.display().to_string() } else { word }
    }

    #[test]
    fn what_is_told_to_type_is_accepted() {
        let tables = [
            include_str!("../../tests/cli/signposts.txt"),
            include_str!("../../tests/cli/mistakes.txt"),
        ];
        let rows = tables.iter().flat_map(|table| table.lines());
        let rows =
            rows.filter_map(|row| row.split_once(" =>")).filter(|(row, _)| !row.starts_with('#'));
        let mut count = 0;
        let mut refused = Vec::new();
        for (row, _) in rows {
            let words = shlex::split(&row.replace("{url}", "http://127.0.0.1:1/"));
            let words: Vec<String> =
                words.unwrap_or_default().into_iter().map(with_path_of_script).collect();
            for line in told(&words) {
                if line.iter().any(|word| word.contains(model::secret::SECRET)) {
                    continue;
                }
                // `printf … | longtail …`
                let begin = line.iter().position(|word| word == "|").map_or(0, |pipe| pipe + 1);
                let pasted = command_lines::with_values(&line[begin..]).into_iter();
                if let Err(mistake) = parse(pasted.map(OsString::from)) {
                    refused.push(format!("{row}\n  {line:?}\n  {mistake}"));
                }
                count += 1;
            }
        }
        assert!(refused.is_empty(), "{}", refused.join("\n"));
        assert!(count > 300, "{count}");
    }

    #[test]
    fn a_body_is_repeated_unless_it_looks_like_a_secret() {
        let said = |line: &str| {
            let words = shlex::split(line).unwrap();
            let typed = std::iter::once("longtail".to_owned()).chain(words);
            parse(typed.map(OsString::from)).err().unwrap().to_string()
        };
        let hey = said("hey -m POST -d '{\"a\":1}' http://h/");
        assert!(hey.contains("-d '{\"a\":1}'") && !hey.contains("(secret)"), "{hey}");
        let hey = said("hey -m POST -d '{\"password\":\"hunter2\"}' http://h/");
        let missing = "-d '{\"password\":\"(secret)\"}' -c 50 --timeout 20s -n 200 -T text/html --style hey -H 'Accept-Encoding: gzip' http://h/; for (secret) put the value of password";
        assert!(hey.contains(missing) && !hey.contains("hunter2"), "{hey}");
        let hey = said("hey -a me:hunter2 -H 'X-Api-Key: hunter2' http://h/");
        let missing = "; for (secret) put USER:PASSWORD and the value of X-Api-Key, or the headers in a file: -H @FILE";
        assert!(hey.contains(missing), "{hey}");
    }

    #[test]
    fn without_a_command_all_of_them_are_named() {
        let Ok(Invocation::Usage(said)) = parse([OsString::from("longtail")]) else {
            panic!("nothing was asked for")
        };
        for command in help::whole().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(said.contains(command.get_name()), "{said}");
        }
    }
}
