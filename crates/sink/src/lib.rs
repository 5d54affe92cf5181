//! The server inside longtail, in two shapes of one: a load sink that answers any request at once, faster than a
//! generator can ask; and a server with workers x threads slots behind a queue, each request holding a slot by a law. It
//! stands in for Puma, and proves the generator honest.
//!
//! It does no work for a request but to hold its slot, reads no clock but the one it is given, and prints nothing.
//! What is random is a pure function of the seed and the request's number, which the default answer carries: so a client
//! can say of each request what should have become of it. What stays true: a request waits only while its queue lets it,
//! an answer is never sent before it is due, and every request is in one place of the [`SinkLedger`].

mod chance;
mod connection;
mod delay;
mod error;
mod faults;
mod head;
mod ledger;
mod listen;
mod listener;
mod request;
mod response;
mod serving;
mod settings;
mod sink;
mod slots;
#[cfg(test)]
mod slots_tests;
mod wire;

pub use chance::RequestShare;
pub use delay::{DelayLaw, StallLaw};
pub use error::SinkError;
pub use faults::{Fault, FaultCounts, FaultLaw, Faults};
pub use ledger::SinkLedger;
pub use listen::Listen;
pub use listener::PemPair;
pub use settings::{SinkBody, SinkSettings, SlotQueue, WorkerAssignment};
pub use sink::Sink;
