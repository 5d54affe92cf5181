//! One figure of each body over each kind of socket, as summaries of a study of bodies show it.

use model::{BodiesStudy, Body, BodyRun, Socket};

use crate::repeats::spread;
use crate::verdicts;

/// What a summary shows.
pub(crate) struct PivotFigure {
    /// Over its columns.
    pub(crate) title: &'static str,
    /// Of one run.
    pub(crate) of: fn(&BodyRun) -> Option<f64>,
    pub(crate) shown: fn(f64) -> String,
}

/// The figure of a body over a kind of socket: over several passes that of the run in the middle, the lower of two. `None` where
/// any of its runs is missing it, is invalid, or was not done.
pub(crate) fn of_body(study: &BodiesStudy, socket: Socket, body: Body, figure: &PivotFigure) -> Option<f64> {
    let runs = study.runs.iter().filter(|run| run.socket == socket && run.body == body);
    let figures = runs.map(|run| (figure.of)(run).filter(|_| !verdicts::hides(run.run.judgement.as_ref())));
    spread(figures.collect()).map(|[median, _, _]| median)
}
