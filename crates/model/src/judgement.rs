//! The verdict on a run, and what it rests on.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::{Diagnostic, Grade, Limit};

/// What limited a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub enum Verdict {
    /// The server: it was driven to its limit and the generator had room to spare.
    ServerBound,
    /// The generator: the figures say more about it than about the server.
    GeneratorBound,
    /// The CPUs, which server and generator share: the server would do more on CPUs of its own, and the times hold but for the
    /// generator's stated part.
    SharedCpus,
    /// The network between them: round trips, or segments that were sent again, took the time.
    NetworkBound,
    /// Nothing: the server was offered less than it can do, and kept up.
    Unloaded,
    /// The figures contradict each other or the machine spoiled them: no headline figure is given.
    Invalid,
}

/// The verdict and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Every question that could be asked, with its answer.
    pub checks: Vec<Diagnostic>,
    /// What kept it from doing more; `None` of a run that is unloaded or void, and of older files.
    pub limit: Option<Limit>,
    /// Whether the user wants an invalid run's figures all the same.
    pub forced: bool,
}

impl Judgement {
    /// The same with one more check, of those that void the figures.
    #[must_use]
    pub fn with(mut self, check: Diagnostic) -> Judgement {
        if check.grade() == Grade::Failed {
            (self.verdict, self.limit) = (Verdict::Invalid, None);
        }
        self.checks.push(check);
        self
    }

    /// How a check came out here: one that fails, and did not decide, is a doubt.
    pub fn grade(&self, check: &Diagnostic) -> Grade {
        let decides = matches!(self.verdict, Verdict::GeneratorBound | Verdict::Invalid);
        if decides { check.grade() } else { check.grade().min(Grade::Doubtful) }
    }

    /// The checks that were not passed, the worst first.
    pub fn troubles(&self) -> Vec<&Diagnostic> {
        let mut troubles: Vec<&Diagnostic> = self.checks.iter().filter(|check| check.grade() > Grade::Passed).collect();
        troubles.sort_by_key(|check| std::cmp::Reverse(self.grade(check)));
        troubles
    }
}
