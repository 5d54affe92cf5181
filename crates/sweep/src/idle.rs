//! Waiting until the server has nothing left to do: by its sockets, never by a fixed sleep.
//!
//! After a run all our connections are closed. The server is idle when it has closed its ends of them too: a request that
//! it still works on, or has not accepted yet, keeps its socket open, in every server and version.

use std::io;

use model::{Clock, Diagnostic, Nanos};
use probe::sockets::ServerSockets;

/// Between two looks.
const STEP: Nanos = Nanos::from_millis(10);
/// A server that is busy longer than this after a run is not waited for.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// Waits until nobody is connected any more to the server whose sockets `look` sees; a warning where that does not happen
/// within a minute, unless `stop` says so before.
pub(crate) fn wait_until_idle(
    mut look: impl FnMut() -> io::Result<ServerSockets>,
    clock: &impl Clock,
    stop: impl Fn() -> bool,
) -> Option<Diagnostic> {
    let start = clock.now();
    loop {
        // Where the kernel does not tell, nothing can be said, and nothing is.
        let sockets = look().ok()?;
        if sockets.is_idle() || stop() {
            return None;
        }
        let waited = clock.now() - start;
        if waited >= PATIENCE {
            let what = format!("{} connections open, {} of them not accepted", sockets.open, sockets.accept_queue);
            return Some(Diagnostic::StillBusy { waited, what });
        }
        clock.sleep(STEP);
    }
}
