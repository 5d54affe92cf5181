//! A generator on another machine was lost: it ended in the middle of the run, or stopped
//! answering.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};

/// One for each lost generator.
pub(super) fn ask(run: &Run) -> Vec<Diagnostic> {
    let lost =
        run.generator.far.iter().filter_map(|one| Some((one.name.clone(), one.lost.clone()?)));
    lost.map(|(name, why)| Diagnostic::GeneratorLost { name, why }).collect()
}

/// Grade, sentence and hint.
pub(super) fn assess(name: &str, why: &str) -> Assessment {
    let grade = Grade::Failed;
    let sentence = format!("the generator '{name}' was lost: {why}. Its requests are not counted");
    let hint = "run again; the figures are those of the other generators, and the load was \
            less than planned";
    Assessment::new(grade, sentence, hint)
}
