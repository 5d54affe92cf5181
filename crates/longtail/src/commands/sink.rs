//! `longtail sink`: a server whose right answers are known, for whoever wants to test a generator; and the built-in server as a
//! process of its own, which `longtail sweep --server builtin` starts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use sink::{Sink, SinkBody, SinkSettings, SlotQueue};

use crate::args::{BuiltinServerArgs, SinkArgs};
use crate::clock::SystemClock;
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::{signals, ui};

/// Serves until Ctrl-C, and prints what was counted.
///
/// # Errors
/// Where a flag is wrong, or it cannot listen.
pub(crate) fn run(args: &SinkArgs) -> Result<Exit, Mistake> {
    let settings = args.settings()?;
    let laws = settings.laws();
    let stop = signals::interruption()?;
    let sink = Sink::start_until(settings, SystemClock::start(), stop)?;
    for place in sink.places() {
        ui::print(&format!("listening on {place} ({laws})\n"));
    }
    let ledger = sink.wait();
    ui::print(&ledger.text());
    Ok(Exit::Fine)
}

/// Serves until SIGTERM, then finishes what it has.
///
/// # Errors
/// Where it cannot listen.
pub(crate) fn run_builtin(args: &BuiltinServerArgs) -> Result<Exit, Mistake> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&stop)).map_err(Mistake::Signals)?;
    }
    let settings = SinkSettings {
        listen: vec![args.listen.into()],
        queue: SlotQueue::Shared,
        workers: args.workers,
        threads: args.threads,
        delay: args.delay.into(),
        body: SinkBody::Ok,
        worker_header: Some(args.worker_header.clone()),
        ..SinkSettings::default()
    };
    let sink = Sink::start_until(settings, SystemClock::start(), stop)?;
    for place in sink.places() {
        ui::print(&format!("listening on {place}\n"));
    }
    sink.wait();
    Ok(Exit::Fine)
}
