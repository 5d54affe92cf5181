//! Flags of `longtail doctor`: the machine, the load generators on it (the command `calibrate` before), and longtail's own
//! error (the command `selftest` before).

use clap::{Args, ValueEnum as _};
use model::Nanos;

use super::ADVANCED;
use super::limits::from_1_to;
use super::output::FormatArgs;
use crate::generators::{Generator, LoadOrder};
use crate::mistake::{Mistake, wrong};

const EXAMPLES: &str = "\
Examples:
  longtail doctor                   before a study: 3 seconds, without privileges, changes nothing
  longtail doctor --generators      what wrk, hey, ... and longtail can reach here: 1 s each, 3 rounds
  longtail doctor --generators -c 10 --for 5s --tools wrk,hey
  longtail doctor --self-test       is longtail itself right here? half a minute; --quick: 5 s

Exit code: 1 where the machine is not fit, or a count of the self-test is wrong; never because of a time.";

/// Flags of `longtail doctor`.
#[expect(clippy::struct_excessive_bools, reason = "each switch is a flag")]
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Run every load generator on PATH against one test server: rate, cost, claims
    #[arg(long, conflicts_with = "self_test")]
    generators: bool,
    /// Measure longtail's own error, against test servers with known figures
    #[arg(long)]
    self_test: bool,
    /// List what is fine too
    #[arg(long, conflicts_with_all = ["generators", "self_test"])]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,

    /// With --generators: connections of each [default: 50]
    #[arg(short, long, value_name = "N", help_heading = ADVANCED, value_parser = from_1_to(10_000))]
    connections: Option<u32>,
    /// With --generators: length of each run in whole seconds [default: 1s]
    #[arg(short = 'z', long = "for", value_name = "TIME", help_heading = ADVANCED)]
    length: Option<Nanos>,
    /// With --generators: rounds; each generator runs once in each [default: 3]
    #[arg(long, value_name = "N", help_heading = ADVANCED, value_parser = from_1_to(1000))]
    rounds: Option<u32>,
    /// With --generators: which, beside longtail [default: all that are on PATH]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', help_heading = ADVANCED)]
    tools: Vec<Generator>,
    /// With --self-test: shorter runs
    #[arg(long, help_heading = ADVANCED)]
    pub(crate) quick: bool,
}

/// What is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Examination {
    /// Whether the machine is fit to measure on.
    Machine,
    /// What each load generator reaches.
    Generators,
    /// How far off longtail is.
    Longtail,
}

impl DoctorArgs {
    /// What is examined.
    ///
    /// # Errors
    /// Where a flag says something about another examination.
    pub(crate) fn examination(&self) -> Result<Examination, Mistake> {
        let is_of_generators =
            self.connections.is_some() || self.length.is_some() || self.rounds.is_some() || !self.tools.is_empty();
        if is_of_generators && !self.generators {
            return Err(wrong("-c, --for, --rounds and --tools belong to doctor --generators: add it"));
        }
        if self.quick && !self.self_test {
            return Err(wrong("--quick belongs to doctor --self-test: add it"));
        }
        Ok(match (self.generators, self.self_test) {
            (true, _) => Examination::Generators,
            (_, true) => Examination::Longtail,
            _ => Examination::Machine,
        })
    }

    /// What each generator is asked to do.
    ///
    /// # Errors
    /// Where the time is one that not every generator can be asked for.
    pub(crate) fn order(&self) -> Result<LoadOrder, Mistake> {
        let length = self.length.unwrap_or(Nanos::from_secs(1));
        if length == Nanos::ZERO || !length.0.is_multiple_of(1_000_000_000) {
            return Err(wrong(format!(
                "--for {length}: not every generator can do that; give whole seconds, such as 1s"
            )));
        }
        Ok(LoadOrder { time: Some(length), ..LoadOrder::closed_loop("", self.connections.unwrap_or(50), 1) })
    }

    /// In how many rounds.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(3)
    }

    /// longtail itself, and the others that are wanted: all where none is named.
    pub(crate) fn generators(&self) -> Vec<Generator> {
        let wanted = |one: &Generator| *one == Generator::Longtail || self.tools.is_empty() || self.tools.contains(one);
        Generator::value_variants().iter().copied().filter(wanted).collect()
    }
}

/// A command that is `doctor` with this flag.
pub(super) fn as_flag(command: clap::Command, flag: &str) -> clap::Command {
    command.mut_arg(flag, |arg| arg.default_value("true"))
}
