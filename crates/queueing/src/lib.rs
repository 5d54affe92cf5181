//! Queueing theory as pure functions, each with its formula, source and range of validity.
//!
//! Nothing here measures, reads a clock or does I/O. A formula about a single time takes
//! [`model::Nanos`]; all others take plain numbers in a unit of time that the caller chooses: with
//! seconds, rates are per second; with the service time as unit, results are as in textbook tables.
//! Where a formula has no answer, it returns a [`QueueingError`], never a NaN.
//!
//! In Kendall's letters, arrivals / service / slots: M is exponential, D constant, G any.
//!
//! | question | file |
//! |---|---|
//! | open loop: random arrivals, exponential service; the highest load that keeps an objective; overload | `open_loop` |
//! | open loop: random arrivals, constant service | `mdc` |
//! | closed loop: the ideal, its levels, who gets which connection; with think time, Ruby's global lock: many threads, one of them computing | `closed_loop` |
//! | Puma's turns of ten and its accept throttle | `puma` |
//! | models without a formula | `simulate` |
//! | which order of service was measured? | `discipline` |
//! | a whole server: each order of service, Ruby's lock, the CPUs | `prediction` |

pub mod closed_loop;
pub mod discipline;
pub mod mdc;
mod numeric;
pub mod open_loop;
pub mod prediction;
pub mod puma;
pub mod simulate;

pub use numeric::QueueingError;
pub use open_loop::OfferedLoad;
