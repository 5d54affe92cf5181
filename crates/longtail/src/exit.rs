//! What the exit code says.

/// How an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Fine,
    /// An objective was missed, or a check of the answers failed.
    Missed,
    /// The user's mistake, or a server that does not work: nothing was measured, or not all.
    Mistake,
    /// longtail itself failed: a bug.
    Fault,
    /// The user ended it; what there is was reported.
    Interrupted,
}

impl Exit {
    /// The process's exit code.
    pub(crate) fn code(self) -> i32 {
        match self {
            Exit::Fine => 0,
            Exit::Missed => 1,
            Exit::Mistake => 2,
            Exit::Fault => 70,
            Exit::Interrupted => 130,
        }
    }
}
