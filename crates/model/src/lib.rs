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

pub use anatomy::{Anatomy, AppTime, Dissection};
pub use backlog::{Backlog, BacklogSamples};
pub use bad_response::{BadResponse, BadResponses, WrongLengths};
pub use batches::{Batches, ResponseTimeMap};
pub use bodies::{BodiesPlan, BodiesStudy, BodyRun, ServerUse, SocketServer};
pub use body::{Bodies, Body, BodyKind};
pub use chunked::ChunkedDecoder;
pub use claimed::{Believable, GeneratorClaim};
pub use clock::{Clock, SystemClock};
pub use comparison::{ComparisonPlan, ComparisonRun, ComparisonStudy, Metric};
pub use control::{ControlAddress, ControlServer};
pub use counts::Counts;
pub use cpus::{Cpus, Placement};
pub use diagnostic::{Diagnostic, EndedBy};
pub use environment::{Environment, PumaSettings, ServerFacts};
pub use exchange::{Exchange, Outcome};
pub use finding::{Finding, FindingRole, findings};
pub use forecast::Forecast;

pub use generator::{Ceiling, FarGenerator, GeneratorFacts, LaneFacts, ProcessCpu, ServerCpu};
pub use grade::Grade;
pub use groups::TwoGroups;
pub use histogram::Histogram;
pub use judged_threshold::{ThresholdDoubt, ThresholdResult};
pub use judgement::{Judgement, Verdict};
pub use kernel::{KernelView, ProcessWaits};
pub use lanes::LaneCountReason;
pub use limit::{CpuUsage, Limit};
pub use load::LoadPlan;
pub use network::{NetworkPath, ServerLocation};
pub use networks::AllowedNetworks;
pub use objective::{Objective, Threshold};
pub use pace::{Arrivals, DueTimes, Pace, Profile};
pub use phases::{DurationSummary, Phases};
pub use plan::{
    App, LatePolicy, Plan, Probe, ProbeUsed, ServerKind, ServerPlan, Socket, Stop, StreamPlan, Threads, Timestamps,
    Timing,
};
pub use quantile::Quantile;
pub use request::{Request, RequestOrder};
pub use run::{Run, WorkerShare};
pub use series::Series;
pub use statistics::Statistics;
pub use statsd::{MetricKind, StatsdFigures, StatsdMetric, StatsdReport};
pub use study::{LoadStudy, Study, SweepStudy};
pub use tally::{Tally, Window};
pub use theory::{Discipline, Theory};
pub use units::{Nanos, Rate};
pub use waits::Waits;
pub use watch::Watch;
