//! Others sent requests to the server during a load, so its times include theirs.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// A warning if any other connection sent something.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let connections = run.generator.other_clients.filter(|connections| *connections > 0)?;
    Some(Diagnostic::OtherClients { connections })
}

/// Grade, sentence and hint.
pub(super) fn assess(connections: u64) -> Assessment {
    let sentence = format!(
        "others sent requests to the server meanwhile, over at least {} that {} not ours: the times include \
         what these cost",
        counted(connections, "connection"),
        if connections == 1 { "is" } else { "are" },
    );
    let hint = "is another load generator, or real traffic, on this server?";
    Assessment::new(Grade::Doubtful, sentence, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_others_are_a_doubt() {
        let of = |connections| assess(connections).sentence;
        assert!(of(1).contains("over at least 1 connection that is not ours"), "{}", of(1));
        assert!(of(3).contains("over at least 3 connections that are not ours"), "{}", of(3));
    }
}
