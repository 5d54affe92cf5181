//! What limited each run, in words, with the evidence: one line a run, and a remedy where something is wrong.

use model::{Gate, Grade, Judgement, Verdict};

use crate::number;

/// The verdict in a sentence.
pub(crate) fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::ServerBound => "server-bound",
        Verdict::GeneratorBound => "GENERATOR-BOUND",
        Verdict::Unloaded => "unloaded",
        Verdict::Invalid => "INVALID",
    }
}

/// The verdict in a column.
pub(crate) fn word(judgement: Option<&Judgement>) -> &'static str {
    match judgement.map(|judgement| judgement.verdict) {
        Some(Verdict::ServerBound) => "server",
        Some(Verdict::GeneratorBound) => "GENERATOR",
        Some(Verdict::Unloaded) => "none",
        Some(Verdict::Invalid) => "INVALID",
        None => "-",
    }
}

/// Whether the run's figures must not be shown.
pub(crate) fn hides(judgement: Option<&Judgement>) -> bool {
    judgement.is_some_and(|judgement| judgement.verdict == Verdict::Invalid && !judgement.forced)
}

/// Whether a gate is worth a word though it is passed. The others are counted; all are in the saved study.
fn says_much(gate: &Gate) -> bool {
    matches!(
        gate,
        Gate::Headroom { .. } | Gate::GeneratorLag { .. } | Gate::LittlesLaw { .. } | Gate::SentInTime { .. }
    )
}

/// The evidence, a piece a gate: what was not passed first, then what was.
pub(crate) fn evidence(judgement: &Judgement) -> Vec<String> {
    let troubles = judgement.troubles();
    let marked = troubles.iter().map(|gate| {
        let mark = if gate.grade() == Grade::Fail { "FAILS " } else { "doubtful: " };
        format!("{mark}{}", gate.text())
    });
    let passed = || judgement.gates.iter().filter(|gate| gate.grade() == Grade::Pass);
    let told = passed().filter(|gate| says_much(gate)).map(Gate::text);
    let others = passed().filter(|gate| !says_much(gate)).count() as u64;
    let others = (others > 0).then(|| format!("{} passed", number::count_of(others, "other gate")));
    marked.chain(told).chain(others).collect()
}

/// What to do about what was not passed, each once.
pub(crate) fn remedies(judgement: &Judgement) -> Vec<&'static str> {
    let mut remedies: Vec<&'static str> = judgement.troubles().iter().map(|gate| gate.remedy()).collect();
    remedies.dedup();
    remedies
}
