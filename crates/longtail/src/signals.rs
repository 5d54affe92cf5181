//! Signals and panics: what ends longtail before its time.
//!
//! Ctrl-C: the first ends the run and reports what there is, a later one leaves at once. Before
//! anything has begun that could be reported ([`begin`]), the first leaves at once: a file that a
//! flag names may be a pipe that nobody writes to, and a name server or ssh may not answer. Leaving
//! at once is safe: the guard of a server sees that we are gone and kills it. SIGTERM and SIGHUP
//! count as Ctrl-C. Where the first comes while results are printed that nobody reads, it leaves too.
//!
//! A panic, of whatever thread, is a fault of longtail itself: a line that says so, and an exit
//! code of its own. Otherwise the other threads would go on, and the report would be made of what
//! is left of the run, or waited for without end. A terminal that is drawn on is given back before
//! (the screen of `watch` puts its own hook before this one).

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
use crate::ui;

/// Where this is set, the end of stdin counts as Ctrl-C: who started us over a connection is gone,
/// or wants us to stop.
pub(crate) const ENDS_WITH_INPUT: &str = "LONGTAIL_ENDS_WITH_INPUT";

/// `timeout` sends its signal to us, and then to our whole group.
const ONE_KEY: Nanos = Nanos::from_millis(200);

/// Whoever has read nothing of what is printed for so long does not read it.
const UNREAD: Nanos = Nanos::from_millis(500);

/// Whether the first signal is to end what goes on in order.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// From now on the first signal ends in order; until now it left at once.
pub(crate) fn begin() {
    HAS_BEGUN.store(true, Ordering::SeqCst);
}

/// A flag that the first signal sets, or the end of stdin where [`ENDS_WITH_INPUT`] is set.
///
/// # Errors
/// Where the system refuses.
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

/// A flag that the first signal sets.
///
/// # Errors
/// Where the system refuses.
pub(crate) fn first_signal() -> Result<Arc<AtomicBool>, Mistake> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let (mut signals, raised) = (
        Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| {
            wrong(format!("Ctrl-C cannot be listened to ({error}): is this an unusual sandbox?"))
        })?,
        Arc::clone(&interrupted),
    );
    spawn("signals", move || {
        let mut signals = signals.forever();
        signals.next();
        if !HAS_BEGUN.load(Ordering::SeqCst) {
            ui::note("interrupted before the first run: there is nothing to report");
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
            std::process::exit(Exit::Interrupted.code());
        }
    })?;
    Ok(interrupted)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Mistake> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(|_| ()).map_err(|error| engine::no_thread(&error).into())
}

/// From now on a panic ends the program.
pub(crate) fn end_at_a_panic() {
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
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it does not say why").lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
