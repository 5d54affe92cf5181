//! The load generator: drives one server with many connections and records what becomes of each request.
//!
//! One thread per lane, nothing shared between lanes. A lane waits for its sockets, reads answers, records them, and sends
//! what is due, in one loop (`lane`). Everything that can be done before the start (addresses, request bytes) or after the
//! end (merging, percentiles) is done there. This crate never prints and never reads a clock but the one it is given.

mod app_time;
mod busy_poll;
mod clock_offset;
mod connect;
mod connection;
mod cpu_time;
mod descriptors;
mod drive;
mod error;
mod fetch;
mod head;
mod journal;
mod lane;
mod load_spec;
mod preconnect;
mod progress;
mod resolve;
mod response;
mod scheduler;
mod stamps;
mod tcp_info;
mod tls;
mod transport;
mod wire;
mod wire_socket;
mod wire_tls;

pub use clock_offset::ClockExchange;
pub use connect::{Unreachable, reach};
pub use descriptors::ensure_descriptors;
pub use drive::{DriveResult, RaiseOnDrop, drive, drive_part, no_thread, spawn_scoped};
pub use error::EngineError;
pub use fetch::{FetchedResponse, fetch, render, render_with};
pub use head::{BodyFraming, HeadCache, ResponseHead};
pub use journal::{RecordBatch, RequestRecord, RequestTrace};
pub use lane::{Lane, LaneOutcome};
pub use load_spec::{GeneratorPart, LaneShare, LoadSpec};
pub use model::Endpoint;
pub use progress::{LaneProgress, RunProgress};
pub use resolve::{IpVersion, Resolver, StaticAddresses};
pub use response::{FeedResult, ReceivedResponse, ResponseReader, response_body};
pub use stamps::can_stamp;
pub use tcp_info::TcpInfo;
pub use tls::{TlsOptions, TlsSettings};
pub use transport::Transport;
pub use wire::{ConnectionDriver, ConnectionEvent};
pub use wire_socket::SocketDriver;
pub use wire_tls::TlsDriver;
