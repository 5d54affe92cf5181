//! The bench: proves side by side what longtail costs. It measures a longtail that was built; it is not shipped.
//!
//! `sections` says what is run and shown; `case` runs it in turns, `measure` once; `server` and `tools` are who serves and who
//! makes load, `child` is the process that each runs in, `counters` what is counted of it, `said` what it says itself.

mod args;
mod case;
mod child;
mod counters;
mod lab;
mod machine;
mod measure;
mod said;
mod sections;
mod server;
mod statistics;
mod table;
mod tools;
mod ui;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser as _;
use launch::{GuardCommand, Scratch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::args::Args;
use crate::case::Done;
use crate::counters::Counters;
use crate::lab::{CHILD, GUARD, Lab};
use crate::sections::{Extent, Found, Section};
use testkit::clock::REAL_CLOCK;

const FAULT: u8 = 1;
const MISTAKE: u8 = 2;
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Before anything else: neither needs flags, and neither may be slowed by them.
    match words.next() {
        Some(word) if word == GUARD => std::process::exit(launch::guard::run(words)),
        Some(word) if word == CHILD => std::process::exit(child::run(words)),
        _ => {}
    }
    match run(&Args::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(mistake) => {
            ui::note(&mistake);
            ExitCode::from(MISTAKE)
        }
    }
}

fn run(args: &Args) -> Result<u8, String> {
    let mut extent = args.extent()?;
    let interrupt = interruption()?;
    let scratch = Scratch::new(&std::env::temp_dir()).map_err(|why| format!("TMPDIR cannot be written: {why}"))?;
    let lab = lab(args, scratch.path(), &interrupt)?;
    ui::print(&machine::text(&lab, &extent));
    for line in left_out(&mut extent) {
        ui::print(&format!("{line}\n"));
    }
    let mut all = Vec::new();
    for section in args.sections() {
        if lab.interrupted() {
            break;
        }
        let found = conduct(section, &extent, &lab);
        ui::clear();
        ui::print(&found.text);
        all.push(found);
    }
    ui::print(&machine::legend(&extent, &all));
    if let Some(file) = &args.json {
        let text = machine::json(&lab, &extent, &all, lab.interrupted());
        std::fs::write(file, text).map_err(|why| format!("{} cannot be written: {why}", file.display()))?;
    }
    let faults: Vec<&String> = all.iter().flat_map(|found| &found.faults).collect();
    for fault in &faults {
        ui::note(fault);
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
        .map(|case| Done::new(case, lab).run(rounds, counting, lab, &ui::progress))
        .collect();
    section.found(done, lab)
}

fn lab<'a>(args: &Args, folder: &'a std::path::Path, interrupt: &'a AtomicBool) -> Result<Lab<'a>, String> {
    let here = GuardCommand::this_program(GUARD).program;
    let longtail = args.longtail.clone().unwrap_or_else(|| here.with_file_name("longtail"));
    let longtail: PathBuf = longtail.canonicalize().map_err(|why| {
        let hint = "build it (cargo build --release -p longtail) or give --longtail PATH";
        format!("{}: {why}: {hint}", longtail.display())
    })?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let counters = Counters::find(|name| tools::find(name, &path));
    let (cpus, clock) = (lab::two_cpus(), REAL_CLOCK);
    let patience = args.patience;
    Ok(Lab { longtail, here, folder, cpus, counters, patience, clock, interrupt, path })
}

/// Takes away the numbers of connections that the limit of open files does not allow, and says so.
fn left_out(extent: &mut Extent) -> Vec<String> {
    let most = lab::most_connections();
    let (kept, out): (Vec<u32>, Vec<u32>) = extent.connections.iter().partition(|c| u64::from(**c) <= most);
    extent.connections = kept;
    let line = |c: u32| format!("left out: {c} connections (the limit of open files allows {most}: ulimit -Hn)");
    out.into_iter().map(line).collect()
}

/// A flag that the first Ctrl-C sets; the second leaves at once, and guards end what we have started.
fn interruption() -> Result<Arc<AtomicBool>, String> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&interrupted))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupted)))
            .map_err(|why| format!("no signal handler: {why}"))?;
    }
    Ok(interrupted)
}
