//! The words of longtail, as types: what was asked (`Plan`), what happened (`Exchange`, `Tally`, `Run`), what was
//! expected (`Forecast`), what is doubtful (`Diagnostic`), and the whole of it (`Study`, the file format).
//!
//! Nothing here does I/O, reads a clock or starts a thread. Every other crate knows this one; this one knows none.

pub mod anatomy;
pub mod backlog;
pub mod bad_response;
pub mod batches;
pub mod bodies;
pub mod body;
pub mod chunked;
pub mod claimed;
pub mod clock;
pub mod comparison;
pub mod control;
pub mod counts;
pub mod cpus;
pub mod diagnostic;
mod endpoint;
pub mod environment;
pub mod exchange;
pub mod finding;
pub mod forecast;
pub mod generator;
mod grade;
pub mod groups;
pub mod histogram;
pub mod interval;
mod judged_threshold;
pub mod judgement;
pub mod kernel;
pub mod lanes;
pub mod limit;
pub mod load;
pub mod network;
pub mod networks;
pub mod objective;
pub mod pace;
pub mod phases;
pub mod plan;
pub mod quantile;
pub mod request;
pub mod run;
pub mod series;
pub mod statistics;
pub mod statsd;
pub mod steadiness;
pub mod study;
pub mod tally;
#[cfg(test)]
mod test_fixtures;
pub mod theory;
pub mod units;
pub mod verdict;
pub mod waits;
pub mod warnings;
pub mod watch;

// Every type stands at the root; its file is where its law is.
pub use counts::Counts;
pub use endpoint::Endpoint;
pub use grade::Grade;
pub use judged_threshold::{ThresholdDoubt, ThresholdResult};
pub use waits::Waits;

pub use self::{
    anatomy::*, backlog::*, bad_response::*, batches::*, bodies::*, body::*, chunked::*, claimed::*, clock::*,
    comparison::*, control::*, cpus::*, diagnostic::*, environment::*, exchange::*, finding::*, forecast::*,
    generator::*, groups::*, histogram::*, judgement::*, kernel::*, lanes::*, limit::*, load::*, network::*,
    networks::*, objective::*, pace::*, phases::*, plan::*, quantile::*, request::*, run::*, series::*, statistics::*,
    statsd::*, study::*, tally::*, theory::*, units::*, watch::*,
};
