//! `longtail sink`: a server whose right answers are known, for whoever wants to test a generator. `longtail sweep --server builtin`
//! starts it too.

use model::SystemClock;
use sink::Sink;

use crate::args::SinkArgs;
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::{signals, ui};

/// Serves until Ctrl-C or SIGTERM, finishes what it has, and prints what was counted.
///
/// # Errors
/// Where a flag is wrong, or it cannot listen.
pub(crate) fn run(args: &SinkArgs) -> Result<Exit, Mistake> {
    let settings = args.settings()?;
    let laws = settings.laws();
    let sink = Sink::start_until(settings, SystemClock::start(), signals::first_signal()?)?;
    for place in sink.places() {
        ui::print(&format!("listening on {place} ({laws})\n"));
    }
    let ledger = sink.wait();
    ui::print(&ledger.text());
    Ok(Exit::Fine)
}
