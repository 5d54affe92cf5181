//! All that was seen so far, as series: what the screen, the table and the JSON show. Plain arithmetic; nothing is read here.
//! What a whole look adds: `board/looks.rs`; what a server says of itself: `board/statistics.rs`.

mod looks;
#[cfg(test)]
pub(crate) mod samples;
mod statistics;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use model::Nanos;
use probe::host::Host;

use super::quantity::Quantity;
use super::sampler::Seen;
use super::series::Series;

/// Of plots, so many of the last looks are kept.
const MOST_PLOTTED: usize = 400;

/// Whose a series is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    /// The whole server's; of overflows and drops the whole network namespace's.
    All,
    /// A process's.
    Process(u32),
}

/// A process that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) title: String,
    pub(crate) parent: Option<u32>,
    pub(crate) first_seen: Nanos,
    pub(crate) last_seen: Nanos,
    /// Whether the last look found it.
    pub(crate) is_there: bool,
}

/// All that was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Board {
    series: BTreeMap<(Of, Quantity), Series>,
    plots: BTreeMap<Quantity, VecDeque<Option<f64>>>,
    processes: BTreeMap<u32, Process>,
    /// The counters of each process at the last look.
    counters: BTreeMap<(u32, Quantity), u64>,
    /// When the last whole look was taken, and the machine's counters then.
    last_look: Option<(Nanos, Host)>,
    /// The longest accept queue since the last whole look.
    longest: Option<f64>,
    queue_limit: Option<u32>,
    slots: Option<u32>,
    stats_failure: Option<String>,
    missing: Vec<String>,
    looks: (u64, u64),
    cpu: Nanos,
    polling_cpu: Nanos,
    now: Nanos,
    ended: Option<Nanos>,
    is_elsewhere: bool,
}

impl Board {
    /// With what is known to be missing from the start.
    pub(crate) fn new(missing: Vec<String>) -> Board {
        Board { missing, ..Board::default() }
    }

    /// Of a server on another machine, whose clock is another too.
    pub(crate) fn elsewhere(missing: Vec<String>) -> Board {
        Board { is_elsewhere: true, ..Board::new(missing) }
    }

    /// Whether the server is on another machine.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Whether a quantity is looked for: of a server here all but the time of a connect, of one elsewhere what is seen from here.
    pub(crate) fn looks_for(&self, quantity: Quantity) -> bool {
        match quantity {
            Quantity::Connect => self.is_elsewhere,
            Quantity::Busy | Quantity::Backlog => true,
            _ => !self.is_elsewhere,
        }
    }

    /// Takes in one observation.
    pub(crate) fn take(&mut self, seen: Seen) {
        match seen {
            Seen::Queue { at, queue } => {
                self.now = at;
                self.looks.0 += 1;
                let length = queue.map(|queue| f64::from(queue.length));
                self.queue_limit = queue.and_then(|queue| queue.limit).or(self.queue_limit);
                self.longest = self.longest.into_iter().chain(length).reduce(f64::max);
                self.gauge(Of::All, Quantity::AcceptQueue, at, length);
            }
            Seen::All(look) => self.look(*look),
            Seen::Stats { at, wall, cpu, stats } => self.stats(at, wall, cpu, stats),
            Seen::Connected { at, took } => {
                self.now = at;
                self.looks.1 += 1;
                let took = took.map_err(|why| self.miss(format!("connect time, at some looks: the server {why}")));
                self.gauge(Of::All, Quantity::Connect, at, took.ok().map(Nanos::as_millis_f64));
                self.plot_all();
            }
            Seen::Ended { at } => {
                self.now = at;
                self.ended = Some(at);
            }
        }
    }

    fn series(&mut self, key: (Of, Quantity)) -> &mut Series {
        self.series.entry(key).or_default()
    }

    fn gauge(&mut self, of: Of, quantity: Quantity, at: Nanos, value: Option<f64>) {
        self.series((of, quantity)).take(at, value);
    }

    fn plot(&mut self, quantity: Quantity, value: Option<f64>) {
        let plot = self.plots.entry(quantity).or_default();
        plot.push_back(value);
        if plot.len() > MOST_PLOTTED {
            plot.pop_front();
        }
    }

    /// Notes the last value of each quantity of the whole server for its plot; the accept queue's is noted by itself.
    fn plot_all(&mut self) {
        for quantity in Quantity::OF_ALL.into_iter().filter(|quantity| *quantity != Quantity::AcceptQueue) {
            let last = self.last(Of::All, quantity);
            self.plot(quantity, last);
        }
    }

    /// It is over now.
    pub(crate) fn close(&mut self, at: Nanos) {
        self.now = self.now.max(at);
    }

    /// Adds to what is missing, once.
    fn miss(&mut self, line: String) {
        if !self.missing.contains(&line) {
            self.missing.push(line);
        }
    }

    /// A series, where anything was ever looked for.
    pub(crate) fn of(&self, of: Of, quantity: Quantity) -> Option<&Series> {
        self.series.get(&(of, quantity))
    }

    /// All series.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Of, Quantity, &Series)> {
        self.series.iter().map(|((of, quantity), series)| (*of, *quantity, series))
    }

    /// What the last look found.
    pub(crate) fn last(&self, of: Of, quantity: Quantity) -> Option<f64> {
        self.of(of, quantity)?.last()
    }

    /// The last values of a quantity, a look each; of the accept queue the longest of each.
    pub(crate) fn plotted(&self, quantity: Quantity) -> Vec<Option<f64>> {
        self.plots.get(&quantity).map(|plot| plot.iter().copied().collect()).unwrap_or_default()
    }

    /// Every process that was seen, by its id.
    pub(crate) fn processes(&self) -> &BTreeMap<u32, Process> {
        &self.processes
    }

    /// A process's part of the whole, by the means or by the last look.
    pub(crate) fn share(&self, pid: u32, quantity: Quantity, by: fn(&Series) -> Option<f64>) -> Option<f64> {
        let of = |of| self.of(of, quantity).and_then(by);
        let whole: f64 = self.processes.keys().filter_map(|pid| of(Of::Process(*pid))).sum();
        of(Of::Process(pid)).filter(|_| whole > 0.0).map(|part| part / whole)
    }

    /// The longest accept queue that is allowed.
    pub(crate) fn queue_limit(&self) -> Option<u32> {
        self.queue_limit
    }

    /// What the server can process at once, as it says.
    pub(crate) fn slots(&self) -> Option<u32> {
        self.slots
    }

    /// What could not be read, a line each.
    pub(crate) fn missing(&self) -> Vec<String> {
        let failure = self.stats_failure.iter().map(|why| format!("busy slots: {why}"));
        self.missing.iter().cloned().chain(failure).collect()
    }

    /// Looks at the queue, and at all the rest.
    pub(crate) fn looks(&self) -> (u64, u64) {
        self.looks
    }

    /// CPU time that our own looks took.
    pub(crate) fn cpu(&self) -> Nanos {
        self.cpu + self.polling_cpu
    }

    /// When the last observation was made.
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// When the server was found to have ended.
    pub(crate) fn ended(&self) -> Option<Nanos> {
        self.ended
    }
}
