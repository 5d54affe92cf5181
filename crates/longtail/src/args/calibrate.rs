//! Flags of `longtail calibrate` and `longtail selftest`.

use clap::{Args, ValueEnum as _};
use model::Nanos;

use super::format::FormatArgs;
use crate::generators::{Generator, LoadEnd, LoadOrder};
use crate::mistake::{Mistake, wrong};

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  longtail calibrate                        every generator on PATH against the load sink, 1 s each, 3 rounds
  longtail calibrate -c 10 --for 5s --tools wrk,hey
  longtail calibrate --json

Each drives the same sink, with equal connections and time, on one thread where it lets one choose. What it reaches is
the most that it can ever measure on this machine: a server that is faster is not what a table of it shows.";

/// Flags of `longtail calibrate`.
#[derive(Debug, Args)]
#[command(after_help = CALIBRATE_EXAMPLES)]
pub(crate) struct CalibrateArgs {
    /// Connections of each generator
    #[arg(short, long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Length of each run, in whole seconds: some generators know no other
    #[arg(short = 'z', long = "for", value_name = "TIME", default_value = "1s")]
    length: Nanos,
    /// Rounds, in each of which every generator runs once; every other one in the opposite order
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Other generators to run [default: all of them that are on PATH]
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    tools: Vec<Generator>,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// Flags of `longtail selftest`.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = SELFTEST_EXAMPLES)]
pub(crate) struct SelftestArgs {
    /// Shorter runs: under 5 s in all
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

const SELFTEST_EXAMPLES: &str = "\
Examples:
  longtail selftest            under half a minute
  longtail selftest --quick    under 5 s

Runs the load generator against servers inside this program that answer by a law, so that the right figures are known,
and prints how far off it is on this machine.
Exit code: 1 where a count is wrong or a request, a byte or a connection is in only one of the two ledgers; never
because of a time.";

impl CalibrateArgs {
    /// What each generator is asked to do.
    ///
    /// # Errors
    /// Where the time is one that not every generator can be asked for.
    pub(crate) fn order(&self) -> Result<LoadOrder, Mistake> {
        if self.length == Nanos::ZERO || !self.length.0.is_multiple_of(1_000_000_000) {
            return Err(wrong(format!(
                "--for {} cannot be asked of every generator: give whole seconds, 1s or more",
                self.length
            )));
        }
        Ok(LoadOrder::closed_loop("", self.connections, 1, LoadEnd::After(self.length)))
    }

    /// In how many rounds.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// longtail itself, and the others that are wanted: all where none is named.
    pub(crate) fn generators(&self) -> Vec<Generator> {
        let wanted = |one: &Generator| *one == Generator::Longtail || self.tools.is_empty() || self.tools.contains(one);
        Generator::value_variants().iter().copied().filter(wanted).collect()
    }
}
