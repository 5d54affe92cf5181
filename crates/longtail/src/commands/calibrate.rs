//! `longtail calibrate`: what this machine's generators reach, side by side.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use launch::{GuardCommand, Scratch};

use crate::args::CalibrateArgs;
use crate::calibrate::{self, Contender, Findings, Ring, Subject};
use crate::clock::{SystemClock, wall_time};
use crate::exit::Exit;
use crate::generators::Generator;
use crate::mistake::Mistake;
use crate::ui::Ui;
use crate::{GUARD, signals, this_program, ui};

/// Runs every generator that is there against one sink, in rounds, and prints what they reach.
///
/// # Errors
/// Where a flag is wrong, or the sink cannot be started.
pub(crate) fn run(args: &CalibrateArgs) -> Result<Exit, Mistake> {
    args.job()?;
    let (interrupt, started_at) = (signals::interruption()?, wall_time());
    let program = this_program();
    let dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let guard = GuardCommand::this_program(GUARD);
    let here = Here { clock: SystemClock::start(), program: &program, dir: &dir, guard: &guard, interrupt: &interrupt };
    let environment = sweep::environment(env!("CARGO_PKG_VERSION"));
    let told = Ui::new();
    let (contenders, missing) = here.generators(args, &told)?;
    drop(told);

    let interrupted = interrupt.load(Ordering::Relaxed);
    let found = Findings {
        job: args.job()?,
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

/// What all parts need of the world.
struct Here<'a> {
    clock: SystemClock,
    program: &'a OsStr,
    dir: &'a Path,
    guard: &'a GuardCommand,
    interrupt: &'a AtomicBool,
}

impl Here<'_> {
    /// All rounds of those that are there, and those that are not.
    fn generators(&self, args: &CalibrateArgs, told: &Ui) -> Result<(Vec<Contender>, Vec<Generator>), Mistake> {
        let Here { clock, program, dir, guard, interrupt } = *self;
        let job = args.job()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let (mut contenders, mut missing) = (Vec::new(), Vec::new());
        for generator in args.generators() {
            match generator.program(&path, program) {
                Some(program) => contenders.push(Contender::new(generator, program)),
                None => missing.push(generator),
            }
        }
        let within = std::env::temp_dir();
        let unwritable =
            |why| Mistake::Write { path: within.clone(), why, mend: "set TMPDIR to a folder you can write" };
        let scratch = Arc::new(Scratch::new(&within).map_err(unwritable)?);
        let subject = Subject::start(program, dir, guard, clock)?;
        let targets = format!("GET {}\n", subject.url);
        std::fs::write(scratch.path().join("targets"), targets).map_err(unwritable)?;
        let ring = Ring { subject: &subject, job, scratch: &scratch, guard, clock, interrupt };
        for round in 1..=args.rounds() {
            let tell = |name: &str| told.working(&format!("round {round}/{}: {name}", args.rounds()));
            ring.round(round, &mut contenders, &tell);
        }
        subject.stop();
        Ok((contenders, missing))
    }
}
