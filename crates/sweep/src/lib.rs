//! Conducts studies: starts servers, waits until they are ready, drives their runs, asks server and
//! kernel what they saw, and puts each run's theory and warnings beside it.
//!
//! This is where the other crates meet. It prints nothing and writes no file: an [`Observer`]
//! learns what happens.

mod block;
mod bodies;
mod boot;
mod capacity;
mod ceiling;
mod class_alone;
mod compare;
mod conduct;
mod context;
mod event;
mod event_command;
mod far;
mod figures_so_far;
mod kernel;
mod listeners;
mod load;
mod misunderstanding;
mod observe;
mod other_generator;
mod others_cpu;
mod prepare;
mod response_checks;
mod samples;
mod server_count;
mod server_gone;
mod servers;
pub mod service_time;
mod session;
mod signals;
mod statsd;
mod sweep;
mod theory;
mod time_left;
mod trend;

pub use bodies::conduct_bodies;
pub use capacity::{check_objective, conduct_capacity, conduct_capacity_of, conduct_sizes};
pub use ceiling::start_sink;
pub use compare::conduct_comparison;
pub use context::{
    Ceilings, ClaimedRun, Context, Observer, OtherGenerator, Phase, SweepError, Task, TimeLeft,
};
pub use event::EventOrder;
pub use far::{FarGenerators, FarHost, LoadPart, NamedPart, drive_load_part, merge_parts, serve};
pub use figures_so_far::{FiguresMeter, FiguresSoFar};
pub use load::{LoadObservers, PreparedLoad, RequestJournal, conduct_load};
pub use misunderstanding::misunderstanding;
pub use other_generator::observe_claimed;
pub use prepare::{LoadDraft, prepare_load};
pub use probe::host::environment;
pub use response_checks::{CheckedResponses, ResponseCheck, ResponseChecker};
pub use samples::LiveReadings;
pub use signals::{SignalsEnd, SignalsOutcome, SignalsPlan, conduct_signals, conduct_signals_of};
pub use statsd::StatsdListener;
pub use sweep::conduct_sweep;
