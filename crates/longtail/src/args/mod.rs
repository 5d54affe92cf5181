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
mod format;
mod like;
mod limits;
mod load;
mod outlets;
mod output;
mod overhead;
mod predict;
mod probe;
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
pub(crate) use self::outlets::{OtlpUrl, OutletArgs};
pub(crate) use self::output::OutputArgs;
pub(crate) use self::overhead::OverheadArgs;
pub(crate) use self::predict::{Goal, PredictArgs, PredictLoad, ServiceWord};
pub(crate) use self::report::ReportArgs;
pub(crate) use self::sink::SinkArgs;
pub(crate) use self::sweep::SweepArgs;
pub(crate) use self::watch::WatchArgs;
use crate::mistake::Mistake;

const EXAMPLES: &str = "\
Example:
  longtail sweep -w2 -t5:5 -d0.1      a Puma of two workers x five threads, 1x to 4x more connections than that

Studies are kept in $XDG_DATA_HOME/longtail/studies (~/.local/share/longtail/studies).";

/// Finds out what a web server does when it has more requests than threads, and says whether the numbers can be trusted.
#[derive(Debug, Parser)]
#[command(name = "longtail", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
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
/// One line that names the fault and the mend.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Invocation, Mistake> {
    match Cli::command().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(Invocation::Command(cli.command)),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Ok(Invocation::Help(error.to_string()))
        }
        Err(error) => Err(Mistake::Flags(one_line(&error))),
    }
}

/// The flags of a load, of words without `longtail load`.
///
/// # Errors
/// As [`parse`].
pub(crate) fn load_words(words: Vec<String>) -> Result<LoadArgs, Mistake> {
    let start = ["longtail", "load"].map(OsString::from);
    match parse(start.into_iter().chain(words.into_iter().map(OsString::from)))? {
        Invocation::Command(Command::Load(args)) => Ok(*args),
        _ => Err(Mistake::Flags("the words after --like are no command line that can be followed".to_owned())),
    }
}

/// clap's complaint without its paragraphs.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "say what to do: longtail sweep, bodies, load, attack, sink, watch, predict, audit, doctor or report (--help explains them)"
            .to_owned();
    }
    let text = error.to_string();
    let first = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
    let first = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    let meant = match error.get(ContextKind::SuggestedArg).or_else(|| error.get(ContextKind::SuggestedValue)) {
        Some(ContextValue::String(word)) => format!("; did you mean {word}?"),
        Some(ContextValue::Strings(words)) if !words.is_empty() => format!("; did you mean {}?", words.join(" or ")),
        _ => "; --help lists what there is".to_owned(),
    };
    first + &meant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}
