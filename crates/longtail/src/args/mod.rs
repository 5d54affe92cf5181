//! Every flag of every command, a file a command; here the commands themselves, and what a mistake is told as.
//!
//! Puma's own words (`-w2 -t5:5 -R100 -d0.2 -k`) stand beside full names. A mistake is one line.

mod attack;
mod audit;
mod bodies;
mod builtin_server;
mod calibrate;
mod conduct;
mod doctor;
pub(crate) mod environment;
mod examples;
mod format;
mod inspect;
mod like;
mod limits;
mod load;
mod outlets;
pub(crate) mod output;
mod overhead;
mod predict;
mod report;
mod server;
mod sink;
mod sweep;
pub(crate) mod timestamps;
pub(crate) mod watch;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub(crate) use self::attack::AttackArgs;
pub(crate) use self::audit::AuditArgs;
pub(crate) use self::bodies::BodiesArgs;
pub(crate) use self::builtin_server::BuiltinServerArgs;
pub(crate) use self::calibrate::{CalibrateArgs, SelftestArgs};
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::load::LoadArgs;
pub(crate) use self::outlets::{HostPort, OtlpUrl, OutletArgs};
pub(crate) use self::output::OutputArgs;
pub(crate) use self::overhead::OverheadArgs;
pub(crate) use self::predict::{Goal, PredictArgs, PredictLoad, ServiceWord};
pub(crate) use self::report::ReportArgs;
pub(crate) use self::sink::SinkArgs;
pub(crate) use self::sweep::SweepArgs;
pub(crate) use self::watch::WatchArgs;
use crate::mistake::Mistake;
use crate::ui;
use model::AllowedNetworks;

const EXAMPLES: &str = "\
Example:
  longtail sweep -w2 -t5:5 -d0.1      a Puma of two workers x five threads, 1x to 4x more connections than that

Studies are kept in $XDG_DATA_HOME/longtail/studies (~/.local/share/longtail/studies).";

/// Finds out what a web server does when it has more requests than threads, and says whether the numbers can be trusted.
#[derive(Debug, Parser)]
#[command(name = "longtail", version, max_term_width = examples::WIDTH, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[expect(clippy::doc_markdown, reason = "these lines are the help, shown as they are")]
    /// Connect only to these networks, such as 127.0.0.0/8,::1/128, and refuse all else before anything is sent; a server that
    /// longtail itself starts is always allowed [default: anywhere]
    #[arg(
        long,
        global = true,
        env = "LONGTAIL_ALLOW_NET",
        hide_env_values = true,
        value_name = "CIDR,…",
        help_heading = "Network"
    )]
    allow_net: Option<AllowedNetworks>,
    /// Colour: auto is where a terminal has it, and NO_COLOR is not set
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        help_heading = "Output",
        hide_possible_values = true
    )]
    color: clap::ColorChoice,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a server, drive it past its slots, and print the long-tail table
    Sweep(Box<SweepArgs>),
    /// Start a server, and print what each type and size of answer costs over each kind of socket
    Bodies(Box<BodiesArgs>),
    /// Generate load, closed or open loop, and print a report that can be trusted
    Load(Box<LoadArgs>),
    /// Open loop at a target throughput, one line a request
    Attack(AttackArgs),
    /// Serve any URL at once, or by laws: a load sink whose right answers are known
    Sink(Box<SinkArgs>),
    /// Look at a server that runs already: queues, busy slots, each worker's share, live
    Watch(Box<WatchArgs>),
    /// Tell what queueing theory says: rate, waits, and the highest rate for an objective
    Predict(PredictArgs),
    /// Check another tool's published output: is it even possible?
    Audit(AuditArgs),
    /// Tell whether this machine is fit to measure on
    Doctor(DoctorArgs),
    /// Hold the load generators of this machine side by side: rate, cost, and what they claim
    Calibrate(CalibrateArgs),
    /// Measure what instruments cost: probes, stamps, an app's own statistics
    Overhead(Box<OverheadArgs>),
    /// Tell how far off longtail itself is, against servers whose right answers are known
    Selftest(SelftestArgs),
    /// Print a saved study again
    Report(ReportArgs),
    /// (started by sweep --server builtin)
    #[command(hide = true)]
    BuiltinServer(BuiltinServerArgs),
}

/// What the words on the command line ask for.
pub(crate) enum Invocation {
    /// Do this.
    Command(Command),
    /// Print this help or version.
    Help(String),
}

/// Understands the command line.
///
/// # Errors
/// One line that names the fault and the fix.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Invocation, Mistake> {
    parse_all(words).map(|(invocation, _)| invocation)
}

/// As [`parse`], and which networks may be connected to.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_all(
    words: impl IntoIterator<Item = OsString>,
) -> Result<(Invocation, Option<AllowedNetworks>), Mistake> {
    match command().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            ui::choose_color(cli.color);
            Ok((Invocation::Command(cli.command), cli.allow_net))
        }
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Ok((Invocation::Help(error.to_string()), None))
        }
        Err(error) => Err(Mistake::Flags(one_line(&error))),
    }
}

/// All commands, with the texts below their flags laid out.
fn command() -> clap::Command {
    let laid_out = |command: clap::Command| match command.get_after_help() {
        Some(text) => {
            let text = examples::laid_out(&text.to_string());
            command.after_help(text)
        }
        None => command,
    };
    let mut whole = laid_out(Cli::command());
    let names: Vec<String> = whole.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        whole = whole.mut_subcommand(name, laid_out);
    }
    whole
}

/// The flags of a load, of words without `longtail load`.
///
/// # Errors
/// As [`parse`].
pub(crate) fn load_words(words: Vec<String>) -> Result<LoadArgs, Mistake> {
    let start = ["longtail", "load"].map(OsString::from);
    match parse(start.into_iter().chain(words.into_iter().map(OsString::from)))? {
        Invocation::Command(Command::Load(args)) => Ok(*args),
        _ => Err(Mistake::Flags("the words after --as are no command line that can be followed".to_owned())),
    }
}

/// What Rust's own parsers say, in plain words.
const PLAINER: [(&str, &str); 6] = [
    ("invalid digit found in string", "it is no whole number"),
    ("number too large to fit in target type", "it is too large a number"),
    ("cannot parse float from empty string", "it is no number"),
    ("invalid float literal", "it is no number"),
    ("invalid IP address syntax", "it is no IP address"),
    ("is not in 1..18446744073709551615", "is less than 1"),
];

/// clap's complaint without its paragraphs.
fn one_line(error: &clap::Error) -> String {
    if matches!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand) {
        let all = Cli::command();
        let names: Vec<&str> =
            all.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name).collect();
        return format!("say what to do: longtail {} (longtail --help explains them)", either(&names));
    }
    let text = error.to_string();
    let first = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
    let mut first = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    for (theirs, ours) in PLAINER {
        first = first.replace(theirs, ours);
    }
    let meant = match error.get(ContextKind::SuggestedArg).or_else(|| error.get(ContextKind::SuggestedValue)) {
        Some(ContextValue::String(word)) => format!("; did you mean {word}?"),
        Some(ContextValue::Strings(words)) if !words.is_empty() => format!("; did you mean {}?", words.join(" or ")),
        _ => "; --help lists what there is".to_owned(),
    };
    first + &meant
}

/// `a, b or c`.
fn either(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn an_example_of_any_help_stands_on_a_line_of_its_own() {
        let all = command();
        let words = std::iter::once(String::new())
            .chain(all.get_subcommands().filter(|it| !it.is_hide_set()).map(|it| it.get_name().to_owned()));
        for name in words.collect::<Vec<_>>() {
            let line = ["longtail", &name, "--help"].into_iter().filter(|word| !word.is_empty()).map(OsString::from);
            let Ok(Invocation::Help(help)) = parse(line) else { panic!("{name} has no help") };
            let below = help.split_once("\nExample").unwrap_or_else(|| panic!("{name} has no example")).1;
            let examples: Vec<&str> = below.lines().skip(1).take_while(|line| line.starts_with("  ")).collect();
            assert!(!examples.is_empty(), "{name}");
            for line in examples {
                assert!(line.chars().count() <= examples::WIDTH, "{name}: {line}");
                let is_command = line.starts_with("  longtail ") || line.contains("| longtail ");
                assert!(is_command || line.starts_with(examples::BELOW), "{name}: torn: {line}");
            }
        }
    }

    #[test]
    fn what_is_no_number_is_said_in_plain_words() {
        let said = |words: &str| match parse(words.split(' ').map(OsString::from)) {
            Err(mistake) => mistake.to_string(),
            Ok(_) => panic!("{words} is taken"),
        };
        assert!(said("longtail sweep -w x").contains("'x' for '--workers <N>': it is no whole number;"));
        assert!(said("longtail sweep --multiples 1,x").contains("it is no number;"));
        assert!(said("longtail sweep --multiples 1,").contains("it is no number;"));
        assert!(said("longtail sweep -w 99999999999").contains("99999999999"));
        assert!(said("longtail sweep -R 0").contains("0 is less than 1;"));
        assert!(said("longtail load --source-ip 1.2 http://127.0.0.1/").contains("it is no IP address;"));
    }

    #[test]
    fn without_a_command_all_of_them_are_named() {
        let Err(mistake) = parse([OsString::from("longtail")]) else { panic!("nothing was asked for") };
        let said = mistake.to_string();
        for command in command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(said.contains(command.get_name()), "{said}");
        }
    }
}
