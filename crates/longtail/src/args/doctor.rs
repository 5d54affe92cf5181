//! Flags of `longtail doctor`.

use audit::LoadTool;
use clap::Args;
use model::Nanos;

use super::ADVANCED;
use super::output::FormatArgs;
use super::value_parsers::{from_1_to, load_tool};

const EXAMPLES: &str = "\
Examples:
  longtail doctor                   before a study: 3 seconds, without privileges, changes nothing
  longtail doctor --generators      what wrk, hey, ... and longtail can reach here: 1 s each, 3 rounds
  longtail doctor --generators -c 10 --for 5s --tools wrk,hey
  longtail doctor --self-test       is longtail itself accurate here? half a minute; --quick: 5 s

Exit code: 1 if the machine is not fit, or a count of the self-test is wrong. How long anything took never decides it.";

/// Flags of `longtail doctor`.
#[expect(clippy::struct_excessive_bools, reason = "each switch is a flag")]
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Run every load generator on PATH against one test server: rate, cost, claims
    #[arg(long, conflicts_with = "self_test")]
    pub(crate) generators: bool,
    /// Measure longtail's own error, against test servers with known figures
    #[arg(long)]
    pub(crate) self_test: bool,
    /// Also list the checks that passed
    #[arg(long, conflicts_with_all = ["generators", "self_test"])]
    pub(crate) full: bool,
    /// Print what a bug report needs, without secrets
    #[arg(long, conflicts_with_all = ["generators", "self_test", "full", "json"])]
    pub(crate) report: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,

    /// With --generators: connections of each [default: 50]
    #[arg(short, long, value_name = "N", help_heading = ADVANCED, value_parser = from_1_to(10_000))]
    pub(crate) connections: Option<u32>,
    /// With --generators: length of each run in whole seconds [default: 1s]
    #[arg(short = 'z', long = "for", value_name = "TIME", help_heading = ADVANCED)]
    pub(crate) length: Option<Nanos>,
    /// With --generators: rounds; each generator runs once in each [default: 3]
    #[arg(long, value_name = "N", help_heading = ADVANCED, value_parser = from_1_to(1000))]
    pub(crate) rounds: Option<u32>,
    /// With --generators: which ones, besides longtail [default: all on PATH]
    #[arg(long, value_parser = load_tool(), value_name = "LIST", value_delimiter = ',', help_heading = ADVANCED)]
    pub(crate) tools: Vec<LoadTool>,
    /// With --self-test: shorter runs
    #[arg(long, help_heading = ADVANCED)]
    pub(crate) quick: bool,
}

/// A command that is `doctor` with this flag.
pub(crate) fn as_flag(command: clap::Command, flag: &str) -> clap::Command {
    command.mut_arg(flag, |arg| arg.default_value("true"))
}
