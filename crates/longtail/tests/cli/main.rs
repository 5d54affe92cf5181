//! The whole program, as a user starts it: the real binary, real servers, real sockets, real files.
//!
//! No test is decided by how fast or how idle the machine is. Each has a folder of its own (`lab`), so they run side by side.

mod anatomy;
mod audit;
mod bodies;
mod builtin;
mod calibrate;
mod clock;
mod compare;
mod doctor;
mod documents;
mod ending;
mod far;
mod far_generators;
mod fleet;
mod formats;
mod gates;
mod kernel;
mod kills;
mod lab;
mod ledger;
mod load;
mod mistakes;
mod other_server;
mod outlets;
mod pipes;
mod placement;
mod predict;
mod puma;
mod pumas;
mod rails;
mod refusals;
mod refused;
mod schemas;
mod selftest;
mod sink;
mod situations;
mod snapshots;
mod theory;
mod watch;
mod watched;
mod widths;
mod with;
