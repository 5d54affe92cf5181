//! The built-in server as a process of its own: what `longtail sweep --server builtin` starts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use sink::{Sink, SinkBody, SinkSettings, SlotQueue};

use crate::args::BuiltinServerArgs;
use crate::clock::SystemClock;
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::ui;

/// Serves until SIGTERM, then finishes what it has.
///
/// # Errors
/// Where it cannot listen.
pub(crate) fn run(args: &BuiltinServerArgs) -> Result<Exit, Mistake> {
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
