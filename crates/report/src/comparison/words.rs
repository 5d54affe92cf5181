//! What is concluded of a comparison, in sentences. Each says what its figures say and no more.

use model::comparison::{
    ComparedMetric, ComparisonDoubt, ComparisonQuestion, ComparisonVerdict, Difference, Metric, excludes_zero,
};
use model::{ComparisonStudy, CpuUsage, Diagnostic, Limit};

use super::figures::SummaryComparison;
use crate::number::{self, count_of};
use crate::sentences::listed;

/// What a metric is called in a sentence.
pub(crate) fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::Mean => "mean",
        Metric::P50 => "p50",
        Metric::P95 => "p95",
        Metric::P99 => "p99",
        Metric::Cpu => "CPU a request",
        Metric::GeneratorCpu => "longtail's CPU a request",
        Metric::Memory => "memory",
        Metric::Failed => "failed requests",
        Metric::Slow => "slow requests",
        Metric::Workers => "worker deviation",
    }
}

/// The verdict in a word.
pub(crate) fn verdict(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Worse => "worse",
        ComparisonVerdict::Better => "better",
        ComparisonVerdict::Same => "same",
        ComparisonVerdict::CannotTell => "cannot tell",
    }
}

/// A part in percent with its sign: `+1.4`, `-87`.
fn percent(part: f64, decimals: usize) -> String {
    let text = number::fixed(part * 100.0, decimals);
    if text.starts_with('-') || part <= 0.0 || text.bytes().all(|b| b"0.".contains(&b)) {
        text
    } else {
        format!("+{text}")
    }
}

/// Decimals of parts in percent that stand together: as many as make three digits at the most.
fn decimals(parts: impl IntoIterator<Item = f64>) -> usize {
    usize::from(parts.into_iter().fold(0.0, |most: f64, part| most.max(part.abs())) < 0.0995)
}

/// `+1.4 %`, in as many decimals as the interval beside it.
pub(crate) fn estimate(part: f64, interval: Option<[f64; 2]>) -> String {
    format!("{} %", percent(part, decimals(interval.into_iter().flatten().chain([part]))))
}

/// `[-1.2, +3.0]`, in as many decimals as the estimate beside it.
pub(crate) fn interval(ends: [f64; 2], estimate: Option<f64>) -> String {
    let decimals = decimals(ends.into_iter().chain(estimate));
    format!("[{}, {}]", percent(ends[0], decimals), percent(ends[1], decimals))
}

/// `+1.4 %`
pub(super) fn estimate_of(difference: &Difference) -> Option<String> {
    difference.estimate.map(|part| estimate(part, difference.interval))
}

/// `[-1.2, +3.0]`
pub(super) fn interval_of(difference: &Difference) -> Option<String> {
    difference.interval.map(|ends| interval(ends, difference.estimate))
}

/// `12 %`
fn plain_percent(part: f64) -> String {
    format!("{} %", number::fixed(part * 100.0, usize::from(part < 0.0995 && (part * 100.0).fract() > 0.05)))
}

/// `B (-k)`
fn called(summary: &SummaryComparison, letter: &str) -> String {
    match summary.arm(letter).map(|arm| arm.name.as_str()) {
        Some(name) if !name.is_empty() && name != letter => format!("{letter} ({name})"),
        _ => letter.to_owned(),
    }
}

/// `3225 → 406 ms (-87 %)`
fn figures(row: &ComparedMetric, difference: &Difference) -> String {
    let shown = |letter: &str| number::or_none(row.median(letter), number::significant);
    let change = estimate_of(difference).unwrap_or_else(|| "not known".to_owned());
    format!("{} → {} {} ({change})", shown(&difference.base), shown(&difference.arm), row.unit).replace(" /s", "/s")
}

/// The conclusion.
pub(crate) fn sentence(summary: &SummaryComparison) -> String {
    if summary.metrics.iter().all(|row| row.differences.iter().all(|it| it.blocks == 0)) {
        return "No block is whole: nothing can be compared.".to_owned();
    }
    if summary.question == ComparisonQuestion::Best {
        return best(summary);
    }
    let base = summary.arms[0].letter.as_str();
    let others: Vec<&str> = summary.compared().skip(1).map(|arm| arm.letter.as_str()).collect();
    others.iter().map(|arm| of_arm(summary, base, arm, others.len() > 1)).collect::<Vec<_>>().join(" ")
}

/// What is said of one arm against the base: what decides first, then what else is worse or better.
fn of_arm(summary: &SummaryComparison, base: &str, arm: &str, is_short: bool) -> String {
    let rows: Vec<ComparedRow<'_>> = summary
        .metrics
        .iter()
        .filter_map(|row| Some(ComparedRow { row, difference: row.difference(base, arm)? }))
        .collect();
    let find = |metric| rows.iter().find(|it| it.row.metric == metric);
    let shown = |value| number::or_none(value, |value| number::or_zero(value, number::significant));
    let fails = find(Metric::Failed).filter(|it| !it.row.decides && it.verdict() == ComparisonVerdict::Worse);
    let mut parts: Vec<String> = Vec::new();
    parts.extend(fails.map(|ComparedRow { row, .. }| {
        let [ours, others] = [arm, base].map(|letter| shown(row.median(letter)));
        format!("{} fails {ours} % of its requests, {base} {others} %.", called(summary, arm))
    }));
    parts.extend(rows.iter().filter(|it| it.row.decides).map(|it| of_deciding(summary, it.row, it.difference)));
    // A tail and a median that change in opposite directions, if neither decides: many requests pay for a few, or a few for many.
    let (p50, p99) = (find(Metric::P50), find(Metric::P99));
    let tail = p50.zip(p99).filter(|(median, tail)| !median.row.decides && !tail.row.decides);
    let tail = tail.and_then(|(median, tail)| match (median.verdict(), tail.verdict()) {
        (ComparisonVerdict::Worse, ComparisonVerdict::Better) => {
            Some(format!("{arm}'s tail is shorter, {}, and its median longer, {}.", tail.change(), median.change()))
        }
        (ComparisonVerdict::Better, ComparisonVerdict::Worse) => {
            Some(format!("{arm}'s median is shorter, {}, and its tail longer, {}.", median.change(), tail.change()))
        }
        _ => None,
    });
    let verdict_of = |metric| find(metric).map(ComparedRow::verdict);
    let is_said = |metric| match metric {
        Metric::Failed => true,
        Metric::P50 | Metric::P99 => tail.is_some(),
        Metric::P95 => tail.is_some() && verdict_of(Metric::P95) == verdict_of(Metric::P99),
        _ => false,
    };
    let mut others = Vec::new();
    for verdict in [ComparisonVerdict::Worse, ComparisonVerdict::Better] {
        let (decided, changed): (Vec<_>, Vec<_>) =
            rows.iter().filter(|it| it.verdict() == verdict).partition(|it| it.row.decides);
        let changed = changed.into_iter().filter(|it| !is_said(it.row.metric));
        let changed: Vec<String> =
            changed.map(|it| if is_short { name(it.row.metric).to_owned() } else { it.change() }).collect();
        let word = self::verdict(verdict);
        let word = if decided.is_empty() { word.to_owned() } else { format!("also {word}") };
        let changed = changed.join(", ");
        others.extend((!changed.is_empty()).then(|| format!("{}: {changed}.", crate::markdown::capitalised(&word))));
    }
    parts.extend(tail);
    parts.extend(untested(summary, base, arm));
    parts.into_iter().chain(others).collect::<Vec<_>>().join(" ")
}

/// A metric, and how an arm differs in it from the base.
struct ComparedRow<'a> {
    row: &'a ComparedMetric,
    difference: &'a Difference,
}

impl ComparedRow<'_> {
    fn verdict(&self) -> ComparisonVerdict {
        self.difference.verdict
    }

    /// `p99 3225 → 406 ms (-87 %)`
    fn change(&self) -> String {
        format!("{} {}", name(self.row.metric), figures(self.row, self.difference))
    }
}

/// Response times that move against what decides by more than the margin, where only what decides is tested: who reads `better` must
/// see them.
fn untested(summary: &SummaryComparison, base: &str, arm: &str) -> Option<String> {
    let decided =
        |verdict| summary.deciding().any(|row| row.difference(base, arm).is_some_and(|it| it.verdict == verdict));
    let is_better = decided(ComparisonVerdict::Better);
    if is_better == decided(ComparisonVerdict::Worse) {
        return None;
    }
    let against = |metric| {
        let row = summary.metric(metric).filter(|row| row.differences.is_empty())?;
        let (before, after) = (row.median(base)?, row.median(arm)?);
        let margin = summary.margin;
        let is_against = if is_better { after > before * (1.0 + margin) } else { after < before * (1.0 - margin) };
        let [before, after] = [before, after].map(number::significant);
        is_against.then(|| format!("{} {before} → {after} {}", name(metric), row.unit))
    };
    let moved: Vec<String> =
        [Metric::Mean, Metric::P50, Metric::P95, Metric::P99].into_iter().filter_map(against).collect();
    let other = if is_better { "longer" } else { "shorter" };
    (!moved.is_empty()).then(|| format!("But {other}, and not tested without a control: {}.", moved.join(", ")))
}

fn of_deciding(summary: &SummaryComparison, row: &ComparedMetric, difference: &Difference) -> String {
    let (arm, base, name) = (called(summary, &difference.arm), &difference.base, name(row.metric));
    let (margin, figures) = (plain_percent(summary.margin), figures(row, difference));
    match difference.verdict {
        ComparisonVerdict::Worse => format!("{arm} is worse than {base}: {name} {figures}."),
        ComparisonVerdict::Better => format!("{arm} is better than {base}: {name} {figures}."),
        ComparisonVerdict::Same => format!("{arm} has the same {name} as {base} within {margin}: {figures}."),
        ComparisonVerdict::CannotTell => {
            let why = why(summary, row, difference);
            if is_small(difference) {
                let lower = if difference.estimate.is_some_and(|part| part < 0.0) { "lower" } else { "higher" };
                format!(
                    "{arm} has a {lower} {name} than {base}, but whether by {margin} or more cannot be told: {why}."
                )
            } else {
                format!("Whether {arm} differs from {base} in {name} cannot be told: {why}.")
            }
        }
    }
}

/// Whether there is a difference, which may be smaller than the margin.
fn is_small(difference: &Difference) -> bool {
    difference.doubt == Some(ComparisonDoubt::Noise) && difference.interval.is_some_and(excludes_zero)
}

/// Why it cannot be told.
fn why(summary: &SummaryComparison, row: &ComparedMetric, difference: &Difference) -> String {
    let blocks = count_of(difference.blocks, "block");
    match difference.doubt {
        Some(ComparisonDoubt::FewBlocks { least }) => {
            let tell = if difference.blocks == 1 { "tells" } else { "tell" };
            format!("{blocks} {tell} nothing, {least} could")
        }
        Some(ComparisonDoubt::Missing { figure, runs }) => {
            format!("{} have no {} ({})", count_of(runs, "run"), name(row.metric), figure)
        }
        Some(ComparisonDoubt::Control) => {
            let control = row.control.as_ref().and_then(interval_of).unwrap_or_default();
            let estimate = estimate_of(difference).unwrap_or_default();
            format!("it is {estimate}, and the control, the same server once more, {control} %")
        }
        Some(ComparisonDoubt::Noise) | None => {
            let smallest = difference.smallest.filter(|_| !is_small(difference)).map_or_else(String::new, |smallest| {
                format!("; {blocks} could show {} or more", plain_percent(smallest))
            });
            let needed = difference.blocks_needed.map_or_else(String::new, |needed| {
                let blocks = count_of(needed, "block");
                if is_small(difference) {
                    format!("; about {blocks} would tell")
                } else {
                    format!(", about {blocks} would show {}", plain_percent(summary.margin))
                }
            });
            let estimate = estimate_of(difference).unwrap_or_default();
            format!("{estimate} {}{smallest}{needed}", interval_of(difference).unwrap_or_default())
        }
    }
}

/// Which arm is best.
fn best(summary: &SummaryComparison) -> String {
    let Some((ranking, row)) = summary.ranking.as_ref().zip(summary.deciding().next()) else {
        return "Which is best cannot be told: no arm has a figure.".to_owned();
    };
    let estimate =
        |letter: &String| row.seen_from(&ranking.best, letter).and_then(|it| it.estimate).unwrap_or_default();
    let with_estimate =
        |letter: &String, decimals| format!("{} ({} %)", called(summary, letter), percent(estimate(letter), decimals));
    let mut behind: Vec<&String> = ranking.ahead_of.iter().collect();
    behind.sort_by(|a, b| estimate(b).abs().total_cmp(&estimate(a).abs()));
    let behind: Vec<String> = behind.into_iter().map(|letter| with_estimate(letter, 0)).collect();
    let unclear: Vec<String> =
        ranking.unclear.iter().map(|letter| with_estimate(letter, decimals([estimate(letter)]))).collect();
    let figure = number::or_none(row.median(&ranking.best), number::significant);
    let unit = if row.unit == "/s" { "/s".to_owned() } else { format!(" {}", row.unit) };
    let best = called(summary, &ranking.best);
    if !ranking.is_decided() {
        return format!(
            "Which is best cannot be told: against {best} ({} {figure}{unit}) {} may be noise.",
            name(row.metric),
            listed(&unclear)
        );
    }
    let is_alone = ranking.level_with.is_empty() && ranking.unclear.is_empty();
    let mut parts = vec![if is_alone {
        format!("{best} is best: {} {figure}{unit}.", name(row.metric))
    } else {
        format!("{best} has the best {}, {figure}{unit}, but not alone.", name(row.metric))
    }];
    if !ranking.level_with.is_empty() {
        let level: Vec<String> = ranking.level_with.iter().map(|letter| called(summary, letter)).collect();
        let are = if level.len() == 1 { "is" } else { "are" };
        parts.push(format!("{} {are} the same within {}.", listed(&level), plain_percent(summary.margin)));
    }
    if !unclear.is_empty() {
        parts.push(format!("{} cannot be told from it.", listed(&unclear)));
    }
    if !behind.is_empty() {
        parts.push(format!("Worse: {}.", listed(&behind)));
    }
    parts.join(" ")
}

/// What else must be known to read the figures.
pub(super) fn reasons(study: &ComparisonStudy, summary: &SummaryComparison) -> Vec<String> {
    let mut reasons = Vec::new();
    let plan = &study.plan;
    let several: Vec<String> = (1..plan.arms.len())
        .filter_map(|arm| {
            let differing = differing_settings(study, arm);
            (differing.len() > 1)
                .then(|| format!("{} in {} ({})", plan.letter(arm), differing.len(), differing.join(", ")))
        })
        .collect();
    if !several.is_empty() && plan.question == ComparisonQuestion::Change {
        reasons.push(format!(
            "More than one setting differs from A: {}. A difference cannot be given to one of them.",
            several.join("; ")
        ));
    }
    reasons.extend(turns(study));
    reasons.extend(slots(study));
    reasons.extend(edge(study, summary));
    reasons.extend(extra_cpu(summary));
    reasons.extend(first_run(summary));
    reasons.extend(study.lost.first().map(|lost| {
        let more = match study.lost.len() - 1 {
            0 => String::new(),
            more => format!(" ({more} more runs came to nothing)"),
        };
        format!("{}, block {}: {}{more}.", plan.letter(lost.arm), lost.block, lost.reason.trim_end_matches('.'))
    }));
    reasons
}

/// The settings that an arm has and the base has not, or the other way round, whichever are more.
fn differing_settings(study: &ComparisonStudy, arm: usize) -> Vec<String> {
    let [base, arm] = [0, arm].map(|at| &study.plan.arms[at].settings);
    let only = |of: &[String], other: &[String]| -> Vec<String> {
        of.iter().filter(|setting| !other.contains(setting)).cloned().collect()
    };
    let (added, left) = (only(arm, base), only(base, arm));
    if added.len() >= left.len() { added } else { left.iter().map(|setting| format!("without {setting}")).collect() }
}

/// Puma before 7 serves a keep-alive connection several times in a row, in some arms and not in others.
fn turns(study: &ComparisonStudy) -> Option<String> {
    let has_turns = |arm: usize| {
        let runs = || study.runs.iter().filter(|run| run.arm == arm && run.is_sound());
        let in_turns = runs()
            .filter(|run| run.run.warnings.iter().any(|warning| matches!(warning, Diagnostic::ServedInTurns { .. })));
        2 * in_turns.count() > runs().count()
    };
    let (with, without): (Vec<usize>, Vec<usize>) = (0..study.plan.arms.len()).partition(|arm| has_turns(*arm));
    let letters = |arms: &[usize]| listed(&arms.iter().map(|arm| study.plan.letter(*arm)).collect::<Vec<_>>());
    let serves = if with.len() == 1 { "serves" } else { "serve" };
    let do_not = if without.len() == 1 { "does" } else { "do" };
    (!with.is_empty() && !without.is_empty()).then(|| {
        format!(
            "{} {serves} a keep-alive connection several times in a row while others wait, {} {do_not} not: the one makes a few requests slow, the other lets each wait its turn.",
            letters(&with),
            letters(&without)
        )
    })
}

/// Arms that can process another number of requests at a time.
fn slots(study: &ComparisonStudy) -> Option<String> {
    let of = |arm: usize| study.server(arm).map(model::ServerFacts::slots);
    let known: Vec<(usize, u32)> = (0..study.plan.arms.len()).filter_map(|arm| Some((arm, of(arm)?))).collect();
    let (_, first) = known.first()?;
    if study.plan.question == ComparisonQuestion::Best || known.iter().all(|(_, slots)| slots == first) {
        return None;
    }
    let each: Vec<String> = known.iter().map(|(arm, slots)| format!("{} {slots}", study.plan.letter(*arm))).collect();
    Some(format!("The arms process different numbers of requests at a time ({}) under the same load.", each.join(", ")))
}

/// What the best of several sizes says of larger ones: that CPUs are used up, or that none was tried.
fn edge(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    let ranking = summary.ranking.as_ref().filter(|ranking| ranking.is_decided())?;
    let best = (0..study.plan.arms.len()).find(|arm| study.plan.letter(*arm) == ranking.best)?;
    let sound: Vec<Option<CpuUsage>> =
        study.runs.iter().filter(|run| run.arm == best && run.is_sound()).map(used_up).collect();
    let used: Vec<CpuUsage> = sound.iter().copied().flatten().collect();
    if let Some(cpu) = used.first().filter(|_| 2 * used.len() > sound.len()) {
        let (cpus, are) =
            if cpu.of > 1.0 { (format!("the {} CPUs", cpu.of), "are") } else { ("its CPU".to_owned(), "is") };
        return Some(format!(
            "At {} {cpus} {are} used up: more workers or threads would hardly do more.",
            ranking.best
        ));
    }
    let slots = |arm: usize| study.server(arm).map(model::ServerFacts::slots);
    let is_behind = |arm: usize| ranking.ahead_of.contains(&study.plan.letter(arm));
    let is_largest = (0..study.plan.arms.len())
        .filter(|arm| *arm != best)
        .all(|arm| slots(arm) == slots(best) || slots(arm) < slots(best) && is_behind(arm));
    let is_larger = (0..study.plan.arms.len()).any(|arm| slots(arm) < slots(best));
    (is_largest && is_larger)
        .then(|| format!("{} is the largest size tried: a larger one may do better still.", ranking.best))
}

/// The CPUs of a run that they limited.
fn used_up(run: &model::ComparisonRun) -> Option<CpuUsage> {
    match run.run.judgement.as_ref()?.limit.as_ref()? {
        Limit::Cpu(cpu) | Limit::SharedCpus(cpu) => Some(*cpu),
        _ => None,
    }
}

/// More CPU at the same throughput is free only while CPUs are idle; less of it is no gain where requests wait longer.
fn extra_cpu(summary: &SummaryComparison) -> Option<String> {
    let base = &summary.arms[0].letter;
    let verdict = |metric, arm: &str| Some(summary.metric(metric)?.difference(base, arm)?.verdict);
    summary.compared().skip(1).find_map(|arm| {
        let of = |metric| verdict(metric, &arm.letter);
        let is_slower = [Metric::Mean, Metric::P99].into_iter().any(|it| of(it) == Some(ComparisonVerdict::Worse));
        if of(Metric::Cpu) == Some(ComparisonVerdict::Worse) && of(Metric::Throughput) == Some(ComparisonVerdict::Same) {
            Some("The same throughput for more CPU holds while CPUs are idle; where they are the limit, it is lost throughput.".to_owned())
        } else if of(Metric::Cpu) == Some(ComparisonVerdict::Better) && is_slower {
            Some(format!("{} takes less CPU, but its requests wait longer: that is no gain by itself.", arm.letter))
        } else {
            None
        }
    })
}

/// Who runs first in a block.
fn first_run(summary: &SummaryComparison) -> Option<String> {
    let row = summary.deciding().find(|row| row.first_run.is_some_and(|part| part.abs() > summary.margin / 2.0))?;
    let part = row.first_run?;
    Some(format!(
        "The first run of a block has a {} that is {} {} than the others'; that is taken out.",
        name(row.metric),
        plain_percent(part.abs()),
        if part < 0.0 { "lower" } else { "higher" }
    ))
}
