//! All conclusions: checks, warnings, limits, verdict, findings, trust, and what to type next.
//!
//! Each check, warning, limit and finding has a file with its evidence, when it holds and why that
//! is the threshold, its grade, its sentence, its hint, and its tests. The input is studies and
//! runs of the crate `model`; there is no I/O.

mod at_once;
mod busy_threads;
pub mod capacity;
pub mod checks;
pub mod class_times;
mod connects;
mod cut_short;
pub mod event;
pub mod event_repeats;
pub mod expectations;
pub mod findings;
mod free_threads;
pub mod frontier;
pub mod limits;
pub mod named_runs;
pub mod next;
mod no_response;
mod outcome;
mod response_checks;
mod server_limit;
mod server_seen;
pub mod signals;
pub mod size_search;
mod steps;
mod sweep_points;
pub mod thresholds;
pub mod tried_sizes;
pub mod trust;
pub mod verdict;
pub mod watch;
mod with_all_threads;
pub mod words;

pub use busy_threads::of as busy_threads;
pub use checks::{Assessment, Grade, assess, grade};
pub use cut_short::{is_cut_short, is_shorter, is_unfinished, runs_so_far, sentence_so_far};
pub use findings::{Finding, FindingRole, busy_others, findings, others_beyond};
pub use no_response::explain_no_response;
pub use outcome::StudyOutcome;
pub use response_checks::{ResponseCheckResult, response_checks};
pub use server_limit::server_limit;
pub use server_seen::{LoadSeen, ServerSeen};
