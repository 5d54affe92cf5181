//! The whole program, as a user starts it: the real binary, real servers, real sockets, real files.
//!
//! No test is decided by how fast or how idle the machine is. Each has a folder of its own (`lab`),
//! so they run side by side.

mod bodies;
mod compare;
mod deploys;
mod documents;
mod exits;
mod far;
mod files;
mod fleet;
mod formats;
mod gates;
mod kernel;
mod kills;
mod lab;
mod ledger;
mod load;
mod mistakes;
mod observers;
mod outlets;
mod packages;
mod privileges;
mod pumas;
mod rails;
mod refused;
mod scenarios;
mod schemas;
mod secrets;
mod signals;
mod situations;
mod stability;
mod terminal;
mod watch;
mod wire;
