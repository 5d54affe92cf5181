//! Lanes and server may run on the same CPUs, and the lanes used a notable share of those.

use model::{Cpus, Diagnostic, GeneratorFacts, LaneFacts, Nanos, Placement};

use super::{Assessment, Grade};

/// Below this share of the shared CPUs, the lanes do not show in the server's figures.
const TAKEN: f64 = 0.01;

/// The CPUs that lanes and server share, if the lanes used a notable share of them.
pub(super) fn ask(generator: &GeneratorFacts, placement: Option<&Placement>) -> Option<Diagnostic> {
    let Placement { server, lanes } = placement.filter(|placement| placement.is_shared())?;
    let cpus = server.common(lanes);
    let longest = generator.lanes.iter().map(|lane| lane.elapsed).max();
    let elapsed = longest.filter(|elapsed| *elapsed > Nanos::ZERO)?;
    let work: Nanos = generator.lanes.iter().map(LaneFacts::work).sum();
    // The lanes' own CPUs, if any, may have done all of the work.
    let own = lanes.len() - cpus.len();
    let taken = (work.as_secs_f64() / elapsed.as_secs_f64() - own as f64) / cpus.len() as f64;
    (taken >= TAKEN).then_some(Diagnostic::SharedCpus { cpus, taken })
}

/// What the lanes took the server may gain at most. Less than this is less than what `compare` takes
/// for a difference, so it puts no figure in doubt.
const MATTERS: f64 = 0.05;

/// Grade, sentence and hint.
pub(super) fn assess(cpus: &Cpus, taken: f64) -> Assessment {
    let grade = if taken < MATTERS { Grade::Note } else { Grade::Doubtful };
    let sentence = format!(
        "the generator shared {} with the server and used {:.0} % of the time there: \
            the server may be faster by itself",
        cpus.in_words(),
        taken * 100.0
    );
    let hint = "keep the server to some CPUs (taskset, or --server-cpus for one that longtail \
                starts): the generator then uses the others";
    Assessment::new(grade, sentence, hint)
}
