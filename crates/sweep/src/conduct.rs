//! The conductor: starts one server after the other, does the runs on each, and judges them once,
//! when all is known.
//!
//! An [`Experiment`] (a sweep, a measurement of bodies, a comparison) says which servers to start,
//! which runs to do on each, and what becomes of a run.

use engine::ensure_descriptors;
use model::ServerPlan;

use crate::block::Block;
use crate::boot::StartedServer;
use crate::context::{Context, Observer, Phase, SweepError};
use crate::session::{Job, Session};
use crate::time_left::TimedObserver;

/// What is done with servers.
pub(crate) trait Experiment {
    /// The next server; `None` when all is done.
    fn next(&mut self) -> Option<Block>;

    /// Measures what must be known of a server that is ready, and returns the runs to do on it.
    fn jobs(&mut self, session: &mut Session<'_>) -> Result<Vec<Job>, SweepError>;

    /// Does one of these runs. `false` if the user ended it, so that there is nothing to report.
    fn run(&mut self, job: &Job, session: &mut Session<'_>) -> Result<bool, SweepError>;

    /// Measures what is left to measure after a server's last run, if all of them were done.
    fn finish(&mut self, _: &mut Session<'_>) -> Result<(), SweepError> {
        Ok(())
    }

    /// Judges all runs of this server. `is_whole`: none of them is missing, and the server's own
    /// count can be asked for.
    fn judge(&mut self, session: &mut Session<'_>, is_whole: bool);

    /// A server could not be started, or has died. `Ok` where the next one is worth a try.
    fn failed(&mut self, error: SweepError, _: &mut dyn Observer) -> Result<(), SweepError> {
        Err(error)
    }
}

/// Conducts all blocks, or as many as the user wants.
///
/// # Errors
/// If a server cannot be started, is not ready in time, does not serve what it is asked for, or
/// dies.
pub(crate) fn conduct(
    experiment: &mut impl Experiment,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<(), SweepError> {
    let observer = &mut TimedObserver::new(observer, context.clock);
    while let Some(block) = experiment.next() {
        if context.is_interrupted() {
            break;
        }
        conduct_block(&block, experiment, context, observer)
            .or_else(|error| experiment.failed(error, observer))?;
    }
    Ok(())
}

fn conduct_block(
    block: &Block,
    experiment: &mut impl Experiment,
    context: &Context<'_>,
    observer: &mut dyn Observer,
) -> Result<(), SweepError> {
    observer.phase(&Phase::Starting);
    // There is none if the user has interrupted.
    let Some(server) = StartedServer::start(block, context, observer)? else { return Ok(()) };
    let mut session = Session::new(block, context, server, observer);
    let done = conduct_jobs(experiment, &mut session);
    experiment.judge(&mut session, done.is_ok() && !context.is_interrupted());
    done?;
    session.observer.phase(&Phase::Stopping);
    session.server.stop(&context.clock);
    Ok(())
}

fn conduct_jobs(
    experiment: &mut impl Experiment,
    session: &mut Session<'_>,
) -> Result<(), SweepError> {
    for job in experiment.jobs(session)? {
        if session.context.is_interrupted() || !experiment.run(&job, session)? {
            return Ok(());
        }
        if let Some(death) = session.server.death(job.connections) {
            return Err(death);
        }
    }
    if session.context.is_interrupted() { Ok(()) } else { experiment.finish(session) }
}

/// Refuses more connections than this process may have open files, before a server is started, if
/// its slots are known by then.
///
/// # Errors
/// If there are too few.
pub(crate) fn ensure_connections(
    server: &ServerPlan,
    on_slots: impl Fn(u32) -> u32,
) -> Result<(), SweepError> {
    let planned = || {
        let threads = server.threads?.max;
        Some(threads * server.workers.unwrap_or(0).max(1))
    };
    if let Some(slots) = server.kind.stated_slots().or_else(planned) {
        ensure_descriptors(u64::from(on_slots(slots)))?;
    }
    Ok(())
}
