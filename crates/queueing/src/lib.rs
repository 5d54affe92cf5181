//! What ought to be: queueing theory as pure functions, each with its formula, source and range of validity.
//!
//! Nothing here measures, reads a clock or does I/O. A formula that is about one time takes [`model::Nanos`] (`closed`);
//! all others take plain numbers in one unit of time of the caller's choice: with seconds, rates are per second; with the
//! service time as unit, they are the tables of the books. What has no answer is an [`Invalid`], never a NaN.
//!
//! In Kendall's letters, arrivals / service / slots: M is exponential, D constant, G any.
//!
//! | question | file |
//! |---|---|
//! | closed loop without think time: the ideal, its levels | `closed` |
//! | closed loop with think time | `machine_repair` |
//! | even arrivals, bursts, overload: the staircase; slots and capacity from its slope | `staircase` |
//! | Poisson arrivals, exponential service: Erlang's formulas | `erlang`, `exponential_wait`; with a full backlog `mmck` |
//! | Poisson arrivals, constant service | `mdc` |
//! | even arrivals, exponential service | `dmc` |
//! | any law, as an approximation | `ggc` |
//! | one queue or one a worker; who gets which connection | `split`, `assignment` |
//! | Puma 5 and 6 with keep-alive: turns of ten | `polling` |
//! | Puma from 7.0.4: the accept throttle | `throttle` |
//! | Ruby's global lock: many threads, one of them computing | `gvl` |
//! | limits without any law | `bounds`; what must add up: `identities` |
//! | the highest load that keeps an objective | `capacity` |
//! | does it scale? | `usl` |
//! | what has no formula | `simulate` |
//! | what wrk's tables show of a distribution | `phantom` |
//! | which of these is it that was measured? | `discipline`; a sweep's run beside all of them: `beside` |

pub mod assignment;
pub mod beside;
mod birth_death;
pub mod bounds;
pub mod capacity;
mod check;
pub mod closed;
pub mod discipline;
pub mod dmc;
pub mod erlang;
mod error;
pub mod exponential_wait;
pub mod ggc;
pub mod gvl;
pub mod identities;
mod linear;
mod load;
pub mod machine_repair;
pub mod mdc;
pub mod mmck;
pub mod phantom;
mod poisson;
pub mod polling;
mod search;
pub mod simulate;
pub mod split;
pub mod staircase;
pub mod throttle;
pub mod usl;

pub use error::Invalid;
pub use load::Load;
