//! Why a run cannot start, or cannot connect as it was asked to.

use std::fmt;
use std::path::Path;

use thiserror::Error;

/// One line that names the fault and how to fix it.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct EngineError(pub String);

/// Of a file that should hold `what`.
pub(crate) fn unreadable(path: &Path, what: &str, reason: impl fmt::Display) -> EngineError {
    EngineError(format!("cannot read {}: {reason} ({what} in PEM is expected there)", path.display()))
}
