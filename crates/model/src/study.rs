//! A study: one invocation and all its runs. As JSON it is the product's file format.
//!
//! Each command that measures has its own kind of study, made of common parts. In a file the key
//! `command` says which it is.

use serde::{Deserialize, Serialize};

use crate::comparison::ComparisonRun;
use crate::plan::LoadPlan;
use crate::secret::MaskedText;
use crate::theory::{ClassAlone, DisciplineProbe, InferredDiscipline, ServiceTime};
use crate::{
    BodiesStudy, CapacityStudy, ComparisonStudy, Diagnostic, Environment, LaneCountReason, Nanos,
    Placement, Plan, ProbeUsed, Run, ServerFacts, ServerLocation, SlowClientCounts, Threshold,
};

/// The version of the file format that this code writes. It increases with each change that an
/// older reader would misread.
pub const SCHEMA: u32 = 1;

/// Any study, as in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Study {
    /// Of `longtail sweep`.
    Sweep(Box<SweepStudy>),
    /// Of `longtail load`.
    Load(Box<LoadStudy>),
    /// Of `longtail bodies`.
    Bodies(Box<BodiesStudy>),
    /// Of `longtail compare`.
    Compare(Box<ComparisonStudy>),
    /// Of `longtail capacity`.
    Capacity(Box<CapacityStudy>),
}

impl Study {
    /// The runs, in the order in which they are printed.
    pub fn runs(&self) -> Vec<&Run> {
        match self {
            Study::Sweep(study) => study.runs.iter().collect(),
            Study::Load(study) => vec![&study.run],
            Study::Bodies(study) => study.sorted().into_iter().map(|row| &row.run).collect(),
            Study::Compare(study) => study.runs.iter().map(|row| &row.run).collect(),
            Study::Capacity(study) => study.all_trials().map(|trial| &trial.run).collect(),
        }
    }

    /// Whether there is nothing to report: no run, and of a search for a capacity no closed loop
    /// either, of one for threads no single run.
    pub fn has_measured_nothing(&self) -> bool {
        let has_closed_loop = |search: &CapacityStudy| search.closed_loop.is_some();
        let has_more_than_runs = match self {
            Study::Capacity(search) => {
                has_closed_loop(search)
                    || search.sizes.iter().any(|size| has_closed_loop(&size.search))
            }
            Study::Compare(study) => !study.plan.looked_at.is_empty(),
            _ => false,
        };
        self.runs().is_empty() && !has_more_than_runs
    }

    /// The runs that are checked against the thresholds: in a comparison the last attempt of each.
    pub fn held_runs(&self) -> Vec<&Run> {
        let Study::Compare(study) = self else { return self.runs() };
        let last_of = |run: &&ComparisonRun| {
            let is_later = |other: &&ComparisonRun| {
                (other.block, other.arm) == (run.block, run.arm) && other.attempt > run.attempt
            };
            !study.runs.iter().any(|other| is_later(&other))
        };
        study.runs.iter().filter(last_of).map(|row| &row.run).collect()
    }

    /// The user's thresholds for each run; a search for a capacity has none.
    pub fn thresholds(&self) -> &[Threshold] {
        match self {
            Study::Sweep(study) => &study.plan.thresholds,
            Study::Load(study) => &study.plan.thresholds,
            Study::Bodies(study) => &study.plan.thresholds,
            Study::Compare(study) => &study.plan.thresholds,
            Study::Capacity(_) => &[],
        }
    }

    /// Whether another generator made its runs, so that longtail measured nothing itself.
    pub fn is_claimed(&self) -> bool {
        match self {
            Study::Sweep(study) => study.plan.with.is_some(),
            Study::Load(study) => study.run.claim.is_some(),
            Study::Bodies(_) | Study::Compare(_) | Study::Capacity(_) => false,
        }
    }
}

impl Study {
    /// The same study with its command line replaced by what `rewrite` makes of it.
    #[must_use]
    pub fn with_command_line(mut self, rewrite: impl Fn(&str) -> MaskedText) -> Study {
        let line = match &mut self {
            Study::Sweep(study) => &mut study.command_line,
            Study::Bodies(study) => &mut study.command_line,
            Study::Compare(study) => &mut study.command_line,
            Study::Load(study) => &mut study.command_line,
            Study::Capacity(study) => &mut study.command_line,
        };
        *line = rewrite(line);
        self
    }
}

macro_rules! study_of {
    ($($variant:ident($study:ty)),*) => {
        $(impl From<$study> for Study {
            fn from(study: $study) -> Study {
                Study::$variant(Box::new(study))
            }
        })*
    };
}
study_of!(
    Sweep(SweepStudy),
    Load(LoadStudy),
    Bodies(BodiesStudy),
    Compare(ComparisonStudy),
    Capacity(CapacityStudy)
);

/// What `longtail sweep` found: a server that it started, and one run for each multiple.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepStudy {
    /// Version of the file format.
    pub schema: u32,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// The command line that would repeat it.
    pub command_line: MaskedText,
    /// What was asked for.
    pub plan: Plan,
    /// The machine.
    pub environment: Environment,
    /// The server under test.
    pub server: ServerFacts,
    /// What `--inspect auto` chose and why; `None` if nothing was read, and in older files.
    pub probed: Option<ProbeUsed>,
    /// The service time that theory uses; `None` if it is neither given nor measured.
    pub service_time: Option<ServiceTime>,
    /// How long a request of each class takes alone; empty where requests are not told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes_alone: Vec<ClassAlone>,
    /// Probes before the first run to learn the order of service (`--probe-discipline`).
    pub probes: Vec<DisciplineProbe>,
    /// The finished runs, in order.
    pub runs: Vec<Run>,
    /// A shorter repetition of the first server's first load after its last run, made if the runs
    /// differ in a way that load does not explain. It is not a run of the sweep and in no table.
    pub first_load_again: Option<Box<Run>>,
    /// What is doubtful about the study as a whole.
    pub warnings: Vec<Diagnostic>,
    /// From the start of the first server to the end of the last.
    #[serde(rename = "total_time_ns")]
    pub total_time: Nanos,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

impl SweepStudy {
    /// Which order of service the runs with more connections than slots look like; `None` without
    /// such a run.
    pub fn inferred_discipline(&self) -> Option<InferredDiscipline> {
        let slots = self.server.slots();
        let judged = self.runs.iter().filter(|run| run.connections > slots);
        InferredDiscipline::of(judged.filter_map(|run| run.theory.as_ref()))
    }
}

/// What `longtail load` found: one run against a running server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadStudy {
    /// Version of the file format.
    pub schema: u32,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// The command line that would repeat it.
    pub command_line: MaskedText,
    /// What was asked for.
    pub plan: LoadPlan,
    /// The machine.
    pub environment: Environment,
    /// Where the server is; for one elsewhere, less is known.
    pub server: ServerLocation,
    /// The CPUs of the server's processes and of the lanes; `None` if the processes are unknown,
    /// and in older files.
    pub placement: Option<Placement>,
    /// Why it has this number of lanes.
    pub lanes_by: LaneCountReason,
    /// How long the name resolution before the start took; `None` if the host is an address.
    #[serde(rename = "name_resolution_ns")]
    pub name_resolution: Option<Nanos>,
    /// What happened.
    pub run: Run,
    /// What the checks of the responses found, one line each.
    pub checks: Vec<String>,
    /// How long a request of each class takes alone, where that was measured before the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes_alone: Vec<ClassAlone>,
    /// What became of the slow clients' connections, where there were slow clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_clients: Option<SlowClientCounts>,
    /// Lines of the log that were dropped because the disk was too slow.
    pub log_dropped: u64,
    /// Whether the user, or `--stop-if`, ended it early.
    pub interrupted: bool,
}
