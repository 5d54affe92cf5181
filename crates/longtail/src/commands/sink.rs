//! `longtail sink`: a test server with known responses, to test generators with. `sweep --server
//! builtin` starts it too.

use model::SystemClock;
use sink::Sink;

use crate::args::SinkArgs;
use crate::exit::{Exit, Mistake};
use crate::{signals, ui};

/// Serves until Ctrl-C or SIGTERM, finishes the requests it has, and prints what it counted.
///
/// # Errors
/// If a flag is wrong, or it cannot listen.
pub(crate) fn run(args: &SinkArgs) -> Result<Exit, Mistake> {
    let settings = args.settings()?;
    let laws = settings.laws();
    let sink = Sink::start_until(settings, SystemClock::start(), signals::first_signal()?)?;
    signals::begin();
    for place in sink.places() {
        let line = format!("listening on {place} ({laws})");
        ui::print(&ui::broken(&line, ui::terminal_width()));
    }
    let ledger = sink.wait();
    ui::print(&ui::broken(ledger.text().trim_end(), ui::terminal_width()));
    Ok(Exit::Fine)
}
