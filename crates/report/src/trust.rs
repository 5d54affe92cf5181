//! Whether the figures of a study can be trusted, a line a thing: what speaks for them first, then
//! each doubt once, however many runs have it.

use std::mem::discriminant;

use model::{Diagnostic, Grade, Judgement, Study, Verdict};
use serde::Serialize;

use crate::labels::{NamedRun, diagnostics};
use crate::number;
use crate::run_summary::{SummaryRun, is_uncertain, range};
use crate::sentences::{brief, listed, percent};

/// One thing that speaks for the figures or against them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustLine {
    /// How it came out.
    pub mark: TrustMark,
    /// In words.
    pub sentence: String,
    /// What to do about it.
    pub hint: Option<&'static str>,
}

impl TrustLine {
    /// A line that there is nothing to do about.
    pub(crate) fn new(mark: TrustMark, sentence: impl Into<String>) -> TrustLine {
        TrustLine { mark, sentence: sentence.into(), hint: None }
    }

    /// The same with what to do about it.
    pub(crate) fn hint(self, hint: &'static str) -> TrustLine {
        TrustLine { hint: Some(hint), ..self }
    }
}

/// How a question came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustMark {
    /// As it should be.
    Passed,
    /// A figure is not known well.
    Uncertain,
    /// Worth a look.
    Doubtful,
    /// It makes figures worthless.
    Failed,
}

impl TrustMark {
    /// Its sign in text.
    pub fn sign(self) -> &'static str {
        match self {
            TrustMark::Passed => "✓",
            TrustMark::Uncertain => "?",
            TrustMark::Doubtful => "!",
            TrustMark::Failed => "✗",
        }
    }
}

/// The percentiles whose doubts are said. How well one run of a comparison knows a percentile does
/// not matter: blocks tell that.
pub(crate) fn shown_percentiles(command: &str) -> &'static [&'static str] {
    match command {
        "load" => &["p50", "p90", "p95", "p99", "p99.9"],
        "sweep" => &["p50", "p95", "p99"],
        _ => &[],
    }
}

/// What speaks for a study's figures and against them; `summaries` are those runs whose percentiles
/// are shown.
pub(crate) fn trust(
    study: &Study,
    runs: &[NamedRun<'_>],
    summaries: &[SummaryRun],
) -> Vec<TrustLine> {
    let shown = shown_percentiles(if matches!(study, Study::Load(_)) { "load" } else { "sweep" });
    let uncertain = uncertain(summaries, shown).into_iter().chain(missing(summaries, shown, study));
    passed(runs).into_iter().chain(doubts(runs)).chain(uncertain).collect()
}

/// That the server was measured, and how far the generator was from being noticed.
fn passed(runs: &[NamedRun<'_>]) -> Option<TrustLine> {
    let judged = runs.iter().filter(|run| run.run.judgement.is_some()).count();
    let evidence = runs.iter().filter(|run| run.run.is_evidence());
    let good: Vec<&Judgement> = evidence.filter_map(|run| run.run.judgement.as_ref()).collect();
    let (mut lags, mut rooms) = (Vec::new(), Vec::new());
    for check in good.iter().flat_map(|judgement| &judgement.checks) {
        match check {
            Diagnostic::GeneratorLag { p99, .. } => lags.push(*p99),
            Diagnostic::Headroom { times, .. } => rooms.push(*times),
            _ => {}
        }
    }
    let what = match (good.first()?.verdict, good.len(), judged) {
        (Verdict::Unloaded, 1, 1) => "The server was measured, and not longtail".to_owned(),
        (Verdict::SharedCpus, 1, 1) => {
            "The CPUs were the limit, and longtail had its part of them".to_owned()
        }
        (Verdict::NetworkBound, 1, 1) => "The network was the limit, and not longtail".to_owned(),
        (_, 1, 1) => "The server was the limit, and not longtail".to_owned(),
        (_, good, all) if good == all => {
            format!("All {all} runs measured the server, and not longtail")
        }
        (_, good, all) => format!("{good} of {all} runs measured the server, and not longtail"),
    };
    let delay = lags
        .into_iter()
        .max()
        .map(|lag| format!("99 % of its requests left within {}", brief(lag)));
    let room = rooms
        .into_iter()
        .reduce(f64::min)
        .map(|times| number::fixed(times, usize::from(times < 9.95)));
    let room = room.map(|times| format!("it could send {times} times more"));
    let evidence = crate::labels::listed([delay, room].into_iter().flatten());
    let colon = if evidence.is_empty() { "" } else { ": " };
    Some(TrustLine::new(TrustMark::Passed, format!("{what}{colon}{evidence}.")))
}

/// What a finding, a mark in the table or another line says already.
fn is_said_elsewhere(diagnostic: &Diagnostic, has_turns: bool) -> bool {
    match diagnostic {
        Diagnostic::Failures { .. }
        | Diagnostic::ServedInTurns { .. }
        | Diagnostic::Unfair { .. }
        | Diagnostic::Growing { .. }
        | Diagnostic::BacklogUnexplained { .. }
        | Diagnostic::TooFewRequests { .. }
        | Diagnostic::QuantilesHidden { .. } => true,
        Diagnostic::ConnectionsClosed { .. } => has_turns,
        _ => false,
    }
}

/// One doubt and the runs that have it.
struct Doubt<'a> {
    diagnostic: &'a Diagnostic,
    grade: Grade,
    labels: Vec<String>,
    /// It made the verdict of its run.
    decides: bool,
}

fn doubts(runs: &[NamedRun<'_>]) -> Vec<TrustLine> {
    let mut doubts: Vec<Doubt<'_>> = Vec::new();
    for NamedRun { name, run } in runs {
        let has_turns =
            run.warnings.iter().any(|warning| matches!(warning, Diagnostic::ServedInTurns { .. }));
        let void = run.judgement.as_ref().filter(|_| !run.is_evidence());
        let decider = void.and_then(|judgement| judgement.troubles().first().copied());
        for (diagnostic, grade) in diagnostics(run) {
            if grade < Grade::Doubtful || is_said_elsewhere(diagnostic, has_turns) {
                continue;
            }
            let decides =
                decider.is_some_and(|decider| discriminant(decider) == discriminant(diagnostic));
            match doubts
                .iter_mut()
                .find(|doubt| discriminant(doubt.diagnostic) == discriminant(diagnostic))
            {
                Some(doubt) => {
                    doubt.grade = doubt.grade.max(grade);
                    doubt.decides |= decides;
                    if doubt.labels.last() != Some(name) {
                        doubt.labels.push(name.clone());
                    }
                }
                None => {
                    doubts.push(Doubt { diagnostic, grade, labels: vec![name.clone()], decides });
                }
            }
        }
    }
    doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.grade));
    let line = |doubt: Doubt<'_>| {
        let at = match doubt.labels.as_slice() {
            _ if runs.len() == 1 => String::new(),
            labels if labels.len() == runs.len() => " (in all runs)".to_owned(),
            labels => format!(" (at {})", listed(labels)),
        };
        let mark =
            if doubt.grade == Grade::Failed { TrustMark::Failed } else { TrustMark::Doubtful };
        let hint = doubt.diagnostic.hint();
        // What decided stands in the conclusion: here is what to do about it.
        if doubt.decides && !hint.is_empty() {
            return TrustLine::new(mark, format!("{}{at}.", capitalized(hint)));
        }
        let sentence =
            format!("{}{at}.", capitalized(doubt.diagnostic.to_string().trim_end_matches('.')));
        TrustLine {
            hint: Some(hint).filter(|hint| !hint.is_empty()),
            ..TrustLine::new(mark, sentence)
        }
    };
    doubts.into_iter().map(line).collect()
}

fn capitalized(text: &str) -> String {
    // The name of a program is as its users write it.
    if ["hey ", "wrk ", "wrk2 ", "oha ", "ab ", "wrk's", "hey's"]
        .iter()
        .any(|name| text.starts_with(name))
    {
        return text.to_owned();
    }
    crate::markdown::capitalised(text)
}

/// The percentiles whose intervals are wide.
fn uncertain(runs: &[SummaryRun], shown: &[&str]) -> Option<TrustLine> {
    const MOST: usize = 3;
    let mut wide: Vec<(f64, String)> = Vec::new();
    for run in runs {
        for (name, time) in run.response_ms.percentiles() {
            let known = run.interval_ms.get(name).filter(|_| shown.contains(&name));
            let (Some(time), Some(ends @ [Some(low), Some(high)])) = (time, known) else {
                continue;
            };
            if is_uncertain(time, Some(ends)) {
                let at =
                    if run.label.is_empty() { String::new() } else { format!(" at {}", run.label) };
                wide.push(((high - low) / time, format!("{name}{at} {} ms", range(ends))));
            }
        }
    }
    wide.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = wide.len().saturating_sub(MOST);
    let mut shown: Vec<String> = wide.into_iter().take(MOST).map(|(_, text)| text).collect();
    shown.extend((more > 0).then(|| format!("{more} more")));
    let sentence = format!("Known only roughly (95 % interval): {}.", listed(&shown));
    (!shown.is_empty())
        .then(|| TrustLine::new(TrustMark::Uncertain, sentence).hint("run longer (--for)"))
}

/// The percentiles that are not printed, and why.
fn missing(runs: &[SummaryRun], shown: &[&str], study: &Study) -> Vec<TrustLine> {
    // The lowest that some run lacks for this reason, and those runs.
    let lowest = |why: &'static str| {
        shown.iter().find_map(|name| {
            let is_lacking = |run: &&SummaryRun| run.missing.get(name) == Some(&why);
            let lacking: Vec<&SummaryRun> = runs.iter().filter(is_lacking).collect();
            (!lacking.is_empty()).then(|| {
                let labels: Vec<String> = lacking.iter().map(|run| run.label.clone()).collect();
                let at = if labels.len() == runs.len() {
                    String::new()
                } else {
                    format!(" at {}", listed(&labels))
                };
                (format!("{name}{at}"), lacking)
            })
        })
    };
    let failures = lowest("failures").map(|(what, lacking)| {
        let slow: u64 = lacking.iter().map(|run| run.requests.unfinished.above_all).sum();
        let sentence = if lacking.iter().all(|run| run.requests.failed == Some(0)) {
            format!("{what} is not a number: {slow} unfinished had waited longer than any answer took.")
        } else {
            let share = |run: &&SummaryRun| {
                Some(run.requests.failed? as f64 / run.requests.planned?.max(1) as f64)
            };
            let failed = percent(lacking.iter().filter_map(share).fold(0.0, f64::max));
            format!("{what} is not a number: a failure counts as slower than any answer, and {failed} failed.")
        };
        TrustLine::new(TrustMark::Uncertain, sentence)
    });
    let too_few = lowest("too_few_answers").map(|(what, _)| {
        let longer = matches!(study, Study::Load(study) if study.plan.length.is_none());
        let hint = if longer { "send more requests (-n)" } else { "run longer (--for)" };
        TrustLine::new(TrustMark::Uncertain, format!("{what} has too few answers above it."))
            .hint(hint)
    });
    failures.into_iter().chain(too_few).collect()
}
