//! What limited each run, with the evidence: a line of figures a run, or words, and a remedy where something is wrong.

use model::{Diagnostic, Grade, Judgement, Limit, Verdict};

use crate::doubts::{self, Doubt};
use crate::number::{self, or_none};

/// The verdict in a sentence.
pub(crate) fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::ServerBound => "server-bound",
        Verdict::GeneratorBound => "GENERATOR-BOUND",
        Verdict::NetworkBound => "network-bound",
        Verdict::SharedCpus => "shared CPUs",
        Verdict::Unloaded => "unloaded",
        Verdict::Invalid => "INVALID",
    }
}

/// The verdict in a column.
pub(crate) fn word(judgement: Option<&Judgement>) -> &'static str {
    match judgement.map(|judgement| judgement.verdict) {
        Some(Verdict::ServerBound) => match judgement.and_then(|judgement| judgement.limit.as_ref()) {
            Some(Limit::Threads { .. }) => "threads",
            Some(Limit::Cpu(_)) => "CPU",
            Some(Limit::RubyLock { .. }) => "lock",
            Some(Limit::AcceptQueue { .. }) => "accept",
            _ => "server",
        },
        Some(Verdict::GeneratorBound) => "GENERATOR",
        Some(Verdict::NetworkBound) => "network",
        Some(Verdict::SharedCpus) => "CPUs",
        Some(Verdict::Unloaded) => "none",
        Some(Verdict::Invalid) => "INVALID",
        None => "-",
    }
}

/// Whether the run's figures must not be shown.
pub(crate) fn hides(judgement: Option<&Judgement>) -> bool {
    judgement.is_some_and(|judgement| judgement.verdict == Verdict::Invalid && !judgement.forced)
}

/// Whether a check is worth a word though it is passed. The others are counted; all are in the saved study.
fn says_much(check: &Diagnostic) -> bool {
    matches!(
        check,
        Diagnostic::Headroom { .. }
            | Diagnostic::GeneratorLag { .. }
            | Diagnostic::LittlesLaw { .. }
            | Diagnostic::SentInTime { .. }
    )
}

/// What the columns of [`figures`] mean, a line each.
pub(crate) const WORDS: [&str; 2] = [
    "ceiling: the generator's own limit, req/s; own lag: its p99, ms; %: of the response time's p99",
    "at once: mean x rate, as many as connections by Little's law; checks: passed, of those asked",
];

/// The head of [`figures`].
pub(crate) const HEAD: [&str; 7] = ["", "ceiling", "x this", "own lag", "%", "at once", "checks"];

/// Whether the table may be parted before that column: each figure stays with its other unit.
pub(crate) fn may_part(column: usize) -> bool {
    !matches!(column, 1 | 3)
}

/// The verdict behind the run's name, and the figures it rests on most; a dash for what was not asked.
pub(crate) fn figures(label: &str, judgement: &Judgement) -> Vec<String> {
    let of = |figures: fn(&Diagnostic) -> Option<[String; 2]>| {
        judgement.checks.iter().find_map(figures).unwrap_or_else(|| [number::NONE, number::NONE].map(str::to_owned))
    };
    let [ceiling, times] = of(|check| match check {
        Diagnostic::Headroom { ceiling_per_s, times } => {
            Some([number::fixed(*ceiling_per_s, 0), number::fixed(*times, 1)])
        }
        _ => None,
    });
    let [lag, part] = of(|check| match check {
        Diagnostic::GeneratorLag { p99, of_response_time } => {
            Some([number::fixed(p99.as_millis_f64(), 3), number::percent_tenths(*of_response_time)])
        }
        _ => None,
    });
    let at_once = judgement.checks.iter().find_map(|check| match check {
        Diagnostic::LittlesLaw { in_flight, .. } => Some(*in_flight),
        _ => None,
    });
    let all = judgement.checks.len() as u64;
    let passed = all - judgement.troubles().len() as u64;
    vec![
        format!("{label} {}", name(judgement.verdict)),
        ceiling,
        times,
        lag,
        part,
        or_none(at_once, |in_flight| number::fixed(in_flight, 1)),
        format!("{} of {}", number::count(passed), number::count(all)),
    ]
}

/// A check that was not passed, in words.
fn told(check: &Diagnostic, grade: Grade) -> String {
    let mark = if grade == Grade::Failed { "FAILS " } else { "doubtful: " };
    format!("{mark}{check}")
}

/// What limited the run, unless a check or a column says so already, or nothing is known.
pub(crate) fn limit(judgement: &Judgement) -> Option<String> {
    let is_said = |limit: &&Limit| {
        matches!(limit, Limit::Generator { .. } | Limit::Threads { .. } | Limit::NotKnown { cpu: None })
    };
    let limit = judgement.limit.as_ref().filter(|limit| !is_said(limit))?;
    let bound = if judgement.verdict == Verdict::SharedCpus { "; on CPUs of its own it would do more" } else { "" };
    Some(format!("limit: {limit}{bound}"))
}

/// What was not passed in any of the runs, by what to do about it: failures first.
pub(crate) fn troubles<'a>(runs: impl Iterator<Item = (&'a String, &'a Judgement)>) -> Vec<Doubt> {
    let of_run = |(label, judgement): (&'a String, &'a Judgement)| {
        let graded = move |check: &'a Diagnostic| (label, check, judgement.grade(check));
        judgement.troubles().into_iter().map(graded).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = runs.flat_map(of_run).collect();
    all.sort_by_key(|(_, _, grade)| *grade != Grade::Failed);
    doubts::by_hint(all.into_iter().map(|(label, check, grade)| (label.clone(), check, told(check, grade))))
}

/// The evidence, a piece a check: what was not passed first, then what was.
pub(crate) fn evidence(judgement: &Judgement) -> Vec<String> {
    let marked = judgement.troubles().into_iter().map(|check| told(check, judgement.grade(check)));
    let passed = judgement.checks.iter().filter(|check| check.grade() == Grade::Passed);
    let (much, others): (Vec<_>, Vec<_>) = passed.partition(|check| says_much(check));
    let others =
        (!others.is_empty()).then(|| format!("{} passed", number::count_of(others.len() as u64, "other check")));
    limit(judgement).into_iter().chain(marked).chain(much.iter().map(ToString::to_string)).chain(others).collect()
}

/// What to do about what was not passed, each once.
pub(crate) fn hints(judgement: &Judgement) -> Vec<&'static str> {
    let mut hints: Vec<&'static str> = judgement.troubles().iter().map(|check| check.hint()).collect();
    hints.dedup();
    hints
}
