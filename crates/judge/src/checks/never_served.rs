//! Some connections got no response in the whole window, though it was long enough for many.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};

/// Little's law does not find this: it holds for the connections that are served.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let never = run.connections_never_served();
    let connections = run.tally.per_connection.len() as u32;
    (never > 0).then_some(Diagnostic::NeverServed { never, connections })
}

/// Grade, sentence and hint.
pub(super) fn assess(never: u32, connections: u32) -> Assessment {
    let sentence = format!("{never} of {connections} connections were never served");
    let hint = "do other kept-alive connections hold all threads, so that none is left for these? \
            Or do these wait to be accepted? Compare with -k, and look at the server's backlog";
    Assessment::new(Grade::Doubtful, sentence, hint)
}
