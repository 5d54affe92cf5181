//! Runs of another generator (`--generator wrk`): its output is compared with the server's own
//! count of requests.

use std::sync::Arc;

use judge::Grade;
use model::theory::ServiceTime;
use model::{Diagnostic, GeneratorClaim, GeneratorFacts, Nanos, Run, WorkerShare};
use probe::host::HostCounters;
use probe::processes::tree;
use probe::puma_stats::{PumaStats, WorkerStats};

use crate::context::{ClaimedRun, OtherGenerator, Phase, SweepError, Task};
use crate::server_count::{new_workers, shares_between};
use crate::servers::under_test;
use crate::session::{Job, Session};

/// Runs another generator, and adds to its findings what the machine did meanwhile. If the server
/// `is_here`, its accept queue is this machine's.
///
/// # Errors
/// As `run`.
pub fn observe_claimed(
    is_here: bool,
    run: impl FnOnce() -> Result<Option<ClaimedRun>, String>,
) -> Result<Option<(ClaimedRun, GeneratorFacts)>, String> {
    let before = HostCounters::now();
    let Some(mut done) = run()? else { return Ok(None) };
    let after = HostCounters::now();
    let steal = after.steal_since(&before);
    let listen_overflows = after.listen_overflows_since(&before).filter(|_| is_here);
    let steal_check = steal.map(|share| Diagnostic::Steal { share });
    let overflow_check = listen_overflows.map(|dropped| Diagnostic::ListenOverflows { dropped });
    let checks = steal_check.into_iter().chain(overflow_check);
    done.found.extend(checks.filter(|check| judge::grade(check) > Grade::Passed));
    Ok(Some((done, GeneratorFacts { steal, listen_overflows, ..GeneratorFacts::default() })))
}

impl Session<'_> {
    /// Runs the other generator once and observes it; `Ok(None)` if it was stopped early.
    ///
    /// # Errors
    /// If the generator fails, or the server dies.
    pub(crate) fn claimed_run(
        &mut self,
        other: &dyn OtherGenerator,
        job: &Job,
        service_time: Option<ServiceTime>,
    ) -> Result<Option<Run>, SweepError> {
        self.observer.phase(&job.phase(None, &Arc::default()));
        let before = self.stats.take().or_else(|| self.counted());
        let processes = tree(self.server.pid());
        let Some((claimed, generator)) = self.run_other(other, job)? else { return Ok(None) };
        let ClaimedRun { mut claim, elapsed, found: mut warnings } = claimed;
        self.observer.phase(&Phase::CoolingDown);
        if self.block.cool_down {
            warnings.extend(self.cool_down());
        }
        self.observer.phase(&Phase::Reconciling);
        self.stats = self.counted();
        let workers = self.shares_since(before.as_ref());
        self.register_workers(&workers);
        let new = new_workers(&workers, &processes, &tree(self.server.pid()));
        if new > 0 {
            warnings.push(Diagnostic::WorkersChanged { new });
        } else {
            claim.server_requests = self.requests_since(before.as_ref());
        }
        warnings.extend(self.check_count(&claim, job, new > 0));
        let slots = self.server.facts.slots();
        let forecast = service_time
            .and_then(|known| queueing::closed_loop::forecast(job.connections, slots, known.mean));
        Ok(Some(Run {
            repeat: self.block.repeat,
            multiple: Some(job.multiple),
            workers,
            forecast,
            generator,
            warnings,
            ..Run::claimed(job.connections, claim, elapsed)
        }))
    }

    /// Runs the other generator; `Ok(None)` if it was stopped early.
    fn run_other(
        &self,
        other: &dyn OtherGenerator,
        job: &Job,
    ) -> Result<Option<(ClaimedRun, GeneratorFacts)>, SweepError> {
        let connections = job.connections;
        let task = Task {
            stream: &job.stream,
            started: &self.block.server,
            server: &self.server.facts,
            url: &self.server.target_url(),
            connections,
        };
        let has_ended = || self.context.is_interrupted() || self.server.has_ended();
        let done = observe_claimed(true, || other.run(&task, &has_ended));
        if let Some(error) = self.server.death(connections) {
            return Err(error);
        }
        done.map_err(|why| {
            let name = other.name();
            SweepError::Unusable(format!("{name} failed with {connections} connections: {why}"))
        })
    }

    /// How many requests each worker counted since these statistics.
    fn shares_since(&self, before: Option<&PumaStats>) -> Vec<WorkerShare> {
        let single = self.server.workers.first().map_or("", String::as_str);
        match before.zip(self.stats.as_ref()) {
            Some((before, after)) if self.server.reached.control.is_some() => {
                shares_between(before, after, single)
            }
            _ => Vec::new(),
        }
    }

    /// How many requests the server counted since these statistics.
    fn requests_since(&self, before: Option<&PumaStats>) -> Option<u64> {
        let after = self.stats.as_ref()?.requests_count()?;
        after.checked_sub(before?.requests_count()?)
    }

    /// Compares the generator's count of requests with the server's.
    fn check_count(
        &self,
        claim: &GeneratorClaim,
        job: &Job,
        has_lost_workers: bool,
    ) -> Option<Diagnostic> {
        if claim.server_requests.is_some() {
            let runs = 1 + u64::from(job.stream.warm_up > Nanos::ZERO);
            return claim.ledger_doubt(job.connections, runs);
        }
        if self.context.is_interrupted() {
            return None;
        }
        let reason = if has_lost_workers {
            "a worker has ended, and its count is lost"
        } else {
            "it has no count that longtail can read"
        };
        Some(Diagnostic::LedgerUnknown { reason: reason.to_owned() })
    }

    /// What the server has counted so far; `None` if it does not say.
    fn counted(&self) -> Option<PumaStats> {
        if let Some(counted) = under_test(&self.block.server).ledger(&self.server.reached) {
            let requests_count = Some(counted.ok()?);
            let workers = vec![WorkerStats { requests_count, ..WorkerStats::default() }];
            return Some(PumaStats { workers, ..PumaStats::default() });
        }
        self.fresh_stats().filter(|stats| stats.requests_count().is_some())
    }
}
