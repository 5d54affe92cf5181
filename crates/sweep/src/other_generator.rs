//! Runs that another generator makes (`--generator wrk`): its load instead of ours, and the
//! server's own account beside what it claims.

use std::sync::Arc;

use judge::Grade;
use model::theory::ServiceTime;
use model::{Clock, Diagnostic, GeneratorFacts, Nanos, Run, ServerKind};
use probe::control;
use probe::host::HostCounters;
use probe::processes::tree;
use probe::puma_stats::{PumaStats, WorkerStats};

use crate::context::{ClaimedRun, OtherGenerator, Phase, SweepError, Task};
use crate::server_count::{replaced, shares_between};
use crate::session::{Job, Session};

/// Has another generator do its run, and adds what the machine spoiled meanwhile to what was found.
/// A server that `is_here` has its accept queue on this machine.
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
    let troubles = [
        steal.map(|share| Diagnostic::Steal { share }),
        listen_overflows.map(|dropped| Diagnostic::ListenOverflows { dropped }),
    ];
    done.found.extend(
        troubles.into_iter().flatten().filter(|trouble| judge::grade(trouble) > Grade::Passed),
    );
    Ok(Some((done, GeneratorFacts { steal, listen_overflows, ..GeneratorFacts::default() })))
}

impl Session<'_> {
    /// One run of the other generator, and all that was seen of it; `Ok(None)` where it was given
    /// up.
    ///
    /// # Errors
    /// Where the generator fails while the server lives.
    pub(crate) fn claimed_run(
        &mut self,
        other: &dyn OtherGenerator,
        job: &Job,
        service_time: Option<ServiceTime>,
    ) -> Result<Option<Run>, SweepError> {
        let Job { stream, connections, .. } = job;
        let (slots, connections) = (self.server.facts.slots(), *connections);
        self.observer.phase(&job.phase(self.context.clock.now(), None, &Arc::default()));
        let before = self.stats.take().or_else(|| self.counted());
        let family = tree(self.server.pid());
        let (server, started) = (&self.server.facts, &self.block.server);
        let url = &self.server.target_url();
        let task = Task { stream, started, server, url, connections };
        let ended = || self.context.is_interrupted() || self.server.has_ended();
        let done = observe_claimed(true, || other.run(&task, &ended));
        if let Some(error) = self.server.death(connections) {
            return Err(error);
        }
        let failed = |why| {
            SweepError::Unusable(format!(
                "{} failed with {connections} connections: {why}",
                other.name()
            ))
        };
        let Some((ClaimedRun { mut claim, elapsed, found }, generator)) = done.map_err(failed)?
        else {
            return Ok(None);
        };
        let mut warnings = found;
        self.observer.phase(&Phase::CoolingDown);
        warnings.extend(if self.block.cool_down { self.cool_down() } else { None });
        self.observer.phase(&Phase::Reconciling);
        self.stats = self.counted();
        let counts = before.as_ref().zip(self.stats.as_ref());
        let server_requests = counts.and_then(|(before, after)| {
            after.requests_count()?.checked_sub(before.requests_count()?)
        });
        let single = self.server.workers.first().map_or("", String::as_str);
        let workers = match counts {
            Some((before, after)) if !self.is_builtin() => shares_between(before, after, single),
            _ => Vec::new(),
        };
        self.register_workers(&workers);
        let new = replaced(&workers, &family, &tree(self.server.pid()));
        warnings.extend((new > 0).then_some(Diagnostic::WorkersChanged { new }));
        let why = if new > 0 {
            "a worker has gone, and its count with it"
        } else {
            "it has no count that longtail can read"
        };
        let server_requests = server_requests.filter(|_| new == 0);
        claim.server_requests = server_requests;
        let runs = 1 + u64::from(stream.warm_up > Nanos::ZERO);
        let unknown = || Diagnostic::LedgerUnknown { reason: why.to_owned() };
        warnings.extend(match server_requests {
            Some(_) => claim.ledger_doubt(connections, runs),
            None => (!self.context.is_interrupted()).then(unknown),
        });
        let forecast = service_time
            .and_then(|known| queueing::closed_loop::forecast(connections, slots, known.mean));
        let claimed =
            Run { multiple: Some(job.multiple), ..Run::claimed(connections, claim, elapsed) };
        Ok(Some(Run {
            repeat: self.block.repeat,
            workers,
            forecast,
            generator,
            warnings,
            ..claimed
        }))
    }

    /// What the server has counted up to now; `None` where it does not say.
    fn counted(&self) -> Option<PumaStats> {
        if self.is_builtin() {
            let requests_count =
                Some(control::sink_requests(self.server.reached.bind.place.tcp()?).ok()?);
            let workers = vec![WorkerStats { requests_count, ..WorkerStats::default() }];
            return Some(PumaStats { workers, ..PumaStats::default() });
        }
        self.fresh_stats().filter(|stats| stats.requests_count().is_some())
    }

    fn is_builtin(&self) -> bool {
        self.block.server.kind == ServerKind::Builtin
    }
}
