//! A sweep that another generator drives: the same server, multiples and waits, its load instead of ours, and beside
//! what it claims the server's own account.

use model::forecast::ServiceTime;
use model::{ClaimedRow, ClaimedRun, Clock, Diagnostic, Nanos, Plan, ServerFacts, ServerKind, Stop, WorkerShare};
use probe::host::HostCounters;
use probe::processes::tree;
use probe::puma_stats::PumaStats;
use probe::sink_ledger;

use crate::error::SweepError;
use crate::ledger::{replaced, shares_between};
use crate::observer::{Observer, Phase};
use crate::session::Session;

/// What another generator is to do in one run.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The whole sweep's plan.
    pub plan: &'a Plan,
    /// The server, slots and all.
    pub server: &'a ServerFacts,
    /// Where to: a URL of an address of this machine.
    pub url: &'a str,
    /// Connections, in total.
    pub connections: u32,
}

/// Another generator.
pub trait OtherGenerator: Sync {
    /// Runs it once, its warm-up before it; `ended` says when to give up. `Ok(None)` where it was given up.
    ///
    /// # Errors
    /// Where it fails, or what it prints is not understood: why, in a line.
    fn run(&self, task: &Task<'_>, ended: &dyn Fn() -> bool) -> Result<Option<ClaimedRun>, String>;
}

/// The server's own count at one moment, each worker's part where it tells.
pub(crate) struct Account {
    requests: u64,
    stats: Option<PumaStats>,
}

impl<C: Clock + Clone + Send + Sync> Session<'_, C> {
    /// One run of the other generator, and all that was seen of it; `Ok(None)` where it was given up.
    ///
    /// # Errors
    /// Where the generator fails while the server lives.
    pub(crate) fn claimed_run(
        &mut self,
        (plan, other): (&Plan, &dyn OtherGenerator),
        (multiple, connections): (f64, u32),
        (repeat, done_before): (u32, usize),
        service_time: Option<ServiceTime>,
        observer: &mut dyn Observer,
    ) -> Result<Option<ClaimedRow>, SweepError> {
        let slots = self.server.facts.slots();
        let stream = &plan.stream;
        observer.phase(&Phase::OtherRunning {
            number: done_before + 1,
            of: plan.runs(),
            connections,
            length: match stream.stop {
                Stop::After(length) => Some(length + stream.warm_up),
                Stop::RequestsPerConnection(_) => None,
            },
        });
        let account_before = self.account.take().or_else(|| self.server_account());
        let before = HostCounters::now();
        let family = tree(self.server.pid());
        let task = Task { plan, server: &self.server.facts, url: &self.server.target_url, connections };
        let done = other.run(&task, &|| self.context.is_interrupted() || self.server.has_ended());
        if let Some(error) = self.server.death(connections) {
            return Err(error);
        }
        let failed = |why| SweepError::Other { by: plan.with.clone().unwrap_or_default(), connections, why };
        let Some(mut run) = done.map_err(failed)? else { return Ok(None) };
        let after = HostCounters::now();
        run.steal = after.steal_since(&before);
        run.listen_overflows = after.listen_overflows_since(&before);
        let readings = self.listener_readings(run.elapsed);
        observer.phase(&Phase::CoolingDown);
        run.warnings.extend(if self.cools_down { self.cool_down() } else { None });
        observer.phase(&Phase::Reconciling);
        self.account = self.server_account();
        let (server_requests, workers) = self.since(account_before.as_ref());
        self.welcome(&workers);
        let new = replaced(&workers, &family, &tree(self.server.pid()));
        run.warnings.extend((new > 0).then_some(Diagnostic::WorkersChanged { new }));
        let forecast = service_time.and_then(|ServiceTime { time, source, .. }| {
            queueing::closed_loop::forecast(connections, slots, time, source)
        });
        let mut row = ClaimedRow { repeat, multiple, run, server_requests, workers, readings, forecast };
        let runs = 1 + u64::from(stream.warm_up > Nanos::ZERO);
        let unknown = || Diagnostic::LedgerUnknown { reason: "it has no count that longtail can read".to_owned() };
        let doubt = match server_requests {
            Some(_) => row.ledger_doubt(runs),
            None => (!self.context.is_interrupted()).then(unknown),
        };
        row.run.warnings.extend(doubt);
        Ok(Some(row))
    }

    /// What the server has counted up to now; `None` where it does not say.
    fn server_account(&self) -> Option<Account> {
        if self.server_plan.kind == ServerKind::Builtin {
            let requests = sink_ledger::requests(self.server.bind.address()?).ok()?;
            return Some(Account { requests, stats: None });
        }
        let stats = self.fresh_stats()?;
        Some(Account { requests: stats.requests_count()?, stats: Some(stats) })
    }

    /// What it has counted since `before`, and each worker's part of it.
    fn since(&self, before: Option<&Account>) -> (Option<u64>, Vec<WorkerShare>) {
        let (Some(before), Some(after)) = (before, &self.account) else { return (None, Vec::new()) };
        let single = self.server.workers.first().cloned().unwrap_or_default();
        let shares = match (&before.stats, &after.stats) {
            (Some(before), Some(after)) => shares_between(before, after, &single),
            _ => Vec::new(),
        };
        (after.requests.checked_sub(before.requests), shares)
    }
}
