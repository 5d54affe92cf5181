//! Other processes use the server's CPUs, and its requests wait for one.

use model::{CpuUsage, Limit, Nanos, Run};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::words::{brief, share, tenths};

/// Other processes use the CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OthersCompute {
    /// CPUs that they use.
    pub others: f64,
    /// CPUs that the server may use.
    pub of: f64,
    /// How long the threads waited for a CPU per request, on average, by the kernel's account.
    #[serde(rename = "waited_ns")]
    pub waited: Nanos,
    /// How long a request is in service, on average: the response time without the wait for a slot.
    #[serde(rename = "in_service_ns")]
    pub in_service: Nanos,
    /// The slots are not known, so that time may have a wait for one in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_have_queued: bool,
}

/// Other processes use at least this share of the CPUs.
const OTHERS_USE: f64 = 0.25;
/// At most this share of the CPUs is idle.
const IDLE: f64 = 0.10;
/// The wait for a CPU is at least this share of the time in service.
const NOTABLE_WAIT: f64 = 0.02;

/// How many CPUs other processes use, if hardly any are left idle.
pub fn busy_others(run: &Run) -> Option<f64> {
    others_above(run, OTHERS_USE)
}

/// How many CPUs other processes use, if they take more of them from a server than may not matter to
/// a comparison of this margin: what others use of CPUs that are used up, the server lacks.
pub fn others_beyond(run: &Run, margin: f64) -> Option<f64> {
    /// As much more as the margin still happens in runs that nobody disturbs.
    const MARGINS: f64 = 2.0;
    others_above(run, MARGINS * margin)
}

/// How many CPUs other processes use, if that is at least this share of them and hardly any are left
/// idle.
fn others_above(run: &Run, share: f64) -> Option<f64> {
    let server = run.generator.server.as_ref()?;
    let CpuUsage { others, of, .. } = CpuUsage::of(&run.generator)?;
    others
        .filter(|others| *others >= share * of && server.idle.is_some_and(|idle| idle <= IDLE * of))
}

/// Judges a run, unless its limit already says so. `slots`: requests that the server can process at
/// a time, if known.
pub(super) fn of(run: &Run, slots: Option<u32>) -> Option<Finding> {
    let others = busy_others(run)?;
    let is_said = matches!(run.judgement.as_ref()?.limit, Some(Limit::SharedCpus(_)));
    let server = run.generator.server.as_ref()?;
    let waited = server.waited_per_request()?;
    let mean = run.tally.response_time.mean()?;
    let in_service = slots.map_or(mean, |slots| {
        let inside = f64::from(slots.min(run.connections)) / f64::from(run.connections.max(1));
        Nanos::from_secs_f64(inside * mean.as_secs_f64())
    });
    // The waits of all threads are counted, also of those that serve no requests. A sum that is
    // longer than a request is in service cannot be a part of its time.
    let is_part = waited < in_service && waited.0 as f64 >= NOTABLE_WAIT * in_service.0 as f64;
    (is_part && !is_said).then(|| {
        let may_have_queued = slots.is_none();
        OthersCompute { others, of: server.of, waited, in_service, may_have_queued }.into()
    })
}

impl OthersCompute {
    pub(super) fn sentence(&self) -> String {
        let OthersCompute { others, of, waited, in_service, may_have_queued } = self;
        let part = share(waited.0 as f64 / in_service.0.max(1) as f64);
        let in_service = if *may_have_queued {
            format!("{} that it takes, any wait for a thread included", brief(*in_service))
        } else {
            format!("{} that it is in service", brief(*in_service))
        };
        format!(
            "Other processes use {} of the {of} CPUs: a request waits {} for a CPU, on average, {part} \
             of the {in_service}.",
            tenths(*others),
            brief(*waited)
        )
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Exchange, GeneratorFacts, Judgement, LaneFacts, Outcome, ProcessCpu, ServerCpu, Tally,
        Verdict, Window,
    };

    use super::*;

    /// The sentence about 1000 requests of 50 ms in 10 s on two CPUs. `others`: CPUs that other
    /// processes used; `waited`: how long all requests waited for a CPU.
    fn sentence(others: f64, idle: f64, waited: Nanos) -> Option<String> {
        let window = Window { from: Nanos::ZERO, until: Nanos::from_secs(10) };
        let mut tally = Tally::new(window, 1);
        for n in 0..1000 {
            let sent = Nanos::from_millis(5 * n);
            let ended = sent + Nanos::from_millis(50);
            let outcome = Outcome::Answered(200);
            tally.record(&Exchange { due: sent, sent, ended, received_bytes: 0, outcome }, 0);
        }
        let cpu = Nanos::from_millis(400);
        let server = ServerCpu {
            children: Nanos::ZERO,
            processes: vec![ProcessCpu { pid: 1, cpu, run_queue: waited }],
            elapsed: Nanos::from_secs(10),
            requests: 1000,
            of: 2.0,
            busy: Some(others + 0.04),
            idle: Some(idle),
            ..ServerCpu::default()
        };
        let lane = LaneFacts { elapsed: Nanos::from_secs(10), ..LaneFacts::default() };
        let limit = Some(Limit::NotKnown { cpu: None, at_once: None, busy: None });
        let verdict = Verdict::ServerBound;
        let run = Run {
            generator: GeneratorFacts {
                lanes: vec![lane],
                server: Some(server),
                ..GeneratorFacts::default()
            },
            judgement: Some(Judgement {
                verdict,
                decided_by: None,
                checks: Vec::new(),
                limit,
                forced: false,
            }),
            ..Run::recorded(10, tally, window.until, window.until)
        };
        of(&run, None).map(|it| it.sentence())
    }

    #[test]
    fn other_processes_are_reported_if_requests_wait_for_their_cpus() {
        let second = Nanos::from_secs(1);
        assert_eq!(
            sentence(1.9, 0.0, second * 10).as_deref(),
            Some(
                "Other processes use 1.9 of the 2 CPUs: a request waits 10.0 ms for a CPU, on average, \
                 20 % of the 50.0 ms that it takes, any wait for a thread included."
            )
        );
        assert_eq!(sentence(1.9, 0.0, second / 10), None, "requests hardly wait for a CPU");
        assert_eq!(sentence(1.0, 0.9, second * 10), None, "a CPU is idle");
        assert_eq!(sentence(0.1, 0.0, second * 10), None, "no other process is active");
    }
}
