//! A small simulator, event by event, for what has no formula: other laws of service, split queues of any law, turns of ten
//! with think time and hold.
//!
//! It is a pure function of its seed. A law is a function of a seed and a number, as everything random in longtail is, so
//! that a law of the sink can be simulated as it is. It answers with an interval: of some independent replications, each
//! with a warm-up that is left out, by Student's t (Law and Kelton, Simulation Modeling and Analysis, 9.4). The interval is
//! of chance alone: that of a queue near saturation, whose warm-up is longer than the run, is too narrow.

mod closed;
mod estimate;
mod open;

pub use closed::{Pool, Throttle, closed, closed_dealt_anew, closed_throttled, dealt_by_throttle};
pub(crate) use estimate::nearest_rank;
pub use estimate::{Effort, Estimate, Simulated};
pub use open::{Queues, open};

/// A law of times: the `number`-th draw of the stream `seed`.
pub type Law<'a> = &'a dyn Fn(u64, u64) -> f64;

/// Always `time`.
pub fn constant(time: f64) -> impl Fn(u64, u64) -> f64 {
    move |_, _| time
}

/// Exponential with that mean.
pub fn exponential(mean: f64) -> impl Fn(u64, u64) -> f64 {
    move |seed, number| -mean * model::pace::uniform(seed, number).ln()
}

/// Which law draws, so that each has a stream of its own.
#[derive(Clone, Copy)]
enum Stream {
    Arrival,
    Service,
    Worker,
    Think,
}

/// The seed of a stream of a replication.
fn stream(seed: u64, replication: u32, stream: Stream) -> u64 {
    // The draws mix their seed: neighbours are strangers.
    seed.wrapping_mul(1 << 10).wrapping_add(u64::from(replication)).wrapping_mul(4).wrapping_add(stream as u64)
}

#[cfg(test)]
mod tests;
