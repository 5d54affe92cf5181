//! Ctrl-C: the first ends the run and reports what there is, the second leaves at once.
//!
//! Leaving at once is safe: the guard of a server sees that we are gone and kills it. SIGTERM and SIGHUP count as Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;
use crate::mistake::Mistake;

/// A flag that the first signal sets.
///
/// # Errors
/// Where the system refuses.
pub(crate) fn interruption() -> Result<Arc<AtomicBool>, Mistake> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag down and only raises it.
        flag::register_conditional_shutdown(signal, Exit::Interrupted.code(), Arc::clone(&interrupted))
            .map_err(Mistake::Signals)?;
        flag::register(signal, Arc::clone(&interrupted)).map_err(Mistake::Signals)?;
    }
    Ok(interrupted)
}
