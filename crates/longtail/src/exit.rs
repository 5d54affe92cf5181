//! Exit codes ([`Exit`]), and what can go wrong, each as one line ([`Mistake`]).

use std::path::{Path, PathBuf};

use judge::StudyOutcome;
use model::Study;
use model::paths::path_fault;
use sweep::SweepError;
use thiserror::Error;

/// How an invocation ended. [`Exit::ALL`] says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Measured, and all thresholds hold.
    Fine = 0,
    /// A threshold is missed or cannot be judged, or an arm is worse.
    Missed = 1,
    /// The user's mistake, or a server that does not start: no load was sent.
    Mistake = 2,
    /// Load was sent, but no figure is the server's: all requests failed, counts disagree, or the
    /// study broke off.
    Invalid = 3,
    /// Measured, but a result could not be written.
    Unwritten = 4,
    /// A bug in longtail.
    Fault = 70,
    /// The user interrupted; what was measured is reported.
    Interrupted = 130,
}

impl Exit {
    /// All exit codes with their meaning, for the help. If several apply, the first of this list
    /// wins: a code comes before those that it makes meaningless, and results before files.
    pub(crate) const ALL: [(Exit, &str); 7] = [
        (Exit::Fault, "a bug in longtail"),
        (Exit::Mistake, "misuse, or a server that does not start: no load was sent"),
        (Exit::Interrupted, "interrupted by Ctrl-C; what was measured is reported"),
        (Exit::Invalid, "load was sent, but no figure is the server's (INVALID)"),
        (Exit::Missed, "an expectation is missed, or it cannot be told whether it holds"),
        (Exit::Unwritten, "measured, but a result could not be written"),
        (
            Exit::Fine,
            "measured, and all that was expected holds; report, unless it is asked to --expect",
        ),
    ];

    /// The exit code if both apply: the one that comes first in [`Exit::ALL`].
    pub(crate) fn and(self, other: Exit) -> Exit {
        let applies = |(exit, _): &(Exit, &str)| (*exit == self || *exit == other).then_some(*exit);
        Exit::ALL.iter().find_map(applies).unwrap_or(other)
    }

    /// This code if the condition holds, else [`Exit::Fine`].
    pub(crate) fn if_so(self, condition: bool) -> Exit {
        if condition { self } else { Exit::Fine }
    }

    /// The exit code of a study, without `--strict`.
    pub(crate) fn of(study: &Study) -> Exit {
        Exit::strictly(study, false)
    }

    /// The exit code of a study. `is_strict`: whether an arm of a comparison that may be worse counts
    /// as worse.
    pub(crate) fn strictly(study: &Study, is_strict: bool) -> Exit {
        let outcome = StudyOutcome::of(study, is_strict);
        Exit::Interrupted
            .if_so(outcome.is_interrupted)
            .and(Exit::Invalid.if_so(outcome.is_invalid))
            .and(Exit::Missed.if_so(outcome.is_missed))
    }

    /// The exit code of a saved study that is held against thresholds: as its command would have
    /// ended with them. That it was interrupted was said then.
    pub(crate) fn of_expected(study: &Study) -> Exit {
        let outcome = StudyOutcome { is_interrupted: false, ..StudyOutcome::of(study, false) };
        Exit::Invalid.if_so(outcome.is_invalid).and(Exit::Missed.if_so(outcome.is_missed))
    }

    /// The process's exit code.
    pub(crate) fn code(self) -> i32 {
        self as i32
    }
}

/// Why longtail did nothing, or not all that was asked.
#[derive(Debug, Error)]
pub(crate) enum Mistake {
    /// The flags are wrong.
    #[error("{0}")]
    Flags(String),
    /// The words are wrong, and these lines were meant.
    #[error("{0}")]
    ToType(LinesToType),
    /// The study could not be made.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// The study broke off after load had been sent.
    #[error(transparent)]
    BrokeOff(SweepError),
    /// A result could not be written.
    #[error("'{path}' cannot be written ({}): {hint}", path_fault(path, why))]
    Unwritten {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The flags or the file don't make valid requests.
    #[error(transparent)]
    Requests(#[from] requests::RequestError),
    /// The load cannot be sent, such as to an unknown host.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// A server could not be prepared.
    #[error(transparent)]
    Launch(#[from] launch::LaunchError),
    /// The built-in server could not start.
    #[error(transparent)]
    Sink(#[from] sink::SinkError),
    /// Theory has no answer to that.
    #[error(transparent)]
    Theory(#[from] queueing::QueueingError),
    /// The self-test could not start.
    #[error(transparent)]
    Selftest(#[from] selftest::SelftestError),
    /// Another generator cannot make the load.
    #[error(transparent)]
    Generator(#[from] generators::GeneratorError),
    /// There is no such server to watch.
    #[error(transparent)]
    Watch(#[from] watch::WatchError),
    /// A study could not be read.
    #[error("'{path}' cannot be read: {why}")]
    Read {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Mistake {
    /// Its exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Mistake::BrokeOff(_) => Exit::Invalid,
            Mistake::Unwritten { .. } => Exit::Unwritten,
            Mistake::Flags(_)
            | Mistake::ToType(_)
            | Mistake::Sweep(_)
            | Mistake::Requests(_)
            | Mistake::Engine(_)
            | Mistake::Launch(_)
            | Mistake::Sink(_)
            | Mistake::Theory(_)
            | Mistake::Selftest(_)
            | Mistake::Generator(_)
            | Mistake::Watch(_)
            | Mistake::Read { .. } => Exit::Mistake,
        }
    }

    /// The server's last lines of output, if they help.
    pub(crate) fn last_lines(&self) -> &[String] {
        match self {
            Mistake::Sweep(error) | Mistake::BrokeOff(error) => error.last_lines(),
            _ => &[],
        }
    }
}

/// What is wrong with a line, and lines to type in its place. Each stands alone, unless all of it is
/// one short line; a terminal breaks it only as a shell reads it, so that it can be pasted.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinesToType {
    pub(crate) lines: Vec<LineToType>,
    /// What is said behind them.
    pub(crate) rest: String,
}

/// A line to type.
#[derive(Clone, Debug)]
pub(crate) struct LineToType {
    /// What is said before it.
    pub(crate) before: String,
    pub(crate) line: String,
    /// What it does otherwise than what was typed: a sentence each, the most consequential first.
    pub(crate) notes: Vec<String>,
}

impl LinesToType {
    /// One line, and what is said before it.
    pub(crate) fn one(before: impl Into<String>, line: impl Into<String>) -> LinesToType {
        let line = LineToType { before: before.into(), line: line.into(), notes: Vec::new() };
        LinesToType { lines: vec![line], rest: String::new() }
    }

    /// Adds what `of_lines` says of them all behind them.
    pub(crate) fn saying(mut self, of_lines: impl Fn(&str) -> Option<String>) -> LinesToType {
        let lines: Vec<&str> = self.lines.iter().map(|one| &*one.line).collect();
        if let Some(missing) = of_lines(&lines.join("\n")) {
            self.rest.push_str("; ");
            self.rest.push_str(&missing);
        }
        self
    }

    /// The same behind these words.
    pub(crate) fn after(mut self, words: &str) -> LinesToType {
        if let Some(first) = self.lines.first_mut() {
            first.before.insert_str(0, words);
        }
        self
    }
}

impl std::fmt::Display for LinesToType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What is said of all lines is said of a single one first.
        let is_one = self.lines.len() == 1;
        for LineToType { before, line, notes } in &self.lines {
            write!(f, "{before}{line}{}", if is_one { &self.rest } else { "" })?;
            notes.iter().try_for_each(|note| write!(f, "; {note}"))?;
        }
        f.write_str(if is_one { "" } else { &self.rest })
    }
}

/// A file or folder that cannot be written, found before any load; with what to do.
pub(crate) fn unwritable(path: &Path, why: &std::io::Error, hint: &str) -> Mistake {
    let why = path_fault(path, why);
    wrong(format!("'{}' cannot be written ({why}): {hint}", path.display()))
}

/// An error if `is_wrong`; `why` is one line that says what is wrong and what to type.
pub(crate) fn refuse_if(is_wrong: bool, why: impl std::fmt::Display) -> Result<(), Mistake> {
    if is_wrong { Err(wrong(why.to_string())) } else { Ok(()) }
}

/// A mistake of the user, and the line that was meant; `before` is what is said before it.
pub(crate) fn to_type(before: impl Into<String>, line: impl Into<String>) -> Mistake {
    Mistake::ToType(LinesToType::one(before, line))
}

/// A mistake of the user; `text` is one line that says what is wrong and what to type.
pub(crate) fn wrong(text: impl Into<String>) -> Mistake {
    Mistake::Flags(text.into())
}
