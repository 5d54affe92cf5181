//! Looking at the server and the machine from outside the client: Puma's statistics, the kernel's sockets, the host.
//!
//! Reads only. A value that cannot be had is absent, never 0. Nothing here sends load or prints.

pub mod bpf;
mod control;
pub mod doctor;
pub mod family;
pub mod host;
mod inet_diag;
mod listener;
pub mod machine;
pub mod owners;
pub mod process;
pub mod processes;
pub mod puma_stats;
pub mod server_cpu;
pub mod sink_ledger;
mod sock_diag;
pub mod sockets;
pub mod statsd;

pub use control::{Control, ControlAddress, ControlError, FindAddress};
pub use inet_diag::InetDiag;
pub use listener::Listener;
pub use statsd::StatsdSocket;
