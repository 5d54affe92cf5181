//! Whether the figures of a study can be trusted, a line a thing: what speaks for them first, then
//! each doubt once, however many runs have it.

use std::mem::discriminant;

use model::{Diagnostic, Judgement, Nanos, Quantile, Run, Study, Verdict, number};
use serde::Serialize;

use crate::checks::{Grade, assess, machine_busy};
use crate::named_runs::{NamedRun, diagnostics, is_hidden};
use crate::verdict::troubles;
use crate::words::{brief, listed, share};

/// One thing that speaks for the figures or against them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrustLine {
    /// How it came out.
    pub mark: Grade,
    /// In words.
    pub sentence: String,
    /// What to do about it.
    pub hint: Option<&'static str>,
}

impl TrustLine {
    /// A line that there is nothing to do about.
    pub fn new(mark: Grade, sentence: impl Into<String>) -> TrustLine {
        TrustLine { mark, sentence: sentence.into(), hint: None }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(self, hint: &'static str) -> TrustLine {
        TrustLine { hint: Some(hint), ..self }
    }
}

/// A percentile that the answer shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShownPercentile {
    /// `p99.9`.
    pub name: &'static str,
    /// 0 to 1.
    pub quantile: f64,
}

const P50: ShownPercentile = ShownPercentile { name: "p50", quantile: 0.50 };
const P90: ShownPercentile = ShownPercentile { name: "p90", quantile: 0.90 };
const P95: ShownPercentile = ShownPercentile { name: "p95", quantile: 0.95 };
const P99: ShownPercentile = ShownPercentile { name: "p99", quantile: 0.99 };
const P999: ShownPercentile = ShownPercentile { name: "p99.9", quantile: 0.999 };

/// The percentiles of a summary.
pub const SUMMARY_PERCENTILES: [ShownPercentile; 5] = [P50, P90, P95, P99, P999];

/// The percentiles that the answer of a command shows, whose doubts are said. How well one run of a
/// comparison knows a percentile does not matter: blocks tell that.
pub fn shown_percentiles(command: &str) -> &'static [ShownPercentile] {
    match command {
        "load" => &SUMMARY_PERCENTILES,
        "sweep" => &[P50, P95, P99],
        _ => &[],
    }
}

/// What speaks for a study's figures and against them; `shown` are those runs whose percentiles are
/// shown.
pub fn trust(study: &Study, runs: &[NamedRun<'_>], shown: &[NamedRun<'_>]) -> Vec<TrustLine> {
    let command = if matches!(study, Study::Load(_)) { "load" } else { "sweep" };
    let percentiles = shown_percentiles(command);
    let mut lines: Vec<TrustLine> = passed(runs).into_iter().collect();
    lines.extend(doubts(runs));
    lines.extend(generators_part(shown, percentiles));
    lines.extend(uncertain(shown, percentiles));
    lines.extend(missing(shown, percentiles, study));
    lines
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
    let evidence = [delay, room].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let colon = if evidence.is_empty() { "" } else { ": " };
    Some(TrustLine::new(Grade::Passed, format!("{what}{colon}{evidence}.")))
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
        let decider = void.and_then(|judgement| troubles(judgement).first().copied());
        let is_busy_machine = matches!(decider, Some(Diagnostic::MachineBusy { .. }));
        for (diagnostic, grade) in diagnostics(run) {
            if grade < Grade::Doubtful || is_said_elsewhere(diagnostic, has_turns) {
                continue;
            }
            // What a busy machine explains needs no advice of its own.
            if is_busy_machine && machine_busy::is_delay(diagnostic) {
                continue;
            }
            let decides =
                decider.is_some_and(|decider| discriminant(decider) == discriminant(diagnostic));
            match doubts
                .iter_mut()
                .find(|doubt| discriminant(doubt.diagnostic) == discriminant(diagnostic))
            {
                // Only the runs that came out worst are named, with the evidence of the first.
                Some(doubt) if grade > doubt.grade => {
                    *doubt = Doubt { diagnostic, grade, labels: vec![name.clone()], decides };
                }
                Some(doubt) => {
                    doubt.decides |= decides && grade == doubt.grade;
                    if grade == doubt.grade && doubt.labels.last() != Some(name) {
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
        let is_failure = doubt.grade == Grade::Failed || doubt.decides;
        let mark = if is_failure { Grade::Failed } else { Grade::Doubtful };
        let assessment = assess(doubt.diagnostic);
        let hint = assessment.hint;
        // What decided stands in the conclusion: here is what to do about it.
        if doubt.decides && !hint.is_empty() {
            return TrustLine::new(mark, format!("{}{at}.", capitalized(hint)));
        }
        let sentence = format!("{}{at}.", capitalized(assessment.sentence.trim_end_matches('.')));
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
    crate::words::capitalised(text)
}

/// A percentile is uncertain where half of its 95 % interval is more than this part of it.
pub const UNCERTAIN: f64 = 0.2;

/// The percentiles whose intervals are wide.
fn uncertain(runs: &[NamedRun<'_>], percentiles: &[ShownPercentile]) -> Option<TrustLine> {
    const MOST: usize = 3;
    let mut wide: Vec<(f64, String)> = Vec::new();
    for NamedRun { name: label, run } in runs.iter().filter(|run| !is_hidden(run.run)) {
        for ShownPercentile { name, quantile } in percentiles {
            let interval = run.statistics.as_ref().and_then(|it| it.interval(*quantile));
            let ends = interval.and_then(|interval| Some([interval.low?, interval.high?]));
            let (Some(time), Some([low, high])) = (run.response_time(*quantile).time(), ends)
            else {
                continue;
            };
            let width = high.saturating_sub(low).0 as f64 / time.0 as f64;
            if width / 2.0 > UNCERTAIN {
                let at = if label.is_empty() { String::new() } else { format!(" at {label}") };
                let [low, high] = [low, high].map(number::milliseconds);
                wide.push((width, format!("{name}{at} {low}–{high} ms")));
            }
        }
    }
    wide.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = wide.len().saturating_sub(MOST);
    let mut named: Vec<String> = wide.into_iter().take(MOST).map(|(_, text)| text).collect();
    named.extend((more > 0).then(|| format!("{more} more")));
    let sentence = format!("Known only roughly (95 % interval): {}.", listed(&named));
    (!named.is_empty())
        .then(|| TrustLine::new(Grade::Uncertain, sentence).hint("run longer (--for)"))
}

/// The percentiles of which a notable part may be the generator's: the one with the largest.
fn generators_part(runs: &[NamedRun<'_>], percentiles: &[ShownPercentile]) -> Option<TrustLine> {
    let mut all: Vec<(f64, String)> = Vec::new();
    for NamedRun { name: label, run } in runs.iter().filter(|run| run.run.is_evidence()) {
        for ShownPercentile { name, quantile } in percentiles {
            let time = run.response_time(*quantile).time();
            let (Some(time), Some(own)) = (time, notable_generator_part(run, *quantile)) else {
                continue;
            };
            let at = if label.is_empty() { String::new() } else { format!(" at {label}") };
            let [own_ms, time_ms] = [own, time].map(number::milliseconds);
            let words = format!("{own_ms} of the {time_ms} ms of {name}{at}");
            all.push((own.0 as f64 / time.0 as f64, words));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = all.len().saturating_sub(1);
    let (_, most) = all.into_iter().next()?;
    let more = if more > 0 { format!(", and a part of {more} more") } else { String::new() };
    let sentence = format!("Up to {most} may be longtail's own delay{more}.");
    let hint = "give the generator cores of its own, or --timing spin";
    Some(TrustLine::new(Grade::Doubtful, sentence).hint(hint))
}

/// The most of a percentile that may be the generator's, where that makes it as uncertain as a wide
/// interval does; `None` where the kernel's stamps do not tell.
pub fn notable_generator_part(run: &Run, quantile: f64) -> Option<Nanos> {
    let time = run.response_time(quantile).time()?;
    let least = run.statistics.as_ref()?.interval(quantile)?.without_generator?;
    let own = time.saturating_sub(least);
    (own.0 as f64 > UNCERTAIN * time.0 as f64).then_some(own)
}

/// The percentiles that are not printed, and why.
fn missing(
    runs: &[NamedRun<'_>],
    percentiles: &[ShownPercentile],
    study: &Study,
) -> Vec<TrustLine> {
    let failures = lowest(runs, percentiles, Quantile::Unanswered).map(|lacking| {
        if lacking.runs.iter().all(|run| run.run.failed() == Some(0)) {
            let slow: u64 =
                lacking.runs.iter().map(|run| run.run.tally.unfinished_above_all()).sum();
            let sentence = format!(
                "{} is not a number: {slow} unfinished had waited longer than any answer took.",
                lacking.what
            );
            return TrustLine::new(Grade::Uncertain, sentence);
        }
        let part = |run: &&NamedRun<'_>| {
            Some(run.run.failed()? as f64 / run.run.requests()?.max(1) as f64)
        };
        let failed = share(lacking.runs.iter().filter_map(part).fold(0.0, f64::max));
        let sentence = format!(
            "{} is not a number: a failure counts as slower than any answer, and {failed} failed.",
            lacking.what
        );
        TrustLine::new(Grade::Uncertain, sentence)
    });
    let too_few = lowest(runs, percentiles, Quantile::TooFew).map(|lacking| {
        let by_count = matches!(study, Study::Load(study) if study.plan.length.is_none());
        let hint = if by_count { "send more requests (-n)" } else { "run longer (--for)" };
        let sentence = format!("{} has too few answers above it.", lacking.what);
        TrustLine::new(Grade::Uncertain, sentence).hint(hint)
    });
    failures.into_iter().chain(too_few).collect()
}

/// The lowest percentile that some run lacks for a reason, and those runs.
struct LackingRuns<'r> {
    /// `p99 at 1x and 2x`.
    what: String,
    runs: Vec<&'r NamedRun<'r>>,
}

fn lowest<'r>(
    runs: &'r [NamedRun<'r>],
    percentiles: &[ShownPercentile],
    why: Quantile,
) -> Option<LackingRuns<'r>> {
    percentiles.iter().find_map(|ShownPercentile { name, quantile }| {
        let is_lacking =
            |run: &&NamedRun<'_>| !is_hidden(run.run) && run.run.response_time(*quantile) == why;
        let lacking: Vec<&NamedRun<'_>> = runs.iter().filter(is_lacking).collect();
        let labels: Vec<String> = lacking.iter().map(|run| run.name.clone()).collect();
        let at = if labels.len() == runs.len() {
            String::new()
        } else {
            format!(" at {}", listed(&labels))
        };
        (!lacking.is_empty()).then(|| LackingRuns { what: format!("{name}{at}"), runs: lacking })
    })
}
