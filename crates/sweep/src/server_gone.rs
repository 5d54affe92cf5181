//! Whether a server that longtail did not start has ended while it was loaded.

use std::time::Duration;

use engine::{LoadSpec, reach};
use model::{Outcome, Run};

use crate::context::Context;

/// The time limit of the connect that checks whether the server is still there.
const PATIENCE: Duration = Duration::from_secs(4);

/// Whether nothing listens any more where this run's requests went.
pub(crate) fn is_gone(run: &Run, spec: &LoadSpec, context: &Context<'_>) -> bool {
    if run.tally.counts.of(Outcome::Refused) == 0 {
        return false;
    }
    if context.far.is_some() {
        // The machines that load the server may reach it where this one cannot.
        return run.tally.gone_from().is_some();
    }
    spec.transport.endpoints.iter().all(|endpoint| reach(endpoint, PATIENCE).is_err())
}
