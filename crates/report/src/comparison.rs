//! The report of a comparison: its table, how it was measured, and whether it can be trusted. Its
//! sentences are in `words` (what differs) and `best` (which arm to take), changes in `change_words`.

use std::collections::BTreeSet;

use judge::named_runs::NamedRun;
use model::comparison::{
    ArmPlan, ComparedMetric, ComparisonBlocks, ComparisonDoubt, ComparisonLoad, ComparisonPlan,
    ComparisonQuestion, ComparisonRun, ComparisonVerdict, Decision, Difference, Metric, SizeLook,
    decision, excludes_zero, median,
};
use model::{ComparisonStudy, MaskedText, Nanos, Stop};

use crate::labels;
use crate::number::{self, count_of};
use crate::text::columns_of;
use crate::tree::{ColumnBand, DataTable, TableColumn, TableRow};
use judge::Grade;
use judge::trust::TrustLine;
use judge::words::listed;

mod best;
pub(crate) mod change_words;
pub(crate) mod events;
mod limits;
mod pairs;
mod progress;
mod reasons;
mod sizes;
pub(crate) mod summary;
mod words;

pub(crate) use self::pairs::are_combinations;
pub use self::progress::progress;
pub(crate) use self::sizes::notes as notes_on_sizes;
pub(crate) use self::summary::shortened;
pub use self::summary::{SummaryArm, SummaryComparison, SummaryEvent};
pub(crate) use self::words::{sentence, whole_words};

/// The result of a comparison, with what else must be known to read it.
pub(crate) fn summary(study: &ComparisonStudy) -> SummaryComparison {
    let mut figures = SummaryComparison::of(study);
    let limits = limits::of(study, &figures);
    for (arm, limits) in figures.arms.iter_mut().zip(limits) {
        arm.limits = limits;
    }
    SummaryComparison {
        setup: setup(study),
        method: format!("{} · {}", method(study), decides(study)),
        reasons: reasons::of(study, &figures),
        few_responses: few_responses(study, &figures),
        events: events::of(study),
        ..figures
    }
}

/// The table. In a short answer about arms that combine settings it has the pairs in place of the arms.
pub(crate) fn table(summary: &SummaryComparison, is_short: bool) -> DataTable {
    if is_short && pairs::are_combinations(summary) {
        pairs::by_change(summary, false)
    } else if summary.question != ComparisonQuestion::Best && summary.compared().count() == 2 {
        by_metric(summary)
    } else {
        by_arm(summary)
    }
}

/// The tables below it: of single runs of each size, of the events of arms, and of the differences that
/// it has no room for.
pub(crate) fn tables_below(summary: &SummaryComparison, is_short: bool) -> Vec<DataTable> {
    let is_by_arm = summary.question != ComparisonQuestion::Best && summary.compared().count() > 2;
    let others = if pairs::are_combinations(summary) {
        (!is_short).then(|| pairs::by_change(summary, true))
    } else {
        pairs::table(summary).filter(|_| is_by_arm)
    };
    let looks =
        if is_short { sizes::table_with_blocks(summary) } else { sizes::table(&summary.looks) };
    looks.into_iter().chain(events::table(&summary.events)).chain(others).collect()
}

/// The tables of a pull request, whose readers want few figures, each with its verdict.
pub(crate) fn tables_in_markdown(summary: &SummaryComparison) -> Vec<DataTable> {
    if is_size_search(summary) {
        return tables_below(summary, true);
    }
    let are_combinations = pairs::are_combinations(summary);
    let main =
        if are_combinations { pairs::by_change_in_short(summary) } else { table(summary, false) };
    std::iter::once(main).chain(tables_below(summary, are_combinations)).collect()
}

/// The tables that these leave out.
pub(crate) fn tables_left_out(summary: &SummaryComparison) -> Vec<DataTable> {
    if is_size_search(summary) {
        vec![table(summary, false)]
    } else if pairs::are_combinations(summary) {
        pairs::others_in_short(summary).into_iter().chain(pairs::intervals(summary)).collect()
    } else {
        Vec::new()
    }
}

/// Whether this is a search for threads at a rate. Its answer is a size; what each size does in single
/// runs shows why, and the few that were compared in blocks show it again.
pub(crate) fn is_size_search(summary: &SummaryComparison) -> bool {
    !summary.looks.is_empty() && summary.rate_per_s.is_some()
}

/// Where arms combine settings, a sentence for each pair in one of them of which the conclusion does not
/// tell.
pub(crate) fn other_pairs(study: &ComparisonStudy) -> Vec<String> {
    words::of_pairs_not_asked(&summary(study))
}

/// What an arm's name means, for readers of an issue who do not know the flags.
pub(crate) fn meaning_of_names(summary: &SummaryComparison) -> Option<&'static str> {
    let is_without = |arm: &SummaryArm| arm.settings.iter().any(|setting| setting == "-k");
    summary.arms.iter().any(is_without).then_some("-k: no keep-alive; without it: keep-alive")
}

/// What the signs in a table mean for its readers in a pull request, to whom no line above it says so.
pub(crate) fn meaning_of_signs(summary: &SummaryComparison) -> String {
    let decide = match summary.deciding().count() {
        1 => "this figure decides",
        _ => "these figures decide",
    };
    let margin = change_words::plain_percent(summary.margin);
    let star = format!("*: {decide} the result; a change of up to {margin} does not count");
    std::iter::once(star.as_str()).chain(meaning_of_names(summary)).collect::<Vec<_>>().join(" · ")
}

/// Whether an arm has no keep-alive, so that nobody needs to be told to compare that.
pub(crate) fn compares_keep_alive(study: &ComparisonStudy) -> bool {
    study.plan.arms.iter().any(|arm| !arm.stream.keep_alive)
}

/// Notes for readers who divide the medians and find another change. Where the best arm is asked for, a
/// median of means decides, and that is said in any case.
pub(crate) fn legend(summary: &SummaryComparison) -> Option<String> {
    /// A reader who divides wonders about a difference of so much.
    const NOTABLE: f64 = 0.03;
    let is_other = |row: &ComparedMetric| {
        row.differences.iter().any(|it| {
            match (row.median(&it.base), row.median(&it.arm), it.estimate) {
                (Some(base), Some(arm), Some(estimate)) if row.unit != "%" => {
                    (arm / base - 1.0 - estimate).abs() > NOTABLE
                }
                _ => false,
            }
        })
    };
    let are_combinations = pairs::are_combinations(summary);
    let of_change = if are_combinations {
        Some("before → after: medians of the runs; verdicts compare runs of the same block")
    } else if summary.question == ComparisonQuestion::Best {
        Some("each figure is the median of its runs; change compares runs of the same block")
    } else {
        summary.metrics.iter().any(is_other).then_some("each column has the median of its runs; change compares runs of the same block, so it may differ from the ratio of two columns")
    };
    let has_two_kinds = deciding_pairs(summary).any(|(_, it)| it.two_changes.is_some());
    let of_two_kinds = has_two_kinds.then(|| {
        "x or y %: the blocks have two kinds of change, so no interval is given".to_owned()
    });
    let notes = [of_change.map(str::to_owned), of_two_kinds];
    let notes: Vec<String> =
        notes.into_iter().chain([summary.few_responses.clone()]).flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// By what the exit code of `compare` goes, where it is 0 though sentences begin with what is worse.
pub fn by_what_exit_goes(study: &ComparisonStudy) -> Option<String> {
    let summary = &SummaryComparison::of(study);
    let is_worse = |row: &ComparedMetric| {
        let told = pairs::told(summary, row);
        told.iter().any(|it| it.verdict == ComparisonVerdict::Worse)
    };
    let is_hidden =
        pairs::are_combinations(summary) && !summary.worse && summary.metrics.iter().any(is_worse);
    let deciding: Vec<String> = summary.deciding().map(|row| summary::name(row.metric)).collect();
    is_hidden.then(|| {
        format!(
            "exit code 0: it goes only by {} and failures, against {}",
            listed(&deciding),
            summary.base().called
        )
    })
}

/// The metrics that decide, with each pair that is compared.
fn deciding_pairs(
    summary: &SummaryComparison,
) -> impl Iterator<Item = (&ComparedMetric, &Difference)> {
    summary.deciding().flat_map(|row| row.differences.iter().map(move |pair| (row, pair)))
}

/// A metric with its unit: `p99, ms`; a deciding metric has a star.
fn titled(row: &ComparedMetric) -> String {
    let star = if row.decides { " *" } else { "" };
    format!("{}, {}{star}", summary::name(row.metric), row.unit)
}

fn figure(row: &ComparedMetric, letter: &str) -> String {
    number::or_none(row.median(letter), |value| number::or_zero(value, number::significant))
}

/// A change and its interval, each as a cell.
fn change(difference: &Difference) -> [String; 2] {
    let both = change_words::two_changes_in_short(difference);
    [both.or_else(|| change_words::estimate_of(difference)), change_words::interval_of(difference)]
        .map(|cell| number::or_none(cell, |text| text))
}

fn by_metric(summary: &SummaryComparison) -> DataTable {
    let base = summary.base().letter.as_str();
    let arm = summary.others().next().map_or(base, |arm| arm.letter.as_str());
    let has_control = summary.metrics.iter().any(|row| row.control.is_some());
    let against = format!("{arm} against {base}");
    let against = ColumnBand::new(against.clone(), against);
    let control = ColumnBand::new("A against A", "A against A");
    let interval = || TableColumn::new("interval, %").leaving(1);
    let mut columns: Vec<TableColumn> = ["", base, arm].map(TableColumn::new).into();
    columns.extend([TableColumn::new("change"), interval()].map(|column| column.under(&against)));
    columns.extend(has_control.then(|| interval().under(&control).leaving(2)));
    let rows = summary.metrics.iter().map(|row| {
        let mut cells = vec![titled(row), figure(row, base), figure(row, arm)];
        let Some(difference) = row.difference(base, arm) else { return TableRow::new(cells) };
        cells.extend(change(difference));
        cells.extend(row.control.as_ref().map(|control| change(control)[1].clone()));
        TableRow::new(cells).noted(verdict_of(difference))
    });
    DataTable { notes: "verdict".to_owned(), ..DataTable::of_columns(columns, rows) }
}

/// The verdict in a word; or how many blocks it needs; or of a change that is certain, though it may be
/// smaller than the margin, its interval: `+2.4 to +6.5 %`.
fn verdict_of(difference: &Difference) -> String {
    match difference.doubt {
        Some(ComparisonDoubt::FewBlocks { least }) => format!("needs {least} blocks"),
        _ => change_words::certain_change(difference)
            .unwrap_or_else(|| summary::verdict(difference.verdict).to_owned()),
    }
}

/// The metrics that are columns where each arm is a row: those that decide, and the usual ones.
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
            TableColumn::new(format!("{}{star}", summary::name(row.metric))).under(&times)
        }
        Metric::Cpu => TableColumn::new(if row.decides { "CPU ms *" } else { "CPU ms" }),
        _ => TableColumn::new(titled(row)),
    };
    let column = |row: &&ComparedMetric| column(row).leaving(leaves(row));
    // Where arms combine settings, the table of pairs below has all changes.
    let has_changes = !pairs::are_combinations(summary);
    let deciding = summary.deciding().next().filter(|_| has_changes);
    let base = summary
        .ranking
        .as_ref()
        .map_or(summary.base().letter.as_str(), |ranking| ranking.best.as_str());
    let against = deciding
        .map_or_else(String::new, |row| format!("{} against {base}", summary::name(row.metric)));
    let of = if against.is_empty() { String::new() } else { format!("of {against}") };
    // Where several metrics decide, the verdict of a row is that of the first.
    let notes = deciding.map(|row| format!("verdict of {}", summary::name(row.metric)));
    let against = ColumnBand::new(against, of);
    // What limits each size stands beside its name, and leaves as late as p99: sizes are tried for it.
    let has_limits = summary.arms.iter().any(|arm| !arm.limits.is_empty());
    let limit = has_limits.then(|| TableColumn::new("limit").leaving(1));
    let columns = ["", ""].map(TableColumn::new).into_iter().chain(limit);
    let columns = columns.chain(rows.iter().map(column));
    let change_columns = [("change", 0), ("interval, %", 3)];
    let change_columns =
        change_columns.map(|(name, leaves)| TableColumn::new(name).under(&against).leaving(leaves));
    let columns = columns.chain(change_columns.into_iter().filter(|_| has_changes));
    let lines = summary.compared().map(|arm| {
        let figures = rows.iter().map(|row| figure(row, &arm.letter));
        let name = [arm.letter.clone(), shortened(&arm.name)].into_iter();
        let limit = has_limits.then(|| limits::in_column(&arm.limits));
        let cells = name.chain(limit).chain(figures);
        let is_best =
            summary.ranking.as_ref().is_some_and(|it| it.is_decided() && it.best == arm.letter);
        let against_base = deciding.and_then(|row| {
            let difference = row.seen_from(base, &arm.letter)?;
            Some((verdict_of(&difference), difference))
        });
        match against_base {
            Some((verdict, difference)) => {
                TableRow::new(cells.chain(change(&difference))).noted(verdict)
            }
            None if is_best => {
                TableRow::new(cells.chain(["", ""].map(str::to_owned))).noted("best")
            }
            None => TableRow::new(cells),
        }
    });
    DataTable {
        lead: 2 + usize::from(has_limits),
        notes: notes.unwrap_or_default(),
        ..DataTable::of_columns(columns, lines)
    }
}

/// When a metric's column leaves a narrow table of arms; one that decides stays.
fn leaves(row: &ComparedMetric) -> u8 {
    if row.decides {
        return 0;
    }
    match row.metric {
        Metric::GeneratorCpu | Metric::Memory | Metric::Slow | Metric::Workers => 7,
        Metric::Cpu => 6,
        Metric::Mean => 5,
        Metric::P50 | Metric::P95 => 4,
        Metric::Failed => 2,
        Metric::P99 => 1,
        Metric::Throughput => 0,
    }
}

/// The arms and how they were measured, a line each: what a reader needs to read the table. How the
/// blocks were run is in a full report.
pub(crate) fn measured(study: &ComparisonStudy) -> Vec<String> {
    let mut lines = arms(study);
    let blocks = format!("{}, {} a run", blocks(study), length(study));
    lines.push(labels::joined([load(study), blocks, decides(study)].map(Some)));
    lines
}

/// The arms and their load.
fn setup(study: &ComparisonStudy) -> Vec<String> {
    arms(study).into_iter().chain([load(study)]).collect()
}

/// `closed loop, 20 connections`
fn load(study: &ComparisonStudy) -> String {
    labels::listed([pace(study), load_detail(study)])
}

/// What all arms share, and below it each arm of a few.
fn arms(study: &ComparisonStudy) -> Vec<String> {
    const MOST: usize = 4;
    /// The columns of a terminal.
    const ONE_LINE: usize = 80;
    let plan = &study.plan;
    let count = plan.arms.len();
    let servers: Vec<String> = (0..count).map(|at| server(study, at)).collect();
    let sizes: Vec<String> = (0..count).map(|at| size(study, at)).collect();
    let is_one_server = servers.iter().all(|server| *server == servers[0]);
    let is_one_size = sizes.iter().all(|size| *size == sizes[0]);
    let mut lines = Vec::new();
    let are_named = is_one_size && names_tell_servers(study);
    let common = |size: &str| {
        labels::joined([
            is_one_server.then(|| servers[0].clone()),
            (are_named && !is_one_server).then(|| servers_in_words(&distinct(&servers))),
            is_one_size.then(|| size.to_owned()),
            shared_sleep(plan),
        ])
    };
    let whole = common(&sizes[0]);
    // A reader can multiply workers and threads.
    let factors = sizes[0].split(" = ").next().unwrap_or_default();
    let common = if columns_of(&whole) > ONE_LINE { common(factors) } else { whole };
    if !common.is_empty() {
        lines.push(common);
    }
    // A ranking's table names its arms, and so does any of more than two.
    let is_in_table = plan.question == ComparisonQuestion::Best || are_named && count > 2;
    let named = if is_in_table { 0 } else { count.min(MOST) };
    for at in 0..named {
        let own = labels::joined([
            (!is_one_server).then(|| servers[at].clone()),
            (!is_one_size).then(|| sizes[at].clone()),
        ]);
        let name = name_with_commit(&plan.arms[at]);
        lines.push(format!("{}  {}", plan.letter(at), labels::joined([Some(name), Some(own)])));
    }
    lines
}

/// How long the app sleeps, if it does so in all arms.
fn shared_sleep(plan: &ComparisonPlan) -> Option<String> {
    let of = |arm: &ArmPlan| labels::app_sleeps(&arm.server, &arm.stream);
    let first = of(&plan.arms[0])?;
    plan.arms.iter().all(|arm| of(arm).as_ref() == Some(&first)).then_some(first)
}

/// Whether the arms' names alone tell which server each is: all are the same, or a name has the
/// version of its server, and there is no commit to show.
fn names_tell_servers(study: &ComparisonStudy) -> bool {
    let arms = || study.plan.arms.iter().enumerate();
    let version = |at: usize| study.server(at).and_then(|server| server.version.clone());
    let is_one_version = arms().all(|(at, _)| version(at) == version(0));
    arms().all(|(at, arm)| {
        let has_version = version(at).is_some_and(|version| arm.name.contains(&version));
        (is_one_version || has_version) && name_with_commit(arm) == *arm.name
    })
}

/// `Puma 6.6.1 and 8.0.2, Ruby 3.1.2` of `Puma 6.6.1, Ruby 3.1.2` and `Puma 8.0.2, Ruby 3.1.2`: what all
/// have is said once.
fn servers_in_words(servers: &[String]) -> String {
    let parts = |server: &'_ String| -> Option<[String; 3]> {
        let (versioned, rest) = server.split_once(", ").unwrap_or((server, ""));
        let (name, version) = versioned.split_once(' ')?;
        Some([name, version, rest].map(str::to_owned))
    };
    let all: Option<Vec<[String; 3]>> = servers.iter().map(parts).collect();
    let is_alike = |all: &Vec<[String; 3]>| {
        all.iter().all(|[name, _, rest]| *name == all[0][0] && *rest == all[0][2])
    };
    let Some(all) = all.filter(is_alike) else { return servers.join("; ") };
    let versions: Vec<String> = all.iter().map(|[_, version, _]| version.clone()).collect();
    labels::listed([format!("{} {}", all[0][0], listed(&versions)), all[0][2].clone()])
}

/// The different ones, in order.
fn distinct(all: &[String]) -> Vec<String> {
    let mut different: Vec<String> = Vec::new();
    for one in all {
        if !different.contains(one) {
            different.push(one.clone());
        }
    }
    different
}

fn server(study: &ComparisonStudy, arm: usize) -> String {
    study.server(arm).map(labels::server).unwrap_or_default()
}

fn size(study: &ComparisonStudy, arm: usize) -> String {
    study.server(arm).map(labels::slots).unwrap_or_default()
}

/// An arm's name, and its commit where the name does not say it already.
fn name_with_commit(arm: &ArmPlan) -> String {
    let name = &arm.name;
    // A commit is the first setting, and neither an option nor a variable.
    let is_commit = |setting: &&MaskedText| !setting.starts_with('-') && !setting.contains('=');
    match arm.settings.first().filter(is_commit) {
        Some(commit) if commit.starts_with(&**name) => commit.to_string(),
        Some(commit) => format!("{name}, {commit}"),
        None => name.to_string(),
    }
}

/// How long each run is.
fn length(study: &ComparisonStudy) -> String {
    labels::length(study.plan.arms[0].stream.stop)
}

/// `8 blocks`, `3 blocks, then interrupted`
fn blocks(study: &ComparisonStudy) -> String {
    let plan = &study.plan;
    let ended = match plan.blocks {
        _ if study.interrupted => ", then interrupted",
        ComparisonBlocks::UntilDecided if study.whole_blocks() == plan.blocks.most() => {
            " (the most)"
        }
        _ => "",
    };
    format!("{}{ended}", count_of(study.whole_blocks(), "block"))
}

/// `mean decides (*), margin 5 %`
fn decides(study: &ComparisonStudy) -> String {
    let plan = &study.plan;
    let deciding: Vec<String> = plan.deciding().into_iter().map(summary::name).collect();
    let verb = if deciding.len() == 1 { "decides" } else { "decide" };
    // At a rate fewer threads may have a mean as good, and be turned down for their p99.
    let is_of_tail = plan.question == ComparisonQuestion::Best
        && !matches!(plan.load, ComparisonLoad::Closed { .. })
        && !plan.deciding().contains(&Metric::P99);
    let of_tail = if is_of_tail { ", then p99" } else { "" };
    let chosen = if plan.gates_chosen_later { ", chosen after the runs" } else { "" };
    format!(
        "{} {verb} (*{chosen}){of_tail}, margin {} %",
        listed(&deciding),
        number::shortest((plan.margin * 1e4).round() / 100.0),
    )
}

/// How the blocks were run, and what shares a chance of a false alarm.
pub(crate) fn method(study: &ComparisonStudy) -> String {
    let plan = &study.plan;
    let stream = &plan.arms[0].stream;
    let warm_up = if stream.warm_up > Nanos::ZERO {
        format!(" after {} of warm-up", number::span(stream.warm_up))
    } else {
        String::new()
    };
    let control = if plan.control {
        format!(", {} once more as control", plan.called(0))
    } else {
        String::new()
    };
    let pairs = count_of(plan.pairs().len() as u64, "pair");
    let pairs = match plan.question {
        ComparisonQuestion::Change | ComparisonQuestion::Best => None,
        ComparisonQuestion::Settings => Some(format!("{pairs} that differ in one setting")),
        ComparisonQuestion::Pairs => Some(pairs),
    };
    let share = pairs.map(|pairs| format!("{pairs} share one chance of a false alarm (Holm)"));
    let among = (plan.gates_chosen_later && plan.control).then(|| {
        "what was chosen after the runs is tested with the metrics that do not decide".to_owned()
    });
    let is_decided = matches!(plan.blocks, ComparisonBlocks::UntilDecided)
        && !study.interrupted
        && study.whole_blocks() < plan.blocks.most()
        && decision(plan, &study.runs) == Decision::Decided;
    let until = if is_decided { ", until all was clear" } else { "" };
    let runs = format!(
        "{}{until}: each arm once{control}, {}{warm_up}, a fresh server each time, in a balanced order (seed {})",
        blocks(study),
        length(study),
        plan.seed,
    );
    [Some(runs), share, among].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// How many connections a closed loop had, or how an open loop's rate was chosen.
fn load_detail(study: &ComparisonStudy) -> String {
    match study.plan.load {
        ComparisonLoad::Closed { .. } => {
            let most = study.runs.iter().map(|run| run.run.connections).max();
            most.map_or("no run".to_owned(), |n| count_of(n, "connection"))
        }
        ComparisonLoad::Share { of_maximum } if study.rate_per_s().is_some() => {
            format!("{} % of what the slower arm can do", number::fixed(of_maximum * 100.0, 0))
        }
        ComparisonLoad::Share { .. } | ComparisonLoad::Rate { .. } => String::new(),
    }
}

/// `closed loop`, or `open loop, 54.7 requests/s, Poisson`.
fn pace(study: &ComparisonStudy) -> String {
    if let ComparisonLoad::Closed { .. } = study.plan.load {
        return "closed loop".to_owned();
    }
    let rate = study.rate_per_s().map(|rate| format!("{} requests/s", number::rate_in_words(rate)));
    labels::listed([
        "open loop".to_owned(),
        rate.unwrap_or_default(),
        labels::arrivals_in_words(study.plan.arrivals).to_owned(),
    ])
}

/// The runs that count, each called by its arm.
pub(crate) fn sound_runs(study: &ComparisonStudy) -> Vec<NamedRun<'_>> {
    let mut runs: Vec<_> = study.runs.iter().filter(|run| run.is_sound()).collect();
    runs.sort_by_key(|run| run.arm);
    runs.into_iter()
        .map(|row| NamedRun { name: study.plan.called(row.arm), run: &row.run })
        .collect()
}

/// What speaks for the figures and against them, besides what holds for every run.
pub(crate) fn trust(study: &ComparisonStudy, summary: &SummaryComparison) -> Vec<TrustLine> {
    let mut lines: Vec<TrustLine> = missing_blocks(study)
        .map(|sentence| TrustLine::new(Grade::Doubtful, sentence))
        .into_iter()
        .collect();
    let unsound = study.runs.iter().filter(|run| !run.is_sound()).count();
    if unsound > 0 {
        let all = count_of(study.runs.len() as u64, "run");
        let are = if unsound == 1 { "is" } else { "are" };
        let sentence = format!("{unsound} of {all} failed the checks, and {are} not counted.");
        lines.push(
            TrustLine::new(Grade::Doubtful, sentence)
                .hint("longtail report --full says which, and why"),
        );
    }
    lines.push(trust_by_control(study, summary));
    lines.extend(idle_threads(summary));
    lines.extend(whole_rounds(study, summary));
    lines.extend(short_runs(study, summary));
    lines.extend(of_few_responses(study, summary));
    lines.extend(busy_machine(study));
    lines.extend(disturbed_looks(study));
    lines
}

/// How many of the blocks were run, if not all of them.
fn missing_blocks(study: &ComparisonStudy) -> Option<String> {
    let whole = study.whole_blocks();
    let all = match study.plan.blocks {
        ComparisonBlocks::Fixed(all) => count_of(all, "block"),
        ComparisonBlocks::UntilDecided => format!("at most {} blocks", study.plan.blocks.most()),
    };
    let are = if whole == 1 { "is" } else { "are" };
    match study.plan.blocks {
        _ if study.interrupted => Some(format!("Interrupted: {whole} of {all} {are} whole.")),
        ComparisonBlocks::Fixed(planned) if whole < planned => {
            Some(format!("{whole} of {all} {are} whole."))
        }
        _ => None,
    }
}

/// Says so where there are fewer connections than an arm has threads, so that it cannot show what it
/// can do.
fn idle_threads(summary: &SummaryComparison) -> Option<TrustLine> {
    let connections = summary.few_connections?;
    let larger = summary.compared().filter_map(|arm| {
        let slots = arm.slots.filter(|slots| *slots > connections)?;
        Some(format!("{} has {slots}", arm.called))
    });
    let sentence = format!(
        "{} cannot use all threads ({}): more of them may do more.",
        count_of(u64::from(connections), "connection"),
        listed(&larger.collect::<Vec<_>>())
    );
    let hint = "leave out -c: twice the threads of the largest";
    Some(TrustLine::new(Grade::Doubtful, sentence).hint(hint))
}

/// Says so where intervals look exact because short runs of a closed loop count whole rounds: with an
/// app that always takes as long, as many requests as there are slots end together, and a run has one
/// such round more or less. An interval narrower than one request of a run is of that kind.
fn whole_rounds(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<TrustLine> {
    /// A round that is less than this share of a run hardly shows.
    const LEAST_STEP: f64 = 0.01;
    let ComparisonLoad::Closed { .. } = study.plan.load else { return None };
    let Stop::After(length) = study.plan.arms[0].stream.stop else { return None };
    let sound = study.runs.iter().filter(|run| run.is_sound()).map(|run| &run.run);
    let requests = median(sound.clone().map(|run| run.tally.completed_in_window as f64))?;
    let connections = sound.map(|run| run.connections).max()?;
    let slots = summary.arms.iter().filter_map(|arm| arm.slots).max();
    let round = slots.map_or(connections, |slots| slots.min(connections));
    let step = f64::from(round) / requests;
    let row = summary.metric(Metric::Throughput)?;
    let looks_exact =
        |it: &Difference| it.interval.is_some_and(|[low, high]| high - low < 1.0 / requests);
    let is_seen = row.differences.iter().chain(&row.control).any(looks_exact);
    (is_seen && step >= LEAST_STEP).then(|| {
        let sentence = format!(
            "A run of {} counts about {}, and up to {round} end at once: one such round more or less changes its throughput by {}, and an interval narrower than that is not exact.",
            number::span(length),
            count_of(requests.round() as u64, "request"),
            change_words::plain_percent(step)
        );
        TrustLine::new(Grade::Uncertain, sentence).hint("in longer runs it matters less (--for)")
    })
}

/// Says so where the interval of a difference of means is wider than the runs differ, as the throughputs
/// show another one: in a closed loop a mean is connections / throughput (Little's law), but which of the
/// longest requests end just within a short run is chance, or the same in each run.
fn short_runs(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<TrustLine> {
    let row = summary.metric(Metric::Mean)?;
    let rates = summary.metric(Metric::Throughput)?;
    let connections = f64::from(summary.connections?);
    let (of_pair, widened) = row.differences.iter().find_map(|it| Some((it, it.widened?)))?;
    let by_throughput = |letter: &str| Some(connections / rates.median(letter)? * 1e3);
    let of_arm = |arm: &SummaryArm| {
        let mean = row.median(&arm.letter)?;
        let other = by_throughput(&arm.letter)?;
        Some(((mean / other).ln().abs(), arm.called.clone(), mean, other))
    };
    let furthest = summary.compared().filter_map(of_arm).max_by(|a, b| a.0.total_cmp(&b.0));
    let (_, arm, mean, other) = furthest?;
    let Stop::After(length) = study.plan.arms[0].stream.stop else { return None };
    let sentence = format!(
        "Runs of {} are short for the longest requests: the mean of {arm} is {} ms, and {} ms by its throughput ({} connections / throughput). Intervals of means have both: {} against {} {} % by its means, {} % by its throughputs.",
        number::span(length),
        number::significant(mean),
        number::significant(other),
        number::shortest(connections),
        summary.called(&of_pair.arm),
        summary.called(&of_pair.base),
        change_words::interval(widened.by_means),
        change_words::interval(widened.by_throughputs),
    );
    Some(TrustLine::new(Grade::Uncertain, sentence).hint("longer runs have both alike (--for)"))
}

/// In how many runs there are too few independent responses for a p99 that is shown, and what is
/// compared then. Where it decides, a line of its own says so.
fn few_responses(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<String> {
    /// More arms than this are not named.
    const NAMED: usize = 2;
    let row = summary.metric(Metric::P99).filter(|row| !row.decides)?;
    let sound = || study.runs.iter().filter(|run| run.is_sound());
    let few_of = |run: &&ComparisonRun| row.metric.of_few(run).is_some();
    let few = sound().filter(few_of).count();
    let arms = 0..study.plan.arms_of_a_block();
    let of_arm = |arm: usize| {
        let few = sound().filter(|run| run.arm == arm).filter(few_of).count();
        let all = count_of(sound().filter(|run| run.arm == arm).count() as u64, "run");
        (few > 0).then(|| format!("in {few} of {all} of {}", study.plan.called(arm)))
    };
    let each: Vec<String> = arms.filter_map(of_arm).collect();
    (few > 0).then(|| {
        let all = count_of(sound().count() as u64, "run");
        let whose = if each.len() > NAMED { format!("in {few} of {all}") } else { listed(&each) };
        format!("p99: {whose} too few responses for a sure p99, compared all the same")
    })
}

/// In how many runs a percentile that decides has too few independent responses to say what another run
/// would have: it is compared as it was in each, so all that is known of it comes from the blocks.
fn of_few_responses(study: &ComparisonStudy, summary: &SummaryComparison) -> Option<TrustLine> {
    let sound = || study.runs.iter().filter(|run| run.is_sound());
    let of = |row: &ComparedMetric| {
        let few = sound().filter(|run| row.metric.of_few(run).is_some()).count();
        (few > 0).then(|| (summary::name(row.metric), few))
    };
    let each: Vec<String> = summary
        .deciding()
        .filter_map(of)
        .map(|(name, few)| {
            format!("{name} in {few} of {}", count_of(sound().count() as u64, "run"))
        })
        .collect();
    let sentence = format!(
        "Too few independent responses for {}: compared is what each run had, and how far that varies, the blocks show.",
        listed(&each)
    );
    (!each.is_empty())
        .then(|| TrustLine::new(Grade::Uncertain, sentence).hint("longer runs have more (--for)"))
}

/// In which blocks other programs used the CPUs up: arms of a block may have had less of them than
/// others.
fn busy_machine(study: &ComparisonStudy) -> Option<TrustLine> {
    let others = |run| judge::others_beyond(run, study.plan.margin);
    let busy = study.runs.iter().filter_map(|run| Some((run, others(&run.run)?)));
    let busy: Vec<(u32, f64, f64)> = busy
        .filter_map(|(run, others)| {
            Some((run.block, others, run.run.generator.server.as_ref()?.of))
        })
        .collect();
    let (_, most, of) = busy.iter().copied().max_by(|(_, a, _), (_, b, _)| a.total_cmp(b))?;
    let blocks: BTreeSet<u32> = busy.iter().map(|(block, ..)| *block).collect();
    let all = study.runs.iter().map(|run| run.block).max().unwrap_or(0);
    let sentence = format!(
        "Other processes used up to {} of the {of} CPUs in {}, and hardly any was idle.",
        number::fixed(most, 1),
        blocks_in_words(&blocks, all)
    );
    let hint = "the arms then differ by what the others left: leave the machine alone meanwhile";
    Some(TrustLine::new(Grade::Doubtful, sentence).hint(hint))
}

/// Of `sweep --try auto`: of which single runs other programs took CPUs, and what that may hide.
fn disturbed_looks(study: &ComparisonStudy) -> Vec<TrustLine> {
    let looks = &study.plan.looked_at;
    let doubt = |others: &dyn Fn(&SizeLook) -> Option<f64>, hides: &str| {
        let disturbed: Vec<&SizeLook> = looks.iter().filter(|it| others(it).is_some()).collect();
        let most = disturbed.iter().filter_map(|it| others(it)).max_by(f64::total_cmp)?;
        let sizes: Vec<String> = disturbed.iter().map(|look| look.size.to_string()).collect();
        let sentence = format!(
            "Other processes used up to {} CPUs in single runs of {}: {hides}.",
            number::fixed(most, 1),
            listed(&sizes)
        );
        let hint = "leave the machine alone and try again, or name the sizes (--try 2x3,2x5)";
        Some(TrustLine::new(Grade::Doubtful, sentence).hint(hint))
    };
    let of_the_most = doubt(&|look| look.others, "a better size may have been left out");
    let at_rate = doubt(&|look| look.at_rate?.others, "fewer threads may be enough");
    of_the_most.into_iter().chain(at_rate).collect()
}

/// `blocks 5 to 8`, `4 of 8 blocks`.
fn blocks_in_words(blocks: &BTreeSet<u32>, all: u32) -> String {
    let count = blocks.len() as u32;
    match (blocks.first(), blocks.last()) {
        (Some(1), _) if count == all => "all blocks".to_owned(),
        (Some(first), _) if count == 1 => format!("block {first}"),
        (Some(first), Some(last)) if last - first + 1 == count => {
            format!("blocks {first} to {last}")
        }
        _ => format!("{count} of {}", count_of(u64::from(all), "block")),
    }
}

/// What the control says: the base once more, which should not differ from itself.
fn trust_by_control(study: &ComparisonStudy, summary: &SummaryComparison) -> TrustLine {
    if !study.plan.control {
        let is_tested = |row: &&ComparedMetric| {
            row.decides || row.metric == Metric::P99 && !row.differences.is_empty()
        };
        let tested = summary.metrics.iter().filter(is_tested);
        let tested: Vec<String> = tested.map(|row| summary::name(row.metric)).collect();
        let are = if tested.len() == 1 { "is" } else { "are" };
        // The answer of a search has the intervals in its sentences, and this line below a full report.
        let of_intervals = is_size_search(summary) && study.plan.pairs().len() > 1;
        let of_intervals = if of_intervals {
            " The tests of each share one chance in 20 of a false alarm, so an interval is wider than one of 95 %."
        } else {
            ""
        };
        return TrustLine::new(
            Grade::Uncertain,
            format!(
                "Nothing ran twice in each block, so how far equal runs differ on this machine is not known. Only {} {are} tested.{of_intervals}",
                listed(&tested)
            ),
        );
    }
    let base = summary.called_control();
    let Some((row, control)) = widest_control(summary) else {
        return TrustLine::new(
            Grade::Uncertain,
            "Too few blocks to say how far equal runs differ on this machine.",
        );
    };
    let name = summary::name(row.metric);
    if differs(control) {
        let range = change_words::range_of(control);
        let sentence = format!(
            "{base}, run twice in each block, differs from itself in {name}: {range}. Something drifts; no difference as small as that counts."
        );
        return TrustLine::new(Grade::Doubtful, change_words::sentence_of(sentence))
            .hint("leave the machine alone meanwhile, and run longer (--for)");
    }
    let most = change_words::plain_percent(control.estimate.unwrap_or_default().abs());
    let of_a_block = largest_in_a_block(study, row.metric).map(change_words::plain_percent);
    let of_a_block = of_a_block.filter(|it| *it != most);
    let of_a_block = of_a_block.map(|it| format!(", up to {it} in one")).unwrap_or_default();
    let sentence = format!(
        "{base} against itself differs most in {name}: by {most} over all blocks{of_a_block}."
    );
    TrustLine::new(Grade::Passed, change_words::sentence_of(sentence))
}

/// By how much the control differs from the base in the block where it does so most, as a share of the
/// base's figure, or as a difference of shares.
fn largest_in_a_block(study: &ComparisonStudy, metric: Metric) -> Option<f64> {
    let figure = |block, arm| metric.of(study.counted(block, arm)?).ok();
    let change = |block| {
        let [base, control] = [0, study.plan.arms.len()].map(|arm| figure(block, arm));
        let (base, control) = base.zip(control)?;
        let part = if metric.is_share() { control - base } else { control / base - 1.0 };
        Some(part.abs())
    };
    (1..=study.whole_blocks()).filter_map(change).max_by(f64::total_cmp)
}

/// Whether the interval excludes 0, so that there is a difference.
fn differs(difference: &Difference) -> bool {
    difference.interval.is_some_and(excludes_zero)
}

/// The control's largest difference; one whose interval excludes 0 comes before any other.
fn widest_control(summary: &SummaryComparison) -> Option<(&ComparedMetric, &Difference)> {
    let controls = summary.metrics.iter().filter_map(|row| Some((row, row.control.as_ref()?)));
    let known = controls.filter(|(_, control)| control.interval.is_some());
    let weight =
        |control: &Difference| (differs(control), control.estimate.unwrap_or_default().abs());
    known.max_by(|(_, a), (_, b)| {
        weight(a).partial_cmp(&weight(b)).unwrap_or(std::cmp::Ordering::Equal)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::comparison::WidenedInterval;

    #[test]
    fn an_interval_of_means_that_reaches_to_the_throughputs_is_said_to() {
        let study = testkit::comparison::slower();
        let mut summary = summary(&study);
        let said = |summary: &SummaryComparison| short_runs(&study, summary).map(|it| it.sentence);
        assert_eq!(said(&summary), None);
        let mean = summary.metrics.iter_mut().find(|row| row.metric == Metric::Mean).unwrap();
        mean.differences[0].widened =
            Some(WidenedInterval { by_means: [0.42, 0.44], by_throughputs: [0.19, 0.21] });
        mean.medians.insert("B".to_owned(), Some(60.0));
        let rates = summary.metrics.iter_mut().find(|row| row.metric == Metric::Throughput);
        rates.unwrap().medians.insert("B".to_owned(), Some(400.0));
        assert_eq!(
            said(&summary).as_deref(),
            Some(
                "Runs of 4 s are short for the longest requests: the mean of my-branch is 60.0 ms, and 50.0 ms by its throughput (20 connections / throughput). Intervals of means have both: my-branch against main [+42, +44] % by its means, [+19, +21] % by its throughputs."
            )
        );
    }

    #[test]
    fn doubts_stand_above_further_lines_that_speak_for_the_figures() {
        let study = model::Study::from(testkit::comparison::keep_alive());
        let trust = crate::summary::Summary::of(&study, None).trust;
        let marks: Vec<Grade> = trust.iter().map(|line| line.mark).collect();
        assert_eq!(marks[0], Grade::Passed, "{trust:?}");
        assert_eq!(marks.last(), Some(&Grade::Passed), "{trust:?}");
        assert!(marks[1..].is_sorted_by(|a, b| a >= b), "{trust:?}");
    }

    #[test]
    fn a_metric_that_was_chosen_after_the_runs_is_said_to_be() {
        let mut study = testkit::comparison::slower();
        assert!(!decides(&study).contains("chosen"), "{}", decides(&study));
        study.plan.gates_chosen_later = true;
        let how = decides(&study);
        assert!(how.contains("mean decides (*, chosen after the runs), margin"), "{how}");
    }

    #[test]
    fn intervals_that_look_exact_by_whole_rounds_are_said_to_be_none() {
        let mut study = testkit::comparison::slower();
        let said = |study: &ComparisonStudy| {
            let summary = summary(study);
            whole_rounds(study, &summary).map(|line| line.sentence).unwrap_or_default()
        };
        assert_eq!(said(&study), "", "runs that differ by any number of requests");
        for run in &mut study.runs {
            run.run.tally.completed_in_window = if run.arm == 1 { 390 } else { 400 };
        }
        assert_eq!(
            said(&study),
            "A run of 4 s counts about 400 requests, and up to 10 end at once: one such round more or less changes its throughput by 2.5 %, and an interval narrower than that is not exact."
        );
        for run in &mut study.runs {
            run.run.tally.completed_in_window *= 100;
        }
        assert_eq!(said(&study), "", "the steps are small");
        study.plan.load = ComparisonLoad::Rate { per_s: 100.0 };
        assert_eq!(said(&study), "", "an open loop");
    }

    #[test]
    fn a_block_that_was_broken_off_is_not_counted() {
        let mut study = testkit::comparison::broken_off();
        assert!(
            method(&study).starts_with("3 blocks, then interrupted: each arm once"),
            "{}",
            method(&study)
        );
        let missing = |study: &ComparisonStudy| missing_blocks(study);
        assert_eq!(missing(&study).as_deref(), Some("Interrupted: 3 of 8 blocks are whole."));
        study.plan.blocks = ComparisonBlocks::UntilDecided;
        assert_eq!(
            missing(&study).as_deref(),
            Some("Interrupted: 3 of at most 20 blocks are whole.")
        );
        assert_eq!(missing(&testkit::comparison::slower()), None);
    }

    #[test]
    fn blocks_are_named_if_they_are_one_stretch() {
        let of = |blocks: &[u32]| blocks_in_words(&blocks.iter().copied().collect(), 8);
        assert_eq!(of(&[5, 6, 7, 8]), "blocks 5 to 8");
        assert_eq!(of(&[3]), "block 3");
        assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8]), "all blocks");
        assert_eq!(of(&[1, 3, 8]), "3 of 8 blocks");
    }
}
