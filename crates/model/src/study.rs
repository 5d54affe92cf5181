//! A study: one invocation and all its runs. As JSON it is the product's file format.

use serde::{Deserialize, Serialize};

use crate::{Caveat, Environment, Nanos, Plan, Run, ServerFacts};

/// The version of the file format that this code writes. It rises with each change that an older reader would misread.
pub const SCHEMA: u32 = 1;

/// One invocation and all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Version of the file format.
    pub schema: u32,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// The command line that would repeat it.
    pub command_line: String,
    /// What was asked.
    pub plan: Plan,
    /// The machine.
    pub environment: Environment,
    /// The server under test.
    pub server: ServerFacts,
    /// The runs that were finished, in order.
    pub runs: Vec<Run>,
    /// What is doubtful about the whole.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
    /// From the start of the first server to the end of the last.
    pub total_time: Nanos,
    /// Whether the user ended it early.
    pub interrupted: bool,
}
