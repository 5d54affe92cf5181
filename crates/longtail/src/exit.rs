//! Exit codes, and users' mistakes, each as one line ([`Mistake`]).

use std::path::{Path, PathBuf};

use model::comparison::ComparisonFindings;
use model::{Run, Study, ThresholdDoubt, ThresholdResult, Verdict};
use sweep::SweepError;
use thiserror::Error;

/// How an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Fine = 0,
    /// A threshold was missed, or nobody can tell because the generator was the limit; or a check
    /// of the answers failed.
    Missed = 1,
    /// The user's mistake, or a server that does not start: no load was sent.
    Mistake = 2,
    /// longtail itself failed: a bug.
    Fault = 70,
    /// Load was sent, and no figure is the server's: nothing came back good, counts disagree, or
    /// the server died.
    Invalid = 3,
    /// The user ended it; what there is was reported.
    Interrupted = 130,
}

impl Exit {
    /// All of them, and what each means to whoever runs longtail in a script.
    pub(crate) const ALL: [(Exit, &str); 6] = [
        (Exit::Fine, "measured, and nothing that was expected was missed"),
        (
            Exit::Missed,
            "an expectation is missed, or cannot be judged because the generator was the limit",
        ),
        (Exit::Mistake, "misuse, or a server that does not start: no load was sent"),
        (Exit::Invalid, "load was sent, but no figure is the server's (INVALID)"),
        (Exit::Fault, "a bug in longtail"),
        (Exit::Interrupted, "interrupted by Ctrl-C; what was measured is reported"),
    ];

    /// What a study says, as [`Exit::strictly`] where nothing more was asked for.
    pub(crate) fn of(study: &Study) -> Exit {
        Exit::strictly(study, false)
    }

    /// What a study says: [`Exit::Invalid`] where it has no other verdict, or something is expected
    /// of an invalid run. An arm of a comparison that is worse is missed; `is_strict`: also where
    /// it cannot be told.
    pub(crate) fn strictly(study: &Study, is_strict: bool) -> Exit {
        let (is_interrupted, is_worse) = match study {
            Study::Sweep(study) => (study.interrupted, false),
            Study::Bodies(study) => (study.interrupted, false),
            Study::Compare(study) => {
                let found = ComparisonFindings::of(&study.plan, &study.runs);
                (study.interrupted, found.is_worse() || is_strict && found.cannot_tell())
            }
            // A condition may have ended it.
            Study::Load(_) => (false, false),
        };
        let runs = study.runs();
        let is_invalid = |run: &&Run| {
            run.judgement.as_ref().is_some_and(|judgement| judgement.verdict == Verdict::Invalid)
        };
        let held = study
            .thresholds()
            .iter()
            .flat_map(|threshold| runs.iter().map(|run| run.held_against(threshold)));
        let results: Vec<ThresholdResult> = held.flatten().collect();
        let has = |doubt| results.iter().any(|result| result.doubt == Some(doubt));
        if is_interrupted {
            Exit::Interrupted
        } else if !runs.is_empty() && runs.iter().all(is_invalid) || has(ThresholdDoubt::Invalid) {
            Exit::Invalid
        } else if is_worse
            || results.iter().any(|result| !result.is_met)
            || has(ThresholdDoubt::GeneratorBound)
        {
            Exit::Missed
        } else {
            Exit::Fine
        }
    }

    /// The process's exit code.
    pub(crate) fn code(self) -> i32 {
        self as i32
    }
}

/// Why an invocation did nothing, or not all that was asked.
#[derive(Debug, Error)]
pub(crate) enum Mistake {
    /// The flags cannot be understood.
    #[error("{0}")]
    Flags(String),
    /// The sweep could not be done.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// What to send cannot be made of the flags or the file.
    #[error(transparent)]
    Requests(#[from] requests::RequestError),
    /// Where to send it cannot be reached in principle.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// A server could not be prepared.
    #[error(transparent)]
    Launch(#[from] launch::LaunchError),
    /// The built-in server could not start.
    #[error(transparent)]
    Sink(#[from] sink::SinkError),
    /// Theory has no answer.
    #[error(transparent)]
    Theory(#[from] queueing::QueueingError),
    /// A study could not be read.
    #[error("'{path}' cannot be read: {why}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Mistake {
    /// What the exit code says of it.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Mistake::Sweep(SweepError::Died { .. }) => Exit::Invalid,
            _ => Exit::Mistake,
        }
    }

    /// Lines of somebody else (a server) that say more than ours.
    pub(crate) fn last_lines(&self) -> &[String] {
        match self {
            Mistake::Sweep(error) => error.last_lines(),
            _ => &[],
        }
    }
}

/// A file or folder that cannot be written, and what to do.
pub(crate) fn unwritable(path: &Path, why: &std::io::Error, hint: &str) -> Mistake {
    wrong(format!("'{}' cannot be written ({why}): {hint}", path.display()))
}

/// Refuses what was asked where that cannot be; `why` is one line that names it and the hint.
pub(crate) fn refuse_if(is_wrong: bool, why: impl std::fmt::Display) -> Result<(), Mistake> {
    if is_wrong { Err(wrong(why.to_string())) } else { Ok(()) }
}

/// A fault in what was asked; `text` is one line that names it and the hint.
pub(crate) fn wrong(text: impl Into<String>) -> Mistake {
    Mistake::Flags(text.into())
}
