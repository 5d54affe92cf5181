//! The bench: compares longtail's cost with that of other tools. It measures an existing build of
//! longtail and is not shipped.
//!
//! `sections` says what is run and shown; `case` runs contenders in turns, `measure` runs one once;
//! `server` and `tools` know the servers and the generators; `lab` has the process that each runs
//! in, and `counters` what is counted.

mod case;
mod counters;
mod lab;
mod machine;
mod measure;
mod output;
mod sections;
mod server;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use launch::{GuardCommand, Scratch};
use model::Nanos;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::case::{Done, Rounds};
use crate::counters::Counters;
use crate::lab::{CHILD, GUARD, Lab};
use crate::sections::{Extent, Found, Section};
use crate::tools::{Tool, tool};
use testkit::clock::REAL_CLOCK;

const FAULT: u8 = 1;
const MISTAKE: u8 = 2;
const INTERRUPTED: u8 = 130;

const EXAMPLES: &str = "\
Examples:
  make bench                                  all of it, in some minutes
  make bench QUICK=1                          under a minute
  make bench ARGS='--only cost --tools longtail,floor,wrk --connections 16,64 --rounds 9'
  make bench-memory                           10^8 requests
  target/release/bench --json bench.json --for 3s

Exit code: 0; 1 where the ledgers of longtail and the server differ, memory grows, or a log lacks lines that it did not
count as dropped; 2 for a mistake; 130 after Ctrl-C.";

/// Proves what the generator costs: longtail beside other load generators and beside a floor
/// without HTTP
#[derive(Debug, Parser)]
#[command(name = "bench", after_help = EXAMPLES, version)]
struct Args {
    /// Only these parts
    #[arg(long, value_delimiter = ',', value_name = "SECTION")]
    only: Vec<Section>,
    /// Rounds of longtail, the floor and wrk [default: 5, quick 2]; the others run in the first
    /// two, quick one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Length of a run; wrk, ab and h2load take whole seconds [default: 1s]
    #[arg(long = "for", value_name = "TIME")]
    length: Option<Nanos>,
    /// Less of everything: under a minute
    #[arg(long)]
    quick: bool,
    /// Write all that was measured, run by run, to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only these tools; those that are not installed are left out
    #[arg(long, value_parser = tool(), value_delimiter = ',', value_name = "TOOL")]
    tools: Vec<Tool>,
    /// Numbers of connections of small responses with keep-alive [default: 1,16,64,256,1024,10000,
    /// quick 16]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    connections: Vec<u32>,
    /// Requests of the long run of the memory section [default: 10000000, quick 500000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=10_000_000_000))]
    memory_requests: Option<u64>,
    /// A program that still runs this long after its time is killed, and its run counts as failed
    #[arg(long, value_name = "TIME", default_value = "20s")]
    patience: Nanos,
    /// The longtail that is measured [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    longtail: Option<PathBuf>,
}

impl Args {
    fn sections(&self) -> Vec<Section> {
        Section::ALL
            .into_iter()
            .filter(|section| self.only.is_empty() || self.only.contains(section))
            .collect()
    }

    /// How much to run.
    ///
    /// # Errors
    /// What is wrong, in one line.
    fn extent(&self) -> Result<Extent, String> {
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
            memory_requests: self.memory_requests.unwrap_or(if self.quick {
                500_000
            } else {
                10_000_000
            }),
        })
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Before anything else: neither role has flags, and parsing them would slow it down.
    match words.next() {
        Some(word) if word == GUARD => std::process::exit(launch::guard::run(words)),
        Some(word) if word == CHILD => std::process::exit(lab::run_child(words)),
        _ => {}
    }
    match run(&Args::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(mistake) => {
            output::note(&mistake);
            ExitCode::from(MISTAKE)
        }
    }
}

fn run(args: &Args) -> Result<u8, String> {
    let mut extent = args.extent()?;
    let interrupt = interruption()?;
    let scratch = Scratch::new(&std::env::temp_dir())
        .map_err(|why| format!("TMPDIR cannot be written: {why}"))?;
    let lab = lab(args, scratch.path(), &interrupt)?;
    output::print(&machine::text(&lab, &extent));
    for line in left_out(&mut extent) {
        output::print(&format!("{line}\n"));
    }
    let mut all = Vec::new();
    for section in args.sections() {
        if lab.interrupted() {
            break;
        }
        let found = conduct(section, &extent, &lab);
        output::clear();
        output::print(&found.text);
        all.push(found);
    }
    output::print(&machine::legend(&extent, &all));
    if let Some(file) = &args.json {
        let text = machine::json(&lab, &extent, &all, lab.interrupted());
        std::fs::write(file, text)
            .map_err(|why| format!("{} cannot be written: {why}", file.display()))?;
    }
    let faults: Vec<&String> = all.iter().flat_map(|found| &found.faults).collect();
    for fault in &faults {
        output::note(fault);
    }
    Ok(match (lab.interrupted(), faults.is_empty()) {
        (true, _) => INTERRUPTED,
        (false, false) => FAULT,
        (false, true) => 0,
    })
}

fn conduct(section: Section, extent: &Extent, lab: &Lab<'_>) -> Found {
    let (cases, rounds, counting) = section.cases(extent, lab);
    let done = cases
        .into_iter()
        .take_while(|_| !lab.interrupted())
        .map(|case| Done::new(case, lab).run(rounds, counting, lab, &output::progress))
        .collect();
    section.found(done, lab)
}

fn lab<'a>(
    args: &Args,
    folder: &'a std::path::Path,
    interrupt: &'a AtomicBool,
) -> Result<Lab<'a>, String> {
    let here = GuardCommand::this_program(GUARD).program;
    let longtail = args.longtail.clone().unwrap_or_else(|| here.with_file_name("longtail"));
    let longtail: PathBuf = longtail.canonicalize().map_err(|why| {
        let hint = "build it (cargo build --release -p longtail) or give --longtail PATH";
        format!("{}: {why}: {hint}", longtail.display())
    })?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let counters = Counters::find(|name| tools::find(name, &path));
    let cpus = lab::two_cpus();
    let clock = REAL_CLOCK;
    let patience = args.patience;
    Ok(Lab { longtail, here, folder, cpus, counters, patience, clock, interrupt, path })
}

/// Removes numbers of connections that the limit of open files does not allow, and returns a line
/// for each.
fn left_out(extent: &mut Extent) -> Vec<String> {
    let most = lab::most_connections();
    let (kept, out): (Vec<u32>, Vec<u32>) =
        extent.connections.iter().partition(|c| u64::from(**c) <= most);
    extent.connections = kept;
    let line = |c: u32| {
        format!("left out: {c} connections (the limit of open files allows {most}: ulimit -Hn)")
    };
    out.into_iter().map(line).collect()
}

/// A flag that the first Ctrl-C sets. The second one ends the bench at once, and the guards end
/// what it started.
fn interruption() -> Result<Arc<AtomicBool>, String> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&interrupted))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupted)))
            .map_err(|why| format!("no signal handler: {why}"))?;
    }
    Ok(interrupted)
}
