//! What the exit code says.

use model::{Judgement, Verdict};

/// How an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Fine,
    /// An objective was missed, or nobody can tell because the generator was the limit; or a check of the answers failed.
    Missed,
    /// The user's mistake, or a server that does not start: no load was sent.
    Mistake,
    /// longtail itself failed: a bug.
    Fault,
    /// Load was sent, and no figure is the server's: nothing came back good, counts disagree, or the server died.
    Invalid,
    /// The user ended it; what there is was reported.
    Interrupted,
}

impl Exit {
    /// What says a study with these verdicts: [`Exit::Invalid`] where there is no other.
    pub(crate) fn of<'a>(judgements: impl IntoIterator<Item = Option<&'a Judgement>>) -> Exit {
        let is_invalid =
            |judgement: Option<&Judgement>| judgement.is_some_and(|judgement| judgement.verdict == Verdict::Invalid);
        let mut judgements = judgements.into_iter().peekable();
        let is_any = judgements.peek().is_some();
        if is_any && judgements.all(is_invalid) { Exit::Invalid } else { Exit::Fine }
    }

    /// The process's exit code.
    pub(crate) fn code(self) -> i32 {
        match self {
            Exit::Fine => 0,
            Exit::Missed => 1,
            Exit::Mistake => 2,
            Exit::Fault => 70,
            Exit::Invalid => 3,
            Exit::Interrupted => 130,
        }
    }
}
