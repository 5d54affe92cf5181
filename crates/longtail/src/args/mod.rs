//! Flags that several commands have, what their values can be, and what other tools call them.

pub(crate) mod argument_fault;
pub(crate) mod event;
pub(crate) mod limits;
pub(crate) mod load;
pub(crate) mod metrics;
pub(crate) mod mistaken_values;
pub(crate) mod other_lines;
pub(crate) mod other_tools;
pub(crate) mod output;
pub(crate) mod server;
pub(crate) mod synonyms;
pub(crate) mod unknown_words;

pub(crate) use load::LoadArgs;
pub(crate) use metrics::{OtlpUrl, OutletArgs, receiver_address};
pub(crate) use output::{OutputArgs, ThresholdArgs};

/// The heading of the flags that only `--help` lists.
pub(crate) const ADVANCED: &str = "Advanced";
