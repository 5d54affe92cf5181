//! One file a command; the examinations of `doctor` are one, and so are the servers, and a sweep and its bodies.

pub(crate) mod audit;
pub(crate) mod compare;
mod conducted;
pub(crate) mod doctor;
pub(crate) mod fleet;
pub(crate) mod generate;
pub(crate) mod generate_docs;
pub(crate) mod load;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod sink;
pub(crate) mod sweep;
pub(crate) mod watch;
