//! The server may run where the lanes do, and these took a part of it that is worth a word.

use model::{Cpus, Diagnostic, GeneratorFacts, LaneFacts, Nanos, Placement};

use super::{Assessment, Grade};

/// Lanes that take less than this of the processors that they share with the server are not seen in
/// its figures.
const TAKEN: f64 = 0.01;

/// The processors that lanes and server share, where the lanes took a part of them that is worth a
/// word.
pub(super) fn ask(generator: &GeneratorFacts, placement: Option<&Placement>) -> Option<Diagnostic> {
    let Placement { server, lanes } = placement.filter(|placement| placement.is_shared())?;
    let cpus = server.common(lanes);
    let longest = generator.lanes.iter().map(|lane| lane.elapsed).max();
    let elapsed = longest.filter(|elapsed| *elapsed > Nanos::ZERO)?;
    let work: Nanos = generator.lanes.iter().map(LaneFacts::work).sum();
    // Their own processors may have done it all, as far as there are such.
    let own = lanes.len() - cpus.len();
    let taken = (work.as_secs_f64() / elapsed.as_secs_f64() - own as f64) / cpus.len() as f64;
    (taken >= TAKEN).then_some(Diagnostic::SharedCpus { cpus, taken })
}

/// Grade, sentence and hint.
pub(super) fn assess(cpus: &Cpus, taken: f64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "the generator shared {} with the server and used {:.0} % of the time there: \
            the server may be faster by itself",
        cpus.in_words(),
        taken * 100.0
    );
    let hint = "keep the server to some CPUs (taskset; sweep and compare: --server-cpus): the \
             generator then uses the others";
    Assessment::new(grade, sentence, hint)
}
