//! What Ruby's global lock leaves of threads: those of a worker compute one at a time.
//!
//! The lines of the orders of service take no account of it. Here is what a worker of each number of threads can do: at most, by any
//! law, and with all threads busy where the times scatter exponentially, for which the formula is exact (`queueing::machine_repair`).

use std::collections::BTreeSet;

use queueing::QueueingError;
use queueing::closed_loop::dealt_evenly;
use queueing::machine_repair::{WorkerDemand, highest_rate, saturated_rate, worker};
use serde::Serialize;

use super::{PredictedServer, nanos};
use crate::args::PredictLoad;

/// Numbers of threads that are compared, beside the server's own.
const THREADS: [u32; 8] = [1, 2, 3, 4, 5, 8, 16, 32];

/// What the lock leaves.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RubyLock {
    /// How long a request holds it.
    pub(crate) cpu_ns: u64,
    /// What the workers can do at most, however many threads they have.
    pub(crate) at_most_per_s: f64,
    pub(crate) by_threads: Vec<LockedThreads>,
}

/// Workers of one number of threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LockedThreads {
    /// Of each worker.
    pub(crate) threads: u32,
    /// All workers', at most, by any law.
    pub(crate) at_most_per_s: f64,
    /// All workers', with all threads busy.
    pub(crate) all_busy_per_s: f64,
    /// That, of what as many slots would do without the lock.
    pub(crate) of_slots: f64,
    /// With the connections of a closed loop, dealt evenly to the workers; null in an open one.
    pub(crate) closed: Option<LockedLoop>,
    /// The rate of an open loop, of that with all threads busy: from 1 on there is no steady state; null in a closed one.
    pub(crate) offered_of_all_busy: Option<f64>,
}

/// What a closed loop has.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LockedLoop {
    pub(crate) rate_per_s: f64,
    pub(crate) response_mean_ns: u64,
}

/// What the lock leaves of this server, of whose service time a request holds it for `cpu` seconds.
///
/// # Errors
/// Where that is not above 0 or leaves nothing of the service time, or a worker has more connections than are computed.
pub(super) fn lock(server: &PredictedServer, cpu: f64, load: PredictLoad) -> Result<RubyLock, QueueingError> {
    let demand = WorkerDemand { io: server.service() - cpu, cpu };
    let workers = f64::from(server.workers);
    let of = |threads: u32| {
        let all_busy = workers * saturated_rate(threads, demand)?;
        let (closed, offered) = match load {
            PredictLoad::Open(rate) => (None, Some(rate.per_second() / all_busy)),
            PredictLoad::Closed(connections, think) => {
                let (mut rate, mut in_flight) = (0.0, 0.0);
                for dealt in dealt_evenly(connections, server.workers).into_iter().filter(|count| *count > 0) {
                    let means = worker(dealt, threads, demand, think.as_secs_f64())?;
                    rate += means.rate;
                    in_flight += means.rate * means.response;
                }
                (Some(LockedLoop { rate_per_s: rate, response_mean_ns: nanos(in_flight / rate) }), None)
            }
        };
        Ok(LockedThreads {
            threads,
            at_most_per_s: workers * highest_rate(threads, demand)?,
            all_busy_per_s: all_busy,
            of_slots: all_busy * server.service() / (workers * f64::from(threads)),
            closed,
            offered_of_all_busy: offered,
        })
    };
    let all: BTreeSet<u32> = THREADS.into_iter().chain([server.threads]).collect();
    let by_threads = all.into_iter().map(of).collect::<Result<_, QueueingError>>()?;
    Ok(RubyLock { cpu_ns: nanos(cpu), at_most_per_s: workers / cpu, by_threads })
}
