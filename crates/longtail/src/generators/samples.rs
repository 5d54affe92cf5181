//! What tests of the generators share.

use model::Nanos;

use super::order::{End, Errand};

/// Ten connections for two seconds.
pub(crate) fn errand() -> Errand {
    Errand {
        url: "http://127.0.0.1:1/".to_owned(),
        host: None,
        connections: 10,
        threads: 4,
        end: End::After(Nanos::from_secs(2)),
        warm_up: Nanos::ZERO,
        rate: None,
        rate_per_connection: None,
        keep_alive: true,
        timeout: Nanos::from_secs(30),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: None,
    }
}
