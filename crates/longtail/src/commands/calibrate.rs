//! `longtail calibrate`: what this machine's generators reach, side by side.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use launch::{GuardCommand, Scratch};

use crate::args::CalibrateArgs;
use crate::calibrate::{self, Contender, Findings, Ring, Subject};
use crate::clock::{SystemClock, wall_time};
use crate::exit::Exit;
use crate::generators::Generator;
use crate::mistake::Mistake;
use crate::ui::Ui;
use crate::{GUARD, signals, this_program, ui};

/// Runs every generator that is there against one sink, in rounds, and prints the table.
///
/// # Errors
/// Where a flag is wrong, or the sink cannot be started.
pub(crate) fn run(args: &CalibrateArgs) -> Result<Exit, Mistake> {
    let job = args.job()?;
    let (clock, interrupt, started_at) = (SystemClock::start(), signals::interruption()?, wall_time());
    let (path, program) = (std::env::var_os("PATH").unwrap_or_default(), this_program());
    let (mut contenders, mut missing) = (Vec::new(), Vec::new());
    for generator in args.generators() {
        match generator.program(&path, &program) {
            Some(program) => contenders.push(Contender::new(generator, program)),
            None => missing.push(generator),
        }
    }
    let within = std::env::temp_dir();
    let unwritable = |why| Mistake::Write { path: within.clone(), why, mend: "set TMPDIR to a folder you can write" };
    let scratch = Scratch::new(&within).map_err(unwritable)?;
    let folder = scratch.path();
    let dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let guard = GuardCommand::this_program(GUARD);
    let subject = Subject::start(&program, &dir, &guard, clock)?;
    let targets = format!("GET {}\n", subject.url);
    std::fs::write(folder.join("targets"), targets).map_err(unwritable)?;

    let told = Ui::new();
    let ring = Ring { subject: &subject, job, folder, guard: &guard, clock, interrupt: &interrupt };
    for round in 1..=args.rounds() {
        let tell = |name: &str| told.working(&format!("round {round}/{}: {name}", args.rounds()));
        ring.round(round, &mut contenders, &tell);
    }
    drop(told);
    subject.stop();

    let interrupted = interrupt.load(Ordering::Relaxed);
    let environment = sweep::environment(env!("CARGO_PKG_VERSION"));
    let found = Findings {
        job,
        rounds: args.rounds(),
        contenders: &contenders,
        missing: &missing,
        environment: &environment,
        started_at: &started_at,
        interrupted,
    };
    ui::print(&if args.format.is_json() { calibrate::json(&found) } else { calibrate::table(&found) });
    let ours = contenders.iter().find(|one| one.tool == Generator::Longtail);
    Ok(match ours {
        _ if interrupted => Exit::Interrupted,
        Some(ours) if ours.runs.is_empty() => Exit::Mistake,
        _ => Exit::Fine,
    })
}
