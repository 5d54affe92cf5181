//! What was compared and how, and whether it can be trusted.

use model::comparison::{
    ArmPlan, ComparedMetric, ComparisonBlocks, ComparisonLoad, ComparisonQuestion, Difference, excludes_zero,
};
use model::{ComparisonStudy, Nanos};

use super::figures::SummaryComparison;
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
    let mut lines: Vec<String> = Some(common).into_iter().filter(|common| !common.is_empty()).collect();
    // The rows of a ranking name its arms.
    let named = if plan.question == ComparisonQuestion::Change { plan.arms.len().min(ARMS) } else { 0 };
    lines.extend((0..named).map(arm));
    let stream = &plan.arms[0].stream;
    let length = in_words::length(stream.stop);
    let warm_up = Some(stream.warm_up).filter(|warm_up| *warm_up > Nanos::ZERO);
    let warm_up = warm_up.map(|span| format!(" after {} of warm-up", number::span(span))).unwrap_or_default();
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
    let deciding: Vec<String> = plan.deciding().into_iter().map(|metric| words::name(metric).to_owned()).collect();
    let verb = if deciding.len() == 1 { "decides" } else { "decide" };
    lines.push(format!(
        "{load} · {}: each arm once{each}, {length}{warm_up}, a fresh server each time, in balanced order · {} {verb} (*), margin {} %",
        count_of(blocks, "block"),
        crate::sentences::listed(&deciding),
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
    let mut lines = Vec::new();
    let unsound = study.runs.iter().filter(|run| !run.is_sound()).count();
    if unsound > 0 {
        let (all, are) = (count_of(study.runs.len() as u64, "run"), if unsound == 1 { "is" } else { "are" });
        let sentence = format!("{unsound} of {all} failed the checks, and {are} not counted.");
        lines.push(TrustLine::new(TrustMark::Doubtful, sentence).hint("longtail report --full says which, and why"));
    }
    lines.push(match widest_control(summary) {
        _ if !study.plan.control => TrustLine::new(
            TrustMark::Uncertain,
            "Without a control nobody knows what the machine does by itself; only what decides is tested.",
        ),
        Some((row, control)) if is_shown(control) => {
            let (name, interval) = (words::name(row.metric), words::interval_of(control).unwrap_or_default());
            let sentence = format!(
                "The control, A once more, differs from A in {name}: {interval} %. Something drifts; no difference as small as that counts."
            );
            let hint = "leave the machine alone meanwhile, and run longer (--for)";
            TrustLine::new(TrustMark::Doubtful, sentence).hint(hint)
        }
        Some((row, control)) => {
            let (name, estimate) = (words::name(row.metric), words::estimate_of(control).unwrap_or_default());
            let sentence =
                format!("The control, A once more, cannot be told from A; it is at most {estimate} off ({name}).");
            TrustLine::new(TrustMark::Passed, sentence)
        }
        None => TrustLine::new(TrustMark::Uncertain, "Too few blocks for the control to say anything."),
    });
    match study.plan.blocks {
        _ if study.interrupted => {
            lines.push(TrustLine::new(TrustMark::Doubtful, "It was interrupted: blocks are missing."));
        }
        ComparisonBlocks::Fixed(blocks) if summary.blocks < blocks => {
            let sentence = format!("{} of {blocks} blocks were run.", summary.blocks);
            lines.push(TrustLine::new(TrustMark::Doubtful, sentence));
        }
        _ => {}
    }
    lines
}

fn is_shown(difference: &Difference) -> bool {
    difference.interval.is_some_and(excludes_zero)
}

/// The control's difference that says most: one that is shown before one that is not, then the furthest.
fn widest_control(summary: &SummaryComparison) -> Option<(&ComparedMetric, &Difference)> {
    let controls = summary.metrics.iter().filter_map(|row| Some((row, row.control.as_ref()?)));
    let known = controls.filter(|(_, control)| control.interval.is_some());
    let weight = |control: &Difference| (is_shown(control), control.estimate.unwrap_or_default().abs());
    known.max_by(|(_, a), (_, b)| weight(a).partial_cmp(&weight(b)).unwrap_or(std::cmp::Ordering::Equal))
}
