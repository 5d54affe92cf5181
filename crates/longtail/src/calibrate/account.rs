//! One run of one generator: what the sink says, what the kernel says, and what the generator says of itself.

use audit::{Claim, ClaimCheck, ClaimVerdict, PrintedFigure};
use model::{Nanos, Study};
use serde::Serialize;

use crate::generators::Generator;

/// A run that was done.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CalibrationRun {
    /// In which round, from 1.
    pub(crate) round: u32,
    /// Requests per second, by the sink's count over the middle of the run.
    pub(crate) rate_per_s: f64,
    /// The generator's CPU per request that the sink received.
    #[serde(rename = "user_cpu_per_request_ns")]
    pub(crate) user: f64,
    #[serde(rename = "system_cpu_per_request_ns")]
    pub(crate) system: f64,
    /// The part of a CPU that the sink used.
    pub(crate) sink_busy: Option<f64>,
    /// Requests that the sink received, from the first to the last.
    pub(crate) received: u64,
    /// Connections that it accepted.
    pub(crate) connections: u64,
    /// What the generator says.
    pub(crate) said: Said,
}

/// What a generator says of its own run; absent is absent.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Said {
    /// Requests that ended.
    pub(crate) claimed: Option<u64>,
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) mean_s: Option<PrintedFigure>,
    pub(crate) p50_s: Option<PrintedFigure>,
    pub(crate) p99_s: Option<PrintedFigure>,
    /// Rate x mean / connections: at most 1, in a closed loop.
    pub(crate) littles_law: Option<f64>,
    /// The audit's word, of what others print.
    pub(crate) verdict: Option<ClaimVerdict>,
}

/// What it printed, understood; `None` where nothing of it is.
pub(crate) fn said(generator: Generator, printed: &str, connections: u32) -> Option<Said> {
    let Some(tool) = generator.prints() else { return ours(printed) };
    let mut claim = audit::parse::claims(printed).into_iter().find(|claim| claim.tool == tool)?;
    // What it was asked for, where it does not repeat it.
    claim.connections.get_or_insert(u64::from(connections));
    if tool.is_corrected_by_wrk() || tool == audit::LoadTool::Wrk2 {
        claim.threads.get_or_insert(1);
    }
    Some(theirs(claim))
}

fn theirs(claim: Claim) -> Said {
    let (p50_s, p99_s) = (claim.percentile(0.5), claim.percentile(0.99));
    let audited = audit::audit_claim(claim);
    let law = audited.findings.iter().find(|finding| finding.check == ClaimCheck::LittlesLaw);
    let littles_law = law.and_then(|finding| finding.outcome.figures.get("ratio").copied());
    Said {
        claimed: audited.claim.ended(),
        rate_per_s: audited.claim.rate_per_s.map(|rate| rate.value),
        mean_s: audited.claim.mean_s,
        p50_s,
        p99_s,
        littles_law,
        verdict: Some(audited.verdict),
    }
}

/// longtail's own study.
fn ours(printed: &str) -> Option<Said> {
    let Ok(Study::Load(study)) = report::json::read(printed) else { return None };
    let (run, tally) = (&study.run, &study.run.tally);
    let exactly = |time: Nanos| PrintedFigure { value: time.as_secs_f64(), half_width: 5e-7, decimals: 6 };
    let (rate, mean) = (run.completed_rate(), tally.response_time.mean());
    Some(Said {
        claimed: Some(tally.all_answers()),
        rate_per_s: Some(rate),
        mean_s: mean.map(exactly),
        p50_s: tally.response_time.quantile(0.5).map(exactly),
        p99_s: tally.response_time.quantile(0.99).map(exactly),
        littles_law: mean.map(|mean| rate * mean.as_secs_f64() / f64::from(study.plan.connections)),
        verdict: None,
    })
}

/// The middle of several, with the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let (min, max) = (*all.first()?, *all.last()?);
        Some(Spread { median: f64::midpoint(all[(all.len() - 1) / 2], all[all.len() / 2]), min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;
    use testkit::output::WRK;

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(Spread::of([3.0, 1.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([3.0, 1.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn what_is_no_output_says_nothing() {
        for generator in Generator::value_variants() {
            assert!(said(*generator, "unable to connect", 10).is_none());
        }
    }

    #[test]
    fn wrk_is_held_against_the_connections_it_was_given() {
        let said = said(Generator::Wrk, WRK, 10).unwrap();
        assert_eq!((said.claimed, said.littles_law), (Some(10_000), Some(1.0)));
        assert!((said.p99_s.unwrap().value - 0.0015).abs() < 1e-12);
    }
}
