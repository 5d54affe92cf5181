//! Whether to believe the runs: verdicts, errors and warnings of a sweep or of bodies. What was seen of several runs stands once, and
//! so does a hint.

use model::{Diagnostic, Grade, Run};

use crate::facts;
use crate::named_runs::NamedRun;
use crate::tree::{ListItem, ReportSection};
use crate::verdicts;

/// Whether something was seen that may have spoiled a number of the run's row. A number that is left out, or that
/// nothing confirms, has a note and no mark: it would stand on every row and mean nothing.
pub(crate) fn is_doubtful(run: &Run) -> bool {
    let fails = run.claim.as_ref().is_some_and(|claim| claim.failed > Some(0));
    fails || run.warnings.iter().any(|warning| warning.grade() != Grade::Note)
}

/// A row a run: what limited it, and the figures of the evidence; then what was not passed.
pub(crate) fn verdicts(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let judged = || runs.iter().filter_map(|run| Some((&run.name, run.run.judgement.as_ref()?)));
    let limits = judged().filter_map(|(label, judgement)| {
        Some(ListItem { label: label.clone(), ..ListItem::new(verdicts::limit(judgement)?) })
    });
    let mut troubles: Vec<_> = judged()
        .flat_map(|(label, judgement)| {
            let graded = move |check| (label.as_str(), check, judgement.grade(check));
            judgement.troubles().into_iter().map(graded)
        })
        .collect();
    troubles.sort_by_key(|(_, _, grade)| *grade != Grade::Failed);
    let sentences = troubles.iter().map(|(label, check, grade)| SaidDiagnostic {
        label,
        hint: check.hint(),
        text: verdicts::marked_sentence(check, *grade),
    });
    let section = ReportSection::new("verdicts").paragraphs(verdicts::WORDS).table(verdicts::table(runs));
    let section = section.list(limits).list(by_hint(sentences, None));
    judged().next().map(|_| ReportSection { is_detail: troubles.is_empty(), ..section })
}

/// Errors by kind, of the runs that had any.
pub(crate) fn errors(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let errors = runs.iter().filter_map(|NamedRun { name, run }| {
        Some(ListItem { label: name.clone(), ..ListItem::new(facts::errors(run)?) })
    });
    ReportSection::new("errors by kind").list(errors).filled()
}

/// All warnings, of the study and of its runs: first those that set a mark, then the notes.
pub(crate) fn warnings(of_study: &[Diagnostic], runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let of_study = of_study.iter().map(|warning| ("study", warning));
    let of_runs =
        runs.iter().flat_map(|NamedRun { name, run }| run.warnings.iter().map(|warning| (name.as_str(), warning)));
    let mut all: Vec<(&str, &Diagnostic)> = of_study.chain(of_runs).collect();
    all.sort_by_key(|(_, warning)| warning.grade() == Grade::Note);
    let sentences = all.into_iter().map(|(label, warning)| SaidDiagnostic {
        label,
        hint: warning.hint(),
        text: warning.to_string(),
    });
    ReportSection::new("warnings").list(by_hint(sentences, Some(runs.len()))).filled()
}

/// What is said of one run.
struct SaidDiagnostic<'a> {
    label: &'a str,
    hint: &'a str,
    text: String,
}

/// What was said of one run, or in the same words of several.
struct SharedLine<'a> {
    labels: Vec<&'a str>,
    text: String,
}

/// What is said, an item a hint, in the order in which the hints first come up.
/// Where all of so many runs have the same, they need no names.
fn by_hint<'a>(all: impl Iterator<Item = SaidDiagnostic<'a>>, runs: Option<usize>) -> Vec<ListItem> {
    let mut by_hint: Vec<(&str, Vec<SharedLine<'_>>)> = Vec::new();
    for SaidDiagnostic { label, hint, text } in all {
        let at = by_hint.iter().position(|(known, _)| *known == hint).unwrap_or_else(|| {
            by_hint.push((hint, Vec::new()));
            by_hint.len() - 1
        });
        let lines = &mut by_hint[at].1;
        match lines.iter_mut().find(|line| line.text == text) {
            Some(line) if line.labels.contains(&label) => {}
            Some(line) => line.labels.push(label),
            None => lines.push(SharedLine { labels: vec![label], text }),
        }
    }
    let line = |SharedLine { labels, text }: SharedLine<'_>| {
        let is_all = labels.len() > 1 && labels[0] != "study" && Some(labels.len()) == runs;
        format!("{}: {text}", if is_all { "every run".to_owned() } else { labels.join(", ") })
    };
    let item = |(hint, lines): (&str, Vec<SharedLine<'_>>)| {
        ListItem { lines: lines.into_iter().map(line).collect(), ..ListItem::default() }.hint(hint)
    };
    by_hint.into_iter().map(item).collect()
}
