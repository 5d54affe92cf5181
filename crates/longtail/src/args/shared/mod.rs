//! Flags that several commands have, and the parsers of values.

pub(crate) mod event;
pub(crate) mod metrics;
pub(crate) mod output;
pub(crate) mod server;
pub(crate) mod value_parsers;
