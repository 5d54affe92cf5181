//! Random servers: how long they work, what is inside them, and what their real limit is.

use model::pace::uniform;

/// A stream of random numbers.
pub(crate) struct Chance {
    seed: u64,
    number: u64,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance { seed, number: 0 }
    }

    /// A uniform random number from (0, 1].
    pub(crate) fn draw(&mut self) -> f64 {
        self.number += 1;
        uniform(self.seed, self.number)
    }

    pub(crate) fn happens(&mut self, share: f64) -> bool {
        self.draw() <= share
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.draw()
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[((self.draw() * all.len() as f64) as usize).min(all.len() - 1)]
    }
}

/// The distribution of work per request, relative to the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Law {
    Constant,
    Exponential,
    /// `times` the mean with probability `rare`, otherwise less.
    Bimodal {
        rare: f64,
        times: f64,
    },
    LogNormal {
        sigma: f64,
    },
}

impl Law {
    /// Coefficients of variation up to 4.
    fn random(chance: &mut Chance) -> Law {
        let variation = chance.between(0.2, 4.0);
        match (chance.draw() * 4.0) as u32 {
            0 => Law::Constant,
            1 => Law::Exponential,
            2 => {
                let rare: f64 = chance.between(0.01, 0.1);
                let times = 1.0 + variation * ((1.0 - rare) / rare).sqrt();
                Law::Bimodal { rare, times: times.min(0.95 / rare) }
            }
            _ => Law::LogNormal { sigma: variation.powi(2).ln_1p().sqrt() },
        }
    }

    pub(crate) fn draw(self, chance: &mut Chance) -> f64 {
        match self {
            Law::Constant => 1.0,
            Law::Exponential => -chance.draw().ln(),
            Law::Bimodal { rare, times } => {
                let usual = (1.0 - rare * times) / (1.0 - rare);
                if chance.happens(rare) { times } else { usual }
            }
            Law::LogNormal { sigma } => {
                let normal = (-2.0 * chance.draw().ln()).sqrt()
                    * (std::f64::consts::TAU * chance.draw()).cos();
                (sigma * normal - sigma * sigma / 2.0).exp()
            }
        }
    }

    /// Standard deviation over mean.
    fn variation(self) -> f64 {
        match self {
            Law::Constant => 0.0,
            Law::Exponential => 1.0,
            Law::Bimodal { rare, times } => (times - 1.0) * (rare / (1.0 - rare)).sqrt(),
            Law::LogNormal { sigma } => sigma.powi(2).exp_m1().sqrt(),
        }
    }
}

/// A pool or a lock that part of each request needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inner {
    /// How many requests may hold it at a time.
    pub(crate) places: u32,
    /// The share of a request's work that needs it.
    pub(crate) part: f64,
    /// Whether each worker has its own.
    pub(crate) of_each_worker: bool,
}

/// How the work of a request changes with the number of requests served before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drift {
    None,
    /// Each request makes the later ones longer, by this share of the mean.
    Leak(f64),
    /// The first `requests` take `times` as long.
    Warming {
        requests: u64,
        times: f64,
    },
}

/// Regular pauses in which nothing works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalls {
    /// From the start of one to the start of the next, in seconds.
    pub(crate) every: f64,
    pub(crate) length: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    pub(crate) workers: u32,
    /// Threads of all workers; `None` if the server takes any number of requests at once.
    pub(crate) threads: Option<u32>,
    /// Additional threads that come and go: from none up to this many in a run.
    pub(crate) io_threads: u32,
    /// Requests at a time, as the judge is told.
    pub(crate) stated: u32,
    pub(crate) inner: Option<Inner>,
    pub(crate) law: Law,
    /// The mean work of a request, in seconds.
    pub(crate) mean: f64,
    /// Requests of a connection that are served in a row while others wait.
    pub(crate) turn: u32,
    /// Whether each worker has a queue of its own, in which a connection stays.
    pub(crate) has_own_lines: bool,
    pub(crate) drift: Drift,
    pub(crate) stalls: Option<Stalls>,
    /// The network round trip, in seconds.
    pub(crate) way: f64,
    /// How much longer the first request of each worker takes, in seconds.
    pub(crate) first: f64,
    /// Whether it reports how many of its threads are busy, and which worker sent each response.
    pub(crate) tells_busy: bool,
}

impl Server {
    pub(crate) fn random(chance: &mut Chance) -> Server {
        let threads = chance.between(1.0, 41.0) as u32;
        let workers = chance.one_of(&[1, 1, 2, 4]);
        let workers = if threads.is_multiple_of(workers) { workers } else { 1 };
        let is_async = chance.happens(0.08);
        let has_io_threads = !is_async && chance.happens(0.08);
        let stated = match chance.draw() {
            draw if draw < 0.85 => threads,
            draw if draw < 0.92 => (threads / 2).max(1),
            _ => threads * 2,
        };
        let of_each_worker = chance.happens(0.5);
        let sharing = if of_each_worker { threads / workers } else { threads };
        let inner = match chance.draw() {
            draw if is_async || draw < 0.45 => None,
            draw if draw < 0.65 => Some(Inner {
                places: (chance.between(0.1, 1.0) * f64::from(sharing)).ceil() as u32,
                part: 1.0,
                of_each_worker,
            }),
            draw if draw < 0.8 => Some(Inner { places: 1, part: 1.0, of_each_worker }),
            _ => Some(Inner { places: 1, part: chance.between(0.02, 0.6), of_each_worker }),
        };
        // Half of the servers are far away. Only near ones serve in turns.
        let way = if chance.happens(0.5) { chance.between(0.0, 0.02) } else { 0.0 };
        let drift = match chance.draw() {
            draw if draw < 0.05 => Drift::Leak(chance.between(0.1, 2.0) / 10_000.0),
            draw if draw < 0.10 => Drift::Warming {
                requests: chance.between(50.0, 2000.0) as u64,
                times: chance.between(1.5, 5.0),
            },
            _ => Drift::None,
        };
        let stalls = Stalls { every: chance.between(1.0, 5.0), length: chance.between(0.1, 0.5) };
        Server {
            workers,
            threads: (!is_async).then_some(threads),
            io_threads: if has_io_threads { threads } else { 0 },
            stated,
            inner,
            law: Law::random(chance),
            mean: 0.02 * 15_f64.powf(chance.draw()),
            turn: if way == 0.0 && chance.happens(0.3) { 10 } else { 1 },
            has_own_lines: workers > 1 && chance.happens(0.3),
            drift,
            stalls: chance.happens(0.1).then_some(stalls),
            way,
            first: if chance.happens(0.2) { chance.between(0.5, 3.0) } else { 0.0 },
            tells_busy: chance.happens(0.5),
        }
    }

    /// How many requests at a time the pool or lock inside lets through.
    fn inside(&self) -> f64 {
        let Some(inner) = self.inner else { return f64::INFINITY };
        let how_many = if inner.of_each_worker { self.workers } else { 1 };
        f64::from(inner.places * how_many) / inner.part
    }

    /// The real limit with this many threads and connections.
    pub(crate) fn truth(&self, threads: f64, connections: u32) -> Truth {
        let inside = self.inside();
        let at_once = threads.min(inside);
        let next = threads.max(inside);
        // How many requests are at the server; the others are on the network.
        let wanted = f64::from(connections) * self.mean / (self.mean + self.way);
        let stated = f64::from(self.stated);
        // A lock that lets through as many as were stated is the same limit.
        let is_as_stated = |other: f64| (at_once - other).abs() < 1e-9;
        let is_apart = |other: f64| (at_once / other - 1.0).abs() >= 0.1;
        Truth {
            at_once,
            threads,
            is_threads: threads < inside,
            is_reached: wanted >= 1.1 * at_once,
            is_apart: at_once.is_infinite()
                || next >= 1.1 * at_once && (is_as_stated(stated) || is_apart(stated)),
        }
    }

    /// The relative error (95 %) of a throughput times a mean, each over this many responses, from
    /// the distribution itself.
    pub(crate) fn error(&self, answers: [u64; 2]) -> f64 {
        let stalls = self.stalls.map_or(0.0, |stalls| {
            // The share of requests that meet a stall, one at a time.
            let share = (self.mean / (stalls.every - stalls.length)).min(1.0);
            share * (stalls.length / self.mean).powi(2)
        });
        let square = self.law.variation().powi(2) + stalls;
        1.96 * answers.iter().map(|n| square / (*n).max(1) as f64).sum::<f64>().sqrt()
    }
}

/// The real limit of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    /// How many requests it can process at a time.
    pub(crate) at_once: f64,
    pub(crate) threads: f64,
    /// Whether its threads are the limit.
    pub(crate) is_threads: bool,
    /// Whether the load reaches the limit.
    pub(crate) is_reached: bool,
    /// Whether the next limit and the stated slots differ from it by a tenth or more.
    pub(crate) is_apart: bool,
}
