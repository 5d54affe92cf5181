//! `longtail doctor --generators`: what this machine's generators reach, side by side.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use launch::GuardCommand;

use crate::args::DoctorArgs;
use crate::calibrate::{self, CalibrationFindings, CalibrationRounds, ComparedGenerator, SinkUnderLoad};
use crate::clock::{SystemClock, wall_time};
use crate::exit::Exit;
use crate::generators::{Generator, GeneratorRunner, InstalledGenerator};
use crate::mistake::Mistake;
use crate::ui::Ui;
use crate::{GUARD, signals, this_program, ui};

/// Runs every generator that is there against one sink, in rounds, and prints what they reach.
///
/// # Errors
/// Where a flag is wrong, or the sink cannot be started.
pub(crate) fn run(args: &DoctorArgs) -> Result<Exit, Mistake> {
    let order = args.order()?;
    let (interrupt, started_at) = (signals::interruption()?, wall_time());
    let program = this_program();
    let dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let guard = GuardCommand::this_program(GUARD);
    let clock = SystemClock::start();
    let environment = sweep::environment(env!("CARGO_PKG_VERSION"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let (mut compared, mut missing) = (Vec::new(), Vec::new());
    for generator in args.generators() {
        match generator.program(&path, &program) {
            Some(program) => compared.push(ComparedGenerator::new(InstalledGenerator { generator, program })),
            None => missing.push(generator),
        }
    }
    let runner = GeneratorRunner::new(clock)?;
    let sink = SinkUnderLoad::start(&program, &dir, &guard, clock)?;
    let rounds = CalibrationRounds { sink: &sink, order: &order, runner: &runner, interrupt: &interrupt };
    let progress = Ui::new();
    for round in 1..=args.rounds() {
        let tell = |name: &str| progress.working(&format!("round {round}/{}: {name}", args.rounds()));
        rounds.round(round, &mut compared, &tell);
    }
    drop(progress);
    sink.stop();

    let interrupted = interrupt.load(Ordering::Relaxed);
    let found = CalibrationFindings {
        order: &order,
        rounds: args.rounds(),
        compared: &compared,
        missing: &missing,
        environment: &environment,
        started_at: &started_at,
        interrupted,
    };
    if args.output.is_json() {
        ui::print_json(&calibrate::json(&found));
    } else {
        ui::print(&calibrate::table(&found));
    }
    let ours = compared.iter().find(|one| one.tool == Generator::Longtail);
    Ok(match ours {
        _ if interrupted => Exit::Interrupted,
        Some(ours) if ours.runs.is_empty() => Exit::Mistake,
        _ => Exit::Fine,
    })
}
