//! How much two arms differ, in words: percentages, their intervals, and when a change is certain.

use super::summary;
use crate::number;
use model::comparison::{
    ComparedMetric, ComparisonDoubt, ComparisonVerdict, Difference, TwoValues, excludes_zero,
};

/// A share in percent with its sign: `+1.4`, `-87`.
pub(super) fn percent(part: f64, decimals: usize) -> String {
    let text = number::fixed(part * 100.0, decimals);
    if text.starts_with('-') || part <= 0.0 || text.bytes().all(|b| b"0.".contains(&b)) {
        text
    } else {
        format!("+{text}")
    }
}

/// How many decimals percentages get that are shown together: one if all are below 10 %, else none.
pub(super) fn decimals(parts: impl IntoIterator<Item = f64>) -> usize {
    usize::from(parts.into_iter().fold(0.0, |most: f64, part| most.max(part.abs())) < 0.0995)
}

/// The same with one more, if rounding would put one of them onto the margin, or a whole number onto
/// 0: on which side of these an interval ends decides what is concluded.
fn decimals_beside(margin: f64, parts: impl IntoIterator<Item = f64> + Clone) -> usize {
    let decimals = decimals(parts.clone());
    let shown = |part: f64| number::fixed(part.abs() * 100.0, decimals);
    let all: Vec<f64> = parts.clone().into_iter().collect();
    // An interval of no width would seem exact.
    let is_flat = all.len() > 2 && all.iter().all(|part| shown(*part) == shown(all[0]));
    let is_hidden = |part: f64| {
        let is_margin = (part.abs() - margin).abs() < f64::EPSILON;
        !is_margin && shown(part) == shown(margin) || part != 0.0 && shown(part) == "0"
    };
    decimals + usize::from(is_flat && decimals == 0 || parts.into_iter().any(is_hidden))
}

/// `+1.4 %`
pub(crate) fn estimate(part: f64) -> String {
    format!("{} %", percent(part, decimals([part])))
}

/// `[-1.2, +3.0]`
pub(crate) fn interval(ends: [f64; 2]) -> String {
    in_brackets(ends, decimals(ends))
}

fn in_brackets(ends: [f64; 2], decimals: usize) -> String {
    format!("[{}, {}]", percent(ends[0], decimals), percent(ends[1], decimals))
}

/// How many decimals the estimate and the interval of a difference get.
fn decimals_of(difference: &Difference) -> usize {
    let ends = difference.interval.into_iter().flatten();
    decimals_beside(difference.margin, ends.chain(difference.estimate))
}

/// `+1.4 %`
pub(crate) fn estimate_of(difference: &Difference) -> Option<String> {
    difference.estimate.map(|part| format!("{} %", percent(part, decimals_of(difference))))
}

/// `[-1.2, +3.0]`; where overloaded runs leave no upper end, `[+348, ∞]`. None where the changes are of
/// two kinds: it would be of their middle, and may contain no change that a block had.
pub(crate) fn interval_of(difference: &Difference) -> Option<String> {
    if difference.two_changes.is_some() {
        return None;
    }
    match (difference.interval, difference.at_least) {
        (Some(ends), _) => Some(in_brackets(ends, decimals_of(difference))),
        (None, Some(least)) if least > 0.0 => {
            Some(format!("[{}, ∞]", percent(least, decimals([least]))))
        }
        (None, Some(least)) => Some(in_brackets([-1.0, least], decimals([-1.0]))),
        (None, None) => None,
    }
}

/// `12 %`; with a decimal if it is below 10 % and not whole: `1.4 %`.
pub(crate) fn plain_percent(part: f64) -> String {
    format!(
        "{} %",
        number::fixed(part * 100.0, usize::from(part < 0.0995 && (part * 100.0).fract() > 0.05))
    )
}

/// `-87 %`; of a change that is hardly certain with its interval: `+12.0 % [+0.1, +25.1]`.
fn change_in_words(difference: &Difference) -> String {
    let at_least = || difference.at_least.map(|least| format!("{} or more", estimate(least)));
    let change =
        estimate_of(difference).or_else(at_least).unwrap_or_else(|| "not known".to_owned());
    match interval_of(difference).filter(|_| is_hardly_certain(difference)) {
        Some(interval) => format!("{change} {interval}"),
        None => change,
    }
}

/// `+1.4 % [-1.2, +3.0]`, or both kinds of changes: `+46 % in 12 of 20 blocks, the same in the others`.
pub(super) fn change_with_interval(difference: &Difference) -> Option<String> {
    let one = || {
        let known = [estimate_of(difference), interval_of(difference)].into_iter().flatten();
        Some(known.collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
    };
    two_changes(difference).or_else(one)
}

/// How far the control is from the base: `[-1.2, +3.0] %`, or both kinds of changes, `-1 or +46 %`.
pub(super) fn range_of(difference: &Difference) -> String {
    let interval = || interval_of(difference).map(|interval| format!("{interval} %"));
    two_changes_in_short(difference).or_else(interval).unwrap_or_default()
}

/// Whether a change is worse or better, though its interval ends closer to 0 than the margin.
pub(super) fn is_hardly_certain(difference: &Difference) -> bool {
    let is_near = |ends: [f64; 2]| ends[0].abs().min(ends[1].abs()) < difference.margin;
    has_changed(difference) && difference.interval.is_some_and(is_near)
}

/// Whether it is worse or better.
pub(super) fn has_changed(difference: &Difference) -> bool {
    matches!(difference.verdict, ComparisonVerdict::Worse | ComparisonVerdict::Better)
}

/// Where the changes of the blocks are of two kinds, what a cell says of them: `-83 or -1 %`. Their
/// middle would be a change that no block had.
pub(crate) fn two_changes_in_short(difference: &Difference) -> Option<String> {
    let TwoValues { low, high, .. } = difference.two_changes?;
    let decimals = decimals([low, high]);
    Some(format!("{} or {} %", percent(low, decimals), percent(high, decimals)))
}

/// The same in a sentence: `+46 % in 12 of 20 blocks, the same in the others`.
pub(super) fn two_changes(difference: &Difference) -> Option<String> {
    let TwoValues { low, high, low_count, count } = difference.two_changes?;
    let decimals = decimals([low, high]);
    // That of the larger size first.
    let is_high = high.ln_1p().abs() >= low.ln_1p().abs();
    let (first, blocks, other) =
        if is_high { (high, count - low_count, low) } else { (low, low_count, high) };
    let other = if other.abs() <= difference.margin {
        "the same".to_owned()
    } else {
        format!("{} %", percent(other, decimals))
    };
    Some(format!(
        "{} % in {blocks} of {count} blocks, {other} in the others",
        percent(first, decimals)
    ))
}

/// Whether the changes of the blocks are of two kinds, of which the smaller is within the margin.
pub(super) fn same_in_the_others(difference: &Difference) -> bool {
    difference
        .two_changes
        .is_some_and(|TwoValues { low, high, .. }| low.abs().min(high.abs()) <= difference.margin)
}

/// `3225 → 406 ms (-87 %)`; of two kinds of changes both.
pub(super) fn figures(row: &ComparedMetric, difference: &Difference) -> String {
    let change = two_changes(difference).unwrap_or_else(|| change_in_words(difference));
    if is_another_change(row, difference) {
        return change;
    }
    let medians = summary::medians(row, difference);
    format!("{medians} {} ({change})", row.unit).replace(" /s", "/s")
}

/// By how much the arm's median is above the base's, as a share of it.
pub(super) fn change_of_medians(row: &ComparedMetric, pair: &Difference) -> Option<f64> {
    Some(row.median(&pair.arm)? / row.median(&pair.base)? - 1.0)
}

/// Whether the medians show another change than the runs of the same blocks do, by more than the
/// margin: two figures for one change would contradict each other, so the medians are left out. Those
/// of two kinds of changes may lie between both.
pub(super) fn is_another_change(row: &ComparedMetric, difference: &Difference) -> bool {
    let of_blocks = match difference.two_changes {
        Some(TwoValues { low, high, .. }) => Some([low, high]),
        None => difference.estimate.map(|part| [part, part]),
    };
    change_of_medians(row, difference).zip(of_blocks).is_some_and(|(of_medians, [low, high])| {
        of_medians < low - difference.margin || of_medians > high + difference.margin
    })
}

/// A sentence that may begin with what an arm is called: `the default` gets its capital, while a name
/// that somebody chose stays as it is.
pub(super) fn sentence_of(text: String) -> String {
    match text.strip_prefix("the default") {
        Some(rest) => format!("The default{rest}"),
        None => text,
    }
}

/// Of a difference that is certain, though it may be smaller than the margin, its interval: `+2.3 to +5.4 %`.
/// That is no verdict, so it has no word for one.
pub(super) fn certain_change(difference: &Difference) -> Option<String> {
    let has_one_side = match difference.doubt {
        Some(ComparisonDoubt::Noise | ComparisonDoubt::ShortRuns) => true,
        Some(ComparisonDoubt::Control) => difference.is_in_every_block,
        _ => false,
    };
    let is_one_kind = difference.two_changes.is_none();
    let interval = difference.interval.filter(|_| has_one_side && is_one_kind);
    let ends = interval.filter(|ends| excludes_zero(*ends))?;
    let decimals = decimals_beside(difference.margin, ends);
    let [low, high] = ends.map(|end| percent(end, decimals));
    Some(if low == high { format!("{high} %") } else { format!("{low} to {high} %") })
}

/// Whether a pair differs in a metric by more than the margin, as far as that is known. Without a control,
/// or before there are enough blocks, only what decides is tested, but every run of one arm may be beyond
/// every run of the other.
pub(super) fn is_known_to_differ(row: &ComparedMetric, pair: &Difference, margin: f64) -> bool {
    if let Some(tested) = row.difference(&pair.base, &pair.arm).filter(|_| row.is_tested()) {
        return has_changed(tested);
    }
    let is_large = change_of_medians(row, pair).is_some_and(|part| part.abs() > margin);
    let is_of_pair = |apart: &[String; 2]| apart[0] == pair.base && apart[1] == pair.arm;
    is_large && row.apart.iter().any(is_of_pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::comparison::Metric;

    #[test]
    fn medians_between_two_kinds_of_changes_contradict_neither() {
        let mut summary = crate::comparison::summary(&testkit::comparison::slower());
        let row = summary.metrics.iter_mut().find(|row| row.metric == Metric::Cpu).unwrap();
        row.differences[0].two_changes =
            Some(TwoValues { low: 0.61, high: 1.36, low_count: 5, count: 8 });
        let [base, arm] = [&row.differences[0].base, &row.differences[0].arm].map(Clone::clone);
        let mut is_another = |after: f64| {
            row.medians.insert(base.clone(), Some(1.0));
            row.medians.insert(arm.clone(), Some(after));
            is_another_change(row, &row.differences[0])
        };
        assert!(!is_another(1.76));
        assert!(is_another(1.5) && is_another(2.5));
    }

    #[test]
    fn no_rounding_puts_an_end_onto_the_margin() {
        let mut summary = crate::comparison::summary(&testkit::comparison::slower());
        let difference = &mut summary.metrics[0].differences[0];
        difference.margin = 0.05;
        let mut said = |estimate, interval| {
            difference.estimate = Some(estimate);
            difference.interval = Some(interval);
            [estimate_of(difference), interval_of(difference)].map(Option::unwrap_or_default)
        };
        assert_eq!(said(0.053, [0.047, 0.1002]), ["+5.3 %", "[+4.7, +10.0]"]);
        assert_eq!(said(-0.043, [-0.0498, -0.012]), ["-4.30 %", "[-4.98, -1.20]"]);
        assert_eq!(said(0.12, [0.05, 0.2]), ["+12 %", "[+5, +20]"], "it is the margin");
        assert_eq!(said(-0.088, [-0.102, -0.086]), ["-9 %", "[-10, -9]"]);
        assert_eq!(said(0.12, [0.003, 0.25]), ["+12.0 %", "[+0.3, +25.0]"], "0 is left out");
    }
}
