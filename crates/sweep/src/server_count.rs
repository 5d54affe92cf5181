//! Compares our count of answered requests with the server's own, worker by worker.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use model::run::ShareSource;
use model::{Clock, ControlServer, Diagnostic, Nanos, SystemClock, Tally, WorkerShare};
use probe::puma_stats::{self, PumaStats};

/// How often Puma's statistics are polled. Its master answers, not the workers that are measured.
const STEP: Nanos = Nanos::from_millis(100);
/// How long to wait for fresh statistics. Workers report every 5 s unless configured otherwise.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// All whole responses from one server, by the worker that they name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    responses: u64,
    by_worker: BTreeMap<String, u64>,
}

impl Ledger {
    /// Adds a response to a request outside of any run.
    pub(crate) fn add_response(&mut self, worker: Option<String>) {
        self.responses += 1;
        if let Some(worker) = worker {
            *self.by_worker.entry(worker).or_default() += 1;
        }
    }

    /// Adds all responses of a run, its warm-up included.
    pub(crate) fn add_run(&mut self, tally: &Tally) {
        self.responses += tally.all_responses();
        for (worker, count) in &tally.per_worker {
            *self.by_worker.entry(worker.clone()).or_default() += count.all;
        }
    }

    /// Whether every response named its worker.
    pub(crate) fn names_all_workers(&self) -> bool {
        self.by_worker.values().sum::<u64>() == self.responses
    }

    /// Compares our count with the server's total.
    pub(crate) fn compare_with(&self, server: u64) -> Diagnostic {
        Diagnostic::Conservation { worker: None, client: self.responses, server }
    }

    /// Compares our count with Puma's. If workers name themselves by pid and the totals agree, the
    /// result is the first worker whose counts differ, if any. `first` names the workers that were
    /// there when Puma was ready.
    ///
    /// # Errors
    /// Why Puma's count is not known.
    pub(crate) fn compare_with_puma(
        &self,
        stats: &PumaStats,
        first: &[String],
    ) -> Result<Diagnostic, String> {
        let is_alive = |pid| stats.workers.iter().any(|worker| worker.pid == Some(pid));
        let is_gone =
            |name: &&String| stats.cluster && name.parse().is_ok_and(|pid| !is_alive(pid));
        if let Some(worker) = first.iter().find(is_gone) {
            return Err(format!("worker {worker} has ended, and its count is lost"));
        }
        let server = stats
            .requests_count()
            .ok_or_else(|| "this Puma does not count requests (before 5.0)".to_owned())?;
        let all = self.compare_with(server);
        if self.responses != server || !self.names_all_workers() {
            return Ok(all);
        }
        let differing = stats.workers.iter().find_map(|worker| {
            let pid = worker.pid?;
            let server = worker.requests_count?;
            let client = self.by_worker.get(&pid.to_string()).copied().unwrap_or(0);
            (client != server).then_some(Diagnostic::Conservation {
                worker: Some(pid),
                client,
                server,
            })
        });
        Ok(differing.unwrap_or(all))
    }
}

/// Puma's statistics, none of them older than this call. `None` if it does not answer, or once
/// `over` is set.
pub(crate) fn fresh_stats(
    control: &ControlServer,
    clock: &SystemClock,
    over: &AtomicBool,
) -> Option<PumaStats> {
    let begun = clock.now();
    let before = puma_stats::read(control, over).ok()?;
    let mut now = before.clone();
    while !now.is_newer_than(&before) {
        if clock.now() - begun > PATIENCE || !clock.sleep_until(clock.now() + STEP, over) {
            return None;
        }
        now = puma_stats::read(control, over).ok()?;
    }
    Some(now)
}

/// Whether every worker has served a request. A worker that reports no count is taken to have.
pub(crate) fn has_served(stats: &PumaStats) -> bool {
    stats.workers.iter().all(|worker| worker.requests_count != Some(0))
}

/// How many requests each worker counted between two readings. `single` is the name of the only
/// worker in single mode, whose statistics have no pid.
pub(crate) fn shares_between(
    before: &PumaStats,
    after: &PumaStats,
    single: &str,
) -> Vec<WorkerShare> {
    let count = |stats: &PumaStats, pid| {
        stats
            .workers
            .iter()
            .find(|worker| worker.pid == pid)
            .and_then(|worker| worker.requests_count)
    };
    after
        .workers
        .iter()
        .filter_map(|worker| {
            let earlier = count(before, worker.pid).unwrap_or(0);
            Some(WorkerShare {
                worker: worker.pid.map_or_else(|| single.to_owned(), |pid| pid.to_string()),
                requests: worker.requests_count?.saturating_sub(earlier),
                source: ShareSource::Stats,
            })
        })
        .collect()
}

/// How many of these workers replaced others during the run: their process is alive now and was not
/// `before`. Names that are no process of the server don't count: an app may name its workers as it
/// likes, and a pid may be of another namespace.
pub(crate) fn new_workers(shares: &[WorkerShare], before: &[u32], after: &[u32]) -> u32 {
    let is_born = |pid: u32| after.contains(&pid) && !before.contains(&pid);
    shares.iter().filter(|share| share.worker.parse().is_ok_and(is_born)).count() as u32
}

/// How many requests each worker served, by the header of its responses; known workers without any
/// have 0.
pub(crate) fn shares_by_header(tally: &Tally, known: &[String]) -> Vec<WorkerShare> {
    let mut requests: BTreeMap<&str, u64> =
        known.iter().map(|worker| (worker.as_str(), 0)).collect();
    for (worker, count) in &tally.per_worker {
        *requests.entry(worker).or_default() += count.measured;
    }
    requests
        .into_iter()
        .map(|(worker, requests)| WorkerShare {
            worker: worker.to_owned(),
            requests,
            source: ShareSource::Header,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::Grade;
    use probe::puma_stats::WorkerStats;

    fn stats(counts: &[(u32, u64)]) -> PumaStats {
        let worker = |(pid, count): &(u32, u64)| WorkerStats {
            pid: Some(*pid),
            ready: true,
            last_checkin: Some("x".to_owned()),
            max_threads: Some(5),
            requests_count: Some(*count),
            backlog: Some(0),
            pool_capacity: Some(5),
            ..WorkerStats::default()
        };
        let workers = counts.iter().map(worker).collect();
        PumaStats { cluster: true, workers, ..PumaStats::default() }
    }

    fn ledger(counts: &[(u32, u64)]) -> Ledger {
        let mut ledger = Ledger::default();
        for (pid, count) in counts {
            for _ in 0..*count {
                ledger.add_response(Some(pid.to_string()));
            }
        }
        ledger
    }

    #[test]
    fn counts_are_compared_in_total_and_worker_by_worker() {
        let compared = |ours: &[(u32, u64)], theirs: &[(u32, u64)]| {
            let found = ledger(ours).compare_with_puma(&stats(theirs), &["11".to_owned()]).unwrap();
            (judge::grade(&found), found)
        };
        let of = |worker, client, server| Diagnostic::Conservation { worker, client, server };
        let agreeing = [(11, 3), (12, 0)];
        assert_eq!(compared(&agreeing, &agreeing), (Grade::Passed, of(None, 3, 3)));
        let in_another_worker = compared(&[(11, 3), (12, 1)], &[(11, 2), (12, 2)]);
        assert_eq!(in_another_worker, (Grade::Failed, of(Some(11), 3, 2)));
        assert_eq!(
            compared(&[(11, 3)], &[(11, 4)]),
            (Grade::Failed, of(None, 3, 4)),
            "another client sent one"
        );
    }

    #[test]
    fn the_count_of_a_worker_that_ended_is_lost() {
        let first = ["11", "12"].map(str::to_owned);
        let error = ledger(&[(11, 3), (12, 1), (13, 1)])
            .compare_with_puma(&stats(&[(12, 1), (13, 1)]), &first)
            .unwrap_err();
        assert_eq!(error, "worker 11 has ended, and its count is lost");
        // The only worker in single mode has no pid.
        let single = PumaStats { cluster: false, ..stats(&[(0, 3)]) };
        assert!(ledger(&[(11, 3)]).compare_with_puma(&single, &first[..1]).is_ok());
    }

    #[test]
    fn a_worker_that_started_during_the_run_is_new() {
        let share = |worker: &str| WorkerShare {
            worker: worker.to_owned(),
            requests: 1,
            source: ShareSource::Header,
        };
        let of = |names: &[&str], before: &[u32], after: &[u32]| {
            new_workers(&names.iter().map(|name| share(name)).collect::<Vec<_>>(), before, after)
        };
        assert_eq!(of(&["12", "13"], &[10, 11, 12], &[10, 12, 13]), 1);
        // A worker without requests before the run, a pid that is not the server's, and a name that
        // is no pid.
        assert_eq!(of(&["12"], &[10, 11, 12], &[10, 11, 12]), 0);
        assert_eq!(of(&["7", "web-1"], &[10, 11], &[10, 11]), 0);
    }

    #[test]
    fn shares_are_differences_between_two_readings() {
        let shares = shares_between(&stats(&[(11, 3), (12, 5)]), &stats(&[(11, 10), (13, 2)]), "");
        let requests: Vec<(&str, u64)> =
            shares.iter().map(|s| (s.worker.as_str(), s.requests)).collect();
        assert_eq!(requests, [("11", 7), ("13", 2)], "a new worker begins at 0");
    }
}
