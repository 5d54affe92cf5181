//! The engine as a whole: in simulated time, against servers with faults, over each transport.

mod corpus;
mod faults;
mod kit;
mod simulated;
mod transports;
