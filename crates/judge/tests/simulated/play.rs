//! Simulates a random server: one request at a time, and closed loops without think time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::convert::Infallible;

use model::samples::{WatchCurve, WatchTrack};
use model::{Nanos, Outcome, Run, Tally, Watch, Window};
use sweep::service_time::{OneConnection, Visit};

use crate::server::{Chance, Drift, Inner, Server};

/// A server and what has happened to it so far.
pub(crate) struct Life {
    pub(crate) server: Server,
    pub(crate) chance: Chance,
    /// In nanoseconds.
    now: u64,
    served: u64,
    /// Whether each worker has had a request.
    has_begun: Vec<bool>,
    connections: usize,
    /// The threads in the last load.
    threads: f64,
}

/// What happens next to a request, which is identified by its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Arrives,
    /// The part that needs nothing inside is done.
    WantsInner,
    /// The whole request is done.
    Done,
}

/// A closed loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) connections: u32,
    pub(crate) warm_up: Nanos,
    pub(crate) measured: Nanos,
}

/// The state of a load that is being simulated.
struct State {
    events: BinaryHeap<Reverse<(u64, usize, Step)>>,
    /// Requests that wait for a thread, in each worker or in one shared queue.
    lines: Vec<VecDeque<usize>>,
    /// Busy threads of each worker, and threads per worker.
    inside: Vec<u32>,
    threads: u32,
    inner: Inner,
    /// Requests that wait for a place inside, and how many places are taken.
    inner_lines: Vec<VecDeque<usize>>,
    inner_used: Vec<u32>,
    /// For each connection: its worker, its request's work, how many more requests its turn has,
    /// and when its request was sent.
    worker: Vec<usize>,
    work: Vec<f64>,
    turns_left: Vec<u32>,
    sent: Vec<u64>,
    /// The measured window.
    from: u64,
    until: u64,
    tally: Tally,
}

/// How often Puma's workers report to their master, in nanoseconds.
const REPORTS: u64 = 5_000_000_000;
/// How often a single process is asked for its statistics.
const ASKED: u64 = 250_000_000;

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

impl Life {
    pub(crate) fn new(server: Server, chance: Chance) -> Life {
        let has_begun = vec![false; server.workers as usize];
        Life { server, chance, now: 0, served: 0, has_begun, connections: 0, threads: 0.0 }
    }

    /// Threads of all workers in the last load; infinite if the server takes any number at once.
    pub(crate) fn threads(&self) -> f64 {
        self.threads
    }

    /// How long the next request of a worker works, in seconds.
    fn work(&mut self, worker: usize) -> f64 {
        let grown = match self.server.drift {
            Drift::Leak(share) => 1.0 + share * self.served as f64,
            Drift::Warming { requests, times } if self.served < requests => times,
            Drift::None | Drift::Warming { .. } => 1.0,
        };
        self.served += 1;
        let is_first = !std::mem::replace(&mut self.has_begun[worker], true);
        let first = if is_first { self.server.first } else { 0.0 };
        grown * self.server.mean * self.server.law.draw(&mut self.chance) + first
    }

    /// When work of this many seconds ends that begins at `begins`, stalls included.
    fn ends(&self, begins: u64, seconds: f64) -> u64 {
        let mut left = ns(seconds);
        let Some(stalls) = self.server.stalls else { return begins + left };
        let every = ns(stalls.every);
        let length = ns(stalls.length);
        let mut at = begins;
        loop {
            // Each period ends with a stall.
            let begun = at % every;
            let until_stall = (every - length).saturating_sub(begun);
            if left <= until_stall {
                return at + left;
            }
            left -= until_stall;
            at += every - begun;
        }
    }

    /// A run of `load`, with the server's reports about its threads.
    pub(crate) fn play(&mut self, load: &Load) -> Run {
        let mut state = self.open(load);
        let workers = state.inside.len();
        let mut reports = Reports::new(workers, state.from, state.until, &mut self.chance);
        while let Some(Reverse((at, who, step))) = state.events.pop() {
            reports.note(at, &state.inside);
            self.now = at;
            match step {
                Step::Arrives => {
                    let line = state.line(who);
                    state.lines[line].push_back(who);
                    self.take(&mut state, line);
                }
                Step::WantsInner => {
                    let which = state.inner_line(who);
                    state.inner_lines[which].push_back(who);
                    self.pass(&mut state, which);
                }
                Step::Done => self.done(&mut state, who),
            }
        }
        let State { mut tally, from, .. } = state;
        tally.response_time = tally.service_time.clone();
        tally.last_ended = Nanos(self.now);
        if self.server.way > 0.0 {
            let way = Nanos(ns(self.server.way));
            (0..load.connections).for_each(|_| tally.network.record_connection(way, 0));
        }
        let elapsed = Nanos(self.now.saturating_sub(from) + load.warm_up.0);
        // The server is idle for half a second.
        self.now += 500_000_000;
        Run {
            watch: self.server.tells_busy.then(|| reports.watch()),
            ..Run::recorded(load.connections, tally, load.measured, elapsed)
        }
    }

    /// The state when all connections have sent their first request.
    fn open(&mut self, load: &Load) -> State {
        let connections = load.connections as usize;
        let server = self.server;
        let workers = server.workers as usize;
        let more = (self.chance.draw() * f64::from(server.io_threads + 1)) as u32;
        let threads = server
            .threads
            .map_or(u32::MAX, |threads| (threads + more.min(server.io_threads)) / server.workers);
        self.threads =
            server.threads.map_or(f64::INFINITY, |_| f64::from(threads * server.workers));
        let none = Inner { places: u32::MAX, part: 0.0, of_each_worker: false };
        let inner = server.inner.unwrap_or(none);
        let inners = if inner.of_each_worker { workers } else { 1 };
        let from = self.now + load.warm_up.0;
        let until = from + load.measured.0;
        let window = Window { from: Nanos(from), until: Nanos(until) };
        let of_connection =
            |chance: &mut Chance| (chance.draw() * workers as f64) as usize % workers;
        let first = self.now + ns(server.way / 2.0);
        State {
            events: (0..connections).map(|who| Reverse((first, who, Step::Arrives))).collect(),
            lines: vec![VecDeque::new(); if server.has_own_lines { workers } else { 1 }],
            inside: vec![0; workers],
            threads,
            inner,
            inner_lines: vec![VecDeque::new(); inners],
            inner_used: vec![0; inners],
            worker: (0..connections).map(|_| of_connection(&mut self.chance)).collect(),
            work: vec![0.0; connections],
            turns_left: vec![0; connections],
            sent: vec![self.now; connections],
            from,
            until,
            tally: Tally { window, per_connection: vec![0; connections], ..Tally::default() },
        }
    }

    /// A request is done: its client gets the response half a round trip later and sends the next
    /// request.
    fn done(&mut self, state: &mut State, who: usize) {
        let which = state.inner_line(who);
        state.inner_used[which] -= 1;
        self.pass(state, which);
        let way = ns(self.server.way);
        let ended = self.now + way / 2;
        state.record(who, ended);
        let is_over = ended >= state.until;
        if !is_over && state.turns_left[who] > 1 {
            state.turns_left[who] -= 1;
            self.begin(state, who);
            return;
        }
        let line = state.line(who);
        state.inside[state.worker[who]] -= 1;
        if !is_over && way == 0 {
            state.lines[line].push_back(who);
        } else if !is_over {
            state.events.push(Reverse((self.now + way, who, Step::Arrives)));
        }
        self.take(state, line);
    }

    /// Gives free threads to waiting requests.
    fn take(&mut self, state: &mut State, line: usize) {
        while !state.lines[line].is_empty() {
            let free = if self.server.has_own_lines {
                Some(line).filter(|worker| state.inside[*worker] < state.threads)
            } else {
                let least = (0..state.inside.len()).min_by_key(|worker| state.inside[*worker]);
                least.filter(|worker| state.inside[*worker] < state.threads)
            };
            let Some(worker) = free else { return };
            let who = state.lines[line].pop_front().expect("a request waits");
            state.worker[who] = worker;
            state.inside[worker] += 1;
            state.turns_left[who] = self.server.turn;
            self.begin(state, who);
        }
    }

    fn begin(&mut self, state: &mut State, who: usize) {
        state.work[who] = self.work(state.worker[who]);
        let at = self.ends(self.now, state.work[who] * (1.0 - state.inner.part));
        state.events.push(Reverse((at, who, Step::WantsInner)));
    }

    /// Gives free places inside to waiting requests.
    fn pass(&mut self, state: &mut State, which: usize) {
        while state.inner_used[which] < state.inner.places
            && let Some(who) = state.inner_lines[which].pop_front()
        {
            state.inner_used[which] += 1;
            let at = self.ends(self.now, state.work[who] * state.inner.part);
            state.events.push(Reverse((at, who, Step::Done)));
        }
    }
}

impl State {
    fn line(&self, who: usize) -> usize {
        if self.lines.len() > 1 { self.worker[who] } else { 0 }
    }

    fn inner_line(&self, who: usize) -> usize {
        if self.inner.of_each_worker { self.worker[who] } else { 0 }
    }

    /// Records the response to a connection's request. The next request is sent at once.
    fn record(&mut self, who: usize, ended: u64) {
        let sent = std::mem::replace(&mut self.sent[who], ended);
        let window = self.from..self.until;
        if window.contains(&ended) {
            self.tally.completed_in_window += 1;
        }
        if sent < self.from {
            let within = ended.min(self.until).saturating_sub(self.from);
            self.tally.carried_in += Nanos(within);
        }
        if window.contains(&sent) {
            self.tally.carried_out += Nanos(ended.saturating_sub(self.until));
            self.tally.counts.record(Outcome::Answered(200));
            self.tally.sent_in_window += 1;
            self.tally.per_connection[who] += 1;
            self.tally.service_time.record(Nanos(ended - sent));
        }
    }
}

/// The reports of the workers about their busy threads.
struct Reports {
    /// When each worker reports next.
    next: Vec<u64>,
    every: u64,
    from: u64,
    until: u64,
    tracks: Vec<WatchTrack>,
}

impl Reports {
    fn new(workers: usize, from: u64, until: u64, chance: &mut Chance) -> Reports {
        let every = if workers > 1 { REPORTS } else { ASKED };
        let next = (0..workers).map(|_| from + (chance.draw() * every as f64) as u64).collect();
        let curve = |worker: usize| WatchCurve {
            of: worker.to_string(),
            name: "busy_threads".to_owned(),
            unit: "threads".to_owned(),
            ..WatchCurve::default()
        };
        let track = |worker| WatchTrack { curves: vec![curve(worker)], ..WatchTrack::default() };
        Reports { next, every, from, until, tracks: (0..workers).map(track).collect() }
    }

    /// Adds all reports up to `at`.
    fn note(&mut self, at: u64, inside: &[u32]) {
        for (worker, next) in self.next.iter_mut().enumerate() {
            while *next < at.min(self.until) {
                let track = &mut self.tracks[worker];
                track.at.push(Nanos(*next - self.from));
                track.curves[0].values.push(Some(u64::from(inside[worker])));
                *next += self.every;
            }
        }
    }

    fn watch(self) -> Watch {
        Watch { tracks: self.tracks, ..Watch::default() }
    }
}

impl OneConnection for Life {
    type Error = Infallible;

    fn visit(&mut self, requests: u64, longest: Nanos) -> Result<Visit, Infallible> {
        let worker = self.connections % self.has_begun.len();
        self.connections += 1;
        let mut visit = Visit { cpu: Some(Nanos::ZERO), ..Visit::default() };
        let until = self.now + longest.0;
        while visit.requests < requests && (visit.requests == 0 || self.now < until) {
            let work = self.work(worker);
            let ended = self.ends(self.now, work) + ns(self.server.way);
            visit.requests += 1;
            visit.responses.times.record(Nanos(ended - self.now));
            self.now = ended;
        }
        visit.responses.round_trips = Nanos(ns(self.server.way) * visit.requests);
        visit.responses.on_the_way = Nanos(ns(self.server.way) * visit.requests);
        if self.server.tells_busy {
            visit.workers = vec![worker.to_string()];
        }
        Ok(visit)
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn is_over(&self) -> bool {
        false
    }
}
