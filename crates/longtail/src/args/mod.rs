//! Every flag of every command, and what they mean together.
//!
//! Puma's own words (`-w2 -t5:5 -R100 -d0.2 -k`) stand beside full names. A mistake is one line.

mod bodies;
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
mod server;
mod sink;
mod sweep;
pub(crate) mod timestamps;
pub(crate) mod watch;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use model::Nanos;

pub(crate) use self::bodies::BodiesArgs;
pub(crate) use self::calibrate::{CalibrateArgs, SelftestArgs};
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::load::{AttackArgs, LoadArgs};
pub(crate) use self::outlets::{OtlpUrl, OutletArgs};
pub(crate) use self::output::OutputArgs;
pub(crate) use self::overhead::OverheadArgs;
pub(crate) use self::predict::{Goal, PredictArgs, PredictLoad, ServiceWord};
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

const REPORT_EXAMPLES: &str = "\
Examples:
  longtail report                              the last study
  longtail report --format markdown            the last study, for a pull request
  longtail report study.json --columns puma    a kept one, in Puma's own columns

Studies are kept in $XDG_DATA_HOME/longtail/studies (~/.local/share/longtail/studies).";

/// Flags of `longtail report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// A saved study [default: the last one]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const AUDIT_EXAMPLES: &str = "\
Examples:
  longtail audit wrk.txt
  wrk -t2 -c64 -d10s --latency http://127.0.0.1:9292/ | longtail audit -
  longtail audit study.json                    a study of longtail: does every figure follow from the others?

Reads what wrk, wrk2, hey, oha, ab, h2load, bombardier and vegeta print, and the tables of Puma's scripts, and holds
their figures against each other: Little's law, what percentiles force the mean to be, counts, bytes. Of a study of longtail itself, each run is computed again.
Exit code: 1 where a claim is impossible.";

/// Flags of `longtail audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    /// The output, with whatever stands around it, or a study of longtail; - is stdin
    pub(crate) file: PathBuf,
    /// Write the claims and findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of the built-in server's process.
#[derive(Debug, Args)]
pub(crate) struct BuiltinServerArgs {
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    #[arg(long)]
    pub(crate) workers: u32,
    #[arg(long)]
    pub(crate) threads: u32,
    #[arg(long)]
    pub(crate) delay: Nanos,
    #[arg(long)]
    pub(crate) worker_header: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}
