//! Longtail's vocabulary, as types: what was asked for (`Plan`), what happened (`Exchange`,
//! `Tally`, `Run`), what was expected (`Forecast`), what is doubtful (`Diagnostic`), and all of it
//! together (`Study`, the file format).
//!
//! Nothing here does I/O, reads a clock (except `clock.rs`) or starts a thread. Nearly every other
//! crate depends on this one; this one depends on none.

pub mod app_time;
pub mod backlog;
mod batch_width;
pub mod batches;
pub mod bodies;
pub mod body;
pub mod broken;
pub mod capacity;
pub mod chunked;
pub mod claimed;
pub mod class_tally;
pub mod clock;
pub mod comparison;
pub mod counts;
pub mod delay_law;
pub mod diagnostic;
pub mod endpoint;
pub mod environment;
pub mod event;
pub mod event_record;
pub mod event_requests;
pub mod exchange;
pub mod generator;
pub mod histogram;
pub mod kernel;
pub mod limit;
pub mod number;
pub mod objective;
pub mod pace;
pub mod paths;
pub mod phases;
pub mod plan;
pub mod plausible;
pub mod queue_header;
mod recorded_times;
pub mod redirect;
pub mod request_mix;
mod retry;
pub mod run;
mod run_figure;
mod run_of_class;
pub mod samples;
pub mod secret;
mod server_kind;
mod server_size;
mod service_time;
mod silence;
mod slow_clients;
mod socket;
pub mod statistics;
pub mod steadiness;
mod steps;
pub mod study;
pub mod tally;
#[cfg(test)]
mod test_fixtures;
pub mod theory;
mod turns;
pub mod unfinished;
pub mod units;
mod usual_time;

// Every type is exported at the root; its file has its invariants.
pub use counts::{BadResponse, BadResponses, Counts, WrongLengths};
pub use event::{EventKind, PlannedEvent, PumaAbility, PumaSetup};
pub use event_record::{EventCommand, EventRecord, OthersCpu, ProcessRole, SeenProcess};
pub use event_requests::{EventRequests, EventTimes, RequestsOfPart, RunPart, TimedRequest};

pub use self::{
    app_time::*,
    backlog::*,
    batches::*,
    bodies::*,
    body::*,
    broken::*,
    capacity::*,
    chunked::*,
    claimed::*,
    class_tally::*,
    clock::*,
    comparison::*,
    delay_law::*,
    diagnostic::*,
    endpoint::*,
    environment::*,
    exchange::*,
    generator::*,
    histogram::*,
    kernel::*,
    limit::*,
    objective::*,
    pace::*,
    phases::*,
    plan::*,
    queue_header::{QueueHeader, QueueTimes},
    recorded_times::*,
    redirect::*,
    request_mix::*,
    retry::RetryPolicy,
    run::*,
    samples::*,
    secret::{Maskable, MaskedText, Private},
    server_kind::*,
    server_size::ServerSize,
    silence::{Silence, common_silences},
    slow_clients::*,
    socket::*,
    statistics::*,
    steps::{StepRecord, StepTallies},
    study::*,
    tally::*,
    theory::*,
    turns::*,
    unfinished::*,
    units::*,
};
