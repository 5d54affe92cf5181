//! `--probe-discipline`: before a sweep, a short closed loop at three times the slots with keep-alive, and one with a connection for
//! each request. Which order of service does each look like?

use model::forecast::ServiceTime;
use model::theory::DisciplineProbe;
use model::{Nanos, Stop, StreamPlan};

use crate::error::SweepError;
use crate::observe::ObservedRun;
use crate::session::{Session, Watching};
use crate::theory;

/// Connections / slots: enough to see who waits for whom.
const MULTIPLE: u32 = 3;
/// Turns of ten requests: the first of all is in the warm-up.
const WARM_UP_TURNS: u64 = 1;
/// Half turns that are measured.
const HALF_TURNS: u64 = 5;
/// Answers that a p95 and a p99 need.
const ANSWERS: u64 = 200;
/// The shortest time that a load is measured for.
const LEAST: Nanos = Nanos::from_secs(1);

impl Session<'_> {
    /// Runs both. There is none without a service time, which sets their length.
    pub(crate) fn probes(
        &mut self,
        service_time: Option<ServiceTime>,
        allowed: model::Probe,
    ) -> Result<Vec<DisciplineProbe>, SweepError> {
        let Some(known) = service_time.filter(|known| known.time > Nanos::ZERO) else { return Ok(Vec::new()) };
        let mut probes = Vec::new();
        for keep_alive in [true, false] {
            if self.context.is_interrupted() {
                break;
            }
            probes.push(self.probe(keep_alive, known, allowed)?);
            self.cool_down();
        }
        Ok(probes)
    }

    fn probe(
        &mut self,
        keep_alive: bool,
        known: ServiceTime,
        allowed: model::Probe,
    ) -> Result<DisciplineProbe, SweepError> {
        let slots = self.server.facts.slots();
        let connections = (slots * MULTIPLE).max(1);
        let turn = known.time * u64::from(queueing::puma::TURN);
        let of_answers = known.time * (ANSWERS / u64::from(slots.max(1)));
        let stream = StreamPlan {
            keep_alive,
            warm_up: turn * WARM_UP_TURNS,
            stop: Stop::After((turn * HALF_TURNS / 2).max(of_answers).max(LEAST)),
            ..self.block.stream.clone()
        };
        let shape = self.shape(&stream, connections);
        // Who holds the connections shows the order too; the kernel's tracepoints do not.
        let probe = if allowed == model::Probe::None { allowed } else { model::Probe::Proc };
        let watching = Watching { probe, ..Watching::default() };
        let ObservedRun { run, .. } = self.drive(&shape, &self.context.progress(&shape), &watching)?;
        Ok(DisciplineProbe {
            keep_alive,
            connections,
            measured: run.measured,
            answers: run.tally.counts.good(),
            theory: theory::beside(&run, &self.block.server, &stream, &self.server.facts, Some(known), false),
        })
    }
}
