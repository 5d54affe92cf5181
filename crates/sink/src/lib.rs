//! The server inside longtail: workers x threads slots behind one shared first-come-first-served queue, each request
//! holding a slot for a given time. It stands in for Puma, and proves the generator honest.
//!
//! It does no work for a request but to hold its slot, reads no clock but the one it is given, and prints nothing.
//! What stays true: a request waits only while all slots are busy, an answer is never sent before it is due, and
//! `requests = answers + abandoned + waiting + busy + answers not yet wholly handed to the kernel`.

mod chunked;
mod connection;
mod connections;
mod error;
mod head;
mod ledger;
mod listener;
mod request;
mod response;
mod routes;
mod serving;
mod settings;
mod sink;
mod slots;

pub use error::SinkError;
pub use ledger::Ledger;
pub use settings::Settings;
pub use sink::{Sink, serve};
