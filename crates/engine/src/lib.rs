//! The load generator: drives one server with many connections and records how each request ends.
//!
//! One thread per lane, nothing shared between lanes. A lane waits for its sockets, reads
//! responses, records them, and sends what is due, in one loop (`lane`). Everything that can be
//! done before the start (addresses, request bytes) or after the end (merging, percentiles) is done
//! there. This crate never prints, and reads no clock but the one it is given.

mod certificate;
mod connection;
mod drive;
mod head;
mod kernel_timestamps;
mod lane;
mod load_spec;
mod no_response;
mod progress;
mod queue_stamps;
mod reach;
mod resolve;
mod response;
mod scheduler;
mod slow_clients;
mod thread;
mod tls;
mod transport;
mod waiting;
mod wire;
mod wire_tls;

pub use drive::{DriveResult, drive, drive_part};
pub use head::{BodyFraming, HeadCache, ResponseHead};
pub use kernel_timestamps::{ClockExchange, can_stamp};
pub use lane::{Lane, LaneOutcome};
pub use load_spec::{GeneratorPart, LaneShare, LoadSpec};
pub use model::Endpoint;
pub use no_response::{HandshakeFindings, speaks_http, speaks_tls};
pub use progress::{
    LaneProgress, LastResponses, RecordBatch, RequestRecord, RequestTrace, RunProgress,
};
pub use reach::{FetchedResponse, Unreachable, fetch, reach, render};
pub use resolve::{IpVersion, Resolver, StaticAddresses};
pub use response::{ReceivedResponse, ResponseReader, response_body};
pub use slow_clients::SlowLoad;
pub use thread::{RaiseOnDrop, ensure_descriptors, no_thread, spawn_scoped};
pub use tls::{TlsOptions, TlsSettings};
pub use transport::Transport;
pub use wire::{ConnectionDriver, ConnectionEvent, SocketDriver, TcpInfo};
pub use wire_tls::TlsDriver;

use thiserror::Error;

/// Why a run cannot start, or cannot connect as it was asked to: one line that names the fault and
/// how to fix it.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct EngineError(pub String);
