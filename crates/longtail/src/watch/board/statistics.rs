//! What a Puma's statistics add to the board: busy slots and backlogs, if they are of the server that is watched.

use model::Nanos;
use probe::puma_stats::{PumaStats, WorkerStats};

use super::{Board, Of};
use crate::watch::quantity::Quantity;

/// Why statistics are not taken.
pub(super) const ANOTHER: &str = "the control server is another server's: none of its workers is among the processes";

/// What a worker says of itself.
type Said = fn(&WorkerStats) -> Option<u32>;

impl Board {
    pub(super) fn stats(&mut self, at: Nanos, wall: Nanos, cpu: Nanos, stats: Result<PumaStats, String>) {
        self.polling_cpu = cpu;
        let ours = stats.and_then(|stats| if self.are_ours(&stats) { Ok(stats) } else { Err(ANOTHER.to_owned()) });
        let stats = match ours {
            Ok(stats) => stats,
            Err(why) => {
                self.stats_failure = Some(why);
                for (_, series) in
                    self.series.iter_mut().filter(|((_, name), _)| matches!(name, Quantity::Busy | Quantity::Backlog))
                {
                    series.take(at, None);
                }
                return;
            }
        };
        self.stats_failure = None;
        // Another machine's clock does not tell how old its words are by ours.
        let age = |worker: &WorkerStats| worker.age(wall).filter(|_| !self.is_elsewhere);
        let ages: Vec<Option<Nanos>> = stats.workers.iter().map(age).collect();
        let oldest = ages.iter().max().copied().flatten();
        let sum = |value: Said| {
            let all: Option<u32> = stats.workers.iter().map(value).sum();
            all.filter(|_| !stats.workers.is_empty())
        };
        self.slots = sum(|worker| worker.max_threads);
        let figures: [(Quantity, Said); 2] =
            [(Quantity::Busy, WorkerStats::busy_threads), (Quantity::Backlog, |worker| worker.backlog)];
        for (quantity, value) in figures {
            self.gauge(Of::All, quantity, at, sum(value).map(f64::from));
            self.series((Of::All, quantity)).aged(oldest);
            for (worker, age) in stats.workers.iter().zip(&ages) {
                // In single mode no process is named, and there is but one.
                let Some(pid) = worker.pid.or_else(|| self.only_process()) else { continue };
                self.gauge(Of::Process(pid), quantity, at, value(worker).map(f64::from));
                self.series((Of::Process(pid), quantity)).aged(*age);
            }
        }
    }

    /// The process that is there, where it is the only one.
    fn only_process(&self) -> Option<u32> {
        let mut there = self.processes.iter().filter(|(_, one)| one.is_there).map(|(pid, _)| *pid);
        there.next().filter(|_| there.next().is_none())
    }

    /// Whether one of these workers is among the processes; unknown ones are taken for ours.
    fn are_ours(&self, stats: &PumaStats) -> bool {
        let is_there = |worker: &WorkerStats| worker.pid.is_none_or(|pid| self.processes.contains_key(&pid));
        self.processes.is_empty() || stats.workers.is_empty() || stats.workers.iter().any(is_there)
    }
}
