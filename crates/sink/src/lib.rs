//! The server inside longtail, in two shapes of one: a load sink that answers any request at once, faster than a
//! generator can ask; and a server with workers x threads slots behind a queue, each request holding a slot by a law. It
//! stands in for Puma, and proves the generator honest.
//!
//! It does no work for a request but to hold its slot, reads no clock but the one it is given, and prints nothing.
//! What is random is a pure function of the seed and the request's number, which the default answer carries: so a client
//! can say of each request what should have become of it. What stays true: a request waits only while its queue lets it,
//! an answer is never sent before it is due, and every request is in one place of the [`SinkLedger`].

mod arrivals;
mod chunked;
mod connection;
mod connections;
mod delay;
mod draws;
mod error;
mod faults;
mod head;
mod ledger;
mod listen;
mod listener;
mod mail;
mod queue;
mod request;
mod response;
mod routes;
mod serving;
mod settings;
mod share;
mod sink;
mod slots;
#[cfg(test)]
mod slots_tests;
mod stalls;
mod text;
mod tls;
mod wire;

pub use arrivals::ArrivalCounts;
pub use delay::{BadDelay, DelayLaw};
pub use error::SinkError;
pub use faults::{BadStatus, FaultCounts, Faults, StatusFault};
pub use ledger::{SinkLedger, ThreadCount};
pub use listen::{BadListen, Listen, ListenAddress};
pub use queue::{BadQueue, SlotQueue, WorkerAssignment};
pub use settings::{SinkBody, SinkSettings};
pub use share::{BadShare, RequestShare};
pub use sink::{Sink, serve};
pub use stalls::{BadStalls, Stalls};
pub use tls::PemPair;
