//! Flags: those of each command in a file of its name; those that several commands have, and the
//! parsers of values, in `shared`. `mistakes` says what was meant by words that are wrong,
//! `other_tools` what the words of other load tools are in ours.

mod audit;
pub(crate) mod capacity;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod fleet;
mod generate;
mod generate_docs;
pub(crate) mod load;
mod merge;
pub(crate) mod mistakes;
pub(crate) mod other_tools;
pub(crate) mod overhead;
pub(crate) mod predict;
mod report;
mod shared;
pub(crate) mod signals;
mod sink;
pub(crate) mod sweep;
pub(crate) mod watch;

pub(crate) use self::audit::AuditArgs;
pub(crate) use self::capacity::CapacityArgs;
pub(crate) use self::compare::CompareArgs;
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::fleet::FleetArgs;
pub(crate) use self::generate::GenerateArgs;
pub(crate) use self::generate_docs::GenerateDocsArgs;
pub(crate) use self::load::LoadArgs;
pub(crate) use self::merge::MergeArgs;
pub(crate) use self::predict::PredictArgs;
pub(crate) use self::report::ReportArgs;
pub(crate) use self::shared::metrics::{OtlpUrl, OutletArgs, receiver_address};
pub(crate) use self::shared::output::{OutputArgs, ThresholdArgs};
pub(crate) use self::shared::{event, output, server, value_parsers};
pub(crate) use self::signals::SignalsArgs;
pub(crate) use self::sink::SinkArgs;
pub(crate) use self::sweep::SweepArgs;
pub(crate) use self::watch::WatchArgs;

/// The heading of the flags that only `--help` lists.
pub(crate) const ADVANCED: &str = "Advanced";
