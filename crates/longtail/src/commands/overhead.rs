//! `longtail overhead`: what instruments cost.

use engine::Resolver;
use sweep::{Context, conduct_overhead};

use super::conducted::{context, fall_back};
use crate::args::OverheadArgs;
use crate::args::environment::addresses;
use crate::clock::{SystemClock, wall_time};
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::overhead::{self, OverheadFindings};
use crate::store::CeilingFile;
use crate::ui::Ui;
use crate::{signals, ui};

/// Runs all rounds and prints what each arm costs.
///
/// # Errors
/// Where a flag is wrong, or a server does not work.
pub(crate) fn run(args: &OverheadArgs, resolver: Resolver) -> Result<Exit, Mistake> {
    let mut plan = args.plan()?;
    let addresses = addresses()?;
    fall_back(&mut plan.server)?;
    if plan.server.kind == model::ServerKind::Builtin {
        // Its app is in no Puma.
        plan.arms.retain(|arm| *arm != sweep::Arm::Statsd);
    }
    let interrupt = signals::interruption()?;
    let (clock, started_at) = (SystemClock::start(), wall_time());
    let ceilings = CeilingFile::of_day(&started_at);
    let context = Context {
        addresses,
        boot_timeout: args.puma.boot_timeout,
        resolver,
        ..context(clock, &started_at, &interrupt, &ceilings)
    };
    let progress = Ui::new();
    let overhead = conduct_overhead(&plan, &context, &mut |phase| progress.phase(phase));
    drop(progress);
    let overhead = overhead?;
    if overhead.samples.is_empty() {
        ui::note("interrupted before the first run: there is nothing to report");
        return Ok(Exit::Interrupted);
    }
    let found = OverheadFindings::of(&plan, &overhead);
    let environment = sweep::environment(env!("CARGO_PKG_VERSION"));
    ui::print(&if args.output.is_json() {
        overhead::json(&found, &environment, &started_at)
    } else {
        overhead::table(&found)
    });
    Ok(if overhead.interrupted { Exit::Interrupted } else { Exit::Fine })
}
