//! When a server is ready: when it says that all its workers have booted, and then really answers.
//!
//! A listening socket is no sign: Puma's master listens before its first worker is forked, and what is sent then waits in the
//! kernel. So nothing is sent before the statistics are there, and the one request that follows is answered by a
//! booted worker.

use std::sync::atomic::AtomicBool;

use engine::{FetchedResponse, Transport, fetch};
use launch::{Server, puma};
use model::{Clock, ControlServer, Nanos, Request, ServerPlan};
use probe::puma_stats;

use crate::error::SweepError;

/// Between two looks.
const STEP: Nanos = Nanos::from_millis(20);
/// Lines of a failed server that are shown.
const LAST_LINES: usize = 20;

/// What to ask, and how long to wait for the answer.
pub(crate) struct ReadinessCheck<'a> {
    pub(crate) plan: &'a ServerPlan,
    pub(crate) transport: &'a Transport,
    pub(crate) request: &'a Request,
    pub(crate) path: &'a str,
    pub(crate) worker_header: &'a str,
    pub(crate) control: Option<&'a ControlServer>,
    pub(crate) boot_timeout: Nanos,
    pub(crate) interrupt: &'a AtomicBool,
}

/// Waits until the server is ready; `Ok(None)` where `stop` said so before.
///
/// # Errors
/// Where it lacks something, ends, takes longer than the boot timeout, or answers with a client's or server's error.
pub(crate) fn wait_until_ready<C: Clock + Clone + Send>(
    server: &Server,
    question: &ReadinessCheck<'_>,
    clock: &C,
    stop: impl Fn() -> bool,
) -> Result<Option<FetchedResponse>, SweepError> {
    let begun = clock.now();
    let left = || question.boot_timeout.saturating_sub(clock.now() - begun);
    let mut reported = question.control.is_none();
    let mut what = "its statistics are not there yet".to_owned();
    loop {
        if stop() {
            return Ok(None);
        }
        let exit = server.exited();
        // What it lacks is said once it has ended, or by a worker whose master goes on.
        if let Some(error) = puma::lacks(question.plan, &server.output()) {
            return Err(error.into());
        }
        if let Some(last_lines) = puma::failed_workers(question.plan, &server.output()) {
            return Err(SweepError::NoWorker { last_lines });
        }
        if let Some(exit) = exit {
            return Err(SweepError::DiedAtBoot { how: exit.to_string(), last_lines: last_lines(server) });
        }
        if let (false, Some(control)) = (reported, question.control) {
            match puma_stats::read(control) {
                Ok(stats) => reported = stats.is_ready(),
                Err(error) => what = error.to_string(),
            }
        }
        if reported {
            // A server with statistics answers; of any other, a listening socket may be all that there is yet.
            let patience = left().max(STEP);
            match fetch(
                question.transport,
                question.request,
                question.worker_header,
                patience,
                clock,
                question.interrupt,
            ) {
                Ok(answer) if answer.status >= 400 => {
                    let last_lines = if answer.status >= 500 { last_lines(server) } else { Vec::new() };
                    let path = question.path.to_owned();
                    return Err(SweepError::BadAnswer { path, status: answer.status, last_lines });
                }
                Ok(answer) => return Ok(Some(answer)),
                Err(error) => what = format!("GET {} is not answered: {error}", question.path),
            }
        }
        if left() == Nanos::ZERO {
            let seconds = question.boot_timeout.0 / 1_000_000_000;
            return Err(SweepError::NotReady { seconds, what, last_lines: last_lines(server) });
        }
        clock.sleep(STEP);
    }
}

/// What the server wrote last.
pub(crate) fn last_lines(server: &Server) -> Vec<String> {
    let output = server.output();
    let mut lines: Vec<String> = output.lines().rev().take(LAST_LINES).map(str::to_owned).collect();
    lines.reverse();
    lines
}
