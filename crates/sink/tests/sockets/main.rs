//! The sink over real sockets. Counts, bytes and order are asserted, never a duration.

mod clients;
mod laws;
mod ledger;
mod support;
