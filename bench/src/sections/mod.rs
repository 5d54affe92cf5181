//! The sections: the cost of a request, also if the server leaves the generator idle (`cost`),
//! system calls (`calls`), due times (`timing`), memory and the log (`alone`).

pub(crate) mod alone;
pub(crate) mod cost;
pub(crate) mod timing;

use clap::ValueEnum;
use serde::Serialize;

use crate::case::{Case, Done, Rounds};
use crate::counters::Counting;
use crate::lab::Lab;
use crate::measure::Contender;
use crate::tools::Tool;
use model::Nanos;

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Section {
    /// CPU, instructions, cycles and rate against our sink, for each kind of load
    Cost,
    /// System calls a request
    Calls,
    /// Against nginx, which leaves the generator idle between responses
    Idle,
    /// Send lag, and the error of the times reported, in open loop
    Timing,
    /// Memory of short and long runs
    Memory,
    /// A log line for each request, at full speed
    Log,
}

/// How much to run.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    pub(crate) rounds: Rounds,
    /// Length of a run.
    pub(crate) length: Nanos,
    pub(crate) quick: bool,
    pub(crate) tools: Vec<Tool>,
    pub(crate) connections: Vec<u32>,
    pub(crate) memory_requests: u64,
}

/// The results of a section.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Found {
    pub(crate) section: Section,
    pub(crate) cases: Vec<Done>,
    /// The printed tables.
    #[serde(skip)]
    pub(crate) text: String,
    /// Faults that make the bench fail.
    pub(crate) faults: Vec<String>,
}

impl Section {
    pub(crate) const ALL: [Section; 6] = [
        Section::Cost,
        Section::Calls,
        Section::Idle,
        Section::Timing,
        Section::Memory,
        Section::Log,
    ];

    /// What to run, and how.
    pub(crate) fn cases(self, extent: &Extent, lab: &Lab<'_>) -> (Vec<Case>, Rounds, Counting) {
        let rounds = |all| Rounds { all, others: all };
        let once = rounds(1);
        let few = rounds(extent.rounds.all.min(if extent.quick { 1 } else { 3 }));
        let counted = if lab.counters.has_calls() { cost::call_cases(extent) } else { Vec::new() };
        match self {
            Section::Cost => (cost::cases(extent), extent.rounds, Counting::Cost),
            Section::Calls => (counted, once, Counting::Calls),
            Section::Idle => (cost::idle_cases(extent), extent.rounds, Counting::Cost),
            Section::Timing => (timing::cases(extent), few, Counting::Cost),
            Section::Memory => (alone::memory_cases(extent), once, Counting::Nothing),
            Section::Log => (alone::log_cases(extent, lab), few, Counting::Nothing),
        }
    }

    /// The results, as tables.
    pub(crate) fn found(self, cases: Vec<Done>, lab: &Lab<'_>) -> Found {
        let (mut text, more) = match self {
            Section::Cost => (cost::text(&cases), Vec::new()),
            Section::Calls => (cost::call_text(&cases), Vec::new()),
            Section::Idle => (cost::details(&cases), Vec::new()),
            Section::Timing => (timing::text(&cases), Vec::new()),
            Section::Memory => alone::memory_text(&cases),
            Section::Log => alone::log_text(&cases, lab),
        };
        text += &trouble(&cases);
        let faults = cases.iter().flat_map(Done::faults).chain(more).collect();
        Found { section: self, cases, text, faults }
    }
}

impl Extent {
    /// The tools that were asked for, in this order.
    fn contenders(&self, among: &[Tool]) -> Vec<Contender> {
        among
            .iter()
            .filter(|tool| self.tools.contains(tool))
            .map(|tool| Contender::of(*tool))
            .collect()
    }
}

/// Failures, and other use of the machine.
fn trouble(cases: &[Done]) -> String {
    let mut lines = Vec::new();
    for done in cases {
        if let Some(why) = &done.failure {
            lines.push(format!("{}: not run: {why}", done.case.name));
        }
        for entry in &done.entries {
            if let Some(why) = entry.failures.last() {
                let n = entry.failures.len();
                let name = &entry.contender.name;
                lines.push(format!("{}, {name}: {n} of its runs failed: {why}", done.case.name));
            }
            let failed: u64 =
                entry.samples.iter().filter_map(|sample| sample.reported.failed).sum();
            if failed > 0 {
                lines.push(format!(
                    "{}, {}: by its own count, {failed} of its requests failed",
                    done.case.name, entry.contender.name
                ));
            }
        }
    }
    let foreign = cases.iter().filter_map(Done::foreign).max_by(f64::total_cmp);
    if let Some(foreign) = foreign.filter(|foreign| *foreign >= 0.15) {
        lines.push(format!(
            "others used up to {foreign:.2} CPUs during a run: trust instructions most, then \
             cycles, then CPU time, and rates least"
        ));
    }
    lines.into_iter().map(|line| format!("  {line}\n")).collect::<Vec<_>>().concat()
}
