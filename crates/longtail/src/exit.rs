//! Exit codes, and users' mistakes, each as one line ([`Mistake`]).

use std::path::{Path, PathBuf};

use judge::thresholds::{ThresholdDoubt, ThresholdResult, held_against};
use model::comparison::ComparisonFindings;
use model::paths::path_fault;
use model::{Run, Study, Verdict};
use sweep::SweepError;
use thiserror::Error;

/// How an invocation ended. [`Exit::ALL`] says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Fine = 0,
    /// What was expected is not so, or cannot be told.
    Missed = 1,
    /// The user's mistake, or a server that does not start: no load was sent.
    Mistake = 2,
    /// Load was sent, and no figure is the server's: nothing came back good, counts disagree, or
    /// the study broke off.
    Invalid = 3,
    /// All was measured, and a place that was to have it could not be written.
    Unwritten = 4,
    /// longtail itself failed: a bug.
    Fault = 70,
    /// The user ended it; what there is was reported.
    Interrupted = 130,
}

impl Exit {
    /// All of them, and what each means to whoever runs longtail in a script. Where two apply, the
    /// first of this list is the exit code: what makes the others meaningless stands before them,
    /// and what is known of the server before what became of a file.
    pub(crate) const ALL: [(Exit, &str); 7] = [
        (Exit::Fault, "a bug in longtail"),
        (Exit::Mistake, "misuse, or a server that does not start: no load was sent"),
        (Exit::Interrupted, "interrupted by Ctrl-C; what was measured is reported"),
        (Exit::Invalid, "load was sent, but no figure is the server's (INVALID)"),
        (Exit::Missed, "an expectation is missed, or it cannot be told whether it holds"),
        (Exit::Unwritten, "measured, but a result could not be written"),
        (Exit::Fine, "measured, and all that was expected holds"),
    ];

    /// The exit code where both apply: the one that [`Exit::ALL`] has first. Nothing else weighs
    /// one code against another.
    pub(crate) fn and(self, other: Exit) -> Exit {
        let applies = |(exit, _): &(Exit, &str)| (*exit == self || *exit == other).then_some(*exit);
        Exit::ALL.iter().find_map(applies).unwrap_or(other)
    }

    /// This code where something is so, and none that counts where it is not.
    pub(crate) fn if_so(self, is_so: bool) -> Exit {
        if is_so { self } else { Exit::Fine }
    }

    /// What a study says, as [`Exit::strictly`] where nothing more was asked for.
    pub(crate) fn of(study: &Study) -> Exit {
        Exit::strictly(study, false)
    }

    /// What a study says: [`Exit::Invalid`] where it has no other verdict, or something is expected
    /// of an invalid run. What is expected and not shown is missed, and so is an arm of a
    /// comparison that is worse; `is_strict`: also where that cannot be told.
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
        let mut exit = Exit::Interrupted.if_so(is_interrupted);
        exit = exit.and(Exit::Invalid.if_so(!runs.is_empty() && runs.iter().all(is_invalid)));
        exit = exit.and(Exit::Missed.if_so(is_worse));
        for threshold in study.thresholds() {
            let results: Vec<_> =
                runs.iter().filter_map(|run| held_against(run, threshold)).collect();
            let is_of_invalid =
                results.iter().any(|result| result.doubt == Some(ThresholdDoubt::Invalid));
            let is_shown = !results.is_empty() && results.iter().all(ThresholdResult::is_shown);
            exit = exit.and(Exit::Invalid.if_so(is_of_invalid));
            exit = exit.and(Exit::Missed.if_so(!is_shown));
        }
        exit
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
    /// The study ended before its time, when load had been sent already.
    #[error(transparent)]
    BrokeOff(SweepError),
    /// What was measured could not be written.
    #[error("'{path}' cannot be written ({}): {hint}", path_fault(path, why))]
    Unwritten {
        /// Where to.
        path: PathBuf,
        /// What the system says.
        why: std::io::Error,
        /// What to do.
        hint: &'static str,
    },
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
    /// There is no such server to watch.
    #[error(transparent)]
    Watch(#[from] watch::WatchError),
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
            Mistake::BrokeOff(_) => Exit::Invalid,
            Mistake::Unwritten { .. } => Exit::Unwritten,
            Mistake::Flags(_)
            | Mistake::Sweep(_)
            | Mistake::Requests(_)
            | Mistake::Engine(_)
            | Mistake::Launch(_)
            | Mistake::Sink(_)
            | Mistake::Theory(_)
            | Mistake::Watch(_)
            | Mistake::Read { .. } => Exit::Mistake,
        }
    }

    /// Lines of somebody else (a server) that say more than ours.
    pub(crate) fn last_lines(&self) -> &[String] {
        match self {
            Mistake::Sweep(error) | Mistake::BrokeOff(error) => error.last_lines(),
            _ => &[],
        }
    }
}

/// A file or folder that cannot be written, which is found out before any load; and what to do.
pub(crate) fn unwritable(path: &Path, why: &std::io::Error, hint: &str) -> Mistake {
    let why = path_fault(path, why);
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
