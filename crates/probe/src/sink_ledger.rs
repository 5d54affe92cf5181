//! The built-in server's own count, which it tells at `/_ledger`.

use std::net::SocketAddr;

use serde::Deserialize;

use crate::control::{Control, ControlAddress, ControlError};

#[derive(Deserialize)]
struct Ledger {
    requests: u64,
}

/// Requests that the built-in server at `address` has taken since its start.
///
/// # Errors
/// Where it does not answer, or not with a ledger.
pub fn requests(address: SocketAddr) -> Result<u64, ControlError> {
    let control = Control { address: ControlAddress::Tcp(address), token: String::new() };
    let text = control.ask("_ledger")?;
    let ledger: Ledger = serde_json::from_str(&text).map_err(|error| ControlError::Malformed(error.to_string()))?;
    Ok(ledger.requests)
}
