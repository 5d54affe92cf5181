//! The differences that the main table of many arms has no room for: those of a second metric that
//! decides, and those of pairs without the base. Where arms combine settings (two versions, each
//! with and without `-k`), the pairs that differ in one of them are shown, by what it changes.

use model::comparison::{ComparedMetric, ComparisonQuestion, Difference, Metric};

use super::change_words::{certain_change, is_known_to_differ};
use super::summary::{self, SummaryArm, SummaryComparison, shortened};
use super::{change as change_of, verdict_of};
use crate::number;
use crate::tree::{ColumnBand, DataTable, TableColumn, TableRow};

/// What an arm changes against another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArmChange {
    removed: Vec<String>,
    added: Vec<String>,
    /// What both have.
    common: Vec<String>,
    /// What neither has, though another pair with the same change has it.
    lacking: Option<String>,
    /// Whether one Puma takes the place of another.
    is_of_puma: bool,
}

impl ArmChange {
    /// By the words of their names, which are short, if these tell as many settings apart as there
    /// are; else by the settings.
    pub(super) fn of(base: &SummaryArm, arm: &SummaryArm) -> ArmChange {
        let by_settings = ArmChange::between(&base.settings, &arm.settings);
        let by_names = ArmChange::between(&words_of_name(base), &words_of_name(arm));
        let count = |change: &ArmChange| (change.removed.len(), change.added.len());
        let is_of_puma = by_settings.is_of_puma;
        let change = if count(&by_names) == count(&by_settings) { by_names } else { by_settings };
        ArmChange { is_of_puma, ..change }
    }

    fn between(base: &[String], arm: &[String]) -> ArmChange {
        let only = |first: &[String], second: &[String]| {
            first.iter().filter(|it| !second.contains(it)).cloned().collect()
        };
        let common = base.iter().filter(|it| arm.contains(it)).cloned().collect();
        let [removed, added]: [Vec<String>; 2] = [only(base, arm), only(arm, base)];
        let is_puma =
            |settings: &[String]| matches!(settings, [setting] if setting.starts_with("--puma"));
        let is_of_puma = is_puma(&removed) && is_puma(&added);
        ArmChange { removed, added, common, lacking: None, is_of_puma }
    }

    /// In how many settings they differ; one that takes the place of another counts once.
    pub(super) fn count(&self) -> usize {
        self.removed.len().max(self.added.len())
    }

    /// The settings that only the arm has, and those of the base that none of them replaces.
    pub(super) fn differing(&self) -> Vec<String> {
        let added = self.added.iter().map(|it| shortened(it));
        let left_out = self.removed.iter().skip(self.added.len());
        added.chain(left_out.map(|it| format!("without {}", shortened(it)))).collect()
    }

    /// `-k`, `without -k`, `6.6.1 → 8.0.2`.
    fn in_words(&self) -> String {
        match (&self.removed[..], &self.added[..]) {
            ([], [added]) => shortened(added),
            ([removed], []) => format!("without {}", shortened(removed)),
            ([removed], [added]) => format!("{} → {}", shortened(removed), shortened(added)),
            ([], added) => shortened(&added.join(" ")),
            _ => format!("{} settings", self.count()),
        }
    }

    /// As a sentence calls the change of one setting: `-k on 6.6.1`, `6.6.1 without -k`,
    /// `8.0.2 instead of 6.6.1, with -k`. `base`: what sentences call the base.
    pub(super) fn in_sentence(&self, base: &str) -> String {
        match (&self.removed[..], &self.added[..]) {
            ([], [added]) => format!("{} on {base}", shortened(added)),
            ([removed], []) => format!("{base} without {}", shortened(removed)),
            ([removed], [added]) => {
                let instead = format!("{} instead of {}", shortened(added), shortened(removed));
                let beside = self.beside();
                match beside.as_str() {
                    "" => instead,
                    without if without.starts_with("without ") => format!("{instead}, {without}"),
                    with => format!("{instead}, with {with}"),
                }
            }
            _ => format!("{} on {base}", self.in_words()),
        }
    }

    /// The same as a cell, which is short: `-k`, `keep-alive`, `no -Y`.
    fn beside_in_table(&self) -> String {
        match self.lacking.as_deref() {
            None => self.beside(),
            Some("-k") => "keep-alive".to_owned(),
            Some(lacking) => format!("no {}", shortened(lacking)),
        }
    }

    /// What both have, shortened: `-k`; or what tells them from the other pair with this change:
    /// `keep-alive`, `without -Y`.
    fn beside(&self) -> String {
        match self.lacking.as_deref() {
            Some("-k") => return "keep-alive".to_owned(),
            Some(lacking) => return format!("without {}", shortened(lacking)),
            None => {}
        }
        self.common.iter().map(|it| shortened(it)).collect::<Vec<_>>().join(" ")
    }
}

fn words_of_name(arm: &SummaryArm) -> Vec<String> {
    let words = arm.name.split_whitespace().filter(|_| arm.name != "default");
    words.map(str::to_owned).collect()
}

/// What the arm of a difference changes.
pub(super) fn arm_change(
    summary: &SummaryComparison,
    difference: &Difference,
) -> Option<ArmChange> {
    let find = |letter: &str| summary.arms.iter().find(|arm| arm.letter == letter);
    Some(ArmChange::of(find(&difference.base)?, find(&difference.arm)?))
}

/// Whether the arms combine settings, so that some pairs differ in one of them and some in several.
pub(crate) fn are_combinations(summary: &SummaryComparison) -> bool {
    let changes = || changes(summary).into_iter();
    match summary.question {
        ComparisonQuestion::Settings => true,
        ComparisonQuestion::Pairs => {
            let is_one = |(_, change): &(&Difference, ArmChange)| is_of_one(summary, change);
            changes().any(|it| !is_one(&it)) && changes().filter(is_one).count() > 1
        }
        ComparisonQuestion::Change | ComparisonQuestion::Best => false,
    }
}

/// The pairs that are compared, each with what its arm changes.
fn changes(summary: &SummaryComparison) -> Vec<(&Difference, ArmChange)> {
    let pairs = summary.deciding().next().into_iter().flat_map(|row| &row.differences);
    pairs.filter_map(|pair| Some((pair, arm_change(summary, pair)?))).collect()
}

/// Whether this is the change of one setting. Settings that are only changed together are one.
fn is_of_one(summary: &SummaryComparison, change: &ArmChange) -> bool {
    summary.question == ComparisonQuestion::Settings || change.count() == 1
}

/// Whether the arms of this pair differ in one setting.
pub(super) fn differ_in_one(summary: &SummaryComparison, pair: &Difference) -> bool {
    arm_change(summary, pair).is_none_or(|change| is_of_one(summary, &change))
}

/// Whether the arm with this letter is compared with the base in one setting.
pub(super) fn differs_in_one_from_base(summary: &SummaryComparison, arm: &str) -> bool {
    let base = &summary.base().letter;
    let mut pairs = changes(summary).into_iter();
    pairs.any(|(pair, change)| pair.base == *base && pair.arm == arm && is_of_one(summary, &change))
}

/// Where arms combine settings, the pairs that differ in one of them. Those that change the same stand
/// together.
pub(super) fn in_one_setting(summary: &SummaryComparison) -> Vec<(&Difference, ArmChange)> {
    if !are_combinations(summary) {
        return Vec::new();
    }
    let mut pairs = changes(summary);
    pairs.retain(|(_, change)| is_of_one(summary, change));
    pairs.sort_by_cached_key(|(_, change)| (change.is_of_puma, change.in_words()));
    let all: Vec<&ArmChange> = pairs.iter().map(|(_, change)| change).collect();
    let lacking: Vec<Option<String>> = all.iter().map(|change| lacking(change, &all)).collect();
    for ((_, change), lacking) in pairs.iter_mut().zip(lacking) {
        change.lacking = lacking;
    }
    pairs
}

/// Of these pairs, those that sentences tell of. Whoever compares a setting on several Pumas asks what
/// it changes on each, and not how the Pumas differ: of that the table tells.
pub(super) fn asked(summary: &SummaryComparison) -> Vec<(&Difference, ArmChange)> {
    let mut pairs = in_one_setting(summary);
    if pairs.iter().any(|(_, change)| !change.is_of_puma) {
        pairs.retain(|(_, change)| !change.is_of_puma);
    }
    pairs
}

/// The pairs in one setting of which the conclusion does not tell.
pub(super) fn not_asked(summary: &SummaryComparison) -> Vec<(&Difference, ArmChange)> {
    let asked = asked(summary);
    let mut pairs = in_one_setting(summary);
    pairs.retain(|(pair, _)| !asked.iter().any(|(it, _)| is_pair(it, pair)));
    pairs
}

/// Whether both are of the same arms.
fn is_pair(one: &Difference, other: &Difference) -> bool {
    one.base == other.base && one.arm == other.arm
}

/// The setting that all other pairs with the same change have, where the arms of this one have nothing
/// in common.
fn lacking(change: &ArmChange, all: &[&ArmChange]) -> Option<String> {
    let is_other =
        |other: &&&ArmChange| other.in_words() == change.in_words() && !other.common.is_empty();
    let mut others = all.iter().filter(is_other);
    let [setting] = &others.next()?.common[..] else { return None };
    let is_alone =
        change.common.is_empty() && others.all(|other| other.common == [setting.clone()]);
    is_alone.then(|| setting.clone())
}

/// The pairs of a metric of which sentences tell: those that are asked for, where arms combine settings,
/// else those with the base.
pub(super) fn told<'a>(
    summary: &SummaryComparison,
    row: &'a ComparedMetric,
) -> Vec<&'a Difference> {
    let are_combinations = are_combinations(summary);
    let base = &summary.base().letter;
    let asked = asked(summary);
    let is_asked = |pair: &Difference| asked.iter().any(|(it, _)| is_pair(it, pair));
    let is_told =
        |pair: &&Difference| if are_combinations { is_asked(pair) } else { pair.base == *base };
    row.differences.iter().filter(is_told).collect()
}

/// The pairs that differ in several settings.
pub(super) fn in_several_settings(summary: &SummaryComparison) -> Vec<(&Difference, ArmChange)> {
    let mut pairs = changes(summary);
    pairs.retain(|(_, change)| !is_of_one(summary, change));
    pairs
}

/// `D against A`
pub(super) fn letters(difference: &Difference) -> String {
    format!("{} against {}", difference.arm, difference.base)
}

/// Where arms combine settings, a row for each pair that differs in one of them, with what each metric
/// was before and after it. `has_all`: of the other pairs, too.
pub(super) fn by_change(summary: &SummaryComparison, has_all: bool) -> DataTable {
    let others = if has_all { in_several_settings(summary) } else { Vec::new() };
    let pairs = in_one_setting(summary).into_iter().chain(others);
    let deciding: Vec<&ComparedMetric> = summary.deciding().collect();
    // Where no pair has enough blocks, the conclusion says that once.
    let is_tested = deciding.iter().any(|row| row.is_tested());
    let of_deciding = deciding.iter().flat_map(|row| {
        let figures = TableColumn::new(super::titled(row));
        let tested = [("interval, %", 13), ("verdict", 6)]
            .map(|(name, leaves)| TableColumn::new(name).leaving(leaves));
        std::iter::once(figures).chain(tested.into_iter().filter(|_| is_tested))
    });
    let beside = beside_what_decides(summary);
    let titled = |row: &ComparedMetric| match row.metric {
        Metric::Cpu => "CPU ms".to_owned(),
        _ => super::titled(row),
    };
    let of_others =
        beside.iter().map(|(row, leaves)| TableColumn::new(titled(row)).leaving(*leaves));
    let leading = ["what changes", "with"].map(TableColumn::new).into_iter();
    let columns: Vec<TableColumn> = leading.chain(of_deciding).chain(of_others).collect();
    let rows = pairs.map(|(pair, change)| {
        let of_deciding = deciding.iter().flat_map(|row| {
            let tested = row.difference(&pair.base, &pair.arm).filter(|_| is_tested);
            let tested = tested.map(|it| [change_of(it)[1].clone(), verdict_of(it)]);
            std::iter::once(summary::medians(row, pair)).chain(tested.into_iter().flatten())
        });
        let of_others = beside.iter().map(|(row, _)| summary::medians(row, pair));
        let names = names(summary, pair, &change);
        TableRow::new(names.into_iter().chain(of_deciding).chain(of_others))
    });
    DataTable { lead: 2, ..DataTable::of_columns(columns, rows) }
}

/// The same for whoever reads little: only the pairs that are asked for, with the verdict of each metric
/// beside its figures.
pub(super) fn by_change_in_short(summary: &SummaryComparison) -> DataTable {
    with_verdicts(summary, true)
}

/// The pairs that it leaves out, in the same way; none if it has all.
pub(super) fn others_in_short(summary: &SummaryComparison) -> Option<DataTable> {
    Some(with_verdicts(summary, false)).filter(|table| !table.rows.is_empty())
}

/// The interval of each metric that was tested, of all pairs.
pub(super) fn intervals(summary: &SummaryComparison) -> Option<DataTable> {
    let metrics = shown(summary);
    let tested: Vec<&ComparedMetric> = metrics.into_iter().filter(|row| row.is_tested()).collect();
    let leading = ["intervals, %", "with"].map(TableColumn::new).into_iter();
    let of_metrics = tested.iter().map(|row| {
        let star = if row.decides { " *" } else { "" };
        TableColumn::new(format!("{}{star}", summary::name(row.metric)))
    });
    let mut pairs = in_one_setting(summary);
    pairs.extend(in_several_settings(summary));
    let rows = pairs.into_iter().map(|(pair, change)| {
        let of_metrics = tested.iter().map(|row| {
            let tested = row.difference(&pair.base, &pair.arm);
            number::or_none(tested, |it| change_of(it)[1].clone())
        });
        TableRow::new(names(summary, pair, &change).into_iter().chain(of_metrics))
    });
    let columns: Vec<TableColumn> = leading.chain(of_metrics).collect();
    let table = DataTable { lead: 2, ..DataTable::of_columns(columns, rows) };
    (!tested.is_empty()).then_some(table)
}

/// The metrics that decide, and those that many ask about.
fn shown(summary: &SummaryComparison) -> Vec<&ComparedMetric> {
    let beside = beside_what_decides(summary).into_iter().map(|(row, _)| row);
    summary.deciding().chain(beside).collect()
}

/// A row for each pair that is asked for, or for each other one, with the figures and the verdict of each
/// metric.
fn with_verdicts(summary: &SummaryComparison, are_asked: bool) -> DataTable {
    let pairs = if are_asked {
        asked(summary)
    } else {
        let mut others = not_asked(summary);
        others.extend(in_several_settings(summary));
        others
    };
    let title = if are_asked { "what changes" } else { "the other pairs" };
    let metrics = shown(summary);
    let leading = [title, "with"].map(TableColumn::new).into_iter();
    let of_metrics = metrics.iter().map(|row| TableColumn::new(super::titled(row)));
    let rows = pairs.into_iter().map(|(pair, change)| {
        let of_metrics = metrics.iter().map(|row| {
            let medians = summary::medians(row, pair);
            let tested = row.difference(&pair.base, &pair.arm).filter(|it| !it.has_few_blocks());
            let verdict = tested.map(|it| format!(", {}", verdict_of(it)));
            format!("{medians}{}", verdict.unwrap_or_default())
        });
        TableRow::new(names(summary, pair, &change).into_iter().chain(of_metrics))
    });
    let columns: Vec<TableColumn> = leading.chain(of_metrics).collect();
    DataTable { lead: 2, ..DataTable::of_columns(columns, rows) }
}

/// What a table calls a pair: what changes, and beside what.
fn names(summary: &SummaryComparison, pair: &Difference, change: &ArmChange) -> [String; 2] {
    if is_of_one(summary, change) {
        return [change.in_words(), change.beside_in_table()];
    }
    let [arm, base] = [&pair.arm, &pair.base].map(|it| shortened(summary.called(it)));
    [format!("{arm} against {base}"), String::new()]
}

/// The metrics that many ask about, whatever decides, and when a narrow table leaves each out: first those
/// in which no pair that is asked for certainly differs.
fn beside_what_decides(summary: &SummaryComparison) -> Vec<(&ComparedMetric, u8)> {
    /// So much earlier leaves a column without a difference.
    const EARLIER: u8 = 7;
    let of_each = [
        (Metric::P50, 3),
        (Metric::P99, 2),
        (Metric::Mean, 4),
        (Metric::Throughput, 5),
        (Metric::Cpu, 7),
    ];
    let asked = asked(summary);
    let differs = |row: &ComparedMetric| {
        let is_certain = |pair: &Difference| {
            let tested = row.difference(&pair.base, &pair.arm);
            is_known_to_differ(row, pair, summary.margin)
                || tested.is_some_and(|it| certain_change(it).is_some())
        };
        asked.iter().any(|(pair, _)| is_certain(pair))
    };
    let known = of_each.into_iter().filter_map(|(it, leaves)| Some((summary.metric(it)?, leaves)));
    let beside = known.filter(|(row, _)| !row.decides);
    beside.map(|(row, at)| (row, if differs(row) { at } else { at + EARLIER })).collect()
}

/// Where the arms do not combine settings, a row for each pair with what decides: of pairs that the main
/// table does not have or, if several metrics decide, of all.
pub(super) fn table(summary: &SummaryComparison) -> Option<DataTable> {
    let deciding: Vec<&ComparedMetric> = summary.deciding().collect();
    let base = &summary.base().letter;
    let is_shown = |pair: &&Difference| deciding.len() > 1 || pair.base != *base;
    // What names a pair stays, and so does its change, whose verdict the conclusion has, too.
    let of_metrics = deciding.iter().flat_map(|row| {
        let name = summary::name(row.metric);
        let band = ColumnBand::new(name.clone(), format!("of {name}"));
        [("change", 0), ("interval, %", 3), ("verdict", 1)]
            .map(|(name, leaves)| TableColumn::new(name).leaving(leaves).under(&band))
    });
    // The usual and the slowest requests are what many ask about, whatever decides.
    let of_times = [(Metric::P50, 5), (Metric::P99, 4)];
    let times: Vec<(&ComparedMetric, u8)> = of_times
        .into_iter()
        .filter_map(|(metric, leaves)| Some((summary.metric(metric)?, leaves)))
        .filter(|(row, _)| !row.decides)
        .collect();
    let of_times = times.iter().map(|(row, leaves)| {
        TableColumn::new(format!("{}, ms", summary::name(row.metric))).leaving(*leaves)
    });
    let columns: Vec<TableColumn> =
        std::iter::once(TableColumn::new("")).chain(of_metrics).chain(of_times).collect();
    let rows = deciding.first()?.differences.iter().filter(is_shown).map(|pair| {
        let of_metrics = deciding.iter().flat_map(|row| {
            let difference = row.difference(&pair.base, &pair.arm);
            let cells = difference.map(|difference| {
                let [estimate, interval] = change_of(difference);
                [estimate, interval, verdict_of(difference)]
            });
            cells.unwrap_or_default()
        });
        let of_times = times.iter().map(|(row, _)| summary::medians(row, pair));
        TableRow::new(std::iter::once(letters(pair)).chain(of_metrics).chain(of_times))
    });
    let table = DataTable { lead: 1, ..DataTable::of_columns(columns, rows) };
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{self, Width};

    fn arm(name: &str, settings: &[&str]) -> SummaryArm {
        let mut arm = crate::comparison::summary(&testkit::comparison::pairs()).arms.remove(0);
        arm.name = name.to_owned();
        arm.settings = settings.iter().map(|it| (*it).to_owned()).collect();
        arm
    }

    #[test]
    fn a_change_is_called_by_names_if_they_tell_the_settings_apart() {
        let plain = arm("default", &[]);
        let without = arm("-k", &["-k"]);
        let puma = "--puma /srv/pumas/8.0.2/bin/puma";
        let old = arm("6.6.1", &["--puma /srv/pumas/6.6.1/bin/puma"]);
        let new = arm("8.0.2", &[puma]);
        let both = arm("8.0.2 -k", &[puma, "-k"]);
        let in_words = |base, arm| ArmChange::of(base, arm).in_words();
        assert_eq!(in_words(&plain, &without), "-k");
        assert_eq!(in_words(&without, &plain), "without -k");
        assert_eq!(in_words(&old, &new), "6.6.1 → 8.0.2");
        assert_eq!(in_words(&new, &both), "-k");
        assert_eq!(ArmChange::of(&new, &both).common, ["8.0.2"]);
        assert_eq!(in_words(&old, &both), "2 settings");
        assert_eq!(ArmChange::of(&old, &both).differing(), ["8.0.2", "-k"]);
        assert_eq!(ArmChange::of(&both, &old).differing(), ["6.6.1", "without -k"]);
        let in_sentence = |base: &SummaryArm, arm| ArmChange::of(base, arm).in_sentence(&base.name);
        assert_eq!(in_sentence(&new, &both), "-k on 8.0.2");
        assert_eq!(in_sentence(&both, &new), "8.0.2 -k without -k");
        assert_eq!(in_sentence(&old, &new), "8.0.2 instead of 6.6.1");
        let old_both = arm("6.6.1 -k", &["--puma /srv/pumas/6.6.1/bin/puma", "-k"]);
        assert_eq!(in_sentence(&old_both, &both), "8.0.2 instead of 6.6.1, with -k");
        let mut with = ArmChange::of(&old, &new);
        with.lacking = Some("-k".to_owned());
        assert_eq!(with.in_sentence("6.6.1"), "8.0.2 instead of 6.6.1, with keep-alive");
        assert_eq!(with.beside_in_table(), "keep-alive");
        with.lacking = Some("-Y".to_owned());
        assert_eq!(with.in_sentence("6.6.1"), "8.0.2 instead of 6.6.1, without -Y");
        assert_eq!(with.beside_in_table(), "no -Y");
        // A name of several words for one setting tells nothing apart.
        let named = arm("my own server", &["-C own.rb"]);
        assert_eq!(in_words(&plain, &named), "-C own.rb");
    }

    #[test]
    fn a_narrow_table_keeps_what_names_a_pair_and_what_decides() {
        let summary = crate::comparison::summary(&testkit::comparison::combinations());
        let table = by_change(&summary, false);
        for (columns, left) in [(110, "interval | CPU"), (80, "interval | verdict | CPU")] {
            let narrowed = text::narrowed(&table, 0, Width::of(columns));
            let leading = narrowed.table.columns.iter().take(narrowed.table.lead);
            let leading: Vec<&str> = leading.map(|column| column.name.as_str()).collect();
            assert_eq!(leading, ["what changes", "with"], "{columns}");
            assert_eq!(narrowed.left.join(" | "), left, "{columns}");
        }
    }

    #[test]
    fn only_an_answer_of_arms_that_combine_settings_leaves_pairs_out() {
        let study = testkit::comparison::combinations();
        let summary = crate::comparison::summary(&study);
        let shown = |table: DataTable| {
            let name = |row: TableRow| {
                let [what, with] = [0, 1].map(|at| row.cells[at].text.clone());
                format!("{what} {with}").trim_end().to_owned()
            };
            table.rows.into_iter().map(name).collect::<Vec<_>>().join(", ")
        };
        let in_answer = "-k 6.6.1, -k 8.0.2, 6.6.1 → 8.0.2 keep-alive, 6.6.1 → 8.0.2 -k";
        assert_eq!(shown(by_change(&summary, false)), in_answer);
        assert_eq!(shown(by_change_in_short(&summary)), "-k 6.6.1, -k 8.0.2", "what is asked");
        let all = format!("{in_answer}, 8.0.2 -k against 6.6.1, 8.0.2 against 6.6.1 -k");
        assert_eq!(shown(by_change(&summary, true)), all);
        let mut settings = study.clone();
        settings.plan.question = ComparisonQuestion::Settings;
        let settings = crate::comparison::summary(&settings);
        assert_eq!(shown(by_change(&settings, true)), in_answer, "no other pairs are compared");
    }

    #[test]
    fn what_a_setting_changes_on_each_puma_is_asked_and_not_how_these_differ() {
        let asked = |study: &model::ComparisonStudy| {
            let summary = crate::comparison::summary(study);
            asked(&summary).iter().map(|(pair, _)| letters(pair)).collect::<Vec<_>>().join(", ")
        };
        let mut study = testkit::comparison::combinations();
        assert_eq!(asked(&study), "B against A, D against C");
        // Revisions of an application are what somebody compares.
        for (arm, settings) in study.plan.arms.iter_mut().zip([0, 0, 2, 2]) {
            arm.settings[0] = if settings == 0 { "main 43b8".into() } else { "next 17c2".into() };
        }
        assert_eq!(asked(&study).matches("against").count(), 4);
    }

    #[test]
    fn a_second_metric_has_its_place_in_the_table_of_pairs() {
        let pairs = |study: &model::ComparisonStudy| {
            let rows = table(&crate::comparison::summary(study)).unwrap().rows;
            let pairs = rows.into_iter().map(|row| row.cells[0].text.clone());
            pairs.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(pairs(&testkit::comparison::pairs()), "C against B");
        let mut two = testkit::comparison::three();
        two.plan.gates = vec![Metric::Mean, Metric::P99];
        assert_eq!(pairs(&two), "B against A, C against A");
    }

    #[test]
    fn too_few_blocks_have_no_verdict_in_any_row() {
        let mut study = testkit::comparison::combinations();
        study.runs.retain(|run| run.block <= 4);
        let summary = crate::comparison::summary(&study);
        for table in [by_change(&summary, false), by_change_in_short(&summary)] {
            let cells = table.rows.iter().flat_map(|row| &row.cells);
            let mut cells = cells.map(|cell| &cell.text);
            assert!(!cells.any(|text| text.contains("needs") || text.contains("cannot")));
        }
    }
}
