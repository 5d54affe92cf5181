//! How far Ruby's global lock limits a server, because only one thread of a worker computes at a
//! time, and how far its CPUs do.
//!
//! The predicted queues take no account of either. Here is, for several numbers of threads, what
//! the workers can do: at most, whatever the distribution of the times; and with all threads busy,
//! if the times are exponential. Then the formula is exact (`closed_loop`) as long as each worker
//! finds a CPU.

use std::collections::BTreeSet;

use model::Nanos;
use serde::Serialize;

use super::server::{PredictedLoad, PredictedServer, RequestCpu, ServerCpus};
use crate::QueueingError;
use crate::closed_loop::{WorkerDemand, dealt_evenly, highest_rate, saturated_rate, worker};

/// Numbers of threads that are compared, beside the server's own.
const THREADS: [u32; 8] = [1, 2, 3, 4, 5, 8, 16, 32];

/// If lock and CPUs allow less than this part of the rate that the slots would have without them,
/// they are the limit.
const LOCK_MATTERS: f64 = 0.95;

/// More threads of a worker than this are not looked at.
const MOST_THREADS: u32 = 64;

/// Threads that do this part of what lock and CPUs allow are enough.
const ENOUGH: f64 = 0.95;

/// The fewest threads of a worker that do nearly all that lock and CPUs allow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EnoughThreads {
    /// If requests never wait for each other: fewer cannot do it, whatever the law of the times.
    pub least: u32,
    /// If the times scatter exponentially.
    pub most: u32,
    /// What part of it `most` threads do then.
    pub part: f64,
}

/// The fewest threads of a worker with which hardly any request of an open loop waits long for one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShortWaits {
    /// Threads of each worker.
    pub threads: u32,
    /// The rate of the open loop, of all workers.
    pub rate_per_s: f64,
}

/// The share of the requests that wait no longer than their service time.
pub const WAIT_SHORTLY: f64 = 0.99;

/// How far the lock and the CPUs limit a server.
#[derive(Clone, Debug, Serialize)]
pub struct RubyLock {
    /// How long a request holds the lock.
    pub cpu_ns: Nanos,
    /// The CPUs of all workers.
    pub cpus: ServerCpus,
    /// The most that the workers can do by the lock, however many threads they have.
    pub at_most_per_s: f64,
    /// Whether threads wait for the lock, or for a CPU, so much that only rates are known.
    pub binds: bool,
    /// How many threads of a worker do nearly all that lock and CPUs allow; null if that takes more
    /// than 64.
    pub enough: Option<EnoughThreads>,
    /// With how many 99 of 100 requests of an open loop wait for a thread no longer than the service
    /// time; null in a closed loop, or if that takes more than 64.
    pub short_waits: Option<ShortWaits>,
    /// A line for each number of threads.
    pub by_threads: Vec<ThreadsUnderLock>,
    /// Which of these lines has the server's own number.
    #[serde(skip)]
    asked: usize,
}

impl RubyLock {
    /// Workers with the server's own number of threads.
    pub fn asked(&self) -> &ThreadsUnderLock {
        &self.by_threads[self.asked]
    }
}

/// Workers with one number of threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ThreadsUnderLock {
    /// Threads of each worker.
    pub threads: u32,
    /// The most that all workers do, by any law.
    pub at_most_per_s: f64,
    /// What all workers do with all threads busy; with more workers than CPUs it may be less.
    pub all_busy_per_s: f64,
    /// The same as a part of what as many slots would do without the lock.
    pub of_slots: f64,
    /// With the connections of a closed loop dealt evenly to the workers; null in an open one.
    pub closed: Option<LockedLoop>,
    /// The rate of an open loop as a part of the rate with all threads busy: from 1 on there is no
    /// steady state. Null in a closed loop.
    pub offered_of_all_busy: Option<f64>,
}

/// What a closed loop does under the lock.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LockedLoop {
    /// Completed per second.
    pub rate_per_s: f64,
    /// Mean response time.
    pub response_mean_ns: Nanos,
}

/// How far the lock and the CPUs limit this server.
///
/// # Errors
/// If a request computes for no time or for longer than its service time, or a worker has more
/// connections than there is an answer for.
pub(crate) fn ruby_lock(
    server: &PredictedServer,
    cpu: RequestCpu,
    load: PredictedLoad,
) -> Result<RubyLock, QueueingError> {
    let seconds = cpu.time.as_secs_f64();
    let demand = WorkerDemand { io: server.service() - seconds, cpu: seconds };
    let numbers: BTreeSet<u32> = THREADS.into_iter().chain([server.threads]).collect();
    let asked = numbers.iter().take_while(|threads| **threads < server.threads).count();
    let by_cpus = cpu.cpus.count / seconds;
    let mut by_threads = Vec::new();
    for threads in numbers {
        by_threads.push(threads_under_lock(server, threads, demand, by_cpus, load)?);
    }
    let overloads = by_threads[asked].offered_of_all_busy.is_some_and(|offered| offered >= 1.0);
    Ok(RubyLock {
        cpu_ns: cpu.time,
        cpus: cpu.cpus,
        at_most_per_s: f64::from(server.workers) / seconds,
        binds: by_threads[asked].of_slots < LOCK_MATTERS || overloads,
        enough: enough(server, demand, by_cpus)?,
        short_waits: match load {
            PredictedLoad::Open(rate) => short_waits(server, demand, by_cpus, rate.per_second())?,
            PredictedLoad::Closed { .. } => None,
        },
        by_threads,
        asked,
    })
}

/// How many threads of each worker are enough.
fn enough(
    server: &PredictedServer,
    demand: WorkerDemand,
    by_cpus: f64,
) -> Result<Option<EnoughThreads>, QueueingError> {
    let workers = f64::from(server.workers);
    let allowed = (workers / demand.cpu).min(by_cpus);
    let mut least = None;
    for threads in 1..=MOST_THREADS {
        let part = |rate: f64| (workers * rate).min(by_cpus) / allowed;
        if least.is_none() && part(highest_rate(threads, demand)?) >= ENOUGH {
            least = Some(threads);
        }
        let part = part(saturated_rate(threads, demand)?);
        if part >= ENOUGH {
            return Ok(least.map(|least| EnoughThreads { least, most: threads, part }));
        }
    }
    Ok(None)
}

/// With how many threads of each worker [`WAIT_SHORTLY`] of the requests of an open loop wait no longer
/// than the service time. Each worker gets its share of the arrivals at random.
fn short_waits(
    server: &PredictedServer,
    demand: WorkerDemand,
    by_cpus: f64,
    rate_per_s: f64,
) -> Result<Option<ShortWaits>, QueueingError> {
    let workers = f64::from(server.workers);
    let mut rates = Vec::new();
    for threads in 1..=MOST_THREADS {
        rates.push(saturated_rate(threads, demand)?.min(by_cpus / workers));
        if wait_above(&rates, rate_per_s / workers, server.service()) <= 1.0 - WAIT_SHORTLY {
            return Ok(Some(ShortWaits { threads, rate_per_s }));
        }
    }
    Ok(None)
}

/// The share of the random arrivals at a worker that wait for a thread longer than `time`, where it
/// completes `rates[n - 1]` requests a second with `n` of its threads busy: Erlang's queue (M/M/c)
/// with a rate that grows more slowly than the number of busy threads. `1` without a steady state.
fn wait_above(rates: &[f64], arrivals: f64, time: f64) -> f64 {
    let Some(all_busy) = rates.last().copied().filter(|rate| arrivals < *rate) else { return 1.0 };
    // The weights of 0, 1, … requests inside as parts of that of 0.
    let mut weight = 1.0;
    let mut fewer = 0.0;
    for rate in rates {
        fewer += weight;
        weight *= arrivals / rate;
    }
    // From all threads busy on, each weight is the same part of the one before.
    let all_are_busy = weight / (1.0 - arrivals / all_busy);
    let delayed = all_are_busy / (fewer + all_are_busy);
    delayed * (-(all_busy - arrivals) * time).exp()
}

/// Workers with this number of threads, whose CPUs do at most `by_cpus` requests per second.
fn threads_under_lock(
    server: &PredictedServer,
    threads: u32,
    demand: WorkerDemand,
    by_cpus: f64,
    load: PredictedLoad,
) -> Result<ThreadsUnderLock, QueueingError> {
    let workers = f64::from(server.workers);
    let all_busy = (workers * saturated_rate(threads, demand)?).min(by_cpus);
    let mut line = ThreadsUnderLock {
        threads,
        at_most_per_s: (workers * highest_rate(threads, demand)?).min(by_cpus),
        all_busy_per_s: all_busy,
        of_slots: all_busy * server.service() / (workers * f64::from(threads)),
        closed: None,
        offered_of_all_busy: None,
    };
    match load {
        PredictedLoad::Open(rate) => {
            line.offered_of_all_busy = Some(rate.per_second() / all_busy);
        }
        PredictedLoad::Closed { connections, think } => {
            let think = think.as_secs_f64();
            let mut rate = 0.0;
            for dealt in dealt_evenly(connections, server.workers) {
                if dealt > 0 {
                    rate += worker(dealt, threads, demand, think)?.rate;
                }
            }
            rate = rate.min(by_cpus);
            // Little's law of the whole cycle: connections = rate x (response time + think time).
            let response = f64::from(connections) / rate - think;
            line.closed = Some(LockedLoop {
                rate_per_s: rate,
                response_mean_ns: Nanos::from_secs_f64(response),
            });
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_loop::{ErlangQueue, OfferedLoad, SteadyQueue as _};

    #[test]
    fn without_the_lock_the_waits_are_those_of_erlangs_queue() {
        for (slots, arrivals) in [(1, 0.5), (3, 2.0), (8, 7.5)] {
            let rates: Vec<f64> = (1..=slots).map(f64::from).collect();
            let load = OfferedLoad::new(slots, arrivals, 1.0).unwrap();
            let erlang = ErlangQueue::new(load).unwrap();
            for time in [0.0, 0.3, 2.0] {
                let ours = wait_above(&rates, arrivals, time);
                assert!((ours - erlang.wait_above(time)).abs() < 1e-12, "{slots}: {ours}");
            }
        }
        assert!((wait_above(&[1.0], 1.0, 9.0) - 1.0).abs() < f64::EPSILON, "overload");
    }
}
