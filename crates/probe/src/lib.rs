//! Reads what the server and the machine do, apart from the load: Puma's statistics, the kernel's
//! sockets, processes, the host.
//!
//! Reads only. A value that cannot be had is absent, never 0. Nothing here sends load or prints.

mod answered;
pub mod bpf;
pub mod control;
pub mod doctor;
pub mod host;
pub mod http;
mod last_word;
pub mod other_clients;
pub mod owners;
pub mod peers;
pub mod processes;
pub mod puma_setup;
pub mod puma_stats;
pub mod rights;
pub mod sampler;
pub mod server_cpu;
pub mod server_life;
mod sock_diag;
pub mod sockets;
pub mod threads;
