//! What was compared and how, and whether it can be trusted.

use model::comparison::{ArmPlan, ComparisonBlocks, ComparisonLoad, ComparisonQuestion, excludes_zero};
use model::{ComparisonStudy, Nanos};

use super::figures::{SummaryComparison, SummaryDifference, SummaryMetric};
use super::words;
use crate::in_words;
use crate::named_runs::NamedRun;
use crate::number::{self, count_of};
use crate::trust::{TrustLine, TrustMark};

/// The arms, and how they were measured.
pub(crate) fn measured(study: &ComparisonStudy) -> Vec<String> {
    const ARMS: usize = 4;
    let plan = &study.plan;
    let server = |at: usize| study.server(at).map(in_words::server).unwrap_or_default();
    let slots = |at: usize| study.server(at).map(in_words::slots).unwrap_or_default();
    let is_one = |of: &dyn Fn(usize) -> String| (1..plan.arms.len()).all(|at| of(at) == of(0));
    let (one_server, one_size) = (is_one(&server), is_one(&slots));
    let shared = |is_shared: bool, of: &dyn Fn(usize) -> String| is_shared.then(|| of(0));
    let common = in_words::joined([shared(one_server, &server), shared(one_size, &slots)]);
    let arm = |at: usize| {
        let own = [(!one_server).then(|| server(at)), (!one_size).then(|| slots(at))];
        let ArmPlan { name, settings, .. } = &plan.arms[at];
        // A commit stands first; it is no option and no variable.
        let name = match settings.first().filter(|it| !it.starts_with('-') && !it.contains('=')) {
            Some(commit) if commit.starts_with(name.as_str()) => commit.clone(),
            Some(commit) => format!("{name}, {commit}"),
            None => name.clone(),
        };
        format!("{}  {}", plan.letter(at), in_words::joined([Some(name), Some(in_words::joined(own))]))
    };
    let mut lines: Vec<String> = Vec::new();
    lines.extend((!common.is_empty()).then_some(common));
    match plan.question {
        ComparisonQuestion::Change => lines.extend((0..plan.arms.len()).take(ARMS).map(arm)),
        // Their rows name them.
        ComparisonQuestion::Best => {}
    }
    let stream = &plan.arms[0].stream;
    let length = in_words::length(stream.stop);
    let warm_up = if stream.warm_up > Nanos::ZERO {
        format!(" after {} of warm-up", number::span(stream.warm_up))
    } else {
        String::new()
    };
    let most = study.runs.iter().map(|run| run.run.connections).max();
    let detail = match plan.load {
        ComparisonLoad::Closed { .. } => most.map_or("no run".to_owned(), |n| count_of(n, "connection")),
        ComparisonLoad::Share { of_maximum } if study.rate_per_s().is_some() => {
            format!("{} % of what the slower arm can do", number::fixed(of_maximum * 100.0, 0))
        }
        _ => String::new(),
    };
    let load = in_words::listed([pace(study), detail]);
    let blocks = study.runs.iter().map(|run| run.block).max().unwrap_or(0);
    let each = if plan.control { ", A once more as control" } else { "" };
    let deciding: Vec<&str> = plan.deciding().into_iter().map(words::name).collect();
    let verb = if deciding.len() == 1 { "decides" } else { "decide" };
    lines.push(format!(
        "{load} · {}: each arm once{each}, {length}{warm_up}, a fresh server each time, in balanced order · {} {verb} (*), margin {} %",
        count_of(blocks, "block"),
        crate::sentences::listed(&deciding.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()),
        number::shortest((plan.margin * 1e4).round() / 100.0),
    ));
    lines
}

/// `closed loop`, or `open loop, 54.7 requests/s`.
pub(super) fn pace(study: &ComparisonStudy) -> String {
    match (study.plan.load, study.rate_per_s()) {
        (ComparisonLoad::Closed { .. }, _) => "closed loop".to_owned(),
        (_, Some(rate)) => format!("open loop, {} requests/s", number::rate_in_words(rate)),
        (_, None) => "open loop".to_owned(),
    }
}

/// The runs that count, each called by its arm.
pub(crate) fn sound_runs(study: &ComparisonStudy) -> Vec<NamedRun<'_>> {
    let mut runs: Vec<_> = study.runs.iter().filter(|run| run.is_sound()).collect();
    runs.sort_by_key(|run| run.arm);
    runs.into_iter().map(|row| NamedRun { name: study.plan.letter(row.arm), run: &row.run }).collect()
}

/// What speaks for the figures and against them, beside what is asked of every run.
pub(crate) fn trust(study: &ComparisonStudy, summary: &SummaryComparison) -> Vec<TrustLine> {
    let line = |mark, sentence: String, hint| TrustLine { mark, sentence, hint };
    let mut lines = Vec::new();
    let unsound = study.runs.iter().filter(|run| !run.is_sound()).count();
    if unsound > 0 {
        lines.push(line(
            TrustMark::Doubtful,
            format!(
                "{unsound} of {} failed the checks, and {} not counted.",
                count_of(study.runs.len() as u64, "run"),
                if unsound == 1 { "is" } else { "are" }
            ),
            Some("longtail report --full says which, and why"),
        ));
    }
    lines.push(match widest_control(summary) {
        _ if !study.plan.control => line(
            TrustMark::Uncertain,
            "Without a control nobody knows what the machine does by itself; only what decides is tested.".to_owned(),
            None,
        ),
        Some((row, control)) if is_shown(control) => line(
            TrustMark::Doubtful,
            format!(
                "The control, A once more, differs from A in {}: {} %. Something drifts; no difference as small as that counts.",
                words::name(row.metric),
                control.interval_in_words().unwrap_or_default()
            ),
            Some("leave the machine alone meanwhile, and run longer (--for)"),
        ),
        Some((row, control)) => line(
            TrustMark::Passed,
            format!(
                "The control, A once more, cannot be told from A; it is at most {} off ({}).",
                control.estimate_in_words().unwrap_or_default(),
                words::name(row.metric)
            ),
            None,
        ),
        None => line(TrustMark::Uncertain, "Too few blocks for the control to say anything.".to_owned(), None),
    });
    if study.interrupted {
        lines.push(line(TrustMark::Doubtful, "It was interrupted: blocks are missing.".to_owned(), None));
    }
    if let ComparisonBlocks::Fixed(blocks) = study.plan.blocks
        && !study.interrupted
        && summary.blocks < blocks
    {
        lines.push(line(TrustMark::Doubtful, format!("{} of {blocks} blocks were run.", summary.blocks), None));
    }
    lines
}

fn is_shown(difference: &SummaryDifference) -> bool {
    difference.interval.is_some_and(excludes_zero)
}

/// The control's difference that says most: one that is shown before one that is not, then the furthest.
fn widest_control(summary: &SummaryComparison) -> Option<(&SummaryMetric, &SummaryDifference)> {
    let controls = summary.metrics.iter().filter_map(|row| Some((row, row.control.as_ref()?)));
    let known = controls.filter(|(_, control)| control.interval.is_some());
    let weight = |control: &SummaryDifference| (is_shown(control), control.estimate.unwrap_or_default().abs());
    known.max_by(|(_, a), (_, b)| weight(a).partial_cmp(&weight(b)).unwrap_or(std::cmp::Ordering::Equal))
}
