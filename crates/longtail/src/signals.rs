//! Signals and panics: what ends longtail early.
//!
//! The first Ctrl-C ends the run, and what was measured is reported; the second exits at once.
//! SIGTERM and SIGHUP count as Ctrl-C. The first one exits at once, too, before there is anything to
//! report ([`begin`]), because opening a pipe, a name server or ssh may hang, and while results are
//! printed that nobody reads. Exiting at once is safe: the guard of a server notices and kills it.
//!
//! A panic in any thread is a bug in longtail and ends the process with a message and an exit code
//! of its own. Otherwise the other threads would go on, and the report would be incomplete or never
//! come. The screen of `watch` restores the terminal first, by a hook of its own.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{Clock as _, Nanos, SystemClock};
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{Exit, Mistake, wrong};
use crate::{live_block, ui};

/// If this variable is set, the end of stdin counts as Ctrl-C: a connection that started longtail is
/// gone, or wants it to stop.
pub(crate) const ENDS_WITH_INPUT: &str = "LONGTAIL_ENDS_WITH_INPUT";

/// Signals within this time count as one: `timeout` sends its signal to the process, and then to its
/// whole group.
const ONE_KEY: Nanos = Nanos::from_millis(200);

/// If nothing of what is printed is read for this long, nobody reads it.
const UNREAD: Nanos = Nanos::from_millis(500);

/// Whether there is something to report, so that the first signal must not exit at once.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// From now on the first signal ends the run and lets it be reported.
pub(crate) fn begin() {
    HAS_BEGUN.store(true, Ordering::SeqCst);
}

/// A flag that is set by the first signal, or by the end of stdin if [`ENDS_WITH_INPUT`] is set.
///
/// # Errors
/// If signals cannot be handled.
pub(crate) fn interruption() -> Result<Arc<AtomicBool>, Mistake> {
    let interrupted = first_signal()?;
    if std::env::var_os(ENDS_WITH_INPUT).is_some() {
        spawn("input", || {
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            let _ = kill_process(getpid(), Signal::TERM);
        })?;
    }
    Ok(interrupted)
}

/// A flag that is set by the first signal.
///
/// # Errors
/// If signals cannot be handled.
pub(crate) fn first_signal() -> Result<Arc<AtomicBool>, Mistake> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&interrupted);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| {
        wrong(format!("Ctrl-C cannot be handled ({error}): is this an unusual sandbox?"))
    })?;
    spawn("signals", move || {
        let mut signals = signals.forever();
        if signals.next() == Some(SIGINT) {
            live_block::end_line_of_key();
        }
        if !HAS_BEGUN.load(Ordering::SeqCst) {
            ui::note(
                "interrupted before the first run: there is nothing to report, and no file is written",
            );
            std::process::exit(Exit::Interrupted.code());
        }
        let printing = ui::print_in_progress();
        raised.store(true, Ordering::SeqCst);
        let clock = SystemClock::start();
        if printing.is_some() {
            clock.sleep(UNREAD);
            if ui::print_in_progress() == printing {
                ui::note("interrupted: nobody reads what is printed");
                std::process::exit(Exit::Interrupted.code());
            }
        }
        if signals.any(|_| clock.now() > ONE_KEY) {
            live_block::lift();
            std::process::exit(Exit::Interrupted.code());
        }
    })?;
    Ok(interrupted)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Mistake> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(|_| ()).map_err(|error| engine::no_thread(&error).into())
}

/// Makes any panic end the process.
pub(crate) fn end_at_a_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
        ui::note(&format!(
            "a fault of longtail, not of the server: {} (thread {}{place}); the run is lost, please report this line",
            message(panic.payload()),
            thread.name().unwrap_or("without a name"),
        ));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            ui::note(&trace.to_string());
        }
        std::process::exit(Exit::Fault.code());
    }));
}

/// A panic's message, on one line.
fn message(payload: &dyn Any) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it does not say why").lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
