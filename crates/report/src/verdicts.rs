//! What limited each run, with the evidence: a line of figures a run, or words, and a remedy where something is wrong.

use model::{Diagnostic, Grade, Judgement, Limit, Verdict};

use crate::named_runs::NamedRun;
use crate::number;
use crate::tree::{DataTable, TableCell, TableColumn, TableRow};

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

/// What the columns of [`table`] mean, a line each.
pub(crate) const WORDS: [&str; 2] = [
    "ceiling: the generator's own limit, req/s; own lag: its p99, ms; %: of the response time's p99",
    "at once: mean x rate, as many as connections by Little's law; checks: passed, of those asked",
];

/// A row a run: the verdict behind its name, and the figures it rests on most; a dash for what was not asked.
pub(crate) fn table(runs: &[NamedRun<'_>]) -> DataTable {
    let new = TableColumn::new;
    let columns = [
        new(""),
        new("ceiling"),
        new("x this").joined(),
        new("own lag"),
        new("%").joined(),
        new("at once"),
        new("checks"),
    ];
    let rows = runs.iter().filter_map(|run| Some(row(&run.name, run.run.judgement.as_ref()?)));
    DataTable::of_columns(columns, rows)
}

fn row(label: &str, judgement: &Judgement) -> TableRow {
    let none = || TableCell::from(number::NONE);
    let fixed = |value, decimals| TableCell::number(Some(value), |value| number::fixed(value, decimals));
    let find = |figures: &dyn Fn(&Diagnostic) -> Option<[TableCell; 2]>| {
        judgement.checks.iter().find_map(figures).unwrap_or_else(|| [none(), none()])
    };
    let [ceiling, times] = find(&|check| match check {
        Diagnostic::Headroom { ceiling_per_s, times } => Some([fixed(*ceiling_per_s, 0), fixed(*times, 1)]),
        _ => None,
    });
    let [lag, part] = find(&|check| match check {
        Diagnostic::GeneratorLag { p99, of_response_time } => {
            let part = TableCell::number(Some(*of_response_time), number::percent_tenths);
            Some([fixed(p99.as_millis_f64(), 3), part])
        }
        _ => None,
    });
    let [at_once, _] = find(&|check| match check {
        Diagnostic::LittlesLaw { in_flight, .. } => Some([fixed(*in_flight, 1), TableCell::default()]),
        _ => None,
    });
    let all = judgement.checks.len() as u64;
    let passed = all - judgement.troubles().len() as u64;
    let checks = TableCell::from(format!("{} of {}", number::count(passed), number::count(all)));
    TableRow::new([format!("{label} {}", name(judgement.verdict)).into(), ceiling, times, lag, part, at_once, checks])
}

/// A check that was not passed, in words.
pub(crate) fn marked_sentence(check: &Diagnostic, grade: Grade) -> String {
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

/// The evidence, a piece a check: what was not passed first, then what was.
pub(crate) fn evidence(judgement: &Judgement) -> Vec<String> {
    let marked = judgement.troubles().into_iter().map(|check| marked_sentence(check, judgement.grade(check)));
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
