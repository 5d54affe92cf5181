//! A run is driven, and looked on meanwhile: which threads there are beside the lanes, and who ends them.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use engine::{DriveError, LoadSpec, RaiseOnDrop, RunProgress, drive, spawn_scoped};
use model::{Clock, EndedBy, Nanos, Probe};
use probe::processes::this_threads_cpu;
use probe::server_cpu;

use super::Session;
use crate::error::SweepError;
use crate::kernel::{self, Tracing};
use crate::watch::{self, watch};
use crate::witnesses::{Watched, Witnesses};

/// Batches of requests that may wait to be joined with what the kernel saw.
const BATCHES: usize = 64;

/// How soon an interruption, or a server's death, is passed on to the lanes.
const GLANCE: Nanos = Nanos::from_millis(20);

impl<C: Clock + Clone + Send + Sync> Session<'_, C> {
    /// As [`Session::drive`], and looks at server and kernel meanwhile, and listens to them, as `witnesses` says.
    pub(crate) fn drive_watched(
        &mut self,
        shape: &LoadSpec,
        progress: &RunProgress,
        witnesses: &Witnesses<'_>,
    ) -> Result<Watched, SweepError> {
        let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let clock = &self.tools.clock;
        let port = self.subject.bind.address().map(|address| address.port());
        let port = port.filter(|_| witnesses.probe == Probe::Bpf);
        let traces = port.is_some() && shape.reads_app_times && shape.transport.tls.is_none();
        let shape = &LoadSpec { traces, ..shape.clone() };
        let cpu_before = this_threads_cpu();
        let tracing = port.map(|port| Tracing::begin(port, self.subject.pid(), shape));
        let setup_cpu = this_threads_cpu().saturating_sub(cpu_before);
        let (journal, records) = traces.then(|| sync_channel(BATCHES)).unzip();
        let sampler = (witnesses.probe != Probe::None).then(|| self.subject.sampler());
        let control = self.subject.control.as_ref().filter(|_| sampler.is_some());
        let single = self.subject.workers.first().map_or("", String::as_str);
        let live = &*witnesses.live;
        if let Some(hearing) = witnesses.statsd {
            hearing.lock().unwrap_or_else(PoisonError::into_inner).catch_up();
        }
        let ((done, server_cpu), ended_by, seen, heard, traced) =
            std::thread::scope(|scope| -> Result<_, DriveError> {
                let _ending = RaiseOnDrop(&over);
                let ending = spawn_scoped(scope, "ending", || self.end_early(&stop, &over))?;
                let sampling = sampler
                    .map(|sampler| spawn_scoped(scope, "sampler", || watch::sample(sampler, clock, &over, live)))
                    .transpose()?;
                let polling = control.map(|control| {
                    spawn_scoped(scope, "statistics", || watch::poll(control, clock, &over, (live, single)))
                });
                let polling = polling.transpose()?;
                let hearing = witnesses.statsd.map(|hearing| {
                    spawn_scoped(scope, "statsd", || {
                        let mut hearing = hearing.lock().unwrap_or_else(PoisonError::into_inner);
                        hearing.hear_on(clock, progress, shape.warm_up, &over)
                    })
                });
                let hearing = hearing.transpose()?;
                let is_over = &over;
                let trace = move |tracing: Tracing| tracing.go_on((shape, clock), progress, is_over, records.as_ref());
                let tracing = tracing.map(|begun| spawn_scoped(scope, "tracing", move || begun.and_then(trace)));
                let tracing = tracing.transpose()?;
                let placement = self.subject.facts.placement.as_ref();
                let before =
                    placement.map(|placement| server_cpu::before(&[self.subject.pid()], placement, clock.now()));
                let done = drive(shape, clock, &stop, progress, journal.as_ref());
                let ended = done.as_ref().map_or(0, |done| done.tally.all_requests());
                let server_cpu = before.and_then(|before| before.after(clock.now(), ended));
                over.store(true, Ordering::Relaxed);
                let seen = sampling.map(|sampling| sampling.join().expect("sampling never panics"));
                let seen =
                    seen.map(|seen| (seen, polling.map(|polling| polling.join().expect("polling never panics"))));
                let heard = hearing.map(|hearing| hearing.join().expect("hearing never panics"));
                let ended_by = ending.join().expect("waiting never panics");
                Ok((
                    (done?, server_cpu),
                    ended_by,
                    seen,
                    heard,
                    tracing.map(|tracing| tracing.join().expect("tracing never panics")),
                ))
            })?;
        let from = done.start + shape.warm_up;
        let mut watch = seen.map(|(seen, polled)| watch(&seen, polled.as_ref(), from, single));
        let kernel = traced.and_then(|traced| kernel::view(traced, &done.tally, watch.as_mut()));
        self.ledger.add_run(&done.tally);
        self.body_bytes += done.tally.body_bytes;
        self.unanswered |= done.tally.all_answers() != done.tally.all_requests();
        let ended_by = ended_by.filter(|_| done.interrupted);
        Ok(Watched { done, ended_by, watch, heard, kernel, server_cpu, setup_cpu })
    }

    /// Ends the run where the user wants to, or where the server has died: its connections would be refused for ever. Who did, once
    /// the run is over.
    fn end_early(&self, stop: &AtomicBool, over: &AtomicBool) -> Option<EndedBy> {
        let mut ended_by = None;
        while !over.load(Ordering::Relaxed) {
            let user = || self.tools.is_interrupted().then_some(EndedBy::User);
            let server = || self.subject.has_ended().then_some(EndedBy::Server);
            ended_by = ended_by.or_else(user).or_else(server);
            if ended_by.is_some() {
                stop.store(true, Ordering::Relaxed);
            }
            self.tools.clock.sleep(GLANCE);
        }
        ended_by
    }
}
