//! The command line: which commands there are, what the words on it ask for, and what is said of a
//! mistake. Each command is a file here, with its flags and what it does (small ones that belong
//! together share one); flags that several have are in `args`.
//!
//! Puma's own words (`-w2 -t5:5 -R100 -d0.2 -k`) stand beside full names. A mistake is one line.

mod compare;
mod conducted;
mod doctor;
#[cfg(test)]
mod documents_tests;
mod fleet;
mod generate;
mod help;
mod init;
mod load;
mod predict;
mod report;
mod sink;
mod sweep;
mod watch;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{FromArgMatches as _, Parser, Subcommand};
use engine::Resolver;
use model::AllowedNetworks;

use self::compare::CompareArgs;
use self::doctor::DoctorArgs;
use self::fleet::FleetArgs;
use self::generate::{GenerateArgs, MergeArgs};
use self::help::GenerateDocsArgs;
use self::predict::PredictArgs;
use self::report::{AuditArgs, ReportArgs};
use self::sink::SinkArgs;
use self::sweep::SweepArgs;
use self::watch::WatchArgs;
use crate::args::other_lines::{self, KnownLines};
use crate::args::{ADVANCED, LoadArgs, others};
use crate::exit::{Exit, Mistake, wrong};
use crate::secrets::{self, MaskedWords};
use crate::ui;

/// How long do requests wait when a web server is busy, and can you trust the number?
#[expect(clippy::doc_markdown, reason = "these lines are the help, shown as they are")]
#[derive(Debug, Parser)]
#[command(name = "longtail", version, max_term_width = help::WIDTH)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Connect only to these networks, such as 127.0.0.0/8,::1/128, and to a server that longtail
    /// itself starts
    #[arg(long, global = true, env = "LONGTAIL_ALLOW_NET", hide_env_values = true, value_name = "CIDR,…",
          help_heading = ADVANCED)]
    allow_net: Option<AllowedNetworks>,
    /// Colour: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = ADVANCED)]
    color: clap::ColorChoice,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a server, raise the load step by step, and show when requests start to wait
    Sweep(Box<SweepArgs>),
    /// Load a server that is already running: closed loop, or open loop with --rate
    Load(Box<LoadArgs>),
    /// Watch a running server without sending anything: who waits, which threads are busy
    Watch(Box<WatchArgs>),
    /// Two or more ways to run a server: is there a difference, or is it noise?
    Compare(Box<CompareArgs>),
    /// Show a saved result again
    Report(ReportArgs),
    /// What queueing theory says: rate, waiting time, number of threads
    Predict(PredictArgs),
    /// Is this machine fit to measure on?
    Doctor(DoctorArgs),
    /// Check numbers published by wrk, hey, ab, ...: are they even possible?
    Audit(AuditArgs),
    /// Server and load generators on machines of their own, by Ansible
    Fleet(FleetArgs),
    /// Write bin/longtail into a Ruby app, and show the lines for its Gemfile and CI
    #[command(after_help = "\
Examples:
  longtail init        in the app's folder; a file that is there stays as it is")]
    Init,
    /// A test server with known delays and faults
    Sink(Box<SinkArgs>),
    /// sweep --bodies
    #[command(hide = true)]
    Bodies(Box<SweepArgs>),
    /// Open loop at a target throughput, one line a request
    #[command(hide = true)]
    Attack(Box<LoadArgs>),
    /// doctor --generators
    #[command(hide = true)]
    Calibrate(DoctorArgs),
    /// doctor --self-test
    #[command(hide = true)]
    Selftest(DoctorArgs),
    /// (started by --from on another machine; or with -- and the words of a load: one part of it,
    /// into a file)
    #[command(hide = true)]
    Generate(Box<GenerateArgs>),
    /// One result of the parts that several generators wrote
    #[command(hide = true)]
    Merge(MergeArgs),
    /// Write man pages and completions (make install)
    #[command(hide = true)]
    GenerateDocs(GenerateDocsArgs),
}

impl Command {
    /// Does it. `resolver` finds the addresses that the user names, and knows where connections may
    /// go.
    ///
    /// # Errors
    /// What the user can mend, as one line.
    pub(crate) fn run(self, resolver: Resolver) -> Result<Exit, Mistake> {
        match self {
            Command::Sweep(args) | Command::Bodies(args) => sweep::run(&args, resolver),
            Command::Load(args) => load::run(&args, resolver),
            Command::Attack(args) => load::attack(&args, resolver),
            Command::Sink(args) => sink::run(&args),
            Command::Watch(args) => watch::run(&args, &resolver),
            Command::Predict(args) => predict::run(&args),
            Command::Audit(args) => report::audit(&args),
            Command::Doctor(args) | Command::Calibrate(args) | Command::Selftest(args) => {
                doctor::run(&args)
            }
            Command::Compare(args) => compare::run(&args, resolver),
            Command::Report(args) => report::run(&args),
            Command::Fleet(args) => fleet::run(&args),
            Command::Init => init::run(),
            Command::Generate(args) => generate::run(&args, resolver),
            Command::Merge(args) => generate::merge(&args),
            Command::GenerateDocs(args) => help::generate_docs(&args),
        }
    }
}

/// What the words on the command line ask for.
pub(crate) enum Invocation {
    /// Do this, and connect only to these networks.
    Command(Command, Option<AllowedNetworks>),
    /// Print this help or version.
    Help(String),
    /// No command was given: print this on stderr.
    Usage(String),
}

/// Understands the command line.
///
/// # Errors
/// One line that says what is wrong and what to type.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Invocation, Mistake> {
    let words: Vec<OsString> = words.into_iter().collect();
    let typed: Vec<String> =
        words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    secrets::refuse_placeholder(&typed)?;
    let mistake = match understood(words) {
        Ok(invocation) => return Ok(invocation),
        Err(mistake) => mistake,
    };
    // A mistake is said of the words without their secrets, which as a rule is the same mistake.
    let masked = MaskedWords::of(&definition(), &typed);
    let said = std::iter::once("longtail").chain(masked.words.iter().map(String::as_str));
    match understood(said.map(OsString::from).collect()) {
        Err(same) => Err(same),
        Ok(_) => Err(wrong(masked.without_secrets(&mistake.to_string()))),
    }
}

fn understood(words: Vec<OsString>) -> Result<Invocation, Mistake> {
    let texts: Vec<String> =
        words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(comparison) = compare::as_comparison(&texts)? {
        return parse_short_form(comparison, texts);
    }
    if texts == ["help", "words"] {
        return Ok(Invocation::Help(help::words()));
    }
    let is_named = |name: &str| texts.iter().any(|word| word == name);
    let defined = || help::whole_for(ui::terminal_width(), is_named);
    let mut parser = defined();
    if let Some(command) = texts.iter().find_map(|word| parser.find_subcommand(word)) {
        others::check(command, &texts)?;
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

/// What words ask for that clap doesn't take as a command: help, the version, or nothing; or what
/// is wrong with them.
fn explained(
    error: &clap::Error,
    whole: &clap::Command,
    texts: &[String],
) -> Result<Invocation, Mistake> {
    let command = texts.iter().find_map(|word| whole.find_subcommand(word));
    if let Some(word) = glued_to_help(error.kind(), command.unwrap_or(whole), texts) {
        let command = command.unwrap_or(whole);
        let meant = others::flag(whole, command, word, texts).unwrap_or_else(|| {
            "-h alone is the help, and -V alone the version: leave out the rest".to_owned()
        });
        return Err(wrong(format!("{} has no {word}: {meant}", command.get_name())));
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
            let command = command.unwrap_or(whole);
            Err(match of_other_tool(error, whole, command, texts) {
                Some(answer) => answer,
                None => Mistake::Flags(sentence(error, whole, command, texts)),
            })
        }
    }
}

/// What to say where the words are a command line of hey or wrk: typed as they are (`longtail wrk
/// -t4 URL`), or after `load --as wrk --`.
fn of_other_tool(
    error: &clap::Error,
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
) -> Option<Mistake> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => word.as_str(),
        _ => "",
    };
    let answer = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = context(ContextKind::InvalidSubcommand);
            let lines = KnownLines::of(name)?;
            let at = words.iter().position(|word| word == name)?;
            let refusal = format!("there is no command '{name}'");
            other_lines::answer(whole, lines, &refusal, &words[..at], &words[at + 1..])
        }
        ErrorKind::UnknownArgument if command.get_name() == "load" => {
            let flag = context(ContextKind::InvalidArg);
            other_lines::after_as(whole, flag, words)?
        }
        _ => return None,
    };
    Some(match answer {
        Ok(line) => {
            let typed = std::iter::once("longtail").chain(line.words.iter().map(String::as_str));
            match understood(typed.map(OsString::from).collect()) {
                Ok(_) => Mistake::Flags(format!(
                    "{}: type {}",
                    line.refusal,
                    &*secrets::line(&line.words)
                )),
                Err(mistake) => mistake,
            }
        }
        Err(mistake) => mistake,
    })
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

/// All commands and flags, without the layout of their help.
pub(crate) fn definition() -> clap::Command {
    help::whole_for(::report::Width::ANY, |_| false)
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

/// The flags of a load, of words without `longtail load`.
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

/// clap's complaint about `words` as one line: what is wrong, and what to type.
fn sentence(
    error: &clap::Error,
    whole: &clap::Command,
    command: &clap::Command,
    words: &[String],
) -> String {
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
            let meant = others::flag(whole, command, &flag, words)
                .or_else(|| others::spelling(command, &suggested(ContextKind::SuggestedArg)?))
                .unwrap_or_else(|| format!("longtail {name} -h lists the flags"));
            format!("{name} has no {flag}: {meant}")
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
            let meant = others::command(&typed)
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
    if let Some((said, (low, high))) =
        first.split_once(" is not in ").and_then(|(said, all)| Some((said, all.split_once("..=")?)))
    {
        first = format!("{said} is not from {low} to {high}");
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        help::whole().debug_assert();
    }

    #[test]
    fn a_command_that_has_commands_names_them() {
        let Ok(Invocation::Usage(said)) = parse(["longtail", "fleet"].map(OsString::from)) else {
            panic!("no command")
        };
        assert!(said.contains("longtail fleet") && said.contains("provision"), "{said}");
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
