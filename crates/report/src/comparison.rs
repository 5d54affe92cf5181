//! The report of a comparison: its table, how it was measured, and whether it can be trusted; its
//! sentences are in `words`.

use judge::named_runs::NamedRun;
use model::comparison::{
    ArmPlan, ComparedMetric, ComparisonBlocks, ComparisonDoubt, ComparisonLoad, ComparisonQuestion,
    ComparisonVerdict, Difference, Metric, excludes_zero,
};
use model::{ComparisonStudy, CpuUsage, Diagnostic, Limit, MaskedText, Nanos};

use crate::labels;
use crate::number::{self, count_of};
use crate::tree::{ColumnBand, DataTable, TableColumn, TableRow};
use judge::Grade;
use judge::trust::TrustLine;
use judge::words::listed;

pub(crate) mod words;

pub(crate) use self::words::sentence;
pub use self::words::{SummaryArm, SummaryComparison};

/// What a comparison came to, and what else must be known.
pub(crate) fn summary(study: &ComparisonStudy) -> SummaryComparison {
    let figures = SummaryComparison::of(study);
    SummaryComparison { reasons: reasons(study, &figures), ..figures }
}

/// The table.
pub(crate) fn table(summary: &SummaryComparison) -> DataTable {
    if summary.question == ComparisonQuestion::Change && summary.compared().count() == 2 {
        by_metric(summary)
    } else {
        by_arm(summary)
    }
}

/// Said where a reader who divides the medians comes to another change.
pub(crate) fn legend(summary: &SummaryComparison) -> Option<&'static str> {
    let is_other = |row: &ComparedMetric| {
        row.differences.iter().any(|it| {
            match (row.median(&it.base), row.median(&it.arm), it.estimate) {
                (Some(base), Some(arm), Some(estimate)) if row.unit != "%" => {
                    (arm / base - 1.0 - estimate).abs() > summary.margin
                }
                _ => false,
            }
        })
    };
    let differs = summary.metrics.iter().any(is_other);
    differs.then_some(
        "change is the typical ratio of two runs of one block, not the ratio of the medians of all",
    )
}

/// A metric with its unit: `p99, ms`; one that decides has a star.
fn titled(row: &ComparedMetric) -> String {
    let star = if row.decides { " *" } else { "" };
    format!("{}, {}{star}", words::name(row.metric), row.unit)
}

fn figure(row: &ComparedMetric, letter: &str) -> String {
    number::or_none(row.median(letter), |value| number::or_zero(value, number::significant))
}

/// The change and its interval.
fn change(difference: &Difference) -> [String; 2] {
    [words::estimate_of(difference), words::interval_of(difference)]
        .map(|cell| number::or_none(cell, |text| text))
}

fn by_metric(summary: &SummaryComparison) -> DataTable {
    let [base, arm] = [0, 1].map(|at| summary.arms[at].letter.as_str());
    let has_control = summary.metrics.iter().any(|row| row.control.is_some());
    let against = ColumnBand::new("B against A", "B against A");
    let control = ColumnBand::new("A against A", "A against A");
    let interval = || TableColumn::new("interval, %");
    let mut columns: Vec<TableColumn> = ["", base, arm].map(TableColumn::new).into();
    columns.extend([TableColumn::new("change"), interval()].map(|column| column.under(&against)));
    columns.extend(has_control.then(|| interval().under(&control)));
    let rows = summary.metrics.iter().map(|row| {
        let mut cells = vec![titled(row), figure(row, base), figure(row, arm)];
        let Some(difference) = row.difference(base, arm) else { return TableRow::new(cells) };
        cells.extend(change(difference));
        cells.extend(row.control.as_ref().map(|control| change(control)[1].clone()));
        TableRow::new(cells).noted(match difference.doubt {
            Some(ComparisonDoubt::FewBlocks { least }) => format!("needs {least} blocks"),
            _ => words::verdict(difference.verdict).to_owned(),
        })
    });
    DataTable::of_columns(columns, rows)
}

/// The columns of a row an arm: what decides first, then what a person asks for.
fn columns_of_arms(summary: &SummaryComparison) -> Vec<&ComparedMetric> {
    const ASKED: [Metric; 6] =
        [Metric::Throughput, Metric::Failed, Metric::Mean, Metric::P50, Metric::P99, Metric::Cpu];
    let is_shown = |row: &&ComparedMetric| row.decides || ASKED.contains(&row.metric);
    summary.metrics.iter().filter(is_shown).collect()
}

fn by_arm(summary: &SummaryComparison) -> DataTable {
    let rows = columns_of_arms(summary);
    let times = ColumnBand::new("response time, ms", "ms");
    let column = |row: &&ComparedMetric| match row.metric {
        Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 => {
            let star = if row.decides { " *" } else { "" };
            TableColumn::new(format!("{}{star}", words::name(row.metric))).under(&times)
        }
        Metric::Cpu => TableColumn::new(if row.decides { "CPU ms *" } else { "CPU ms" }),
        _ => TableColumn::new(titled(row)),
    };
    let deciding = summary.deciding().next();
    let base = summary
        .ranking
        .as_ref()
        .map_or(summary.arms[0].letter.as_str(), |ranking| ranking.best.as_str());
    let against = deciding
        .map_or_else(String::new, |row| format!("{} against {base}", words::name(row.metric)));
    let against = ColumnBand::new(against, "");
    let columns = ["", ""].map(TableColumn::new).into_iter().chain(rows.iter().map(column));
    let columns =
        columns.chain(["change", "interval, %"].map(|name| TableColumn::new(name).under(&against)));
    let lines = summary.compared().map(|arm| {
        let figures = rows.iter().map(|row| figure(row, &arm.letter));
        let cells = [arm.letter.clone(), shortened(&arm.name)].into_iter().chain(figures);
        let is_best =
            summary.ranking.as_ref().is_some_and(|it| it.is_decided() && it.best == arm.letter);
        match deciding.and_then(|row| row.seen_from(base, &arm.letter)) {
            Some(difference) => TableRow::new(cells.chain(change(&difference)))
                .noted(words::verdict(difference.verdict)),
            None if is_best => {
                TableRow::new(cells.chain(["", ""].map(str::to_owned))).noted("best")
            }
            None => TableRow::new(cells),
        }
    });
    DataTable { lead: 2, ..DataTable::of_columns(columns, lines) }
}

/// A name that leaves room for figures.
fn shortened(name: &str) -> String {
    const MOST: usize = 20;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}

/// The arms, and how they were measured.
pub(crate) fn measured(study: &ComparisonStudy) -> Vec<String> {
    const ARMS: usize = 4;
    let plan = &study.plan;
    let server = |at: usize| study.server(at).map(labels::server).unwrap_or_default();
    let slots = |at: usize| study.server(at).map(labels::slots).unwrap_or_default();
    let is_one = |of: &dyn Fn(usize) -> String| (1..plan.arms.len()).all(|at| of(at) == of(0));
    let (one_server, one_size) = (is_one(&server), is_one(&slots));
    let shared = |is_shared: bool, of: &dyn Fn(usize) -> String| is_shared.then(|| of(0));
    let common = labels::joined([shared(one_server, &server), shared(one_size, &slots)]);
    let arm = |at: usize| {
        let own = [(!one_server).then(|| server(at)), (!one_size).then(|| slots(at))];
        let ArmPlan { name, settings, .. } = &plan.arms[at];
        // A commit stands first; it is no option and no variable.
        let name = match settings.first().filter(|it| !it.starts_with('-') && !it.contains('=')) {
            Some(commit) if commit.starts_with(&**name) => commit.to_string(),
            Some(commit) => format!("{name}, {commit}"),
            None => name.to_string(),
        };
        format!("{}  {}", plan.letter(at), labels::joined([Some(name), Some(labels::joined(own))]))
    };
    let mut lines: Vec<String> =
        Some(common).into_iter().filter(|common| !common.is_empty()).collect();
    // The rows of a ranking name its arms.
    let named =
        if plan.question == ComparisonQuestion::Change { plan.arms.len().min(ARMS) } else { 0 };
    lines.extend((0..named).map(arm));
    let stream = &plan.arms[0].stream;
    let length = labels::length(stream.stop);
    let warm_up = Some(stream.warm_up).filter(|warm_up| *warm_up > Nanos::ZERO);
    let warm_up =
        warm_up.map(|span| format!(" after {} of warm-up", number::span(span))).unwrap_or_default();
    let most = study.runs.iter().map(|run| run.run.connections).max();
    let detail = match plan.load {
        ComparisonLoad::Closed { .. } => {
            most.map_or("no run".to_owned(), |n| count_of(n, "connection"))
        }
        ComparisonLoad::Share { of_maximum } if study.rate_per_s().is_some() => {
            format!("{} % of what the slower arm can do", number::fixed(of_maximum * 100.0, 0))
        }
        _ => String::new(),
    };
    let load = labels::listed([pace(study), detail]);
    let blocks = study.runs.iter().map(|run| run.block).max().unwrap_or(0);
    let each = if plan.control { ", A once more as control" } else { "" };
    let deciding: Vec<String> = plan.deciding().into_iter().map(words::name).collect();
    let verb = if deciding.len() == 1 { "decides" } else { "decide" };
    lines.push(format!(
        "{load} · {}: each arm once{each}, {length}{warm_up}, a fresh server each time, in balanced order · {} {verb} (*), margin {} %",
        count_of(blocks, "block"),
        judge::words::listed(&deciding),
        number::shortest((plan.margin * 1e4).round() / 100.0),
    ));
    lines
}

/// `closed loop`, or `open loop, 54.7 requests/s`.
fn pace(study: &ComparisonStudy) -> String {
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
    runs.into_iter()
        .map(|row| NamedRun { name: study.plan.letter(row.arm), run: &row.run })
        .collect()
}

/// What speaks for the figures and against them, beside what is asked of every run.
pub(crate) fn trust(study: &ComparisonStudy, summary: &SummaryComparison) -> Vec<TrustLine> {
    let mut lines = Vec::new();
    let unsound = study.runs.iter().filter(|run| !run.is_sound()).count();
    if unsound > 0 {
        let (all, are) =
            (count_of(study.runs.len() as u64, "run"), if unsound == 1 { "is" } else { "are" });
        let sentence = format!("{unsound} of {all} failed the checks, and {are} not counted.");
        lines.push(
            TrustLine::new(Grade::Doubtful, sentence)
                .hint("longtail report --full says which, and why"),
        );
    }
    lines.push(match widest_control(summary) {
        _ if !study.plan.control => TrustLine::new(
            Grade::Uncertain,
            "Without a control nobody knows what the machine does by itself; only what decides is tested.",
        ),
        Some((row, control)) if is_shown(control) => {
            let (name, interval) = (words::name(row.metric), words::interval_of(control).unwrap_or_default());
            let sentence = format!(
                "The control, A once more, differs from A in {name}: {interval} %. Something drifts; no difference as small as that counts."
            );
            let hint = "leave the machine alone meanwhile, and run longer (--for)";
            TrustLine::new(Grade::Doubtful, sentence).hint(hint)
        }
        Some((row, control)) => {
            let (name, estimate) = (words::name(row.metric), words::estimate_of(control).unwrap_or_default());
            let sentence =
                format!("The control, A once more, cannot be told from A; it is at most {estimate} off ({name}).");
            TrustLine::new(Grade::Passed, sentence)
        }
        None => TrustLine::new(Grade::Uncertain, "Too few blocks for the control to say anything."),
    });
    let missing = match study.plan.blocks {
        _ if study.interrupted => Some("It was interrupted: blocks are missing.".to_owned()),
        ComparisonBlocks::Fixed(all) if summary.blocks < all => {
            Some(format!("{} of {all} blocks were run.", summary.blocks))
        }
        _ => None,
    };
    lines.extend(missing.map(|sentence| TrustLine::new(Grade::Doubtful, sentence)));
    lines
}

fn is_shown(difference: &Difference) -> bool {
    difference.interval.is_some_and(excludes_zero)
}

/// The control's difference that says most: one that is shown before one that is not, then the
/// furthest.
fn widest_control(summary: &SummaryComparison) -> Option<(&ComparedMetric, &Difference)> {
    let controls = summary.metrics.iter().filter_map(|row| Some((row, row.control.as_ref()?)));
    let known = controls.filter(|(_, control)| control.interval.is_some());
    let weight =
        |control: &Difference| (is_shown(control), control.estimate.unwrap_or_default().abs());
    known.max_by(|(_, a), (_, b)| {
        weight(a).partial_cmp(&weight(b)).unwrap_or(std::cmp::Ordering::Equal)
    })
}

/// What else must be known to read the figures.
fn reasons(study: &ComparisonStudy, summary: &SummaryComparison) -> Vec<String> {
    let plan = &study.plan;
    let mut reasons = Vec::new();
    let several = (1..plan.arms.len()).map(|arm| (arm, differing_settings(study, arm)));
    let several = several.filter(|(_, differing)| differing.len() > 1);
    let several: Vec<String> = several
        .map(|(arm, differing)| {
            format!("{} in {} ({})", plan.letter(arm), differing.len(), differing.join(", "))
        })
        .collect();
    if !several.is_empty() && plan.question == ComparisonQuestion::Change {
        let several = several.join("; ");
        reasons.push(format!(
            "More than one setting differs from A: {several}. A difference cannot be given to one of them."
        ));
    }
    let lost = study.lost.first().map(|lost| {
        let more = match study.lost.len() - 1 {
            0 => String::new(),
            more => format!(" ({more} more runs came to nothing)"),
        };
        format!(
            "{}, block {}: {}{more}.",
            plan.letter(lost.arm),
            lost.block,
            lost.reason.trim_end_matches('.')
        )
    });
    let others = [
        turns(study),
        slots(study),
        edge(study, summary),
        extra_cpu(summary),
        first_run(summary),
        lost,
    ];
    reasons.extend(others.into_iter().flatten());
    reasons
}

/// The settings that an arm has and the base has not, or the other way round, whichever are more.
fn differing_settings(study: &ComparisonStudy, arm: usize) -> Vec<String> {
    let [base, arm] = [0, arm].map(|at| &study.plan.arms[at].settings);
    let only = |of: &[MaskedText], other: &[MaskedText]| -> Vec<String> {
        of.iter().filter(|setting| !other.contains(setting)).map(ToString::to_string).collect()
    };
    let (added, left) = (only(arm, base), only(base, arm));
    if added.len() >= left.len() {
        added
    } else {
        left.iter().map(|setting| format!("without {setting}")).collect()
    }
}

/// Puma before 7 serves a keep-alive connection several times in a row, in some arms and not in
/// others.
fn turns(study: &ComparisonStudy) -> Option<String> {
    let has_turns = |arm: usize| {
        let runs = || study.runs.iter().filter(|run| run.arm == arm && run.is_sound());
        let in_turns = runs().filter(|run| {
            run.run
                .warnings
                .iter()
                .any(|warning| matches!(warning, Diagnostic::ServedInTurns { .. }))
        });
        2 * in_turns.count() > runs().count()
    };
    let (with, without): (Vec<usize>, Vec<usize>) =
        (0..study.plan.arms.len()).partition(|arm| has_turns(*arm));
    let [serve, others] = [&with, &without].map(|arms| {
        let letters: Vec<String> = arms.iter().map(|arm| study.plan.letter(*arm)).collect();
        listed(&letters)
    });
    let serve = format!("{serve} serve{}", if with.len() == 1 { "s" } else { "" });
    let do_not = format!("{others} {} not", if without.len() == 1 { "does" } else { "do" });
    (!with.is_empty() && !without.is_empty()).then(|| {
        format!(
            "{serve} a keep-alive connection several times in a row while others wait, {do_not}: the one makes a few requests slow, the other lets each wait its turn."
        )
    })
}

/// Arms that can process another number of requests at a time.
fn slots(study: &ComparisonStudy) -> Option<String> {
    let of = |arm: usize| study.server(arm).map(model::ServerFacts::slots);
    let known: Vec<(usize, u32)> =
        (0..study.plan.arms.len()).filter_map(|arm| Some((arm, of(arm)?))).collect();
    let (_, first) = known.first()?;
    if study.plan.question == ComparisonQuestion::Best
        || known.iter().all(|(_, slots)| slots == first)
    {
        return None;
    }
    let each: Vec<String> =
        known.iter().map(|(arm, slots)| format!("{} {slots}", study.plan.letter(*arm))).collect();
    Some(format!(
        "The arms process different numbers of requests at a time ({}) under the same load.",
        each.join(", ")
    ))
}

/// What the best of several sizes says of larger ones: that CPUs are used up, or that none was
/// tried.
fn edge(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    let ranking = summary.ranking.as_ref().filter(|ranking| ranking.is_decided())?;
    let best = (0..study.plan.arms.len()).find(|arm| study.plan.letter(*arm) == ranking.best)?;
    let sound: Vec<Option<CpuUsage>> =
        study.runs.iter().filter(|run| run.arm == best && run.is_sound()).map(used_up).collect();
    let used: Vec<CpuUsage> = sound.iter().copied().flatten().collect();
    if let Some(cpu) = used.first().filter(|_| 2 * used.len() > sound.len()) {
        let cpus =
            if cpu.of > 1.0 { format!("the {} CPUs are", cpu.of) } else { "its CPU is".to_owned() };
        let at = &ranking.best;
        return Some(format!(
            "At {at} {cpus} used up: more workers or threads would hardly do more."
        ));
    }
    let slots = |arm: usize| study.server(arm).map(model::ServerFacts::slots);
    let is_behind = |arm: usize| ranking.ahead_of.contains(&study.plan.letter(arm));
    let is_smaller =
        |arm: usize| slots(arm) == slots(best) || slots(arm) < slots(best) && is_behind(arm);
    let is_largest = (0..study.plan.arms.len()).all(|arm| arm == best || is_smaller(arm));
    let is_larger = (0..study.plan.arms.len()).any(|arm| slots(arm) < slots(best));
    let sentence =
        || format!("{} is the largest size tried: a larger one may do better still.", ranking.best);
    (is_largest && is_larger).then(sentence)
}

/// The CPUs of a run that they limited.
fn used_up(run: &model::ComparisonRun) -> Option<CpuUsage> {
    match run.run.judgement.as_ref()?.limit.as_ref()? {
        Limit::Cpu(cpu) | Limit::SharedCpus(cpu) => Some(*cpu),
        _ => None,
    }
}

/// More CPU at the same throughput is free only while CPUs are idle; less of it is no gain where
/// requests wait longer.
fn extra_cpu(summary: &SummaryComparison) -> Option<String> {
    let base = &summary.arms[0].letter;
    let verdict = |metric, arm: &str| Some(summary.metric(metric)?.difference(base, arm)?.verdict);
    summary.compared().skip(1).find_map(|arm| {
        let of = |metric| verdict(metric, &arm.letter);
        let is_slower = [Metric::Mean, Metric::P99].into_iter().any(|it| of(it) == Some(ComparisonVerdict::Worse));
        match of(Metric::Cpu)? {
            ComparisonVerdict::Worse if of(Metric::Throughput) == Some(ComparisonVerdict::Same) => {
                Some("The same throughput for more CPU holds while CPUs are idle; where they are the limit, it is lost throughput.".to_owned())
            }
            ComparisonVerdict::Better if is_slower => {
                Some(format!("{} takes less CPU, but its requests wait longer: that is no gain by itself.", arm.letter))
            }
            _ => None,
        }
    })
}

/// Who runs first in a block.
fn first_run(summary: &SummaryComparison) -> Option<String> {
    let parts =
        summary.deciding().filter_map(|row| Some((words::name(row.metric), row.first_run?)));
    let (name, part) = parts.into_iter().find(|(_, part)| part.abs() > summary.margin / 2.0)?;
    let than = format!(
        "{} {}",
        words::plain_percent(part.abs()),
        if part < 0.0 { "lower" } else { "higher" }
    );
    Some(format!(
        "The first run of a block has a {name} that is {than} than the others'; that is taken out."
    ))
}
