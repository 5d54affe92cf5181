//! Some connections get no response at all while the server keeps serving the others.

use model::{Diagnostic, Run};
use serde::{Deserialize, Serialize};

use super::Finding;

/// Some connections get no response at all while the server keeps serving the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeverServed {
    /// Connections without a response.
    pub never: u32,
    /// All connections.
    pub connections: u32,
}

/// Takes the figures from the run's warning.
pub(super) fn of(run: &Run) -> Option<Finding> {
    run.warnings.iter().find_map(|warning| match warning {
        Diagnostic::NeverServed { never, connections } => {
            Some(NeverServed { never: *never, connections: *connections }.into())
        }
        _ => None,
    })
}

impl NeverServed {
    pub(super) fn sentence(&self) -> String {
        let NeverServed { never, connections } = self;
        let are = if *never == 1 { "is" } else { "are" };
        format!(
            "{never} of the {connections} connections {are} never served while the load lasts: the \
             server keeps to the other {}. No percentile shows that, since these requests do not end \
             in that time.",
            connections - never
        )
    }
}
