//! The command line.

use std::path::PathBuf;

use clap::Parser;
use model::Nanos;

use crate::case::Rounds;
use crate::sections::{Extent, Section};
use crate::tools::Tool;

const EXAMPLES: &str = "\
Examples:
  make bench                                  all of it, in some minutes
  make bench QUICK=1                          under a minute
  make bench ARGS='--only cost --tools longtail,floor,wrk --connections 16,64 --rounds 9'
  make bench-memory                           10^8 requests
  target/release/bench --json bench.json --for 3s

Exit code: 0; 1 where the ledgers of longtail and the server differ, memory grows, or a log lacks lines it does not
tell of; 2 for a mistake; 130 after Ctrl-C.";

/// Proves what the generator costs: longtail beside other load generators and beside a floor without HTTP
#[derive(Debug, Parser)]
#[command(name = "bench", after_help = EXAMPLES, version)]
pub(crate) struct Args {
    /// Only these parts
    #[arg(long, value_delimiter = ',', value_name = "SECTION")]
    only: Vec<Section>,
    /// Rounds of longtail, the floor and wrk [default: 5, quick 2]; the others run in the first two, quick one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Length of a run; wrk, ab and h2load take whole seconds [default: 1s]
    #[arg(long = "for", value_name = "TIME")]
    length: Option<Nanos>,
    /// Less of everything: under a minute
    #[arg(long)]
    quick: bool,
    /// All that was measured, run by run, into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Only these; what is not here is left out
    #[arg(long, value_delimiter = ',', value_name = "TOOL")]
    tools: Vec<Tool>,
    /// Numbers of connections of small answers with keep-alive [default: 1,16,64,256,1024,10000, quick 16]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    connections: Vec<u32>,
    /// Requests of the long run of the memory section [default: 10000000, quick 500000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=10_000_000_000))]
    memory_requests: Option<u64>,
    /// A program that has not ended so long after its time is killed, and its run is none
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub(crate) patience: Nanos,
    /// The longtail that is measured [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) longtail: Option<PathBuf>,
}

impl Args {
    pub(crate) fn sections(&self) -> Vec<Section> {
        Section::ALL.into_iter().filter(|section| self.only.is_empty() || self.only.contains(section)).collect()
    }

    /// How much of everything.
    ///
    /// # Errors
    /// In a line.
    pub(crate) fn extent(&self) -> Result<Extent, String> {
        let length = self.length.unwrap_or(Nanos::from_secs(1));
        if length < Nanos::from_millis(20) || length > Nanos::from_secs(600) {
            return Err(format!("--for {length}: give 20ms to 600s"));
        }
        let (all, others) = if self.quick { (2, 1) } else { (5, 2) };
        let all = self.rounds.unwrap_or(all);
        let connections: &[u32] = match (&self.connections[..], self.quick) {
            ([], true) => &[16],
            ([], false) => &[1, 16, 64, 256, 1024, 10_000],
            (given, _) => given,
        };
        let tools: &[Tool] = if self.tools.is_empty() { &Tool::ALL } else { &self.tools };
        Ok(Extent {
            rounds: Rounds { all, others: others.min(all) },
            length,
            quick: self.quick,
            tools: tools.to_vec(),
            connections: connections.to_vec(),
            memory_requests: self.memory_requests.unwrap_or(if self.quick { 500_000 } else { 10_000_000 }),
        })
    }
}
