//! The sentences of a comparison: what it concludes, and no more than its figures say.

use super::best::{best, single_runs};
use super::change_words::{
    certain_change, change_of_medians, estimate_of, figures, has_changed, interval_of,
    is_another_change, is_hardly_certain, is_known_to_differ, plain_percent, range_of,
    same_in_the_others, sentence_of, two_changes,
};
use super::pairs;
use super::sizes;
use super::summary::{self, SummaryArm, SummaryComparison, name};
use crate::labels;
use crate::number::{self, count_of};
use judge::words::listed;
use model::comparison::{
    ComparedMetric, ComparisonDoubt, ComparisonQuestion, ComparisonVerdict, Difference, Metric,
};

/// The conclusion, in which `-k` is explained where it is first used; a line for each arm if several have
/// an event.
pub(crate) fn sentence(summary: &SummaryComparison) -> String {
    let concluded = unexplained_sentence(summary);
    if super::meaning_of_names(summary).is_none() {
        return concluded;
    }
    let first = whole_words(&concluded, "-k").next();
    let Some(at) = first else { return concluded };
    let (before, after) = concluded.split_at(at + "-k".len());
    format!("{before} (no keep-alive){after}")
}

/// Where a word stands that is no part of another one.
pub(crate) fn whole_words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '-';
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let [before, after] = [&text[..*at], &text[at + word.len()..]];
        !before.ends_with(is_of_word) && !after.starts_with(is_of_word)
    })
}

fn unexplained_sentence(summary: &SummaryComparison) -> String {
    if summary.metrics.iter().all(|row| row.differences.iter().all(|it| it.blocks == 0)) {
        let nothing = "No block is whole: nothing can be compared.".to_owned();
        let does_more = || sizes::does_more_in_words(&summary.looks, summary.wanted_per_s?);
        let of_looks = single_runs(summary).or_else(does_more);
        return of_looks.into_iter().chain([nothing]).collect::<Vec<_>>().join(" ");
    }
    if summary.question == ComparisonQuestion::Best {
        return best(summary);
    }
    let base = summary.base().letter.as_str();
    if let Some(few) = too_few_blocks(summary).filter(|_| summary.events.is_empty()) {
        let others = summary.others().map(|arm| arm.letter.as_str());
        let failures = others
            .filter_map(|arm| more_failures(summary, &rows_between(summary, base, arm), base, arm));
        let early = told_early(summary);
        let few = few.in_words(early.is_empty());
        let undecided = failures.chain([few]).collect::<Vec<_>>().join(" ");
        return early.into_iter().chain([undecided]).collect::<Vec<_>>().join("\n");
    }
    let of_settings = of_settings(summary);
    let are_combinations = pairs::are_combinations(summary);
    // Of an arm that differs in several settings, none can be said to make the difference.
    let is_told = |arm: &SummaryArm| {
        let is_in_one = || pairs::differs_in_one_from_base(summary, &arm.letter);
        of_settings.is_none() && (!are_combinations || is_in_one())
    };
    let others = summary.others().filter(|arm| is_told(arm));
    let others: Vec<&str> = others.map(|arm| arm.letter.as_str()).collect();
    let is_short = others.len() > 1;
    // A few runs show what an event costs. That they are too few for a test goes without saying.
    let can_decide = |arm: &str| {
        others.contains(&arm)
            && (summary.events.is_empty() || has_enough_blocks(summary, base, arm))
    };
    let of_each = summary.arms.iter().filter_map(|arm| {
        let letter = arm.letter.as_str();
        let event = summary.events.iter().find(|event| event.arm == letter);
        let event = event.map(|event| event.sentence.clone());
        let against_base = can_decide(letter).then(|| of_arm(summary, base, letter, is_short));
        let said: Vec<String> = event.into_iter().chain(against_base).collect();
        (!said.is_empty()).then(|| said.join(" "))
    });
    let between = if summary.events.len() > 1 { "\n" } else { " " };
    let of_pairs = of_settings.clone().or_else(|| of_other_pairs(summary));
    of_each.chain(of_pairs).collect::<Vec<_>>().join(between)
}

/// Where arms combine settings, and few pairs differ in one of them: a sentence for each of these.
fn of_settings(summary: &SummaryComparison) -> Option<String> {
    const MOST: usize = 4;
    let pairs = pairs::asked(summary);
    let has_few = !pairs.is_empty() && pairs.len() <= MOST;
    let each = pairs.iter().map(|(pair, change)| of_setting(summary, pair, change));
    has_few.then(|| each.collect::<Vec<_>>().join("\n"))
}

/// The same for the pairs of which the conclusion does not tell.
pub(super) fn of_pairs_not_asked(summary: &SummaryComparison) -> Vec<String> {
    let pairs = pairs::not_asked(summary);
    pairs.iter().map(|(pair, change)| of_setting(summary, pair, change)).collect()
}

/// What a setting changes: `-k on 8.0.2: p99 worse, 203 → 253 ms; mean and p50 the same within 5 %.` Where
/// p50 and p99 change in opposite directions, plain words say first who gains and who pays.
fn of_setting(summary: &SummaryComparison, pair: &Difference, change: &pairs::ArmChange) -> String {
    let mut rows = rows_between(summary, &pair.base, &pair.arm);
    rows.sort_by_key(|it| (!it.row.decides, it.row.metric == Metric::Throughput));
    // A mean may hide that few requests wait long, or all of them.
    let is_usual = |metric| matches!(metric, Metric::P50 | Metric::P99 | Metric::Throughput);
    let is_told = |it: &&ComparedRow<'_>| match it.row.metric {
        Metric::Failed if !it.row.decides => it.verdict() == ComparisonVerdict::Worse,
        metric => it.row.decides || is_usual(metric),
    };
    let trade = Trade::of(&rows);
    let tells_rate = find(&rows, Metric::Throughput).is_some_and(|it| {
        let is_known = has_changed(it.difference) || certain_change(it.difference).is_some();
        summary.connections.is_some() && is_known
    });
    // In a closed loop the throughput says the same as the mean, of which the trade has two sides.
    let is_said_by_rate =
        |it: &ComparedRow<'_>| it.row.metric == Metric::Mean && trade.is_some() && tells_rate;
    let (mut changed, mut certain, mut same, mut unclear) = (vec![], vec![], vec![], vec![]);
    for it in rows.iter().filter(is_told) {
        let name = name(it.row.metric);
        match it.verdict() {
            // What the trade costs in all has no word of a verdict beside it.
            ComparisonVerdict::Worse | ComparisonVerdict::Better
                if trade.is_some() && it.row.metric == Metric::Throughput =>
            {
                certain.push(format!("{name} {}", it.medians()));
            }
            ComparisonVerdict::Worse | ComparisonVerdict::Better => changed.push(*it),
            ComparisonVerdict::Same => same.push(name),
            ComparisonVerdict::CannotTell => match certain_change(it.difference) {
                Some(_) if is_said_by_rate(it) => {}
                Some(_) if it.row.metric == Metric::Throughput => {
                    certain.push(format!("{name} {}", it.short_figures()));
                }
                Some(by) => certain.push(it.certain_change(&by)),
                None if it.row.decides => unclear.push(it),
                None => {}
            },
        }
    }
    let differs = !changed.is_empty() || !certain.is_empty();
    changed.retain(|it| trade.as_ref().is_none_or(|trade| !trade.tells_of(it.row.metric)));
    // The largest change of the times first.
    let is_rate = |it: &ComparedRow<'_>| it.row.metric == Metric::Throughput;
    changed.sort_by(|a, b| is_rate(a).cmp(&is_rate(b)).then_with(|| b.size().total_cmp(&a.size())));
    let changed = in_words(&changed.iter().map(ComparedRow::told).collect::<Vec<_>>());
    let margin = plain_percent(summary.margin);
    let unclear = (!unclear.is_empty()).then(|| {
        let names: Vec<String> = unclear.iter().map(|it| name(it.row.metric)).collect();
        let differ = if names.len() == 1 { "differs" } else { "differ" };
        // Where each has a reason of its own, the table has their figures.
        let mut reasons: Vec<String> = unclear.iter().map(|it| it.why_unclear(summary)).collect();
        reasons.dedup();
        let reason = if reasons.len() == 1 { format!(" ({})", reasons[0]) } else { String::new() };
        format!("whether {} {differ} cannot be told{reason}", listed(&names))
    });
    let of_same = (!same.is_empty()).then(|| format!("{} the same within {margin}", listed(&same)));
    // The table has a verdict of the others.
    let is_time = |it: &&ComparedRow<'_>| it.row.decides || it.row.metric.quantile().is_some();
    let times: Vec<ComparedRow<'_>> = rows.iter().filter(is_time).copied().collect();
    let may = MayDiffer::of(summary, &times);
    // What else differs is said in a sentence where nothing differs that is said here.
    let costs = find(&rows, Metric::Cpu)
        .filter(|it| {
            differs
                && !it.row.decides
                && has_changed(it.difference)
                && !is_hardly_certain(it.difference)
        })
        .map(|it| format!("{} {}", name(it.row.metric), it.medians()));
    certain.extend(costs);
    let said = [trade.map(|trade| trade.in_words()), Some(changed), Some(certain.join(", "))];
    let said = said.into_iter().chain([of_same, unclear]).flatten();
    let said: Vec<String> =
        said.chain(may.in_clauses(summary)).filter(|text| !text.is_empty()).collect();
    let subject = change.in_sentence(summary.called(&pair.base));
    let mut sentences = vec![sentence_of(format!("{subject}: {}.", said.join("; ")))];
    sentences.extend(untested(summary, &pair.base, &pair.arm));
    // What a request costs is said above, beside what differs.
    let is_other = |it: &ComparedRow<'_>| match it.row.metric {
        Metric::Throughput => false,
        Metric::Cpu => it.row.decides || !differs,
        _ => true,
    };
    let others: Vec<ComparedRow<'_>> = rows.into_iter().filter(is_other).collect();
    sentences.extend(other_changes(&others, true, Some(&shown_of_arms(summary))));
    sentences.join(" ")
}

/// A median and a p99 that change in opposite directions: most requests pay for a few, or a few for most.
struct Trade<'a> {
    /// Who gains, and who pays.
    words: &'static str,
    /// The two metrics, in the order of the words.
    rows: [ComparedRow<'a>; 2],
}

impl<'a> Trade<'a> {
    fn of(rows: &[ComparedRow<'a>]) -> Option<Trade<'a>> {
        let [median, tail] = [Metric::P50, Metric::P99].map(|metric| find(rows, metric).copied());
        let (median, tail) = median.zip(tail)?;
        match (median.verdict(), tail.verdict()) {
            (ComparisonVerdict::Worse, ComparisonVerdict::Better) => Some(Trade {
                words: "the slowest requests are faster, but a typical one is slower",
                rows: [tail, median],
            }),
            (ComparisonVerdict::Better, ComparisonVerdict::Worse) => Some(Trade {
                words: "a typical request is faster, but the slowest are slower",
                rows: [median, tail],
            }),
            _ => None,
        }
    }

    fn tells_of(&self, metric: Metric) -> bool {
        self.rows.iter().any(|it| it.row.metric == metric)
    }

    fn in_words(&self) -> String {
        let figures = self.rows.map(|it| ToldChange { verdict: None, ..it.told() });
        format!("{}: {}", self.words, in_words(&figures))
    }
}

/// Before there are enough blocks to decide: a line for each pair whose p50 or p99 differ already,
/// because every run of one arm is beyond every run of the other.
fn told_early(summary: &SummaryComparison) -> Vec<String> {
    let in_one_setting = pairs::asked(summary);
    let named: Vec<(&Difference, String)> = if in_one_setting.is_empty() {
        let pairs = summary.deciding().next().map(|row| pairs::told(summary, row));
        let against = |pair: &Difference| {
            format!("{} against {}", summary.called(&pair.arm), summary.called(&pair.base))
        };
        pairs.into_iter().flatten().map(|pair| (pair, against(pair))).collect()
    } else {
        let subject = |pair: &Difference, change: &pairs::ArmChange| {
            change.in_sentence(summary.called(&pair.base))
        };
        in_one_setting.into_iter().map(|(pair, change)| (pair, subject(pair, &change))).collect()
    };
    let line = |pair: &Difference, subject: &str| {
        let times = [Metric::P50, Metric::P99].into_iter();
        let times = times.filter_map(|metric| summary.metric(metric));
        let mut changed: Vec<&ComparedMetric> =
            times.filter(|row| is_known_to_differ(row, pair, summary.margin)).collect();
        changed.sort_by(|a, b| {
            let [a, b] = [a, b].map(|row| change_of_medians(row, pair).unwrap_or_default());
            b.ln_1p().abs().total_cmp(&a.ln_1p().abs())
        });
        let changed = changed.into_iter().map(|row| {
            let figures = format!("{} {}", summary::medians(row, pair), row.unit);
            let name = name(row.metric);
            if row.decides {
                return ToldChange { name, verdict: None, figures, is_in_every_run: true };
            }
            let tested = row.difference(&pair.base, &pair.arm).filter(|_| row.is_tested());
            if let Some(difference) = tested {
                let told = ComparedRow { row, difference }.told();
                return ToldChange { verdict: None, ..told };
            }
            // Where nothing can be decided, a direction is no verdict.
            ToldChange { name, verdict: None, figures, is_in_every_run: true }
        });
        let changed = in_words(&changed.collect::<Vec<_>>());
        (!changed.is_empty()).then(|| sentence_of(format!("{subject}: {changed}.")))
    };
    named.into_iter().filter_map(|(pair, subject)| line(pair, &subject)).collect()
}

/// A change of a metric, in words.
struct ToldChange {
    name: String,
    /// `None` if there is none yet.
    verdict: Option<ComparisonVerdict>,
    /// `1645 → 223 ms`
    figures: String,
    /// Whether every run of one arm is beyond every run of the other, where nothing else says how sure
    /// the change is.
    is_in_every_run: bool,
}

/// Changes: `p99 better, 1645 → 223 ms; p50 worse, 50.4 → 222 ms`; without verdicts, `p50 41.5 → 46.2 ms,
/// p99 46.9 → 51.3 ms`.
fn in_words(changes: &[ToldChange]) -> String {
    let are_all = changes.iter().all(|change| change.is_in_every_run);
    let each = changes.iter().map(|ToldChange { name, verdict, figures, is_in_every_run }| {
        // What every run shows, every block does, and blocks are what other figures count.
        let sure = if *is_in_every_run && !are_all { " (in every block)" } else { "" };
        match verdict {
            Some(verdict) => format!("{name} {}, {figures}{sure}", summary::verdict(*verdict)),
            None => format!("{name} {figures}{sure}"),
        }
    });
    let each: Vec<String> = each.collect();
    let sure = match changes.len() {
        _ if !are_all => "",
        0 => "",
        1 => " (in every block)",
        2 => " (both in every block)",
        _ => " (all in every block)",
    };
    let between = if changes.iter().any(|it| it.verdict.is_some()) { "; " } else { ", " };
    format!("{}{sure}", each.join(between))
}

/// The metrics that were tested between two arms.
fn rows_between<'a>(summary: &'a SummaryComparison, base: &str, arm: &str) -> Vec<ComparedRow<'a>> {
    let compared =
        |row: &'a ComparedMetric| Some(ComparedRow { row, difference: row.difference(base, arm)? });
    summary.metrics.iter().filter_map(compared).collect()
}

/// Whether there were enough blocks to test the metrics that decide.
fn has_enough_blocks(summary: &SummaryComparison, base: &str, arm: &str) -> bool {
    !summary.deciding().any(|row| row.difference(base, arm).is_some_and(Difference::has_few_blocks))
}

/// That there are too few blocks for any test, where several arms or metrics would each say it.
struct TooFewBlocks {
    /// The metrics that decide.
    metrics: String,
    blocks: u32,
    /// The fewest blocks that could tell.
    least: u32,
}

impl TooFewBlocks {
    /// `is_all`: whether no line before it says what differs. What such a line says is seen in every run,
    /// and is no verdict.
    fn in_words(&self, is_all: bool) -> String {
        let TooFewBlocks { metrics, blocks, least } = self;
        let counted = count_of(*blocks, "block");
        if is_all {
            let tell = if *blocks == 1 { "tells" } else { "tell" };
            return format!(
                "Whether the arms differ in {metrics} cannot be told: {counted} {tell} nothing, {least} could."
            );
        }
        let are = if *blocks == 1 { "is" } else { "are" };
        format!("{counted} {are} too few for a verdict in {metrics}: {least} could give one.")
    }
}

fn too_few_blocks(summary: &SummaryComparison) -> Option<TooFewBlocks> {
    let all: Vec<&Difference> = summary.deciding().flat_map(|row| &row.differences).collect();
    let least = |it: &&Difference| match it.doubt {
        Some(ComparisonDoubt::FewBlocks { least }) => Some(least),
        _ => None,
    };
    let least = all.iter().map(least).collect::<Option<Vec<u32>>>()?.into_iter().max()?;
    let blocks = all.iter().map(|it| it.blocks).max()?;
    let metrics: Vec<String> = summary.deciding().map(|row| name(row.metric)).collect();
    (all.len() > 1).then(|| TooFewBlocks { metrics: listed(&metrics), blocks, least })
}

/// If all pairs are compared: a sentence for each pair without the base or, if there are many, one
/// that says how many differ. The table has them all.
fn of_other_pairs(summary: &SummaryComparison) -> Option<String> {
    const MOST: usize = 3;
    if !matches!(summary.question, ComparisonQuestion::Settings | ComparisonQuestion::Pairs) {
        return None;
    }
    let base = &summary.base().letter;
    let are_combinations = pairs::are_combinations(summary);
    let pairs: Vec<ComparedRow<'_>> = summary
        .deciding()
        .flat_map(|row| {
            row.differences.iter().map(move |difference| ComparedRow { row, difference })
        })
        .filter(|it| it.difference.base != *base)
        .filter(|it| !are_combinations || pairs::differ_in_one(summary, it.difference))
        .collect();
    if pairs.len() <= MOST {
        let each = pairs.iter().map(|it| of_deciding(summary, it.row, it.difference));
        return Some(each.collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty());
    }
    let count = |verdicts: &[ComparisonVerdict]| {
        pairs.iter().filter(|it| verdicts.contains(&it.verdict())).count()
    };
    let differ = count(&[ComparisonVerdict::Worse, ComparisonVerdict::Better]);
    let same = count(&[ComparisonVerdict::Same]);
    let unclear = count(&[ComparisonVerdict::CannotTell]);
    let each = [
        (differ, if differ == 1 { "differs" } else { "differ" }.to_owned()),
        (
            same,
            format!(
                "{} the same within {}",
                if same == 1 { "is" } else { "are" },
                plain_percent(summary.margin)
            ),
        ),
        (unclear, "cannot be told apart".to_owned()),
    ];
    let each = each.into_iter().filter(|(count, _)| *count > 0);
    let each: Vec<String> = each.map(|(count, what)| format!("{count} {what}")).collect();
    let with = if are_combinations { "that differ in one setting" } else { "with each other" };
    Some(format!("Of the {} comparisons of the other arms {with}, {}.", pairs.len(), listed(&each)))
}

/// What is said of one arm against the base: failures and what decides first, then what else is
/// worse or better.
fn of_arm(summary: &SummaryComparison, base: &str, arm: &str, is_short: bool) -> String {
    let rows = rows_between(summary, base, arm);
    let tail = tail_against_median(&rows, summary.called(arm));
    let mut parts: Vec<String> = more_failures(summary, &rows, base, arm).into_iter().collect();
    let deciding = rows.iter().filter(|it| it.row.decides);
    parts.extend(deciding.map(|it| of_deciding(summary, it.row, it.difference)));
    let shown = is_short.then(|| shown_of_arms(summary));
    let others = other_changes(&rows, tail.is_some(), shown.as_deref());
    parts.extend(tail);
    parts.extend(untested(summary, base, arm));
    parts.extend(others);
    parts.extend(MayDiffer::of(summary, &rows).in_sentences(summary).filter(|_| !is_short));
    parts.join(" ")
}

fn find<'r, 'a>(rows: &'r [ComparedRow<'a>], metric: Metric) -> Option<&'r ComparedRow<'a>> {
    rows.iter().find(|it| it.row.metric == metric)
}

/// That the arm fails more requests, where failures do not decide.
fn more_failures(
    summary: &SummaryComparison,
    rows: &[ComparedRow<'_>],
    base: &str,
    arm: &str,
) -> Option<String> {
    let ComparedRow { row, .. } = find(rows, Metric::Failed)
        .filter(|it| !it.row.decides && it.verdict() == ComparisonVerdict::Worse)?;
    let [ours, others] = [arm, base].map(|letter| {
        number::or_none(row.median(letter), |value| number::or_zero(value, number::significant))
    });
    Some(sentence_of(format!(
        "{} fails {ours} % of its requests, {} {others} %.",
        summary.called(arm),
        summary.called(base)
    )))
}

/// That tail and median change in opposite directions, where neither decides: many requests pay for
/// a few, or a few for many.
fn tail_against_median(rows: &[ComparedRow<'_>], arm: &str) -> Option<String> {
    let median = find(rows, Metric::P50).filter(|it| !it.row.decides)?;
    let tail = find(rows, Metric::P99).filter(|it| !it.row.decides)?;
    let (shorter, longer) = match (median.verdict(), tail.verdict()) {
        (ComparisonVerdict::Worse, ComparisonVerdict::Better) => {
            (("tail", tail), ("median", median))
        }
        (ComparisonVerdict::Better, ComparisonVerdict::Worse) => {
            (("median", median), ("tail", tail))
        }
        _ => return None,
    };
    Some(format!(
        "The {} of {arm} is shorter, {}, and its {} longer, {}.",
        shorter.0,
        shorter.1.change(),
        longer.0,
        longer.1.change()
    ))
}

/// The metrics that the table of arms has a column for.
fn shown_of_arms(summary: &SummaryComparison) -> Vec<Metric> {
    super::columns_of_arms(summary).into_iter().map(|row| row.metric).collect()
}

/// What else is worse, and what else is better, in a sentence each. Failures have one of their own;
/// so have p50 and p99 if `is_tail_said`. Metrics that are `shown` in the table need no figures here.
fn other_changes(
    rows: &[ComparedRow<'_>],
    is_tail_said: bool,
    shown: Option<&[Metric]>,
) -> Vec<String> {
    let is_shown = |metric| shown.is_some_and(|shown| shown.contains(&metric));
    let verdict_of = |metric| find(rows, metric).map(ComparedRow::verdict);
    let is_p95_like_p99 = verdict_of(Metric::P95) == verdict_of(Metric::P99);
    let is_said = |metric| match metric {
        Metric::Failed => true,
        Metric::P50 | Metric::P99 => is_tail_said,
        Metric::P95 => is_tail_said && is_p95_like_p99,
        _ => false,
    };
    let mut sentences = Vec::new();
    for verdict in [ComparisonVerdict::Worse, ComparisonVerdict::Better] {
        let (decided, changed): (Vec<_>, Vec<_>) =
            rows.iter().filter(|it| it.verdict() == verdict).partition(|it| it.row.decides);
        let is_tail = |it: &&ComparedRow<'_>| matches!(it.row.metric, Metric::P50 | Metric::P99);
        let is_also = !decided.is_empty() || is_tail_said && changed.iter().any(is_tail);
        let changed = changed.into_iter().filter(|it| !is_said(it.row.metric)).map(|it| {
            let is_enough = is_shown(it.row.metric) && !is_hardly_certain(it.difference);
            if is_enough { it.short_change() } else { it.change() }
        });
        let changed = labels::listed(changed);
        if !changed.is_empty() {
            let also = if is_also { "also " } else { "" };
            let begin = judge::words::capitalised(&format!("{also}{}", summary::verdict(verdict)));
            sentences.push(format!("{begin}: {changed}."));
        }
    }
    sentences
}

/// If what decides is the same, a reader takes all for the same: what else may differ by more than
/// the margin, and cannot be told.
#[derive(Default)]
struct MayDiffer<'a> {
    /// What too few blocks show.
    unclear: Vec<ComparedRow<'a>>,
    /// What the control shows, too.
    like_control: Vec<ComparedRow<'a>>,
}

impl<'a> MayDiffer<'a> {
    fn of(summary: &SummaryComparison, rows: &[ComparedRow<'a>]) -> MayDiffer<'a> {
        let mut deciding = rows.iter().filter(|it| it.row.decides);
        if !deciding.all(|it| it.verdict() == ComparisonVerdict::Same) {
            return MayDiffer::default();
        }
        let matters = |metric| {
            matches!(
                metric,
                Metric::Throughput | Metric::P50 | Metric::P95 | Metric::P99 | Metric::Cpu
            )
        };
        // What is certain has its interval in the table.
        let is_unclear = |it: &&ComparedRow<'_>| {
            let is_like_control = it.difference.doubt == Some(ComparisonDoubt::Control);
            it.verdict() == ComparisonVerdict::CannotTell
                && !(is_like_control && certain_change(it.difference).is_some())
        };
        let unclear = rows.iter().filter(is_unclear);
        let large = unclear.filter(|it| matters(it.row.metric) && it.may_be_large(summary.margin));
        let is_like_control =
            |it: &ComparedRow<'_>| it.difference.doubt == Some(ComparisonDoubt::Control);
        let (like_control, unclear) = large.copied().partition(is_like_control);
        MayDiffer { unclear, like_control }
    }

    /// A sentence about each kind, if there is one.
    fn in_sentences(&self, summary: &SummaryComparison) -> Option<String> {
        let of_blocks = |it: &ComparedRow<'_>| {
            let Difference { blocks, blocks_beyond_margin: beyond, .. } = it.difference;
            format!("{} ({} in {beyond} of {blocks} blocks)", name(it.row.metric), it.medians())
        };
        let unclear: Vec<String> = self.unclear.iter().map(of_blocks).collect();
        let verb = if unclear.len() == 1 { "differs" } else { "differ" };
        let unclear = (!unclear.is_empty())
            .then(|| format!("Whether {} {verb} cannot be told.", listed(&unclear)));
        let like_control = self.clauses_like_control(summary);
        let like_control =
            like_control.map(|clause| format!("{}.", judge::words::capitalised(&clause)));
        let said: Vec<String> = unclear.into_iter().chain(like_control).collect();
        (!said.is_empty()).then(|| said.join(" "))
    }

    /// The same as parts of a sentence: `may differ: p99 206 → 301 ms in 5 of 8 blocks, the same in the
    /// others`.
    fn in_clauses(&self, summary: &SummaryComparison) -> Vec<String> {
        let unclear: Vec<String> = self.unclear.iter().map(ComparedRow::in_some_blocks).collect();
        let unclear = (!unclear.is_empty()).then(|| format!("may differ: {}", listed(&unclear)));
        unclear.into_iter().chain(self.clauses_like_control(summary)).collect()
    }

    fn clauses_like_control(&self, summary: &SummaryComparison) -> impl Iterator<Item = String> {
        self.like_control.iter().map(|it| {
            let control = it.row.control.as_ref().map(range_of).unwrap_or_default();
            let name = name(it.row.metric);
            let medians = it.medians();
            let itself = summary.called_control();
            format!(
                "whether {name} ({medians}) differs cannot be told: {itself} against itself {control}"
            )
        })
    }
}

/// A metric, and how an arm differs in it from the base.
#[derive(Clone, Copy)]
struct ComparedRow<'a> {
    row: &'a ComparedMetric,
    difference: &'a Difference,
}

impl ComparedRow<'_> {
    fn verdict(&self) -> ComparisonVerdict {
        self.difference.verdict
    }

    /// How large the change is, in either direction: 0 is none, and twice as much counts as half.
    fn size(&self) -> f64 {
        self.difference.estimate.map_or(0.0, |part| part.ln_1p().abs())
    }

    /// Whether both the medians of the runs and the changes of the blocks are beyond the margin.
    fn may_be_large(&self, margin: f64) -> bool {
        let of_blocks = self.difference.estimate;
        let parts = [of_blocks, change_of_medians(self.row, self.difference)];
        parts.iter().all(|part| part.is_some_and(|part| part.abs() > margin))
    }

    /// `p99 3225 → 406 ms (-87 %)`
    fn change(&self) -> String {
        format!("{} {}", name(self.row.metric), figures(self.row, self.difference))
    }

    /// `p99 3225 → 406 ms`; where the medians show another change than the blocks, that of the blocks.
    fn short_change(&self) -> String {
        let figures = if is_another_change(self.row, self.difference) {
            self.short_figures()
        } else {
            self.medians()
        };
        format!("{} {figures}", name(self.row.metric))
    }

    /// `3225 → 406 ms`, `-8 %`
    fn short_figures(&self) -> String {
        if let Some(two) = two_changes(self.difference) {
            let medians = (!is_another_change(self.row, self.difference))
                .then(|| format!("{} ", self.medians()));
            return format!("{}({two})", medians.unwrap_or_default());
        }
        match estimate_of(self.difference) {
            Some(estimate)
                if self.row.unit == "%" || is_another_change(self.row, self.difference) =>
            {
                estimate
            }
            _ => self.medians(),
        }
    }

    /// The change as a headline has it.
    fn told(&self) -> ToldChange {
        let is_tested_beside = !self.row.decides && self.difference.two_changes.is_none();
        ToldChange {
            name: name(self.row.metric),
            verdict: Some(self.verdict()),
            figures: self.figures_in_headline(),
            is_in_every_run: is_tested_beside && self.difference.is_in_every_run,
        }
    }

    /// `3225 → 406 ms ([-89, -85] %)`: with how sure it is, unless it decides, a column has that, and it
    /// is certain enough, or every run shows it.
    fn figures_in_headline(&self) -> String {
        let figures_alone = self.short_figures();
        let is_said = self.difference.two_changes.is_some();
        match interval_of(self.difference) {
            _ if is_said => figures_alone,
            _ if self.row.decides && is_hardly_certain(self.difference) => {
                figures(self.row, self.difference)
            }
            Some(_)
                if !self.row.decides
                    && !self.difference.is_in_every_run
                    && is_hardly_certain(self.difference) =>
            {
                let Difference { blocks, blocks_beyond_margin: beyond, .. } = self.difference;
                let all = if beyond == blocks {
                    "every block".to_owned()
                } else {
                    format!("{beyond} of {blocks} blocks")
                };
                format!("{figures_alone} (in {all})")
            }
            Some(interval) if !self.row.decides && !self.difference.is_in_every_run => {
                format!("{figures_alone} ({interval} %)")
            }
            _ => figures_alone,
        }
    }

    /// `mean 204 → 211 ms (+2.3 to +5.4 %)`, with a change that is certain.
    fn certain_change(&self, by: &str) -> String {
        let name = name(self.row.metric);
        if is_another_change(self.row, self.difference) {
            return format!("{name} {by}");
        }
        format!("{name} {} ({by})", self.medians())
    }

    /// `p99 206 → 301 ms in 5 of 8 blocks, the same in the others`: a change that not all blocks show.
    fn in_some_blocks(&self) -> String {
        let Difference { blocks, blocks_beyond_margin: beyond, .. } = self.difference;
        let others =
            if same_in_the_others(self.difference) { ", the same in the others" } else { "" };
        format!(
            "{} {} in {beyond} of {blocks} blocks{others}",
            name(self.row.metric),
            self.medians()
        )
    }

    /// Why it cannot be told: `206 → 302 ms in 6 of 8 blocks`, where most blocks show a change beyond the
    /// margin, and so do the medians.
    fn why_unclear(&self, summary: &SummaryComparison) -> String {
        let Difference { blocks, blocks_beyond_margin: beyond, doubt, .. } = self.difference;
        let are_most = 2 * beyond > *blocks && self.may_be_large(summary.margin);
        if *doubt == Some(ComparisonDoubt::Noise)
            && are_most
            && !is_another_change(self.row, self.difference)
        {
            return format!("{} in {beyond} of {blocks} blocks", self.medians());
        }
        why(summary, self.row, self.difference)
    }

    /// `3225 → 406 ms`: the medians of both arms, as the table has them.
    fn medians(&self) -> String {
        let medians = summary::medians(self.row, self.difference);
        format!("{medians} {}", self.row.unit).replace(" /s", "/s")
    }
}

/// What else differs in every run by more than the margin, where only the metric that decides is
/// tested: the largest change first, or those against the verdict. Whoever reads `better` or `the
/// same` must see them.
fn untested(summary: &SummaryComparison, base: &str, arm: &str) -> Option<String> {
    let verdicts: Vec<ComparisonVerdict> =
        summary.deciding().filter_map(|row| Some(row.difference(base, arm)?.verdict)).collect();
    let is_worse = verdicts.contains(&ComparisonVerdict::Worse);
    let is_better = verdicts.contains(&ComparisonVerdict::Better);
    let is_same = verdicts.iter().all(|verdict| *verdict == ComparisonVerdict::Same);
    let is_against = |change: &UntestedChange| {
        if change.is_worse { is_better && !is_worse } else { is_worse && !is_better }
    };
    let of = |metric| UntestedChange::of(summary, metric, base, arm);
    let is_tail_told = summary.deciding().any(|row| row.metric == Metric::P99);
    let tail = of(Metric::P99).or_else(|| of(Metric::P95).filter(|_| !is_tail_told));
    let others = [Metric::P50, Metric::Mean, Metric::Throughput].into_iter().filter_map(of);
    let mut changes: Vec<UntestedChange> = others.chain(tail).collect();
    changes
        .sort_by(|a, b| is_against(b).cmp(&is_against(a)).then_with(|| b.size.total_cmp(&a.size)));
    let first = changes.first()?;
    let begin = if is_against(first) || is_same {
        "but "
    } else if is_worse || is_better {
        "also "
    } else {
        ""
    };
    let mut words: Vec<&str> = Vec::new();
    for change in &changes {
        if !words.contains(&change.word) {
            words.push(change.word);
        }
    }
    let groups = words.iter().enumerate().map(|(at, word)| {
        let alike = changes.iter().filter(|change| change.word == *word);
        let alike = labels::listed(alike.map(|change| change.text.clone()));
        format!("{word}{}: {alike}", if at == 0 { " in every run" } else { "" })
    });
    let text = format!("{begin}{}.", groups.collect::<Vec<_>>().join("; "));
    Some(judge::words::capitalised(&text))
}

/// A change of a metric that was not tested, between arms of which every run of one is beyond every
/// run of the other.
struct UntestedChange {
    /// `longer`, of throughput `lower`.
    word: &'static str,
    is_worse: bool,
    /// 0 is none, and twice as much counts as half.
    size: f64,
    /// `p99 1660 → 224 ms`
    text: String,
}

impl UntestedChange {
    /// `None` if it is within the margin, or not in every run.
    fn of(
        summary: &SummaryComparison,
        metric: Metric,
        base: &str,
        arm: &str,
    ) -> Option<UntestedChange> {
        let is_of_pair = |pair: &[String; 2]| pair[0] == base && pair[1] == arm;
        let row = summary.metric(metric).filter(|row| !row.decides)?;
        row.apart.iter().find(|pair| is_of_pair(pair))?;
        let [before, after] = [row.median(base)?, row.median(arm)?];
        let part = after / before - 1.0;
        let is_more = part > 0.0;
        let word = match (metric, is_more) {
            (Metric::Throughput, true) => "higher",
            (Metric::Throughput, false) => "lower",
            (_, true) => "longer",
            (_, false) => "shorter",
        };
        let [before, after] = [before, after].map(number::significant);
        let text = format!("{} {before} → {after} {}", name(metric), row.unit);
        (part.abs() > summary.margin).then(|| UntestedChange {
            word,
            is_worse: is_more != metric.is_worse_when_less(),
            size: part.ln_1p().abs(),
            text: text.replace(" /s", "/s"),
        })
    }
}

fn of_deciding(
    summary: &SummaryComparison,
    row: &ComparedMetric,
    difference: &Difference,
) -> String {
    let arm = summary.called(&difference.arm);
    let base = summary.called(&difference.base);
    let name = name(row.metric);
    let margin = plain_percent(summary.margin);
    let figures = figures(row, difference);
    sentence_of(match difference.verdict {
        ComparisonVerdict::Worse => format!("{arm} is worse than {base}: {name} {figures}."),
        ComparisonVerdict::Better => format!("{arm} is better than {base}: {name} {figures}."),
        ComparisonVerdict::Same => {
            format!("{arm} has the same {name} as {base} within {margin}: {figures}.")
        }
        ComparisonVerdict::CannotTell => {
            let why = why(summary, row, difference);
            let is_like_control = difference.doubt == Some(ComparisonDoubt::Control);
            match certain_change(difference).filter(|_| !is_like_control) {
                Some(by) => {
                    let why = if why.is_empty() { why } else { format!(": {why}") };
                    format!(
                        "{arm} differs from {base} in {name}, by {by}; whether by more than the margin of {margin} is open{why}."
                    )
                }
                None => {
                    format!("Whether {arm} differs from {base} in {name} cannot be told: {why}.")
                }
            }
        }
    })
}

/// Why it cannot be told.
fn why(summary: &SummaryComparison, row: &ComparedMetric, difference: &Difference) -> String {
    let blocks = count_of(difference.blocks, "block");
    let estimate = two_changes(difference).or_else(|| estimate_of(difference)).unwrap_or_default();
    let is_certain = certain_change(difference).is_some();
    match difference.doubt {
        Some(ComparisonDoubt::FewBlocks { least }) => {
            let tell = if difference.blocks == 1 { "tells" } else { "tell" };
            format!("{blocks} {tell} nothing, {least} could")
        }
        Some(ComparisonDoubt::Missing { figure, runs }) => {
            let have = if runs == 1 { "has" } else { "have" };
            format!("{} {have} no {} ({})", count_of(runs, "run"), name(row.metric), figure)
        }
        Some(ComparisonDoubt::Control) => {
            let control = row.control.as_ref().map(range_of).unwrap_or_default();
            format!("it is {estimate}, and {} against itself {control}", summary.called_control())
        }
        Some(ComparisonDoubt::ShortRuns) if is_certain => "the runs are too short".to_owned(),
        Some(ComparisonDoubt::ShortRuns) => format!(
            "it is {estimate}, but the throughputs do not differ by as much, as they would in runs that are long enough for their longest requests"
        ),
        Some(ComparisonDoubt::Noise) | None => {
            let needed = difference.blocks_needed.map(|needed| count_of(needed, "block"));
            if is_certain {
                return needed.map(|it| format!("about {it} would tell")).unwrap_or_default();
            }
            let smallest = difference
                .smallest
                .map(|part| format!("; {blocks} could show {} or more", plain_percent(part)));
            let needed = needed
                .map(|it| format!(", about {it} would show {}", plain_percent(summary.margin)));
            let interval = interval_of(difference).map(|interval| format!(" {interval}"));
            let more = [interval, smallest, needed].map(Option::unwrap_or_default).concat();
            format!("{estimate}{more}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::TableColumn;

    #[test]
    fn too_few_blocks_are_said_once() {
        let mut study = testkit::comparison::combinations();
        study.runs.retain(|run| run.block == 1);
        let said = |study: &model::ComparisonStudy| sentence(&crate::comparison::summary(study));
        assert_eq!(
            said(&study),
            "Whether the arms differ in mean and p99 cannot be told: 1 block tells nothing, 9 could."
        );
        study.plan.question = ComparisonQuestion::Change;
        assert!(said(&study).ends_with(" could."), "{}", said(&study));
        assert_eq!(said(&study).matches("cannot be told").count(), 1, "{}", said(&study));
    }

    #[test]
    fn before_enough_blocks_what_is_told_already_comes_first() {
        let mut study = testkit::comparison::combinations();
        study.plan.gates = vec![Metric::Mean];
        study.runs.retain(|run| run.block <= 7);
        let few = "7 blocks are too few for a verdict in mean: 8 could give one.";
        let said = sentence(&crate::comparison::summary(&study));
        let lines: Vec<&str> = said.lines().collect();
        assert!(
            lines.len() > 1
                && lines[0].starts_with("-k (no keep-alive) on 6.6.1: p50 41.5 → 46.2 ms"),
            "{said}"
        );
        assert_eq!(lines.last(), Some(&few), "{said}");
        // Nothing but what decides is tested without a control.
        study.plan.control = false;
        let untested = sentence(&crate::comparison::summary(&study));
        assert_eq!(untested, said);
        study.plan.control = true;
        // Against the base, too.
        study.plan.question = ComparisonQuestion::Change;
        study.runs.retain(|run| run.block <= 6);
        let said = sentence(&crate::comparison::summary(&study));
        assert!(said.starts_with("6.6.1 -k (no keep-alive) against 6.6.1: p50 41.5 → "), "{said}");
        assert!(
            said.ends_with("6 blocks are too few for a verdict in mean: 7 could give one."),
            "{said}"
        );
    }

    #[test]
    fn a_change_that_is_hardly_certain_is_said_with_its_interval() {
        let mut summary = crate::comparison::summary(&testkit::comparison::slower());
        let row = summary.metrics.iter_mut().find(|row| row.metric == Metric::Mean).unwrap();
        row.differences[0].estimate = Some(0.12);
        let [base, arm] = [&row.differences[0].base, &row.differences[0].arm].map(Clone::clone);
        row.medians.insert(arm, row.medians[&base].map(|median| 1.12 * median));
        let mut said = |interval| {
            row.differences[0].interval = Some(interval);
            let it = ComparedRow { row, difference: &row.differences[0] };
            [it.change(), it.figures_in_headline()]
                .map(|text| text.split_once(" ms").unwrap().1.to_owned())
        };
        assert_eq!(said([0.08, 0.16]), [" (+12 %)", ""]);
        assert_eq!(said([0.001, 0.251]), [" (+12.0 % [+0.1, +25.1])"; 2]);
    }

    #[test]
    fn what_differs_in_every_run_is_said_in_both_directions() {
        let mut study = testkit::comparison::combinations();
        study.plan.gates = vec![Metric::Mean];
        study.plan.control = false;
        let mut summary = crate::comparison::summary(&study);
        for (metric, after) in
            [(Metric::P50, 84.0), (Metric::P99, 10.0), (Metric::P95, 10.0), (Metric::Cpu, 9.0)]
        {
            let row = summary.metrics.iter_mut().find(|row| row.metric == metric).unwrap();
            row.apart = vec![["A".to_owned(), "B".to_owned()]];
            row.medians.insert("A".to_owned(), Some(42.0));
            row.medians.insert("B".to_owned(), Some(after));
        }
        let throughput = summary.metrics.iter_mut().find(|row| row.metric == Metric::Throughput);
        throughput.unwrap().apart.clear();
        let mut said = |verdict| {
            let mean = summary.metrics.iter_mut().find(|row| row.metric == Metric::Mean).unwrap();
            let pair = mean.differences.iter_mut().find(|it| it.base == "A" && it.arm == "B");
            pair.unwrap().verdict = verdict;
            untested(&summary, "A", "B").unwrap()
        };
        let tail_first = "horter in every run: p99 42.0 → 10.0 ms; longer: p50 42.0 → 84.0 ms.";
        assert_eq!(said(ComparisonVerdict::Same), format!("But s{tail_first}"));
        assert_eq!(said(ComparisonVerdict::Worse), format!("But s{tail_first}"));
        assert_eq!(said(ComparisonVerdict::CannotTell), format!("S{tail_first}"));
        assert_eq!(
            said(ComparisonVerdict::Better),
            "But longer in every run: p50 42.0 → 84.0 ms; shorter: p99 42.0 → 10.0 ms."
        );
    }

    #[test]
    fn where_arms_combine_settings_each_pair_has_a_line() {
        let mut study = testkit::comparison::combinations();
        study.plan.question = ComparisonQuestion::Settings;
        let summary = crate::comparison::summary(&study);
        let said = sentence(&summary);
        let begins: Vec<&str> = said.lines().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(begins, ["-k (no keep-alive) on 6.6.1", "-k on 8.0.2"]);
        let others = of_pairs_not_asked(&summary);
        let begins: Vec<&str> = others.iter().filter_map(|line| line.split(':').next()).collect();
        let with_each =
            ["8.0.2 instead of 6.6.1, with keep-alive", "8.0.2 instead of 6.6.1, with -k"];
        assert_eq!(begins, with_each);
        let is_about_two = |reason: &String| reason.contains("more than one setting");
        assert!(!summary.reasons.iter().any(is_about_two), "{:?}", summary.reasons);
        let how = crate::comparison::method(&study);
        assert!(how.contains("; 4 pairs that differ in one setting share one chance"), "{how}");
    }

    #[test]
    fn a_saved_comparison_may_be_seen_from_another_arm() {
        let mut study = testkit::comparison::three();
        study.plan.base = 1;
        let summary = crate::comparison::summary(&study);
        let said = sentence(&summary);
        assert!(said.starts_with("main is worse than one: mean "), "{said}");
        assert!(said.contains(" two is worse than one: mean "), "{said}");
        assert!(summary.worse && !said.contains("than main"), "{said}");
        let mut two = testkit::comparison::slower();
        two.plan.base = 1;
        let table = crate::comparison::table(&crate::comparison::summary(&two), true);
        let columns: Vec<String> = table.columns.iter().map(TableColumn::full_name).collect();
        assert_eq!(columns[1..4], ["B", "A", "change A against B"], "{columns:?}");
    }

    #[test]
    fn a_pair_with_too_few_blocks_says_so_once() {
        // The last arm has fewer blocks than can tell anything.
        let mut study = testkit::comparison::combinations();
        study.runs.retain(|run| run.arm != 3 || run.block > 4);
        let said = sentence(&crate::comparison::summary(&study));
        let few = "-k on 8.0.2: whether mean and p99 differ cannot be told (5 blocks tell nothing, 8 could).";
        assert!(said.contains(few), "{said}");
        let told = "-k (no keep-alive) on 6.6.1: mean worse, 42.4 → 46.7 ms; p50 worse, 42.1 → 46.4 ms (in every block); p99 worse, 46.9 → 51.3 ms; throughput worse, 474 → 430/s (in every block).";
        assert!(said.starts_with(told), "{said}");
        let mixed = "8.0.2 instead of 6.6.1, with keep-alive: a typical request is faster, but the slowest are slower: p50 42.1 → 37.7 ms (in every block), p99 46.9 → 53.2 ms; mean better, ";
        let others = of_pairs_not_asked(&crate::comparison::summary(&study));
        assert!(others[0].contains(mixed), "{others:?}");
    }

    #[test]
    fn a_change_that_some_blocks_show_and_a_small_one_have_no_word_of_a_verdict() {
        let mut study = testkit::comparison::combinations();
        study.plan.gates = vec![Metric::Mean];
        let mut summary = crate::comparison::summary(&study);
        let mut change =
            |metric, [before, after]: [f64; 2], verdict, interval: Option<[f64; 2]>| {
                let row = summary.metrics.iter_mut().find(|row| row.metric == metric).unwrap();
                row.medians.insert("C".to_owned(), Some(before));
                row.medians.insert("D".to_owned(), Some(after));
                let pair = row.differences.iter_mut().find(|it| it.base == "C" && it.arm == "D");
                let pair = pair.unwrap();
                pair.verdict = verdict;
                pair.doubt = Some(ComparisonDoubt::Noise);
                pair.estimate = Some(after / before - 1.0);
                pair.interval = interval;
                pair.is_in_every_run = false;
                pair.two_changes = None;
                pair.clone()
            };
        let (same, cannot_tell) = (ComparisonVerdict::Same, ComparisonVerdict::CannotTell);
        change(Metric::Mean, [201.0, 201.0], same, Some([0.0, 0.003]));
        change(Metric::P50, [201.0, 201.0], same, Some([0.0, 0.0]));
        change(Metric::Throughput, [100.0, 95.0], cannot_tell, Some([-0.05, -0.05]));
        change(Metric::P99, [206.0, 301.0], cannot_tell, Some([0.0, 0.46]));
        let tail = summary.metrics.iter_mut().find(|row| row.metric == Metric::P99).unwrap();
        let pair = tail.differences.iter_mut().find(|it| it.base == "C" && it.arm == "D").unwrap();
        pair.blocks = 8;
        pair.blocks_beyond_margin = 5;
        let begins = "-k on 8.0.2: throughput 100 → 95.0/s; mean and p50 the same within 5 %; may differ: p99 206 → 301 ms in 5 of 8 blocks";
        let said = |summary: &SummaryComparison| {
            sentence(summary)
                .lines()
                .find(|line| line.starts_with("-k on 8.0.2"))
                .unwrap()
                .to_owned()
        };
        assert_eq!(said(&summary), format!("{begins}."));
        let tail = summary.metrics.iter_mut().find(|row| row.metric == Metric::P99).unwrap();
        let pair = tail.differences.iter_mut().find(|it| it.base == "C" && it.arm == "D").unwrap();
        pair.two_changes =
            Some(model::comparison::TwoValues { low: 0.001, high: 0.46, low_count: 3, count: 8 });
        assert_eq!(said(&summary), format!("{begins}, the same in the others."));
    }

    #[test]
    fn what_a_request_costs_stands_beside_what_else_a_setting_changes() {
        let study = testkit::comparison::combinations();
        let said = |estimate: f64, interval| {
            let mut summary = crate::comparison::summary(&study);
            let cpu = summary.metrics.iter_mut().find(|row| row.metric == Metric::Cpu).unwrap();
            let pair = cpu.differences.iter_mut().find(|it| it.base == "A" && it.arm == "B");
            let pair = pair.unwrap();
            (pair.verdict, pair.doubt) = (ComparisonVerdict::Worse, None);
            (pair.estimate, pair.interval) = (Some(estimate), Some(interval));
            // The figures are those of the table, whatever the blocks say.
            sentence(&summary).lines().next().unwrap().to_owned()
        };
        let certain = said(0.62, [0.2, 1.3]);
        assert!(certain.ends_with("; CPU a request 1.89 → 1.90 ms."), "{certain}");
        let hardly = said(0.12, [0.01, 0.3]);
        assert!(!hardly.contains("CPU"), "{hardly}");
    }

    #[test]
    fn a_metric_that_decides_says_in_how_many_blocks_it_differs() {
        let mut summary = crate::comparison::summary(&testkit::comparison::combinations());
        let tail = summary.metrics.iter_mut().find(|row| row.metric == Metric::P99).unwrap();
        assert!(tail.decides);
        tail.medians.insert("C".to_owned(), Some(206.0));
        tail.medians.insert("D".to_owned(), Some(302.0));
        let pair = tail.differences.iter_mut().find(|it| it.base == "C" && it.arm == "D").unwrap();
        (pair.verdict, pair.doubt) = (ComparisonVerdict::CannotTell, Some(ComparisonDoubt::Noise));
        (pair.estimate, pair.interval) = (Some(0.466), Some([-0.002, 0.474]));
        (pair.blocks, pair.blocks_beyond_margin) = (8, 6);
        let said = sentence(&summary);
        let ends = "whether p99 differs cannot be told (206 → 302 ms in 6 of 8 blocks).";
        assert!(said.lines().nth(1).unwrap().contains(ends), "{said}");
    }

    #[test]
    fn what_every_run_shows_is_said_once() {
        use ComparisonVerdict::{Better, Worse};
        let said = |changes: &[(ComparisonVerdict, &str, bool)]| {
            let change = |(verdict, name, sure): &(ComparisonVerdict, &str, bool)| ToldChange {
                name: (*name).into(),
                verdict: Some(*verdict),
                figures: "1 → 2 ms".into(),
                is_in_every_run: *sure,
            };
            in_words(&changes.iter().map(change).collect::<Vec<_>>())
        };
        assert_eq!(said(&[]), "");
        assert_eq!(
            said(&[(Worse, "p99", false), (Better, "p50", true)]),
            "p99 worse, 1 → 2 ms; p50 better, 1 → 2 ms (in every block)"
        );
        assert_eq!(
            said(&[(Worse, "p99", true), (Better, "p50", true)]),
            "p99 worse, 1 → 2 ms; p50 better, 1 → 2 ms (both in every block)"
        );
        assert_eq!(said(&[(Worse, "p99", true)]), "p99 worse, 1 → 2 ms (in every block)");
    }

    #[test]
    fn a_difference_that_may_be_within_the_margin_is_said_with_its_range() {
        let mut summary = crate::comparison::summary(&testkit::comparison::slower());
        let row = summary.metrics.iter().position(|row| row.metric == Metric::Mean).unwrap();
        let said = |summary: &mut SummaryComparison, interval, doubt| {
            let difference = &mut summary.metrics[row].differences[0];
            difference.verdict = ComparisonVerdict::CannotTell;
            difference.estimate = Some(0.049);
            difference.interval = Some(interval);
            difference.doubt = Some(doubt);
            difference.blocks_needed = Some(14);
            let row = &summary.metrics[row];
            of_deciding(summary, row, &row.differences[0])
        };
        let open = "my-branch differs from main in mean, by +4.5 to +8.4 %; whether by more than the margin of 5 % is open";
        let [noise, short] = [ComparisonDoubt::Noise, ComparisonDoubt::ShortRuns];
        let certain = [0.045, 0.084];
        assert_eq!(
            said(&mut summary, certain, noise),
            format!("{open}: about 14 blocks would tell.")
        );
        assert_eq!(said(&mut summary, certain, short), format!("{open}: the runs are too short."));
        let less = said(&mut summary, [-0.084, -0.045], noise);
        assert!(
            less.starts_with("my-branch differs from main in mean, by -8.4 to -4.5 %"),
            "{less}"
        );
        let unclear = said(&mut summary, [-0.01, 0.084], short);
        assert_eq!(
            unclear,
            "Whether my-branch differs from main in mean cannot be told: it is +4.9 %, but the throughputs do not differ by as much, as they would in runs that are long enough for their longest requests."
        );
    }
}
