//! What Ruby's global lock leaves of threads: those of a worker compute one at a time.
//!
//! The lines of the orders of service take no account of it. Here is what a worker of each number of threads can do: at most, by any
//! law, and with all threads busy where the times scatter exponentially, for which the formula is exact (`queueing::gvl`).

use std::collections::BTreeSet;

use queueing::Invalid;
use queueing::gvl::{self, Work};
use serde::Serialize;

use super::{Server, closed, nanos};
use crate::args::PredictLoad;

/// Numbers of threads that are compared, beside the server's own.
const THREADS: [u32; 9] = [1, 2, 3, 4, 5, 8, 12, 16, 32];

/// What the lock leaves.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Lock {
    /// How long a request holds it.
    pub(crate) cpu_ns: u64,
    /// What the workers can do at most, however many threads they have.
    pub(crate) at_most_per_s: f64,
    pub(crate) by_threads: Vec<ByThreads>,
}

/// Workers of one number of threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ByThreads {
    /// Of each worker.
    pub(crate) threads: u32,
    /// All workers', at most, by any law.
    pub(crate) at_most_per_s: f64,
    /// All workers', with all threads busy.
    pub(crate) all_busy_per_s: f64,
    /// That, of what as many slots would do without the lock.
    pub(crate) of_slots: f64,
    /// With the connections of a closed loop, dealt evenly to the workers; null in an open one.
    pub(crate) closed: Option<Closed>,
    /// The rate of an open loop, of that with all threads busy: from 1 on there is no steady state; null in a closed one.
    pub(crate) offered_of_all_busy: Option<f64>,
}

/// What a closed loop has.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Closed {
    pub(crate) rate_per_s: f64,
    pub(crate) response_mean_ns: u64,
}

/// What the lock leaves of this server, of whose service time a request holds it for `cpu` seconds.
///
/// # Errors
/// Where that is not above 0 or leaves nothing of the service time, or a worker has more connections than are computed.
pub(super) fn lock(server: &Server, cpu: f64, load: PredictLoad) -> Result<Lock, Invalid> {
    let work = Work { io: server.service() - cpu, cpu };
    let all: BTreeSet<u32> = THREADS.into_iter().chain([server.threads]).collect();
    let workers = f64::from(server.workers);
    let of = |threads: u32| {
        let all_busy = workers * gvl::saturated_rate(threads, work)?;
        Ok(ByThreads {
            threads,
            at_most_per_s: workers * gvl::highest_rate(threads, work)?,
            all_busy_per_s: all_busy,
            of_slots: all_busy * server.service() / (workers * f64::from(threads)),
            closed: match load {
                PredictLoad::Open(_) => None,
                PredictLoad::Closed(connections, think) => {
                    Some(with(&closed::dealt(connections, server.workers), threads, work, think.as_secs_f64())?)
                }
            },
            offered_of_all_busy: match load {
                PredictLoad::Open(rate) => Some(rate.per_second() / all_busy),
                PredictLoad::Closed(..) => None,
            },
        })
    };
    Ok(Lock {
        cpu_ns: nanos(cpu),
        at_most_per_s: workers / cpu,
        by_threads: all.into_iter().map(of).collect::<Result<_, Invalid>>()?,
    })
}

/// Workers that have so many connections each, together.
fn with(dealt: &[u32], threads: u32, work: Work, think: f64) -> Result<Closed, Invalid> {
    let each = dealt.iter().map(|connections| gvl::worker(*connections, threads, work, think));
    let each: Vec<gvl::Answer> = each.collect::<Result<_, _>>()?;
    let rate: f64 = each.iter().map(|worker| worker.rate).sum();
    let time: f64 = each.iter().map(|worker| worker.rate * worker.response).sum();
    Ok(Closed { rate_per_s: rate, response_mean_ns: nanos(time / rate) })
}
