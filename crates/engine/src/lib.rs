//! The load generator: drives one server with many connections and records what becomes of each request.
//!
//! One thread per lane, nothing shared between lanes. A lane waits for its sockets, reads answers, records them, and sends
//! what is due, in one loop (`lane`). Everything that can be done before the start (addresses, request bytes) or after the
//! end (merging, percentiles) is done there. This crate never prints and never reads a clock but the one it is given.

mod agenda;
mod alike;
mod app_time;
mod awake;
mod body;
mod chunked;
mod connection;
mod cpu_use;
mod drive;
mod fetch;
mod head;
mod journal;
mod lane;
mod lateness;
mod lead;
mod limits;
mod own_files;
mod progress;
mod reach;
mod request;
mod resolve;
mod response;
mod shape;
mod stamps;
mod standstill;
mod tcp_info;
mod tls;
mod transport;
mod wire;
mod wire_socket;
mod wire_tls;

pub use body::body;
pub use drive::{DriveError, DriveResult, RaiseOnDrop, drive, spawn_scoped};
pub use fetch::{FetchError, FetchedResponse, fetch};
pub use head::{BodyFraming, HeadCache, ResponseHead};
pub use journal::{RecordBatch, RequestRecord, RequestTrace};
pub use lane::{Lane, LaneEnd};
pub use lead::shared_lead;
pub use limits::{LimitError, ensure_descriptors};
pub use progress::{LaneProgress, RunProgress};
pub use reach::{Unreachable, reach};
pub use request::{render, render_with};
pub use resolve::{IpVersion, ResolveError, Resolver, StaticAddresses};
pub use response::{FeedResult, ReceivedResponse, ResponseReader};
pub use shape::{LaneShare, LoadSpec};
pub use stamps::can_stamp;
pub use tcp_info::TcpInfo;
pub use tls::{TlsOptions, TlsSettings};
pub use transport::{Endpoint, Transport, TransportError};
pub use wire::{ConnectionDriver, ConnectionError, ConnectionEvent};
pub use wire_socket::SocketDriver;
pub use wire_tls::TlsDriver;
