//! The search for the highest rate that keeps an objective, as a pure state machine: observations
//! in, the next rate and length out, or the end with its reason.
//!
//! Nothing here sends a request, reads a clock or prints. `sweep` runs the trials that a
//! [`RateSearch`] orders, and the tests run them against simulated servers in virtual time.
//!
//! A trial passes if the share of its requests that were late or failed is significantly below what
//! the objective allows, and fails if it is significantly above; else it is undecided. So a lucky
//! trial does not raise the answer, as it does in a bisection over measured percentiles.

mod binomial;
mod evidence;
mod late_counts;
mod rate_objective;
mod search;

pub use binomial::{likely_at_least, likely_at_most};
pub use evidence::LateShare;
pub use late_counts::LateCounts;
pub use rate_objective::RateObjective;
pub use search::{RateSearch, SearchSettings, SearchStep, TrialEnding, TrialLook, TrialOrder};
