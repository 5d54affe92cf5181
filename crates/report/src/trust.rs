//! Whether the figures of a study can be trusted, a line a thing: what speaks for them first, then each doubt once, however many runs
//! have it.

use std::mem::discriminant;

use model::{Counts, Diagnostic, Grade, Judgement, Nanos, Quantile, Study, Verdict};
use serde::Serialize;

use crate::named_runs::{NamedRun, hides};
use crate::number;
use crate::sentences::{brief, listed, percent};

/// One thing that speaks for the figures or against them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustLine {
    /// How it came out.
    pub mark: TrustMark,
    /// In words.
    pub sentence: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'static str>,
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

/// The percentiles of the table of a sweep, and those of a load.
const OF_A_SWEEP: [f64; 3] = [0.50, 0.95, 0.99];
const OF_A_LOAD: [f64; 5] = [0.50, 0.90, 0.95, 0.99, 0.999];
/// A percentile is uncertain where half of its 95 % interval is more than this part of it.
pub(crate) const UNCERTAIN: f64 = 0.2;

/// Whether the figure is uncertain: its mark stands behind it.
pub(crate) fn is_uncertain(time: f64, interval: Option<&[Option<f64>; 2]>) -> bool {
    match interval {
        Some([Some(low), Some(high)]) => (high - low) / 2.0 > UNCERTAIN * time,
        Some(_) => true,
        None => false,
    }
}

/// What speaks for a study's figures and against them.
pub(crate) fn trust(study: &Study, runs: &[NamedRun<'_>]) -> Vec<TrustLine> {
    let shown = match study {
        Study::Load(_) => OF_A_LOAD.as_slice(),
        Study::Sweep(_) | Study::Bodies(_) => &OF_A_SWEEP,
        // How well one run knows a percentile does not matter: blocks tell that.
        Study::Compare(_) => &[],
    };
    let mut lines: Vec<TrustLine> = passed(runs).into_iter().collect();
    lines.extend(doubts(runs));
    lines.extend(uncertain(runs, shown));
    lines.extend(missing(runs, shown, study));
    lines
}

/// That the server was measured, and how far the generator was from being noticed.
fn passed(runs: &[NamedRun<'_>]) -> Option<TrustLine> {
    let judged: Vec<&Judgement> = runs.iter().filter_map(|run| run.run.judgement.as_ref()).collect();
    let is_good = |judgement: &&&Judgement| !matches!(judgement.verdict, Verdict::GeneratorBound | Verdict::Invalid);
    let good: Vec<&Judgement> = judged.iter().filter(is_good).copied().collect();
    let checks = || good.iter().flat_map(|judgement| &judgement.checks);
    let times = checks().filter_map(|check| match check {
        Diagnostic::Headroom { times, .. } => Some(*times),
        _ => None,
    });
    let lag = checks().filter_map(|check| match check {
        Diagnostic::GeneratorLag { p99, .. } => Some(*p99),
        _ => None,
    });
    if good.is_empty() {
        return None;
    }
    let what = match (good.len(), judged.len()) {
        (1, 1) => match good[0].verdict {
            Verdict::Unloaded => "The server was measured, and not longtail".to_owned(),
            Verdict::SharedCpus => "The CPUs were the limit, and longtail had its part of them".to_owned(),
            Verdict::NetworkBound => "The network was the limit, and not longtail".to_owned(),
            _ => "The server was the limit, and not longtail".to_owned(),
        },
        (good, all) if good == all => {
            format!("All {} runs measured the server, and not longtail", number::count(all as u64))
        }
        (good, all) => format!(
            "{} of {} runs measured the server, and not longtail",
            number::count(good as u64),
            number::count(all as u64)
        ),
    };
    let delay = lag.max().map(|lag| format!("99 % of its requests left within {}", brief(lag)));
    let room = times
        .reduce(f64::min)
        .map(|times| format!("it could send {} times more", number::fixed(times, usize::from(times < 9.95))));
    let evidence: Vec<String> = [delay, room].into_iter().flatten().collect();
    let evidence = if evidence.is_empty() { String::new() } else { format!(": {}", evidence.join(", ")) };
    Some(TrustLine { mark: TrustMark::Passed, sentence: format!("{what}{evidence}."), hint: None })
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
        let judgement = run.judgement.as_ref();
        let has_turns = run.warnings.iter().any(|warning| matches!(warning, Diagnostic::ServedInTurns { .. }));
        let is_void = !run.is_evidence();
        let decider = judgement.filter(|_| is_void).and_then(|judgement| judgement.troubles().first().copied());
        let checks = judgement
            .into_iter()
            .flat_map(|judgement| judgement.troubles().into_iter().map(|check| (check, judgement.grade(check))));
        let warnings = run.warnings.iter().map(|warning| (warning, warning.grade()));
        for (diagnostic, grade) in checks.chain(warnings) {
            if grade < Grade::Doubtful || is_said_elsewhere(diagnostic, has_turns) {
                continue;
            }
            let decides = decider.is_some_and(|decider| discriminant(decider) == discriminant(diagnostic));
            match doubts.iter_mut().find(|doubt| discriminant(doubt.diagnostic) == discriminant(diagnostic)) {
                Some(doubt) => {
                    doubt.grade = doubt.grade.max(grade);
                    doubt.decides |= decides;
                    if doubt.labels.last() != Some(name) {
                        doubt.labels.push(name.clone());
                    }
                }
                None => doubts.push(Doubt { diagnostic, grade, labels: vec![name.clone()], decides }),
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
        let mark = if doubt.grade == Grade::Failed { TrustMark::Failed } else { TrustMark::Doubtful };
        let hint = Some(doubt.diagnostic.hint()).filter(|hint| !hint.is_empty());
        // What decided stands in the conclusion: here is what to do about it.
        if let Some(hint) = hint.filter(|_| doubt.decides) {
            return TrustLine { mark, sentence: format!("{}{at}.", capitalized(hint)), hint: None };
        }
        TrustLine {
            mark,
            sentence: format!("{}{at}.", capitalized(doubt.diagnostic.to_string().trim_end_matches('.'))),
            hint,
        }
    };
    doubts.into_iter().map(line).collect()
}

fn capitalized(text: &str) -> String {
    // The name of a program is as its users write it.
    if ["hey ", "wrk ", "wrk2 ", "oha ", "ab ", "wrk's", "hey's"].iter().any(|name| text.starts_with(name)) {
        return text.to_owned();
    }
    crate::markdown::capitalised(text)
}

/// The percentiles whose intervals are wide.
fn uncertain(runs: &[NamedRun<'_>], shown: &[f64]) -> Option<TrustLine> {
    const MOST: usize = 3;
    let mut wide: Vec<(f64, String)> = Vec::new();
    for NamedRun { name, run } in runs.iter().filter(|run| !hides(run.run.judgement.as_ref())) {
        for q in shown {
            let interval = run.statistics.as_ref().and_then(|known| known.interval(*q));
            let ends = interval.and_then(|interval| interval.low.zip(interval.high));
            let Some((time, (low, high))) = run.response_time(*q).time().zip(ends) else { continue };
            let half = high.saturating_sub(low).0 as f64 / 2.0 / time.0.max(1) as f64;
            if half > UNCERTAIN {
                let at = if name.is_empty() { String::new() } else { format!(" at {name}") };
                wide.push((half, format!("{}{at} {}", number::percentile(*q), range(low, high))));
            }
        }
    }
    wide.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = wide.len().saturating_sub(MOST);
    let mut shown: Vec<String> = wide.into_iter().take(MOST).map(|(_, text)| text).collect();
    shown.extend((more > 0).then(|| format!("{more} more")));
    let line = |shown: &[String]| TrustLine {
        mark: TrustMark::Uncertain,
        sentence: format!("Known only roughly (95 % interval): {}.", listed(shown)),
        hint: Some("run longer (--for)"),
    };
    (!shown.is_empty()).then(|| line(&shown))
}

/// `21.3–27.3 ms`.
fn range(low: Nanos, high: Nanos) -> String {
    format!("{}–{} ms", number::milliseconds(low), number::milliseconds(high))
}

/// A percentile that some runs do not have.
struct MissingPercentile {
    from: f64,
    /// In words.
    at: String,
    /// The share of failed requests, of the run that has the most.
    failed: f64,
}

/// The percentiles that are not printed, and why.
fn missing(runs: &[NamedRun<'_>], shown: &[f64], study: &Study) -> Vec<TrustLine> {
    let lowest = |wanted: Quantile| {
        let of = |run: &NamedRun<'_>| shown.iter().copied().find(|q| run.run.response_time(*q) == wanted);
        let visible = runs.iter().filter(|run| !hides(run.run.judgement.as_ref()));
        let lacking: Vec<(&NamedRun<'_>, f64)> = visible.filter_map(|run| Some((run, of(run)?))).collect();
        let from = lacking.iter().map(|(_, q)| *q).reduce(f64::min)?;
        let names = lacking.iter().filter(|(_, q)| q.total_cmp(&from).is_eq()).map(|(run, _)| run.name.clone());
        let names: Vec<String> = names.collect();
        let is_all = runs.len() == 1 || names.len() == runs.len();
        let at = if is_all { String::new() } else { format!(" at {}", listed(&names)) };
        let share = |counts: &Counts| counts.failed() as f64 / counts.total().max(1) as f64;
        let failed = lacking.iter().map(|(run, _)| share(&run.run.tally.counts)).fold(0.0, f64::max);
        Some(MissingPercentile { from, at, failed })
    };
    let mut lines = Vec::new();
    if let Some(MissingPercentile { from, at, failed }) = lowest(Quantile::Unanswered) {
        let sentence = format!(
            "{}{at} is not a number: a failure counts as slower than any answer, and {} failed.",
            number::percentile(from),
            percent(failed)
        );
        lines.push(TrustLine { mark: TrustMark::Uncertain, sentence, hint: None });
    }
    if let Some(MissingPercentile { from, at, .. }) = lowest(Quantile::TooFew) {
        let longer = matches!(study, Study::Load(study) if study.plan.length.is_none());
        let hint = if longer { "send more requests (-n)" } else { "run longer (--for)" };
        let sentence = format!("{}{at} has too few answers above it.", number::percentile(from));
        lines.push(TrustLine { mark: TrustMark::Uncertain, sentence, hint: Some(hint) });
    }
    lines
}
