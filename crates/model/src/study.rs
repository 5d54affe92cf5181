//! A study: one invocation and all its runs. As JSON it is the product's file format.
//!
//! Each command that measures has its own kind, because each was asked something else; what they
//! have in common is made of the same parts. In a file the key `command` says which it is.

use serde::{Deserialize, Serialize};

use crate::plan::LoadPlan;
use crate::secret::MaskedText;
use crate::theory::ServiceTime;
use crate::theory::{DisciplineProbe, InferredDiscipline};
use crate::{
    BodiesStudy, ComparisonStudy, Diagnostic, Environment, LaneCountReason, Nanos, Placement, Plan,
    ProbeUsed, Run, ServerFacts, ServerLocation, Threshold,
};

/// The version of the file format that this code writes. It rises with each change that an older
/// reader would misread.
pub const SCHEMA: u32 = 1;

/// Any study, as it stands in a file.
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
}

impl Study {
    /// The runs, in the order in which they are printed.
    pub fn runs(&self) -> Vec<&Run> {
        match self {
            Study::Sweep(study) => study.runs.iter().collect(),
            Study::Load(study) => vec![&study.run],
            Study::Bodies(study) => study.sorted().into_iter().map(|row| &row.run).collect(),
            Study::Compare(study) => study.runs.iter().map(|row| &row.run).collect(),
        }
    }

    /// What the user wants of the figures of each run; a comparison expects of its arms that none
    /// is worse.
    pub fn thresholds(&self) -> &[Threshold] {
        match self {
            Study::Sweep(study) => &study.plan.thresholds,
            Study::Load(study) => &study.plan.thresholds,
            Study::Bodies(study) => &study.plan.thresholds,
            Study::Compare(_) => &[],
        }
    }

    /// Whether another generator made its runs, so that nothing of it was measured by us.
    pub fn is_claimed(&self) -> bool {
        match self {
            Study::Sweep(study) => study.plan.with.is_some(),
            Study::Load(study) => study.run.claim.is_some(),
            Study::Bodies(_) | Study::Compare(_) => false,
        }
    }
}

impl Study {
    /// The same with its command line made anew from what it was.
    #[must_use]
    pub fn with_command_line(mut self, anew: impl Fn(&str) -> MaskedText) -> Study {
        let line = match &mut self {
            Study::Sweep(study) => &mut study.command_line,
            Study::Bodies(study) => &mut study.command_line,
            Study::Compare(study) => &mut study.command_line,
            Study::Load(study) => &mut study.command_line,
        };
        *line = anew(line);
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
study_of!(Sweep(SweepStudy), Load(LoadStudy), Bodies(BodiesStudy), Compare(ComparisonStudy));

/// What `longtail sweep` found: a server that it started, one run a multiple.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepStudy {
    /// Version of the file format.
    pub schema: u32,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// The command line that would repeat it.
    pub command_line: MaskedText,
    /// What was asked.
    pub plan: Plan,
    /// The machine.
    pub environment: Environment,
    /// The server under test.
    pub server: ServerFacts,
    /// How `--inspect auto` came out, and why not otherwise; `None` where nothing was read, and of
    /// older files.
    pub probed: Option<ProbeUsed>,
    /// What theory takes for the service time; `None` where it is neither given nor measured.
    pub service_time: Option<ServiceTime>,
    /// What was tried before the first run to learn the order of service (`--probe-discipline`).
    pub probes: Vec<DisciplineProbe>,
    /// The runs that were finished, in order.
    pub runs: Vec<Run>,
    /// The first server's first load once more, for a shorter time, after its last run: done where
    /// the runs differ in a way that load does not explain. No run of the sweep, and in no table.
    pub first_load_again: Option<Box<Run>>,
    /// What is doubtful about the whole.
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

/// What `longtail load` found: one run against a server that was there already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadStudy {
    /// Version of the file format.
    pub schema: u32,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// The command line that would repeat it.
    pub command_line: MaskedText,
    /// What was asked.
    pub plan: LoadPlan,
    /// The machine.
    pub environment: Environment,
    /// Where the server is: what is not here is not known.
    pub server: ServerLocation,
    /// Where the server's processes may run, and where the lanes do; `None` where it is not known
    /// who serves, and of older files.
    pub placement: Option<Placement>,
    /// Why there are so many lanes.
    pub lanes_by: LaneCountReason,
    /// Time of the one name resolution before the start; `None` where the host is an address.
    #[serde(rename = "name_resolution_ns")]
    pub name_resolution: Option<Nanos>,
    /// What happened.
    pub run: Run,
    /// What the checks of the responses found, one line each.
    pub checks: Vec<String>,
    /// Lines of the log that were dropped because the disk was too slow.
    pub log_dropped: u64,
    /// Whether the user, or `--stop-if`, ended it early.
    pub interrupted: bool,
}
