//! The built-in server's own count, which it tells at `/_ledger`.

use std::net::SocketAddr;

use model::{ControlServer, Endpoint};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::control::{self, LONGEST_WAIT};

/// Requests that the built-in server at `address` has taken since its start.
///
/// # Errors
/// Where it does not answer, or not with a ledger.
pub fn requests(address: SocketAddr) -> Result<u64, String> {
    #[derive(Deserialize)]
    struct SinkRequests {
        requests: u64,
    }
    read::<SinkRequests>(address).map(|ledger| ledger.requests)
}

/// As much as `T` wants of the ledger of the sink at `address`.
///
/// # Errors
/// Where it does not answer, or not with such a ledger.
pub fn read<T: DeserializeOwned>(address: SocketAddr) -> Result<T, String> {
    let sink = ControlServer { address: Endpoint::Tcp(address), token: String::new() };
    control::understood(&control::ask(&sink, "_ledger", LONGEST_WAIT)?)
}
