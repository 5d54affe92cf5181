//! Other processes use the CPUs that the server may use, and its requests wait for one.

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
    /// How long a request's threads waited for a CPU, on average, by the kernel's account.
    #[serde(rename = "waited_ns")]
    pub waited: Nanos,
    /// How long a request is in service, on average: the response time, less what it waits for
    /// others where more are out than there are slots.
    #[serde(rename = "in_service_ns")]
    pub in_service: Nanos,
}

/// They use this part of the CPUs at least,
const OTHERS_USE: f64 = 0.25;
/// no more than this part is idle,
const IDLE: f64 = 0.10;
/// and the wait for a CPU is this part of the time in service.
const WORTH_A_WORD: f64 = 0.02;

/// The CPUs that others use, where they leave hardly any idle.
pub(super) fn busy_others(run: &Run) -> Option<f64> {
    let server = run.generator.server.as_ref()?;
    let CpuUsage { others, of, .. } = CpuUsage::of(&run.generator)?;
    others.filter(|others| {
        *others >= OTHERS_USE * of && server.idle.is_some_and(|idle| idle <= IDLE * of)
    })
}

/// Of a run whose limit does not say so already. `slots`: requests that the server can process at a
/// time, where that is known.
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
    // Threads that do not serve wait for CPUs, too: then it is no request's time.
    let is_part = waited < in_service && waited.0 as f64 >= WORTH_A_WORD * in_service.0 as f64;
    (is_part && !is_said)
        .then(|| OthersCompute { others, of: server.of, waited, in_service }.into())
}

impl OthersCompute {
    pub(super) fn sentence(&self) -> String {
        let OthersCompute { others, of, waited, in_service } = self;
        let part = share(waited.0 as f64 / in_service.0.max(1) as f64);
        format!(
            "Other processes use {} of the {of} CPUs: a request waits {} for a CPU, on average, {part} \
             of the {} that it is in service.",
            tenths(*others),
            brief(*waited),
            brief(*in_service)
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

    /// 1000 requests of 50 ms in 10 s on two CPUs of which others have so many; they waited so long
    /// for a CPU, all together.
    fn said(others: f64, idle: f64, waited: Nanos) -> Option<String> {
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
    fn others_are_named_where_requests_wait_for_them() {
        let second = Nanos::from_secs(1);
        assert_eq!(
            said(1.9, 0.0, second * 10).as_deref(),
            Some(
                "Other processes use 1.9 of the 2 CPUs: a request waits 10.0 ms for a CPU, on average, \
                 20 % of the 50.0 ms that it is in service."
            )
        );
        assert_eq!(said(1.9, 0.0, second / 10), None, "they wait for nobody");
        assert_eq!(said(1.0, 0.9, second * 10), None, "a CPU is idle");
        assert_eq!(said(0.1, 0.0, second * 10), None, "nobody else is there");
    }
}
