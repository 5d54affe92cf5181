//! A fault of longtail itself: a panic, of whatever thread, ends the program at once, with a line that says so and an exit code of its own.
//!
//! Otherwise the other threads would go on, and the report would be made of what is left of the run, or waited for without end. The server goes
//! with us: its guard sees to that. A terminal that is drawn on is given back before (ratatui puts its own hook before this one).

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};

use crate::exit::Exit;
use crate::ui;

/// From now on a panic ends the program.
pub(crate) fn end_the_program() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
        ui::fault(&format!(
            "a fault of longtail, not of the server: {} (thread {}{place}); the run is lost, please report this line",
            what(panic.payload()),
            thread.name().unwrap_or("without a name"),
        ));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            ui::fault(&trace.to_string());
        }
        std::process::exit(Exit::Fault.code());
    }));
}

/// What a panic says, on one line.
fn what(payload: &dyn Any) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it does not say why").lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
