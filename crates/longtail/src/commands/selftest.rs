//! `longtail doctor --self-test`: the generator against laws whose right answer is known.

use serde_json::json;

use crate::args::DoctorArgs;
use crate::clock::{SystemClock, wall_time};
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::ui::Ui;
use crate::{selftest, signals, ui};

/// Runs all laws and prints how far off the engine was. A count that is wrong is a missed objective: exit 1.
///
/// # Errors
/// Where a sink or the engine cannot start.
pub(crate) fn run(args: &DoctorArgs) -> Result<Exit, Mistake> {
    let (clock, interrupt, started_at) = (SystemClock::start(), signals::interruption()?, wall_time());
    let progress = Ui::new();
    let mut outcomes = Vec::new();
    let mut interrupted = false;
    for case in selftest::all(args.quick) {
        progress.working(case.name);
        let Some(outcome) = case.run(clock, &interrupt)? else {
            interrupted = true;
            break;
        };
        outcomes.push(outcome);
    }
    drop(progress);
    let environment = sweep::environment(env!("CARGO_PKG_VERSION"));
    let conserved = outcomes.iter().all(|outcome| outcome.conserved);
    if args.output.is_json() {
        ui::print_json(&json!({
            "started_at": started_at, "environment": environment, "quick": args.quick, "interrupted": interrupted,
            "conserved": conserved, "cases": outcomes,
        }));
    } else {
        ui::print(&selftest::table(&outcomes, &environment));
    }
    Ok(if interrupted {
        Exit::Interrupted
    } else if conserved {
        Exit::Fine
    } else {
        Exit::Missed
    })
}
