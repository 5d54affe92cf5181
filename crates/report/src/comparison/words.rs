//! What is concluded of a comparison, in sentences. Each says what its figures say and no more.

use model::comparison::{ComparisonDoubt, ComparisonQuestion, ComparisonVerdict, Metric, excludes_zero};
use model::{ComparisonStudy, CpuUsage, Diagnostic, Limit};

use super::figures::{SummaryComparison, SummaryDifference, SummaryMetric};
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

impl SummaryDifference {
    /// `+1.4 %`
    pub(super) fn estimate_in_words(&self) -> Option<String> {
        self.estimate.map(|part| estimate(part, self.interval))
    }

    /// `[-1.2, +3.0]`
    pub(super) fn interval_in_words(&self) -> Option<String> {
        self.interval.map(|ends| interval(ends, self.estimate))
    }
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

/// `p99 3225 → 406 ms (-87 %)`
fn change(row: &SummaryMetric, difference: &SummaryDifference) -> String {
    format!("{} {}", name(row.metric), figures(row, difference))
}

/// `3225 → 406 ms (-87 %)`
fn figures(row: &SummaryMetric, difference: &SummaryDifference) -> String {
    let shown = |letter: &str| number::or_none(row.median(letter), number::significant);
    let change = difference.estimate_in_words().unwrap_or_else(|| "not known".to_owned());
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
    let mut parts = Vec::new();
    for row in summary.metrics.iter().filter(|row| row.metric == Metric::Failed && !row.decides) {
        if row.difference(base, arm).is_some_and(|it| it.verdict == ComparisonVerdict::Worse) {
            let share =
                |letter: &str| number::or_none(row.median(letter), |value| number::or_zero(value, number::significant));
            parts.push(format!(
                "{} fails {} % of its requests, {base} {} %.",
                called(summary, arm),
                share(arm),
                share(base)
            ));
        }
    }
    let tail = tail_for_median(summary, base, arm);
    for row in summary.deciding() {
        if let Some(difference) = row.difference(base, arm) {
            parts.push(of_deciding(summary, row, difference));
        }
    }
    let verdict_of = |metric| Some(summary.metric(metric)?.difference(base, arm)?.verdict);
    let has_tail = tail.is_some();
    let is_said = |metric| match metric {
        Metric::Failed => true,
        Metric::P50 | Metric::P99 => has_tail,
        Metric::P95 => has_tail && verdict_of(Metric::P95) == verdict_of(Metric::P99),
        _ => false,
    };
    parts.extend(tail);
    parts.extend(untested(summary, base, arm));
    let others = |verdict: ComparisonVerdict| -> Vec<String> {
        let rows = summary.metrics.iter().filter(|row| !row.decides && !is_said(row.metric));
        let said = |row: &SummaryMetric| {
            let difference = row.difference(base, arm).filter(|it| it.verdict == verdict)?;
            Some(if is_short { name(row.metric).to_owned() } else { change(row, difference) })
        };
        rows.filter_map(said).collect()
    };
    let decided = |verdict| {
        summary.deciding().any(|row| row.difference(base, arm).is_some_and(|difference| difference.verdict == verdict))
    };
    for verdict in [ComparisonVerdict::Worse, ComparisonVerdict::Better] {
        let changed = others(verdict);
        if !changed.is_empty() {
            let word = self::verdict(verdict);
            let word = if decided(verdict) { format!("also {word}") } else { word.to_owned() };
            parts.push(format!("{}: {}.", crate::markdown::capitalised(&word), changed.join(", ")));
        }
    }
    parts.join(" ")
}

/// A tail and a median that change in opposite directions, if neither decides: many requests pay for a few, or a few for many.
fn tail_for_median(summary: &SummaryComparison, base: &str, arm: &str) -> Option<String> {
    let of = |metric| {
        let row = summary.metric(metric).filter(|row| !row.decides)?;
        let difference = row.difference(base, arm)?;
        Some((difference.verdict, change(row, difference)))
    };
    let ((median, p50), (tail, p99)) = (of(Metric::P50)?, of(Metric::P99)?);
    let (shorter, longer) = (ComparisonVerdict::Better, ComparisonVerdict::Worse);
    if (median, tail) == (longer, shorter) {
        Some(format!("{arm}'s tail is shorter, {p99}, and its median longer, {p50}."))
    } else if (median, tail) == (shorter, longer) {
        Some(format!("{arm}'s median is shorter, {p50}, and its tail longer, {p99}."))
    } else {
        None
    }
}

/// Response times that move against what decides by more than the margin, where only what decides is tested: who reads `better` must
/// see them.
fn untested(summary: &SummaryComparison, base: &str, arm: &str) -> Option<String> {
    let decided: Vec<ComparisonVerdict> =
        summary.deciding().filter_map(|row| Some(row.difference(base, arm)?.verdict)).collect();
    let (is_better, is_worse) =
        (decided.contains(&ComparisonVerdict::Better), decided.contains(&ComparisonVerdict::Worse));
    let against = |metric| {
        let row = summary.metric(metric).filter(|row| row.differences.is_empty())?;
        let (before, after) = (row.median(base)?, row.median(arm)?);
        let (is_longer, is_shorter) =
            (after > before * (1.0 + summary.margin), after < before * (1.0 - summary.margin));
        let shown = number::significant;
        (is_better && is_longer || is_worse && is_shorter)
            .then(|| format!("{} {} → {} {}", name(metric), shown(before), shown(after), row.unit))
    };
    let moved: Vec<String> =
        [Metric::Mean, Metric::P50, Metric::P95, Metric::P99].into_iter().filter_map(against).collect();
    let other = if is_better { "longer" } else { "shorter" };
    (!moved.is_empty() && is_better != is_worse)
        .then(|| format!("But {other}, and not tested without a control: {}.", moved.join(", ")))
}

fn of_deciding(summary: &SummaryComparison, row: &SummaryMetric, difference: &SummaryDifference) -> String {
    let (arm, base) = (called(summary, &difference.arm), &difference.base);
    match difference.verdict {
        ComparisonVerdict::Worse => format!("{arm} is worse than {base}: {}.", change(row, difference)),
        ComparisonVerdict::Better => format!("{arm} is better than {base}: {}.", change(row, difference)),
        ComparisonVerdict::Same => {
            format!(
                "{arm} has the same {} as {base} within {}: {}.",
                name(row.metric),
                plain_percent(summary.margin),
                figures(row, difference)
            )
        }
        ComparisonVerdict::CannotTell if is_small(difference) => format!(
            "{arm} has a {} {} than {base}, but whether by {} or more cannot be told: {}.",
            if difference.estimate.is_some_and(|part| part < 0.0) { "lower" } else { "higher" },
            name(row.metric),
            plain_percent(summary.margin),
            why(summary, row, difference)
        ),
        ComparisonVerdict::CannotTell => format!(
            "Whether {arm} differs from {base} in {} cannot be told: {}.",
            name(row.metric),
            why(summary, row, difference)
        ),
    }
}

/// Whether there is a difference, which may be smaller than the margin.
fn is_small(difference: &SummaryDifference) -> bool {
    difference.doubt == Some(ComparisonDoubt::Noise) && difference.interval.is_some_and(excludes_zero)
}

/// Why it cannot be told.
fn why(summary: &SummaryComparison, row: &SummaryMetric, difference: &SummaryDifference) -> String {
    let blocks = count_of(difference.blocks, "block");
    match difference.doubt {
        Some(ComparisonDoubt::FewBlocks { least }) => {
            let tell = if difference.blocks == 1 { "tells" } else { "tell" };
            format!("{blocks} {tell} nothing, {least} could")
        }
        Some(ComparisonDoubt::Missing { figure, runs }) => {
            format!("{} have no {} ({})", count_of(runs, "run"), name(row.metric), figure.words())
        }
        Some(ComparisonDoubt::Control) => {
            let control = row.control.as_ref().and_then(SummaryDifference::interval_in_words).unwrap_or_default();
            let estimate = difference.estimate_in_words().unwrap_or_default();
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
            let estimate = difference.estimate_in_words().unwrap_or_default();
            format!("{estimate} {}{smallest}{needed}", difference.interval_in_words().unwrap_or_default())
        }
    }
}

/// Which arm is best.
fn best(summary: &SummaryComparison) -> String {
    let Some((ranking, row)) = summary.ranking.as_ref().zip(summary.deciding().next()) else {
        return "Which is best cannot be told: no arm has a figure.".to_owned();
    };
    let mut behind: Vec<(f64, String)> = Vec::new();
    let mut unclear: Vec<String> = Vec::new();
    for difference in row.differences.iter().filter(|it| it.base == ranking.best || it.arm == ranking.best) {
        let is_base = difference.base == ranking.best;
        let other = if is_base { &difference.arm } else { &difference.base };
        // As seen from the best one.
        let turned = |part: f64| if is_base { part } else { 1.0 / (1.0 + part) - 1.0 };
        let estimate = difference.estimate.map(turned).unwrap_or_default();
        if ranking.ahead_of.contains(other) {
            behind.push((estimate, format!("{} ({} %)", called(summary, other), percent(estimate, 0))));
        } else if ranking.unclear.contains(other) {
            unclear.push(format!(
                "{} ({} %)",
                called(summary, other),
                percent(estimate, usize::from(estimate.abs() < 0.0995))
            ));
        }
    }
    behind.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
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
        let behind: Vec<String> = behind.into_iter().map(|(_, text)| text).collect();
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
            more => format!(" ({} more runs came to nothing)", number::count(more as u64)),
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
