//! Generators on other machines: what each did in a run, beside what all of them together recorded.

use serde::{Deserialize, Serialize};

use crate::{Diagnostic, Nanos, Tally};

/// A later start than this is not the common start.
pub(crate) const LATEST_START: Nanos = Nanos::from_millis(5);
/// Clocks that are known less well put what the server and the client saw beside each other wrongly.
pub(crate) const LARGEST_CLOCK_ERROR: Nanos = Nanos::from_millis(5);
/// Medians further apart than this, of so many answers at least, are worth a word.
const APART: f64 = 0.1;
const ENOUGH: u64 = 100;

/// One of a run's generators on other machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FarGenerator {
    /// The command that leads to it (`--from`), or the file that it wrote.
    pub name: String,
    /// Measured requests that it sent.
    pub requests: u64,
    /// Good answers among them.
    pub good: u64,
    /// The median of their response times; `None` of none.
    #[serde(rename = "p50_ns")]
    pub p50: Option<Nanos>,
    /// Their 99th percentile.
    #[serde(rename = "p99_ns")]
    pub p99: Option<Nanos>,
    /// The most that its clock may be off from the one here, drift during the run included; `None` where nobody compared them.
    #[serde(rename = "clock_error_ns")]
    pub clock_error: Option<Nanos>,
    /// How long after the common start it started.
    #[serde(rename = "started_late_ns")]
    pub started_late: Nanos,
    /// Share of its machine's CPU time that a hypervisor gave to others.
    pub steal: Option<f64>,
    /// Connects that its kernel tried again.
    pub syn_retransmits: Option<u64>,
    /// Why nothing is known of what it did; `None` where all is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl FarGenerator {
    /// One of which only the records of its lanes are known.
    pub fn recorded(name: String, tally: &Tally) -> FarGenerator {
        let (requests, good) = (tally.counts.total(), tally.counts.good());
        let at = |q| tally.response_time.quantile(q);
        FarGenerator { name, requests, good, p50: at(0.5), p99: at(0.99), ..FarGenerator::default() }
    }

    /// One that ended in the middle of a run, or did not start.
    pub fn lost(name: String, why: String) -> FarGenerator {
        FarGenerator { name, lost: Some(why), ..FarGenerator::default() }
    }
}

/// The checks of generators on other machines: that none is lost, that they started together, and that their clocks are known.
pub(crate) fn checks(far: &[FarGenerator]) -> Vec<Diagnostic> {
    let lost = far.iter().filter_map(|one| Some((one, one.lost.clone()?)));
    let mut checks: Vec<Diagnostic> =
        lost.map(|(one, why)| Diagnostic::GeneratorLost { name: one.name.clone(), why }).collect();
    let known = || far.iter().filter(|one| one.lost.is_none());
    let latest = known().max_by_key(|one| one.started_late);
    checks.extend(latest.map(|one| Diagnostic::LateStart { name: one.name.clone(), late: one.started_late }));
    let worst = known().filter_map(|one| Some((one, one.clock_error?))).max_by_key(|(_, error)| *error);
    checks.extend(worst.map(|(one, error)| Diagnostic::ClockError { name: one.name.clone(), error }));
    checks
}

/// The generator whose median is furthest from that of all of them together, where that is worth a word.
pub(crate) fn differs(far: &[FarGenerator], all: &Tally) -> Option<Diagnostic> {
    let merged = all.response_time.quantile(0.5).filter(|_| far.len() > 1)?;
    let apart = |p50: Nanos| (p50.0 as f64 / (merged.0 as f64).max(1.0) - 1.0).abs();
    let known = far.iter().filter(|one| one.good >= ENOUGH).filter_map(|one| Some((one, one.p50?)));
    let (one, p50) = known.max_by(|(_, a), (_, b)| apart(*a).total_cmp(&apart(*b)))?;
    (apart(p50) > APART).then(|| Diagnostic::GeneratorDiffers { name: one.name.clone(), p50, merged })
}
