//! A Puma before 7 lets its threads wait for the next request of a connection while other connections
//! wait to be accepted: in an overload, threads are then in use without work.

use model::{Limit, Run};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::checks::closed_in_turns;

/// Connections were closed as a Puma before 7 does after ten responses in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitsForClients {
    /// How many connections.
    pub closed: u64,
    /// Whether nothing else is known to limit the server.
    pub is_only_limit: bool,
}

/// Whether this is such an overload, or a load that the server falls behind (`of_pace`). Below it, no
/// connection waits for long to be accepted.
pub(super) fn of_load(run: &Run, of_pace: &Finding) -> Option<WaitsForClients> {
    let falls_behind = run.is_overload() || matches!(of_pace, Finding::FallsBehind(_));
    let closed = run.warnings.iter().find_map(closed_in_turns).filter(|_| falls_behind)?;
    let is_only_limit = run.limit().is_none_or(|limit| matches!(limit, Limit::NotKnown { .. }));
    Some(WaitsForClients { closed, is_only_limit })
}

impl WaitsForClients {
    pub(super) fn sentence(&self) -> String {
        let WaitsForClients { closed, is_only_limit } = self;
        let closes = format!(
            "it closed {closed} connections as a Puma before 7 does, after ten responses in a row while \
             others wait to be accepted"
        );
        if *is_only_limit {
            format!(
                "Probably its threads wait for clients: {closes}, and a thread of such a Puma also waits, \
                 up to 0.2 s, for the next request of its connection."
            )
        } else {
            format!(
                "Probably it is unfair, too: {closes}; the requests of the others wait longer than their \
                 turn."
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_limits_the_server_decides_what_is_said() {
        let said = |is_only_limit| WaitsForClients { closed: 1006, is_only_limit }.sentence();
        assert!(said(true).starts_with("Probably its threads wait for clients: it closed 1006"));
        assert!(said(false).starts_with("Probably it is unfair, too: it closed 1006"));
    }
}
