//! The words of longtail, as types: what was asked (`Plan`), what happened (`Exchange`, `Tally`, `Run`), what was
//! expected (`Forecast`), what is doubtful (`Caveat`), and the whole of it (`Study`, the file format).
//!
//! Nothing here does I/O, reads a clock or starts a thread. Every other crate knows this one; this one knows none.

pub mod batches;
pub mod bodies;
pub mod body;
pub mod caveat;
pub mod claimed;
pub mod clock;
pub mod counts;
pub mod doubts;
pub mod environment;
pub mod exchange;
pub mod forecast;
pub mod gate;
pub mod generator;
pub mod histogram;
pub mod interval;
pub mod load;
pub mod objective;
pub mod order;
pub mod pace;
pub mod phases;
pub mod plan;
pub mod quantile;
pub mod rate;
pub mod reading;
pub mod request;
pub mod run;
pub mod series;
pub mod statistics;
pub mod steadiness;
pub mod study;
pub mod tally;
pub mod units;
pub mod verdict;

pub use batches::Batches;
pub use bodies::{BodiesPlan, BodiesStudy, BodyRun, ServerUse, SocketServer};
pub use body::{Bodies, Body, BodyKind};
pub use caveat::Caveat;
pub use claimed::{ClaimedLoadStudy, ClaimedRow, ClaimedRun};
pub use clock::Clock;
pub use counts::Counts;
pub use environment::{Environment, ServerFacts};
pub use exchange::{Exchange, Outcome};
pub use forecast::Forecast;
pub use gate::{Gate, Grade};
pub use generator::{Ceiling, GeneratorFacts, LaneFacts};
pub use histogram::Histogram;
pub use load::{Late, LoadPlan, LoadRun, Timestamps, Timing};
pub use objective::Objective;
pub use order::Order;
pub use pace::{Arrivals, Pace, Profile, Schedule};
pub use phases::{Phases, Summary};
pub use plan::{App, Plan, ServerKind, ServerPlan, Socket, Stop, StreamPlan, Threads};
pub use quantile::Quantile;
pub use rate::Rate;
pub use reading::Reading;
pub use request::Request;
pub use run::{Run, WorkerShare};
pub use series::Series;
pub use statistics::Statistics;
pub use study::{LoadStudy, Study, SweepStudy};
pub use tally::{Tally, Window};
pub use units::Nanos;
pub use verdict::{Judgement, Verdict};
