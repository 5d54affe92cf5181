//! The differences that the main table of many arms has no room for: those of a second metric that
//! decides, and those of pairs without the base. Where arms combine settings (two versions, each
//! with and without `-k`), the pairs that differ in one of them are shown, by what it changes.

use model::comparison::{ComparedMetric, ComparisonQuestion, Difference, Metric};

use super::summary::{self, SummaryArm, SummaryComparison, shortened};
use super::{change as change_of, verdict_of};
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
}

impl ArmChange {
    /// By the words of their names, which are short, if these tell as many settings apart as there
    /// are; else by the settings.
    pub(super) fn of(base: &SummaryArm, arm: &SummaryArm) -> ArmChange {
        let by_settings = ArmChange::between(&base.settings, &arm.settings);
        let by_names = ArmChange::between(&words_of_name(base), &words_of_name(arm));
        let count = |change: &ArmChange| (change.removed.len(), change.added.len());
        if count(&by_names) == count(&by_settings) { by_names } else { by_settings }
    }

    fn between(base: &[String], arm: &[String]) -> ArmChange {
        let only = |first: &[String], second: &[String]| {
            first.iter().filter(|it| !second.contains(it)).cloned().collect()
        };
        let common = base.iter().filter(|it| arm.contains(it)).cloned().collect();
        ArmChange { removed: only(base, arm), added: only(arm, base), common, lacking: None }
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

    /// The same as a cell, which is short: `-k`, `kept` (alive), `no -Y`.
    fn beside_in_table(&self) -> String {
        match self.lacking.as_deref() {
            None => self.beside(),
            Some("-k") => "kept".to_owned(),
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
    pairs.sort_by_cached_key(|(_, change)| change.in_words());
    let all: Vec<&ArmChange> = pairs.iter().map(|(_, change)| change).collect();
    let lacking: Vec<Option<String>> = all.iter().map(|change| lacking(change, &all)).collect();
    for ((_, change), lacking) in pairs.iter_mut().zip(lacking) {
        change.lacking = lacking;
    }
    pairs
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

/// The pairs of a metric of which sentences tell: those that differ in one setting, where arms combine
/// settings, else those with the base.
pub(super) fn told<'a>(
    summary: &SummaryComparison,
    row: &'a ComparedMetric,
) -> Vec<&'a Difference> {
    let are_combinations = are_combinations(summary);
    let base = &summary.base().letter;
    let is_told = |pair: &&Difference| {
        if are_combinations { differ_in_one(summary, pair) } else { pair.base == *base }
    };
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

/// A row for each pair, with what decides: of pairs that the main table does not have or, if several
/// metrics decide, of all. Where the arms combine settings, of those that differ in one of them, and
/// with `has_all` of the others below them.
pub(super) fn table(summary: &SummaryComparison, has_all: bool) -> Option<DataTable> {
    let are_combinations = are_combinations(summary);
    let deciding: Vec<&ComparedMetric> = summary.deciding().collect();
    let base = &summary.base().letter;
    let is_shown = |pair: &&Difference| deciding.len() > 1 || pair.base != *base;
    let pairs: Vec<(&Difference, Option<ArmChange>)> = if are_combinations {
        let others = if has_all { in_several_settings(summary) } else { Vec::new() };
        let pairs = in_one_setting(summary).into_iter().chain(others);
        pairs.map(|(pair, change)| (pair, Some(change))).collect()
    } else {
        let pairs = deciding.first()?.differences.iter().filter(is_shown);
        pairs.map(|pair| (pair, None)).collect()
    };
    // What names a pair stays, and so does its change, whose verdict the conclusion has, too. Its
    // letters leave where words name it, too.
    let leading = if are_combinations {
        let words = ["what changes", "with"].map(TableColumn::new);
        std::iter::once(TableColumn::new("pair").leaving(2)).chain(words).collect()
    } else {
        vec![TableColumn::new("")]
    };
    let lead = leading.len();
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
    let columns: Vec<TableColumn> = leading.into_iter().chain(of_metrics).chain(of_times).collect();
    let rows = pairs.into_iter().map(|(pair, change)| {
        let of_settings = change.map(|change| [change.in_words(), change.beside_in_table()]);
        let of_metrics = deciding.iter().flat_map(|row| {
            let difference = row.difference(&pair.base, &pair.arm);
            let cells = difference.map(|difference| {
                let [estimate, interval] = change_of(difference);
                [estimate, interval, verdict_of(row.metric, difference)]
            });
            cells.unwrap_or_default()
        });
        let of_times = times.iter().map(|(row, _)| summary::medians(row, pair));
        let cells = [letters(pair)].into_iter().chain(of_settings.into_iter().flatten());
        TableRow::new(cells.chain(of_metrics).chain(of_times))
    });
    let table = DataTable { lead, ..DataTable::of_columns(columns, rows) };
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
        assert_eq!(with.beside_in_table(), "kept");
        with.lacking = Some("-Y".to_owned());
        assert_eq!(with.in_sentence("6.6.1"), "8.0.2 instead of 6.6.1, without -Y");
        assert_eq!(with.beside_in_table(), "no -Y");
        // A name of several words for one setting tells nothing apart.
        let named = arm("my own server", &["-C own.rb"]);
        assert_eq!(in_words(&plain, &named), "-C own.rb");
    }

    #[test]
    fn what_names_a_pair_stays_in_a_narrow_table() {
        let summary = crate::comparison::summary(&testkit::comparison::combinations());
        let table = table(&summary, false).unwrap();
        for (columns, lead, left) in [
            (100, "pair | what changes | with", "p50"),
            (80, "pair | what changes | with", "interval | p50"),
            (60, "what changes | with", "pair | interval | p50"),
            (40, "what changes | with", "pair | interval | verdict | p50"),
        ] {
            let narrowed = text::narrowed(&table, 0, Width::of(columns));
            let leading = narrowed.table.columns.iter().take(narrowed.table.lead);
            let leading: Vec<&str> = leading.map(|column| column.name.as_str()).collect();
            assert_eq!(leading.join(" | "), lead, "{columns}");
            assert_eq!(narrowed.left.join(" | "), left, "{columns}");
        }
    }

    #[test]
    fn only_an_answer_of_arms_that_combine_settings_leaves_pairs_out() {
        let shown = |study: &model::ComparisonStudy| {
            let summary = crate::comparison::summary(study);
            [false, true].map(|has_all| {
                let rows = table(&summary, has_all).unwrap().rows;
                let pairs = rows.into_iter().map(|row| row.cells[0].text.clone());
                pairs.collect::<Vec<_>>().join(", ")
            })
        };
        let [in_answer, all] = shown(&testkit::comparison::combinations());
        assert_eq!(in_answer, "B against A, D against C, C against A, D against B");
        assert_eq!(all, format!("{in_answer}, D against A, C against B"));
        assert_eq!(shown(&testkit::comparison::pairs()), ["C against B"; 2]);
        let mut settings = testkit::comparison::combinations();
        settings.plan.question = ComparisonQuestion::Settings;
        assert_eq!(shown(&settings), [&*in_answer; 2], "no other pairs are compared");
        // A second metric has its place here, of the pairs with the base, too.
        let mut two = testkit::comparison::three();
        two.plan.gates = vec![Metric::Mean, Metric::P99];
        assert_eq!(shown(&two), ["B against A, C against A"; 2]);
    }
}
